//! What staging would change, and the hash by which exactly that is approved.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use wardkeep_evidence::hash::{BlobHash, ParseHashError, decode_hex, encode_hex, sha256};

use crate::baseline::Entry;
use crate::config::Tier;
use crate::error::Result;
use crate::level::{is_executable, plain_mode};
use crate::name::Name;
use crate::staging::{Budget, Refused, Staging};
use crate::tree::{Hold, Kind, Look, Unread, read_whole, walk};
use crate::workspace::{Record, Workspace};

/// What makes this hash one of its own: no other hash of ours is over such bytes.
const DOMAIN: &[u8] = b"wardkeep identity approval v1";

/// The hash of a set of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ApprovalHash(pub [u8; 32]);

impl fmt::Display for ApprovalHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&encode_hex(&self.0))
    }
}

impl FromStr for ApprovalHash {
    type Err = ParseHashError;

    fn from_str(text: &str) -> std::result::Result<Self, ParseHashError> {
        decode_hex(text.as_bytes()).map(Self).ok_or(ParseHashError)
    }
}

impl serde::Serialize for ApprovalHash {
    fn serialize<S: serde::Serializer>(
        &self,
        serializer: S,
    ) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What happens to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// It was not approved before.
    New,
    /// Its bytes or its executable bit change.
    Modified,
    /// It goes.
    Deleted,
}

/// Where the new bytes come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The staging folder.
    Staging,
    /// A new file that stands in a protected place already.
    Place,
    /// An earlier version.
    History,
}

/// One file that would change.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Change {
    /// Which.
    pub name: Name,
    /// What happens to it.
    pub kind: ChangeKind,
    /// What was approved before.
    pub old: Option<BlobHash>,
    /// What would be approved.
    pub new: Option<BlobHash>,
    /// Whether it was executable.
    pub was_executable: bool,
    /// Whether it would be.
    pub executable: bool,
    /// Where the new bytes come from.
    pub source: Source,
    /// Of a new file that stands in its place already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standing: Option<BlobHash>,
    /// The new bytes: those that are shown are those that are installed.
    #[serde(skip)]
    pub bytes: Option<Arc<[u8]>>,
}

impl Change {
    /// What happens, as it is hashed: the executable bit is part of it.
    #[must_use]
    pub fn status(&self) -> &'static str {
        match (self.kind, self.executable) {
            (ChangeKind::New, false) => "new",
            (ChangeKind::New, true) => "new+x",
            (ChangeKind::Modified, false) => "modified",
            (ChangeKind::Modified, true) => "modified+x",
            (ChangeKind::Deleted, _) => "deleted",
        }
    }

    /// Whether only the executable bit changes.
    #[must_use]
    pub fn is_mode_only(&self) -> bool {
        self.kind == ChangeKind::Modified && self.old == self.new
    }

    /// The entry that the file gets; the mode stays as approved but for the executable bit.
    pub(crate) fn entry(&self, before: Option<&Entry>) -> Option<Entry> {
        let hash = self.new?;
        let plain = plain_mode(self.executable);
        let mode = match before {
            Some(before) if is_executable(before.mode) == self.executable => before.mode,
            _ => plain,
        };
        let size = self.bytes.as_ref().map(|bytes| bytes.len() as u64);
        let size = size.or(before.map(|before| before.size)).unwrap_or(0);
        Some(Entry { tier: Tier::Protect, hash, mode, size })
    }

    /// Whether the bytes are those of the hash.
    pub(crate) fn is_whole(&self) -> bool {
        match (&self.bytes, self.new) {
            (Some(bytes), Some(new)) => BlobHash(sha256(bytes)) == new,
            (None, None) => true,
            (None, Some(new)) => self.old == Some(new),
            (Some(_), None) => false,
        }
    }
}

/// A file that would get another name; for showing only.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Rename {
    /// Its name.
    pub from: Name,
    /// The name that it would get.
    pub to: Name,
}

/// Everything that would change, by name, and nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct Changes {
    /// By name.
    pub changes: Vec<Change>,
    /// What is no proposal and is left alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Refused>,
    /// Folders in staging, so that an emptied one is told from a deleted one.
    #[serde(skip)]
    pub(crate) folders: BTreeSet<Name>,
}

impl Changes {
    /// Whether nothing would change.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// The hash that approves these changes.
    #[must_use]
    pub fn hash(&self) -> ApprovalHash {
        approval_hash(&self.changes)
    }

    /// Those of some files, or below some folders. Its hash approves nothing else.
    #[must_use]
    pub fn only(&self, names: &[Name]) -> Self {
        let asked = |name: &Name| names.iter().any(|one| one == name || name.is_below(one));
        Self {
            changes: self.changes.iter().filter(|change| asked(&change.name)).cloned().collect(),
            refused: self.refused.iter().filter(|file| asked(&file.name)).cloned().collect(),
            folders: self.folders.clone(),
        }
    }

    /// Files that go and come again under another name with the same bytes.
    #[must_use]
    pub fn renames(&self) -> Vec<Rename> {
        let mut gone: BTreeMap<BlobHash, Vec<&Name>> = BTreeMap::new();
        for change in self.changes.iter().rev().filter(|change| change.kind == ChangeKind::Deleted)
        {
            if let Some(old) = change.old {
                gone.entry(old).or_default().push(&change.name);
            }
        }
        let mut renames = Vec::new();
        for change in self.changes.iter().filter(|change| change.kind == ChangeKind::New) {
            let from = change.new.and_then(|new| gone.get_mut(&new)?.pop());
            if let Some(from) = from {
                renames.push(Rename { from: from.clone(), to: change.name.clone() });
            }
        }
        renames
    }
}

/// SHA-256 over a domain, the count, and of each change the path, status, old hash and new hash, each
/// with its length in front, sorted by the bytes of the paths.
#[must_use]
pub fn approval_hash(changes: &[Change]) -> ApprovalHash {
    let mut sorted: Vec<&Change> = changes.iter().collect();
    sorted.sort_by(|one, other| one.name.cmp(&other.name));
    let mut hasher = Sha256::new();
    let mut field = |bytes: &[u8]| {
        hasher.update((bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    field(DOMAIN);
    field(&(sorted.len() as u64).to_le_bytes());
    for change in sorted {
        field(change.name.as_bytes());
        field(change.status().as_bytes());
        for hash in [change.old, change.new] {
            field(hash.as_ref().map_or(&[][..], |hash| &hash.0));
        }
    }
    ApprovalHash(hasher.finalize().into())
}

impl Workspace<'_> {
    /// What staging would change, and new files in protected places. Every changed file is read once,
    /// here; its bytes are in the value that comes back.
    ///
    /// # Errors
    /// If nothing was approved here, there is no staging folder, or there is too much.
    pub fn changes(&self, progress: &(dyn Fn(usize) + Sync)) -> Result<Changes> {
        self.changes_with(&self.record()?, progress)
    }

    pub(crate) fn changes_with(
        &self,
        record: &Record,
        progress: &(dyn Fn(usize) + Sync),
    ) -> Result<Changes> {
        let budget = Budget::new(self.limits.total);
        let staging = self.read_staging(record, &budget, progress)?;
        let standing = self.standing(record, &budget, progress)?;
        let mut changes = BTreeMap::new();
        for (name, proposed) in &staging.files {
            let old = record.baseline.entry(name);
            let was_executable = old.is_some_and(|old| is_executable(old.mode));
            let same = old.is_some_and(|old| old.hash == proposed.hash);
            if same && was_executable == proposed.executable {
                continue;
            }
            let change = Change {
                name: name.clone(),
                kind: if old.is_some() { ChangeKind::Modified } else { ChangeKind::New },
                old: old.map(|old| old.hash),
                new: Some(proposed.hash),
                was_executable,
                executable: proposed.executable,
                source: Source::Staging,
                standing: standing.files.get(name).map(|standing| standing.hash),
                bytes: proposed.bytes.clone(),
            };
            changes.insert(name.clone(), change);
        }
        for (name, old) in record.baseline.iter() {
            if old.tier == Tier::Protect && !staging.has(name) {
                let change = Change {
                    name: name.clone(),
                    kind: ChangeKind::Deleted,
                    old: Some(old.hash),
                    new: None,
                    was_executable: is_executable(old.mode),
                    executable: false,
                    source: Source::Staging,
                    standing: None,
                    bytes: None,
                };
                changes.insert(name.clone(), change);
            }
        }
        for (name, proposed) in standing.files {
            changes.entry(name.clone()).or_insert_with(|| Change {
                name,
                kind: ChangeKind::New,
                old: None,
                new: Some(proposed.hash),
                was_executable: false,
                executable: proposed.executable,
                source: Source::Place,
                standing: Some(proposed.hash),
                bytes: proposed.bytes,
            });
        }
        let mut refused = staging.refused;
        refused.extend(standing.refused);
        refused.sort_by(|one, other| one.name.cmp(&other.name));
        let changes = changes.into_values().collect();
        Ok(Changes { changes, refused, folders: staging.folders })
    }

    /// New files that stand in protected places.
    fn standing(
        &self,
        record: &Record,
        budget: &Budget,
        progress: &(dyn Fn(usize) + Sync),
    ) -> Result<Staging> {
        let hold = Hold { tiers: Some(&record.tiers), limits: self.limits, progress };
        let mut standing = Staging::default();
        for found in walk(&self.root, &hold)?.found {
            let new = found.tier == Some(Tier::Protect)
                && found.look.kind != Kind::Folder
                && record.baseline.entry(&found.name).is_none();
            if !new {
                continue;
            }
            match self.read_own(&found.name) {
                Ok((bytes, look)) => {
                    budget.take(bytes.len() as u64)?;
                    let proposed = crate::staging::Proposed {
                        hash: BlobHash(sha256(&bytes)),
                        executable: is_executable(look.mode),
                        bytes: Some(bytes.into()),
                    };
                    standing.files.insert(found.name, proposed);
                }
                Err(why) => standing.refused.push(Refused { name: found.name, why }),
            }
        }
        Ok(standing)
    }

    /// Reads a file of one name in a tracked place, if it is the agent's or the guardian's.
    pub(crate) fn read_own(&self, name: &Name) -> std::result::Result<(Vec<u8>, Look), String> {
        let (file, look) =
            self.root.open_file(name, self.limits.file).map_err(|unread| unread.to_string())?;
        if look.links != 1 {
            return Err(Unread::Links(look.links).to_string());
        }
        if !self.may_read(name, &look) {
            return Err(format!("it belongs to user {}, not to the agent", look.uid));
        }
        let bytes = read_whole(file, self.limits.file, look.size);
        bytes.map(|bytes| (bytes, look)).map_err(|unread| unread.to_string())
    }
}

#[cfg(test)]
mod tests;
