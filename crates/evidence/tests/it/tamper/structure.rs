//! Chain, manifest and files that were changed.

use super::*;

fn set_index(files: &mut Files, line: usize, index: u64) {
    let current = format!("{{\"idx\":{line},");
    files.replace(AUDIT_LOG, line, &current, &format!("{{\"idx\":{index},"));
}

fn rename_blob(files: &mut Files, name: &str) {
    let old = files.0.keys().find(|name| name.starts_with("blobs/")).unwrap().clone();
    let bytes = files.0.remove(&old).unwrap();
    files.set(name, bytes);
}

pub(super) const CHAIN_ROWS: &[Row] = &[
    row(
        "entry of a day that never was",
        Base::Plain,
        |f| {
            let mut entry = f.entries().pop().unwrap();
            entry.timestamp = "2026-02-30T00:00:00Z".to_owned();
            entry.hash = entry.compute_hash(&mut Vec::new());
            let mut line = Vec::new();
            entry.write_line(&mut line);
            f.edit_lines(AUDIT_LOG, |lines| lines[3] = String::from_utf8(line).unwrap());
            f.edit_manifest(|m| m["audit_head"] = entry.hash.to_string().into());
        },
        Check::EntryTimestamp,
    ),
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

pub(super) const MANIFEST_ROWS: &[Row] = &[
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

pub(super) const FILE_ROWS: &[Row] = &[
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
