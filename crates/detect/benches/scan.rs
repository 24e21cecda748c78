//! Speed of a whole scan: `cargo bench -p wardkeep-detect`. `scripts/callgrind` counts instructions on the
//! same texts.

#![expect(clippy::print_stdout, reason = "a program that prints its figures")]

use std::hint::black_box;
use std::time::Instant;

use divan::Bencher;
use divan::counter::BytesCount;
use wardkeep_detect::finding::Channel;
use wardkeep_detect::scan::Detector;

#[path = "scan/texts.rs"]
mod texts;

fn main() {
    // Tables that are made on first use are part of it; only the first scan of a process shows them.
    let began = Instant::now();
    let detector = Detector::new();
    let ready = began.elapsed();
    black_box(detector.scan("See https://example.org/ first.", Channel::ToolOutput));
    println!("rules ready after {ready:?}, a first text judged after {:?}", began.elapsed());
    divan::main();
}

fn scan(bencher: Bencher<'_, '_>, text: &str) {
    let detector = Detector::new();
    bencher
        .counter(BytesCount::of_str(text))
        .bench(|| detector.scan(black_box(text), Channel::ToolOutput));
}

/// Clean English; at 1 KB the median is the figure that counts.
#[divan::bench(args = [256, 1 << 10, 4 << 10, 64 << 10, 1 << 20])]
fn english(bencher: Bencher<'_, '_>, size: usize) {
    scan(bencher, &texts::fill(texts::ORDINARY[0].1, size));
}

/// Other texts, 64 KB of each.
#[divan::bench(args = texts::ORDINARY.iter().skip(1).map(|(name, _)| *name))]
fn other(bencher: Bencher<'_, '_>, name: &str) {
    let unit =
        texts::ORDINARY.iter().find(|(other, _)| *other == name).map_or("", |(_, unit)| unit);
    scan(bencher, &texts::fill(unit, 64 << 10));
}

/// Texts made to be slow, 256 KB of each.
#[divan::bench(args = texts::adversarial().into_iter().map(|(name, _)| name), sample_count = 10)]
fn adversarial(bencher: Bencher<'_, '_>, name: &str) {
    let unit = texts::adversarial().into_iter().find(|(other, _)| *other == name);
    scan(bencher, &texts::fill(&unit.map_or_else(String::new, |(_, unit)| unit), 256 << 10));
}

#[divan::bench]
fn ready() -> Detector {
    Detector::new()
}
