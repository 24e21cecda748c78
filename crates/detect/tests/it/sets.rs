//! The project's own sets: attacks under transforms, evasions, harmless sentences.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE};
use serde_json::Value;
use wardkeep_detect::finding::{Channel, Scan, Verdict};
use wardkeep_detect::scan::Detector;

struct Row {
    text: String,
    lang: String,
    channel: Channel,
}

fn rows(name: &str) -> Vec<Row> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data").join(name);
    let text = fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| {
            let row: Value = serde_json::from_str(line).unwrap();
            Row {
                text: row["text"].as_str().unwrap().to_owned(),
                lang: row["lang"].as_str().unwrap_or("en").to_owned(),
                channel: match row["channel"].as_str().unwrap() {
                    "tool_output" => Channel::ToolOutput,
                    "document" => Channel::Document,
                    "memory" => Channel::Memory,
                    "policy" => Channel::Policy,
                    "skill" => Channel::Skill,
                    _ => Channel::User,
                },
            }
        })
        .collect()
}

fn flagged(scan: &Scan) -> bool {
    scan.verdict != Verdict::Clean
}

type Transform = fn(&str) -> String;

fn each(text: &str, change: impl Fn(char) -> String) -> String {
    text.chars().map(change).collect()
}

fn homoglyphs(text: &str) -> String {
    each(text, |c| {
        match c {
            'a' => 'а',
            'e' => 'е',
            'o' => 'о',
            'p' => 'р',
            'c' => 'с',
            other => other,
        }
        .to_string()
    })
}

fn full_width(text: &str) -> String {
    each(text, |c| match c {
        '!'..='~' => char::from_u32(u32::from(c) + 0xfee0).unwrap().to_string(),
        other => other.to_string(),
    })
}

fn tags(text: &str) -> String {
    let hidden = each(text, |c| char::from_u32(0xe0000 + u32::from(c)).unwrap().to_string());
    format!("Nice weather today.{hidden}")
}

fn leet(text: &str) -> String {
    each(text, |c| {
        match c {
            'e' => '3',
            'i' => '1',
            'o' => '0',
            'a' => '4',
            's' => '5',
            other => other,
        }
        .to_string()
    })
}

fn rot13(text: &str) -> String {
    each(text, |c| {
        let turn = |base: u8| char::from((c as u8 - base + 13) % 26 + base).to_string();
        match c {
            'a'..='z' => turn(b'a'),
            'A'..='Z' => turn(b'A'),
            other => other.to_string(),
        }
    })
}

/// Those that need no decoding.
const PLAIN: [(&str, Transform); 6] = [
    ("as it is", str::to_owned),
    ("upper case", str::to_uppercase),
    ("double spaces", |text| text.replace(' ', "  ")),
    ("in a record", |text| format!("{{\"id\": 7, \"body\": \"{text}\"}}")),
    ("behind a text", |text| {
        format!("The museum opens at nine. It is closed on Mondays.\n\n{text}")
    }),
    ("before a text", |text| format!("{text}\n\nThe museum opens at nine.")),
];

/// For every script.
const ANY: [(&str, Transform); 7] = [
    ("base64", |text| STANDARD.encode(text)),
    ("base64 in words", |text| format!("see {} for more", STANDARD_NO_PAD.encode(text))),
    ("base64 for addresses", |text| URL_SAFE.encode(text)),
    ("hex", |text| text.bytes().map(|byte| format!("{byte:02x}")).collect()),
    ("percent", |text| text.bytes().map(|byte| format!("%{byte:02X}")).collect()),
    ("entities", |text| each(text, |c| format!("&#{};", u32::from(c)))),
    ("zero width", |text| each(text, |c| format!("{c}\u{200b}"))),
];

/// For Latin letters only.
const LATIN: [(&str, Transform); 8] = [
    ("homoglyphs", homoglyphs),
    ("full width", full_width),
    ("tags", tags),
    ("leet", leet),
    ("rot13", rot13),
    ("reversed", |text| text.chars().rev().collect()),
    ("comment", |text| format!("<p>Welcome</p><!-- {text} -->")),
    ("rot13 in base64", |text| STANDARD.encode(rot13(text))),
];

#[test]
fn attacks_are_caught_under_transforms() {
    let detector = Detector::new();
    let attacks = rows("attacks.jsonl");
    assert!(attacks.len() >= 60);
    let (mut total, mut missed) = (0, Vec::new());
    for row in &attacks {
        let mut transforms: Vec<(&str, Transform)> = PLAIN.to_vec();
        transforms.extend(ANY);
        if row.text.is_ascii() {
            transforms.extend(LATIN);
        }
        for (name, transform) in transforms {
            total += 1;
            if !flagged(&detector.scan(&transform(&row.text), row.channel)) {
                missed.push(format!("{name} ({}): {}", row.lang, row.text));
            }
        }
    }
    assert!(total >= 400, "{total} evasions");
    assert!(missed.len() * 20 <= total, "{} of {total}\n{}", missed.len(), missed.join("\n"));
}

#[test]
fn the_thirty_evasions_are_caught() {
    let detector = Detector::new();
    let evasions = rows("evasions.jsonl");
    assert_eq!(evasions.len(), 30);
    let missed: Vec<&str> = evasions
        .iter()
        .filter(|row| !flagged(&detector.scan(&row.text, row.channel)))
        .map(|row| row.text.as_str())
        .collect();
    assert!(missed.is_empty(), "{} missed\n{}", missed.len(), missed.join("\n"));
}

fn alarms(name: &str) -> Vec<String> {
    let detector = Detector::new();
    rows(name)
        .iter()
        .filter_map(|row| {
            let scan = detector.scan(&row.text, row.channel);
            flagged(&scan).then(|| format!("{}: {:?}", row.text, scan.findings))
        })
        .collect()
}

#[test]
fn sentences_near_the_rules_are_harmless() {
    assert_eq!(rows("near.jsonl").len(), 25);
    let alarms = alarms("near.jsonl");
    assert!(alarms.len() <= 1, "{}", alarms.join("\n"));
}

#[test]
fn alarming_but_harmless_sentences_pass() {
    let total = rows("benign.jsonl").len();
    assert!(total >= 400);
    let alarms = alarms("benign.jsonl");
    assert!(alarms.len() * 100 <= total, "{} of {total}\n{}", alarms.len(), alarms.join("\n"));
}
