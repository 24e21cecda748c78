//! Trains the learned score: `train-score -- DATA [--more FILE] [--write] [--evaluate DIR] [--card FILE]`.
//!
//! Reads `DATA/corpus/*.jsonl` and `DATA/generated/*.jsonl` (`data` of the repository) and, with `--more`, other rows that may be used for weights that ship.
//! One thread, no clock, one seed: the same rows give the same weights, bit for bit. Whole author batches and whole
//! sources are left out in turn for the figures and for the thresholds; the weights are then trained on all of them.
//! Without `--write` it says whether the weights in the repository are the same, and fails where they are not.
//! `--evaluate` reads rows that no weights are ever trained on. `--card` writes the model card, and a plot of the
//! calibration beside it.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "a program that prints tables"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use wardkeep_detect::score::{Model, SHIPPED};

mod encode;
mod figures;
mod learn;
mod rows;

use figures::{Scored, Sets};
use learn::{Settings, Trained};
use rows::{Origin, Row};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str| {
        arguments.iter().position(|one| one == name).and_then(|at| arguments.get(at + 1)).cloned()
    };
    let Some(data) = arguments.first() else {
        println!("train-score -- DATA [--more FILE] [--write] [--evaluate DIR] [--card FILE]");
        return;
    };
    let number =
        |name: &str, value: f32| option(name).and_then(|text| text.parse().ok()).unwrap_or(value);
    let settings = Settings {
        rate: number("--rate", Settings::default().rate),
        decay: number("--decay", Settings::default().decay),
        dropped: number("--dropped", Settings::default().dropped),
        epochs: number("--epochs", Settings::default().epochs as f32) as usize,
        more: number("--more-weight", Settings::default().more),
        made: number("--made-weight", Settings::default().made),
    };
    let mut rows = rows::folder(&Path::new(data).join("corpus"), Origin::Corpus);
    rows.extend(rows::folder(&Path::new(data).join("generated"), Origin::Generated));
    println!("{} rows of the repository", rows.len());
    if let Some(path) = option("--more") {
        rows.extend(rows::file(Path::new(&path), Origin::Other));
        println!("{} rows with {path}", rows.len());
    }
    rows::distinct(&mut rows);
    let outside = option("--evaluate").map_or_else(Vec::new, |folder| {
        let mut outside = rows::folder(Path::new(&folder), Origin::Other);
        let own: BTreeSet<&str> = rows.iter().map(|row| row.text.as_str()).collect();
        let sources: BTreeSet<&str> = rows.iter().map(|row| row.family.as_str()).collect();
        outside.retain(|row| {
            let other = !sources.contains(row.family.as_str()) || row.encoded;
            other && !own.contains(row.text.as_str())
        });
        outside
    });
    let disguised = rows::disguised(&rows);
    let (folds, scored) = left_out(&rows, &settings);
    let length = figures::lengths(&scored);
    let threshold = figures::thresholds(&scored, length);
    let trained =
        Trained::on(&rows.iter().filter(|row| !row.untrained).collect::<Vec<_>>(), &settings);
    let weights = trained.weights(threshold, length);
    let models: BTreeMap<&str, Model> = folds
        .iter()
        .map(|(fold, trained)| (*fold, Model::new(trained.weights(threshold, length))))
        .collect();
    let sets = Sets { rows: &rows, disguised: &disguised, outside: &outside };
    if arguments.iter().any(|one| one == "--brief") {
        println!("{}", figures::brief(sets, &weights, &models));
        return;
    }
    let (card, picture) = figures::card(sets, &weights, &models, option("--more").is_some());
    println!("{card}");
    if let Some(path) = option("--card") {
        fs::write(Path::new(&path).with_file_name("calibration.svg"), picture).unwrap();
        fs::write(path, card).unwrap();
    }
    let bytes = weights.write();
    if arguments.iter().any(|one| one == "--write") {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/score/weights.bin");
        fs::write(path, bytes).unwrap();
    } else if bytes == SHIPPED {
        println!("the weights are those that ship");
    } else {
        println!("the weights are NOT those that ship");
        std::process::exit(1);
    }
}

/// Weights trained without each author batch and each group of sources, and the rows of it scored by them.
fn left_out<'r>(
    rows: &'r [Row],
    settings: &Settings,
) -> (BTreeMap<&'r str, Trained>, Vec<Scored<'r>>) {
    let names: BTreeSet<&str> = rows.iter().map(|row| row.fold.as_str()).collect();
    let mut scored = Vec::new();
    let mut folds = BTreeMap::new();
    for fold in names {
        let others: Vec<&Row> =
            rows.iter().filter(|row| row.fold != fold && !row.untrained).collect();
        let trained = Trained::on(&others, settings);
        for row in rows.iter().filter(|row| row.fold == fold) {
            scored.push(Scored { row, score: trained.score(row) });
        }
        folds.insert(fold, trained);
    }
    (folds, scored)
}
