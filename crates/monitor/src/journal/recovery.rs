//! What a writer found that should not be there, and the record that says so.

use wardkeep_evidence::hash::encode_hex;
use wardkeep_evidence::json::{Object, Value};
use wardkeep_evidence::record::{NewRecord, Payload, Principal, Record, RecordType};
use wardkeep_evidence::time::Timestamp;

use super::SegmentNumber;

/// Version of the recovery record's content.
const VERSION: u64 = 1;

/// Bytes of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Region {
    /// Number of the segment.
    pub segment: SegmentNumber,
    /// Offset of the first byte.
    pub offset: u64,
    /// Number of bytes.
    pub length: u64,
    /// SHA-256 of the bytes.
    pub sha256: [u8; 32],
}

/// Something that a crash, a full disk, a clock or a hand left.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Found {
    /// The last line has no end: a writer was killed, and nobody was told that it is durable.
    TornTail(Region),
    /// Lines that are no entries.
    Garbage(Region),
    /// More than is worth reading stood behind the last entry, and the segment was left.
    TooMuchGarbage {
        /// Number of the segment.
        segment: SegmentNumber,
        /// Offset of the first byte.
        offset: u64,
        /// Number of bytes.
        length: u64,
    },
    /// The last line was whole but for its newline; it was kept.
    UnfinishedLine {
        /// Number of the segment.
        segment: SegmentNumber,
        /// Position of the entry.
        index: u64,
    },
    /// A segment is gone.
    MissingSegment {
        /// Its number.
        segment: SegmentNumber,
    },
    /// Many segments in a row are gone, if they were ever there.
    MissingSegments {
        /// Number of the first.
        segment: SegmentNumber,
        /// Number of the last.
        last: SegmentNumber,
    },
    /// The entry that this process saw last is no longer where it was.
    Rewritten {
        /// Number of the segment.
        segment: SegmentNumber,
        /// Position of the entry.
        index: u64,
    },
    /// A segment is shorter than this process left it.
    Shrunk {
        /// Number of the segment.
        segment: SegmentNumber,
        /// Its length before.
        expected: u64,
        /// Its length now.
        found: u64,
    },
    /// Seals cover more entries than there are.
    SealedBeyond {
        /// Entries under the last seal.
        sealed: u64,
        /// Entries in the journal.
        found: u64,
    },
    /// A file stood where the next segment was to go.
    StrayFile {
        /// Number of the segment.
        segment: SegmentNumber,
    },
    /// The clock was set back.
    ClockBack {
        /// Time of the last entry.
        last: Timestamp,
        /// Time now.
        now: Timestamp,
    },
    /// A flush failed, so that what was written last may be lost; it was not acknowledged.
    FlushFailed {
        /// Number of the segment that was left for a new one.
        segment: SegmentNumber,
    },
    /// The log had entries and no keys: it gets new ones, and with them a new name.
    NewKeys {
        /// Entries in the journal.
        entries: u64,
    },
    /// No seals are made any more.
    SealingStopped {
        /// Why.
        reason: String,
    },
    /// Seals that were made are gone.
    SealsMissing {
        /// Epoch of the first that is missing.
        first: u64,
        /// Epoch of the seal that follows.
        next: u64,
    },
}

impl Found {
    /// Whether it is about the end of a segment, which is judged anew at each look.
    pub(super) fn is_at_the_end(&self) -> bool {
        matches!(
            self,
            Self::TornTail(_)
                | Self::Garbage(_)
                | Self::TooMuchGarbage { .. }
                | Self::UnfinishedLine { .. }
        )
    }

    fn to_value(&self) -> Value<'static> {
        // Larger numbers come only from someone's hand, and readers of JSON disagree about them.
        let number = |number: u64| Value::from(number.min((1 << 53) - 1));
        let segment = |segment: &SegmentNumber| Value::from(u64::from(segment.0));
        let region = |what: &'static str, region: &Region| {
            Value::from([
                ("length", number(region.length)),
                ("offset", number(region.offset)),
                ("segment", segment(&region.segment)),
                ("sha256", Value::from(encode_hex(&region.sha256))),
                ("what", Value::from(what)),
            ])
        };
        match self {
            Self::TornTail(bytes) => region("torn-tail", bytes),
            Self::Garbage(bytes) => region("garbage", bytes),
            Self::TooMuchGarbage { segment: at, offset, length } => Value::from([
                ("length", number(*length)),
                ("offset", number(*offset)),
                ("segment", segment(at)),
                ("what", Value::from("garbage")),
            ]),
            Self::UnfinishedLine { segment: at, index } => Value::from([
                ("index", number(*index)),
                ("segment", segment(at)),
                ("what", Value::from("unfinished-line")),
            ]),
            Self::MissingSegment { segment: at } => {
                Value::from([("segment", segment(at)), ("what", Value::from("missing-segment"))])
            }
            Self::MissingSegments { segment: at, last } => Value::from([
                ("last", segment(last)),
                ("segment", segment(at)),
                ("what", Value::from("missing-segment")),
            ]),
            Self::Rewritten { segment: at, index } => Value::from([
                ("index", number(*index)),
                ("segment", segment(at)),
                ("what", Value::from("rewritten")),
            ]),
            Self::Shrunk { segment: at, expected, found } => Value::from([
                ("expected", number(*expected)),
                ("found", number(*found)),
                ("segment", segment(at)),
                ("what", Value::from("shrunk")),
            ]),
            Self::SealedBeyond { sealed, found } => Value::from([
                ("found", number(*found)),
                ("sealed", number(*sealed)),
                ("what", Value::from("sealed-beyond")),
            ]),
            Self::StrayFile { segment: at } => {
                Value::from([("segment", segment(at)), ("what", Value::from("stray-file"))])
            }
            Self::ClockBack { last, now } => Value::from([
                ("last", Value::from(last.to_string())),
                ("now", Value::from(now.to_string())),
                ("what", Value::from("clock-back")),
            ]),
            Self::FlushFailed { segment: at } => {
                Value::from([("segment", segment(at)), ("what", Value::from("flush-failed"))])
            }
            Self::NewKeys { entries } => {
                Value::from([("entries", number(*entries)), ("what", Value::from("new-keys"))])
            }
            Self::SealingStopped { reason } => Value::from([
                ("reason", Value::from(reason.clone())),
                ("what", Value::from("sealing-stopped")),
            ]),
            Self::SealsMissing { first, next } => Value::from([
                ("first", number(*first)),
                ("next", number(*next)),
                ("what", Value::from("seals-missing")),
            ]),
        }
    }
}

/// The record that tells of what was found.
pub(super) fn record(found: &[Found], now: Timestamp, nonce: String) -> NewRecord<'static> {
    NewRecord {
        kind: RecordType::GuardDecision,
        principal: Principal::Sys,
        taint: Vec::new(),
        parents: Vec::new(),
        meta: Object::from([
            ("agent", Value::from("wardkeep")),
            ("nonce", Value::from(nonce)),
            ("session", Value::from("journal")),
            ("ts", Value::from(now.to_string())),
            ("workspace", Value::from("")),
        ]),
        payload: Payload::Inline(Value::from([
            ("found", Value::Array(found.iter().map(Found::to_value).collect())),
            ("kind", Value::from("recovery")),
            ("v", Value::from(VERSION)),
        ])),
    }
}

/// Whether a record calls itself a recovery record.
pub(super) fn is_claimed(record: &NewRecord<'_>) -> bool {
    let Payload::Inline(Value::Object(payload)) = &record.payload else { return false };
    record.kind == RecordType::GuardDecision
        && payload.get("kind").and_then(Value::as_str) == Some("recovery")
}

/// The regions that a recovery record accounts for, and its findings in words; `None` if the
/// record is no recovery record.
#[must_use]
pub fn recovery_regions(record: &Record<'_>) -> Option<(Vec<Region>, Vec<String>)> {
    let (RecordType::GuardDecision, Principal::Sys) = (record.kind, record.principal) else {
        return None;
    };
    let Payload::Inline(Value::Object(payload)) = &record.payload else { return None };
    if payload.get("kind").and_then(Value::as_str) != Some("recovery") {
        return None;
    }
    let Some(Value::Array(found)) = payload.get("found") else { return None };
    let mut regions = Vec::new();
    let mut words = Vec::new();
    for item in found {
        let object = item.as_object()?;
        let what = object.get("what").and_then(Value::as_str).unwrap_or("unknown");
        words.push(what.to_owned());
        let number = |key: &str| match object.get(key) {
            Some(Value::Unsigned(number)) => Some(*number),
            _ => None,
        };
        let hash = object.get("sha256").and_then(Value::as_str);
        if let (Some(offset), Some(length), Some(segment), Some(hash)) =
            (number("offset"), number("length"), number("segment"), hash)
        {
            regions.push(Region {
                segment: SegmentNumber(u32::try_from(segment).ok()?),
                offset,
                length,
                sha256: wardkeep_evidence::hash::decode_hex(hash.as_bytes())?,
            });
        }
    }
    Some((regions, words))
}
