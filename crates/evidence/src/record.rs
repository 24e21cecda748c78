//! Records: what happened, under an id that is the hash of it.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use crate::canonical::{self, write_canonical, write_canonical_object, write_unsigned};
use crate::check::Check;
use crate::hash::{self, BlobHash, RecordId, encode_hex_into};
use crate::json::{Object, Value};
use crate::time;

/// Version of the record schema; it is part of every id.
pub const SCHEMA: &str = "0.1";

macro_rules! named_enum {
    ($(#[$doc:meta])* $name:ident, $what:literal { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, schemars::JsonSchema)]
        pub enum $name {
            $($(#[$variant_doc])* #[schemars(rename = $text)] $variant,)*
        }

        impl $name {
            /// Every value, in the order of the format.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name in the format.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.pad(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = UnknownName;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($text => Ok(Self::$variant),)*
                    _ => Err(UnknownName {
                        what: $what,
                        given: crate::check::printable(text),
                        known: Self::ALL.iter().map(|value| value.as_str()).collect::<Vec<_>>().join(", "),
                    }),
                }
            }
        }
    };
}

/// A name that the format does not know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} `{given}`: give one of {known}")]
pub struct UnknownName {
    what: &'static str,
    given: String,
    known: String,
}

named_enum! {
    /// What kind of thing a record tells of.
    RecordType, "record type" {
        /// A session began.
        SessionStart = "SessionStart",
        /// A message in a session.
        SessionMessage = "SessionMessage",
        /// The agent asked for a tool.
        ToolCall = "ToolCall",
        /// What the tool gave back.
        ToolResult = "ToolResult",
        /// A file was read.
        FileRead = "FileRead",
        /// A file was written.
        FileWrite = "FileWrite",
        /// A file was deleted.
        FileDelete = "FileDelete",
        /// Someone asked to change what steers the agent.
        ControlPlaneChangeRequest = "ControlPlaneChangeRequest",
        /// Someone asked to write durable memory.
        MemoryCommitRequest = "MemoryCommitRequest",
        /// A guard decided, or the monitor recorded one of its own acts.
        GuardDecision = "GuardDecision",
        /// A snapshot was taken.
        Snapshot = "Snapshot",
        /// A snapshot was restored.
        Rollback = "Rollback",
        /// A file was renamed (not in v0.1).
        FileRename = "FileRename",
        /// A request left the machine (not in v0.1).
        NetworkRequest = "NetworkRequest",
        /// A skill was verified (not in v0.1).
        SkillVerification = "SkillVerification",
    }
}

impl RecordType {
    /// Whether v0.1 readers know it.
    #[must_use]
    pub fn is_v01(self) -> bool {
        !matches!(self, Self::FileRename | Self::NetworkRequest | Self::SkillVerification)
    }
}

named_enum! {
    /// On whose behalf it happened, most trusted first.
    Principal, "principal" {
        /// The system itself.
        Sys = "SYS",
        /// The owner.
        User = "USER",
        /// A tool.
        Tool = "TOOL",
        /// A skill.
        Skill = "SKILL",
        /// The web.
        Web = "WEB",
        /// A message channel.
        Channel = "CHANNEL",
        /// Anything else outside.
        External = "EXTERNAL",
    }
}

/// A record's content: in place, or a blob beside it.
#[derive(Debug, Clone, PartialEq)]
pub enum Payload<'a> {
    /// Any JSON value.
    Inline(Value<'a>),
    /// Bytes under their hash.
    Blob {
        /// Name of the blob.
        hash: BlobHash,
        /// Media type.
        mime: Cow<'a, str>,
        /// Length in bytes.
        size: u64,
    },
}

/// A record: id and everything the id covers, and `extensions`, which it does not.
#[derive(Debug, Clone, PartialEq)]
pub struct Record<'a> {
    /// Hash over the rest, `extensions` excepted.
    pub id: RecordId,
    /// What kind of thing happened.
    pub kind: RecordType,
    /// On whose behalf.
    pub principal: Principal,
    /// What flowed into it.
    pub taint: Vec<Cow<'a, str>>,
    /// Records it came from.
    pub parents: Vec<RecordId>,
    /// Facts about it; `ts` at least.
    pub meta: Object<'a>,
    /// Its content.
    pub payload: Payload<'a>,
    /// Outside the hash: anyone can change it.
    pub extensions: Option<Object<'a>>,
}

/// Everything of a record but its id.
#[derive(Debug, Clone, PartialEq)]
pub struct NewRecord<'a> {
    /// What kind of thing happened.
    pub kind: RecordType,
    /// On whose behalf.
    pub principal: Principal,
    /// What flowed into it.
    pub taint: Vec<Cow<'a, str>>,
    /// Records it came from.
    pub parents: Vec<RecordId>,
    /// Facts about it; `ts` at least.
    pub meta: Object<'a>,
    /// Its content.
    pub payload: Payload<'a>,
}

/// A record that cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NewRecordError {
    /// `meta` has no `ts` that is an RFC 3339 timestamp.
    #[error("meta has no RFC 3339 timestamp `ts`: add one like \"ts\":\"2026-01-31T12:00:00Z\"")]
    Timestamp,
    /// Readers of JSON disagree about the content.
    #[error(transparent)]
    Ambiguous(#[from] canonical::Ambiguous),
}

impl<'a> NewRecord<'a> {
    /// Refuses content that readers of JSON disagree about.
    ///
    /// # Errors
    /// The first ambiguity found in `meta` or an inline payload.
    pub fn check_unambiguous(&self) -> Result<(), NewRecordError> {
        // Cloning only the list of members would need a second walk; the check takes a value.
        canonical::check_unambiguous(&Value::Object(self.meta.clone()))?;
        if let Payload::Inline(value) = &self.payload {
            canonical::check_unambiguous(value)?;
        }
        Ok(())
    }

    /// Normalises `meta.ts` and computes the id.
    ///
    /// # Errors
    /// When `meta` has no timestamp.
    pub fn seal(mut self) -> Result<Record<'a>, NewRecordError> {
        let spelled =
            self.meta.get("ts").and_then(Value::as_str).ok_or(NewRecordError::Timestamp)?;
        let normal = time::normalise(spelled).ok_or(NewRecordError::Timestamp)?;
        if normal != spelled {
            self.meta.set("ts", Value::from(normal));
        }
        let mut record = Record {
            id: RecordId::ZERO,
            kind: self.kind,
            principal: self.principal,
            taint: self.taint,
            parents: self.parents,
            meta: self.meta,
            payload: self.payload,
            extensions: None,
        };
        record.id = record.compute_id(&mut Vec::with_capacity(512));
        Ok(record)
    }
}

impl<'a> Record<'a> {
    /// The id as it must be, using `scratch` for the canonical bytes.
    #[must_use]
    pub fn compute_id(&self, scratch: &mut Vec<u8>) -> RecordId {
        scratch.clear();
        self.write_hashed_form(scratch);
        RecordId(hash::sha256(scratch))
    }

    /// `meta.ts` as written.
    #[must_use]
    pub fn timestamp(&self) -> Option<&str> {
        self.meta.get("ts").and_then(Value::as_str)
    }

    /// A string member of `meta`.
    #[must_use]
    pub fn meta_str(&self, key: &str) -> Option<&str> {
        self.meta.get(key).and_then(Value::as_str)
    }

    /// Appends the record as one line of `records.jsonl`, without the newline.
    pub fn write_line(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"recordId\":\"");
        encode_hex_into(&self.id.0, out);
        out.extend_from_slice(b"\",\"type\":\"");
        out.extend_from_slice(self.kind.as_str().as_bytes());
        out.extend_from_slice(b"\",\"principal\":\"");
        out.extend_from_slice(self.principal.as_str().as_bytes());
        out.extend_from_slice(b"\",\"taint\":");
        write_list(&self.taint, out, |text, out| canonical::write_quoted(text, out));
        out.extend_from_slice(b",\"parents\":");
        write_list(&self.parents, out, write_hash);
        out.extend_from_slice(b",\"meta\":");
        // A borrowed object inside a value would need a clone; members are written the same way.
        write_compact_object(&self.meta, out);
        out.extend_from_slice(b",\"payload\":");
        match &self.payload {
            Payload::Inline(value) => {
                out.extend_from_slice(b"{\"inline\":");
                canonical::write_compact(value, out);
                out.push(b'}');
            }
            Payload::Blob { hash, mime, size } => write_blob(*hash, *size, out, |out| {
                canonical::write_quoted(mime, out);
            }),
        }
        out.extend_from_slice(b",\"schema\":\"0.1\"");
        if let Some(extensions) = &self.extensions {
            out.extend_from_slice(b",\"extensions\":");
            write_compact_object(extensions, out);
        }
        out.push(b'}');
    }

    /// The same record without borrowed text.
    #[must_use]
    pub fn into_owned(self) -> Record<'static> {
        Record {
            id: self.id,
            kind: self.kind,
            principal: self.principal,
            taint: self.taint.into_iter().map(|text| Cow::Owned(text.into_owned())).collect(),
            parents: self.parents,
            meta: self.meta.into_owned(),
            payload: match self.payload {
                Payload::Inline(value) => Payload::Inline(value.into_owned()),
                Payload::Blob { hash, mime, size } => {
                    Payload::Blob { hash, mime: Cow::Owned(mime.into_owned()), size }
                }
            },
            extensions: self.extensions.map(Object::into_owned),
        }
    }

    /// Reads a record from a parsed line. Each defect goes to `report` as (check, expected,
    /// found); `None` if no record can be made of it at all.
    pub fn from_value(
        value: Value<'a>,
        report: &mut dyn FnMut(Check, &str, &str),
    ) -> Option<Record<'a>> {
        Fields::collect(value, report)?.build(report)
    }

    /// Canonical bytes that the id covers.
    fn write_hashed_form(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"meta\":");
        let spelled = self.timestamp();
        match spelled {
            Some(text) if !time::is_normal_spelling(text) => {
                let normal = time::normalise(text);
                let replace = normal.as_deref().map(|normal| ("ts", normal));
                write_canonical_object(&self.meta, replace, out);
            }
            _ => write_canonical_object(&self.meta, None, out),
        }
        out.extend_from_slice(b",\"parents\":");
        write_list(&self.parents, out, write_hash);
        out.extend_from_slice(b",\"payload\":");
        match &self.payload {
            Payload::Inline(value) => {
                out.extend_from_slice(b"{\"inline\":");
                write_canonical(value, out);
                out.push(b'}');
            }
            Payload::Blob { hash, mime, size } => write_blob(*hash, *size, out, |out| {
                canonical::write_canonical_string(mime, out);
            }),
        }
        out.extend_from_slice(b",\"principal\":\"");
        out.extend_from_slice(self.principal.as_str().as_bytes());
        out.extend_from_slice(b"\",\"schema\":\"0.1\",\"taint\":");
        write_list(&self.taint, out, |text, out| canonical::write_canonical_string(text, out));
        out.extend_from_slice(b",\"type\":\"");
        out.extend_from_slice(self.kind.as_str().as_bytes());
        out.extend_from_slice(b"\"}");
    }
}

fn write_hash(id: &RecordId, out: &mut Vec<u8>) {
    out.push(b'"');
    encode_hex_into(&id.0, out);
    out.push(b'"');
}

fn write_list<T>(items: &[T], out: &mut Vec<u8>, write: impl Fn(&T, &mut Vec<u8>)) {
    out.push(b'[');
    for (position, item) in items.iter().enumerate() {
        if position > 0 {
            out.push(b',');
        }
        write(item, out);
    }
    out.push(b']');
}

fn write_blob(hash: BlobHash, size: u64, out: &mut Vec<u8>, mime: impl Fn(&mut Vec<u8>)) {
    out.extend_from_slice(b"{\"blob\":\"");
    encode_hex_into(&hash.0, out);
    out.extend_from_slice(b"\",\"mime\":");
    mime(out);
    out.extend_from_slice(b",\"size\":");
    write_unsigned(size, out);
    out.push(b'}');
}

fn write_compact_object(object: &Object<'_>, out: &mut Vec<u8>) {
    out.push(b'{');
    let mut first = true;
    let mut member = |(key, value): &(Cow<'_, str>, Value<'_>)| {
        if !std::mem::take(&mut first) {
            out.push(b',');
        }
        canonical::write_quoted(key, out);
        out.push(b':');
        canonical::write_compact(value, out);
    };
    if object.is_sorted() {
        object.members.iter().for_each(&mut member);
    } else {
        object.sorted().into_iter().for_each(&mut member);
    }
    out.push(b'}');
}

/// The members of a record line, sorted by name and not yet judged.
#[derive(Default)]
struct Fields<'a> {
    id: Option<Value<'a>>,
    kind: Option<Value<'a>>,
    principal: Option<Value<'a>>,
    taint: Option<Value<'a>>,
    parents: Option<Value<'a>>,
    meta: Option<Value<'a>>,
    payload: Option<Value<'a>>,
    schema: Option<Value<'a>>,
    extensions: Option<Value<'a>>,
}

type Report<'r> = &'r mut dyn FnMut(Check, &str, &str);

impl<'a> Fields<'a> {
    fn collect(value: Value<'a>, report: Report<'_>) -> Option<Self> {
        if let Some(key) = value.duplicate_key() {
            report(Check::RecordDuplicateKey, "every key once", key);
        }
        let Value::Object(object) = value else {
            report(Check::RecordField, "an object", value.kind());
            return None;
        };
        let mut fields = Self::default();
        let mut usable = true;
        for (key, value) in object.members {
            let slot = match key.as_ref() {
                "recordId" => &mut fields.id,
                "type" => &mut fields.kind,
                "principal" => &mut fields.principal,
                "taint" => &mut fields.taint,
                "parents" => &mut fields.parents,
                "meta" => &mut fields.meta,
                "payload" => &mut fields.payload,
                "schema" => &mut fields.schema,
                "extensions" => &mut fields.extensions,
                _ => {
                    report(Check::RecordUnknownMember, "only members of the format", &key);
                    continue;
                }
            };
            if slot.replace(value).is_some() {
                report(Check::RecordField, "every member once", &key);
                usable = false;
            }
        }
        usable.then_some(fields)
    }

    fn build(self, report: Report<'_>) -> Option<Record<'a>> {
        let id = read_hash(self.id, "recordId", report).map(RecordId);
        let kind = read_name::<RecordType>(self.kind, "type", report);
        if let Some(kind) = kind
            && !kind.is_v01()
        {
            report(Check::RecordTypeExtended, "one of the twelve types of v0.1", kind.as_str());
        }
        let principal = read_name::<Principal>(self.principal, "principal", report);
        let taint = read_list(self.taint, "taint", report, |value, _| match value {
            Value::String(text) => Some(text),
            _ => None,
        });
        let parents = read_list(self.parents, "parents", report, |value, report| match &value {
            Value::String(text) => {
                let parsed = RecordId::from_hex(text);
                if parsed.is_none() {
                    report(Check::RecordSchema, "a parent of 64 hexadecimal digits", text);
                }
                Some(parsed.unwrap_or(RecordId::ZERO))
            }
            _ => None,
        });
        let meta = read_meta(self.meta, report);
        let payload = read_payload(self.payload, report);
        let mut usable = true;
        match self.schema {
            None => {}
            Some(Value::String(text)) if text == SCHEMA => {}
            Some(Value::String(text)) => report(Check::RecordSchema, "schema \"0.1\"", &text),
            Some(other) => {
                report(Check::RecordField, "a string `schema`", other.kind());
                usable = false;
            }
        }
        let extensions = match self.extensions {
            None => None,
            Some(Value::Null) => {
                // v0.1 takes it for an absent member.
                report(Check::RecordUnknownMember, "an object `extensions` or none", "null");
                None
            }
            Some(Value::Object(object)) => Some(object),
            Some(other) => {
                report(Check::RecordSchema, "an object `extensions`", other.kind());
                None
            }
        };
        if !usable {
            return None;
        }
        Some(Record {
            id: id?,
            kind: kind?,
            principal: principal?,
            taint: taint?,
            parents: parents?,
            meta: meta?,
            payload: payload?,
            extensions,
        })
    }
}

/// A hash member: missing or not a string is a defect of the line, another form one of the schema.
pub(crate) fn read_hash_as(
    value: Option<Value<'_>>,
    name: &str,
    (field, schema): (Check, Check),
    report: Report<'_>,
) -> Option<[u8; 32]> {
    let Some(Value::String(text)) = value else {
        report(field, &format!("a string `{name}`"), value.as_ref().map_or("nothing", Value::kind));
        return None;
    };
    let parsed = hash::decode_hex(text.as_bytes());
    if parsed.is_none() {
        report(schema, &format!("`{name}` of 64 hexadecimal digits"), &text);
    }
    parsed
}

fn read_hash(value: Option<Value<'_>>, name: &str, report: Report<'_>) -> Option<[u8; 32]> {
    read_hash_as(value, name, (Check::RecordField, Check::RecordSchema), report)
}

fn read_name<T: FromStr>(value: Option<Value<'_>>, name: &str, report: Report<'_>) -> Option<T> {
    let found = value.as_ref().map_or("nothing", |value| value.as_str().unwrap_or(value.kind()));
    let parsed = value.as_ref().and_then(Value::as_str).and_then(|text| text.parse().ok());
    if parsed.is_none() {
        report(Check::RecordField, &format!("a known `{name}`"), found);
    }
    parsed
}

fn read_list<'a, T>(
    value: Option<Value<'a>>,
    name: &str,
    report: Report<'_>,
    mut item: impl FnMut(Value<'a>, Report<'_>) -> Option<T>,
) -> Option<Vec<T>> {
    let Some(Value::Array(items)) = value else {
        let found = value.as_ref().map_or("nothing", Value::kind);
        report(Check::RecordField, &format!("an array `{name}`"), found);
        return None;
    };
    let mut list = Vec::with_capacity(items.len());
    for value in items {
        let kind = value.kind();
        let Some(read) = item(value, report) else {
            report(Check::RecordField, &format!("strings in `{name}`"), kind);
            return None;
        };
        list.push(read);
    }
    Some(list)
}

fn read_meta<'a>(value: Option<Value<'a>>, report: Report<'_>) -> Option<Object<'a>> {
    let meta = match value {
        Some(Value::Object(meta)) => meta,
        Some(other) => {
            report(Check::RecordSchema, "an object `meta`", other.kind());
            return None;
        }
        None => {
            report(Check::RecordField, "an object `meta`", "nothing");
            return None;
        }
    };
    match meta.get("ts") {
        Some(Value::String(text)) if time::is_normal_spelling(text) => {
            if !time::is_date(text) {
                report(Check::RecordTimestamp, "a date and time", text);
            }
        }
        Some(Value::String(text)) => {
            report(Check::RecordSchema, "`meta.ts` like 2026-01-31T12:00:00Z", text);
        }
        Some(other) => report(Check::RecordSchema, "a string `meta.ts`", other.kind()),
        None => report(Check::RecordSchema, "`ts` in `meta`", "nothing"),
    }
    Some(meta)
}

fn read_payload<'a>(value: Option<Value<'a>>, report: Report<'_>) -> Option<Payload<'a>> {
    let Some(Value::Object(object)) = value else {
        let found = value.as_ref().map_or("nothing", Value::kind);
        report(Check::RecordField, "an object `payload`", found);
        return None;
    };
    let (mut inline, mut blob, mut mime, mut size) = (None, None, None, None);
    for (key, value) in object.members {
        match key.as_ref() {
            "inline" => inline = Some(value),
            "blob" => blob = Some(value),
            "mime" => mime = Some(value),
            "size" => size = Some(value),
            _ => report(Check::RecordUnknownMember, "only members of a payload", &key),
        }
    }
    if let Some(value) = inline {
        if blob.is_some() || mime.is_some() || size.is_some() {
            report(Check::RecordUnknownMember, "one form of payload", "inline and blob");
        }
        return Some(Payload::Inline(value));
    }
    match (blob, mime, size) {
        (Some(Value::String(hash)), Some(Value::String(mime)), Some(Value::Unsigned(size))) => {
            let Some(hash) = BlobHash::from_hex(&hash) else {
                report(Check::RecordSchema, "`blob` of 64 hexadecimal digits", &hash);
                return None;
            };
            Some(Payload::Blob { hash, mime, size })
        }
        _ => {
            report(
                Check::RecordField,
                "a payload with `inline`, or with `blob`, `mime` and `size`",
                "neither",
            );
            None
        }
    }
}
