//! How the tracked files are: as approved, or what is wrong with them.

pub(crate) mod cache;
mod drift;

use wardkeep_evidence::hash::BlobHash;

use self::cache::{Cache, Cached, Trust};
pub use self::drift::Drift;
use crate::baseline::Entry;
use crate::config::Tier;
use crate::error::Result;
use crate::level::{Holder, Level};
use crate::lock::Lock;
use crate::name::Name;
use crate::parallel::each;
use crate::tree::{Found, Hold, Kind, Limits, Look, Unread, walk};
use crate::workspace::{Record, Workspace};

const CACHE: &str = "stat-cache";

/// How a file is, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// As it was approved.
    Ok,
    /// Not as it was approved.
    Drifted,
    /// It was approved and is not there.
    Missing,
    /// New in the protect tier and not approved yet, or a version of a watched file not kept yet.
    Pending,
}

impl Status {
    /// As it is shown.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Drifted => "drifted",
            Self::Missing => "missing",
            Self::Pending => "pending",
        }
    }
}

/// How one tracked file is, or a folder in which everything is protected.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct FileState {
    /// Which.
    pub name: Name,
    /// Its tier.
    pub tier: Tier,
    /// In a word.
    pub status: Status,
    /// What is wrong.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drift: Vec<Drift>,
    /// Of its bytes, where they were looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<BlobHash>,
    /// What the system says of it, where it is there.
    #[serde(skip)]
    pub look: Option<Look>,
}

/// A folder that could not be looked into.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Closed {
    /// Which.
    pub name: Name,
    /// Why not.
    pub why: String,
}

/// How everything tracked is.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct State {
    /// By name. Folders are listed where something is wrong with them.
    pub files: Vec<FileState>,
    /// What could not be looked into; tracked files in it count as missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub closed: Vec<Closed>,
    /// Whether the path of the workspace leads to the folder that was looked at.
    pub in_place: bool,
    /// Whether a change was begun that the next start completes or takes back.
    pub unfinished: bool,
}

impl State {
    /// How many files are so.
    #[must_use]
    pub fn count(&self, status: Status) -> usize {
        self.files.iter().filter(|file| file.status == status).count()
    }

    /// Whether nothing is wrong. What is pending is no fault.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.in_place
            && !self.unfinished
            && self.closed.is_empty()
            && self.files.iter().all(|file| matches!(file.status, Status::Ok | Status::Pending))
    }
}

impl Workspace<'_> {
    /// Looks at everything tracked. `progress` is told of how many files were seen.
    ///
    /// # Errors
    /// If nothing was approved here, or the workspace cannot be read.
    pub fn look(&self, progress: &(dyn Fn(usize) + Sync)) -> Result<State> {
        self.look_with(&self.record()?, progress, false)
    }

    /// As [`Self::look`], reading every file whatever was remembered of it.
    ///
    /// # Errors
    /// As [`Self::look`].
    pub fn look_closely(&self, progress: &(dyn Fn(usize) + Sync)) -> Result<State> {
        self.look_with(&self.record()?, progress, true)
    }

    pub(crate) fn look_with(
        &self,
        record: &Record,
        progress: &(dyn Fn(usize) + Sync),
        closely: bool,
    ) -> Result<State> {
        let hold = Hold { tiers: Some(&record.tiers), limits: self.limits, progress };
        let walk = walk(&self.root, &hold)?;
        let hashes = self.hashes(&walk.found, closely);
        let judge = Judge { level: self.level, limits: self.limits };
        let mut files = Vec::with_capacity(walk.found.len());
        // Both are in order.
        let mut approved = record.baseline.iter().peekable();
        for (one, seen) in walk.found.iter().zip(&hashes) {
            while let Some((name, entry)) = approved.next_if(|(name, _)| **name < one.name) {
                files.push(self.absent(name, entry));
            }
            let entry = approved.next_if(|(name, _)| **name == one.name).map(|(_, entry)| entry);
            files.extend(match one.look.kind {
                Kind::Folder if entry.is_none() => judge.folder(one),
                _ => one.tier.map(|tier| judge.file(one, tier, entry, seen.as_ref())),
            });
        }
        files.extend(approved.map(|(name, entry)| self.absent(name, entry)));
        self.look_at_locks(record, &mut files);
        let closed = walk.closed.into_iter().map(|(name, why)| Closed { name, why }).collect();
        let unfinished = self.has_intent()?;
        Ok(State { files, closed, in_place: self.root.is_in_place(), unfinished })
    }

    /// What every regular file hashes to, from what is remembered or by reading it.
    fn hashes(&self, found: &[Found], closely: bool) -> Vec<Option<Seen>> {
        let cache = if closely { Cache::default() } else { Cache::read(&self.store, CACHE) };
        let remembered: Vec<Option<BlobHash>> =
            each(found, self.limits.threads, || (), |(), one| cache.hash(&one.name, &one.look));
        let mut protect = Trust::new(&self.root, self.level.is_owned(), self.now);
        // What the owner does not protect is remembered as git does it.
        let watch = Trust::new(&self.root, true, self.now);
        let unknown = found.iter().zip(&remembered).filter(|(_, hash)| hash.is_none());
        protect.flush(&self.root, unknown.map(|(one, _)| &one.look));
        let work: Vec<(&Found, Option<BlobHash>)> = found.iter().zip(remembered).collect();
        let seen = each(&work, self.limits.threads, Vec::new, |buffer, (one, remembered)| {
            if one.look.kind != Kind::File || !self.may_read(&one.name, &one.look) {
                return None;
            }
            Some(match remembered {
                Some(hash) => Seen { read: Ok(*hash), look: one.look, new: false },
                None => match self.root.hash(&one.name, self.limits.file, buffer) {
                    // Another one by now.
                    Ok((_, look)) if !self.may_read(&one.name, &look) => return None,
                    Ok((hash, look)) => Seen { read: Ok(hash), look, new: true },
                    Err(unread) => Seen { read: Err(unread), look: one.look, new: true },
                },
            })
        });
        let mut entries = Vec::with_capacity(found.len());
        let mut changed = false;
        for (one, seen) in found.iter().zip(&seen) {
            let Some(Seen { read: Ok(hash), look, new }) = seen else { continue };
            let trust = if one.tier == Some(Tier::Protect) { &protect } else { &watch };
            if !*new || trust.allows(look) {
                changed |= *new;
                entries.push((one.name.clone(), Cached::new(look, *hash)));
            }
        }
        if changed || entries.len() != cache.len() {
            Cache::write(&self.store, CACHE, entries);
        }
        seen
    }

    /// Approved files that nothing holds in their places any more.
    fn look_at_locks(&self, record: &Record, files: &mut [FileState]) {
        if self.level.lock() != Lock::Immutable {
            return;
        }
        for file in files.iter_mut().filter(|file| file.tier == Tier::Protect) {
            let is_file = file.look.is_some_and(|look| look.kind == Kind::File);
            let approved = is_file && record.baseline.entry(&file.name).is_some();
            if approved && !self.root.is_immutable(&file.name) {
                file.drift.push(Drift::Unlocked);
                file.status = Status::Drifted;
            }
        }
    }

    /// One that was approved and was not found.
    fn absent(&self, name: &Name, entry: &Entry) -> FileState {
        let mut drift = Vec::new();
        let mut status = Status::Missing;
        if let Err(Unread::Way) = self.root.look(name) {
            let mut above: Vec<Name> = name.ancestors().collect();
            above.reverse();
            for folder in above {
                match self.root.look(&folder) {
                    Ok(look) if look.kind == Kind::Folder => {}
                    Ok(look) => {
                        status = Status::Drifted;
                        drift.push(Drift::Folder { at: folder, found: look.kind });
                        break;
                    }
                    Err(_) => break,
                }
            }
        }
        FileState { name: name.clone(), tier: entry.tier, status, drift, hash: None, look: None }
    }
}

/// What was found out about a file.
#[derive(Debug)]
pub(crate) struct Seen {
    read: std::result::Result<BlobHash, Unread>,
    look: Look,
    new: bool,
}

/// What is expected of files.
struct Judge {
    level: Level,
    limits: Limits,
}

impl Judge {
    fn file(
        &self,
        one: &Found,
        tier: Tier,
        entry: Option<&Entry>,
        seen: Option<&Seen>,
    ) -> FileState {
        let look = seen.map_or(one.look, |seen| seen.look);
        let mut drift = Vec::new();
        let mut hash = None;
        let mut changed = false;
        if look.kind == Kind::File {
            match seen.map(|seen| &seen.read) {
                Some(Ok(found)) => {
                    hash = Some(*found);
                    changed = entry.is_none_or(|entry| entry.hash != *found);
                    if let Some(entry) = entry.filter(|_| changed && tier == Tier::Protect) {
                        drift.push(Drift::Content { expected: entry.hash, found: *found });
                    }
                }
                Some(Err(Unread::TooLarge(size))) => {
                    drift.push(Drift::TooLarge { size: *size, limit: self.limits.file });
                }
                Some(Err(unread)) => drift.push(Drift::Unreadable { why: unread.to_string() }),
                None => {}
            }
            if tier == Tier::Protect && look.links > 1 {
                drift.push(Drift::Links { found: look.links });
            }
            // At user level what is new is locked when it is approved.
            if entry.is_some() || self.level.is_owned() {
                self.rights(&look, tier, entry, &mut drift);
            }
        } else {
            drift.push(Drift::Kind { found: look.kind });
        }
        let status = match (drift.is_empty(), entry.is_some(), tier) {
            (_, false, _) if look.kind == Kind::File && hash.is_some() => Status::Pending,
            (false, ..) => Status::Drifted,
            (true, _, Tier::Watch) if changed => Status::Pending,
            _ => Status::Ok,
        };
        FileState { name: one.name.clone(), tier, status, drift, hash, look: Some(look) }
    }

    fn rights(&self, look: &Look, tier: Tier, entry: Option<&Entry>, drift: &mut Vec<Drift>) {
        // At user level the agent sets the modes of what it writes.
        if tier == Tier::Watch && !self.level.is_owned() {
            return;
        }
        if let Some((uid, gid)) = self.level.owner(Holder::from(tier)) {
            if look.uid != uid.as_raw() {
                drift.push(Drift::Owner { expected: uid.as_raw(), found: look.uid });
            }
            if look.gid != gid.as_raw() {
                drift.push(Drift::Group { expected: gid.as_raw(), found: look.gid });
            }
        }
        let approved = entry.map_or(look.mode, |entry| entry.mode);
        let mut expected = self.level.file_mode(Holder::from(tier), approved);
        if tier == Tier::Watch {
            // The agent may make its own files executable.
            expected = self.level.file_mode(Holder::Watch, look.mode);
        }
        if look.mode != expected {
            drift.push(Drift::Mode { expected, found: look.mode });
        }
    }

    /// A folder in which everything is protected; told of only if something is wrong with it.
    fn folder(&self, one: &Found) -> Option<FileState> {
        let mut drift = Vec::new();
        if let Some((uid, gid)) = self.level.owner(Holder::Protect)
            && let Some(expected) = self.level.folder_mode()
        {
            let look = &one.look;
            if look.uid != uid.as_raw() {
                drift.push(Drift::Owner { expected: uid.as_raw(), found: look.uid });
            }
            if look.gid != gid.as_raw() {
                drift.push(Drift::Group { expected: gid.as_raw(), found: look.gid });
            }
            if look.mode != expected {
                drift.push(Drift::Mode { expected, found: look.mode });
            }
        }
        (!drift.is_empty()).then(|| FileState {
            name: one.name.clone(),
            tier: Tier::Protect,
            status: Status::Drifted,
            drift,
            hash: None,
            look: Some(one.look),
        })
    }
}
