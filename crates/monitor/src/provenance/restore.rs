//! What files were before something tainted touched them.

use std::path::Path;

use serde::Serialize;
use wardkeep_evidence::hash::{BlobHash, RecordId};
use wardkeep_evidence::json::Value;
use wardkeep_evidence::record::RecordType;

use super::{Closure, Met, read};
use crate::files::{hash_range, open_plain};
use crate::index::{Facts, Index, LookError};
use crate::store::StoreReader;

/// How to undo what a record and everything that came from it did to files.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RestorePlan {
    /// What can be put back.
    pub restore: Vec<Restore>,
    /// What cannot, and why.
    pub impossible: Vec<Impossible>,
    /// Files that were not looked at because there were too many.
    pub more: u64,
}

/// A file and what it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Restore {
    /// The file, as the record names it.
    pub path: String,
    /// Its content before; `None` if there was no such file.
    pub before: Option<BlobHash>,
    /// The first tainted change.
    pub record: RecordId,
    /// Position of that in the log.
    pub index: u64,
    /// A later change of the file that is not tainted, and would be lost.
    pub later: Option<RecordId>,
    /// Whether it holds something else than its last recorded change left: someone whom the journal
    /// does not know had a hand in it, and that would be lost.
    pub unexplained: bool,
    /// Whether it holds what it held before: the change was never made, or was undone.
    pub unchanged: bool,
}

/// A file that cannot be put back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Impossible {
    /// The file, as the record names it.
    pub path: String,
    /// The first tainted change.
    pub record: RecordId,
    /// Why not.
    pub why: String,
}

/// Finds, for each file that `closure` touches, the content before the first tainted change. The
/// records are read from the journal and the blobs hashed; nothing is written.
///
/// # Errors
/// When the index is wrong or cannot be read.
pub fn restore_plan(
    reader: &StoreReader,
    index: &Index,
    closure: &Closure,
) -> Result<RestorePlan, LookError> {
    let met = Met::gather(index, closure, 0)?;
    let mut plan = RestorePlan { more: met.other_files, ..RestorePlan::default() };
    // The source itself may be such a change.
    let mut changes: Vec<(u64, Option<String>)> =
        met.files.into_iter().map(|(name, subject)| (subject.first, Some(name))).collect();
    changes.push((closure.start(), None));
    changes.sort();
    let mut wrong = 0;
    let mut seen = std::collections::HashSet::new();
    for (position, name) in changes {
        let own = name.is_none();
        let found = index.row(position)?.and_then(|row| {
            read(reader, row.location, |line| {
                let facts = Facts::of(&line.record);
                let named = facts.kept_subject();
                let holds = line.entry.index == position
                    && facts.shape.changed_file()
                    && (own || named.as_deref() == name.as_deref());
                let path = facts.subject.filter(|_| holds)?.to_owned();
                Some((path, named?.into_owned(), line.record.id, before(&line.record.kind, &facts)))
            })
        });
        let Some((path, kept, record, before)) = found else {
            wrong += u64::from(!own);
            continue;
        };
        if !seen.insert(kept.clone()) {
            continue;
        }
        match before.and_then(|before| check(reader, before)) {
            Ok(before) => {
                let later = later(reader, index, closure, &kept, position)?;
                let unchanged = is_held(&path, before);
                let unexplained = !unchanged && !is_as_left(reader, index, &kept, &path)?;
                plan.restore.push(Restore {
                    path,
                    before,
                    record,
                    index: position,
                    later,
                    unexplained,
                    unchanged,
                });
            }
            Err(why) => plan.impossible.push(Impossible { path, record, why }),
        }
    }
    if wrong > 0 { Err(LookError::Wrong(wrong)) } else { Ok(plan) }
}

/// What a record says the file was: nothing, or bytes of this hash and length.
type Before = Option<(BlobHash, u64)>;

fn before(kind: &RecordType, facts: &Facts<'_>) -> Result<Before, String> {
    if *kind == RecordType::FileRename {
        return Err("it was renamed: give it its old name by hand".to_owned());
    }
    match facts.value("before") {
        None => Err("the record does not say what it was before".to_owned()),
        Some(Value::Null) => Ok(None),
        Some(Value::Object(before)) => {
            let hash = before.get("sha256").and_then(Value::as_str).and_then(BlobHash::from_hex);
            match (hash, before.get("bytes"), before.get("kept")) {
                (Some(hash), Some(Value::Unsigned(bytes)), Some(Value::Bool(true))) => {
                    Ok(Some((hash, *bytes)))
                }
                (Some(_), _, _) => Err("its content was not kept".to_owned()),
                _ => Err("the record does not say what it was before".to_owned()),
            }
        }
        Some(_) => Err("the record does not say what it was before".to_owned()),
    }
}

/// Whether the blob is there and is what its name says.
fn check(reader: &StoreReader, before: Before) -> Result<Option<BlobHash>, String> {
    let Some((hash, bytes)) = before else { return Ok(None) };
    let path = reader.path().join("blobs").join(hash.to_string());
    let found = open_plain(&path).and_then(|file| {
        let length = file.metadata()?.len();
        Ok(length == bytes && hash_range(&file, 0, length)? == hash.0)
    });
    match found {
        Ok(true) => Ok(Some(hash)),
        Ok(false) => Err("the content that was kept has been changed".to_owned()),
        Err(_) => Err("the content that was kept is gone".to_owned()),
    }
}

/// Whether a file holds this, or is not there.
fn is_held(path: &str, before: Option<BlobHash>) -> bool {
    let there = open_plain(Path::new(path));
    match (before, there) {
        (None, Err(error)) => error.kind() == std::io::ErrorKind::NotFound,
        (Some(hash), Ok(file)) => file
            .metadata()
            .and_then(|data| Ok(hash_range(&file, 0, data.len())? == hash.0))
            .unwrap_or(false),
        _ => false,
    }
}

/// Whether a file is what its last recorded change left.
fn is_as_left(
    reader: &StoreReader,
    index: &Index,
    kept: &str,
    path: &str,
) -> Result<bool, LookError> {
    let newest = index.changes_of(kept, 1)?;
    let left = newest.first().and_then(|(_, location)| {
        read(reader, *location, |line| {
            let facts = Facts::of(&line.record);
            let same = facts.kept_subject().as_deref() == Some(kept);
            match line.record.kind {
                RecordType::FileDelete if same => Some(None),
                RecordType::FileWrite if same => {
                    let content = facts.value("content").and_then(Value::as_object)?;
                    let hash = content.get("sha256").and_then(Value::as_str)?;
                    let Some(Value::Unsigned(bytes)) = content.get("bytes") else { return None };
                    Some(Some((BlobHash::from_hex(hash)?, *bytes)))
                }
                _ => None,
            }
        })
    });
    let there = open_plain(Path::new(path));
    Ok(match (left, there) {
        (Some(None), Err(error)) => error.kind() == std::io::ErrorKind::NotFound,
        (Some(Some((hash, bytes))), Ok(file)) => file
            .metadata()
            .and_then(|data| Ok(data.len() == bytes && hash_range(&file, 0, bytes)? == hash.0))
            .unwrap_or(false),
        _ => false,
    })
}

/// The newest change of the file that is not part of the closure.
fn later(
    reader: &StoreReader,
    index: &Index,
    closure: &Closure,
    path: &str,
    after: u64,
) -> Result<Option<RecordId>, LookError> {
    const LOOK: u32 = 1_000;
    for (position, location) in index.changes_after(path, after, LOOK)? {
        if closure.contains(position) {
            continue;
        }
        let found = read(reader, location, |line| {
            let facts = Facts::of(&line.record);
            let same = facts.kept_subject().as_deref() == Some(path);
            (facts.shape.changed_file() && same).then_some(line.record.id)
        });
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}
