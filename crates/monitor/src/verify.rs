//! Verification of a journal: the chain, the seals, and how far each reaches.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use wardkeep_evidence::check::{Check, Finding, Findings, Mode, Place};
use wardkeep_evidence::hash::{BlobHash, EntryHash, RecordId, sha256};
use wardkeep_evidence::json::{self, Value};
use wardkeep_evidence::merkle::{TreeHash, empty_root};
use wardkeep_evidence::record::{Principal, Record, RecordType};
use wardkeep_evidence::verify::{
    Chunk, EntryLine, Ids, MAX_LINE_BYTES, RecordLine, SealCheck, SealReport, Trust,
    check_entry_line, check_notes, check_record_line, each_chunk,
};

use crate::journal::{Folder, Region, SegmentNumber, recovery_regions, split_line};
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
    let mut findings = Findings::default();
    let seals = load_seals(store, trust, &mut findings);
    let mut pass = Pass {
        report: JournalReport { findings, ..JournalReport::default() },
        seals,
        ids: Ids::default(),
        position: 0,
        last: EntryHash::ZERO,
        segment: SegmentNumber(0),
        garbage: Vec::new(),
        accounted: Vec::new(),
        blobs: HashMap::new(),
    };
    let mut expected = SegmentNumber(1);
    let segments = store.folder().segments()?;
    let newest = segments.last().copied();
    for segment in segments {
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
    Ok(pass.finish())
}

fn load_seals(store: &StoreReader, trust: &Trust, findings: &mut Findings) -> Option<SealCheck> {
    let mut read = |name: &str| match read_bounded(&store.path().join(name)) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
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

fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    file.take(256 << 20).read_to_end(&mut bytes)?;
    Ok(bytes)
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
}

struct Batch {
    lines: Vec<Line>,
    bytes: u64,
}

struct Pass {
    report: JournalReport,
    seals: Option<SealCheck>,
    ids: Ids,
    position: u64,
    last: EntryHash,
    segment: SegmentNumber,
    garbage: Vec<(Region, u64)>,
    accounted: Vec<Region>,
    blobs: HashMap<BlobHash, (u64, u64)>,
}

const MAX_GARBAGE: usize = 100_000;

impl Pass {
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
        let name = format!("journal/{}", segment.file_name());
        let (mut file, length) = match folder.read_segment(segment) {
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
                    let tail = self.garbage.pop_if(|(region, _)| {
                        region.segment == segment && region.offset + region.length == length
                    });
                    self.report.open_tail = tail.map_or(0, |(region, _)| region.length);
                }
            }
        }
    }

    fn take_garbage(&mut self, line: u64, offset: u64, length: u64) {
        if self.garbage.len() < MAX_GARBAGE {
            let region = Region { segment: self.segment, offset, length, sha256: [0; 32] };
            self.garbage.push((region, line));
        } else {
            self.report.findings.count_dropped(wardkeep_evidence::check::Class::Integrity, 1);
        }
    }

    fn take(&mut self, checked: Checked) {
        let Checked { entry, leaf, record, parents, timestamp, recovery, findings } = checked;
        for mut finding in findings {
            finding.place = self.place(entry.line);
            self.report.findings.push(Mode::Strict, finding);
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
            if self.ids.position(parent).is_none() {
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
                self.blobs.entry(hash).or_insert((size, self.position));
            }
        }
        if let Some((regions, words)) = recovery {
            self.accounted.extend(regions);
            for word in words {
                let word = wardkeep_evidence::check::printable(&word);
                *self.report.recoveries.entry(word).or_default() += 1;
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

    /// Garbage that a recovery record describes byte for byte was told of; the rest is a finding.
    fn account_garbage(&mut self, folder: &Folder) {
        if self.garbage.is_empty() {
            return;
        }
        let accounted: Vec<Region> = std::mem::take(&mut self.accounted)
            .into_iter()
            .filter(|region| holds(folder, region))
            .collect();
        for (garbage, line) in std::mem::take(&mut self.garbage) {
            let told = accounted.iter().any(|region| {
                region.segment == garbage.segment
                    && region.offset <= garbage.offset
                    && garbage.offset + garbage.length <= region.offset + region.length
            });
            if !told {
                let name = format!("journal/{}", garbage.segment.file_name());
                let found = format!("{} bytes that are none", garbage.length);
                let place = Place::line(name, line);
                self.push(
                    Check::JournalGarbage,
                    place,
                    "an entry, or a record that tells of it",
                    &found,
                );
            }
        }
    }

    fn check_blobs(&mut self, folder: &Path) {
        let mut blobs: Vec<_> = std::mem::take(&mut self.blobs).into_iter().collect();
        blobs.sort_by_key(|(_, (_, index))| *index);
        for (hash, (size, index)) in blobs {
            let place = || Place::file(format!("blobs/{hash}")).at(index);
            match read_blob(&folder.join(hash.to_string()), size) {
                Ok(bytes) if bytes.len() as u64 != size => {
                    let found = format!("{} bytes or more", bytes.len());
                    self.push(Check::RecordBlobSize, place(), &format!("{size} bytes"), &found);
                }
                Ok(bytes) if sha256(&bytes) == hash.0 => {}
                Ok(bytes) => {
                    let found = BlobHash(sha256(&bytes)).to_string();
                    self.push(Check::BlobHash, place(), &hash.to_string(), &found);
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

fn read_blob(path: &Path, size: u64) -> io::Result<Vec<u8>> {
    let limit = size.min(wardkeep_evidence::source::MAX_FILE_BYTES) + 1;
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether the bytes of a region are what the recovery record says.
fn holds(folder: &Folder, region: &Region) -> bool {
    let Ok(length) = usize::try_from(region.length) else { return false };
    let Ok((file, total)) = folder.read_segment(region.segment) else { return false };
    if region.offset.checked_add(region.length).is_none_or(|end| end > total) {
        return false;
    }
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, region.offset).is_ok() && sha256(&bytes) == region.sha256
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
    let value = json::parse(text).ok()?;
    let mut findings = Vec::new();
    let mut report = |check: Check, expected: &str, found: &str| {
        if check.applies(Mode::Strict) {
            findings.push(Finding::new(check, Place::file(""), expected, found));
        }
    };
    if let Some(key) = value.duplicate_key() {
        report(Check::EntryDuplicateKey, "every key once", key);
    }
    let (entry, record) = split_line(value)?;
    let timestamp = timestamp_of(&entry);
    let mut leaf = empty_root();
    let entry = check_entry_line(entry, number, scratch, Some(&mut leaf), &mut report)?;
    let recovery = is_recovery(&record)
        .then(|| Record::from_value(record.clone(), &mut |_, _, _| {}))
        .flatten()
        .and_then(|record| recovery_regions(&record));
    let mut parents = Vec::new();
    let record = check_record_line(record, number, scratch, &mut parents, &mut report);
    Some(Checked { entry, leaf, record, parents, timestamp, recovery, findings })
}

fn timestamp_of(entry: &Value<'_>) -> String {
    let text = entry.as_object().and_then(|object| object.get("ts")).and_then(Value::as_str);
    wardkeep_evidence::check::printable(text.unwrap_or_default())
}

fn is_recovery(record: &Value<'_>) -> bool {
    let field = |value: &Value<'_>, key: &str| {
        value.as_object().and_then(|object| object.get(key).cloned().map(Value::into_owned))
    };
    field(record, "payload")
        .and_then(|payload| field(&payload, "inline"))
        .and_then(|inline| field(&inline, "kind"))
        .is_some_and(|kind| kind.as_str() == Some("recovery"))
}
