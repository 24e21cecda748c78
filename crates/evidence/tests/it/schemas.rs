//! The JSON Schemas in `schemas/`: made from the types, kept in the repository, and judged by a
//! validator that is not ours.

use std::path::{Path, PathBuf};

use jsonschema::Validator;
use serde_json::Value;
use wardkeep_evidence::schema;

use crate::lab::{part, sample};
use crate::shared::{bless, vectors_folder};

fn schemas_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas")
}

fn validator(name: &str) -> Validator {
    let bytes = std::fs::read(schemas_folder().join(name)).unwrap();
    let schema = serde_json::from_slice(&bytes).unwrap();
    jsonschema::meta::validate(&schema).unwrap_or_else(|error| panic!("{name}: {error}"));
    jsonschema::validator_for(&schema).unwrap()
}

#[test]
fn the_schemas_in_the_repository_are_those_of_the_types() {
    let mut names = Vec::new();
    for (name, schema) in schema::all() {
        let mut text = serde_json::to_vec_pretty(&schema).unwrap();
        text.push(b'\n');
        bless(&schemas_folder().join(name), &text);
        names.push(name.to_owned());
    }
    // Other crates keep theirs there too; all of them are schemas.
    for entry in std::fs::read_dir(schemas_folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".json") {
            validator(&name);
        }
    }
    names.sort();
    names.dedup();
    assert_eq!(names.len(), schema::all().len());
}

const FILES: [(&str, &str); 5] = [
    ("manifest.json", "manifest.schema.json"),
    ("records.jsonl", "record.schema.json"),
    ("audit-log.jsonl", "audit-entry.schema.json"),
    ("seals/part.json", "part.schema.json"),
    ("seals/entries.jsonl", "part-entry.schema.json"),
];

/// Each JSON document of a file: its lines, or the whole of it.
fn documents(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    if path.extension().is_some_and(|extension| extension == "jsonl") {
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    } else {
        vec![serde_json::from_str(&text).unwrap()]
    }
}

#[test]
fn every_line_of_every_sound_bundle_validates() {
    let mut count = 0;
    for folder in [vectors_folder("aegx-v0.1/f1-generated"), vectors_folder("wardkeep/bundles")] {
        for bundle in std::fs::read_dir(folder).unwrap() {
            let bundle = bundle.unwrap().path();
            for (file, schema) in FILES {
                let path = bundle.join(file);
                if !path.is_file() {
                    continue;
                }
                let validator = validator(schema);
                for document in documents(&path) {
                    if let Err(error) = validator.validate(&document) {
                        panic!("{}: {error} at {}", path.display(), error.instance_path());
                    }
                    count += 1;
                }
            }
        }
    }
    assert!(count > 80, "{count} documents");
}

/// Changed documents that the schema alone can refuse, by the file they stand in.
#[test]
fn what_breaks_the_form_does_not_validate() {
    let records: Vec<Value> =
        sample().lines("records.jsonl").iter().map(|l| serde_json::from_str(l).unwrap()).collect();
    let entry: Value = serde_json::from_str(&sample().lines("audit-log.jsonl")[1]).unwrap();
    let manifest: Value = serde_json::from_slice(sample().get("manifest.json")).unwrap();
    let description: Value = serde_json::from_slice(part().get("seals/part.json")).unwrap();
    let journal = serde_json::json!({"entry": entry, "record": records[1]});
    type Edit = fn(&mut Value);
    let remove = |value: &mut Value, name: &str| {
        assert!(value.as_object_mut().unwrap().remove(name).is_some());
    };
    let record_edits: &[(&str, Edit)] = &[
        ("unknown member", |r| r["verdict"] = 1.into()),
        ("unknown type", |r| r["type"] = "SessionEnd".into()),
        ("unknown principal", |r| r["principal"] = "ROOT".into()),
        ("principal in lower case", |r| r["principal"] = "sys".into()),
        ("id in upper case", |r| r["recordId"] = "A".repeat(64).into()),
        ("id too short", |r| r["recordId"] = "a".repeat(63).into()),
        ("id with a newline", |r| r["recordId"] = format!("{}\n", "a".repeat(64)).into()),
        ("taint not a list", |r| r["taint"] = "x".into()),
        ("taint of numbers", |r| r["taint"] = serde_json::json!([1])),
        ("parent not a hash", |r| r["parents"] = serde_json::json!(["../x"])),
        ("meta null", |r| r["meta"] = Value::Null),
        ("time with an offset", |r| r["meta"]["ts"] = "2026-01-02T03:04:05+00:00".into()),
        ("time with a fraction", |r| r["meta"]["ts"] = "2026-01-02T03:04:05.1Z".into()),
        ("time as a number", |r| r["meta"]["ts"] = 1.into()),
        ("payload empty", |r| r["payload"] = serde_json::json!({})),
        ("payload with both forms", |r| r["payload"]["blob"] = "a".repeat(64).into()),
        ("payload with an unknown member", |r| r["payload"]["x"] = 1.into()),
        ("schema 0.2", |r| r["schema"] = "0.2".into()),
        ("schema null", |r| r["schema"] = Value::Null),
        ("extensions null", |r| r["extensions"] = Value::Null),
        ("extensions a list", |r| r["extensions"] = serde_json::json!([])),
    ];
    let blob_edits: &[(&str, Edit)] = &[
        ("negative size", |r| r["payload"]["size"] = (-1).into()),
        ("size with a fraction", |r| r["payload"]["size"] = 1.5.into()),
        ("size as text", |r| r["payload"]["size"] = "6".into()),
        ("mime null", |r| r["payload"]["mime"] = Value::Null),
        ("blob not a hash", |r| r["payload"]["blob"] = "x".into()),
        ("inline beside it", |r| r["payload"]["inline"] = 1.into()),
    ];
    let entry_edits: &[(&str, Edit)] = &[
        ("unknown member", |e| e["actor"] = 1.into()),
        ("negative index", |e| e["idx"] = (-1).into()),
        ("index with a fraction", |e| e["idx"] = 1.5.into()),
        ("index as text", |e| e["idx"] = "1".into()),
        ("time of another form", |e| e["ts"] = "yesterday".into()),
        ("prev null", |e| e["prev"] = Value::Null),
        ("hash not a hash", |e| e["entryHash"] = "x".into()),
    ];
    let manifest_edits: &[(&str, Edit)] = &[
        ("unknown member", |m| m["extra"] = 1.into()),
        ("another version", |m| m["aegx_version"] = "0.2".into()),
        ("another hash", |m| m["hash_alg"] = "md5".into()),
        ("another canonical form", |m| m["canonicalization"] = "".into()),
        ("negative count", |m| m["record_count"] = (-1).into()),
        ("count with a fraction", |m| m["blob_count"] = 0.5.into()),
        ("root not a hash", |m| m["root_records"] = serde_json::json!(["x"])),
        ("head null", |m| m["audit_head"] = Value::Null),
        ("time of another form", |m| m["created_at"] = "2026-01-02".into()),
        ("meta null", |m| m["meta"] = Value::Null),
        ("meta a list", |m| m["meta"] = serde_json::json!([])),
        ("extensions null", |m| m["extensions"] = Value::Null),
    ];
    let part_edits: &[(&str, Edit)] = &[
        ("unknown member", |p| p["x"] = 1.into()),
        ("version 2", |p| p["version"] = 2.into()),
        ("negative total", |p| p["total"] = (-1).into()),
        ("sealed as text", |p| p["sealed"] = "5".into()),
        ("parents null", |p| p["omitted_parents"] = Value::Null),
        ("parent not a hash", |p| p["omitted_parents"] = serde_json::json!(["x"])),
    ];
    let part_entry: Value = serde_json::from_str(&part().lines("seals/entries.jsonl")[0]).unwrap();
    let part_entry_edits: &[(&str, Edit)] = &[
        ("unknown member", |e| e["x"] = 1.into()),
        ("proof as text", |e| e["proof"] = "x".into()),
        ("hash in hexadecimal", |e| e["proof"][0] = "a".repeat(64).into()),
        ("proof of numbers", |e| e["proof"][0] = 1.into()),
    ];
    let journal_edits: &[(&str, Edit)] = &[
        ("unknown member", |j| j["x"] = 1.into()),
        ("unknown member of the record", |j| j["record"]["x"] = 1.into()),
        ("unknown member of the entry", |j| j["entry"]["x"] = 1.into()),
    ];
    type Table<'a> = (&'a str, &'a Value, &'a [(&'a str, Edit)]);
    let tables: [Table<'_>; 7] = [
        ("record.schema.json", &records[1], record_edits),
        ("record.schema.json", &records[3], blob_edits),
        ("audit-entry.schema.json", &entry, entry_edits),
        ("manifest.schema.json", &manifest, manifest_edits),
        ("part.schema.json", &description, part_edits),
        ("part-entry.schema.json", &part_entry, part_entry_edits),
        ("journal-line.schema.json", &journal, journal_edits),
    ];
    let mut accepted = Vec::new();
    for (schema, good, edits) in tables {
        let validator = validator(schema);
        if let Err(error) = validator.validate(good) {
            panic!("{schema} refuses a good one: {error}");
        }
        for (name, edit) in edits {
            let mut bad = good.clone();
            edit(&mut bad);
            if validator.is_valid(&bad) {
                accepted.push(format!("{schema}: {name}"));
            }
        }
        let optional = ["schema", "extensions", "meta"];
        for name in good.as_object().unwrap().keys() {
            let mut bad = good.clone();
            remove(&mut bad, name);
            let may_miss = optional.contains(&name.as_str())
                && !(schema == "record.schema.json" && name == "meta");
            if validator.is_valid(&bad) != may_miss {
                accepted.push(format!("{schema}: without {name}"));
            }
        }
    }
    assert!(accepted.is_empty(), "{}", accepted.join("\n"));
}

/// Of the tampered vectors, those that break the form and nothing else.
#[test]
fn tampered_vectors_that_break_the_form_do_not_validate() {
    let folder = vectors_folder("aegx-v0.1/f1-tamper");
    for (name, file, schema) in [
        ("13_schema_version", "manifest.json", "manifest.schema.json"),
        ("14_manifest_extra_field", "manifest.json", "manifest.schema.json"),
        ("17_unknown_principal", "records.jsonl", "record.schema.json"),
        ("18_meta_without_ts", "records.jsonl", "record.schema.json"),
        ("31_unknown_field", "records.jsonl", "record.schema.json"),
    ] {
        let validator = validator(schema);
        let documents = documents(&folder.join(name).join(file));
        assert!(documents.iter().any(|document| !validator.is_valid(document)), "{name}");
    }
}
