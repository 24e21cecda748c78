//! Verification of a journal: the chain, the seals, and how far each reaches.

mod resume;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use wardkeep_evidence::check::{Check, Finding, Findings, Mode, Place};
use wardkeep_evidence::hash::{BlobHash, EntryHash, RecordId};
use wardkeep_evidence::json::Value;
use wardkeep_evidence::merkle::{TreeHash, empty_root};
use wardkeep_evidence::record::{Principal, Record, RecordType};
use wardkeep_evidence::verify::{
    Chunk, EntryLine, Ids, MAX_LINE_BYTES, RecordLine, SealCheck, SealReport, Trust,
    check_entry_line, check_notes, check_record_line, each_chunk,
};

use self::resume::Mark;
pub use self::resume::{Scope, VERIFIED, Verified, verify_further};
use crate::files::{MAX_SEALS_BYTES, hash_range, open_plain, read_if_there};
use crate::journal::{
    Folder, Region, SegmentNumber, is_index, parse_value, recovery_regions, split_line,
};
use crate::sealer::{CHECKPOINTS, COSIGNED, LOG_PUBLIC};
use crate::store::{StoreError, StoreReader};

/// What was found in a journal.
#[derive(Debug, Clone, Default)]
pub struct JournalReport {
    /// The failed checks.
    pub findings: Findings,
    /// Number of segments.
    pub segments: u64,
    /// Number of records.
    pub records: u64,
    /// Hash of the last entry.
    pub head: Option<EntryHash>,
    /// Time of the first and last entry.
    pub span: Option<(String, String)>,
    /// Records by type.
    pub by_type: BTreeMap<RecordType, u64>,
    /// Records by principal.
    pub by_principal: BTreeMap<Principal, u64>,
    /// How far seals and witnesses reach; `None` if the log has no readable keys.
    pub seals: Option<SealReport>,
    /// What recovery records tell of, by kind.
    pub recoveries: BTreeMap<String, u64>,
    /// Bytes at the very end that are no entry: being written, or torn and not yet told of.
    pub open_tail: u64,
}

impl JournalReport {
    /// Whether every check passed.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.findings.is_empty()
    }
}

/// Verifies the journal and seals of a state directory.
///
/// # Errors
/// When the folder cannot be listed at all; everything else is a finding.
pub fn verify_store(
    store: &StoreReader,
    trust: &Trust,
    threads: usize,
    progress: &mut dyn FnMut(u64),
) -> Result<JournalReport, StoreError> {
    Ok(run(store, trust, threads, None, progress)?.report)
}

/// A pass over the journal and what it leaves for the next one.
struct Ran {
    report: JournalReport,
    marks: Vec<Mark>,
    skipped_heads: u64,
}

/// From where a pass goes on, and how it finds what came before.
struct Behind<'a> {
    mark: Mark,
    is_earlier: &'a mut dyn FnMut(&RecordId) -> bool,
}

fn run(
    store: &StoreReader,
    trust: &Trust,
    threads: usize,
    from: Option<Behind<'_>>,
    progress: &mut dyn FnMut(u64),
) -> Result<Ran, StoreError> {
    let mut findings = Findings::default();
    let mut seals = load_seals(store, trust, &mut findings);
    let mut skipped_heads = 0;
    let mut expected = SegmentNumber(1);
    let (mut position, mut last, mut is_earlier) = (0, EntryHash::ZERO, None);
    if let Some(Behind { mark, is_earlier: earlier }) = from {
        if let Some(seals) = &mut seals {
            skipped_heads = seals.resume(mark.frontier, &mut findings);
        }
        (position, last, expected) = (mark.entries, mark.head, mark.segment);
        is_earlier = Some(earlier);
    }
    let first = expected;
    let report = JournalReport { findings, records: position, ..JournalReport::default() };
    let mut pass = Pass {
        report,
        seals,
        ids: Ids::default(),
        is_earlier,
        position,
        last,
        segment: SegmentNumber(0),
        garbage: Vec::new(),
        blobs: HashMap::new(),
        marks: Vec::new(),
    };
    let segments = store.folder().segments()?;
    let newest = segments.last().copied();
    for segment in segments.into_iter().filter(|segment| *segment >= first) {
        while expected < segment {
            pass.segment_missing(expected);
            // A hostile name could claim four billion segments; one finding tells of the gap.
            if segment.0 - expected.0 > 100 {
                break;
            }
            expected = expected.next();
        }
        expected = segment.next();
        pass.read_segment(store.folder(), segment, Some(segment) == newest, threads, progress);
    }
    pass.account_garbage(store.folder());
    pass.check_blobs(&store.path().join("blobs"));
    let marks = std::mem::take(&mut pass.marks);
    let mut report = pass.finish();
    // The first record comes after the first seal. Both may have come since the seals were read.
    let unsealed = report.seals.as_ref().is_some_and(|seals| seals.seals == 0);
    if unsealed && report.records > 0 && is_empty(&store.path().join(CHECKPOINTS)) {
        let place = Place::file(CHECKPOINTS);
        let finding =
            Finding::new(Check::SealEpochMissing, place, "the seal of epoch 0", "no seals at all");
        report.findings.push(Mode::Strict, finding);
    }
    Ok(Ran { report, marks, skipped_heads })
}

fn load_seals(store: &StoreReader, trust: &Trust, findings: &mut Findings) -> Option<SealCheck> {
    let mut read = |name: &str| match read_if_there(&store.path().join(name), MAX_SEALS_BYTES) {
        Ok(bytes) => bytes,
        Err(error) => {
            let finding = Finding::new(
                Check::SealFormat,
                Place::file(name),
                "a readable file",
                error.to_string(),
            );
            findings.push(Mode::Strict, finding);
            Vec::new()
        }
    };
    let (checkpoints, cosigned) = (read(CHECKPOINTS), read(COSIGNED));
    let public = store.public().or(trust.log);
    let Some(public) = public else {
        if !checkpoints.is_empty() {
            let place = Place::file(LOG_PUBLIC);
            let finding =
                Finding::new(Check::SealFormat, place, "the log's public keys", "nothing readable");
            findings.push(Mode::Strict, finding);
        }
        return None;
    };
    Some(check_notes(&public, trust, &checkpoints, &cosigned, findings))
}

/// Whether a file is not there or empty.
fn is_empty(path: &Path) -> bool {
    std::fs::symlink_metadata(path).map_or(true, |metadata| metadata.len() == 0)
}

/// A line after its own checks.
enum Line {
    Entry(Box<Checked>),
    /// No entry: where in the chunk, and how long.
    Garbage {
        line: u64,
        offset: u64,
        length: u64,
    },
}

struct Checked {
    entry: EntryLine,
    leaf: TreeHash,
    record: RecordLine,
    parents: Vec<RecordId>,
    timestamp: String,
    recovery: Option<(Vec<Region>, Vec<String>)>,
    findings: Vec<Finding>,
    // Findings that one line too many had.
    dropped: u64,
}

struct Batch {
    lines: Vec<Line>,
    bytes: u64,
}

struct Pass<'a> {
    report: JournalReport,
    seals: Option<SealCheck>,
    ids: Ids,
    // Whether a record stands in the part that this pass does not read.
    is_earlier: Option<&'a mut dyn FnMut(&RecordId) -> bool>,
    position: u64,
    last: EntryHash,
    segment: SegmentNumber,
    garbage: Vec<Garbage>,
    blobs: HashMap<BlobHash, (u64, u64)>,
    // Where a later pass can go on.
    marks: Vec<Mark>,
}

/// Lines in a row that are no entries.
struct Garbage {
    segment: SegmentNumber,
    start: u64,
    last_start: u64,
    /// Behind the last line, without its newline.
    end: u64,
    line: u64,
    /// Length and hash by which a recovery record tells of it.
    told: Vec<(u64, [u8; 32])>,
}

const MAX_GARBAGE: usize = 100_000;
/// Most records that tell of the same garbage.
const MAX_TOLD: usize = 4;
/// Most findings of one line that are kept.
const MAX_LINE_FINDINGS: usize = 100;
/// Most kinds of recovery that are told apart.
const MAX_RECOVERIES: usize = 64;

impl Pass<'_> {
    fn push(&mut self, check: Check, place: Place, expected: &str, found: &str) {
        self.report.findings.push(Mode::Strict, Finding::new(check, place, expected, found));
    }

    fn place(&self, line: u64) -> Place {
        Place::line(format!("journal/{}", self.segment.file_name()), line).at(self.position)
    }

    fn segment_missing(&mut self, segment: SegmentNumber) {
        let place = Place::file(format!("journal/{}", segment.file_name()));
        self.push(Check::SegmentMissing, place, "a segment", "nothing");
    }

    fn read_segment(
        &mut self,
        folder: &Folder,
        segment: SegmentNumber,
        newest: bool,
        threads: usize,
        progress: &mut dyn FnMut(u64),
    ) {
        self.report.segments += 1;
        self.segment = segment;
        if let Some(seals) = &self.seals {
            let frontier = seals.frontier().clone();
            self.marks.push(Mark { segment, entries: self.position, head: self.last, frontier });
        }
        let name = format!("journal/{}", segment.file_name());
        let (mut file, _) = match folder.read_segment(segment) {
            Ok(opened) => opened,
            Err(error) => {
                let place = Place::file(name);
                self.push(Check::SegmentUnreadable, place, "a readable file", &error.to_string());
                return;
            }
        };
        let mut offset = 0;
        let ending = each_chunk(&mut file, threads, check_chunk, |batch| {
            for line in batch.lines {
                match line {
                    Line::Entry(checked) => self.take(*checked),
                    Line::Garbage { line, offset: at, length } => {
                        self.take_garbage(line, offset + at, length);
                    }
                }
            }
            offset += batch.bytes;
            progress(batch.bytes);
        });
        match ending {
            Err(error) => {
                let place = Place::file(name);
                self.push(Check::SegmentUnreadable, place, "readable bytes", &error.to_string());
            }
            Ok(ending) => {
                if let Some(line) = ending.too_long {
                    let expected = format!("lines of at most {MAX_LINE_BYTES} bytes");
                    let place = Place::line(name, line);
                    self.push(Check::LineTooLong, place, &expected, "a longer one; stopped here");
                }
                // A whole entry without its newline is not acknowledged, and neither is a torn one.
                if newest && ending.unterminated {
                    let open =
                        self.garbage.pop_if(|run| run.segment == segment && run.end == offset);
                    if let Some(mut run) = open {
                        self.report.open_tail = run.end - run.last_start;
                        if run.start < run.last_start {
                            run.end = run.last_start - 1;
                            self.garbage.push(run);
                        }
                    }
                }
            }
        }
    }

    fn take_garbage(&mut self, line: u64, offset: u64, length: u64) {
        let (segment, end) = (self.segment, offset + length);
        let room = self.garbage.len() < MAX_GARBAGE;
        match self.garbage.last_mut() {
            Some(run) if run.segment == segment && run.end + 1 == offset => {
                (run.last_start, run.end) = (offset, end);
            }
            _ if room => {
                let (start, last_start, told) = (offset, offset, Vec::new());
                self.garbage.push(Garbage { segment, start, last_start, end, line, told });
            }
            _ => {
                self.report.findings.count_dropped(wardkeep_evidence::check::Class::Integrity, 1);
            }
        }
    }

    /// Takes what a recovery record says of garbage before it; its hash is compared later.
    fn take_region(&mut self, region: &Region) {
        let place = (region.segment, region.offset);
        let found = self.garbage.binary_search_by_key(&place, |run| (run.segment, run.start));
        let run = found.ok().and_then(|at| self.garbage.get_mut(at));
        let exact = |run: &&mut Garbage| {
            let length = run.end - run.start;
            region.length == length || region.length == length + 1
        };
        if let Some(run) = run.filter(exact).filter(|run| run.told.len() < MAX_TOLD) {
            run.told.push((region.length, region.sha256));
        }
    }

    fn take(&mut self, checked: Checked) {
        let Checked { entry, leaf, record, parents, timestamp, recovery, findings, dropped } =
            checked;
        for mut finding in findings {
            finding.place = self.place(entry.line);
            self.report.findings.push(Mode::Strict, finding);
        }
        if dropped > 0 {
            let class = wardkeep_evidence::check::Class::Integrity;
            self.report.findings.count_dropped(class, dropped);
        }
        if entry.index != self.position {
            let place = self.place(entry.line);
            let (expected, found) = (self.position.to_string(), entry.index.to_string());
            self.push(Check::EntryIndex, place, &expected, &found);
        }
        if entry.previous != self.last {
            let place = self.place(entry.line);
            let (expected, found) = (self.last.to_string(), entry.previous.to_string());
            self.push(Check::EntryPrevious, place, &expected, &found);
        }
        if let Some(computed) = entry.wrong_hash {
            let place = self.place(entry.line);
            let (expected, found) = (computed.to_string(), entry.hash.to_string());
            self.push(Check::EntryHash, place, &expected, &found);
        }
        if record.usable && record.id != entry.record {
            let place = self.place(entry.line);
            let (expected, found) = (entry.record.to_string(), record.id.to_string());
            self.push(Check::EntryWithoutRecord, place, &expected, &found);
        }
        for parent in &parents {
            let known = self.ids.position(parent).is_some()
                || self.is_earlier.as_mut().is_some_and(|is_earlier| is_earlier(parent));
            if !known {
                let place = self.place(entry.line);
                let check = Check::RecordParentUnknown;
                self.push(check, place, "a parent before its child", &parent.to_string());
            }
        }
        if let Ok(Some(earlier)) = self.ids.push(record.id, record.usable) {
            let place = self.place(entry.line);
            let found = format!("the id of index {earlier} again");
            self.push(Check::RecordDuplicate, place, "an id of its own", &found);
        }
        if let Some(seals) = &mut self.seals {
            seals.push_leaf(leaf, &mut self.report.findings);
        }
        if record.usable {
            *self.report.by_type.entry(record.kind).or_default() += 1;
            *self.report.by_principal.entry(record.principal).or_default() += 1;
            if let Some((hash, size)) = record.blob {
                let (first, _) = *self.blobs.entry(hash).or_insert((size, self.position));
                if first != size {
                    let place = self.place(entry.line);
                    let (expected, found) = (format!("{first} bytes"), format!("{size} bytes"));
                    self.push(Check::RecordBlobSize, place, &expected, &found);
                }
            }
            if record.extended {
                let place = self.place(entry.line);
                let expected = "no `extensions`, which no journal writes and no hash covers";
                self.push(Check::RecordUnknownMember, place, expected, "some");
            }
        }
        if let Some((regions, words)) = recovery {
            regions.iter().for_each(|region| self.take_region(region));
            for word in words {
                self.count_recovery(&word);
            }
        }
        match &mut self.report.span {
            Some((_, last)) => *last = timestamp,
            span => *span = Some((timestamp.clone(), timestamp)),
        }
        self.last = entry.hash;
        // After a break, count from the entry that is there: one finding for one break.
        self.position = entry.index.saturating_add(1);
        self.report.records += 1;
    }

    fn count_recovery(&mut self, word: &str) {
        let word = wardkeep_evidence::check::printable(word);
        let recoveries = &mut self.report.recoveries;
        let known = recoveries.contains_key(&word) || recoveries.len() < MAX_RECOVERIES;
        *recoveries.entry(if known { word } else { "other".to_owned() }).or_default() += 1;
    }

    /// Garbage that a recovery record describes byte for byte was told of; the rest is a finding.
    fn account_garbage(&mut self, folder: &Folder) {
        for run in std::mem::take(&mut self.garbage) {
            if !run.told.is_empty()
                && let Ok((file, _)) = folder.read_segment(run.segment)
                && run.told.iter().any(|(length, sha256)| {
                    hash_range(&file, run.start, *length).is_ok_and(|found| found == *sha256)
                })
            {
                continue;
            }
            let place = Place::line(format!("journal/{}", run.segment.file_name()), run.line);
            let found = format!("{} bytes that are none", run.end - run.start);
            let expected = "an entry, or a record that tells of it";
            self.push(Check::JournalGarbage, place, expected, &found);
        }
    }

    fn check_blobs(&mut self, folder: &Path) {
        let mut blobs: Vec<_> = std::mem::take(&mut self.blobs).into_iter().collect();
        blobs.sort_by_key(|(_, (_, index))| *index);
        for (hash, (size, index)) in blobs {
            let place = || Place::file(format!("blobs/{hash}")).at(index);
            let read = open_plain(&folder.join(hash.to_string())).and_then(|file| {
                let length = file.metadata()?.len();
                // Bytes that the record does not speak of are not worth reading.
                let found = (length == size).then(|| hash_range(&file, 0, length)).transpose()?;
                Ok((length, found))
            });
            match read {
                Ok((_, Some(found))) if found == hash.0 => {}
                Ok((_, Some(found))) => {
                    let found = BlobHash(found).to_string();
                    self.push(Check::BlobHash, place(), &hash.to_string(), &found);
                }
                Ok((length, None)) => {
                    let (expected, found) = (format!("{size} bytes"), format!("{length} bytes"));
                    self.push(Check::RecordBlobSize, place(), &expected, &found);
                }
                Err(error) => {
                    self.push(Check::RecordBlobMissing, place(), "a blob", &error.to_string());
                }
            }
        }
    }

    fn finish(mut self) -> JournalReport {
        self.report.head = (self.report.records > 0).then_some(self.last);
        let records = self.report.records;
        self.report.seals =
            self.seals.map(|seals| seals.finish(records, &mut self.report.findings));
        self.report
    }
}

fn check_chunk(chunk: Chunk) -> Batch {
    let mut lines = Vec::new();
    let mut scratch = Vec::with_capacity(1024);
    let mut offset = 0u64;
    for (number, text) in chunk.lines() {
        let start = offset;
        offset += text.len() as u64 + 1;
        let checked = check_line(number, text, &mut scratch);
        lines.push(checked.map_or(
            Line::Garbage { line: number, offset: start, length: text.len() as u64 },
            |checked| Line::Entry(Box::new(checked)),
        ));
    }
    Batch { lines, bytes: chunk.bytes.len() as u64 }
}

fn check_line(number: u64, text: &[u8], scratch: &mut Vec<u8>) -> Option<Checked> {
    let value = parse_value(text)?;
    let mut findings = Vec::new();
    let mut dropped = 0;
    let mut report = |check: Check, expected: &str, found: &str| {
        if !check.applies(Mode::Strict) {
        } else if findings.len() < MAX_LINE_FINDINGS {
            findings.push(Finding::new(check, Place::file(""), expected, found));
        } else {
            dropped += 1;
        }
    };
    if let Some(key) = value.duplicate_key() {
        report(Check::EntryDuplicateKey, "every key once", key);
    }
    let (entry, record) = split_line(value)?;
    let timestamp = timestamp_of(&entry);
    let mut leaf = empty_root();
    let entry = check_entry_line(entry, number, scratch, Some(&mut leaf), &mut report)
        .filter(|entry| is_index(entry.index))?;
    let recovery = is_recovery(&record)
        .then(|| Record::from_value(record.clone(), &mut |_, _, _| {}))
        .flatten()
        .and_then(|record| recovery_regions(&record));
    let mut parents = Vec::new();
    let record = check_record_line(record, number, scratch, &mut parents, &mut report);
    Some(Checked { entry, leaf, record, parents, timestamp, recovery, findings, dropped })
}

fn timestamp_of(entry: &Value<'_>) -> String {
    let text = entry.as_object().and_then(|object| object.get("ts")).and_then(Value::as_str);
    wardkeep_evidence::check::printable(text.unwrap_or_default())
}

fn is_recovery(record: &Value<'_>) -> bool {
    let mut value = record;
    for key in ["payload", "inline", "kind"] {
        let Some(member) = value.as_object().and_then(|object| object.get(key)) else {
            return false;
        };
        value = member;
    }
    value.as_str() == Some("recovery")
}
