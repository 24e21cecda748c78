//! Audit entries: the chain that fixes the order of the records.

use crate::canonical::{write_canonical_string, write_quoted, write_unsigned};
use crate::check::Check;
use crate::checkpoint::parse_decimal;
use crate::hash::{self, EntryHash, RecordId, encode_hex_into};
use crate::json::Value;
use crate::merkle::{self, TreeHash};
use crate::record::read_hash_as;
use crate::time;

/// One link of the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Position, from 0.
    pub index: u64,
    /// When it was appended.
    pub timestamp: String,
    /// The record it stands for.
    pub record: RecordId,
    /// Hash of the entry before; zeros for the first.
    pub previous: EntryHash,
    /// Hash over the four members above.
    pub hash: EntryHash,
}

impl Entry {
    /// The entry that follows `previous`.
    #[must_use]
    pub fn chained(index: u64, timestamp: String, record: RecordId, previous: EntryHash) -> Self {
        let mut entry = Self { index, timestamp, record, previous, hash: EntryHash::ZERO };
        entry.hash = entry.compute_hash(&mut Vec::with_capacity(256));
        entry
    }

    /// The hash as it must be, using `scratch` for the canonical bytes.
    #[must_use]
    pub fn compute_hash(&self, scratch: &mut Vec<u8>) -> EntryHash {
        scratch.clear();
        self.write_hashed_form(scratch);
        EntryHash(hash::sha256(scratch))
    }

    /// Appends the canonical bytes that the hash covers; they are also the leaf of the tree.
    pub fn write_hashed_form(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"idx\":");
        write_unsigned(self.index, out);
        out.extend_from_slice(b",\"prev\":\"");
        encode_hex_into(&self.previous.0, out);
        out.extend_from_slice(b"\",\"recordId\":\"");
        encode_hex_into(&self.record.0, out);
        out.extend_from_slice(b"\",\"ts\":");
        write_canonical_string(&self.timestamp, out);
        out.push(b'}');
    }

    /// The leaf of this entry in the tree.
    #[must_use]
    pub fn leaf(&self) -> TreeHash {
        let mut bytes = Vec::with_capacity(256);
        self.write_hashed_form(&mut bytes);
        merkle::leaf_hash(&bytes)
    }

    /// Appends the entry as one line of `audit-log.jsonl`, without the newline.
    pub fn write_line(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"idx\":");
        write_unsigned(self.index, out);
        out.extend_from_slice(b",\"ts\":");
        write_quoted(&self.timestamp, out);
        out.extend_from_slice(b",\"recordId\":\"");
        encode_hex_into(&self.record.0, out);
        out.extend_from_slice(b"\",\"prev\":\"");
        encode_hex_into(&self.previous.0, out);
        out.extend_from_slice(b"\",\"entryHash\":\"");
        encode_hex_into(&self.hash.0, out);
        out.extend_from_slice(b"\"}");
    }

    /// Reads a line spelled exactly as [`Entry::write_line`] spells it, some five times as fast as
    /// by way of a parsed value; `None` for every other line, good or bad.
    pub(crate) fn from_usual_line(line: &[u8]) -> Option<Self> {
        let mut rest = line.strip_prefix(b"{\"idx\":")?;
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let index = str::from_utf8(rest.get(..digits)?).ok().and_then(parse_decimal)?;
        rest = rest.get(digits..)?;
        let mut text = |before: &[u8], length: usize| {
            let (text, after) = rest.strip_prefix(before)?.split_at_checked(length)?;
            rest = after;
            Some(text)
        };
        let timestamp = str::from_utf8(text(b",\"ts\":\"", 20)?).ok()?;
        let record = RecordId(hash::decode_hex(text(b"\",\"recordId\":\"", 64)?)?);
        let previous = EntryHash(hash::decode_hex(text(b"\",\"prev\":\"", 64)?)?);
        let hash = EntryHash(hash::decode_hex(text(b"\",\"entryHash\":\"", 64)?)?);
        let usual = time::is_normal_spelling(timestamp) && time::is_date(timestamp);
        (usual && rest == b"\"}").then(|| Self {
            index,
            timestamp: timestamp.to_owned(),
            record,
            previous,
            hash,
        })
    }

    /// Reads an entry from a parsed line. Each defect goes to `report` as (check, expected,
    /// found); `None` if no entry can be made of it at all.
    pub fn from_value(value: Value<'_>, report: &mut dyn FnMut(Check, &str, &str)) -> Option<Self> {
        let Value::Object(object) = value else {
            report(Check::EntryField, "an object", value.kind());
            return None;
        };
        let (mut index, mut timestamp, mut record) = (None, None, None);
        let (mut previous, mut hash) = (None, None);
        let mut usable = true;
        for (key, value) in object.members {
            let slot = match key.as_ref() {
                "idx" => &mut index,
                "ts" => &mut timestamp,
                "recordId" => &mut record,
                "prev" => &mut previous,
                "entryHash" => &mut hash,
                _ => {
                    report(Check::EntryUnknownMember, "only members of the format", &key);
                    continue;
                }
            };
            if slot.replace(value).is_some() {
                report(Check::EntryDuplicateKey, "every key once", &key);
                report(Check::EntryField, "every member once", &key);
                usable = false;
            }
        }
        let index = match index {
            Some(Value::Unsigned(index)) => Some(index),
            other => {
                let found = other.as_ref().map_or("nothing", Value::kind);
                report(Check::EntryField, "an integer `idx`", found);
                None
            }
        };
        let timestamp = match timestamp {
            Some(Value::String(text)) => {
                if !time::is_normal_spelling(&text) {
                    report(Check::EntrySchema, "`ts` like 2026-01-31T12:00:00Z", &text);
                } else if !time::is_date(&text) {
                    report(Check::EntryTimestamp, "a date and time", &text);
                }
                Some(text.into_owned())
            }
            other => {
                let found = other.as_ref().map_or("nothing", Value::kind);
                report(Check::EntryField, "a string `ts`", found);
                None
            }
        };
        let checks = (Check::EntryField, Check::EntrySchema);
        let record = read_hash_as(record, "recordId", checks, report);
        let previous = read_hash_as(previous, "prev", checks, report);
        let hash = read_hash_as(hash, "entryHash", checks, report);
        if !usable {
            return None;
        }
        Some(Self {
            index: index?,
            timestamp: timestamp?,
            record: RecordId(record?),
            previous: EntryHash(previous?),
            hash: EntryHash(hash?),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::json;

    proptest! {
        #[test]
        fn the_usual_line_is_read_as_any_other(
            index: u64,
            seconds in -62_167_219_200i64..=253_402_300_799,
            record: [u8; 32],
            previous: [u8; 32],
            at in 0..300usize,
            byte: u8,
        ) {
            let timestamp = time::Timestamp::from_unix(seconds).unwrap().to_string();
            let entry = Entry::chained(index, timestamp, RecordId(record), EntryHash(previous));
            let mut line = Vec::new();
            entry.write_line(&mut line);
            prop_assert_eq!(Entry::from_usual_line(&line), Some(entry));
            if let Some(changed) = line.get_mut(at) {
                *changed = byte;
            }
            if let Some(fast) = Entry::from_usual_line(&line) {
                let mut defects = 0;
                let value = json::parse(&line).unwrap();
                let slow = Entry::from_value(value, &mut |_, _, _| defects += 1);
                prop_assert_eq!((slow, defects), (Some(fast), 0));
            }
        }
    }
}
