//! JSON Schemas of the files in a bundle, made from the types.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema, schema_for};

use crate::hash::{BlobHash, EntryHash, RecordId};
use crate::record::{Principal, RecordType};
use crate::verify::PartDescription;

/// Name of each schema file, and the schema.
#[must_use]
pub fn all() -> Vec<(&'static str, Schema)> {
    vec![
        ("manifest.schema.json", schema_for!(ManifestFile)),
        ("record.schema.json", schema_for!(RecordLine)),
        ("audit-entry.schema.json", schema_for!(EntryLine)),
        ("journal-line.schema.json", schema_for!(JournalLine)),
        ("part.schema.json", schema_for!(PartDescription)),
        ("part-entry.schema.json", schema_for!(PartEntryLine)),
    ]
}

/// `manifest.json` of a bundle.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "the fields describe the file and are never read")]
struct ManifestFile {
    #[schemars(extend("const" = "0.1"))]
    aegx_version: String,
    #[schemars(schema_with = "timestamp")]
    created_at: String,
    #[schemars(extend("const" = "sha256"))]
    hash_alg: String,
    #[schemars(extend("const" = "AEGX_CANON_0_1"))]
    canonicalization: String,
    /// Records without parents, in file order.
    root_records: Vec<RecordId>,
    record_count: u64,
    blob_count: u64,
    /// Hash of the last audit entry; 64 zeros if there is none.
    audit_head: EntryHash,
    // Optional members may be absent, not null.
    #[schemars(extend("type" = "object"))]
    meta: Option<serde_json::Map<String, serde_json::Value>>,
    #[schemars(extend("type" = "object"))]
    extensions: Option<serde_json::Map<String, serde_json::Value>>,
}

/// One line of `records.jsonl`.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "the fields describe the file and are never read")]
struct RecordLine {
    /// Hash over all members but itself and `extensions`.
    #[schemars(rename = "recordId")]
    record_id: RecordId,
    #[schemars(rename = "type")]
    kind: RecordType,
    principal: Principal,
    taint: Vec<String>,
    parents: Vec<RecordId>,
    meta: Meta,
    payload: PayloadForm,
    #[schemars(extend("type" = "string", "const" = "0.1"))]
    schema: Option<String>,
    /// Outside the hash.
    #[schemars(extend("type" = "object"))]
    extensions: Option<serde_json::Map<String, serde_json::Value>>,
}

/// Facts about a record; more members than `ts` are free.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "the fields describe the file and are never read")]
struct Meta {
    #[schemars(schema_with = "timestamp")]
    ts: String,
}

/// Content in place, or a blob beside it.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "the fields describe the file and are never read")]
enum PayloadForm {
    Inline(InlinePayload),
    Blob(BlobPayload),
}

/// Any JSON value in place.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "the fields describe the file and are never read")]
struct InlinePayload {
    #[schemars(required)]
    inline: serde_json::Value,
}

/// A blob by its name.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "the fields describe the file and are never read")]
struct BlobPayload {
    blob: BlobHash,
    mime: String,
    size: u64,
}

/// One line of `audit-log.jsonl`.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "the fields describe the file and are never read")]
struct EntryLine {
    idx: u64,
    #[schemars(schema_with = "timestamp")]
    ts: String,
    #[schemars(rename = "recordId")]
    record_id: RecordId,
    prev: EntryHash,
    #[schemars(rename = "entryHash")]
    entry_hash: EntryHash,
}

/// One line of `seals/entries.jsonl`: an entry of the original log.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "the fields describe the file and are never read")]
struct PartEntryLine {
    idx: u64,
    #[schemars(schema_with = "timestamp")]
    ts: String,
    #[schemars(rename = "recordId")]
    record_id: RecordId,
    prev: EntryHash,
    #[schemars(rename = "entryHash")]
    entry_hash: EntryHash,
    /// Hashes from the leaf upwards, in base64; null where no seal covers the entry.
    #[schemars(schema_with = "proof")]
    proof: Option<Vec<String>>,
}

/// One line of a journal segment.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "the fields describe the file and are never read")]
struct JournalLine {
    entry: EntryLine,
    record: RecordLine,
}

fn proof(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": ["array", "null"],
        "maxItems": 64,
        "items": {"type": "string", "pattern": "^[A-Za-z0-9+/]{43}=$"},
    })
}

fn timestamp(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$"})
}
