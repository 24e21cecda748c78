//! Texts made to be slow: more text takes no more than about as much more time.

use std::hint::black_box;
use std::time::Duration;

use wardkeep_detect::finding::Channel;
use wardkeep_detect::scan::Detector;
use wardkeep_evidence::hash::RecordId;
use wardkeep_guard::conversation::Conversation;
use wardkeep_guard::overlap::{Sketch, Sketches};
use wardkeep_guard::taint::Taint;

use crate::processor;

const KEY: [u8; 32] = [3; 32];

/// Time on the processor: other work on the machine only ever adds.
fn time(mut run: impl FnMut()) -> Duration {
    let began = processor::time();
    run();
    processor::time() - began
}

/// So far apart that what grows with the square of the text takes 256 times as long, and what only leaves a cache
/// nowhere near [`SLOWER`].
const SMALL: usize = 32 << 10;
const MORE: usize = 16;
const SLOWER: f64 = 40.0;

fn is_linear(name: &str, run: impl Fn(usize)) -> Result<(), String> {
    let [small, large] = [SMALL, MORE * SMALL];
    let mut best = [small, large].map(|size| time(|| run(size)));
    for _ in 0..4 {
        if best[1] < best[0].mul_f64(SLOWER) {
            return Ok(());
        }
        best[0] = best[0].min(time(|| run(small)));
        best[1] = best[1].min(time(|| run(large)));
    }
    Err(format!("{name}: {best:?}"))
}

/// Units that make words, lines, hits and pieces meet in awkward ways.
const UNITS: [&str; 16] = [
    "The harbour was quiet in the early morning, and the fishermen had already left for the northern banks. ",
    "a ",
    "a",
    "\n",
    "a\n",
    "清晨的港口十分安静",
    "\u{fdfa}",
    "e\u{301}\u{302}\u{303}",
    "\u{301}",
    "\u{200b}",
    "https://x.example/a/b/c/d/e/f ",
    "/a/b/c/d.rs\n",
    "use a::b;\n",
    "error: failed to push some refs to ",
    "x=(y);{z}[w]<v>",
    "aGVsbG8gd29ybGQsIHRoaXMgaXMgYSBsb25nIHRleHQgaW4gYmFzZTY0Lg== ",
];

fn fill(unit: &str, size: usize) -> String {
    unit.repeat(size / unit.len())
}

#[test]
fn sketches_take_linear_time() {
    let slow: Vec<String> = UNITS
        .iter()
        .filter_map(|unit| {
            is_linear(unit, |size| {
                black_box(Sketch::of(&fill(unit, size), &KEY));
            })
            .err()
        })
        .collect();
    assert!(slow.is_empty(), "\n{}", slow.join("\n"));
}

#[test]
fn overlaps_take_linear_time_even_where_everything_repeats() {
    let mut seen = Sketches::new(&KEY);
    // Many records with the same words: what they share is looked up once.
    for at in 0..200 {
        let sketch =
            Sketch::of(&format!("{} {at}", UNITS.map(|unit| fill(unit, 400)).join(" \n")), &KEY);
        seen.add(RecordId([at; 32]), Taint::WEB_DERIVED, &sketch);
    }
    let slow: Vec<String> = UNITS
        .iter()
        .filter_map(|unit| {
            is_linear(unit, |size| {
                black_box(seen.overlaps(&fill(unit, size)));
            })
            .err()
        })
        .collect();
    assert!(slow.is_empty(), "\n{}", slow.join("\n"));
}

#[test]
fn a_message_costs_no_more_the_longer_it_is() {
    let detector = Detector::new();
    let scan = detector.scan("hello", Channel::User);
    let cost = |unit: &str, size: usize| {
        let text = fill(unit, size);
        let mut conversation = Conversation::new();
        conversation.receive(0, &text, &scan, &detector);
        (0..3)
            .map(|at| time(|| drop(black_box(conversation.receive(at, &text, &scan, &detector)))))
            .min()
            .unwrap()
    };
    // White space at the ends is passed over, however much there is.
    let units = UNITS.into_iter().filter(|unit| !unit.trim().is_empty());
    for unit in units.chain(["your instructions ", "you were given the exact rules. "]) {
        let [mut small, mut large] = [8 << 10, 1 << 20].map(|size| cost(unit, size));
        for _ in 0..5 {
            if large < small * 3 {
                break;
            }
            small = small.max(cost(unit, 8 << 10));
            large = large.min(cost(unit, 1 << 20));
        }
        assert!(large < small * 3, "{unit:?}: {small:?} and {large:?}");
    }
}

#[test]
#[ignore = "prints figures: run with --release --nocapture"]
fn figures() {
    let english = fill(UNITS[0], 10_240);
    let sketch = Sketch::of(&english, &KEY);
    let mut seen = Sketches::new(&KEY);
    let words: Vec<String> = (0..40_000).map(|at| format!("w{}", at * 7919 % 65_521)).collect();
    for (at, text) in (0..).zip(words.chunks(1700)) {
        seen.add(RecordId([at; 32]), Taint::WEB_DERIVED, &Sketch::of(&text.join(" "), &KEY));
    }
    let text = words[..1700].join(" ");
    let large = words.join(" ");
    let best = |run: &mut dyn FnMut()| (0..20).map(|_| time(&mut *run)).min().unwrap();
    let one = Sketch::of(&text, &KEY);
    eprintln!(
        "{} bytes: sketch {} bytes, in Base64 {}",
        text.len(),
        one.to_bytes().len(),
        one.to_base64().len()
    );
    eprintln!("repeated text, {} bytes: sketch {} bytes", english.len(), sketch.to_bytes().len());
    eprintln!(
        "sketch of {} bytes: {:?}",
        text.len(),
        best(&mut || drop(black_box(Sketch::of(&text, &KEY))))
    );
    eprintln!(
        "sketch of {} bytes: {:?}",
        large.len(),
        best(&mut || drop(black_box(Sketch::of(&large, &KEY))))
    );
    let kilobyte = &english[..1024];
    eprintln!(
        "overlaps of 1 KB with {} hashes: {:?}",
        seen.len(),
        best(&mut || drop(black_box(seen.overlaps(kilobyte))))
    );
    eprintln!(
        "overlaps of {} bytes, all known: {:?}",
        text.len(),
        best(&mut || drop(black_box(seen.overlaps(&text))))
    );
    let detector = Detector::new();
    let scan = detector.scan(kilobyte, Channel::User);
    eprintln!(
        "scan of 1 KB: {:?}",
        best(&mut || drop(black_box(detector.scan(kilobyte, Channel::User))))
    );
    let mut conversation = Conversation::new();
    let mut at = 0;
    eprintln!(
        "receive of 1 KB beside a scan: {:?}",
        best(&mut || {
            at += 1;
            drop(black_box(conversation.receive(at, kilobyte, &scan, &detector)));
        })
    );
    let short = "Please add the umbrella to the list in todo.md.";
    let scan = detector.scan(short, Channel::User);
    let mut conversation = Conversation::new();
    eprintln!(
        "receive of {} bytes beside a scan: {:?}",
        short.len(),
        best(&mut || {
            at += 1;
            drop(black_box(conversation.receive(at, short, &scan, &detector)));
        })
    );
}
