//! Any bytes as a policy, its manifest, a line of its audit log, and a config.

#![no_main]

use wardkeep_policy::audit::parse_entry;
use wardkeep_policy::config::Config;
use wardkeep_policy::manifest::Manifest;
use wardkeep_policy::sanitise::{MAX_POLICY_CHARS, position, sanitise, strip_markers};
use wardkeep_policy::sign::Draft;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(manifest) = Manifest::parse(data) {
        let written = manifest.to_bytes();
        assert_eq!(Manifest::parse(&written).expect("a written manifest is one"), manifest);
    }
    let _ = parse_entry(data);
    if let Err(error) = Config::parse(data) {
        assert!(error.line >= 1 && error.column >= 1);
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (stripped, filtered) = strip_markers(text);
    assert!(filtered.iter().all(|one| text.get(one.span.clone()).is_some()));
    assert!(strip_markers(&stripped).1.is_empty(), "nothing is left to strip");
    let sanitised = sanitise(text);
    assert!(sanitised.text.chars().count() <= MAX_POLICY_CHARS);
    let lines = position(text, text.len()).0;
    assert!(sanitised.suspicions.iter().all(|one| one.line >= 1 && one.line <= lines));
    let _ = Draft::new(text.to_owned()).notices();
});
