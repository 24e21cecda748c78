//! A snapshot that was read and found right, and what changed since.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use wardkeep_evidence::hash::{BlobHash, sha256};

use super::manifest::{Content, Entry, MAX_MANIFEST_BYTES, Manifest, Why};
use super::path::RelativePath;
use super::root::{Root, Seen, look};
use super::{
    Blobs, Capture, Limits, Listed, Result, SnapshotError, capture, existing_folder, manifest_name,
    signed_set, state_identity,
};

/// A snapshot whose manifest has the hash that its record says.
#[derive(Debug)]
pub struct Opened {
    listed: Listed,
    manifest: Manifest,
    state: PathBuf,
    blobs: Blobs,
}

/// What became of a file since the snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Difference {
    /// It was not there.
    Added,
    /// It was another one.
    Modified,
    /// It is not there any more.
    Removed,
}

/// A file that differs from the snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Where it is.
    pub path: RelativePath,
    /// How it differs.
    pub difference: Difference,
    /// What it was.
    pub before: Option<Content>,
    /// What it is.
    pub after: Option<Content>,
    /// Why its present content is not known, so that it cannot be replaced without losing it.
    pub unknown: Option<Why>,
}

impl Opened {
    /// Reads the manifest of a snapshot and holds it against the record.
    ///
    /// # Errors
    /// When it is not the one that was recorded, or cannot be read.
    pub fn open(state: &Path, listed: &Listed) -> Result<Self> {
        let swapped =
            |what: &str| SnapshotError::ManifestSwapped { id: listed.id, what: what.to_owned() };
        let folder = existing_folder(state)?;
        let name = manifest_name(listed.id);
        let bytes = match look(folder.handle(), OsStr::new(&name), MAX_MANIFEST_BYTES) {
            Seen::File { bytes, .. } => bytes,
            Seen::Missing => return Err(swapped("it is gone")),
            _ => return Err(swapped("it is no file that can be read")),
        };
        if BlobHash(sha256(&bytes)) != listed.manifest {
            return Err(swapped("its hash differs"));
        }
        let manifest = Manifest::parse(&bytes).map_err(|what| swapped(&what))?;
        if manifest.id != listed.id || manifest.scope != listed.scope {
            return Err(swapped("it is that of another snapshot"));
        }
        let blobs = Blobs::open(state)?;
        Ok(Self { listed: listed.clone(), manifest, state: state.to_owned(), blobs })
    }

    /// What the journal tells of it.
    #[must_use]
    pub fn listed(&self) -> &Listed {
        &self.listed
    }

    /// Its manifest.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The bytes of a file of it, held against their hash; of a link, where it leads.
    ///
    /// # Errors
    /// When they are not what was kept.
    pub fn read(&self, content: &Content) -> Result<Vec<u8>> {
        match content {
            Content::File { hash, size, .. } => self.blobs.read(*hash, *size),
            Content::Link { target } => Ok(target.clone()),
        }
    }

    /// Reads all of it.
    ///
    /// # Errors
    /// When a content is not what was kept.
    pub fn check(&self) -> Result<()> {
        let mut all = self.manifest.files.iter().chain(&self.manifest.state);
        all.try_for_each(|entry| self.read(&entry.content).map(drop))
    }

    /// What changed in the workspace since, in order of the paths.
    ///
    /// # Errors
    /// When the workspace cannot be opened.
    pub fn diff(&self, limits: &Limits) -> Result<Vec<Change>> {
        let root = Root::open(&self.manifest.workspace)?;
        self.diff_below(&root, limits)
    }

    pub(crate) fn diff_below(&self, root: &Root, limits: &Limits) -> Result<Vec<Change>> {
        let Manifest { scope, covers, .. } = &self.manifest;
        let state = state_identity(&self.state);
        let now = capture(root, *scope, covers, limits, state, None, &mut |_| Ok(()))?;
        Ok(self.compare(&now))
    }

    /// What changed in the signed set since. It is shown, and never restored: an older set with an
    /// older signature would undo what the owner signed later.
    ///
    /// # Errors
    /// None that a reader of the set could mend.
    pub fn state_diff(&self) -> Result<Vec<Change>> {
        if !self.manifest.scope.has_state() {
            return Ok(Vec::new());
        }
        let now = signed_set(&self.state, &mut |_| Ok(()))?;
        let files = now.into_iter().map(|entry| (entry.path, entry.content)).collect();
        Ok(compare(&self.manifest.state, &Capture { files, ..Capture::default() }, &|_| false))
    }

    /// The present bytes of a file, as far as they are read.
    #[must_use]
    pub fn present(&self, path: &RelativePath, limit: u64) -> Option<Vec<u8>> {
        let root = Root::open(&self.manifest.workspace).ok()?;
        match root.look(path, limit) {
            Seen::File { bytes, .. } | Seen::Link(bytes) => Some(bytes),
            _ => None,
        }
    }

    fn compare(&self, now: &Capture) -> Vec<Change> {
        compare(&self.manifest.files, now, &|path| self.manifest.leaves_out(path))
    }
}

fn compare(
    before: &[Entry],
    now: &Capture,
    left_out: &dyn Fn(&RelativePath) -> bool,
) -> Vec<Change> {
    let mut changes = Vec::new();
    let unknown = |path: &RelativePath| {
        let above = |(folder, why): (&RelativePath, &Why)| path.is_below(folder).then_some(*why);
        now.left_out.get(path).copied().or_else(|| now.left_out.iter().find_map(above))
    };
    for Entry { path, content } in before {
        let after = now.files.get(path);
        let unknown = unknown(path);
        if after == Some(content) {
            continue;
        }
        // Where not everything was looked at, it cannot be told whether it is gone.
        let unknown = unknown.or((after.is_none() && now.more_left_out > 0).then_some(Why::Limit));
        let there = after.is_some() || unknown.is_some();
        changes.push(Change {
            path: path.clone(),
            difference: if there { Difference::Modified } else { Difference::Removed },
            before: Some(content.clone()),
            after: after.cloned(),
            unknown,
        });
    }
    let was = |path: &RelativePath| before.binary_search_by(|entry| entry.path.cmp(path)).is_ok();
    for (path, content) in &now.files {
        if !was(path) && !left_out(path) {
            changes.push(Change {
                path: path.clone(),
                difference: Difference::Added,
                before: None,
                after: Some(content.clone()),
                unknown: None,
            });
        }
    }
    for (path, why) in &now.left_out {
        if !was(path) && !left_out(path) {
            changes.push(Change {
                path: path.clone(),
                difference: Difference::Added,
                before: None,
                after: None,
                unknown: Some(*why),
            });
        }
    }
    changes.sort_by(|one, other| one.path.cmp(&other.path));
    changes
}
