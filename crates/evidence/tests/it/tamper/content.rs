//! Records and lines that were changed.

use super::*;

pub(super) const RECORD_ROWS: &[Row] = &[
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

pub(super) const LINE_ROWS: &[Row] = &[
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
