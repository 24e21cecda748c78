//! The learned score: what ships is what the model card says, and any text can be scored.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use wardkeep_detect::finding::{Channel, Verdict};
use wardkeep_detect::scan::Detector;
use wardkeep_detect::score::{LEARNED, Model, SHIPPED, weights};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn card() -> String {
    fs::read_to_string(root().join("docs/model-card.md")).unwrap()
}

/// How many of a set's texts are flagged, as the card says it: attacks, then harmless ones.
fn flagged(path: &Path, attack: impl Fn(&Value) -> bool) -> [(usize, usize); 2] {
    let detector = Detector::new();
    let mut counts = [(0, 0); 2];
    for line in fs::read_to_string(path).unwrap().lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let channel = match row["channel"].as_str().unwrap() {
            "tool_output" => Channel::ToolOutput,
            "document" => Channel::Document,
            "memory" => Channel::Memory,
            "policy" => Channel::Policy,
            "skill" => Channel::Skill,
            _ => Channel::User,
        };
        let verdict = detector.scan(row["text"].as_str().unwrap(), channel).verdict;
        let count = &mut counts[usize::from(!attack(&row))];
        count.0 += usize::from(verdict != Verdict::Clean);
        count.1 += 1;
    }
    counts
}

#[test]
fn the_weights_that_ship_are_those_of_the_card() {
    assert_eq!(SHIPPED.len(), weights::LENGTH);
    assert!(SHIPPED.len() < 1 << 20);
    let digest: String = Sha256::digest(SHIPPED).iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(card().contains(&digest), "the card is about other weights than {digest}");
    assert!(Model::shipped().is_some());
}

#[test]
fn the_figures_of_the_card_are_those_of_the_weights() {
    let card = card();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
    for (name, attacks) in [
        ("attacks", true),
        ("evasions", true),
        ("near", false),
        ("benign", false),
        ("trigger", false),
        ("mentions", false),
    ] {
        let [attack, benign] = flagged(&data.join(format!("{name}.jsonl")), |_| attacks);
        let (hit, all) = if attacks { attack } else { benign };
        let line = format!("| `{name}` | {all} | {hit} |");
        assert!(card.contains(&line), "not in the card: {line}");
    }
    for batch in [
        "corpus/ash",
        "corpus/birch",
        "corpus/cedar",
        "corpus/elm",
        "generated/oak",
        "generated/pine",
    ] {
        let path = root().join(format!("data/{batch}.jsonl"));
        let batch = batch.split('/').next_back().unwrap();
        let [attack, benign] = flagged(&path, |row| row["label"] == "attack");
        let line =
            format!("| `{batch}` | {} | {} | {} | {} |", attack.1, attack.0, benign.1, benign.0);
        assert!(card.contains(&line), "not in the card: {line}");
    }
}

#[test]
fn damaged_weights_are_no_weights() {
    assert!(weights::Weights::read(&SHIPPED[1..]).is_none());
    assert!(weights::Weights::read(b"").is_none());
    let mut other = SHIPPED.to_vec();
    other[0] = b'x';
    assert!(weights::Weights::read(other.leak()).is_none());
    let mut odd = SHIPPED.to_vec();
    odd[8..12].copy_from_slice(&f32::NAN.to_le_bytes());
    assert!(weights::Weights::read(odd.leak()).is_none());
}

#[test]
fn what_is_written_is_read_again() {
    let weights = weights::Weights::read(SHIPPED).unwrap();
    assert_eq!(weights.write(), SHIPPED);
}

/// A text of the corpus that the score alone makes suspicious.
fn suspicious_by_score() -> (String, Channel) {
    let (with, without) = (Detector::new(), Detector::rules_only());
    ["ash", "birch", "cedar", "elm"]
        .iter()
        .flat_map(|batch| {
            let path = root().join(format!("data/corpus/{batch}.jsonl"));
            fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect::<Vec<_>>()
        })
        .filter_map(|line| {
            let row: Value = serde_json::from_str(&line).unwrap();
            let wanted = row["channel"] == "document" && row["label"] == "attack";
            wanted.then(|| row["text"].as_str().unwrap().to_owned())
        })
        .find(|text| {
            let scan = with.scan(text, Channel::Document);
            without.scan(text, Channel::Document).findings.is_empty()
                && scan.verdict == Verdict::Suspicious
                && scan.findings.len() == 1
        })
        .map(|text| (text, Channel::Document))
        .unwrap()
}

#[test]
fn the_score_names_the_place_it_found_wherever_it_stands() {
    let (text, channel) = suspicious_by_score();
    let detector = Detector::new();
    let filling =
        "The museum opens at nine and is closed on Mondays. Tickets are sold at the door. ";
    for before in [0, 50, 500] {
        let whole = format!("{}\n\n{text}\n\n{}", filling.repeat(before), filling.repeat(50));
        let scan = detector.scan(&whole, channel);
        let found = scan.findings.iter().find(|one| one.rule == LEARNED).unwrap();
        let place = filling.len() * before..filling.len() * before + text.len() + 2;
        assert!(found.span.start < place.end && place.start < found.span.end, "{found:?}");
        assert!(found.span.end - found.span.start < 2000, "{found:?}");
    }
}

#[test]
fn the_score_alone_blocks_nothing_and_leaves_policies_and_replies_alone() {
    let (text, _) = suspicious_by_score();
    let detector = Detector::new();
    assert_eq!(detector.scan(&text, Channel::Document).verdict, Verdict::Suspicious);
    for channel in [Channel::Policy, Channel::ModelOutput] {
        let scan = detector.scan(&text, channel);
        assert!(scan.findings.iter().all(|one| one.rule != LEARNED), "{scan:?}");
    }
}

proptest! {
    #[test]
    fn any_text_has_a_score_or_none(text in any::<String>(), bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let model = Model::shipped().unwrap();
        let lossy = String::from_utf8_lossy(&bytes);
        for text in [&text, &*lossy, &text.repeat(40)] {
            for kind in 0..weights::KINDS {
                if let Some(highest) = model.highest(text, kind) {
                    prop_assert!(highest.score.is_finite());
                    prop_assert!(highest.start <= highest.end && highest.end <= text.len());
                }
            }
        }
    }
}
