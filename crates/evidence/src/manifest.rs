//! `manifest.json`: what a bundle claims to hold. No hash covers it.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::io::Read;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, json};

use crate::check::Check;
use crate::hash::{EntryHash, RecordId, decode_hex};
use crate::json::{Bounded, MAX_VALUES};
use crate::time;

/// `aegx_version` of the format.
pub const AEGX_VERSION: &str = "0.1";
/// `hash_alg` of the format.
pub const HASH_ALGORITHM: &str = "sha256";
/// `canonicalization` of the format.
pub const CANONICALIZATION: &str = "AEGX_CANON_0_1";

/// Largest manifest that is read: a million root records need 71 MB.
pub const MAX_MANIFEST_BYTES: u64 = 512 << 20;

/// The members of `manifest.json` that are not constants.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// When the bundle was made.
    pub created_at: String,
    /// Records without parents, in file order.
    pub root_records: Vec<RecordId>,
    /// Number of records.
    pub record_count: u64,
    /// Number of blobs.
    pub blob_count: u64,
    /// Hash of the last audit entry.
    pub audit_head: EntryHash,
    /// Free, not authenticated.
    pub meta: Option<Map<String, serde_json::Value>>,
    /// Free, not authenticated.
    pub extensions: Option<Map<String, serde_json::Value>>,
}

/// One thing wrong with a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestDefect {
    /// The check that failed.
    pub check: Check,
    /// What should have stood there.
    pub expected: String,
    /// What stood there.
    pub found: String,
}

impl Manifest {
    /// The manifest of an empty bundle.
    #[must_use]
    pub fn empty(created_at: String) -> Self {
        Self {
            created_at,
            root_records: Vec::new(),
            record_count: 0,
            blob_count: 0,
            audit_head: EntryHash::ZERO,
            meta: None,
            extensions: None,
        }
    }

    /// The bytes of `manifest.json`: two spaces, keys in order, no newline at the end.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut object = json!({
            "aegx_version": AEGX_VERSION,
            "audit_head": self.audit_head,
            "blob_count": self.blob_count,
            "canonicalization": CANONICALIZATION,
            "created_at": self.created_at,
            "hash_alg": HASH_ALGORITHM,
            "record_count": self.record_count,
            "root_records": self.root_records,
        });
        for (name, value) in [("meta", &self.meta), ("extensions", &self.extensions)] {
            if let Some(value) = value {
                object[name] = serde_json::Value::Object(value.clone());
            }
        }
        // Another crate may make serde_json keep keys as they were put in.
        object.sort_all_objects();
        serde_json::to_vec_pretty(&object).unwrap_or_default()
    }

    /// Reads a manifest. `None` when it is too damaged to go on; the defects say why.
    pub fn read(reader: impl Read) -> (Option<Self>, Vec<ManifestDefect>) {
        let mut limited = std::io::BufReader::new(reader).take(MAX_MANIFEST_BYTES);
        match serde_json::from_reader::<_, Draft>(&mut limited) {
            Ok(draft) => draft.finish(),
            Err(error) => {
                let defect = ManifestDefect {
                    check: Check::ManifestJson,
                    expected: "a JSON object".to_owned(),
                    found: error.to_string(),
                };
                (None, vec![defect])
            }
        }
    }
}

/// What was read so far, with what was wrong about it.
#[derive(Default)]
struct Draft {
    seen: Vec<&'static str>,
    defects: Vec<ManifestDefect>,
    created_at: Option<String>,
    root_records: Option<Vec<RecordId>>,
    record_count: Option<u64>,
    blob_count: Option<u64>,
    audit_head: Option<EntryHash>,
    meta: Option<Map<String, serde_json::Value>>,
    extensions: Option<Map<String, serde_json::Value>>,
}

const MEMBERS: [&str; 10] = [
    "aegx_version",
    "created_at",
    "hash_alg",
    "canonicalization",
    "root_records",
    "record_count",
    "blob_count",
    "audit_head",
    "meta",
    "extensions",
];
const REQUIRED: usize = 8;

impl Draft {
    fn defect(&mut self, check: Check, expected: impl Into<String>, found: impl Into<String>) {
        // A manifest has few members; a hostile one could repeat a defect without end.
        if self.defects.len() < 100 {
            self.defects.push(ManifestDefect {
                check,
                expected: expected.into(),
                found: found.into(),
            });
        }
    }

    fn finish(mut self) -> (Option<Manifest>, Vec<ManifestDefect>) {
        for name in &MEMBERS[..REQUIRED] {
            if !self.seen.contains(name) {
                self.defect(Check::ManifestSchema, format!("a member `{name}`"), "nothing");
            }
        }
        let manifest = (|| {
            Some(Manifest {
                created_at: self.created_at?,
                root_records: self.root_records?,
                record_count: self.record_count?,
                blob_count: self.blob_count?,
                audit_head: self.audit_head?,
                meta: self.meta,
                extensions: self.extensions,
            })
        })();
        (manifest, self.defects)
    }

    fn constant(&mut self, name: &str, value: &serde_json::Value, expected: &str) {
        if value.as_str() != Some(expected) {
            let found = value.to_string();
            self.defect(Check::ManifestSchema, format!("`{name}` \"{expected}\""), found);
        }
    }

    fn count(&mut self, name: &str, value: &serde_json::Value) -> Option<u64> {
        let count = value.as_u64();
        if count.is_none() {
            self.defect(Check::ManifestSchema, format!("a count `{name}`"), value.to_string());
        }
        count
    }

    fn object(
        &mut self,
        name: &str,
        value: serde_json::Value,
    ) -> Option<Map<String, serde_json::Value>> {
        match value {
            serde_json::Value::Object(object) => Some(object),
            other => {
                self.defect(
                    Check::ManifestSchema,
                    format!("an object `{name}`"),
                    other.to_string(),
                );
                None
            }
        }
    }
}

impl<'de> Deserialize<'de> for Draft {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(DraftVisitor)
    }
}

struct DraftVisitor;

impl<'de> Visitor<'de> for DraftVisitor {
    type Value = Draft;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Draft, A::Error> {
        let mut draft = Draft::default();
        let budget = Cell::new(MAX_VALUES);
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            let Some(name) = MEMBERS.into_iter().find(|name| *name == key) else {
                draft.defect(Check::ManifestSchema, "only members of the format", key);
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            if draft.seen.contains(&name) {
                draft.defect(Check::ManifestDuplicateKey, "every key once", name);
            } else {
                draft.seen.push(name);
            }
            if name == "root_records" {
                let Roots(list, defect) = map.next_value()?;
                if let Some(found) = defect {
                    let expected = "`root_records`, an array of record ids";
                    draft.defect(Check::ManifestSchema, expected, found);
                } else {
                    draft.root_records = Some(list);
                }
                continue;
            }
            let value = map.next_value_seed(Bounded(&budget))?;
            if let Some(key) = value.duplicate_key() {
                draft.defect(Check::ManifestDuplicateKey, "every key once", key);
            }
            let value = serde_json::Value::from(value);
            match name {
                "aegx_version" => draft.constant(name, &value, AEGX_VERSION),
                "hash_alg" => draft.constant(name, &value, HASH_ALGORITHM),
                "canonicalization" => draft.constant(name, &value, CANONICALIZATION),
                "record_count" => draft.record_count = draft.count(name, &value),
                "blob_count" => draft.blob_count = draft.count(name, &value),
                "meta" => draft.meta = draft.object(name, value),
                "extensions" => draft.extensions = draft.object(name, value),
                "created_at" => {
                    match value.as_str().filter(|text| time::is_normal_spelling(text)) {
                        Some(text) => draft.created_at = Some(text.to_owned()),
                        None => {
                            let expected = "`created_at` like 2026-01-31T12:00:00Z";
                            draft.defect(Check::ManifestSchema, expected, value.to_string());
                        }
                    }
                }
                _ => match value.as_str().and_then(EntryHash::from_hex) {
                    Some(head) => draft.audit_head = Some(head),
                    None => {
                        let expected = "`audit_head` of 64 hexadecimal digits";
                        draft.defect(Check::ManifestSchema, expected, value.to_string());
                    }
                },
            }
        }
        Ok(draft)
    }
}

/// The root records, read without a text for each; the first that is no id.
struct Roots(Vec<RecordId>, Option<String>);

impl<'de> Deserialize<'de> for Roots {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RootsVisitor;
        impl<'de> Visitor<'de> for RootsVisitor {
            type Value = Roots;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an array of record ids")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Roots, A::Error> {
                let mut roots = Roots(Vec::new(), None);
                while let Some(text) = items.next_element::<Cow<'de, str>>()? {
                    match decode_hex(text.as_bytes()) {
                        Some(id) => roots.0.push(RecordId(id)),
                        None => roots.1 = roots.1.or(Some(text.into_owned())),
                    }
                }
                Ok(roots)
            }
        }
        deserializer.deserialize_seq(RootsVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_and_read_back() {
        let mut manifest = Manifest::empty("2026-01-02T03:04:05Z".to_owned());
        manifest.root_records.push(RecordId([7; 32]));
        manifest.record_count = 3;
        let (read, defects) = Manifest::read(&manifest.to_bytes()[..]);
        assert_eq!(defects, []);
        assert_eq!(read, Some(manifest));
    }

    #[test]
    fn each_defect_is_named() {
        let text = br#"{"aegx_version":"0.2","extra":1,"record_count":-1,"record_count":2}"#;
        let (manifest, defects) = Manifest::read(&text[..]);
        assert_eq!(manifest, None);
        let checks: Vec<_> = defects.iter().map(|defect| defect.check).collect();
        assert!(checks.contains(&Check::ManifestDuplicateKey));
        assert!(checks.iter().filter(|check| **check == Check::ManifestSchema).count() >= 8);
        assert_eq!(Manifest::read(&b"[]"[..]).1[0].check, Check::ManifestJson);
    }
}
