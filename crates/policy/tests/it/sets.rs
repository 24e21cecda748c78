//! Policies that must be accepted, and poisoned ones that must be refused.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;
use wardkeep_policy::sanitise::{Sanitised, sanitise};

/// How much of `subtle.jsonl` is refused.
const LEAST_SUBTLE: usize = 6;

struct Row {
    id: String,
    lang: String,
    text: String,
}

fn rows(name: &str) -> Vec<Row> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    let text = fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| {
            let row: Value = serde_json::from_str(line).unwrap();
            let member = |name: &str| row[name].as_str().unwrap().to_owned();
            Row { id: member("id"), lang: member("lang"), text: member("text") }
        })
        .collect()
}

fn wrong(name: &str, is_wrong: impl Fn(&Sanitised) -> bool) -> Vec<String> {
    rows(name)
        .iter()
        .filter_map(|row| {
            let sanitised = sanitise(&row.text);
            is_wrong(&sanitised).then(|| {
                let told: Vec<String> = sanitised
                    .suspicions
                    .iter()
                    .map(|one| {
                        format!("{}:{} {} {:.2}", one.line, one.column, one.rule, one.weight)
                    })
                    .collect();
                format!("{} {}", row.id, told.join("; "))
            })
        })
        .collect()
}

#[test]
fn policies_of_honest_owners_are_accepted() {
    let wrong = wrong("accepted.jsonl", |sanitised| !sanitised.suspicions.is_empty());
    assert!(wrong.is_empty(), "{} refused:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn poisoned_policies_are_refused() {
    let wrong = wrong("poisoned.jsonl", |sanitised| sanitised.suspicions.is_empty());
    assert!(wrong.is_empty(), "{} accepted:\n{}", wrong.len(), wrong.join("\n"));
}

/// Poison that no rule was written for: what the rules are worth against words they do not know.
/// It only may get better. What really keeps poison out is that the owner reads and signs.
#[test]
fn unseen_poison_is_refused_in_part() {
    let all = rows("subtle.jsonl").len();
    let missed = wrong("subtle.jsonl", |sanitised| sanitised.suspicions.is_empty());
    println!("{} of {all} refused; accepted:\n{}", all - missed.len(), missed.join("\n"));
    assert!(all - missed.len() >= LEAST_SUBTLE, "{}", missed.join("\n"));
}

#[test]
fn the_sets_are_large_and_in_twelve_languages() {
    for name in ["accepted.jsonl", "poisoned.jsonl"] {
        let rows = rows(name);
        assert!(rows.len() >= 60, "{name}: {}", rows.len());
        let mut languages: BTreeMap<&str, usize> = BTreeMap::new();
        for row in &rows {
            *languages.entry(&row.lang).or_default() += 1;
        }
        assert_eq!(languages.len(), 12, "{name}");
        assert!(languages.values().all(|count| *count >= 2), "{name}: {languages:?}");
        let most = rows.iter().map(|row| row.text.chars().count()).max().unwrap();
        assert!(most <= 4096);
    }
}
