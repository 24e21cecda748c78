//! The tamper table: one way to cheat a row, and the check that must name it first.

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

fn set_index(files: &mut Files, line: usize, index: u64) {
    let current = format!("{{\"idx\":{line},");
    files.replace(AUDIT_LOG, line, &current, &format!("{{\"idx\":{index},"));
}

fn edit_part_entry(files: &mut Files, line: usize, edit: impl FnOnce(&mut serde_json::Value)) {
    files.edit_lines(PART_ENTRIES, |lines| {
        let mut value = serde_json::from_str(&lines[line]).unwrap();
        edit(&mut value);
        lines[line] = value.to_string();
    });
}

fn edit_part(files: &mut Files, edit: impl FnOnce(&mut serde_json::Value)) {
    let mut value = serde_json::from_slice(files.get(PART)).unwrap();
    edit(&mut value);
    files.set(PART, value.to_string());
}

fn rename_blob(files: &mut Files, name: &str) {
    let old = files.0.keys().find(|name| name.starts_with("blobs/")).unwrap().clone();
    let bytes = files.0.remove(&old).unwrap();
    files.set(name, bytes);
}

const RECORD_ROWS: &[Row] = &[
    row(
        "payload edited",
        Base::Plain,
        |f| f.replace(RECORDS, 1, "notes", "votes"),
        Check::RecordId,
    ),
    row("principal edited", Base::Plain, |f| f.replace(RECORDS, 1, "USER", "SYS"), Check::RecordId),
    row(
        "type edited",
        Base::Plain,
        |f| f.replace(RECORDS, 1, "ToolCall", "FileRead"),
        Check::RecordId,
    ),
    row(
        "taint removed",
        Base::Sample,
        |f| f.replace(RECORDS, 3, "\"WEB_DERIVED\",", ""),
        Check::RecordId,
    ),
    row(
        "parents removed",
        Base::Plain,
        |f| {
            f.edit_lines(RECORDS, |lines| {
                let from = lines[1].find("\"parents\":[").unwrap() + 11;
                lines[1].replace_range(from..from + 66, "");
            })
        },
        Check::RecordId,
    ),
    row(
        "time edited",
        Base::Plain,
        |f| f.replace(RECORDS, 0, "03:04:05Z", "03:04:06Z"),
        Check::RecordId,
    ),
    row(
        "id edited",
        Base::Plain,
        |f| {
            f.edit_lines(RECORDS, |lines| {
                let last = if lines[3].as_bytes()[76] == b'0' { "1" } else { "0" };
                lines[3].replace_range(76..77, last);
            })
        },
        Check::RecordId,
    ),
    row(
        "mime edited",
        Base::Plain,
        |f| f.replace(RECORDS, 2, "text/plain", "text/html"),
        Check::RecordId,
    ),
    row(
        "schema 0.2",
        Base::Plain,
        |f| {
            f.replace(RECORDS, 0, "\"schema\":\"0.1\"", "\"schema\":\"0.2\"");
        },
        Check::RecordSchema,
    ),
    row(
        "schema null",
        Base::Plain,
        |f| {
            f.replace(RECORDS, 0, "\"schema\":\"0.1\"", "\"schema\":null");
        },
        Check::RecordField,
    ),
    row(
        "id in upper case",
        Base::Plain,
        |f| {
            f.edit_lines(RECORDS, |lines| {
                lines[0] = lines[0].replacen(
                    &lines[0][13..77].to_owned(),
                    &lines[0][13..77].to_uppercase(),
                    1,
                );
            })
        },
        Check::RecordSchema,
    ),
    row(
        "parent not a hash",
        Base::Plain,
        |f| {
            f.edit_lines(RECORDS, |lines| {
                let from = lines[1].find("\"parents\":[").unwrap() + 12;
                lines[1].replace_range(from..from + 64, "../../etc/passwd");
            })
        },
        Check::RecordSchema,
    ),
    row(
        "blob not a hash",
        Base::Plain,
        |f| {
            f.edit_lines(RECORDS, |lines| {
                let from = lines[2].find("\"blob\":\"").unwrap() + 8;
                lines[2].replace_range(from..from + 64, "../records.jsonl");
            })
        },
        Check::RecordSchema,
    ),
    row(
        "no such date",
        Base::Plain,
        |f| {
            let mut records = f.records();
            records[3].meta.set("ts", "2026-02-30T00:00:00Z".into());
            records[3] = mended(records[3].clone());
            f.rewrite(&records);
        },
        Check::RecordTimestamp,
    ),
    row(
        "time with an offset",
        Base::Plain,
        |f| {
            f.replace(RECORDS, 0, "03:04:05Z", "03:04:05+00:00");
        },
        Check::RecordSchema,
    ),
    row(
        "meta without ts",
        Base::Plain,
        |f| f.replace(RECORDS, 0, "\"ts\"", "\"tz\""),
        Check::RecordSchema,
    ),
    row(
        "unknown type",
        Base::Plain,
        |f| {
            f.replace(RECORDS, 0, "SessionStart", "SessionEnd");
        },
        Check::RecordField,
    ),
    row(
        "unknown principal",
        Base::Plain,
        |f| f.replace(RECORDS, 0, "SYS", "ROOT"),
        Check::RecordField,
    ),
    row(
        "member missing",
        Base::Plain,
        |f| f.replace(RECORDS, 0, "\"taint\":[],", ""),
        Check::RecordField,
    ),
    row(
        "negative size",
        Base::Plain,
        |f| {
            f.replace(RECORDS, 2, "\"size\":6", "\"size\":-6");
        },
        Check::RecordField,
    ),
    row(
        "size as a float",
        Base::Plain,
        |f| {
            f.replace(RECORDS, 2, "\"size\":6", "\"size\":6.0");
        },
        Check::RecordField,
    ),
    row(
        "unknown member",
        Base::Plain,
        |f| {
            f.replace(RECORDS, 1, "{", "{\"verdict\":\"allow\",");
        },
        Check::RecordUnknownMember,
    ),
    row(
        "unknown member in the payload",
        Base::Plain,
        |f| {
            f.replace(RECORDS, 1, "\"payload\":{", "\"payload\":{\"shown\":1,");
        },
        Check::RecordUnknownMember,
    ),
    row(
        "payload in both forms",
        Base::Plain,
        |f| {
            f.replace(RECORDS, 2, "\"payload\":{", "\"payload\":{\"inline\":1,");
        },
        Check::RecordUnknownMember,
    ),
    row(
        "inline beside a size",
        Base::Plain,
        |f| {
            f.replace(RECORDS, 1, "\"payload\":{", "\"payload\":{\"size\":1,");
        },
        Check::RecordUnknownMember,
    ),
    row(
        "extensions null",
        Base::Plain,
        |f| {
            f.edit_lines(RECORDS, |lines| {
                lines[0].pop();
                lines[0].push_str(",\"extensions\":null}");
            })
        },
        Check::RecordUnknownMember,
    ),
    row(
        "extensions not an object",
        Base::Plain,
        |f| {
            f.edit_lines(RECORDS, |lines| {
                lines[0].pop();
                lines[0].push_str(",\"extensions\":[1]}");
            })
        },
        Check::RecordSchema,
    ),
    row(
        "key twice",
        Base::Plain,
        |f| {
            f.replace(RECORDS, 1, "{", "{\"principal\":\"SYS\",");
        },
        Check::RecordDuplicateKey,
    ),
    row(
        "key twice, nested",
        Base::Plain,
        |f| {
            f.replace(RECORDS, 1, "\"arguments\":{", "\"arguments\":{\"path\":\"shown\",");
        },
        Check::RecordDuplicateKey,
    ),
    row(
        "key twice in meta",
        Base::Plain,
        |f| {
            f.replace(RECORDS, 1, "\"meta\":{", "\"meta\":{\"session\":\"lab:2\",");
        },
        Check::RecordDuplicateKey,
    ),
    row(
        "key twice, once escaped",
        Base::Plain,
        |f| {
            f.replace(RECORDS, 1, "\"arguments\":{", "\"arguments\":{\"p\\u0061th\":\"shown\",");
        },
        Check::RecordDuplicateKey,
    ),
];

const LINE_ROWS: &[Row] = &[
    row(
        "blank line",
        Base::Plain,
        |f| {
            f.edit_lines(RECORDS, |lines| {
                lines.insert(1, String::new());
            })
        },
        Check::LineBlank,
    ),
    row(
        "blank line at the end",
        Base::Plain,
        |f| {
            f.edit_lines(AUDIT_LOG, |lines| {
                lines.push(" ".to_owned());
            })
        },
        Check::LineBlank,
    ),
    row(
        "no final newline",
        Base::Plain,
        |f| {
            let mut bytes = f.get(RECORDS).to_vec();
            bytes.pop();
            f.set(RECORDS, bytes);
        },
        Check::LineUnterminated,
    ),
    row(
        "no final newline in the audit log",
        Base::Plain,
        |f| {
            let mut bytes = f.get(AUDIT_LOG).to_vec();
            bytes.pop();
            f.set(AUDIT_LOG, bytes);
        },
        Check::LineUnterminated,
    ),
    row(
        "byte order mark",
        Base::Plain,
        |f| {
            let text = format!("\u{feff}{}", f.text(RECORDS));
            f.set(RECORDS, text);
        },
        Check::RecordJson,
    ),
    row(
        "byte order mark before the manifest",
        Base::Plain,
        |f| {
            let text = format!("\u{feff}{}", f.text(MANIFEST));
            f.set(MANIFEST, text);
        },
        Check::ManifestJson,
    ),
    row(
        "carriage returns",
        Base::Plain,
        |f| {
            let text = f.text(RECORDS).replace('\n', "\r\n");
            f.set(RECORDS, text);
        },
        Check::LinePadding,
    ),
    row(
        "carriage returns in the audit log",
        Base::Plain,
        |f| {
            let text = f.text(AUDIT_LOG).replace('\n', "\r\n");
            f.set(AUDIT_LOG, text);
        },
        Check::LinePadding,
    ),
    row(
        "a space before a record",
        Base::Plain,
        |f| {
            f.edit_lines(RECORDS, |lines| lines[2].insert(0, ' '));
        },
        Check::LinePadding,
    ),
    row(
        "not UTF-8",
        Base::Plain,
        |f| {
            let mut bytes = f.get(RECORDS).to_vec();
            let at = f.text(RECORDS).find("notes").unwrap();
            bytes[at] = 0xff;
            f.set(RECORDS, bytes);
        },
        Check::RecordJson,
    ),
    row(
        "not UTF-8 in the audit log",
        Base::Plain,
        |f| {
            let mut bytes = f.get(AUDIT_LOG).to_vec();
            bytes[20] = 0xc0;
            f.set(AUDIT_LOG, bytes);
        },
        Check::EntryJson,
    ),
    row(
        "something behind the object",
        Base::Plain,
        |f| {
            f.edit_lines(RECORDS, |lines| lines[1].push_str("{}"));
        },
        Check::RecordJson,
    ),
    row(
        "something behind the entry",
        Base::Plain,
        |f| {
            f.edit_lines(AUDIT_LOG, |lines| lines[1].push('}'));
        },
        Check::EntryJson,
    ),
    row(
        "a line that is no JSON",
        Base::Plain,
        |f| {
            f.edit_lines(RECORDS, |lines| lines.push("{oops".to_owned()));
        },
        Check::RecordJson,
    ),
    row(
        "a line that is null",
        Base::Plain,
        |f| {
            f.edit_lines(RECORDS, |lines| lines.push("null".to_owned()));
            let mut ids: Vec<_> = f.records_ids(4);
            ids.push(RecordId::ZERO);
            f.rechain(&ids);
            f.edit_manifest(|m| m["record_count"] = 5.into());
        },
        Check::RecordField,
    ),
    row(
        "two records on a line",
        Base::Plain,
        |f| {
            f.edit_lines(RECORDS, |lines| {
                let second = lines.remove(1);
                lines[0].push_str(&second);
            })
        },
        Check::RecordJson,
    ),
];

const CHAIN_ROWS: &[Row] = &[
    row(
        "record removed, its entry kept",
        Base::Plain,
        |f| {
            f.edit_lines(RECORDS, |lines| {
                lines.remove(3);
            });
            f.edit_manifest(|m| m["record_count"] = 3.into());
            f.edit_manifest(|m| {
                m["root_records"].as_array_mut().unwrap().pop();
            });
        },
        Check::EntryWithoutRecord,
    ),
    row(
        "record forged, without an entry",
        Base::Plain,
        |f| {
            let forged =
                record(RecordType::FileRead, Principal::Sys, &[&f.records()[0]], &[], inline("1"));
            f.edit_lines(RECORDS, |lines| lines.push(record_line(&forged)));
            f.edit_manifest(|m| m["record_count"] = 5.into());
        },
        Check::RecordWithoutEntry,
    ),
    row(
        "entries of records that are nowhere",
        Base::Plain,
        |f| {
            let ids: Vec<_> = (0..4u8).map(|n| RecordId(sha256(&[n]))).collect();
            f.rechain(&ids);
        },
        Check::EntryWithoutRecord,
    ),
    row(
        "record doubled, one entry",
        Base::Plain,
        |f| {
            f.edit_lines(RECORDS, |lines| lines.push(lines[3].clone()));
            f.edit_manifest(|m| {
                m["record_count"] = 5.into();
                let root = m["root_records"][1].clone();
                m["root_records"].as_array_mut().unwrap().push(root);
            });
        },
        Check::RecordDuplicate,
    ),
    row(
        "record doubled with its entry",
        Base::Plain,
        |f| {
            let mut records = f.records();
            records.push(records[1].clone());
            f.rewrite(&records);
        },
        Check::RecordDuplicate,
    ),
    row(
        "parent after its child",
        Base::Plain,
        |f| {
            let mut records = f.records();
            records.swap(0, 1);
            f.rewrite(&records);
        },
        Check::RecordParentLater,
    ),
    row(
        "parent nowhere",
        Base::Plain,
        |f| {
            let mut records = f.records();
            records[1].parents = vec![RecordId(sha256(b"nowhere"))];
            records[1] = mended(records[1].clone());
            records[2].parents = vec![records[1].id];
            records[2] = mended(records[2].clone());
            f.rewrite(&records);
        },
        Check::RecordParentUnknown,
    ),
    row(
        "records in another order",
        Base::Plain,
        |f| {
            f.edit_lines(RECORDS, |lines| lines.swap(2, 3));
        },
        Check::EntryOrder,
    ),
    row(
        "entries swapped",
        Base::Plain,
        |f| {
            f.edit_lines(AUDIT_LOG, |lines| lines.swap(1, 2));
        },
        Check::EntryIndex,
    ),
    row(
        "entries swapped and chained anew",
        Base::Plain,
        |f| {
            let mut ids: Vec<_> = f.records().iter().map(|record| record.id).collect();
            ids.swap(1, 2);
            f.rechain(&ids);
        },
        Check::EntryOrder,
    ),
    row(
        "entry removed",
        Base::Plain,
        |f| {
            f.edit_lines(AUDIT_LOG, |lines| {
                lines.remove(1);
            });
        },
        Check::EntryIndex,
    ),
    row(
        "last entry removed",
        Base::Plain,
        |f| {
            f.edit_lines(AUDIT_LOG, |lines| {
                lines.pop();
            });
        },
        Check::RecordWithoutEntry,
    ),
    row(
        "entry doubled",
        Base::Plain,
        |f| {
            let mut ids: Vec<_> = f.records().iter().map(|record| record.id).collect();
            ids.insert(1, ids[0]);
            f.rechain(&ids);
        },
        Check::EntryRecordTwice,
    ),
    row("index edited", Base::Plain, |f| set_index(f, 2, 7), Check::EntryIndex),
    row(
        "index as a float",
        Base::Plain,
        |f| {
            f.replace(AUDIT_LOG, 2, "{\"idx\":2,", "{\"idx\":2.0,");
        },
        Check::EntryField,
    ),
    row(
        "prev edited",
        Base::Plain,
        |f| {
            f.edit_lines(AUDIT_LOG, |lines| {
                let from = lines[2].find("\"prev\":\"").unwrap() + 8;
                lines[2].replace_range(from..from + 64, &"a".repeat(64));
            })
        },
        Check::EntryPrevious,
    ),
    row(
        "entry hash edited",
        Base::Plain,
        |f| {
            f.edit_lines(AUDIT_LOG, |lines| {
                let from = lines[2].find("\"entryHash\":\"").unwrap() + 13;
                lines[2].replace_range(from..from + 64, &"a".repeat(64));
            })
        },
        Check::EntryHash,
    ),
    row(
        "entry time edited",
        Base::Plain,
        |f| {
            f.replace(AUDIT_LOG, 1, "03:04:05Z", "03:04:06Z");
        },
        Check::EntryHash,
    ),
    row(
        "entry time of another form",
        Base::Plain,
        |f| {
            f.replace(AUDIT_LOG, 1, "03:04:05Z", "03:04:05.1Z");
        },
        Check::EntrySchema,
    ),
    row(
        "entry names another record",
        Base::Plain,
        |f| {
            let (from, to) = (f.records()[1].id.to_string(), f.records()[3].id.to_string());
            f.replace(AUDIT_LOG, 1, &from, &to);
        },
        Check::EntryHash,
    ),
    row(
        "entry with an unknown member",
        Base::Plain,
        |f| {
            f.replace(AUDIT_LOG, 1, "{", "{\"actor\":\"me\",");
        },
        Check::EntryUnknownMember,
    ),
    row(
        "entry with a key twice",
        Base::Plain,
        |f| {
            f.replace(AUDIT_LOG, 1, "{", "{\"idx\":1,");
        },
        Check::EntryDuplicateKey,
    ),
    row(
        "entry without ts",
        Base::Plain,
        |f| {
            f.replace(AUDIT_LOG, 1, &format!("\"ts\":\"{CREATED_AT}\","), "");
        },
        Check::EntryField,
    ),
    row(
        "records removed",
        Base::Plain,
        |f| {
            f.0.remove(RECORDS);
        },
        Check::RecordsUnreadable,
    ),
    row(
        "audit log removed",
        Base::Plain,
        |f| {
            f.0.remove(AUDIT_LOG);
        },
        Check::AuditUnreadable,
    ),
];

const MANIFEST_ROWS: &[Row] = &[
    row(
        "manifest removed",
        Base::Plain,
        |f| {
            f.0.remove(MANIFEST);
        },
        Check::ManifestUnreadable,
    ),
    row("manifest is no object", Base::Plain, |f| f.set(MANIFEST, "[]"), Check::ManifestJson),
    row(
        "manifest with something behind it",
        Base::Plain,
        |f| {
            let text = format!("{}{{}}", f.text(MANIFEST));
            f.set(MANIFEST, text);
        },
        Check::ManifestJson,
    ),
    row(
        "head edited",
        Base::Plain,
        |f| {
            f.edit_manifest(|m| m["audit_head"] = "0".repeat(64).into());
        },
        Check::ManifestAuditHead,
    ),
    row(
        "record count edited",
        Base::Plain,
        |f| {
            f.edit_manifest(|m| m["record_count"] = 9.into());
        },
        Check::ManifestRecordCount,
    ),
    row(
        "blob count edited",
        Base::Plain,
        |f| {
            f.edit_manifest(|m| m["blob_count"] = 0.into());
        },
        Check::ManifestBlobCount,
    ),
    row(
        "count negative",
        Base::Plain,
        |f| {
            f.edit_manifest(|m| m["blob_count"] = (-1).into());
        },
        Check::ManifestSchema,
    ),
    row(
        "root left out",
        Base::Plain,
        |f| {
            f.edit_manifest(|m| {
                m["root_records"].as_array_mut().unwrap().remove(0);
            });
        },
        Check::ManifestRoots,
    ),
    row(
        "root too many",
        Base::Plain,
        |f| {
            let child = f.records()[1].id.to_string();
            f.edit_manifest(|m| m["root_records"].as_array_mut().unwrap().push(child.into()));
        },
        Check::ManifestRoots,
    ),
    row(
        "roots in another order",
        Base::Plain,
        |f| {
            f.edit_manifest(|m| m["root_records"].as_array_mut().unwrap().reverse());
        },
        Check::ManifestRoots,
    ),
    row(
        "root that is nowhere",
        Base::Plain,
        |f| {
            let nowhere = RecordId(sha256(b"nowhere")).to_string();
            f.edit_manifest(|m| m["root_records"].as_array_mut().unwrap().push(nowhere.into()));
        },
        Check::ManifestRoots,
    ),
    row(
        "root that is no hash",
        Base::Plain,
        |f| {
            f.edit_manifest(|m| m["root_records"][0] = "x".into());
        },
        Check::ManifestSchema,
    ),
    row(
        "another version",
        Base::Plain,
        |f| {
            f.edit_manifest(|m| m["aegx_version"] = "0.2".into());
        },
        Check::ManifestSchema,
    ),
    row(
        "another hash",
        Base::Plain,
        |f| {
            f.edit_manifest(|m| m["hash_alg"] = "md5".into());
        },
        Check::ManifestSchema,
    ),
    row(
        "another canonical form",
        Base::Plain,
        |f| {
            f.edit_manifest(|m| m["canonicalization"] = "none".into());
        },
        Check::ManifestSchema,
    ),
    row(
        "manifest with an unknown member",
        Base::Plain,
        |f| {
            f.edit_manifest(|m| m["extra"] = 1.into());
        },
        Check::ManifestSchema,
    ),
    row(
        "manifest without a member",
        Base::Plain,
        |f| {
            f.edit_manifest(|m| {
                m.as_object_mut().unwrap().remove("hash_alg");
            });
        },
        Check::ManifestSchema,
    ),
    row(
        "manifest with a key twice",
        Base::Plain,
        |f| {
            let text = f.text(MANIFEST).replacen('{', "{\"record_count\":4,", 1);
            f.set(MANIFEST, text);
        },
        Check::ManifestDuplicateKey,
    ),
    row(
        "manifest with a key twice, nested",
        Base::Plain,
        |f| {
            let text = f.text(MANIFEST).replacen('{', "{\"meta\":{\"a\":[{\"b\":1,\"b\":2}]},", 1);
            f.set(MANIFEST, text);
        },
        Check::ManifestDuplicateKey,
    ),
];

const FILE_ROWS: &[Row] = &[
    row(
        "blob edited",
        Base::Plain,
        |f| {
            let name = format!("blobs/{}", BlobHash(sha256(b"notes\n")));
            f.set(&name, "votes\n");
        },
        Check::BlobHash,
    ),
    row(
        "blob edited in length",
        Base::Plain,
        |f| {
            let name = format!("blobs/{}", BlobHash(sha256(b"notes\n")));
            f.set(&name, "vote\n");
        },
        Check::RecordBlobSize,
    ),
    row(
        "blob missing",
        Base::Plain,
        |f| {
            f.0.remove(&format!("blobs/{}", BlobHash(sha256(b"notes\n"))));
        },
        Check::RecordBlobMissing,
    ),
    row(
        "blob renamed to another hash",
        Base::Plain,
        |f| {
            rename_blob(f, &format!("blobs/{}", "0".repeat(64)));
        },
        Check::RecordBlobMissing,
    ),
    row(
        "blob that nobody names, under a wrong name",
        Base::Plain,
        |f| {
            f.set(&format!("blobs/{}", "0".repeat(64)), "x");
            f.edit_manifest(|m| m["blob_count"] = 2.into());
        },
        Check::BlobHashUnreferenced,
    ),
    row(
        "blob named by no hash",
        Base::Plain,
        |f| {
            f.set("blobs/notes.txt", "notes\n");
            f.edit_manifest(|m| m["blob_count"] = 2.into());
        },
        Check::BlobName,
    ),
    row(
        "blob named in upper case",
        Base::Plain,
        |f| {
            let name = BlobHash(sha256(b"notes\n")).to_string().to_uppercase();
            rename_blob(f, &format!("blobs/{name}"));
        },
        Check::BlobName,
    ),
    row(
        "blob named like a path",
        Base::Plain,
        |f| {
            f.set("blobs/../x", "notes\n");
            f.edit_manifest(|m| m["blob_count"] = 2.into());
        },
        Check::BlobName,
    ),
    row(
        "record with the wrong size of its blob",
        Base::Plain,
        |f| {
            let mut records = f.records();
            if let Payload::Blob { size, .. } = &mut records[2].payload {
                *size = 7;
            }
            records[2] = mended(records[2].clone());
            f.rewrite(&records);
        },
        Check::RecordBlobSize,
    ),
    row(
        "report added",
        Base::Plain,
        |f| f.set("report.md", "# All clear\n"),
        Check::FileUnexpected,
    ),
    row("folder added", Base::Plain, |f| f.set("policy/rules", "allow\n"), Check::FileUnexpected),
    row(
        "unknown file among the seals",
        Base::SealedSample,
        |f| {
            f.set("seals/README", "trust me\n");
        },
        Check::FileUnexpected,
    ),
];

const SEAL_ROWS: &[Row] = &[
    row("everything rewritten to agree", Base::SealedSample, consistent_rewrite, Check::SealRoot),
    row("end cut off", Base::SealedSample, truncated_tail, Check::SealTruncated),
    row(
        "rewritten and cut off before the first seal",
        Base::SealedPlain,
        |f| {
            let records = f.records();
            f.rewrite(&records[..1]);
        },
        Check::SealTruncated,
    ),
    row(
        "signed again with another log key",
        Base::SealedSample,
        |f| {
            let other = LogKeys::new(&OTHER_SEED, &EPOCH_SEED);
            f.set(CHECKPOINTS, framed(&other.seals(&f.tree(), &[2, 4, 6])));
        },
        Check::SealOrigin,
    ),
    row(
        "signed again with another log key under the old name",
        Base::SealedSample,
        |f| {
            let other = LogKeys::new(&OTHER_SEED, &EPOCH_SEED);
            let text = notes(f, CHECKPOINTS)[1].text.clone();
            edit_notes(f, CHECKPOINTS, |notes| {
                notes[1].signatures[0].bytes = other.log.sign(&text).unwrap().bytes;
            });
        },
        Check::SealSignature,
    ),
    row(
        "signature of the log removed",
        Base::SealedSample,
        |f| {
            edit_notes(f, CHECKPOINTS, |notes| {
                notes[2].signatures.remove(0);
            });
        },
        Check::SealSignature,
    ),
    row(
        "signature of the epoch removed",
        Base::SealedSample,
        |f| {
            edit_notes(f, CHECKPOINTS, |notes| {
                notes[2].signatures.remove(1);
            });
        },
        Check::SealEpochSignature,
    ),
    row(
        "signature of the epoch by the log key",
        Base::SealedSample,
        |f| {
            edit_notes(f, CHECKPOINTS, |notes| {
                notes[2].signatures[1].bytes = notes[2].signatures[0].bytes.clone();
            });
        },
        Check::SealEpochSignature,
    ),
    row(
        "past sealed again by a thief of today's keys",
        Base::SealedSample,
        |f| {
            consistent_rewrite(f);
            let (keys, tree) = (LogKeys::usual(), f.tree());
            let thief = wardkeep_evidence::seal::EpochKey::restore(1, keys.epoch(2).seed());
            let slots = (FIRST_SLOT + 1, FIRST_SLOT + 1);
            let root = tree.root_at(4).unwrap();
            let forged = sign_seal(&keys.public, &keys.log, &thief, slots, 4, root).unwrap();
            edit_notes(f, CHECKPOINTS, |notes| notes[1] = forged);
        },
        Check::SealEpochKey,
    ),
    row(
        "epoch missing",
        Base::SealedSample,
        |f| {
            edit_notes(f, CHECKPOINTS, |notes| {
                notes.remove(1);
            });
        },
        Check::SealEpochMissing,
    ),
    row(
        "first epoch missing",
        Base::SealedSample,
        |f| {
            edit_notes(f, CHECKPOINTS, |notes| {
                notes.remove(0);
            });
        },
        Check::SealEpochMissing,
    ),
    row(
        "epoch doubled",
        Base::SealedSample,
        |f| {
            edit_notes(f, CHECKPOINTS, |notes| notes.insert(1, notes[1].clone()));
        },
        Check::SealEpochDoubled,
    ),
    row(
        "epochs swapped",
        Base::SealedSample,
        |f| {
            edit_notes(f, CHECKPOINTS, |notes| notes.swap(0, 1));
        },
        Check::SealEpochMissing,
    ),
    row(
        "root edited",
        Base::SealedSample,
        |f| {
            edit_notes(f, CHECKPOINTS, |notes| {
                let root = notes[0].text.lines().nth(2).unwrap().to_owned();
                notes[1].text = notes[1]
                    .text
                    .lines()
                    .enumerate()
                    .map(|(n, line)| format!("{}\n", if n == 2 { &root } else { line }))
                    .collect();
            });
        },
        Check::SealSignature,
    ),
    row(
        "size edited",
        Base::SealedSample,
        |f| {
            edit_notes(f, CHECKPOINTS, |notes| {
                notes[2].text = notes[2].text.replacen("\n6\n", "\n5\n", 1)
            });
        },
        Check::SealSignature,
    ),
    row(
        "log that shrank, signed so",
        Base::SealedSample,
        |f| {
            let keys = LogKeys::usual();
            f.set(CHECKPOINTS, framed(&keys.seals(&f.tree(), &[2, 4, 3])));
        },
        Check::SealSize,
    ),
    row(
        "slots reversed",
        Base::SealedSample,
        |f| {
            let keys = LogKeys::usual();
            let note = keys.seal(&f.tree(), 2, 6);
            let slot = FIRST_SLOT + 2;
            let text =
                note.text.replace(&format!("{slot}-{slot}"), &format!("{slot}-{}", slot - 1));
            let epoch = wardkeep_evidence::note::SigningKey::from_seed(
                &format!("{}/epoch", keys.public.origin()),
                wardkeep_evidence::note::Algorithm::Ed25519,
                keys.epoch(2).seed(),
            )
            .unwrap();
            let mut forged = Note::new(text).unwrap();
            forged.push(keys.log.sign(&forged.text).unwrap()).unwrap();
            forged.push(epoch.sign(&forged.text).unwrap()).unwrap();
            edit_notes(f, CHECKPOINTS, |notes| notes[2] = forged);
        },
        Check::SealSlots,
    ),
    row(
        "seal that is no seal",
        Base::SealedSample,
        |f| {
            let keys = LogKeys::usual();
            let text = format!("{}\n6\n{}\n", keys.public.origin(), f.tree().root_at(6).unwrap());
            let mut note = Note::new(text).unwrap();
            note.push(keys.log.sign(&note.text).unwrap()).unwrap();
            edit_notes(f, CHECKPOINTS, |notes| notes.push(note));
        },
        Check::SealFormat,
    ),
    row(
        "garbage among the seals",
        Base::SealedSample,
        |f| {
            let mut bytes = f.get(CHECKPOINTS).to_vec();
            bytes.extend_from_slice(b"~ 12\nnot a note");
            f.set(CHECKPOINTS, bytes);
        },
        Check::SealFormat,
    ),
    row(
        "keys removed, seals kept",
        Base::SealedSample,
        |f| {
            f.0.remove(LOG_PUBLIC);
        },
        Check::SealFormat,
    ),
    row("keys that are none", Base::SealedSample, |f| f.set(LOG_PUBLIC, "x\n"), Check::SealFormat),
    row(
        "keys swapped, seals kept",
        Base::SealedSample,
        |f| {
            let other = LogKeys::new(&OTHER_SEED, &OTHER_SEED);
            f.set(LOG_PUBLIC, format!("{}\n", other.public));
        },
        Check::SealOrigin,
    ),
    row(
        "cosigned note that is no note",
        Base::SealedSample,
        |f| {
            f.set(COSIGNED, "~ 4\nabc\n\n");
        },
        Check::SealFormat,
    ),
];

/// Rows that need the caller to trust keys.
const TRUST_ROWS: &[Row] = &[
    row(
        "sealed anew by another log",
        Base::SealedSample,
        |f| {
            consistent_rewrite(f);
            seal(f, &LogKeys::new(&OTHER_SEED, &OTHER_SEED), &[2, 4, 6]);
        },
        Check::SealOrigin,
    ),
    row(
        "first epoch key swapped",
        Base::SealedSample,
        |f| {
            seal(f, &LogKeys::new(&LOG_SEED, &OTHER_SEED), &[2, 4, 6]);
        },
        Check::SealOrigin,
    ),
    row(
        "seals removed",
        Base::SealedSample,
        |f| {
            consistent_rewrite(f);
            f.0.retain(|name, _| !name.starts_with("seals/"));
        },
        Check::SealOrigin,
    ),
    row(
        "rewritten and sealed with the stolen keys, witness unasked",
        Base::SealedSample,
        |f| {
            let cosigned = f.get(COSIGNED).to_vec();
            consistent_rewrite(f);
            seal(f, &LogKeys::usual(), &[2, 4, 6]);
            f.set(COSIGNED, cosigned);
        },
        Check::WitnessHead,
    ),
    row(
        "older state restored, sealed with the stolen keys",
        Base::SealedSample,
        |f| {
            let cosigned = f.get(COSIGNED).to_vec();
            let records = f.records();
            f.rewrite(&records[..4]);
            seal(f, &LogKeys::usual(), &[2, 4]);
            f.set(COSIGNED, cosigned);
        },
        Check::WitnessHead,
    ),
    row(
        "fork: the witness cosigned another history",
        Base::SealedSample,
        |f| {
            let mut other = f.clone();
            consistent_rewrite(&mut other);
            let keys = LogKeys::usual();
            let note = cosigned(&keys.seal(&other.tree(), 2, 6), &witness(), COSIGNED_AT);
            edit_notes(f, COSIGNED, |notes| notes.push(note));
        },
        Check::WitnessHead,
    ),
    row(
        "cosignature forged",
        Base::SealedSample,
        |f| {
            let forger = witness_from(&OTHER_SEED);
            edit_notes(f, COSIGNED, |notes| {
                let forged = forger.cosign(&notes[0].text, COSIGNED_AT).unwrap();
                notes[0].signatures[2].bytes = forged.bytes;
            });
        },
        Check::WitnessSignature,
    ),
    row(
        "time of a cosignature edited",
        Base::SealedSample,
        |f| {
            edit_notes(f, COSIGNED, |notes| notes[0].signatures[2].bytes[7] ^= 1);
        },
        Check::WitnessSignature,
    ),
    row(
        "cosigned head of another log",
        Base::SealedSample,
        |f| {
            let other = LogKeys::new(&OTHER_SEED, &OTHER_SEED);
            let note = cosigned(&other.seal(&f.tree(), 2, 6), &witness(), COSIGNED_AT);
            edit_notes(f, COSIGNED, |notes| notes[0] = note);
        },
        Check::SealOrigin,
    ),
    row(
        "cosigned head that the log never signed",
        Base::SealedSample,
        |f| {
            edit_notes(f, COSIGNED, |notes| {
                notes[0].signatures.remove(0);
            });
        },
        Check::SealSignature,
    ),
    row(
        "part: cosigned head of another history",
        Base::Part,
        |f| {
            let mut other = sample();
            consistent_rewrite(&mut other);
            let keys = LogKeys::usual();
            let note = cosigned(&keys.seal(&other.tree(), 1, 5), &witness(), COSIGNED_AT);
            edit_notes(f, COSIGNED, |notes| notes.push(note));
        },
        Check::WitnessHead,
    ),
];

const PART_ROWS: &[Row] = &[
    row(
        "part: entry of another record",
        Base::Part,
        |f| {
            f.edit_lines(PART_ENTRIES, |lines| {
                lines[0] = lines[1].clone();
            })
        },
        Check::PartEntry,
    ),
    row(
        "part: entries swapped",
        Base::Part,
        |f| {
            f.edit_lines(PART_ENTRIES, |lines| lines.swap(0, 1));
        },
        Check::PartEntry,
    ),
    row(
        "part: entry edited",
        Base::Part,
        |f| {
            edit_part_entry(f, 0, |e| e["ts"] = "2026-01-02T03:04:06Z".into());
        },
        Check::PartEntry,
    ),
    row(
        "part: entry made up, hash right",
        Base::Part,
        |f| {
            let mut entry = sample().entries()[1].clone();
            entry.timestamp = "2020-01-01T00:00:00Z".to_owned();
            let hash = entry.compute_hash(&mut Vec::new());
            edit_part_entry(f, 0, |e| {
                e["ts"] = entry.timestamp.into();
                e["entryHash"] = hash.to_string().into();
            });
        },
        Check::PartProof,
    ),
    row(
        "part: wrong hash in a proof",
        Base::Part,
        |f| {
            edit_part_entry(f, 0, |e| e["proof"][0] = e["proof"][1].clone());
        },
        Check::PartProof,
    ),
    row(
        "part: proof too short",
        Base::Part,
        |f| {
            edit_part_entry(f, 0, |e| {
                e["proof"].as_array_mut().unwrap().pop();
            });
        },
        Check::PartProof,
    ),
    row(
        "part: proof of another entry",
        Base::Part,
        |f| {
            let tree = sample().tree();
            let proof = tree.inclusion(2, 5).unwrap();
            edit_part_entry(f, 0, |e| e["proof"] = proof.iter().map(ToString::to_string).collect());
        },
        Check::PartProof,
    ),
    row(
        "part: proof left out",
        Base::Part,
        |f| {
            edit_part_entry(f, 0, |e| e["proof"] = serde_json::Value::Null);
        },
        Check::PartProof,
    ),
    row(
        "part: all said to be unsealed",
        Base::Part,
        |f| {
            for line in 0..2 {
                edit_part_entry(f, line, |e| e["proof"] = serde_json::Value::Null);
            }
            edit_part(f, |p| p["sealed"] = 0.into());
        },
        Check::PartProof,
    ),
    row(
        "part: proof that is none",
        Base::Part,
        |f| {
            edit_part_entry(f, 0, |e| e["proof"] = "yes".into());
        },
        Check::PartEntry,
    ),
    row(
        "part: entry missing",
        Base::Part,
        |f| {
            f.edit_lines(PART_ENTRIES, |lines| {
                lines.remove(1);
            });
        },
        Check::PartEntry,
    ),
    row(
        "part: entry too many",
        Base::Part,
        |f| {
            f.edit_lines(PART_ENTRIES, |lines| lines.push(lines[2].clone()));
        },
        Check::PartEntry,
    ),
    row(
        "part: entries cut in their last line",
        Base::Part,
        |f| {
            let mut bytes = f.get(PART_ENTRIES).to_vec();
            bytes.pop();
            f.set(PART_ENTRIES, bytes);
        },
        Check::LineUnterminated,
    ),
    row(
        "part: entries with carriage returns",
        Base::Part,
        |f| {
            let text = f.text(PART_ENTRIES).replace('\n', "\r\n");
            f.set(PART_ENTRIES, text);
        },
        Check::PartEntry,
    ),
    row(
        "part: entries removed",
        Base::Part,
        |f| {
            f.0.remove(PART_ENTRIES);
        },
        Check::PartEntry,
    ),
    row(
        "part: index beyond the log",
        Base::Part,
        |f| edit_part(f, |p| p["total"] = 5.into()),
        Check::PartEntry,
    ),
    row(
        "part: more sealed than there was",
        Base::Part,
        |f| {
            edit_part(f, |p| p["total"] = 4.into());
        },
        Check::PartFormat,
    ),
    row(
        "part: parent left out and not listed",
        Base::Part,
        |f| {
            edit_part(f, |p| {
                p["omitted_parents"].as_array_mut().unwrap().remove(0);
            });
        },
        Check::RecordParentUnknown,
    ),
    row(
        "part: record changed",
        Base::Part,
        |f| {
            f.replace(RECORDS, 0, "Gr\u{fc}\u{df}e", "Gru\u{df}");
        },
        Check::RecordId,
    ),
    row(
        "part: record replaced by another",
        Base::Part,
        |f| {
            let mut records = f.records();
            records[0].payload = inline("1");
            records[0] = mended(records[0].clone());
            records[2].parents[0] = records[0].id;
            records[2] = mended(records[2].clone());
            f.rewrite(&records);
        },
        Check::PartEntry,
    ),
    row(
        "part: seal of that size removed",
        Base::Part,
        |f| {
            edit_notes(f, CHECKPOINTS, |notes| {
                notes.pop();
            });
        },
        Check::PartProof,
    ),
    row(
        "part: keys and seals removed",
        Base::Part,
        |f| {
            for name in [LOG_PUBLIC, CHECKPOINTS, COSIGNED] {
                f.0.remove(name);
            }
        },
        Check::PartProof,
    ),
    row(
        "part: unknown member",
        Base::Part,
        |f| edit_part(f, |p| p["shown"] = 1.into()),
        Check::PartFormat,
    ),
    row(
        "part: version 2",
        Base::Part,
        |f| edit_part(f, |p| p["version"] = 2.into()),
        Check::PartFormat,
    ),
    row(
        "part: description removed",
        Base::Part,
        |f| {
            f.0.remove(PART);
        },
        Check::PartFormat,
    ),
    row("part: description is no JSON", Base::Part, |f| f.set(PART, "{"), Check::PartFormat),
    row(
        "sealed bundle passed off as a part",
        Base::SealedSample,
        |f| {
            consistent_rewrite(f);
            let lines: Vec<_> = f
                .lines(AUDIT_LOG)
                .iter()
                .map(|line| line.replace("\"}", "\",\"proof\":null}"))
                .collect();
            f.set_lines(PART_ENTRIES, &lines);
            f.set(
                PART,
                r#"{"version":1,"total":6,"sealed":6,"selection":null,"omitted_parents":[]}"#,
            );
        },
        Check::PartProof,
    ),
];

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
        let plants: [(&str, fn(&Path, &Path)); 2] = [
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
