//! Texts made to be slow take no more than ten times as long as clean ones, and more text no more than
//! about as much more time.
//!
//! `scripts/bench` runs the large sizes: `WARDKEEP_MEGABYTES=64 cargo test --release -p wardkeep-detect
//! --test it adversarial -- --ignored --nocapture`.

use std::hint::black_box;
use std::io::Write as _;
use std::time::Duration;

use wardkeep_detect::finding::Channel;
use wardkeep_detect::scan::Detector;

use crate::processor;

#[path = "../../benches/scan/texts.rs"]
mod texts;

mod mixes;

/// The best of several runs, in time on the processor: other work on the machine only ever adds.
fn time(detector: &Detector, text: &str, runs: usize) -> Duration {
    let run = || {
        let began = processor::time();
        black_box(detector.scan(black_box(text), Channel::ToolOutput));
        processor::time() - began
    };
    (0..runs).map(|_| run()).min().unwrap_or_default()
}

/// Names of texts that take more than `most` times as long as clean text, looked at again before they
/// are believed.
fn slow(size: usize, most: f64, runs: usize, show: bool) -> Vec<String> {
    let detector = Detector::new();
    let clean = texts::fill(texts::ORDINARY[0].1, size);
    let mut base = time(&detector, &clean, 4 * runs);
    let mut found = Vec::new();
    for (name, unit) in texts::adversarial() {
        let text = texts::fill(&unit, size);
        let mut best = time(&detector, &text, runs);
        let ratio = |best: Duration, base: Duration| best.as_secs_f64() / base.as_secs_f64();
        for _ in 0..4 {
            if ratio(best, base) <= most {
                break;
            }
            base = base.min(time(&detector, &clean, runs));
            best = best.min(time(&detector, &text, 2 * runs));
        }
        let line = format!(
            "{name:<26} {:>9.3} ms {:>8.1} MB/s {:>6.1}×",
            best.as_secs_f64() * 1e3,
            size as f64 / 1e6 / best.as_secs_f64(),
            ratio(best, base)
        );
        if show {
            // Straight out, so that a run with `--nocapture` or without shows how far it is.
            let _gone = writeln!(std::io::stderr(), "{line}");
        }
        if ratio(best, base) > most {
            found.push(line);
        }
    }
    found
}

#[test]
fn no_text_is_ten_times_slower() {
    // Without optimisation the proportions are others; the ten is measured with it.
    let most = if cfg!(debug_assertions) { 15.0 } else { 10.0 };
    let slow = slow(256 << 10, most, 2, false);
    assert!(slow.is_empty(), "\n{}", slow.join("\n"));
}

/// How many times as long [`MORE`] times as much takes, and both times.
fn multiplied(detector: &Detector, unit: &str) -> (f64, [Duration; 2]) {
    let texts = [SMALL, MORE * SMALL].map(|size| texts::fill(unit, size));
    let mut best = texts.each_ref().map(|text| time(detector, text, 2));
    let factor = |best: [Duration; 2]| best[1].as_secs_f64() / best[0].as_secs_f64();
    for _ in 0..4 {
        if factor(best) <= SLOWER {
            break;
        }
        for (best, text) in best.iter_mut().zip(&texts) {
            *best = (*best).min(time(detector, text, 2));
        }
    }
    (factor(best), best)
}

/// So far apart that what grows with the square of the text takes 256 times as long, and what only leaves a cache, or
/// has another program beside it, nowhere near [`SLOWER`].
const SMALL: usize = 64 << 10;
const MORE: usize = 16;
const SLOWER: f64 = 40.0;

#[test]
fn sixteen_times_the_text_takes_about_sixteen_times_the_time() {
    let detector = Detector::new();
    let mut found = Vec::new();
    for (name, unit) in texts::adversarial() {
        let (factor, times) = multiplied(&detector, &unit);
        if factor > SLOWER {
            found.push(format!("{name}: {factor:.1} {times:?}"));
        }
    }
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

/// Mixes of the slow texts and of what rules and formats begin with; `WARDKEEP_MIXES` is where to begin, and how
/// many: `1000+500`.
#[test]
#[ignore = "takes minutes, and a release build"]
fn no_mix_is_ten_times_slower() {
    let mixes = std::env::var("WARDKEEP_MIXES").unwrap_or_else(|_| "1+1000".to_owned());
    let (first, count) = mixes.split_once('+').unwrap();
    let (first, count): (u64, u64) = (first.parse().unwrap(), count.parse().unwrap());
    let detector = Detector::new();
    let pieces = mixes::pieces();
    let clean = texts::fill(texts::ORDINARY[0].1, 1 << 20);
    let mut base = time(&detector, &clean, 20);
    let mut found = Vec::new();
    for seed in first..first + count {
        let unit = mixes::mix(&pieces, seed);
        let text = texts::fill(&unit, 1 << 20);
        let mut best = time(&detector, &text, 1);
        for _ in 0..6 {
            if best.as_secs_f64() <= 10.0 * base.as_secs_f64() {
                break;
            }
            base = base.min(time(&detector, &clean, 4));
            best = best.min(time(&detector, &text, 3));
        }
        let ratio = best.as_secs_f64() / base.as_secs_f64();
        if ratio > 10.0 {
            let line = format!("{seed}: {ratio:.1}× {unit:?}");
            let _gone = writeln!(std::io::stderr(), "{line}");
            found.push(line);
        }
    }
    assert!(found.is_empty(), "{} of {count}\n{}", found.len(), found.join("\n"));
}

#[test]
#[ignore = "for a release build on an idle machine"]
fn no_text_is_ten_times_slower_at_any_size() {
    let megabytes = std::env::var("WARDKEEP_MEGABYTES").ok().and_then(|size| size.parse().ok());
    let size: usize = megabytes.unwrap_or(64) << 20;
    let slow = slow(size, 10.0, 2, true);
    assert!(slow.is_empty(), "\n{}", slow.join("\n"));
}
