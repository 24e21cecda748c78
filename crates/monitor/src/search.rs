//! The newest records that hold a text or answer several conditions, in bounded time.
//!
//! One condition leads through the index at once. Several, or a text that stands in no index, are looked
//! for from the newest record on until enough is found or the time is up; then it says how far it came.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use memchr::memchr2_iter;
use wardkeep_evidence::canonical::write_canonical_string;

use crate::index::{Filter, Index, LookError};
use crate::journal::{Folder, JournalError, Location, SegmentNumber, parse_line};
use crate::store::StoreReader;

/// Places that are asked for at once where a text is looked for.
const BATCH: u32 = 2048;
/// Positions that several conditions are looked for in at once.
const WINDOW: u64 = 1 << 16;
/// Bytes that are read at once, going backwards.
const BLOCK: u64 = 64 << 10;

/// What is looked for.
#[derive(Debug, Clone, Default)]
pub struct Sought {
    /// Conditions.
    pub filter: Filter,
    /// A text anywhere in the record, whatever its case in ASCII.
    pub text: Option<String>,
}

/// What was found, the newest first.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// Lines of the journal, each read and its id recomputed.
    pub lines: Vec<Vec<u8>>,
    /// Where it stopped because the time was up: records before this position were not looked at.
    pub stopped_at: Option<u64>,
}

/// Looks for the newest records, at most `limit`; `is_late` says when to stop.
///
/// # Errors
/// When the index is wrong about a record or cannot be used.
pub fn search(
    reader: &StoreReader,
    index: &Index,
    sought: &Sought,
    limit: usize,
    is_late: &mut dyn FnMut() -> bool,
) -> Result<Found, LookError> {
    let mut found = Found::default();
    if limit == 0 {
        return Ok(found);
    }
    let needle = sought.text.as_deref().filter(|text| !text.is_empty()).map(as_written);
    let from = sought.filter.from.unwrap_or(0);
    let mut below = match sought.filter.below {
        Some(below) => below,
        None => index.records()?,
    };
    let direct = sought.filter.is_direct();
    let mut lines = Backwards::new(reader.folder());
    while below > from {
        let window = if direct { from } else { from.max(below.saturating_sub(WINDOW)) };
        let filter = Filter { below: Some(below), from: Some(window), ..sought.filter.clone() };
        let most = match &needle {
            Some(_) => BATCH,
            None => u32::try_from(limit - found.lines.len()).unwrap_or(BATCH),
        };
        let places = index.newest_at(&filter, most)?;
        let full = places.len() >= most as usize;
        for (at, place) in places {
            below = at;
            let text = lines.read(place)?;
            if needle.as_ref().is_some_and(|needle| !holds(text, needle)) {
                continue;
            }
            let sound = parse_line(text)
                .is_some_and(|line| line.entry.index == at && sought.filter.matches(&line));
            if !sound {
                return Err(LookError::Wrong(1));
            }
            found.lines.push(text.to_vec());
            if found.lines.len() >= limit {
                return Ok(found);
            }
        }
        if !full {
            below = window;
        }
        if below > from && is_late() {
            found.stopped_at = Some(below);
            break;
        }
    }
    Ok(found)
}

/// A text as it stands in the journal, without the quotes.
fn as_written(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    write_canonical_string(text, &mut out);
    out.get(1..out.len().saturating_sub(1)).unwrap_or_default().to_vec()
}

fn holds(text: &[u8], needle: &[u8]) -> bool {
    let Some((first, rest)) = needle.split_first() else { return true };
    let (low, high) = (first.to_ascii_lowercase(), first.to_ascii_uppercase());
    memchr2_iter(low, high, text).any(|at| {
        let behind = text.get(at + 1..at + 1 + rest.len());
        behind.is_some_and(|behind| behind.eq_ignore_ascii_case(rest))
    })
}

/// Reads lines from the end of a segment to its beginning, a block at a time.
struct Backwards<'f> {
    folder: &'f Folder,
    open: Option<(SegmentNumber, File)>,
    start: u64,
    bytes: Vec<u8>,
}

impl<'f> Backwards<'f> {
    fn new(folder: &'f Folder) -> Self {
        Self { folder, open: None, start: 0, bytes: Vec::new() }
    }

    /// A line; shorter than it should be where the segment is.
    fn read(&mut self, place: Location) -> Result<&[u8], JournalError> {
        let length = place.length.min(wardkeep_evidence::verify::MAX_LINE_BYTES as u64);
        let end = place.offset.saturating_add(length);
        let same = self.open.as_ref().is_some_and(|(segment, _)| *segment == place.segment);
        let held = self.start..=self.start + self.bytes.len() as u64;
        if !same || !held.contains(&place.offset) || !held.contains(&end) {
            self.fill(place, end, same)?;
        }
        let at = |position: u64| {
            usize::try_from(position.saturating_sub(self.start)).unwrap_or(usize::MAX)
        };
        let (first, last) = (at(place.offset).min(self.bytes.len()), at(end).min(self.bytes.len()));
        Ok(&self.bytes[first..last])
    }

    fn fill(&mut self, place: Location, end: u64, same: bool) -> Result<(), JournalError> {
        if !same {
            self.open = Some((place.segment, self.folder.read_segment(place.segment)?.0));
        }
        let start = end.saturating_sub(BLOCK).min(place.offset);
        self.start = start;
        self.bytes.clear();
        self.bytes.resize(usize::try_from(end - start).unwrap_or(0), 0);
        let Some((_, file)) = &self.open else { return Ok(()) };
        let mut read = 0;
        while let Some(rest) = self.bytes.get_mut(read..).filter(|rest| !rest.is_empty()) {
            match file.read_at(rest, start + read as u64) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let path = self.folder.segment_path(place.segment);
                    return Err(JournalError::io("read", &path, error));
                }
            }
        }
        self.bytes.truncate(read);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_in_any_case_and_as_it_is_written() {
        let held = |text: &str, needle: &str| holds(text.as_bytes(), &as_written(needle));
        assert!(held("{\"a\":\"Evil.example\"}", "evil.EXAMPLE"));
        assert!(held("{\"a\":\"say \\\"hi\\\"\"}", "say \"hi\""));
        assert!(!held("{\"a\":\"evil\"}", "evils"));
        assert!(held("xxev", "EV") && !held("xxe", "ev"));
        assert!(held("anything", ""));
    }
}
