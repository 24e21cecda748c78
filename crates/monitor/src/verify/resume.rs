//! Verification that goes on where an earlier one ended.
//!
//! `STATE/verified` says that everything before a segment was found sound. It is a hint: the tree
//! before that segment must lead to the roots that were sealed later, so it cannot stand for other
//! entries than those that were sealed. That the older segments still hold the same bytes is told by
//! the times at which the system last saw them change: none may be later than the first entry of
//! the segment behind it. Only the system sets these times, so a change by anyone but root makes
//! the whole journal be read. Whoever forges `verified` as well, and the first line of every segment
//! between, can hide a change once a segment begins after it; reading everything finds that too.

use std::io::{BufRead as _, BufReader, Read as _};

use serde::{Deserialize, Serialize};
use wardkeep_evidence::bundle::StagedFile;
use wardkeep_evidence::hash::{EntryHash, RecordId};
use wardkeep_evidence::merkle::{Frontier, TreeHash};
use wardkeep_evidence::time::Timestamp;
use wardkeep_evidence::verify::{MAX_LINE_BYTES, Trust};

use super::{Behind, JournalReport, Ran, run};
use crate::files::read_plain;
use crate::index::Index;
use crate::journal::{Folder, SegmentNumber, entry_of, parse_line};
use crate::store::{StoreError, StoreReader};

/// The file that remembers how far the journal was verified.
pub const VERIFIED: &str = "verified";
const VERSION: u32 = 1;
/// Longer than any that is written.
const MAX_BYTES: u64 = 64 << 10;
/// Most parents in the older part that are looked up one by one.
const MAX_LOOKED_UP: u64 = 20_000;

/// The start of a segment, and the tree before it.
#[derive(Debug, Clone)]
pub(super) struct Mark {
    pub(super) segment: SegmentNumber,
    pub(super) entries: u64,
    pub(super) head: EntryHash,
    pub(super) frontier: Frontier,
}

/// How much to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// From the last verified checkpoint on, if that holds.
    Further,
    /// Everything.
    Full,
}

/// What was found, and how much of it in this pass.
#[derive(Debug, Clone)]
pub struct Verified {
    /// What was found; the counts by type and principal, the times and the recoveries are of the
    /// part that was read.
    pub report: JournalReport,
    /// Entries before the part that was read; 0 if everything was.
    pub skipped: u64,
    /// When everything before that was verified, as far as is remembered.
    pub earlier: Option<String>,
    /// Heads of seals and witnesses over less than what was skipped, which were not compared.
    pub skipped_heads: u64,
    /// Why everything was read though less was asked for.
    pub why_full: Option<&'static str>,
}

/// The content of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: u32,
    /// First segment that must be read.
    segment: u32,
    /// Entries before it.
    entries: u64,
    /// Hash of the last of them.
    head: String,
    /// The complete subtrees over them, the largest first.
    nodes: Vec<String>,
    /// When everything was last read.
    full: String,
}

/// Verifies a journal from where it was verified before, and remembers how far that was. Any doubt
/// about what is remembered means that everything is read.
///
/// # Errors
/// When the journal's folder cannot be listed; everything else is a finding.
pub fn verify_further(
    store: &StoreReader,
    trust: &Trust,
    scope: Scope,
    now: Timestamp,
    threads: usize,
    progress: &mut dyn FnMut(u64),
) -> Result<Verified, StoreError> {
    let mut why_full = None;
    if scope == Scope::Further {
        match resume(store, trust, threads, progress)? {
            Ok((ran, entries, full)) => {
                remember(store, &ran, &full);
                return Ok(Verified {
                    report: ran.report,
                    skipped: entries,
                    earlier: Some(full),
                    skipped_heads: ran.skipped_heads,
                    why_full: None,
                });
            }
            Err(why) => why_full = why,
        }
    }
    let ran = run(store, trust, threads, None, progress)?;
    remember(store, &ran, &now.to_string());
    Ok(Verified { report: ran.report, skipped: 0, earlier: None, skipped_heads: 0, why_full })
}

/// A pass behind the mark, or why there is none; no reason where nothing is remembered.
#[expect(clippy::type_complexity, reason = "a pass, or a reason why not, or a failure")]
fn resume(
    store: &StoreReader,
    trust: &Trust,
    threads: usize,
    progress: &mut dyn FnMut(u64),
) -> Result<Result<(Ran, u64, String), Option<&'static str>>, StoreError> {
    let Ok(bytes) = read_plain(&store.path().join(VERIFIED), MAX_BYTES) else {
        return Ok(Err(None));
    };
    let Some((mark, full)) = read_file(&bytes) else {
        return Ok(Err(Some("what was remembered of the last verification cannot be read")));
    };
    if mark.entries == 0 {
        return Ok(Err(None));
    }
    if !settled(store.folder(), mark.segment)? {
        return Ok(Err(Some("older segments were touched since they were full")));
    }
    let entries = mark.entries;
    let mut looked_up = 0;
    let index = Index::open_existing(store.path());
    let mut is_earlier = |id: &RecordId| {
        looked_up += 1;
        looked_up <= MAX_LOOKED_UP
            && index.as_ref().is_some_and(|index| is_before(store, index, *id, entries))
    };
    let from = Behind { mark, is_earlier: &mut is_earlier };
    let ran = run(store, trust, threads, Some(from), progress)?;
    // The first entry behind the mark must be sealed: it says until when the older segments may
    // have been written.
    let sealed = ran.report.seals.as_ref().is_some_and(|seals| seals.signed_to > entries);
    Ok(match (ran.report.passed(), sealed) {
        (true, true) => Ok((ran, entries, full)),
        (true, false) => Err(Some("nothing behind the last verified checkpoint is sealed yet")),
        (false, _) => Err(Some("what follows the last verified checkpoint does not hold")),
    })
}

fn read_file(bytes: &[u8]) -> Option<(Mark, String)> {
    let file: File = serde_json::from_slice(bytes).ok()?;
    let nodes: Option<Vec<TreeHash>> =
        file.nodes.iter().map(|node| TreeHash::from_base64(node).ok()).collect();
    let mark = Mark {
        segment: SegmentNumber(file.segment),
        entries: file.entries,
        head: EntryHash::from_hex(&file.head)?,
        frontier: Frontier::from_parts(file.entries, nodes?)?,
    };
    let full: Timestamp = file.full.parse().ok()?;
    (file.version == VERSION).then(|| (mark, full.to_string()))
}

/// Whether the segments before `first` are all there, and none was touched after the one behind it
/// was begun.
fn settled(folder: &Folder, first: SegmentNumber) -> Result<bool, StoreError> {
    let segments = folder.segments()?;
    let before = segments.iter().take_while(|segment| **segment < first);
    let mut expected = SegmentNumber(1);
    for segment in before {
        if *segment != expected {
            return Ok(false);
        }
        expected = segment.next();
        let (Some(changed), Some(begun)) =
            (folder.changed_at(*segment)?, begun(folder, segment.next()))
        else {
            return Ok(false);
        };
        if changed > begun {
            return Ok(false);
        }
    }
    Ok(expected == first)
}

/// When the first entry of a segment was written, in seconds since 1970, as it says itself.
fn begun(folder: &Folder, segment: SegmentNumber) -> Option<i64> {
    let (file, _) = folder.read_segment(segment).ok()?;
    let mut line = Vec::new();
    let limit = MAX_LINE_BYTES as u64 + 1;
    BufReader::new(file.take(limit)).read_until(b'\n', &mut line).ok()?;
    let entry = entry_of(line.strip_suffix(b"\n")?)?;
    entry.timestamp.parse::<Timestamp>().ok().map(Timestamp::unix)
}

/// Whether a record is where the index says, before entry `end`.
fn is_before(store: &StoreReader, index: &Index, id: RecordId, end: u64) -> bool {
    let found = index.location(id).ok().flatten();
    let text = found.and_then(|location| store.folder().read_line(location).ok());
    text.is_some_and(|text| {
        parse_line(&text).is_some_and(|line| line.record.id == id && line.entry.index < end)
    })
}

/// Remembers the last segment that begins under a seal. Losing it costs only time.
fn remember(store: &StoreReader, ran: &Ran, full: &str) {
    let path = store.path().join(VERIFIED);
    let signed = ran.report.seals.as_ref().map_or(0, |seals| seals.signed_to);
    let mark = ran.marks.iter().rev().find(|mark| mark.entries < signed);
    let Some(mark) = mark.filter(|mark| ran.report.passed() && mark.entries > 0) else {
        if !ran.report.passed() {
            let _ = std::fs::remove_file(&path);
        }
        return;
    };
    let file = File {
        version: VERSION,
        segment: mark.segment.0,
        entries: mark.entries,
        head: mark.head.to_string(),
        nodes: mark.frontier.nodes().iter().map(TreeHash::to_base64).collect(),
        full: full.to_owned(),
    };
    if let Ok(bytes) = serde_json::to_vec(&file) {
        let _ = StagedFile::replace(&path, 0o600, &bytes);
    }
}
