//! The checks that need only one line, so that lines can be checked in parallel.

use super::pipeline::Chunk;
use crate::check::{Check, Class, Finding, Findings, Mode, Place};
use crate::entry::Entry;
use crate::hash::{BlobHash, EntryHash, RecordId};
use crate::json::{self, Value};
use crate::merkle::{self, TreeHash};
use crate::record::{Payload, Principal, Record, RecordType};

/// What is left of a record once its own checks are made.
#[derive(Debug, Clone, Copy)]
pub struct RecordLine {
    /// The line, from 1.
    pub line: u64,
    /// The id it claims.
    pub id: RecordId,
    /// Whether a record could be made of the line.
    pub usable: bool,
    /// Its type.
    pub kind: RecordType,
    /// Its principal.
    pub principal: Principal,
    /// How many parents it has.
    pub parents: usize,
    /// The blob it names, and the size it says that has.
    pub blob: Option<(BlobHash, u64)>,
    /// Whether it has `extensions`.
    pub extended: bool,
}

impl RecordLine {
    /// A line that no record could be made of.
    #[must_use]
    pub fn unusable(line: u64) -> Self {
        Self {
            line,
            id: RecordId::ZERO,
            usable: false,
            kind: RecordType::GuardDecision,
            principal: Principal::External,
            parents: 0,
            blob: None,
            extended: false,
        }
    }
}

/// What is left of an entry once its own checks are made.
#[derive(Debug, Clone, Copy)]
pub struct EntryLine {
    /// The line, from 1.
    pub line: u64,
    /// The position it claims.
    pub index: u64,
    /// The record it stands for.
    pub record: RecordId,
    /// The hash of the entry before, as it claims.
    pub previous: EntryHash,
    /// The hash it claims.
    pub hash: EntryHash,
    /// The hash it should have, where that differs.
    pub wrong_hash: Option<EntryHash>,
}

/// Checks one parsed record; its parents are appended to `parents`.
pub fn check_record_line(
    value: Value<'_>,
    line: u64,
    scratch: &mut Vec<u8>,
    parents: &mut Vec<RecordId>,
    report: &mut dyn FnMut(Check, &str, &str),
) -> RecordLine {
    let Some(record) = Record::from_value(value, report) else {
        return RecordLine::unusable(line);
    };
    let computed = record.compute_id(scratch);
    if computed != record.id {
        report(Check::RecordId, &computed.to_string(), &record.id.to_string());
    }
    parents.extend_from_slice(&record.parents);
    RecordLine {
        line,
        id: record.id,
        usable: true,
        kind: record.kind,
        principal: record.principal,
        parents: record.parents.len(),
        blob: match record.payload {
            Payload::Blob { hash, size, .. } => Some((hash, size)),
            Payload::Inline(_) => None,
        },
        extended: record.extensions.is_some(),
    }
}

/// Checks one parsed entry, and computes its leaf where `leaf` wants it.
pub fn check_entry_line(
    value: Value<'_>,
    line: u64,
    scratch: &mut Vec<u8>,
    leaf: Option<&mut TreeHash>,
    report: &mut dyn FnMut(Check, &str, &str),
) -> Option<EntryLine> {
    let entry = Entry::from_value(value, report)?;
    Some(EntryLine::check(&entry, line, scratch, leaf))
}

impl EntryLine {
    fn check(entry: &Entry, line: u64, scratch: &mut Vec<u8>, leaf: Option<&mut TreeHash>) -> Self {
        let computed = entry.compute_hash(scratch);
        if let Some(leaf) = leaf {
            *leaf = merkle::leaf_hash(scratch);
        }
        Self {
            line,
            index: entry.index,
            record: entry.record,
            previous: entry.previous,
            hash: entry.hash,
            wrong_hash: (computed != entry.hash).then_some(computed),
        }
    }
}

/// Findings of a chunk, each with the ordinal of its record or entry in the chunk; bounded, so
/// that a chunk of garbage does not cost more memory than the chunk.
#[derive(Debug, Default)]
pub(crate) struct Tagged {
    pub(crate) kept: Vec<(u64, Finding)>,
    pub(crate) dropped: Vec<(Class, u64)>,
}

impl Tagged {
    fn push(&mut self, mode: Mode, ordinal: u64, check: Check, finding: impl FnOnce() -> Finding) {
        if !check.applies(mode) {
        } else if self.kept.len() < crate::check::MAX_FINDINGS {
            self.kept.push((ordinal, finding()));
        } else {
            match self.dropped.iter_mut().find(|(class, _)| *class == check.class()) {
                Some((_, count)) => *count += 1,
                None => self.dropped.push((check.class(), 1)),
            }
        }
    }

    /// Hands the findings on; `base` is the position of the chunk's first record or entry.
    pub(crate) fn hand_on(self, mode: Mode, base: u64, findings: &mut Findings) {
        for (ordinal, mut finding) in self.kept {
            finding.place.index = Some(base + ordinal);
            findings.push(mode, finding);
        }
        for (class, count) in self.dropped {
            findings.count_dropped(class, count);
        }
    }
}

/// A chunk of `records.jsonl`.
#[derive(Debug, Default)]
pub(crate) struct RecordBatch {
    pub(crate) records: Vec<RecordLine>,
    pub(crate) parents: Vec<RecordId>,
    pub(crate) findings: Tagged,
}

impl RecordBatch {
    pub(crate) fn check(mode: Mode, file: &str, chunk: &Chunk) -> Self {
        let mut batch = Self::default();
        let mut scratch = Vec::with_capacity(1024);
        for (line, text) in chunk.lines() {
            let ordinal = batch.records.len() as u64;
            let Self { records, parents, findings } = &mut batch;
            let mut report = |check: Check, expected: &str, found: &str| {
                findings.push(mode, ordinal, check, || {
                    Finding::new(check, Place::line(file, line), expected, found)
                });
            };
            if is_blank(text) {
                report(Check::LineBlank, "a record", "an empty line");
                continue;
            }
            if is_padded(text) {
                report(Check::LinePadding, "a record and nothing else", "white space around it");
            }
            records.push(match json::parse(text) {
                Ok(value) => check_record_line(value, line, &mut scratch, parents, &mut report),
                Err(error) => {
                    report(Check::RecordJson, "a JSON object", &error.to_string());
                    RecordLine::unusable(line)
                }
            });
        }
        batch
    }
}

/// A chunk of `audit-log.jsonl`.
#[derive(Debug, Default)]
pub(crate) struct EntryBatch {
    pub(crate) entries: Vec<Option<EntryLine>>,
    pub(crate) leaves: Vec<TreeHash>,
    pub(crate) findings: Tagged,
}

impl EntryBatch {
    pub(crate) fn check(mode: Mode, file: &str, leaves: bool, chunk: &Chunk) -> Self {
        let mut batch = Self::default();
        let mut scratch = Vec::with_capacity(512);
        for (line, text) in chunk.lines() {
            let ordinal = batch.entries.len() as u64;
            let findings = &mut batch.findings;
            let mut report = |check: Check, expected: &str, found: &str| {
                findings.push(mode, ordinal, check, || {
                    Finding::new(check, Place::line(file, line), expected, found)
                });
            };
            if is_blank(text) {
                report(Check::LineBlank, "an entry", "an empty line");
                continue;
            }
            if is_padded(text) {
                report(Check::LinePadding, "an entry and nothing else", "white space around it");
            }
            let mut leaf = merkle::empty_root();
            let wanted = leaves.then_some(&mut leaf);
            let entry = match Entry::from_usual_line(text) {
                Some(entry) => Some(EntryLine::check(&entry, line, &mut scratch, wanted)),
                None => match json::parse(text) {
                    Ok(value) => check_entry_line(value, line, &mut scratch, wanted, &mut report),
                    Err(error) => {
                        report(Check::EntryJson, "a JSON object", &error.to_string());
                        None
                    }
                },
            };
            if leaves && entry.is_some() {
                batch.leaves.push(leaf);
            }
            batch.entries.push(entry);
        }
        batch
    }
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}

pub(crate) fn is_padded(line: &[u8]) -> bool {
    [line.first(), line.last()].into_iter().flatten().any(u8::is_ascii_whitespace)
}
