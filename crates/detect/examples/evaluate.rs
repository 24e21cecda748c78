//! Measures the detector on labelled texts: `evaluate -- DIR [--misses N] [--only SOURCE]`.
//!
//! Reads every `*.jsonl` and `*.jsonl.gz` of the folder; a row has `text`, `label` (`benign` or
//! anything else), and may have `source`, `channel`, `lang` and `cat`. Prints by file and by source,
//! channel and language: rows, recall, recall of blocks, false positives, ROC AUC, recall at 1 %
//! and 0.1 % false positives.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a program that prints a table")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;
use wardkeep_detect::finding::{Channel, Verdict};
use wardkeep_detect::scan::Detector;

struct Row {
    attack: bool,
    verdict: Verdict,
    score: f32,
}

#[derive(Default)]
struct Group {
    rows: Vec<Row>,
}

fn channel(name: &str) -> Channel {
    match name {
        "tool_output" => Channel::ToolOutput,
        "document" => Channel::Document,
        "memory" => Channel::Memory,
        "policy" => Channel::Policy,
        "skill" => Channel::Skill,
        "model_output" => Channel::ModelOutput,
        _ => Channel::User,
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(folder) = arguments.first() else {
        println!("evaluate -- DIR [--misses N] [--only SOURCE]");
        return;
    };
    let option = |name: &str| {
        arguments.iter().position(|one| one == name).and_then(|at| arguments.get(at + 1)).cloned()
    };
    let misses: usize = option("--misses").and_then(|count| count.parse().ok()).unwrap_or(0);
    let only = option("--only");
    let started = Instant::now();
    let detector = Detector::new();
    println!("ready after {:?}", started.elapsed());
    let Ok(entries) = fs::read_dir(folder) else {
        println!("no folder {folder}: skipped");
        return;
    };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.ends_with(".jsonl") || name.ends_with(".jsonl.gz") {
            file(&detector, &path, &name, misses, only.as_deref());
        }
    }
}

fn file(detector: &Detector, path: &Path, name: &str, misses: usize, only: Option<&str>) {
    let open = File::open(path).unwrap();
    let reader: Box<dyn Read> = if name.ends_with(".gz") {
        Box::new(flate2::read::GzDecoder::new(open))
    } else {
        Box::new(open)
    };
    let mut groups: BTreeMap<(u8, String), Group> = BTreeMap::new();
    let mut bytes = 0;
    let mut spent = Duration::ZERO;
    let mut shown: BTreeMap<String, usize> = BTreeMap::new();
    for line in BufReader::new(reader).lines() {
        let row: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let field = |name: &str| row[name].as_str().unwrap_or("-").to_owned();
        let (text, source) = (field("text"), field("source"));
        if only.is_some_and(|only| !source.contains(only)) {
            continue;
        }
        let label = field("label");
        let attack = label != "benign" && label != "clean_output";
        let began = Instant::now();
        let scan = detector.scan(&text, channel(&field("channel")));
        spent += began.elapsed();
        bytes += text.len();
        let wrong = attack != (scan.verdict != Verdict::Clean);
        let count = shown.entry(format!("{source} {attack}")).or_default();
        if wrong && *count < misses {
            *count += 1;
            let kind = if attack { "MISS" } else { "ALARM" };
            let rules: Vec<String> = scan
                .findings
                .iter()
                .map(|one| {
                    format!(
                        "{}={:.2}@{:?}",
                        one.rule,
                        one.weight,
                        text.get(one.span.start..one.span.end)
                    )
                })
                .collect();
            let head: String = text.chars().take(260).collect();
            println!("{kind} {source} {:.2} {head:?} {rules:?}", scan.score);
        }
        let kind = if attack { "attack" } else { "benign" };
        let keys = [
            (0, format!("all {kind}s").replace(" attacks", "").replace(" benigns", "")),
            (1, format!("channel {}", field("channel"))),
            (2, format!("label {label}")),
            (3, format!("lang {}", field("lang"))),
            (4, format!("source {source}")),
        ];
        for key in keys {
            let row = Row { attack, verdict: scan.verdict, score: scan.score };
            groups.entry(key).or_default().rows.push(row);
        }
    }
    let rate = bytes as f64 / 1e6 / spent.as_secs_f64().max(1e-9);
    println!("\n{name}: {bytes} bytes in {spent:?}, {rate:.0} MB/s");
    println!("| group | attacks | recall | block | benign | FPR | AUC | R@1% | R@0.1% |");
    println!("|---|---|---|---|---|---|---|---|---|");
    for ((_, name), group) in &groups {
        println!("| {name} | {} |", group.figures());
    }
}

impl Group {
    fn figures(&self) -> String {
        let attacks: Vec<&Row> = self.rows.iter().filter(|row| row.attack).collect();
        let benign: Vec<&Row> = self.rows.iter().filter(|row| !row.attack).collect();
        let share = |rows: &[&Row], least: Verdict| {
            if rows.is_empty() {
                return "-".to_owned();
            }
            let hit = rows.iter().filter(|row| row.verdict >= least).count();
            format!("{:.3}", hit as f64 / rows.len() as f64)
        };
        let both = !attacks.is_empty() && !benign.is_empty();
        let at = |rate: f64| {
            if !both {
                return "-".to_owned();
            }
            let mut scores: Vec<f32> = benign.iter().map(|row| row.score).collect();
            scores.sort_by(|a, b| b.total_cmp(a));
            // The lowest threshold that lets no more than this many benign rows through.
            let allowed = (rate * scores.len() as f64).floor();
            let bar = scores.iter().copied().enumerate().find(|(at, _)| *at as f64 >= allowed);
            let bar = bar.map_or(0.0, |(_, score)| score);
            let hit = attacks.iter().filter(|row| row.score > bar).count();
            format!("{:.3}", hit as f64 / attacks.len() as f64)
        };
        let auc = if both { format!("{:.3}", auc(&self.rows)) } else { "-".to_owned() };
        format!(
            "{} | {} | {} | {} | {} | {auc} | {} | {}",
            attacks.len(),
            share(&attacks, Verdict::Suspicious),
            share(&attacks, Verdict::Block),
            benign.len(),
            share(&benign, Verdict::Suspicious),
            at(0.01),
            at(0.001)
        )
    }
}

/// By ranks; equal scores share theirs.
fn auc(rows: &[Row]) -> f64 {
    let mut sorted: Vec<(f32, bool)> = rows.iter().map(|row| (row.score, row.attack)).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut at, mut sum) = (0, 0.0);
    while at < sorted.len() {
        let mut end = at;
        while end < sorted.len() && sorted[end].0 == sorted[at].0 {
            end += 1;
        }
        let rank = (at + end + 1) as f64 / 2.0;
        sum += rank * sorted[at..end].iter().filter(|one| one.1).count() as f64;
        at = end;
    }
    let attacks = rows.iter().filter(|row| row.attack).count() as f64;
    let benign = rows.len() as f64 - attacks;
    (sum - attacks * (attacks + 1.0) / 2.0) / (attacks * benign)
}
