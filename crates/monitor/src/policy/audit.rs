//! The audit log held against the journal.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::ops::ControlFlow;
use std::path::Path;

use memchr::memmem;
use wardkeep_evidence::json::Value;
use wardkeep_evidence::record::{Payload, RecordType};
use wardkeep_policy::audit::{Action, AuditError, Locked, Reconciled, reconcile};
use wardkeep_policy::hash::LineHash;

use super::KIND;
use super::check::Kept;
use crate::journal::{Folder, Position, parse_line, scan};
use crate::store::StoreError;

/// How far back the newest entry is looked for when a session starts.
const TAIL: u64 = 256 << 10;
/// What every line of the journal that stands for an entry holds.
const MARK: &[u8] = br#""kind":"audit""#;

/// An entry as the journal has it.
struct Expected {
    line: String,
    hash: LineHash,
}

/// What comparing the two showed.
#[derive(Debug, Default)]
pub struct Compared {
    /// Entries that the journal has.
    pub recorded: u64,
    /// Entries that never reached the log, as the journal says itself.
    pub unwritten: u64,
    /// What the log lacks, and what it has too much.
    pub differences: Reconciled,
}

/// Compares the whole log with the whole journal.
///
/// # Errors
/// When either cannot be read.
pub fn compare(folder: &Folder, log: &Path) -> Result<Compared, CompareError> {
    let mut compared = Compared::default();
    let mut expected = Vec::new();
    let find = memmem::Finder::new(MARK);
    scan(folder, Position::START, |_, text| {
        if find.find(text).is_some() {
            match entry(text) {
                Some(Ok(entry)) => expected.push(entry.hash),
                Some(Err(())) => compared.unwritten += 1,
                None => {}
            }
        }
        ControlFlow::Continue(())
    })
    .map_err(StoreError::from)?;
    compared.recorded = expected.len() as u64 + compared.unwritten;
    compared.differences = reconcile(log, &expected)?;
    Ok(compared)
}

/// Why the two cannot be compared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompareError {
    /// The journal cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The log cannot be read.
    #[error(transparent)]
    Audit(#[from] AuditError),
}

/// Writes the newest line again that a crash kept from the log: the journal has it, and the log
/// ends where it would begin, or in the middle of it. Nothing here stops a session.
pub(super) fn repair(folder: &Folder, log: &mut Locked) -> bool {
    newest(folder).is_some_and(|newest| log.restore(&newest.line).unwrap_or(false))
}

/// The last part of the journal.
fn tail(folder: &Folder) -> Option<Vec<u8>> {
    let segment = *folder.segments().ok()?.last()?;
    let (mut file, length) = folder.read_segment(segment).ok()?;
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL))).ok()?;
    file.take(TAIL).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// How often a session was kept from writing a protected file, as far back as the last part of
/// the journal tells: denied, and sent to the staging folder.
pub(super) fn blocked_in(folder: &Folder, session: &str) -> (usize, usize) {
    let Some(bytes) = tail(folder) else { return (0, 0) };
    let (mut denied, mut staged) = (0, 0);
    let lines = bytes.split(|byte| *byte == b'\n');
    for line in lines.filter(|line| memmem::find(line, MARK).is_some()) {
        match kept(line, session) {
            Some(Kept::Denied) => denied += 1,
            Some(Kept::Staged) => staged += 1,
            None => {}
        }
    }
    (denied, staged)
}

fn kept(text: &[u8], session: &str) -> Option<Kept> {
    let line = parse_line(text)?;
    let Payload::Inline(content) = &line.record.payload else { return None };
    let content = content.as_object()?;
    let blocked = content.get("kind")?.as_str()? == KIND
        && content.get("action")?.as_str()? == Action::WriteBlocked.name();
    (blocked && line.record.meta.get("session")?.as_str()? == session).then_some(())?;
    Some(match content.get("staged") {
        Some(Value::Bool(true)) => Kept::Staged,
        _ => Kept::Denied,
    })
}

/// The newest entry in the last part of the journal.
fn newest(folder: &Folder) -> Option<Expected> {
    let bytes = tail(folder)?;
    let mut end = bytes.len();
    while let Some(at) = memmem::rfind(&bytes[..end], MARK) {
        let start = memchr::memrchr(b'\n', &bytes[..at]).map_or(0, |newline| newline + 1);
        let stop = memchr::memchr(b'\n', &bytes[at..]).map(|newline| at + newline)?;
        if let Some(Ok(found)) = entry(&bytes[start..stop]) {
            return Some(found);
        }
        end = start;
    }
    None
}

/// The entry that a line of the journal stands for: `None` if it is another record or does not hold
/// together, `Err` if the entry never reached the log.
fn entry(text: &[u8]) -> Option<Result<Expected, ()>> {
    let line = parse_line(text)?;
    if line.record.kind != RecordType::GuardDecision {
        return None;
    }
    let Payload::Inline(content) = &line.record.payload else { return None };
    let content = content.as_object()?;
    if content.get("kind")?.as_str()? != KIND {
        return None;
    }
    let (Some(line), Some(hash)) = (content.get("line"), content.get("sha256")) else {
        return Some(Err(()));
    };
    let (line, hash) = (line.as_str()?, LineHash::from_hex(hash.as_str()?)?);
    (LineHash::of(line.as_bytes()) == hash).then(|| Ok(Expected { line: line.to_owned(), hash }))
}
