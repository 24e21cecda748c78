//! `verify`: every check of the format, all findings, one pass over each file.

mod ids;
mod lines;
mod part;
mod pipeline;
mod seals;

use std::collections::{BTreeMap, HashSet};
use std::io::Read;

pub use ids::{Ids, TooMany};
pub use lines::{EntryLine, RecordLine, check_entry_line, check_record_line};
pub use part::{PART, PART_ENTRIES, PartDescription, PartReport};
pub use pipeline::{Chunk, Ending, MAX_LINE_BYTES, each_chunk};
pub use seals::{
    CHECKPOINTS, COSIGNED, LOG_PUBLIC, SealCheck, SealReport, Trust, WitnessReach, check_notes,
};

use self::lines::{EntryBatch, RecordBatch};
use crate::check::{Check, Class, Finding, Findings, Mode, Place};
use crate::hash::{BlobHash, EntryHash, RecordId};
use crate::manifest::Manifest;
use crate::record::{Principal, RecordType};
use crate::source::{
    AUDIT_LOG, BLOBS, BlobMember, KEEP, MANIFEST, MAX_FILE_BYTES, Member, RECORDS, SEALS, Source,
    SourceError,
};

/// How to verify.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Strict, or v0.1's own verdict.
    pub mode: Mode,
    /// Threads to use; 0 and 1 mean the calling one.
    pub threads: usize,
    /// Keys that the caller trusts.
    pub trust: Trust,
}

/// What `verify` found.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// The failed checks.
    pub findings: Findings,
    /// When the bundle says it was made.
    pub created_at: Option<String>,
    /// Number of records.
    pub records: u64,
    /// Number of audit entries.
    pub entries: u64,
    /// Number of blobs.
    pub blobs: u64,
    /// Hash of the last entry.
    pub head: Option<EntryHash>,
    /// Records by type.
    pub by_type: BTreeMap<RecordType, u64>,
    /// Records by principal.
    pub by_principal: BTreeMap<Principal, u64>,
    /// Records with `extensions`, which no hash covers, and the first lines that have them.
    pub unauthenticated: Unauthenticated,
    /// Blobs that no record names.
    pub unreferenced_blobs: u64,
    /// How far the seals reach, where there are any.
    pub seals: Option<SealReport>,
    /// What the bundle is a part of, where it is one.
    pub part: Option<PartReport>,
}

/// What is in a bundle that no hash covers.
#[derive(Debug, Clone, Default)]
pub struct Unauthenticated {
    /// Number of records with `extensions`.
    pub count: u64,
    /// Lines of the first of them.
    pub lines: Vec<u64>,
    /// Members of the manifest that are free text.
    pub manifest: Vec<&'static str>,
}

impl Report {
    /// Whether every check passed.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.findings.is_empty()
    }

    /// The class that decides the exit code.
    #[must_use]
    pub fn worst(&self) -> Option<Class> {
        self.findings.worst()
    }
}

/// Verifies the bundle that `source` reads.
pub fn verify(source: &mut dyn Source, options: &Options) -> Report {
    let mut run = Run { mode: options.mode, threads: options.threads, report: Report::default() };
    run.verify(source, &options.trust);
    run.report
}

struct Run {
    mode: Mode,
    threads: usize,
    report: Report,
}

impl Run {
    fn verify(&mut self, source: &mut dyn Source, trust: &Trust) {
        let members = match source.members() {
            Ok(members) => members,
            Err(error) => {
                self.finding(
                    Check::ManifestUnreadable,
                    Place::file("."),
                    "a bundle",
                    error.to_string(),
                );
                return;
            }
        };
        let manifest = self.read_manifest(source);
        let blobs = self.list_members(&members);
        let mut seals = seals::Sealed::default();
        if self.mode == Mode::Strict {
            seals = seals::Sealed::load(source, &members, trust, &mut self.report.findings);
        }
        let roots = manifest.as_ref().map_or(&[][..], |manifest| &manifest.root_records);
        let (ids, referenced) = self.read_records(source, roots, &blobs, &seals);
        self.read_audit_log(source, &ids, &mut seals);
        if let Some(manifest) = &manifest {
            self.compare_manifest(manifest, &ids);
        }
        self.hash_blobs(source, &blobs, &referenced);
        let (records, entries) = (self.report.records, self.report.entries);
        let (seal_report, part) =
            seals.finish(source, &ids, records, entries, &mut self.report.findings);
        self.report.seals = seal_report;
        self.report.part = part;
    }

    fn finding(
        &mut self,
        check: Check,
        place: Place,
        expected: impl AsRef<str>,
        found: impl AsRef<str>,
    ) {
        self.report.findings.push(self.mode, Finding::new(check, place, expected, found));
    }

    fn read_manifest(&mut self, source: &mut dyn Source) -> Option<Manifest> {
        let (manifest, defects) = match source.open(MANIFEST) {
            Ok(reader) => Manifest::read(reader),
            Err(error) => {
                self.unreadable(Check::ManifestUnreadable, MANIFEST, &error);
                return None;
            }
        };
        for defect in defects {
            self.finding(defect.check, Place::file(MANIFEST), defect.expected, defect.found);
        }
        if let Some(manifest) = &manifest {
            self.report.created_at = Some(manifest.created_at.clone());
            let free = [("meta", &manifest.meta), ("extensions", &manifest.extensions)];
            let free = free.iter().filter(|(_, value)| value.is_some()).map(|(name, _)| *name);
            self.report.unauthenticated.manifest =
                std::iter::once("created_at").chain(free).collect();
        }
        manifest
    }

    fn unreadable(&mut self, check: Check, name: &str, error: &SourceError) {
        self.finding(check, Place::file(name), "a readable file", error.to_string());
    }

    /// Sorts the files of the bundle; gives the blobs in order of their hash.
    fn list_members(&mut self, members: &[Member]) -> Vec<BlobMember> {
        let mut blobs = Vec::new();
        for member in members {
            match member.name.split_once('/') {
                None if [MANIFEST, RECORDS, AUDIT_LOG].contains(&member.name.as_str()) => {}
                Some((BLOBS, KEEP)) => {}
                Some((BLOBS, name)) => {
                    self.report.blobs += 1;
                    let place = Place::file(&member.name);
                    if !member.regular {
                        self.finding(Check::BlobKind, place, "a regular file", "something else");
                    } else if let Some(hash) = BlobHash::from_hex(name) {
                        blobs.push(BlobMember { hash, size: member.size });
                    } else {
                        self.finding(Check::BlobName, place, "a SHA-256 in hexadecimal", name);
                    }
                }
                Some((SEALS, name)) if seals::FILES.contains(&name) && member.regular => {}
                _ => {
                    let place = Place::file(crate::check::printable(&member.name));
                    self.finding(Check::FileUnexpected, place, "only files of the format", "this");
                }
            }
        }
        blobs.sort_unstable();
        blobs
    }

    fn read_records(
        &mut self,
        source: &mut dyn Source,
        roots: &[RecordId],
        blobs: &[BlobMember],
        seals: &seals::Sealed,
    ) -> (Ids, Vec<bool>) {
        let mut pass = RecordPass {
            mode: self.mode,
            ids: Ids::default(),
            referenced: vec![false; blobs.len()],
            roots: roots.iter(),
            roots_differ: None,
            pending: Vec::new(),
            overflow: 0,
            unusable: 0,
            report: &mut self.report,
            blobs,
        };
        let ending = match source.open(RECORDS) {
            Ok(mut reader) => {
                let mode = pass.mode;
                each_chunk(
                    &mut *reader,
                    self.threads,
                    |chunk| RecordBatch::check(mode, RECORDS, &chunk),
                    |batch| pass.take(batch),
                )
                .map_err(|error| SourceError::io(RECORDS, error))
            }
            Err(error) => Err(error),
        };
        let complete = ending.is_ok();
        pass.report
            .findings
            .push_all(pass.mode, end_of_file(ending, RECORDS, Check::RecordsUnreadable));
        pass.resolve_pending(seals);
        pass.finish_roots(complete);
        let (ids, referenced) = (pass.ids, pass.referenced);
        self.report.records = ids.len();
        (ids, referenced)
    }

    fn read_audit_log(&mut self, source: &mut dyn Source, ids: &Ids, seals: &mut seals::Sealed) {
        let mut pass = EntryPass {
            mode: self.mode,
            ids,
            seen: vec![0u64; usize::try_from(ids.len() / 64 + 1).unwrap_or(0)],
            position: 0,
            last: EntryHash::ZERO,
            report: &mut self.report,
            seals,
        };
        let want_leaves = pass.seals.wants_leaves();
        let ending = match source.open(AUDIT_LOG) {
            Ok(mut reader) => {
                let mode = pass.mode;
                each_chunk(
                    &mut *reader,
                    self.threads,
                    |chunk| EntryBatch::check(mode, AUDIT_LOG, want_leaves, &chunk),
                    |batch| pass.take(batch),
                )
                .map_err(|error| SourceError::io(AUDIT_LOG, error))
            }
            Err(error) => Err(error),
        };
        // Before what only follows from it: a record without entry for every record.
        let findings = end_of_file(ending, AUDIT_LOG, Check::AuditUnreadable);
        pass.report.findings.push_all(pass.mode, findings);
        pass.finish();
    }

    fn compare_manifest(&mut self, manifest: &Manifest, ids: &Ids) {
        let place = || Place::file(MANIFEST);
        let head = self.report.head.unwrap_or(EntryHash::ZERO);
        if manifest.audit_head != head {
            let (expected, found) = (head.to_string(), manifest.audit_head.to_string());
            self.finding(Check::ManifestAuditHead, place(), expected, found);
        }
        for (check, actual, claimed) in [
            (Check::ManifestRecordCount, self.report.records, manifest.record_count),
            (Check::ManifestBlobCount, self.report.blobs, manifest.blob_count),
        ] {
            if actual != claimed {
                self.finding(check, place(), actual.to_string(), claimed.to_string());
            }
        }
        for root in &manifest.root_records {
            if ids.position(root).is_none() {
                self.finding(
                    Check::ManifestRootUnknown,
                    place(),
                    "ids of records in the bundle",
                    root.to_string(),
                );
            }
        }
    }

    fn hash_blobs(&mut self, source: &mut dyn Source, blobs: &[BlobMember], referenced: &[bool]) {
        for (blob, &referenced) in blobs.iter().zip(referenced) {
            if !referenced {
                self.report.unreferenced_blobs += 1;
                if self.mode == Mode::Lenient {
                    continue;
                }
            }
            let name = format!("{BLOBS}/{}", blob.hash);
            if blob.size > MAX_FILE_BYTES {
                let expected = format!("at most {MAX_FILE_BYTES} bytes");
                self.finding(
                    Check::BlobTooLarge,
                    Place::file(&name),
                    expected,
                    blob.size.to_string(),
                );
                continue;
            }
            let check = if referenced { Check::BlobHash } else { Check::BlobHashUnreferenced };
            match source.open(&name).map(hash_reader) {
                Ok(Ok(hash)) if hash == blob.hash.0 => {}
                Ok(Ok(hash)) => {
                    let found = crate::hash::encode_hex(&hash);
                    self.finding(check, Place::file(&name), blob.hash.to_string(), found);
                }
                Ok(Err(error)) => {
                    self.finding(check, Place::file(&name), "readable bytes", error.to_string());
                }
                Err(error) => {
                    self.finding(check, Place::file(&name), "a readable file", error.to_string());
                }
            }
        }
    }
}

/// What is to be said of how a file of lines ended.
fn end_of_file(ending: Result<Ending, SourceError>, name: &str, check: Check) -> Vec<Finding> {
    let ending = match ending {
        Err(error) => {
            let found = error.to_string();
            return vec![Finding::new(check, Place::file(name), "a readable file", found)];
        }
        Ok(ending) => ending,
    };
    let mut findings = Vec::new();
    if let Some(line) = ending.too_long {
        let expected = format!("lines of at most {MAX_LINE_BYTES} bytes");
        let (place, found) = (Place::line(name, line), "a longer one; stopped here");
        findings.push(Finding::new(Check::LineTooLong, place, expected, found));
    }
    if ending.unterminated {
        let place = Place::line(name, ending.lines);
        findings.push(Finding::new(Check::LineUnterminated, place, "a newline at the end", "none"));
    }
    findings
}

fn hash_reader(mut reader: Box<dyn Read + '_>) -> std::io::Result<[u8; 32]> {
    use sha2::Digest as _;
    let mut hasher = sha2::Sha256::new();
    let mut buffer = vec![0u8; 1 << 16];
    let mut left = MAX_FILE_BYTES;
    loop {
        let count = reader.read(&mut buffer)?;
        if count == 0 {
            return Ok(hasher.finalize().into());
        }
        left = left
            .checked_sub(count as u64)
            .ok_or_else(|| std::io::Error::other("grew over the size limit while it was read"))?;
        hasher.update(&buffer[..count]);
    }
}

/// Parents that were not there yet when their child was read.
const MAX_PENDING: usize = 100_000;
/// Lines without a record that get a position; each has its finding, so that nothing hangs on
/// those behind, and a file of short garbage lines costs no memory.
const MAX_UNUSABLE: u64 = 100_000;

struct RecordPass<'r> {
    mode: Mode,
    ids: Ids,
    referenced: Vec<bool>,
    roots: std::slice::Iter<'r, RecordId>,
    roots_differ: Option<(u64, Option<RecordId>, RecordId)>,
    pending: Vec<(u64, u64, RecordId)>,
    overflow: u64,
    unusable: u64,
    report: &'r mut Report,
    blobs: &'r [BlobMember],
}

impl RecordPass<'_> {
    fn push(&mut self, check: Check, line: u64, index: u64, expected: &str, found: &str) {
        let place = Place::line(RECORDS, line).at(index);
        self.report.findings.push(self.mode, Finding::new(check, place, expected, found));
    }

    fn take(&mut self, batch: RecordBatch) {
        let base = self.ids.len();
        batch.findings.hand_on(self.mode, base, &mut self.report.findings);
        let mut parents = batch.parents.as_slice();
        for record in &batch.records {
            if !record.usable {
                self.unusable += 1;
                if self.unusable > MAX_UNUSABLE {
                    continue;
                }
            }
            let index = self.ids.len();
            let (own, rest) = parents.split_at_checked(record.parents).unwrap_or((parents, &[]));
            parents = rest;
            for parent in own {
                if self.ids.position(parent).is_none() {
                    if self.pending.len() < MAX_PENDING {
                        self.pending.push((record.line, index, *parent));
                    } else {
                        self.overflow += 1;
                    }
                }
            }
            match self.ids.push(record.id, record.usable) {
                Ok(None) => {}
                Ok(Some(earlier)) => {
                    let found = format!("the id of index {earlier} again");
                    self.push(
                        Check::RecordDuplicate,
                        record.line,
                        index,
                        "an id of its own",
                        &found,
                    );
                }
                Err(ids::TooMany) => return,
            }
            if !record.usable {
                continue;
            }
            *self.report.by_type.entry(record.kind).or_default() += 1;
            *self.report.by_principal.entry(record.principal).or_default() += 1;
            if record.parents == 0 && self.roots_differ.is_none() {
                let claimed = self.roots.next().copied();
                if claimed != Some(record.id) {
                    self.roots_differ = Some((index, claimed, record.id));
                }
            }
            if record.extended {
                self.report.unauthenticated.count += 1;
                if self.report.unauthenticated.lines.len() < 20 {
                    self.report.unauthenticated.lines.push(record.line);
                }
            }
            if let Some((hash, size)) = record.blob {
                self.check_blob(hash, size, record.line, index);
            }
        }
    }

    fn check_blob(&mut self, hash: BlobHash, size: u64, line: u64, index: u64) {
        match self.blobs.binary_search_by(|blob| blob.hash.cmp(&hash)) {
            Ok(at) => {
                if let Some(referenced) = self.referenced.get_mut(at) {
                    *referenced = true;
                }
                let actual = self.blobs.get(at).map_or(0, |blob| blob.size);
                if actual != size {
                    let expected = format!("a blob of {size} bytes");
                    let found = format!("{actual} bytes");
                    self.push(Check::RecordBlobSize, line, index, &expected, &found);
                }
            }
            Err(_) => {
                let expected = format!("the blob {hash}");
                self.push(Check::RecordBlobMissing, line, index, &expected, "no such file");
            }
        }
    }

    fn resolve_pending(&mut self, seals: &seals::Sealed) {
        let omitted: &HashSet<RecordId> = seals.omitted_parents();
        for (line, index, parent) in std::mem::take(&mut self.pending) {
            match self.ids.position(&parent) {
                Some(at) => {
                    let found = format!("{parent} at index {at}");
                    let check = Check::RecordParentLater;
                    self.push(check, line, index, "a parent before its child", &found);
                }
                None if omitted.contains(&parent) => {}
                None => {
                    let check = Check::RecordParentUnknown;
                    self.push(check, line, index, "a parent in the bundle", &parent.to_string());
                }
            }
        }
        if self.overflow > 0 {
            let found = format!("{} more that are not", self.overflow);
            let place = Place::file(RECORDS);
            let finding =
                Finding::new(Check::RecordParentUnknown, place, "parents in the bundle", found);
            self.report.findings.push(self.mode, finding);
        }
    }

    fn finish_roots(&mut self, complete: bool) {
        let difference = match (self.roots_differ, self.roots.next()) {
            (Some((index, claimed, actual)), _) => {
                let claimed = claimed.map_or("nothing".to_owned(), |id| id.to_string());
                Some((format!("{actual} (index {index}) next"), claimed))
            }
            (None, Some(extra)) if complete => Some(("no more".to_owned(), extra.to_string())),
            _ => None,
        };
        if let Some((expected, found)) = difference {
            let place = Place::file(MANIFEST);
            let finding = Finding::new(Check::ManifestRoots, place, expected, found);
            self.report.findings.push(self.mode, finding);
        }
    }
}

struct EntryPass<'r> {
    mode: Mode,
    ids: &'r Ids,
    seen: Vec<u64>,
    position: u64,
    last: EntryHash,
    report: &'r mut Report,
    seals: &'r mut seals::Sealed,
}

impl EntryPass<'_> {
    fn push(&mut self, check: Check, line: u64, expected: &str, found: &str) {
        let place = Place::line(AUDIT_LOG, line).at(self.position);
        self.report.findings.push(self.mode, Finding::new(check, place, expected, found));
    }

    fn take(&mut self, batch: EntryBatch) {
        let base = self.position;
        batch.findings.hand_on(self.mode, base, &mut self.report.findings);
        let mut leaves = batch.leaves.into_iter();
        for entry in batch.entries {
            let Some(entry) = entry else {
                self.position += 1;
                continue;
            };
            if let Some(leaf) = leaves.next() {
                self.seals.push_leaf(leaf);
            }
            if entry.index != self.position {
                let (expected, found) = (self.position.to_string(), entry.index.to_string());
                self.push(Check::EntryIndex, entry.line, &expected, &found);
            }
            if entry.previous != self.last {
                let (expected, found) = (self.last.to_string(), entry.previous.to_string());
                self.push(Check::EntryPrevious, entry.line, &expected, &found);
            }
            if let Some(computed) = entry.wrong_hash {
                let (expected, found) = (computed.to_string(), entry.hash.to_string());
                self.push(Check::EntryHash, entry.line, &expected, &found);
            }
            self.match_record(entry.record, entry.line);
            self.last = entry.hash;
            self.position += 1;
        }
    }

    fn match_record(&mut self, record: RecordId, line: u64) {
        let here = self.ids.at(self.position);
        let at =
            if here == Some(record) { Some(self.position) } else { self.ids.position(&record) };
        let Some(at) = at else {
            let expected = here.map_or("no more entries".to_owned(), |id| id.to_string());
            self.push(Check::EntryWithoutRecord, line, &expected, &record.to_string());
            return;
        };
        let (word, bit) = (usize::try_from(at / 64).unwrap_or(usize::MAX), 1u64 << (at % 64));
        match self.seen.get_mut(word) {
            Some(bits) if *bits & bit != 0 => {
                let found = format!("{record} again");
                self.push(Check::EntryRecordTwice, line, "a record of its own", &found);
            }
            Some(bits) => {
                *bits |= bit;
                if here != Some(record) {
                    let expected = here.map_or("nothing".to_owned(), |id| id.to_string());
                    let found = format!("{record}, which is at index {at}");
                    self.push(Check::EntryOrder, line, &expected, &found);
                }
            }
            None => {}
        }
    }

    fn finish(mut self) {
        self.report.entries = self.position;
        self.report.head = (self.position > 0).then_some(self.last);
        for index in 0..self.ids.len() {
            let word = usize::try_from(index / 64).unwrap_or(usize::MAX);
            let seen = self.seen.get(word).is_some_and(|bits| bits & (1 << (index % 64)) != 0);
            if !seen {
                let id = self.ids.at(index).unwrap_or(RecordId::ZERO);
                let place = Place::file(RECORDS).at(index);
                let finding =
                    Finding::new(Check::RecordWithoutEntry, place, "an entry", id.to_string());
                self.report.findings.push(self.mode, finding);
            }
        }
        self.seen.clear();
    }
}
