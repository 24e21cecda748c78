//! Compiles `rules/` into tables, so that a detector is ready at once.

#![expect(clippy::expect_used, clippy::panic, reason = "a build that cannot go on says why")]

use std::collections::BTreeMap;
use std::fmt::{Debug, Write as _};
use std::path::{Path, PathBuf};
use std::{env, fs};

use serde::Deserialize;

#[expect(dead_code, reason = "the library uses the rest")]
#[path = "src/bitmap.rs"]
mod bitmap;
#[expect(dead_code, reason = "the library uses the rest")]
#[path = "src/rules/compile.rs"]
mod compile;
#[expect(dead_code, reason = "the library uses the rest")]
#[path = "src/rules/finder.rs"]
mod finder;
#[path = "src/rules/frequency.rs"]
mod frequency;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    class: Vec<ClassEntry>,
    #[serde(default)]
    rule: Vec<RuleEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClassEntry {
    id: String,
    #[serde(default)]
    common: bool,
    words: Vec<String>,
    /// Words that count with a slip of the hand, too: a letter left out, or two swapped.
    #[serde(default)]
    slips: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleEntry {
    id: String,
    category: String,
    languages: Vec<String>,
    weight: f32,
    #[serde(default)]
    channels: BTreeMap<String, f32>,
    #[serde(default)]
    stance: Option<String>,
    #[serde(default)]
    canary: bool,
    #[serde(default)]
    at_least: Option<u16>,
    patterns: Vec<String>,
    explanation: String,
    positive: Vec<String>,
    negative: Vec<String>,
    /// The channel of the tests.
    #[serde(default)]
    #[expect(dead_code, reason = "read by the tests only")]
    test: Option<String>,
}

const CATEGORIES: [&str; 10] = [
    "SystemImpersonation",
    "IndirectInjection",
    "BehaviorManipulation",
    "FalseContextInjection",
    "EncodedPayload",
    "ExtractionAttempt",
    "ManyShotPriming",
    "FormatOverride",
    "SensitiveFileContent",
    "DataExfiltration",
];

/// Channels in the order of the weights, with the share of the weight that counts by default.
const CHANNELS: [(&str, f32); 7] = [
    ("user", 0.75),
    ("tool_output", 1.0),
    ("document", 1.0),
    ("memory", 1.0),
    ("policy", 1.0),
    ("skill", 0.9),
    ("model_output", 0.4),
];

fn main() {
    println!("cargo::rerun-if-changed=rules");
    println!("cargo::rerun-if-changed=src/bitmap.rs");
    println!("cargo::rerun-if-changed=src/rules/compile.rs");
    println!("cargo::rerun-if-changed=src/rules/frequency.rs");
    println!("cargo::rerun-if-changed=src/rules/finder.rs");
    let mut classes: BTreeMap<String, compile::Class> = BTreeMap::new();
    let mut rules: Vec<RuleEntry> = Vec::new();
    for path in files(Path::new("rules")) {
        let text = fs::read_to_string(&path).expect("a rule file that can be read");
        let file: File =
            toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for entry in file.class {
            let class = classes.entry(entry.id).or_default();
            class.common |= entry.common;
            class.words.extend(entry.words);
            class.words.extend(entry.slips.iter().flat_map(|word| slips(word)));
        }
        rules.extend(file.rule);
    }
    let mut patterns = Vec::new();
    for (id, rule) in (0u16..).zip(&rules) {
        check(rule);
        patterns.extend(rule.patterns.iter().map(|pattern| (id, pattern.clone())));
    }
    let tables = compile::compile(&classes, &patterns).unwrap_or_else(|error| panic!("{error}"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::write(out.join("tables.rs"), print(&tables, &rules, &classes))
        .expect("OUT_DIR is writable");
}

/// A word with one of its letters left out or swapped with the next; the outer ones stay.
fn slips(word: &str) -> Vec<String> {
    let letters: Vec<char> = word.chars().collect();
    let mut found = vec![word.to_owned()];
    for at in 1..letters.len().saturating_sub(1) {
        let mut less = letters.clone();
        less.remove(at);
        found.push(less.into_iter().collect());
        if at + 2 < letters.len() {
            let mut swapped = letters.clone();
            swapped.swap(at, at + 1);
            found.push(swapped.into_iter().collect());
        }
    }
    found
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("the rules are there") {
        let path = entry.expect("a readable entry").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn check(rule: &RuleEntry) {
    let id = &rule.id;
    assert!(CATEGORIES.contains(&rule.category.as_str()), "{id}: no such category");
    assert!((0.0..=1.0).contains(&rule.weight), "{id}: weight out of range");
    assert!(!rule.explanation.is_empty(), "{id}: no explanation");
    assert!(!rule.languages.is_empty(), "{id}: no languages");
    assert!(!rule.positive.is_empty() && !rule.negative.is_empty(), "{id}: no tests");
    for channel in rule.channels.keys() {
        assert!(CHANNELS.iter().any(|(name, _)| name == channel), "{id}: no channel {channel}");
    }
}

fn array<T: Debug>(out: &mut String, name: &str, of: &str, items: &[T]) {
    writeln!(out, "static {name}: [{of}; {}] = {items:?};", items.len()).expect("a string grows");
}

fn values(out: &mut String, name: &str, of: &str, items: impl Iterator<Item = String>) {
    let items: Vec<String> = items.collect();
    writeln!(out, "static {name}: [{of}; {}] = [{}];", items.len(), items.join(", "))
        .expect("a string grows");
}

fn print(
    tables: &compile::Tables,
    rules: &[RuleEntry],
    classes: &BTreeMap<String, compile::Class>,
) -> String {
    let mut out = String::new();
    array(&mut out, "LITERALS", "Literal", &tables.literals);
    array(&mut out, "CLASSES", "u16", &tables.classes);
    array(&mut out, "INDEX", "u32", &tables.index);
    array(&mut out, "USES", "Use", &tables.uses);
    let finder = &tables.finder;
    array(&mut out, "KINDS", "u8", &finder.kinds);
    array(&mut out, "HEADS", "u16", &finder.heads);
    array(&mut out, "ENTRIES", "Entry", &finder.entries);
    array(&mut out, "SPECIAL", "u8", &finder.special);
    array(&mut out, "BYTES", "u8", &finder.bytes);
    let stops = finder.stops.iter().map(|text| format!("Cow::Borrowed({text:?})"));
    values(&mut out, "STOPS", "Cow<'static, str>", stops);
    let grow = "a string grows";
    writeln!(out, "const PARTS: [usize; 2] = {:?};", finder.parts).expect(grow);
    writeln!(out, "const CROSSING: usize = {};", finder.crossing).expect(grow);
    writeln!(out, "const BLIND: bool = {};", finder.blind).expect(grow);
    writeln!(out, "const USUAL: bool = {};", finder.usual).expect(grow);
    writeln!(out, "const SIGNED: bool = {};", finder.signed).expect(grow);
    let backwards =
        tables.backwards.iter().map(|(word, flags)| format!("(Cow::Borrowed({word:?}), {flags})"));
    values(&mut out, "BACKWARDS", "(Cow<'static, str>, u16)", backwards);
    array(&mut out, "INITIALS", "u16", &tables.initials);
    writeln!(out, "const ELEMENTS: usize = {};", tables.elements).expect(grow);
    writeln!(out, "static RULES: [Rule; {}] = [", rules.len()).expect(grow);
    for rule in rules {
        let weights: Vec<f32> = CHANNELS
            .iter()
            .map(|(name, share)| rule.channels.get(*name).copied().unwrap_or(rule.weight * share))
            .collect();
        let stance = match rule.stance.as_deref() {
            None | Some("imperative") => "Imperative",
            Some("order") => "Order",
            Some("any") => "Any",
            Some("raw") => "Raw",
            Some(other) => panic!("{}: no stance {other}", rule.id),
        };
        writeln!(
            out,
            "Rule {{ id: Cow::Borrowed({:?}), category: Category::{}, weights: {weights:?}, \
             stance: Stance::{stance}, canary: {}, at_least: {}, \
             explanation: Cow::Borrowed({:?}) }},",
            rule.id,
            rule.category,
            rule.canary,
            rule.at_least.unwrap_or(1),
            rule.explanation
        )
        .expect(grow);
    }
    out.push_str("];\n");
    writeln!(out, "static WORDS: [(&str, bool, &[&str]); {}] = [", classes.len()).expect(grow);
    for (id, class) in classes {
        writeln!(out, "({id:?}, {}, &{:?}),", class.common, class.words).expect(grow);
    }
    out.push_str("];\n");
    out
}
