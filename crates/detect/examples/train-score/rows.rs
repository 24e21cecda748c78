//! Labelled rows, and the features of each.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use serde_json::Value;
use wardkeep_detect::finding::Channel;
use wardkeep_detect::scan::Detector;
use wardkeep_detect::score::features::{self, Sink, WINDOW};
use wardkeep_detect::score::weights::BITS;
use wardkeep_detect::views::{Limits, views};

use crate::encode;

/// Where a row is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Written for the corpus of this repository.
    Corpus,
    /// Put together by a program from phrases of this repository.
    Generated,
    /// From elsewhere.
    Other,
}

/// A text with what is known about it.
pub(crate) struct Row {
    pub(crate) text: String,
    pub(crate) attack: bool,
    pub(crate) label: String,
    pub(crate) channel: Channel,
    pub(crate) source: String,
    /// Sources that share texts are left out together.
    pub(crate) family: String,
    /// What is left out together: a batch, or a family.
    pub(crate) fold: String,
    pub(crate) origin: Origin,
    pub(crate) encoded: bool,
    /// What the rules alone make of it.
    pub(crate) rules: f32,
    /// Left out of training: it is about encodings, which are not for the score to judge.
    pub(crate) untrained: bool,
    /// Buckets of all blocks of all readings, one behind the other.
    pub(crate) buckets: Vec<u32>,
    /// Where each block ends in them, and with how many of the blocks before it makes a window.
    pub(crate) blocks: Vec<(usize, usize)>,
    /// Blocks of the first reading.
    pub(crate) length: usize,
}

/// Rows of the repository in disguise, as many attacks as harmless ones for each, and those rows as they are.
pub(crate) fn disguised(rows: &[Row]) -> Vec<Row> {
    let detector = Detector::rules_only();
    let of = |attack: bool, origin: Origin| -> Vec<&Row> {
        let fit = |row: &&Row| row.attack == attack && row.origin == origin && !row.untrained;
        rows.iter().filter(fit).collect()
    };
    let mut out = Vec::new();
    let plain: (&str, encode::Disguise) = ("as they are", str::to_owned);
    for (at, (name, disguise)) in [plain].into_iter().chain(encode::DISGUISES).enumerate() {
        for attack in [true, false] {
            for origin in [Origin::Corpus, Origin::Generated] {
                let from = of(attack, origin);
                // Others for each disguise; all of them as they are.
                let numbers: Vec<usize> = if at == 0 {
                    (0..16 * EACH).collect()
                } else {
                    ((at - 1) * EACH..at * EACH).collect()
                };
                for row in numbers.iter().map(|number| from[number * 7919 % from.len()]) {
                    let text = disguise(&row.text);
                    let (buckets, blocks, length) = blocks(&text);
                    out.push(Row {
                        label: name.to_owned(),
                        source: row.source.clone(),
                        family: row.family.clone(),
                        fold: row.fold.clone(),
                        encoded: true,
                        rules: detector.scan(&text, row.channel).score,
                        buckets,
                        blocks,
                        length,
                        text,
                        ..*row
                    });
                }
            }
        }
    }
    out
}

/// Rows of each kind and origin in each disguise.
const EACH: usize = 60;

pub(crate) fn folder(path: &Path, origin: Origin) -> Vec<Row> {
    let mut paths: Vec<_> = fs::read_dir(path).unwrap().flatten().map(|one| one.path()).collect();
    paths.sort();
    let named = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        (name.ends_with(".jsonl") || name.ends_with(".jsonl.gz")) && !name.contains("licence")
    };
    paths.iter().filter(|path| named(path)).flat_map(|path| file(path, origin)).collect()
}

pub(crate) fn file(path: &Path, origin: Origin) -> Vec<Row> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let open = File::open(path).unwrap();
    let reader: Box<dyn Read> = if name.ends_with(".gz") {
        Box::new(flate2::read::GzDecoder::new(open))
    } else {
        Box::new(open)
    };
    let detector = Detector::rules_only();
    let encoded = name.starts_with("obfuscated");
    BufReader::new(reader)
        .lines()
        .map(|line| row(&serde_json::from_str(&line.unwrap()).unwrap(), origin, encoded, &detector))
        .collect()
}

fn row(value: &Value, origin: Origin, encoded: bool, detector: &Detector) -> Row {
    let field = |name: &str| value[name].as_str().unwrap_or("-").to_owned();
    let channel = match field("channel").as_str() {
        "tool_output" => Channel::ToolOutput,
        "document" => Channel::Document,
        "memory" => Channel::Memory,
        "policy" => Channel::Policy,
        "skill" => Channel::Skill,
        _ => Channel::User,
    };
    let own = origin != Origin::Other;
    let source = if own { field("batch") } else { field("source") };
    let family = source.split('_').next().unwrap_or_default().to_owned();
    let text = field("text");
    let (buckets, blocks, length) = blocks(&text);
    Row {
        attack: field("label") != "benign",
        label: if own { field("category") } else { field("label") },
        channel,
        fold: if own { family.clone() } else { group(&family).to_owned() },
        family,
        source,
        origin,
        encoded,
        untrained: own && matches!(&*field("category"), "evade" | "encoded"),
        rules: detector.scan(&text, channel).score,
        buckets,
        blocks,
        length,
        text,
    }
}

/// Families that are left out together: those that share texts, and some harmless ones with each.
fn group(family: &str) -> &'static str {
    match family {
        "inthewild" | "pyrit" | "garak" | "giskard" | "gptfuzz" | "self" | "docs" => "sources 1",
        "injecagent" | "awesome" => "sources 2",
        "bipia" | "code" => "sources 3",
        _ => "sources 4",
    }
}

/// Without texts that are there twice.
pub(crate) fn distinct(rows: &mut Vec<Row>) {
    let mut seen = BTreeSet::new();
    rows.retain(|row| seen.insert(row.text.clone()));
}

impl Row {
    /// The buckets of the window of so many blocks that ends with a block.
    pub(crate) fn window(&self, last: usize, blocks: usize) -> &[u32] {
        let first = last + 1 - blocks;
        let start = if first == 0 { 0 } else { self.blocks[first - 1].0 };
        &self.buckets[start..self.blocks[last].0]
    }
}

#[derive(Default)]
struct Blocks {
    buckets: Vec<u32>,
    blocks: Vec<(usize, usize)>,
    first: usize,
}

impl Sink for Blocks {
    fn feature(&mut self, hash: u32) {
        self.buckets.push(hash >> (32 - BITS));
    }

    fn block(&mut self, _: usize) {
        let before = (self.blocks.len() - self.first).min(WINDOW - 1);
        self.blocks.push((self.buckets.len(), before));
    }
}

fn blocks(text: &str) -> (Vec<u32>, Vec<(usize, usize)>, usize) {
    let mut blocks = Blocks::default();
    let mut length = None;
    for view in &views(text, &Limits::default()).views {
        blocks.first = blocks.blocks.len();
        features::walk(view.text(), &mut blocks);
        length = length.or(Some(blocks.blocks.len()));
    }
    (blocks.buckets, blocks.blocks, length.unwrap_or_default())
}
