//! What is counted is what takes time.

use std::hint::black_box;

use super::*;
use crate::finding::Channel;
use crate::processor;
use crate::scan::Detector;

#[path = "../../benches/scan/texts.rs"]
mod texts;

#[path = "../../tests/it/adversarial/mixes.rs"]
mod mixes;

/// Prints, for many texts, the time that a byte takes and what was counted of each step: what steps cost was fitted to
/// that.
#[test]
#[ignore = "prints figures: for a release build on an idle machine"]
fn what_steps_take() {
    let detector = Detector::new();
    let pieces = mixes::pieces();
    let ordinary = texts::ORDINARY.map(|(name, unit)| (name, unit.to_owned()));
    let mixed = (1..=1500).map(|seed| ("mix", mixes::mix(&pieces, seed)));
    for (name, unit) in ordinary.into_iter().chain(texts::adversarial()).chain(mixed) {
        let text = texts::fill(&unit, 96 << 10);
        let run = || {
            let began = processor::time();
            black_box(detector.scan(black_box(&text), Channel::ToolOutput));
            processor::time() - began
        };
        let best = (0..3).map(|_| run()).min().unwrap_or_default();
        println!("{}\t{name}\t{:?}\t{unit:?}", best.as_nanos(), LAST.get().steps);
    }
}

/// What a text costs, by what is counted, in parts of what one of its length may.
fn share(detector: &Detector, unit: &str, size: usize) -> f64 {
    let _scan = detector.scan(&texts::fill(unit, size), Channel::ToolOutput);
    let mut limited = Work::default();
    limited.limit(size);
    LAST.get().cost() as f64 / limited.most.unwrap() as f64
}

#[test]
fn no_text_makes_too_much_work() {
    let detector = Detector::new();
    let pieces = mixes::pieces();
    let mixed = (1..=150).map(|seed| ("mix", mixes::mix(&pieces, seed)));
    let mut found = Vec::new();
    for (name, unit) in texts::adversarial().into_iter().chain(mixed) {
        // The text itself is read to its end, whatever it takes, and addresses weigh more here than they take; the
        // last reading may cost more than was expected of it.
        let share = share(&detector, &unit, 512 << 10);
        if share > 2.0 {
            found.push(format!("{name} {unit:?}: {share:.2}"));
        }
    }
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn ordinary_texts_are_far_from_the_limit() {
    let detector = Detector::new();
    for (name, unit) in texts::ORDINARY {
        for size in [4 << 10, 64 << 10, 2 << 20] {
            let share = share(&detector, unit, size);
            assert!(share < if name == "English" { 0.25 } else { 0.9 }, "{name}: {share:.2}");
            let scan = detector.scan(&texts::fill(unit, size), Channel::ToolOutput);
            assert!(scan.findings.iter().all(|one| one.rule != "decode.limits"), "{name}");
        }
    }
}
