//! The end of a segment, read backwards.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use wardkeep_evidence::hash::{EntryHash, sha256};
use wardkeep_evidence::time::Timestamp;

use super::{Found, Region, SegmentNumber, parse_line};

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
    /// What stands behind it.
    pub(super) found: Vec<Found>,
    /// The last line has no newline.
    pub(super) unfinished: bool,
}

const FIRST_WINDOW: u64 = 16 << 10;

/// Reads the end of `file` (`length` bytes) back to the last line that holds together.
pub(super) fn read_end(file: &File, length: u64, segment: SegmentNumber) -> io::Result<SegmentEnd> {
    let mut window = FIRST_WINDOW.min(length);
    loop {
        let start = length - window;
        let mut bytes = vec![0; usize::try_from(window).map_err(io::Error::other)?];
        file.read_exact_at(&mut bytes, start)?;
        if let Some(end) = judge(&bytes, start, segment) {
            return Ok(end);
        }
        window = (window * 4).min(length);
    }
}

/// Judges the bytes from `start` to the end of the file; `None` if they do not reach back to a
/// line that holds together and there is more before them.
fn judge(bytes: &[u8], start: u64, segment: SegmentNumber) -> Option<SegmentEnd> {
    let mut end = SegmentEnd::default();
    if bytes.is_empty() {
        return Some(end);
    }
    let last_line_start = memchr::memrchr(b'\n', bytes).map_or(0, |at| at + 1);
    let torn = &bytes[last_line_start..];
    end.unfinished = !torn.is_empty();
    // Where what does not hold together begins; the end of the bytes if all does.
    let mut garbage_from = bytes.len();
    if end.unfinished {
        if last_line_start == 0 && start > 0 {
            return None;
        }
        if let Some(last) = last_entry(torn) {
            end.found.push(Found::UnfinishedLine { segment, index: last.index });
            end.last = Some(last);
            return Some(end);
        }
        garbage_from = last_line_start;
    }
    let mut line_end = last_line_start;
    while line_end > 0 {
        let line_start = memchr::memrchr(b'\n', &bytes[..line_end - 1]).map_or(0, |at| at + 1);
        if line_start == 0 && start > 0 {
            return None;
        }
        if let Some(last) = last_entry(&bytes[line_start..line_end - 1]) {
            end.last = Some(last);
            break;
        }
        garbage_from = line_start;
        line_end = line_start;
    }
    if end.last.is_none() && start > 0 {
        return None;
    }
    if garbage_from < bytes.len() {
        let garbage = &bytes[garbage_from..];
        let region = Region {
            segment,
            offset: start + garbage_from as u64,
            length: garbage.len() as u64,
            sha256: sha256(garbage),
        };
        let torn_only = end.unfinished && garbage_from == last_line_start;
        end.found.push(if torn_only { Found::TornTail(region) } else { Found::Garbage(region) });
    }
    Some(end)
}

fn last_entry(line: &[u8]) -> Option<LastEntry> {
    let line = parse_line(line)?;
    Some(LastEntry {
        index: line.entry.index,
        hash: line.entry.hash,
        time: line.entry.timestamp.parse().ok(),
    })
}
