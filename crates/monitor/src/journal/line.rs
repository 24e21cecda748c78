//! One line: `{"entry":…,"record":…}`.

use wardkeep_evidence::entry::Entry;
use wardkeep_evidence::json::{self, Value};
use wardkeep_evidence::record::Record;

/// A line of the journal that holds together: the entry's hash and the record's id are right,
/// and the entry stands for the record.
#[derive(Debug, Clone, PartialEq)]
pub struct JournalLine<'a> {
    /// The link of the chain.
    pub entry: Entry,
    /// What it stands for.
    pub record: Record<'a>,
}

/// Positions from here on are no positions: other readers of JSON could not tell them apart, and
/// what follows the last number there is could not be counted.
const MAX_INDEX: u64 = 1 << 53;

/// Reads a line (without its newline); `None` if it does not hold together.
#[must_use]
pub fn parse_line(text: &[u8]) -> Option<JournalLine<'_>> {
    let (entry, record) = split(parse(text)?)?;
    let mut sound = true;
    let mut report = |check: wardkeep_evidence::check::Check, _: &str, _: &str| {
        sound &= !check.applies(wardkeep_evidence::check::Mode::Strict);
    };
    let entry = Entry::from_value(entry, &mut report)?;
    let record = Record::from_value(record, &mut report)?;
    let mut scratch = Vec::with_capacity(text.len());
    let holds = sound
        && is_index(entry.index)
        && entry.record == record.id
        && entry.compute_hash(&mut scratch) == entry.hash
        && record.compute_id(&mut scratch) == record.id;
    holds.then_some(JournalLine { entry, record })
}

/// The value of a line; `None` if it is none that a journal writes, even if only by white space.
pub(crate) fn parse(text: &[u8]) -> Option<Value<'_>> {
    // Most garbage is seen without looking further.
    let usual = text.starts_with(b"{\"entry\":{") && text.ends_with(b"}");
    usual.then(|| json::parse(text).ok()).flatten()
}

/// Whether an entry can stand at this position.
pub(crate) fn is_index(index: u64) -> bool {
    index < MAX_INDEX
}

/// The two members of a line, unjudged; `None` if it has others.
pub(crate) fn split(value: Value<'_>) -> Option<(Value<'_>, Value<'_>)> {
    let Value::Object(object) = value else { return None };
    let [(first, entry), (second, record)] = <[_; 2]>::try_from(object.members).ok()?;
    (first == "entry" && second == "record").then_some((entry, record))
}

/// Appends a line with its newline; `record` is the record's own line.
pub(crate) fn write(entry: &Entry, record: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"entry\":");
    entry.write_line(out);
    out.extend_from_slice(b",\"record\":");
    out.extend_from_slice(record);
    out.extend_from_slice(b"}\n");
}

/// The entry of a line, whether or not its hash is right; `None` if the line holds none. These
/// entries, in file order, are the leaves of the tree.
#[must_use]
pub fn entry_of(text: &[u8]) -> Option<Entry> {
    let (entry, _) = split(parse(text)?)?;
    Entry::from_value(entry, &mut |_, _, _| {}).filter(|entry| is_index(entry.index))
}
