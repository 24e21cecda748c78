//! Any text judged in every channel.

#![no_main]

use wardkeep_detect::finding::Channel;
use wardkeep_detect::scan::{Detector, Thresholds};

const CHANNELS: [Channel; 7] = [
    Channel::User,
    Channel::ToolOutput,
    Channel::Document,
    Channel::Memory,
    Channel::Policy,
    Channel::Skill,
    Channel::ModelOutput,
];

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let detector = Detector::new();
    for channel in CHANNELS {
        let scan = detector.scan(text, channel);
        assert!((0.0..=1.0).contains(&scan.score), "{}", scan.score);
        assert_eq!(scan.verdict, Thresholds::of(channel).judge(scan.score));
        for finding in &scan.findings {
            let part = text.get(finding.span.start..finding.span.end);
            assert!(part.is_some_and(|part| !part.is_empty()), "{finding:?}");
            assert!(finding.weight > 0.0 && finding.weight <= 1.0, "{finding:?}");
        }
        assert!(scan.findings.is_sorted_by(|a, b| a.weight >= b.weight), "heaviest first");
        assert_eq!(detector.scan(text, channel), scan, "the same text, the same answer");
    }
});
