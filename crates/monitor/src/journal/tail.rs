//! The end of a segment, read backwards.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use wardkeep_evidence::hash::EntryHash;
use wardkeep_evidence::time::Timestamp;
use wardkeep_evidence::verify::MAX_LINE_BYTES;

use super::{Found, Region, SegmentNumber, parse_line};
use crate::files::hash_range;

/// The last entry of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LastEntry {
    pub(super) index: u64,
    pub(super) hash: EntryHash,
    pub(super) time: Option<Timestamp>,
}

/// How a segment ends.
#[derive(Debug, Default)]
pub(super) struct SegmentEnd {
    /// The last line that holds together, if any does.
    pub(super) last: Option<LastEntry>,
    /// Offset and length of that line.
    pub(super) line: Option<(u64, u64)>,
    /// What stands behind it.
    pub(super) found: Option<Found>,
    /// The last line has no newline.
    pub(super) unfinished: bool,
    /// What stands behind it holds more than the longest line: readers may not get past it.
    pub(super) impassable: bool,
}

/// Segments that are meant to be longer are not: behind this, nothing honest begins.
pub(super) const MAX_SEGMENT_BYTES: u64 = 512 << 20;
/// Most bytes behind the last entry that a recovery record accounts for by their hash.
const MAX_TOLD_BYTES: u64 = 64 << 20;
const FIRST_BLOCK: u64 = 16 << 10;
const BLOCK: u64 = 256 << 10;

/// Reads the end of `file` (`length` bytes) back to the last line that holds together, in bounded
/// memory and time whatever stands there.
pub(super) fn read_end(file: &File, length: u64, segment: SegmentNumber) -> io::Result<SegmentEnd> {
    let mut end = SegmentEnd::default();
    let mut lines = Backwards::new(file, length);
    // Where what does not hold together begins; the end of the file if all does.
    let mut garbage_from = length;
    let mut garbage_lines = 0u64;
    while let Some((start, stop)) = lines.next()? {
        let torn = stop == length;
        if torn && start == stop {
            continue;
        }
        end.unfinished |= torn;
        if let Some(last) = lines.entry(start, stop)? {
            end.last = Some(last);
            end.line = Some((start, stop - start));
            if torn {
                end.found = Some(Found::UnfinishedLine { segment, index: last.index });
            }
            break;
        }
        garbage_from = start;
        garbage_lines += 1;
    }
    let garbage = length - garbage_from;
    end.impassable = garbage > MAX_LINE_BYTES as u64;
    if garbage > MAX_TOLD_BYTES {
        end.found = Some(Found::TooMuchGarbage { segment, offset: garbage_from, length: garbage });
    } else if garbage > 0 {
        let sha256 = hash_range(file, garbage_from, garbage)?;
        let region = Region { segment, offset: garbage_from, length: garbage, sha256 };
        let torn_only = end.unfinished && garbage_lines == 1;
        end.found = Some(if torn_only { Found::TornTail(region) } else { Found::Garbage(region) });
    }
    Ok(end)
}

/// The lines of a file from the last to the first.
struct Backwards<'f> {
    file: &'f File,
    length: u64,
    block: Vec<u8>,
    // Offset of the block.
    start: u64,
    // End of the line that is looked for next; none after the first line of the file.
    stop: Option<u64>,
}

impl<'f> Backwards<'f> {
    fn new(file: &'f File, length: u64) -> Self {
        Self { file, length, block: Vec::new(), start: length, stop: Some(length) }
    }

    /// Start and end of the line before, without its newline; first what follows the last newline,
    /// even if that is nothing.
    fn next(&mut self) -> io::Result<Option<(u64, u64)>> {
        let Some(stop) = self.stop else { return Ok(None) };
        let mut cursor = stop;
        loop {
            if cursor <= self.start {
                // Far behind everything that a writer leaves: a hole, or someone's garbage.
                if self.length - cursor > MAX_TOLD_BYTES {
                    cursor = cursor.min(2 * MAX_SEGMENT_BYTES);
                }
                if cursor == 0 {
                    self.stop = None;
                    return Ok(Some((0, stop)));
                }
                let size = cursor.min(if self.block.is_empty() { FIRST_BLOCK } else { BLOCK });
                self.start = cursor - size;
                self.block.resize(usize::try_from(size).map_err(io::Error::other)?, 0);
                self.file.read_exact_at(&mut self.block, self.start)?;
            }
            let within = usize::try_from(cursor - self.start).map_err(io::Error::other)?;
            if let Some(at) = memchr::memrchr(b'\n', &self.block[..within]) {
                let newline = self.start + at as u64;
                self.stop = Some(newline);
                return Ok(Some((newline + 1, stop)));
            }
            cursor = self.start;
        }
    }

    /// The entry of a line, if it holds together.
    fn entry(&self, start: u64, stop: u64) -> io::Result<Option<LastEntry>> {
        let length = usize::try_from(stop - start).map_err(io::Error::other)?;
        if length > MAX_LINE_BYTES {
            return Ok(None);
        }
        let here = start.checked_sub(self.start).and_then(|at| usize::try_from(at).ok());
        if let Some(line) = here.and_then(|at| self.block.get(at..at + length)) {
            return Ok(last_entry(line));
        }
        let mut line = vec![0; length];
        self.file.read_exact_at(&mut line, start)?;
        Ok(last_entry(&line))
    }
}

fn last_entry(line: &[u8]) -> Option<LastEntry> {
    let line = parse_line(line)?;
    Some(LastEntry {
        index: line.entry.index,
        hash: line.entry.hash,
        time: line.entry.timestamp.parse().ok(),
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn lines_come_from_the_last_to_the_first() {
        let long = "x".repeat(300_000);
        for text in ["", "\n", "a", "a\n", "\n\na\n\nbc", &format!("{long}\ny\n{long}{long}\n")] {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(text.as_bytes()).unwrap();
            let mut lines = Backwards::new(&file, text.len() as u64);
            let mut found = Vec::new();
            while let Some((start, stop)) = lines.next().unwrap() {
                let range = usize::try_from(start).unwrap()..usize::try_from(stop).unwrap();
                found.push(&text[range]);
            }
            found.reverse();
            assert_eq!(found, text.split('\n').collect::<Vec<_>>(), "{:.40}", text);
        }
    }
}
