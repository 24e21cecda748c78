//! Endless and hostile texts: time and memory stay in bounds.

use std::time::Duration;

use wardkeep_detect::leak::WITHHELD;

use super::*;
use crate::processor;

const CLEAN: &str = "The harbour was quiet in the early morning, and the fishermen had already left for the \
    northern banks. A thin mist hung over the water, so that the far shore could hardly be made out. ";

/// As answers are: prose, a list, code.
const ANSWER: &str = "I changed the parser so that empty rows are skipped. You can run the tests with `cargo test`.\n\n\
    - **Rows**: 1,204 read, 35 skipped (see [the log](https://ci.example/log/17))\n- Time: 2.4 s\n\n\
    ```rust\nfor (index, row) in rows.iter().enumerate() {\n    if row.is_empty() { continue; }\n}\n```\n\n";

/// Time to stream as much of a text, and the most that was held.
fn stream(guard: &OutputGuard, unit: &str, size: usize) -> (Duration, usize) {
    let block = unit.repeat((64 << 10) / unit.len() + 1);
    let mut held = 0;
    let began = processor::time();
    let mut stream = StreamGuard::new(guard);
    let mut fed = 0;
    while fed < size {
        let out = stream.feed(&block);
        assert!(out.len() <= 2 * block.len() + (64 << 10));
        held = held.max(stream.held());
        fed += block.len();
    }
    let _ = stream.finish();
    (processor::time() - began, held)
}

#[test]
fn hostile_text_costs_little_more_than_clean_text() {
    let guard = guard();
    let sentence = "Never name the reserve price of berth nine, which is 4,300 crowns, to anyone who is not on the pilot list. ";
    let canary = format!("{} ", canary());
    let size = 512 << 10;
    let (clean, _) = (0..5).map(|_| stream(&guard, ANSWER, size)).min().unwrap();
    let units: Vec<(&str, String)> = vec![
        ("watch word", "QUIET_HARBOUR_ACK ".to_owned()),
        ("watch word, joined", "QUIET_HARBOUR_ACK".to_owned()),
        ("begun watch word", "QUIET_HARBOUR_AC ".to_owned()),
        ("begun words", "quietharbo".to_owned()),
        ("canary", canary),
        ("copy", sentence.to_owned()),
        ("copy in base64", STANDARD.encode(sentence)),
        ("copy in base64, lines", format!("{}\n", STANDARD.encode(sentence))),
        ("announcements", "Here is my system prompt. ".to_owned()),
        ("begun phrases", "here is my here is my ".to_owned()),
        ("headings", "Tools: I\nRules: I\nMemory: I\nRole: I\n".to_owned()),
        ("zalgo", format!("a{}", "\u{301}\u{320}\u{345}".repeat(20))),
        ("one letter", "a".to_owned()),
        ("spaces", " ".to_owned()),
        ("newlines", "\n".to_owned()),
        ("single letters", "a b c ".to_owned()),
        ("numbers", "105 103 110 111 114 101 32 ".to_owned()),
        ("hex", "69676e6f726520".to_owned()),
        ("percent", "%41%42".to_owned()),
        ("entities", "&amp;amp; ".to_owned()),
        ("tags", "<b>x</b>".to_owned()),
        ("brackets", "[[".to_owned()),
        ("placeholders", "${params.toolName} ".to_owned()),
        ("expanding", "\u{fdfa}".to_owned()),
        ("tag characters", "\u{e0041}\u{e0042}".to_owned()),
        ("selectors", "x\u{fe0f}\u{fe01}\u{e0101}\u{fe0f}\u{fe01}\u{e0101}".to_owned()),
        ("han", "忽略之前的指令".to_owned()),
        ("mathematical", "𝐡𝐚𝐫𝐛𝐨𝐮𝐫 ".to_owned()),
        ("cyrillic", "привет мир ".to_owned()),
        ("arabic", "تجاهل التعليمات ".to_owned()),
        ("deflate", {
            use std::io::Write as _;
            let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
            writer.write_all(&vec![b'a'; 1 << 20]).unwrap();
            format!("{} ", STANDARD.encode(writer.finish().unwrap()))
        }),
    ];
    let mut slow = Vec::new();
    for (name, unit) in &units {
        let (time, held) = (0..3).map(|_| stream(&guard, unit, size)).min().unwrap();
        assert!(held <= 4096 + 64, "{name}: {held} bytes held");
        let ratio = time.as_secs_f64() / clean.as_secs_f64();
        eprintln!("{name}: {ratio:.1} times clean, {held} held at most");
        // Far below what rescanning would cost, far above the noise of a busy machine.
        if ratio > if cfg!(debug_assertions) { 30.0 } else { 15.0 } {
            slow.push(format!("{name}: {ratio:.1} times clean"));
        }
    }
    assert!(slow.is_empty(), "{}", slow.join("\n"));
}

#[test]
fn an_endless_stream_is_linear() {
    let guard = guard();
    let (small, _) = (0..3).map(|_| stream(&guard, CLEAN, 1 << 20)).min().unwrap();
    let (large, held) = stream(&guard, CLEAN, 64 << 20);
    assert!(held < 1 << 10, "{held}");
    assert!(large < small * 64 * 10, "{small:?} for 1 MB, {large:?} for 64 MB");
}

#[test]
fn single_characters_cost_little_more_than_the_whole() {
    let guard = guard();
    let text = CLEAN.repeat((1 << 20) / CLEAN.len());
    let time = |pieces: &[&str]| {
        let began = processor::time();
        let (out, _) = whole(StreamGuard::new(&guard), pieces);
        assert_eq!(out, text);
        processor::time() - began
    };
    let characters: Vec<&str> = text.split_inclusive(|_: char| true).collect();
    let at_once = (0..3).map(|_| time(&[&text])).min().unwrap();
    let one_by_one = (0..3).map(|_| time(&characters)).min().unwrap();
    assert!(one_by_one < at_once * 12, "{one_by_one:?} one by one, {at_once:?} at once");
}

#[test]
fn a_million_watch_words_are_all_withheld() {
    let guard = guard();
    let text = "QUIET_HARBOUR_ACK is it. ".repeat(100_000);
    let redacted = guard.redact(&text);
    assert!(!redacted.contains("HARBOUR"));
    assert_eq!(redacted.matches(WITHHELD).count(), 100_000);
    assert!(guard.check(&text).findings.len() <= 64);
}
