//! Every version of what is protected or watched, in a git store of its own.
//!
//! The store lies in the state directory and is fed with bytes that were read already: no `git` is run,
//! and no setting, hook, filter or file of the workspace is ever looked at. Real git can read it
//! (objects are named by SHA-256, which git knows since 2.29). Every object is durable before the
//! reference moves, and its name is recomputed whenever it is read: bytes that do not give their own
//! name are damage, which is reported and stops nobody.

mod answers;
mod entry;
mod revision;
mod store;
mod tree;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use gix_hash::ObjectId;
use thiserror::Error;

pub use self::answers::{
    Change, CommitId, Committed, Content, Damage, FileVersion, LeftOut, Log, LogEntry, Version,
};
use self::entry::Entry;
pub use self::revision::Revision;
use self::store::{Batch, Store};
use self::tree::{Files, Leaf, MAX_DEPTH};
use crate::name::Name;
use crate::version;
use crate::workspace::Workspace;

/// Who signs every commit.
const AUTHOR: (&str, &str) = ("SoulGuardian", "soulguardian@soulguard.ai");
/// Largest file that is kept.
pub const MAX_FILE: usize = 64 << 20;
/// Most commits that one question walks over.
const MAX_WALK: usize = 200_000;
/// Longest message, in bytes.
const MAX_MESSAGE: usize = 64 << 10;

/// Why the history could not be read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HistoryError {
    /// The store cannot be read or written.
    #[error("cannot {action} `{}`: {source}", .path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// With what.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// Something in the store is missing or not what its name says.
    #[error("the history is damaged: {0}")]
    Damaged(Damage),
    /// A change names a file and something below it as files.
    #[error("`{0}` cannot be a file and a folder at once")]
    Conflict(Name),
    /// A revision that is none.
    #[error(
        "`{0}` is no revision; use `-1` for the version before, `~3` for three commits back, or the first digits of a commit"
    )]
    Revision(String),
    /// No commit has that name.
    #[error("no commit is named `{0}`; see the log")]
    Unknown(String),
    /// More than one commit begins so.
    #[error("more than one commit begins with `{0}`; give more digits")]
    Ambiguous(String),
    /// The history does not reach back so far.
    #[error("the history does not reach back so far")]
    TooFar,
    /// The file is not in that commit.
    #[error("`{name}` is not in commit {commit}")]
    NotThere {
        /// The file.
        name: Name,
        /// The commit.
        commit: CommitId,
    },
}

/// A git store.
#[derive(Debug)]
pub struct History {
    store: Store,
}

impl History {
    /// Opens the store in a folder, or makes one there.
    ///
    /// # Errors
    ///
    /// The folder cannot be read or written.
    pub fn open_or_create(folder: &Path) -> Result<Self, HistoryError> {
        Ok(Self { store: Store::open_or_create(folder)? })
    }

    /// Records changes as one commit. Blocks while another process does the same.
    ///
    /// Damage of what was there before does not stop it: see [`Committed::damage`].
    ///
    /// # Errors
    ///
    /// The store cannot be written, or the changes contradict each other.
    pub fn commit(
        &self,
        changes: &[Change<'_>],
        message: &str,
        time: i64,
    ) -> Result<Committed, HistoryError> {
        let contents: BTreeMap<&Name, Option<Content<'_>>> =
            changes.iter().map(|change| (change.name, change.content)).collect();
        let files = contents.iter().map(|(&name, content)| {
            let is_executable = content.map(|content| content.is_executable);
            (name, is_executable)
        });
        let load = |name: &Name| {
            let content = contents.get(name).copied().flatten();
            content.map(|content| Cow::Borrowed(content.bytes))
        };
        self.record(files.collect(), load, message, time)
    }

    /// As [`Self::commit`], of versions whose bytes the workspace keeps; they are read one by one.
    ///
    /// # Errors
    ///
    /// As [`Self::commit`]. Bytes that cannot be read are left out, and named.
    pub fn commit_versions(
        &self,
        workspace: &Workspace<'_>,
        versions: &[version::Version],
        message: &str,
        time: i64,
    ) -> Result<Committed, HistoryError> {
        let hashes: BTreeMap<&Name, &version::Version> =
            versions.iter().map(|version| (&version.name, version)).collect();
        let files = hashes.iter().map(|(&name, version)| {
            let is_executable = version.hash.map(|_| version.executable);
            (name, is_executable)
        });
        let load = |name: &Name| {
            let hash = hashes.get(name).and_then(|version| version.hash)?;
            workspace.bytes(hash).ok().map(Cow::Owned)
        };
        self.record(files.collect(), load, message, time)
    }

    /// Records files: whether each can be run, `None` where it is gone. Their bytes are asked for one
    /// after the other.
    fn record<'a>(
        &self,
        files: Vec<(&Name, Option<bool>)>,
        load: impl Fn(&Name) -> Option<Cow<'a, [u8]>>,
        message: &str,
        time: i64,
    ) -> Result<Committed, HistoryError> {
        let mut left_out = Vec::new();
        let mut wanted: BTreeMap<&[u8], (&Name, Option<bool>)> = BTreeMap::new();
        for (name, is_executable) in files {
            match why_left_out(name) {
                Some(why) => left_out.push((name.clone(), why)),
                None => {
                    wanted.insert(name.as_bytes(), (name, is_executable));
                }
            }
        }
        let is_put = |path: &[u8]| wanted.get(path).is_some_and(|(_, put)| put.is_some());
        for (path, (name, put)) in &wanted {
            if put.is_some() && tree::folders_of(path).any(is_put) {
                return Err(HistoryError::Conflict((*name).clone()));
            }
        }
        let _held = self.store.hold()?;
        let mut damage = Vec::new();
        let before = match self.head() {
            Ok(before) => before,
            Err(HistoryError::Damaged(found)) => {
                damage.push(found);
                None
            }
            Err(error) => return Err(error),
        };
        let mut batch = Batch::new(&self.store);
        let mut leaves = BTreeMap::new();
        for (path, (name, is_executable)) in &wanted {
            let Some(is_executable) = *is_executable else {
                leaves.insert(*path, None);
                continue;
            };
            match load(name) {
                Some(bytes) if bytes.len() <= MAX_FILE => {
                    let id = batch.put(gix_object::Kind::Blob, &bytes)?;
                    leaves.insert(*path, Some(Leaf { id, is_executable }));
                }
                Some(_) => left_out.push(((*name).clone(), LeftOut::TooLarge)),
                None => left_out.push(((*name).clone(), LeftOut::Unreadable)),
            }
        }
        let old = before.as_ref().map(|(_, entry)| entry.tree);
        let tree = tree::edit(&self.store, &mut batch, old, &leaves, &mut damage)?;
        let is_empty =
            before.is_none() && damage.is_empty() && leaves.values().all(Option::is_none);
        if old == Some(tree) || is_empty {
            return Ok(Committed { commit: None, left_out, damage });
        }
        let parent = before.map(|(id, _)| id);
        let entry = Entry { tree, parent, time: time.max(0), message: clean(message) };
        let id = batch.put(gix_object::Kind::Commit, &entry.encode(AUTHOR)?)?;
        batch.finish()?;
        self.store.set_reference(id)?;
        Ok(Committed { commit: Some(CommitId(id)), left_out, damage })
    }

    /// The newest commits, or those that changed one file. A damaged commit ends the list.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub fn log(&self, file: Option<&Name>, limit: usize) -> Result<Log, HistoryError> {
        let mut log = Log::default();
        match self.fill(&mut log, file, limit) {
            Err(HistoryError::Damaged(damage)) => log.damage = Some(damage),
            other => other?,
        }
        Ok(log)
    }

    fn fill(&self, log: &mut Log, file: Option<&Name>, limit: usize) -> Result<(), HistoryError> {
        let Some(file) = file else {
            for one in self.walk() {
                let (id, entry) = one?;
                if log.entries.len() == limit {
                    log.more = true;
                    break;
                }
                log.entries.push(entry.shown(id, None));
            }
            return Ok(());
        };
        for one in self.versions(file) {
            let (id, entry, leaf) = one?;
            if log.entries.len() == limit {
                log.more = true;
                break;
            }
            let version = leaf.map_or(FileVersion::Removed, |leaf| FileVersion::There {
                blob: leaf.id.to_string(),
                is_executable: leaf.is_executable,
            });
            log.entries.push(entry.shown(id, Some(version)));
        }
        Ok(())
    }

    /// A file as it was at a revision.
    ///
    /// # Errors
    ///
    /// There is no such revision, the file is not in it, or the store is damaged there.
    pub fn read(&self, file: &Name, revision: &Revision) -> Result<Version, HistoryError> {
        let (commit, leaf) = match revision {
            Revision::Versions(back) => {
                let mut versions = self.versions(file);
                let (id, _, leaf) = versions.nth(*back).ok_or(HistoryError::TooFar)??;
                (CommitId(id), leaf)
            }
            Revision::Commits(back) => {
                let (id, entry) = self.walk().nth(*back).ok_or(HistoryError::TooFar)??;
                (CommitId(id), self.leaf(&entry, file)?)
            }
            Revision::Commit(prefix) => {
                let mut found = None;
                for one in self.walk() {
                    let (id, entry) = match one {
                        Ok(one) => one,
                        // Behind the damage nothing is known; in front of it there was one.
                        Err(HistoryError::Damaged(_)) if found.is_some() => break,
                        Err(error) => return Err(error),
                    };
                    if id.to_string().starts_with(prefix.as_str()) {
                        if found.is_some() {
                            return Err(HistoryError::Ambiguous(prefix.clone()));
                        }
                        found = Some((id, entry));
                    }
                }
                let (id, entry) = found.ok_or_else(|| HistoryError::Unknown(prefix.clone()))?;
                (CommitId(id), self.leaf(&entry, file)?)
            }
        };
        let Some(leaf) = leaf else {
            return Err(HistoryError::NotThere { name: file.clone(), commit });
        };
        let bytes = self.store.read(leaf.id, gix_object::Kind::Blob, MAX_FILE)?;
        Ok(Version { commit, bytes, is_executable: leaf.is_executable })
    }

    fn head(&self) -> Result<Option<(ObjectId, Entry)>, HistoryError> {
        let Some(id) = self.store.reference()? else { return Ok(None) };
        Ok(Some((id, self.entry(id)?)))
    }

    fn entry(&self, id: ObjectId) -> Result<Entry, HistoryError> {
        let bytes = self.store.read(id, gix_object::Kind::Commit, 2 * MAX_MESSAGE)?;
        Entry::decode(&bytes).ok_or_else(|| damaged(id))
    }

    fn leaf(&self, entry: &Entry, file: &Name) -> Result<Option<Leaf>, HistoryError> {
        Files::new(&self.store, file).find(entry.tree)
    }

    /// All commits, newest first. A name is the hash of what it names, so that this ends.
    fn walk(&self) -> impl Iterator<Item = Result<(ObjectId, Entry), HistoryError>> + '_ {
        let mut next = self.store.reference().transpose();
        std::iter::from_fn(move || {
            let one = next.take()?.and_then(|id| Ok((id, self.entry(id)?)));
            if let Ok((_, entry)) = &one {
                next = entry.parent.map(Ok);
            }
            Some(one)
        })
        .take(MAX_WALK)
    }

    /// The commits that changed a file, newest first, with what it became.
    fn versions<'a>(
        &'a self,
        file: &'a Name,
    ) -> impl Iterator<Item = Result<(ObjectId, Entry, Option<Leaf>), HistoryError>> + 'a {
        let mut files = Files::new(&self.store, file);
        let mut walk = self.walk();
        let mut later: Option<(ObjectId, Entry, Option<Leaf>)> = None;
        let mut has_ended = false;
        let mut fault = None;
        std::iter::from_fn(move || {
            if let Some(error) = fault.take() {
                return Some(Err(error));
            }
            while !has_ended {
                let Some(next) = walk.next() else {
                    has_ended = true;
                    // The first commit of all made the file, if it has it.
                    return later.take().filter(|(_, _, leaf)| leaf.is_some()).map(Ok);
                };
                let next = next.and_then(|(id, entry)| {
                    let leaf = files.find(entry.tree)?;
                    Ok((id, entry, leaf))
                });
                let next = match next {
                    Ok(next) => next,
                    Err(error) => {
                        has_ended = true;
                        // The last one that could be read is at least as old as it says.
                        let last = later.take().filter(|(_, _, leaf)| leaf.is_some());
                        let Some(last) = last else { return Some(Err(error)) };
                        fault = Some(error);
                        return Some(Ok(last));
                    }
                };
                let changed = later.as_ref().is_some_and(|(_, _, leaf)| *leaf != next.2);
                let earlier = later.replace(next);
                if changed {
                    return earlier.map(Ok);
                }
            }
            None
        })
    }
}

fn damaged(id: ObjectId) -> HistoryError {
    HistoryError::Damaged(Damage::Object(id.to_string()))
}

fn why_left_out(name: &Name) -> Option<LeftOut> {
    let options = gix_validate::path::component::Options {
        protect_windows: false,
        protect_hfs: true,
        protect_ntfs: true,
    };
    let is_reserved = |part: &[u8]| {
        // git looks behind each backslash too.
        part.split(|byte| *byte == b'\\').filter(|piece| !piece.is_empty()).any(|piece| {
            let piece = gix_object::bstr::BStr::new(piece);
            matches!(
                gix_validate::path::component(piece, None, options),
                Err(gix_validate::path::component::Error::DotGitDir)
            )
        })
    };
    if name.components().any(is_reserved) {
        Some(LeftOut::Reserved)
    } else if name.components().count() > MAX_DEPTH {
        Some(LeftOut::TooDeep)
    } else {
        None
    }
}

/// A message without anything that a terminal obeys, and not too long.
fn clean(message: &str) -> String {
    let message = &message[..message.floor_char_boundary(MAX_MESSAGE / 8)];
    let mut text = String::with_capacity(message.len() + 1);
    for line in message.trim_end().split('\n') {
        text.push_str(&crate::show::visible(line));
        text.push('\n');
    }
    text
}
