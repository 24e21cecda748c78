//! Scans a text of the benchmarks so many times, for `scripts/callgrind`: `scan-text NAME BYTES TIMES`. Without
//! a name it lists them; with `-` it repeats what it is given on standard input.

#![expect(clippy::print_stdout, reason = "a program that prints a list")]

use std::hint::black_box;

use wardkeep_detect::finding::Channel;
use wardkeep_detect::scan::Detector;

#[path = "../benches/scan/texts.rs"]
mod texts;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let ordinary = texts::ORDINARY.iter().map(|(name, unit)| (*name, (*unit).to_owned()));
    let mut units = ordinary.chain(texts::adversarial());
    let [name, size, times] = &arguments[..] else {
        units.for_each(|(name, _)| println!("{name}"));
        return;
    };
    let unit = if name == "-" {
        std::io::read_to_string(std::io::stdin()).unwrap_or_default()
    } else {
        units.find(|(known, _)| known == name).map(|(_, unit)| unit).unwrap_or_default()
    };
    let text = texts::fill(&unit, size.parse().unwrap_or(0));
    let detector = Detector::new();
    for _ in 0..times.parse().unwrap_or(0) {
        black_box(detector.scan(black_box(&text), Channel::ToolOutput));
    }
}
