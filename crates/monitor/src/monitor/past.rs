//! What a file holds, by what was done to it: who wrote it last, what of that stayed, and under which
//! names it went before.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

use wardkeep_evidence::hash::{BlobHash, RecordId, encode_hex, sha256};
use wardkeep_evidence::json::{Object, Value};
use wardkeep_evidence::record::{Payload, Record, RecordType};
use wardkeep_guard::taint::Taint;

use super::content::{list, taint};
use super::session::strings;
use super::{Monitor, Result, held};
use crate::files::read_plain;
use crate::journal::parse_line;

/// Files whose last change is kept in memory; that of others is looked up.
const KEPT: usize = 1 << 15;
/// Names that are looked at to tell what a file holds.
const NAMES: usize = 64;
/// Earlier records that a write names as the source of what it left in the file.
const SOURCES: usize = 8;
/// Changes that may still be made which are remembered of one file.
const PENDING: usize = 16;
/// Words in a row that show that a text stayed.
const STAYS: usize = 5;

/// The last change of a file.
#[derive(Debug, Clone)]
pub(super) struct Writer {
    record: RecordId,
    /// Where it was before it got this name.
    from: Option<PathBuf>,
    /// Taint of what the file holds by copy, and not because of what else the session had seen.
    holds: Taint,
    /// Records of earlier changes whose text is still in it.
    earlier: Vec<RecordId>,
    /// What the file holds if the change was never made, where that matters.
    replaced: Option<Replaced>,
}

/// What a change puts something else in place of. That it was allowed does not mean that it was made:
/// another part of the same action may be refused, its user may say no, the tool may fail.
#[derive(Debug, Clone)]
pub(super) struct Replaced {
    /// Hash of what the file held.
    pub(super) held: Option<[u8; 32]>,
    /// Hash of what it holds once the change is made, where that is known.
    pub(super) put: Option<[u8; 32]>,
    pub(super) past: Past,
}

/// What is known of a file.
#[derive(Debug, Clone, Default)]
pub(super) struct Past {
    /// Records that what it holds comes from.
    pub(super) records: Vec<RecordId>,
    /// Taint of what it holds by copy.
    pub(super) holds: Taint,
    /// Whether more was done to it than could be looked at.
    pub(super) unknown: bool,
    /// Changes that were allowed and not made when that was looked at: they may still be. The newest last.
    pending: Vec<Pending>,
}

/// A change that may still be made.
#[derive(Debug, Clone)]
struct Pending {
    record: RecordId,
    holds: Taint,
}

/// What a write leaves of what was in the file.
#[derive(Debug, Default)]
pub(super) struct Stays {
    /// All taint of it, which the record of the write has too.
    pub(super) taint: Taint,
    /// The part that it has by copy.
    pub(super) holds: Taint,
    earlier: Vec<RecordId>,
}

/// What the file of a change held, and what is known of that.
#[derive(Debug)]
pub(super) struct Replaces {
    pub(super) held: Held,
    pub(super) past: Past,
    /// Whether something of it is tainted.
    tainted: bool,
}

/// The file that a change takes the place of.
#[derive(Debug)]
pub(super) enum Held {
    /// The one that is judged.
    Before,
    /// Another, with what it held if that can be read.
    Other(Option<Vec<u8>>),
}

impl Replaces {
    pub(super) fn new(held: Held, past: Past) -> Self {
        Self { held, past, tainted: false }
    }

    /// Whether what was there has to be known again.
    pub(super) fn is_tainted(&self) -> bool {
        self.tainted
    }

    /// As it stands in the record.
    pub(super) fn value(
        &self,
        held: Option<[u8; 32]>,
        put: Option<[u8; 32]>,
    ) -> (&'static str, Value<'static>) {
        let from = self.past.records.iter().take(NAMES);
        let mut value = Object::from([
            ("taint", taint(self.past.holds)),
            ("from", list(from.map(|record| Value::from(record.to_string())))),
            ("unknown", Value::from(self.past.unknown || self.past.records.len() > NAMES)),
        ]);
        if !self.past.pending.is_empty() {
            let pending = self.past.pending.iter().map(|one| {
                let record = Value::from(one.record.to_string());
                Value::from([("record", record), ("taint", taint(one.holds))])
            });
            value.push("pending", list(pending));
        }
        if let Some(put) = put {
            value.push("put", Value::from(encode_hex(&put)));
        }
        if let Some(held) = held {
            value.push("sha256", Value::from(encode_hex(&held)));
        }
        ("replaces", Value::Object(value))
    }
}

impl Replaced {
    fn of(content: &Object<'_>) -> Option<Self> {
        let replaces = content.get("replaces")?.as_object()?;
        let hash = |name: &str| {
            let hash = replaces.get(name).and_then(Value::as_str);
            hash.and_then(BlobHash::from_hex).map(|hash| hash.0)
        };
        let pending = match replaces.get("pending") {
            Some(Value::Array(all)) => all.iter().filter_map(Pending::of).take(PENDING).collect(),
            _ => Vec::new(),
        };
        Some(Self {
            held: hash("sha256"),
            put: hash("put"),
            past: Past {
                records: strings(replaces, "from").filter_map(RecordId::from_hex).collect(),
                holds: Taint::from_names(strings(replaces, "taint")),
                unknown: !matches!(replaces.get("unknown"), Some(Value::Bool(false))),
                pending,
            },
        })
    }
}

impl Pending {
    fn of(value: &Value<'_>) -> Option<Self> {
        let value = value.as_object()?;
        let record = value.get("record").and_then(Value::as_str).and_then(RecordId::from_hex)?;
        Some(Self { record, holds: Taint::from_names(strings(value, "taint")) })
    }
}

impl Stays {
    /// As it stands in the record.
    pub(super) fn value(&self) -> Option<(&'static str, Value<'static>)> {
        let earlier = self.earlier.iter().map(|record| Value::from(record.to_string()));
        let value = [("taint", taint(self.holds)), ("from", list(earlier))];
        (!self.taint.is_empty()).then(|| ("stays", Value::from(value)))
    }

    /// The last change of the file, once it is recorded.
    pub(super) fn writer(
        self,
        record: RecordId,
        from: Option<PathBuf>,
        direct: Taint,
        replaced: Option<Replaced>,
    ) -> Writer {
        Writer { record, from, holds: direct | self.holds, earlier: self.earlier, replaced }
    }
}

impl Writer {
    fn of(record: &Record<'_>) -> Self {
        let Payload::Inline(Value::Object(content)) = &record.payload else {
            return Self {
                record: record.id,
                from: None,
                holds: Taint::ALL,
                earlier: Vec::new(),
                replaced: None,
            };
        };
        let stays = content.get("stays").and_then(Value::as_object);
        let empty = Object::default();
        let stays = stays.unwrap_or(&empty);
        let from = content.get("from").and_then(Value::as_str).map(PathBuf::from);
        Self {
            record: record.id,
            from: from.filter(|_| record.kind == RecordType::FileRename),
            holds: Taint::from_names(strings(content, "direct").chain(strings(stays, "taint"))),
            earlier: strings(stays, "from").filter_map(RecordId::from_hex).take(SOURCES).collect(),
            replaced: Replaced::of(content),
        }
    }
}

impl Monitor {
    /// What a file holds, as far as the journal tells.
    pub(super) fn past(&self, path: &Path) -> Result<Past> {
        let mut past = Past::default();
        let mut seen = HashSet::from([path.to_owned()]);
        let mut waiting = vec![path.to_owned()];
        let now = OnceCell::new();
        let now = || now.get_or_init(|| read_plain(path, super::pipeline::KEPT as u64).ok());
        while let Some(path) = waiting.pop() {
            for (up, name) in path.ancestors().enumerate() {
                if name.parent().is_none() {
                    break;
                }
                let Some(writer) = self.last_writer(name, &mut past)? else { continue };
                // A folder tells of what is in it only where it was moved.
                if up > 0 && writer.from.is_none() {
                    continue;
                }
                match writer.replaced.as_ref().filter(|_| up == 0) {
                    Some(replaced) => self.add_made(&mut past, &writer, replaced, now().as_deref()),
                    None => past.add(&writer),
                }
                let inside = path.strip_prefix(name).unwrap_or(Path::new(""));
                let earlier = writer.from.filter(|_| up > 0).map(|from| from.join(inside));
                if let Some(earlier) = earlier.filter(|earlier| !seen.contains(earlier)) {
                    if seen.len() == NAMES {
                        past.unknown = true;
                        return Ok(past);
                    }
                    seen.insert(earlier.clone());
                    waiting.push(earlier);
                }
            }
        }
        Ok(past)
    }

    /// Adds the last change of a file, or what it would have replaced, by what the file holds now.
    fn add_made(&self, past: &mut Past, writer: &Writer, replaced: &Replaced, now: Option<&[u8]>) {
        let hash = now.map(sha256);
        let is = |other: Option<[u8; 32]>| hash.is_some() && hash == other;
        let earlier = replaced.past.pending.iter().cloned();
        if is(replaced.held) && !is(replaced.put) {
            past.join(&replaced.past);
            past.pending.extend(earlier);
            past.pending.push(Pending { record: writer.record, holds: writer.holds });
        } else {
            past.add(writer);
            if !is(replaced.put) {
                if !self.is_gone(replaced, now) {
                    past.join(&replaced.past);
                }
                // Somebody made another change than the last one: it may have been one of these.
                for one in &replaced.past.pending {
                    past.holds |= one.holds;
                    past.come_from(std::iter::once(&one.record));
                }
            }
            past.pending.extend(earlier);
        }
        let over = past.pending.len().saturating_sub(PENDING);
        past.pending.drain(..over);
    }

    /// Whether nothing is left of what a file held before a change. What cannot be read may be left.
    fn is_gone(&self, replaced: &Replaced, now: Option<&[u8]>) -> bool {
        let (Some(held), Some(now)) = (replaced.held, now) else { return false };
        let path = self.store.path().join("blobs").join(BlobHash(held).to_string());
        let before = read_plain(&path, super::pipeline::KEPT as u64).ok();
        let before = before.filter(|bytes| sha256(bytes) == held);
        before.is_some_and(|before| {
            !stays(&String::from_utf8_lossy(&before), &String::from_utf8_lossy(now))
        })
    }

    /// Whether it has to be known what a change replaces: it is tainted, or the change is.
    pub(super) fn matters(&self, replaces: &mut Replaces, session: &str, taint: Taint) -> bool {
        let here = |taint: Taint| !taint.without(Taint::CROSS_SESSION).is_empty();
        replaces.tainted = here(self.taint_of_past(&replaces.past, session));
        // Those that bring nothing need not be known.
        let pending = std::mem::take(&mut replaces.past.pending);
        let brings = |one: &Pending| here(one.holds | self.taint_from(one.record, session));
        replaces.past.pending = pending.into_iter().filter(brings).collect();
        replaces.tainted || here(taint) || !replaces.past.pending.is_empty()
    }

    /// What a write of `text` leaves of a file that held `before`.
    pub(super) fn stays(
        &self,
        past: Past,
        session: &str,
        before: Option<&str>,
        text: &str,
    ) -> Stays {
        let taint = self.taint_of_past(&past, session);
        // What cannot be read may have stayed.
        if taint.is_empty() || before.is_some_and(|before| !stays(before, text)) {
            return Stays::default();
        }
        let Past { mut records, holds, unknown, .. } = past;
        records.truncate(SOURCES);
        Stays { taint, holds: if unknown { Taint::ALL } else { holds }, earlier: records }
    }

    /// All taint of what a file holds.
    pub(super) fn taint_of_past(&self, past: &Past, session: &str) -> Taint {
        let known = past.records.iter().map(|record| self.taint_from(*record, session));
        let known = known.fold(Taint::NONE, |all, one| all | one);
        if past.unknown { Taint::ALL } else { known }
    }

    /// Notes the last change of a file.
    pub(super) fn wrote(&self, path: PathBuf, writer: Writer) -> Result<()> {
        let mut writers = held(&self.writers);
        if writers.len() >= KEPT {
            // From here on they are looked up, so that the index has to know all of them.
            held(&self.index).catch_up(self.store.journal().folder(), &mut |_| {})?;
            writers.clear();
        }
        writers.insert(path, writer);
        Ok(())
    }

    /// The record that last changed a file. One that cannot be read makes its past unknown.
    fn last_writer(&self, path: &Path, past: &mut Past) -> Result<Option<Writer>> {
        if let Some(writer) = held(&self.writers).get(path) {
            return Ok(Some(writer.clone()));
        }
        let folder = self.store.journal().folder();
        let changes = held(&self.index).changes_of(&path.to_string_lossy(), 1)?;
        let Some((_, place)) = changes.first().copied() else { return Ok(None) };
        let line = folder.read_line(place).map_err(crate::store::StoreError::from)?;
        let line = parse_line(&line)
            .filter(|line| line.record.compute_id(&mut Vec::new()) == line.record.id);
        past.unknown |= line.is_none();
        Ok(line.map(|line| Writer::of(&line.record)))
    }
}

impl Past {
    fn add(&mut self, writer: &Writer) {
        self.holds |= writer.holds;
        self.come_from([writer.record].iter().chain(&writer.earlier));
    }

    fn join(&mut self, other: &Self) {
        self.holds |= other.holds;
        self.unknown |= other.unknown;
        self.come_from(other.records.iter());
    }

    fn come_from<'r>(&mut self, records: impl Iterator<Item = &'r RecordId>) {
        for record in records {
            if !self.records.contains(record) {
                self.records.push(*record);
            }
        }
    }
}

/// Whether something of a text is still in another: some words in a row.
fn stays(before: &str, text: &str) -> bool {
    fn words(text: &str) -> Vec<String> {
        let words = text.split(|character: char| !character.is_alphanumeric());
        words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
    }
    let (before, text) = (words(before), words(text));
    let size = STAYS.min(before.len());
    if size == 0 {
        return false;
    }
    let kept: HashSet<&[String]> = before.windows(size).collect();
    text.windows(size).any(|group| kept.contains(group))
}

#[cfg(test)]
mod tests {
    use super::stays;

    #[test]
    fn what_stays_is_told_by_words_in_a_row() {
        let note = "One two three four five six seven.";
        assert!(stays(note, "Zero. ONE, two: three four\nfive! And more."));
        assert!(stays("Short note", "A short note."));
        assert!(!stays(note, "One three five seven nine eleven."));
        assert!(!stays("", "anything") && !stays(note, ""));
    }
}
