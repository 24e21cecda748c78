//! Tables, and the thresholds.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use sha2::{Digest as _, Sha256};
use wardkeep_detect::finding::{Channel, Verdict};
use wardkeep_detect::scan::Detector;
use wardkeep_detect::score::weights::{KINDS, Weights};
use wardkeep_detect::score::{Highest, Model, kind_of, stretch};
use wardkeep_detect::views::{Limits, views};

use crate::rows::{Origin, Row};

/// What texts with alarming words may be flagged for by the score alone, at most.
const ALARMING: f64 = 0.02;
/// The same for all other harmless texts.
const ORDINARY: f64 = 0.004;
/// How much of the slope counts: the whole of it would ask so little of a short text that its few words decide.
const SLOPE: f32 = 0.5;

/// A row and its score by weights that were trained without its like.
pub(crate) struct Scored<'r> {
    pub(crate) row: &'r Row,
    pub(crate) score: f32,
}

/// What is measured.
#[derive(Clone, Copy)]
pub(crate) struct Sets<'r> {
    pub(crate) rows: &'r [Row],
    /// Rows in disguise, and the same as they are.
    pub(crate) disguised: &'r [Row],
    /// Rows that are never trained on.
    pub(crate) outside: &'r [Row],
}

/// How much higher the same share of harmless rows scores where they are longer, by kind: the slope through the highest
/// [`ALARMING`] of each length.
pub(crate) fn lengths(scored: &[Scored<'_>]) -> [f32; KINDS] {
    std::array::from_fn(|kind| {
        let mut bins: BTreeMap<u32, Vec<(f32, f32)>> = BTreeMap::new();
        for one in scored.iter().filter(|one| !one.row.attack) {
            if kind_of(one.row.channel) == Some(kind) && one.row.length > 0 {
                let bin = one.row.length.ilog2();
                bins.entry(bin).or_default().push((stretch(one.row.length), one.score));
            }
        }
        let points: Vec<(f32, f32)> = bins
            .into_values()
            .filter(|bin| bin.len() >= 150)
            .map(|mut bin| {
                bin.sort_by(|a, b| b.1.total_cmp(&a.1));
                let stretch = bin.iter().map(|one| one.0).sum::<f32>() / bin.len() as f32;
                (stretch, bin[(ALARMING * bin.len() as f64) as usize].1)
            })
            .collect();
        let count = points.len() as f32;
        let mean = |of: fn(&(f32, f32)) -> f32| points.iter().map(of).sum::<f32>() / count;
        let (x, y) = (mean(|one| one.0), mean(|one| one.1));
        let above: f32 = points.iter().map(|one| (one.0 - x) * (one.1 - y)).sum();
        let below: f32 = points.iter().map(|one| (one.0 - x).powi(2)).sum();
        if below > 0.0 { (SLOPE * above / below).max(0.0) } else { 0.0 }
    })
}

/// The lowest that flag no more of the harmless rows than may be.
pub(crate) fn thresholds(scored: &[Scored<'_>], length: [f32; KINDS]) -> [f32; KINDS] {
    std::array::from_fn(|kind| {
        let channels = [Channel::User, Channel::ToolOutput, Channel::Document];
        let channels = channels.into_iter().filter(|one| kind_of(*one) == Some(kind));
        let shares =
            [(Origin::Corpus, ALARMING), (Origin::Generated, ORDINARY), (Origin::Other, ORDINARY)];
        channels
            .flat_map(|channel| shares.map(|(origin, share)| (channel, origin, share)))
            .map(|(channel, origin, share)| {
                let mut scores: Vec<f32> = scored
                    .iter()
                    .filter(|one| !one.row.attack && one.row.origin == origin)
                    .filter(|one| one.row.channel == channel)
                    .map(|one| one.score - length[kind] * stretch(one.row.length))
                    .collect();
                scores.sort_by(|a, b| b.total_cmp(a));
                let allowed = (share * scores.len() as f64) as usize;
                scores.get(allowed).copied().unwrap_or(f32::MIN)
            })
            .fold(f32::MIN, f32::max)
    })
}

/// Rules, score and both for a row.
#[derive(Clone, Copy)]
struct Three {
    attack: bool,
    rules: f32,
    score: f32,
    both: f32,
}

/// A row by weights in eight bits, as they ship.
fn three(row: &Row, model: &Model) -> Three {
    let detector = Detector::rules_only().with_model(model.clone());
    let kind = kind_of(row.channel).unwrap_or_default();
    let score = views(&row.text, &Limits::default())
        .views
        .iter()
        .filter_map(|view| model.highest(view.text(), kind))
        .map(|highest| Highest { blocks: highest.blocks.max(row.length), ..highest })
        .map(|highest| model.distance(&highest, kind))
        .fold(-9.0, f32::max);
    let both = detector.scan(&row.text, row.channel).score;
    Three { attack: row.attack, rules: row.rules, score, both }
}

/// Each by the weights that were trained without it.
fn without<'r>(rows: &'r [Row], models: &BTreeMap<&str, Model>) -> Vec<(&'r Row, Three)> {
    rows.iter().filter_map(|row| Some((row, three(row, models.get(&*row.fold)?)))).collect()
}

const HEAD: &str = "| rows | attacks | benign | rules: recall | false alarms | AUC | at 1 % | score: AUC | at 1 % | both: recall | false alarms | AUC | at 1 % |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n";

fn line(name: &str, all: &[Three]) -> String {
    let attacks: Vec<&Three> = all.iter().filter(|one| one.attack).collect();
    let benign: Vec<&Three> = all.iter().filter(|one| !one.attack).collect();
    let share = |rows: &[&Three], of: fn(&Three) -> f32| {
        if rows.is_empty() {
            return "–".to_owned();
        }
        let hit = rows.iter().filter(|one| of(one) > 0.499_999).count();
        format!("{:.3}", hit as f64 / rows.len() as f64)
    };
    let at = |of: fn(&Three) -> f32| {
        if attacks.is_empty() || benign.len() < 50 {
            return "–".to_owned();
        }
        let mut scores: Vec<f32> = benign.iter().map(|one| of(one)).collect();
        scores.sort_by(|a, b| b.total_cmp(a));
        let bar = scores[scores.len() / 100];
        let hit = attacks.iter().filter(|one| of(one) > bar).count();
        format!("{:.3}", hit as f64 / attacks.len() as f64)
    };
    let auc = |of: fn(&Three) -> f32| {
        if attacks.is_empty() || benign.is_empty() {
            return "–".to_owned();
        }
        format!("{:.3}", auc(all, of))
    };
    let rules: fn(&Three) -> f32 = |one| one.rules;
    let score: fn(&Three) -> f32 = |one| one.score;
    let both: fn(&Three) -> f32 = |one| one.both;
    format!(
        "| {name} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
        attacks.len(),
        benign.len(),
        share(&attacks, rules),
        share(&benign, rules),
        auc(rules),
        at(rules),
        auc(score),
        at(score),
        share(&attacks, both),
        share(&benign, both),
        auc(both),
        at(both),
    )
}

fn auc(rows: &[Three], of: fn(&Three) -> f32) -> f64 {
    let mut sorted: Vec<(f32, bool)> = rows.iter().map(|one| (of(one), one.attack)).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut at, mut sum) = (0, 0.0);
    while at < sorted.len() {
        let end = at + sorted[at..].iter().take_while(|one| one.0 == sorted[at].0).count();
        let rank = (at + end + 1) as f64 / 2.0;
        sum += rank * sorted[at..end].iter().filter(|one| one.1).count() as f64;
        at = end;
    }
    let attacks = rows.iter().filter(|row| row.attack).count() as f64;
    (sum - attacks * (attacks + 1.0) / 2.0) / (attacks * (rows.len() as f64 - attacks))
}

fn table<'a>(rows: impl Iterator<Item = (String, &'a Three)>) -> String {
    let mut groups: BTreeMap<String, Vec<Three>> = BTreeMap::new();
    for (name, one) in rows {
        groups.entry(name).or_default().push(*one);
    }
    groups.iter().fold(HEAD.to_owned(), |out, (name, all)| out + &line(name, all))
}

fn channel(row: &Row) -> &'static str {
    match row.channel {
        Channel::User => "user prompts",
        Channel::ToolOutput => "tool output",
        _ => "documents",
    }
}

/// How often texts are attacks, by what both say together: from, to, texts, share of attacks.
fn bins(rows: &[&Three]) -> Vec<(f32, f32, usize, f64)> {
    let bounds = [0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.01];
    let bin = |pair: &[f32]| {
        let within: Vec<_> =
            rows.iter().filter(|one| (pair[0]..pair[1]).contains(&one.both.max(0.0))).collect();
        let attacks = within.iter().filter(|one| one.attack).count();
        (pair[0], pair[1].min(1.0), within.len(), attacks as f64 / within.len().max(1) as f64)
    };
    bounds.windows(2).map(bin).collect()
}

fn calibration(rows: &[&Three]) -> String {
    let mut out = "| score of both | rows | attacks among them |\n|---|---|---|\n".to_owned();
    for (from, to, count, share) in bins(rows) {
        let _ = writeln!(out, "| {from:.2}–{to:.2} | {count} | {share:.3} |");
    }
    out
}

/// The same as a picture: one line for each set of rows.
fn plot(sets: &[(&str, &str, Vec<&Three>)]) -> String {
    let mut out = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 460 440\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"460\" height=\"440\" fill=\"white\"/>\n<path d=\"M50 20V390H440\" fill=\"none\" stroke=\"black\"/>\n<path d=\"M50 390L420 20\" stroke=\"silver\" stroke-dasharray=\"4\"/>\n<path d=\"M235 20V390\" stroke=\"silver\"/>\n<text x=\"238\" y=\"32\">suspicious</text>\n<text x=\"170\" y=\"425\">score of rules and model</text>\n<text x=\"16\" y=\"270\" transform=\"rotate(-90 16 270)\">share of attacks among the texts</text>\n",
    );
    for tick in 0..=5 {
        let (share, at) = (f64::from(tick) / 5.0, f64::from(tick) * 74.0);
        let _ = writeln!(out, "<text x=\"{:.0}\" y=\"406\">{share:.1}</text>", 42.0 + at);
        let _ = writeln!(out, "<text x=\"26\" y=\"{:.0}\">{share:.1}</text>", 394.0 - at);
    }
    for (row, (name, colour, rows)) in sets.iter().enumerate() {
        let points: Vec<String> = bins(rows)
            .iter()
            .filter(|bin| bin.2 >= 20)
            .map(|(from, to, _, share)| {
                let middle = f64::from(from + to) / 2.0;
                format!("{:.1},{:.1}", 50.0 + 370.0 * middle, 390.0 - 370.0 * share)
            })
            .collect();
        let _ = writeln!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>\n<text x=\"270\" y=\"{}\" fill=\"{colour}\">{name}</text>",
            points.join(" "),
            340 + 16 * row,
        );
    }
    out + "</svg>\n"
}

/// The tables by which settings are compared.
pub(crate) fn brief(sets: Sets<'_>, weights: &Weights, models: &BTreeMap<&str, Model>) -> String {
    let Sets { rows, disguised, outside } = sets;
    let model = Model::new(weights.clone());
    let other = outside.iter().map(|row| (row, three(row, &model)));
    let all: Vec<(&Row, Three)> = without(rows, models).into_iter().chain(other).collect();
    let hidden = without(disguised, models);
    let name = |row: &Row| {
        let set = if row.origin == Origin::Corpus { "corpus" } else { "sources" };
        format!("{}{set}, {}", if row.encoded { "encoded " } else { "" }, channel(row))
    };
    let mut out = format!("{:?} {:?}\n", weights.threshold, weights.length);
    out += &table(all.iter().map(|(row, one)| (name(row), one)));
    out += &table(
        all.iter()
            .filter(|one| one.0.origin == Origin::Other && !one.0.encoded)
            .map(|(_, one)| ("all sources".to_owned(), one)),
    );
    out +=
        &table(hidden.iter().flat_map(|(row, one)| in_disguise(row).map(move |name| (name, one))));
    out + &own_sets(&model)
}

/// In which lines a row in disguise is counted.
fn in_disguise(row: &Row) -> impl Iterator<Item = String> {
    let plain = row.label == "as they are";
    let all = (!plain).then(|| " all in disguise".to_owned());
    [if plain { format!(" {}", row.label) } else { row.label.clone() }].into_iter().chain(all)
}

/// What is flagged of the sets beside the crate; a test holds the card to it.
fn own_sets(model: &Model) -> String {
    let mut out = "| set | texts | flagged |\n|---|---|---|\n".to_owned();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
    let detector = Detector::rules_only().with_model(model.clone());
    for name in ["attacks", "evasions", "near", "benign", "trigger", "mentions"] {
        let rows = crate::rows::file(&data.join(format!("{name}.jsonl")), Origin::Other);
        let hit = rows.iter().filter(|row| flagged(&detector, row)).count();
        let _ = writeln!(out, "| `{name}` | {} | {hit} |", rows.len());
    }
    out
}

fn own_corpus(model: &Model, rows: &[Row]) -> String {
    let mut out =
        "| batch | attacks | flagged | harmless | flagged |\n|---|---|---|---|---|\n".to_owned();
    let detector = Detector::rules_only().with_model(model.clone());
    for batch in ["ash", "birch", "cedar", "elm", "oak", "pine"] {
        let all: Vec<&Row> = rows.iter().filter(|row| row.source == batch).collect();
        let count = |attack: bool| {
            let rows: Vec<_> = all.iter().filter(|row| row.attack == attack).collect();
            (rows.len(), rows.iter().filter(|row| flagged(&detector, row)).count())
        };
        let ((attacks, hit), (benign, alarms)) = (count(true), count(false));
        let _ = writeln!(out, "| `{batch}` | {attacks} | {hit} | {benign} | {alarms} |");
    }
    out
}

fn flagged(detector: &Detector, row: &Row) -> bool {
    detector.scan(&row.text, row.channel).verdict != Verdict::Clean
}

/// The model card.
pub(crate) fn card(
    sets: Sets<'_>,
    weights: &Weights,
    models: &BTreeMap<&str, Model>,
    more: bool,
) -> (String, String) {
    let Sets { rows, disguised, outside } = sets;
    let model = Model::new(weights.clone());
    let own = without(rows, models);
    let other: Vec<(&Row, Three)> = outside.iter().map(|row| (row, three(row, &model))).collect();
    let digest = Sha256::digest(weights.write());
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let corpus = rows.iter().filter(|row| row.origin == Origin::Corpus).count();
    let mut out = include_str!("card.md")
        .replace("{digest}", &hex)
        .replace("{bytes}", &weights.write().len().to_string())
        .replace("{corpus}", &corpus.to_string())
        .replace(
            "{generated}",
            &rows.iter().filter(|row| row.origin == Origin::Generated).count().to_string(),
        )
        .replace("{attacks}", &rows.iter().filter(|row| row.attack).count().to_string())
        .replace(
            "{more}",
            if more {
                ", the rest under MIT, Apache-2.0, BSD, CC-BY or CC0, not part of this repository"
            } else {
                ""
            },
        )
        .replace("{rows}", &rows.len().to_string())
        .replace(
            "{thresholds}",
            &format!("{:.3} and {:.3}", weights.threshold[0], weights.threshold[1]),
        )
        .replace("{lengths}", &format!("{:.2} and {:.2}", weights.length[0], weights.length[1]));
    let mut section = |title: &str, body: String| {
        let _ = write!(out, "\n## {title}\n{body}");
    };
    section("Own test sets, not trained on", own_sets(&model));
    section(
        "The corpus as trained on: what the weights that ship flag, not how well they do",
        own_corpus(&model, rows),
    );
    let by = |name: fn(&Row) -> String, corpus: bool| {
        table(
            own.iter()
                .filter(|one| (one.0.origin != Origin::Other) == corpus)
                .map(|(row, one)| (name(row), one)),
        )
    };
    section("Author batches, each left out of training", by(|row| row.source.clone(), true));
    section("The same by channel", by(|row| channel(row).to_owned(), true));
    section("The same by category", by(|row| row.label.clone(), true));
    if more {
        section(
            "Other sources that were trained on, each family left out",
            by(|row| row.source.clone(), false),
        );
        section("The same by channel", by(|row| channel(row).to_owned(), false));
    }
    section(
        "The same rows in disguise, each batch left out",
        table(
            without(disguised, models)
                .iter()
                .flat_map(|(row, one)| in_disguise(row).map(move |name| (name, one))),
        ),
    );
    if !outside.is_empty() {
        let plain = || other.iter().filter(|one| !one.0.encoded);
        section(
            "Sources that are never trained on",
            table(plain().map(|(row, one)| (row.source.clone(), one))),
        );
        // What is trained on, by weights without it, and what is not: everything outside the corpus.
        let all = || plain().chain(own.iter().filter(|one| one.0.origin == Origin::Other));
        section(
            "All sources outside the corpus, each family left out",
            table(all().flat_map(|(row, one)| {
                [("all".to_owned(), one), (channel(row).to_owned(), one), (row.label.clone(), one)]
            })),
        );
        section(
            "Encoded attacks and equally encoded harmless texts, never trained on",
            table(
                other
                    .iter()
                    .filter(|one| one.0.encoded)
                    .map(|(_, one)| ("encoded".to_owned(), one)),
            ),
        );
        section(
            "Calibration outside the corpus",
            calibration(&all().map(|one| &one.1).collect::<Vec<_>>()),
        );
    }
    let of = |origin: Origin| -> Vec<&Three> {
        own.iter().filter(|one| one.0.origin == origin).map(|one| &one.1).collect()
    };
    section("Calibration in the corpus, each batch left out", calibration(&of(Origin::Corpus)));
    section(
        "Calibration of generated rows, each batch left out",
        calibration(&of(Origin::Generated)),
    );
    let never: Vec<&Three> = other.iter().filter(|one| !one.0.encoded).map(|one| &one.1).collect();
    let picture = plot(&[
        ("corpus, batch left out", "firebrick", of(Origin::Corpus)),
        ("generated, batch left out", "darkorange", of(Origin::Generated)),
        ("sources, group left out", "seagreen", of(Origin::Other)),
        ("sources never trained on", "steelblue", never),
    ]);
    (out, picture)
}
