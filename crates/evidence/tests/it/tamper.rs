//! The tamper table: one way to cheat a row, and the check that must name it first.

mod content;
mod parts;
mod seals;
mod structure;

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::Path;

use wardkeep_evidence::check::{Check, Mode};
use wardkeep_evidence::hash::{BlobHash, RecordId, sha256};
use wardkeep_evidence::note::Note;
use wardkeep_evidence::record::{NewRecord, Payload, Principal, Record, RecordType};
use wardkeep_evidence::seal::{Frame, sign_seal, split_frames};
use wardkeep_evidence::source::{AUDIT_LOG, MANIFEST, RECORDS};
use wardkeep_evidence::verify::Trust;

use self::content::{LINE_ROWS, RECORD_ROWS};
use self::parts::PART_ROWS;
use self::seals::{SEAL_ROWS, TRUST_ROWS};
use self::structure::{CHAIN_ROWS, FILE_ROWS, MANIFEST_ROWS};
use crate::lab::{
    COSIGNED_AT, CREATED_AT, EPOCH_SEED, FIRST_SLOT, Files, LOG_SEED, LogKeys, OTHER_SEED, PAGE,
    checks, cosigned, framed, inline, part, plain, record, record_line, sample, seal,
    sealed_sample, verify_path, witness, witness_from,
};

const CHECKPOINTS: &str = "seals/checkpoints";
const COSIGNED: &str = "seals/cosigned";
const LOG_PUBLIC: &str = "seals/log.pub";
const PART: &str = "seals/part.json";
const PART_ENTRIES: &str = "seals/entries.jsonl";

/// The bundles that rows start from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Base {
    Plain,
    Sample,
    SealedPlain,
    SealedSample,
    Part,
}

impl Base {
    pub(crate) const ALL: [Self; 5] =
        [Self::Plain, Self::Sample, Self::SealedPlain, Self::SealedSample, Self::Part];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Sample => "sample",
            Self::SealedPlain => "sealed-plain",
            Self::SealedSample => "sealed-sample",
            Self::Part => "part",
        }
    }

    pub(crate) fn files(self) -> Files {
        match self {
            Self::Plain => plain(),
            Self::Sample => sample(),
            Self::SealedPlain => sealed_plain(),
            Self::SealedSample => sealed_sample(),
            Self::Part => part(),
        }
    }
}

/// A bundle that passes, what is done to it, and the check that must come first.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) base: Base,
    tamper: fn(&mut Files),
    pub(crate) first: Check,
}

impl Row {
    pub(crate) fn tampered(&self) -> Files {
        let mut files = self.base.files();
        (self.tamper)(&mut files);
        files
    }
}

const fn row(name: &'static str, base: Base, tamper: fn(&mut Files), first: Check) -> Row {
    Row { name, base, tamper, first }
}

/// Every row, and whether the caller must trust the usual keys for it.
pub(crate) fn all_rows() -> impl Iterator<Item = (&'static Row, bool)> {
    let tables =
        [RECORD_ROWS, LINE_ROWS, CHAIN_ROWS, MANIFEST_ROWS, FILE_ROWS, SEAL_ROWS, PART_ROWS];
    let rows = tables.into_iter().flatten().map(|row| (row, false));
    rows.chain(TRUST_ROWS.iter().map(|row| (row, true)))
}

fn sealed_plain() -> Files {
    let mut files = plain();
    seal(&mut files, &LogKeys::usual(), &[2, 3, 4]);
    files
}

fn notes(files: &Files, name: &str) -> Vec<Note> {
    let note = |frame: Frame<'_>| match frame {
        Frame::Note { text, .. } => Note::parse(text).unwrap(),
        Frame::Damaged { .. } => panic!("damaged frame"),
    };
    split_frames(files.get(name)).into_iter().map(note).collect()
}

fn edit_notes(files: &mut Files, name: &str, edit: impl FnOnce(&mut Vec<Note>)) {
    let mut notes = notes(files, name);
    edit(&mut notes);
    files.set(name, framed(&notes));
}

/// The same record with its id made right after a change.
fn mended(mut record: Record<'static>) -> Record<'static> {
    record.id = record.compute_id(&mut Vec::new());
    record
}

/// Everything rewritten so that it agrees: record 1 says something else, its descendants name its
/// new id, entries and manifest follow. No format without a key can refuse this.
fn consistent_rewrite(files: &mut Files) {
    let mut records = files.records();
    for index in 1..records.len() {
        let old = records[index].id;
        if index == 1 {
            records[1].payload = inline(r#"{"text":"nothing happened"}"#);
        }
        records[index] = mended(records[index].clone());
        let new = records[index].id;
        for later in &mut records[index + 1..] {
            later.parents.iter_mut().filter(|id| **id == old).for_each(|id| *id = new);
        }
    }
    files.rewrite(&records);
}

fn truncated_tail(files: &mut Files) {
    let mut records = files.records();
    records.pop();
    files.rewrite(&records);
}

#[test]
fn every_row_is_caught_by_its_check_first() {
    let (mut names, mut wrong) = (BTreeSet::new(), Vec::new());
    for (row, trusting) in all_rows() {
        let Row { name, base, first, .. } = row;
        assert!(names.insert(name), "{name} stands twice");
        let trust = if trusting { LogKeys::usual().trust() } else { Trust::default() };
        let before = base.files().verify_with(Mode::Strict, trust.clone());
        assert!(before.passed(), "{name}: the base fails: {:?}", before.findings.kept());
        let files = row.tampered();
        assert_ne!(files, base.files(), "{name}: nothing was changed");
        let report = files.verify_with(Mode::Strict, trust);
        if checks(&report).first() != Some(&first.name()) {
            wrong.push(format!("{name}: expected {first}, found {:?}", report.findings.kept()));
        }
    }
    assert!(wrong.is_empty(), "{} rows:\n{}", wrong.len(), wrong.join("\n"));
    assert!(names.len() >= 130, "{} rows", names.len());
}

/// The tampered vectors of v0.1 by the check that must come first; `None` where no format without
/// a key can tell.
const VECTOR_ROWS: &[(&str, Option<Check>)] = &[
    ("01_payload", Some(Check::RecordId)),
    ("02_principal", Some(Check::RecordId)),
    ("04_parents", Some(Check::RecordId)),
    ("05_meta_ts", Some(Check::RecordId)),
    ("06_audit_ts", Some(Check::EntryHash)),
    ("07_audit_entry_removed", Some(Check::EntryIndex)),
    ("08_audit_head", Some(Check::ManifestAuditHead)),
    ("09_record_count", Some(Check::ManifestRecordCount)),
    ("10_blob_count", Some(Check::ManifestBlobCount)),
    ("13_schema_version", Some(Check::ManifestSchema)),
    ("14_manifest_extra_field", Some(Check::ManifestSchema)),
    ("16_unknown_type", Some(Check::RecordId)),
    ("17_unknown_principal", Some(Check::RecordField)),
    ("18_meta_without_ts", Some(Check::RecordSchema)),
    ("19_bad_json_line", Some(Check::RecordJson)),
    ("20_manifest_missing", Some(Check::ManifestUnreadable)),
    ("21_audit_missing", Some(Check::AuditUnreadable)),
    ("22_blob_modified", Some(Check::RecordBlobSize)),
    ("23_blob_missing", Some(Check::RecordBlobMissing)),
    ("30_extensions_added", None),
    ("31_unknown_field", Some(Check::RecordUnknownMember)),
    ("34_wholesale_rewrite", None),
    ("35_tail_truncated", None),
    ("36_record_removed_audit_kept", Some(Check::EntryWithoutRecord)),
    ("37_forged_record_no_audit", Some(Check::RecordWithoutEntry)),
    ("39_records_reordered", Some(Check::RecordParentLater)),
    ("41_nfc_to_nfd_value_swap", None),
    ("42_bigint_changed", None),
];

#[test]
fn every_tampered_vector_is_caught_by_its_check_first() {
    let folder = crate::shared::vectors_folder("aegx-v0.1/f1-tamper");
    let mut listed: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    listed.sort();
    let named: Vec<_> = VECTOR_ROWS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(listed, named, "every vector has a row");
    let mut wrong = Vec::new();
    for (name, first) in VECTOR_ROWS {
        let report = verify_path(&folder.join(name), Mode::Strict);
        if checks(&report).first().copied() != first.map(Check::name) {
            wrong.push(format!("{name}: {:?}", report.findings.kept()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// 34 and 35 pass as they are; sealed before they were made, they do not.
#[test]
fn seals_catch_what_no_unkeyed_format_can() {
    let folder = crate::shared::vectors_folder("aegx-v0.1");
    let read = |name: &str| {
        let mut files = Files::default();
        for file in [MANIFEST, RECORDS, AUDIT_LOG] {
            files.set(file, std::fs::read(folder.join(name).join(file)).unwrap());
        }
        files
    };
    let original = read("f1-generated/dag");
    let mut sealed = original.clone();
    seal(&mut sealed, &LogKeys::usual(), &[1, 4]);
    assert!(sealed.verify(Mode::Strict).passed());
    for (name, expected) in
        [("34_wholesale_rewrite", Check::SealRoot), ("35_tail_truncated", Check::SealTruncated)]
    {
        let mut tampered = read(&format!("f1-tamper/{name}"));
        assert!(tampered.verify(Mode::Strict).passed(), "{name} agrees with itself");
        for file in [LOG_PUBLIC, CHECKPOINTS, COSIGNED] {
            tampered.set(file, sealed.get(file));
        }
        assert_eq!(
            checks(&tampered.verify(Mode::Strict)).first(),
            Some(&expected.name()),
            "{name}"
        );
    }
}

/// Things that only a real folder can hold.
#[test]
fn links_pipes_and_folders_are_not_blobs() {
    type Plant = fn(&Path, &Path);
    let rows: &[(&str, Plant, Check)] = &[
        (
            "link",
            |blob, folder| {
                std::fs::write(folder.join("elsewhere"), PAGE).unwrap();
                symlink(folder.join("elsewhere"), blob).unwrap();
            },
            Check::BlobKind,
        ),
        ("link to itself", |blob, _| symlink(blob, blob).unwrap(), Check::BlobKind),
        ("link to a device", |blob, _| symlink("/dev/zero", blob).unwrap(), Check::BlobKind),
        ("pipe", |blob, _| crate::shared::make_pipe(blob), Check::BlobKind),
        ("folder", |blob, _| std::fs::create_dir(blob).unwrap(), Check::BlobKind),
        (
            "folder with content",
            |blob, _| {
                std::fs::create_dir(blob).unwrap();
                std::fs::write(blob.join("x"), PAGE).unwrap();
            },
            Check::BlobKind,
        ),
    ];
    for (name, plant, expected) in rows {
        let folder = tempfile::tempdir().unwrap();
        let bundle = folder.path().join("bundle");
        sealed_sample().write_to(&bundle);
        assert!(verify_path(&bundle, Mode::Strict).passed());
        let blob = bundle.join("blobs").join(BlobHash(sha256(PAGE)).to_string());
        std::fs::remove_file(&blob).unwrap();
        plant(&blob, folder.path());
        let report = verify_path(&bundle, Mode::Strict);
        assert_eq!(checks(&report).first(), Some(&expected.name()), "{name}");
        assert!(checks(&report).contains(&"record-blob-missing"), "{name}");
    }
}

#[test]
fn files_of_the_format_are_never_links_or_pipes() {
    for (name, expected) in [
        (MANIFEST, Check::ManifestUnreadable),
        (RECORDS, Check::RecordsUnreadable),
        (AUDIT_LOG, Check::AuditUnreadable),
        (LOG_PUBLIC, Check::FileUnexpected),
        (CHECKPOINTS, Check::FileUnexpected),
        ("blobs", Check::FileUnexpected),
        ("seals", Check::FileUnexpected),
    ] {
        type Plant = fn(&Path, &Path);
        let plants: [(&str, Plant); 2] = [
            ("link", |path, real| symlink(real, path).unwrap()),
            ("pipe", |path, _| crate::shared::make_pipe(path)),
        ];
        for (kind, plant) in plants {
            let folder = tempfile::tempdir().unwrap();
            let bundle = folder.path().join("bundle");
            sealed_sample().write_to(&bundle);
            let (path, real) = (bundle.join(name), folder.path().join("real"));
            std::fs::rename(&path, &real).unwrap();
            plant(&path, &real);
            let report = verify_path(&bundle, Mode::Strict);
            assert!(checks(&report).contains(&expected.name()), "{name} as a {kind}: {report:?}");
        }
    }
}

/// Wherever a log of a sealed bundle is cut, strict refuses it, and nothing panics.
#[test]
fn a_log_cut_at_any_byte_is_refused() {
    let whole = sealed_sample();
    for name in [RECORDS, AUDIT_LOG, MANIFEST, "seals/log.pub"] {
        let bytes = whole.get(name).to_vec();
        // The last byte of log.pub is a newline that may be missing.
        let end = if name == "seals/log.pub" { bytes.len() - 1 } else { bytes.len() };
        for length in 0..end {
            let mut files = whole.clone();
            files.set(name, &bytes[..length]);
            let report = files.verify(Mode::Strict);
            assert!(!report.passed(), "{name} cut at {length}");
            let seals = report.seals.map_or(0, |seals| seals.signed_to);
            assert!(seals <= report.entries, "{name} cut at {length}");
        }
    }
}

/// The records and everything about them cut and made to agree again: each cut below the last seal
/// is caught by the seals alone, and a cut above it is an open tail that the report shows.
#[test]
fn a_consistent_cut_is_caught_up_to_the_last_seal() {
    let mut whole = sample();
    seal(&mut whole, &LogKeys::usual(), &[2, 4]);
    let records = whole.records();
    for length in 0..=records.len() {
        let mut files = whole.clone();
        files.rewrite(&records[..length]);
        if length < 4 {
            // The blob of record 3 stays as one that nobody names.
            let report = files.verify(Mode::Strict);
            assert_eq!(checks(&report).first(), Some(&"seal-truncated"), "cut at {length}");
        } else {
            let report = files.verify(Mode::Strict);
            assert!(report.passed(), "cut at {length}: {:?}", report.findings.kept());
            let seals = report.seals.unwrap();
            assert_eq!((seals.signed_to, seals.unsealed), (4, length as u64 - 4));
        }
    }
}

/// A cut of the seals never panics and never makes more signed than the seals that are left.
#[test]
fn seals_cut_at_any_byte_claim_no_more_than_is_left() {
    let whole = sealed_sample();
    let bytes = whole.get(CHECKPOINTS).to_vec();
    let ends: Vec<usize> = split_frames(&bytes)
        .iter()
        .skip(1)
        .map(|frame| match frame {
            Frame::Note { offset, .. } | Frame::Damaged { offset, .. } => *offset,
        })
        .chain([bytes.len()])
        .collect();
    assert_eq!(ends.len(), 3);
    for length in 0..=bytes.len() {
        let mut files = whole.clone();
        files.set(CHECKPOINTS, &bytes[..length]);
        let report = files.verify(Mode::Strict);
        let left = ends.iter().filter(|end| **end <= length).count();
        let seals = report.seals.as_ref().unwrap();
        assert_eq!(seals.signed_to, [0, 2, 4, 6][left], "cut at {length}");
        assert_eq!(seals.seals, left as u64, "cut at {length}");
        let at_a_seam = length == 0 || ends.contains(&length);
        assert_eq!(report.passed(), at_a_seam, "cut at {length}: {:?}", report.findings.kept());
        // The witness still vouches for all six, so that its caller sees the loss.
        let trusting = files.verify_with(Mode::Strict, LogKeys::usual().trust());
        assert_eq!(trusting.seals.unwrap().witnesses[0].to, 6);
    }
}

#[test]
fn cosignatures_cut_at_any_byte_vouch_for_nothing() {
    let whole = sealed_sample();
    let bytes = whole.get(COSIGNED).to_vec();
    for length in 0..bytes.len() {
        let mut files = whole.clone();
        files.set(COSIGNED, &bytes[..length]);
        let report = files.verify_with(Mode::Strict, LogKeys::usual().trust());
        assert_eq!(report.passed(), length == 0, "cut at {length}");
        assert_eq!(report.seals.unwrap().witnesses, [], "cut at {length}");
    }
}

/// What a report says of a bundle that is sound.
#[test]
fn the_report_says_how_far_each_protection_reaches() {
    let mut files = sample();
    seal(&mut files, &LogKeys::usual(), &[2, 4]);
    let report = files.verify_with(Mode::Strict, LogKeys::usual().trust());
    assert!(report.passed(), "{:?}", report.findings.kept());
    assert_eq!((report.records, report.entries, report.blobs), (6, 6, 1));
    assert_eq!((report.unauthenticated.count, &report.unauthenticated.lines[..]), (1, &[6][..]));
    let seals = report.seals.unwrap();
    assert!(seals.pinned);
    assert_eq!((seals.seals, seals.signed_to, seals.unsealed, seals.damaged), (2, 4, 2, 0));
    let reach = &seals.witnesses[0];
    assert_eq!((reach.to, reach.at), (4, COSIGNED_AT));
    assert!(!files.verify(Mode::Strict).seals.unwrap().pinned);

    let report = part().verify_with(Mode::Strict, LogKeys::usual().trust());
    assert!(report.passed(), "{:?}", report.findings.kept());
    let part = report.part.unwrap();
    assert_eq!((part.total, part.proven, part.unsealed, part.omitted_parents), (6, 2, 1, 2));
    assert_eq!(report.seals.unwrap().witnesses[0].to, 5);
}

/// Lenient verify ignores seals, as a reader of v0.1 does.
#[test]
fn a_reader_that_knows_no_seals_loses_nothing() {
    let mut files = plain();
    seal(&mut files, &LogKeys::usual(), &[2, 4]);
    assert!(files.verify(Mode::Lenient).passed());
    files.set(CHECKPOINTS, "garbage");
    assert!(files.verify(Mode::Lenient).passed());
    let new = NewRecord {
        kind: RecordType::FileRename,
        principal: Principal::Sys,
        taint: Vec::new(),
        parents: Vec::new(),
        meta: plain().records()[0].meta.clone(),
        payload: inline("1"),
    };
    let mut records = files.records();
    records.push(new.seal().unwrap());
    files.rewrite(&records);
    assert_eq!(checks(&files.verify(Mode::Lenient)), ["record-type-extended"]);
}

/// A caller can demand that its witnesses vouch: then their silence is a finding.
#[test]
fn a_demanded_witness_that_is_silent_is_missed() {
    let trust = Trust { demand_witnesses: true, ..LogKeys::usual().trust() };
    for whole in [sealed_sample(), part()] {
        assert!(whole.verify_with(Mode::Strict, trust.clone()).passed());
        let mut files = whole.clone();
        files.0.remove(COSIGNED);
        let report = files.verify_with(Mode::Strict, trust.clone());
        assert_eq!(checks(&report), ["witness-missing"]);
        // A line of its name and key id that another key made is worse than none.
        let mut files = whole.clone();
        edit_notes(&mut files, COSIGNED, |notes| notes[0].signatures[2].bytes[20] ^= 1);
        let report = files.verify_with(Mode::Strict, trust.clone());
        assert_eq!(checks(&report), ["witness-signature", "witness-missing"]);
    }
    // It vouched for another history only.
    let mut files = sealed_sample();
    let cosigned = files.get(COSIGNED).to_vec();
    consistent_rewrite(&mut files);
    seal(&mut files, &LogKeys::usual(), &[2, 4, 6]);
    files.set(COSIGNED, cosigned);
    let report = files.verify_with(Mode::Strict, trust.clone());
    assert_eq!(checks(&report), ["witness-head", "witness-missing"]);
    let unsealed = sample().verify_with(Mode::Strict, trust);
    assert_eq!(checks(&unsealed), ["seal-origin", "witness-missing"]);
}
