//! Partial bundles that were changed.

use super::*;

fn edit_part_entry(files: &mut Files, line: usize, edit: impl FnOnce(&mut serde_json::Value)) {
    files.edit_lines(PART_ENTRIES, |lines| {
        let mut value = serde_json::from_str(&lines[line]).unwrap();
        edit(&mut value);
        value.sort_all_objects();
        lines[line] = value.to_string();
    });
}

fn edit_part(files: &mut Files, edit: impl FnOnce(&mut serde_json::Value)) {
    let mut value = serde_json::from_slice(files.get(PART)).unwrap();
    edit(&mut value);
    value.sort_all_objects();
    files.set(PART, value.to_string());
}

pub(super) const PART_ROWS: &[Row] = &[
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
