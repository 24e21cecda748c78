//! A rollback that happens by itself, and must not be a weapon: it puts back only what the session
//! that was denied has written since the snapshot, as long as that is still what is there and the
//! owner had no hand in it. Otherwise the owner is asked, and nothing is touched.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;

use memchr::memmem;
use wardkeep_evidence::hash::{BlobHash, RecordId};
use wardkeep_evidence::json::{Object, Value};
use wardkeep_evidence::record::{Payload, Principal, RecordType};

use super::{Order, RolledBack};
use crate::journal::{Folder, JournalError, JournalLine, Position, parse_line, scan};
use crate::snapshot::{
    By, Change, Content, Listed, Opened, RelativePath, Result, SnapshotError, Snapshots,
};

/// Most files that an automatic rollback looks at; with more the owner is asked.
pub const MAX_CHANGED: usize = 10_000;

/// What a record says a file holds before or after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// These bytes.
    Bytes(BlobHash),
    /// Nothing.
    Absent,
    /// It does not say.
    Unknown,
}

/// A change of a file that the journal tells of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// The file, by its real path.
    pub path: PathBuf,
    /// In which session.
    pub session: String,
    /// On whose behalf.
    pub principal: Principal,
    /// What it held before it.
    pub before: Holds,
    /// What it holds after it.
    pub after: Holds,
    /// The record.
    pub record: RecordId,
}

/// The changes of files since a snapshot that were let through, oldest first; at most
/// [`MAX_CHANGED`] and one more, so that too many can be told.
///
/// # Errors
/// When the journal cannot be read.
pub fn changed_since(
    folder: &Folder,
    snapshot: &Listed,
) -> std::result::Result<Vec<FileChange>, JournalError> {
    let location = snapshot.location;
    let from = Position {
        segment: location.segment.0,
        offset: location.offset.saturating_add(location.length).saturating_add(1),
    };
    let file = memmem::Finder::new(br#""type":"File"#);
    let change = memmem::Finder::new(br#""type":"ControlPlaneChangeRequest""#);
    let mut changes = Vec::new();
    scan(folder, from, |_, text| {
        if (file.find(text).is_some() || change.find(text).is_some())
            && let Some(line) = parse_line(text)
        {
            changes.extend(changes_of(&line));
        }
        if changes.len() > MAX_CHANGED { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    changes.truncate(MAX_CHANGED + 1);
    Ok(changes)
}

/// The files that a record says were changed.
fn changes_of(line: &JournalLine<'_>) -> Vec<FileChange> {
    let record = &line.record;
    let Payload::Inline(Value::Object(content)) = &record.payload else { return Vec::new() };
    let text =
        |object: &Object<'_>, key: &str| object.get(key).and_then(Value::as_str).map(str::to_owned);
    // What went to staging left the file as it was.
    if text(content, "kind").as_deref() != Some("decision")
        || text(content, "verdict").as_deref() == Some("stage")
    {
        return Vec::new();
    }
    let file = content.get("file").and_then(Value::as_object);
    let in_file = |key: &str| file.and_then(|file| text(file, key));
    let path = in_file("path").or_else(|| text(content, "subject"));
    let before = match content.get("before") {
        Some(Value::Null) => Holds::Absent,
        Some(Value::Object(before)) => hash_of(before).map_or(Holds::Unknown, Holds::Bytes),
        _ => Holds::Unknown,
    };
    let change = |path: String, after| FileChange {
        path: PathBuf::from(path),
        session: record.meta_str("session").unwrap_or_default().to_owned(),
        principal: record.principal,
        before,
        after,
        record: record.id,
    };
    let written = || content.get("content").and_then(Value::as_object).and_then(hash_of);
    match record.kind {
        RecordType::FileWrite => {
            let after = written().map_or(Holds::Unknown, Holds::Bytes);
            path.map(|path| change(path, after)).into_iter().collect()
        }
        RecordType::FileDelete => {
            path.map(|path| change(path, Holds::Absent)).into_iter().collect()
        }
        RecordType::FileRename => {
            let to = in_file("to").or_else(|| text(content, "to"));
            let to = to.map(|path| change(path, Holds::Unknown));
            path.map(|path| change(path, Holds::Absent)).into_iter().chain(to).collect()
        }
        RecordType::ControlPlaneChangeRequest => {
            in_file("path").map(|path| change(path, Holds::Unknown)).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

fn hash_of(object: &Object<'_>) -> Option<BlobHash> {
    BlobHash::from_hex(object.get("sha256").and_then(Value::as_str)?)
}

/// Why the owner is asked about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Doubt {
    /// The owner, or the system for the owner, changed it since the snapshot.
    Owner,
    /// What the session wrote does not explain what it holds.
    Differs,
    /// There were too many changes to look at.
    TooMany,
}

impl Doubt {
    /// As part of a sentence.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Owner => "was changed by its owner since the snapshot",
            Self::Differs => "holds what the session's own writes do not explain",
            Self::TooMany => "is one of too many that changed",
        }
    }
}

/// What is made of the files that a session changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// It changed none that the snapshot covers, or they are as they were.
    Nothing,
    /// These can be put back; each holds what the session wrote.
    Restore(BTreeMap<RelativePath, Option<BlobHash>>),
    /// The owner has to say.
    AskOwner(BTreeMap<RelativePath, Doubt>),
}

/// What came of it.
#[derive(Debug, Clone)]
pub enum Automatic {
    /// Nothing had to be done.
    Nothing,
    /// Done.
    Restored(RolledBack),
    /// The owner has to say; nothing was touched.
    AskOwner(BTreeMap<RelativePath, Doubt>),
}

/// Judges what a session changed. `differing` is how the workspace differs from the snapshot.
///
/// A file can be put back only if the journal explains it without a gap: it held what the snapshot
/// holds when the session first changed it, each later change began with what the one before left,
/// and what the last one left is there now. Otherwise someone had a hand in it whom the journal does
/// not know, and that may have been the owner.
#[must_use]
pub fn judge(
    opened: &Opened,
    differing: &[Change],
    changes: &[FileChange],
    session: &str,
) -> Judgement {
    let workspace = &opened.manifest().workspace;
    let mut stories: BTreeMap<RelativePath, Vec<&FileChange>> = BTreeMap::new();
    for change in changes {
        let below = change.path.strip_prefix(workspace).ok();
        if let Some(path) = below.and_then(RelativePath::new) {
            stories.entry(path).or_default().push(change);
        }
    }
    let mut restore = BTreeMap::new();
    let mut doubts = BTreeMap::new();
    for change in differing {
        let Some(story) = stories.get(&change.path) else { continue };
        if !story.iter().any(|one| one.session == session) {
            continue;
        }
        let owner = |one: &&FileChange| matches!(one.principal, Principal::User | Principal::Sys);
        let path = change.path.clone();
        if changes.len() > MAX_CHANGED {
            doubts.insert(path, Doubt::TooMany);
        } else if story.iter().any(owner) {
            doubts.insert(path, Doubt::Owner);
        } else {
            match explained(change, story, session) {
                Some(present) => restore.insert(path, present).is_some(),
                None => doubts.insert(path, Doubt::Differs).is_some(),
            };
        }
    }
    match (doubts.is_empty(), restore.is_empty()) {
        (false, _) => Judgement::AskOwner(doubts),
        (true, true) => Judgement::Nothing,
        (true, false) => Judgement::Restore(restore),
    }
}

/// What a file holds now, if the session's own changes explain it.
fn explained(change: &Change, story: &[&FileChange], session: &str) -> Option<Option<BlobHash>> {
    let held = |content: &Option<Content>| match content {
        Some(Content::File { hash, .. }) => Holds::Bytes(*hash),
        Some(Content::Link { .. }) => Holds::Unknown,
        None => Holds::Absent,
    };
    let mut holds = held(&change.before);
    for one in story {
        let known = one.before == holds && one.after != Holds::Unknown;
        if one.session != session || !known {
            return None;
        }
        holds = one.after;
    }
    match (holds, change.unknown) {
        (Holds::Bytes(hash), None) if held(&change.after) == holds => Some(Some(hash)),
        (Holds::Absent, None) if held(&change.after) == holds => Some(None),
        _ => None,
    }
}

impl Snapshots<'_> {
    /// Rolls back what a session changed since a snapshot, or says that the owner has to be asked.
    /// `changes` are those of [`changed_since`].
    ///
    /// # Errors
    /// As [`Snapshots::restore`].
    pub fn restore_automatically(
        &self,
        snapshot: &Listed,
        changes: &[FileChange],
        session: &str,
        by: By<'_>,
    ) -> Result<Automatic> {
        let _lock = self.lock()?;
        self.resume_locked()?;
        let opened = Opened::open(self.store.path(), snapshot)?;
        let differing = opened.diff(&self.limits.kept())?;
        let expected = match judge(&opened, &differing, changes, session) {
            Judgement::Nothing => return Ok(Automatic::Nothing),
            Judgement::AskOwner(doubts) => return Ok(Automatic::AskOwner(doubts)),
            Judgement::Restore(expected) => expected,
        };
        let only: Vec<RelativePath> = expected.keys().cloned().collect();
        let order = Order { auto: true, by, expected: Some(&expected) };
        match self.roll_back(snapshot, Some(&only), &order) {
            Ok(done) => Ok(Automatic::Restored(done)),
            Err(SnapshotError::ChangedSince { path }) => {
                Ok(Automatic::AskOwner(BTreeMap::from([(path, Doubt::Differs)])))
            }
            Err(error) => Err(error),
        }
    }
}
