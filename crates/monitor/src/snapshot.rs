//! Snapshots of what steers an agent and of what it remembers.
//!
//! A snapshot is a manifest, the contents that it names, and a record in the journal that holds the
//! manifest's hash. It exists once that record is durable; contents and manifest were so before.
//! Whoever reads one computes the hashes again: a manifest or a content that was swapped is refused.
//!
//! Files are found and read below an open folder without following a link. What is covered is
//! written down, so that a file which was added later can be told.

mod blobs;
mod capture;
mod catalogue;
mod diff;
mod error;
mod id;
mod manifest;
mod path;
mod root;
mod scope;

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use wardkeep_evidence::hash::{BlobHash, sha256};
use wardkeep_evidence::json::{Object, Value};
use wardkeep_evidence::record::{Principal, RecordType};
use wardkeep_evidence::time::Timestamp;
use wardkeep_policy::signed_set::SetDraft;

use crate::journal::Folder;
use crate::policy::About;
use crate::store::{Event, Store};

pub(crate) use blobs::Blobs;
pub(crate) use capture::{Capture, Hurry, capture};
pub use catalogue::{Catalogue, Listed, RolledBackRecord};
pub use diff::{Change, Difference, Opened};
pub use error::SnapshotError;
pub use id::{ParseIdError, SnapshotId};
pub use manifest::{Content, Entry, LeftOut, Manifest, Why};
pub use path::RelativePath;
pub(crate) use root::{
    Put, Root, Seen, Unflushed, clear, look, names_in, place, prepare, rename_over,
};
pub(crate) use scope::folded;
pub use scope::{MEMORY, Scope, UnknownScope};

/// Folder of the snapshots in the state directory.
const FOLDER: &str = "snapshots";
const LOCK: &str = "lock";
const TEMPORARY: &str = ".partial";
/// How long the lock is waited for.
const LOCK_WAIT: Duration = Duration::from_secs(10);
/// Longest reason, in characters.
const MAX_REASON: usize = 200;
/// After a snapshot that was taken by itself, so many seconds pass before the next.
pub const COOLDOWN_SECONDS: i64 = 60;

/// How much a snapshot may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most files.
    pub files: usize,
    /// Largest file.
    pub file_bytes: u64,
    /// Most bytes in all.
    pub total_bytes: u64,
    /// Most names that are looked through.
    pub names: usize,
    /// Deepest folder.
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            files: 10_000,
            file_bytes: 16 << 20,
            total_bytes: 256 << 20,
            names: 200_000,
            depth: 32,
        }
    }
}

impl Limits {
    /// For what a rollback replaces, which must not be lost: a copy is kept of more than a
    /// snapshot takes.
    #[must_use]
    pub const fn kept(self) -> Self {
        Self {
            files: self.files.saturating_mul(10),
            file_bytes: self.file_bytes.saturating_mul(4),
            total_bytes: self.total_bytes.saturating_mul(4),
            names: self.names.saturating_mul(2),
            depth: self.depth.saturating_mul(2),
        }
    }
}

/// Told of each step that leaves something on disk, before it is taken. Tests end the process there.
pub trait Steps {
    /// The next step.
    fn step(&self, name: &'static str);
}

/// Every step is taken.
#[derive(Debug, Clone, Copy)]
pub struct Uninterrupted;

impl Steps for Uninterrupted {
    fn step(&self, _: &'static str) {}
}

pub(crate) type Result<T> = std::result::Result<T, SnapshotError>;

/// Who takes or restores a snapshot, and for whom.
#[derive(Debug, Clone, Copy)]
pub struct By<'a> {
    /// On whose behalf.
    pub principal: Principal,
    /// The agent and the session that it concerns.
    pub about: About<'a>,
}

impl By<'_> {
    /// The owner.
    #[must_use]
    pub fn owner() -> Self {
        Self { principal: Principal::User, about: About::default() }
    }

    /// The monitor itself.
    #[must_use]
    pub fn system() -> Self {
        Self { principal: Principal::Sys, about: About::default() }
    }
}

/// A snapshot that was taken.
#[derive(Debug, Clone)]
pub struct Taken {
    /// What the journal tells of it.
    pub listed: Listed,
    /// When, and of what.
    pub last: Last,
    /// What it holds.
    pub manifest: Manifest,
    /// How many bytes of files it holds.
    pub bytes: u64,
}

/// What has to be known of the newest snapshot to tell whether another one is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Last {
    /// Its id.
    pub id: SnapshotId,
    /// When it was taken, in seconds since 1970.
    pub at: i64,
    /// Hash of what it holds.
    pub contents: [u8; 32],
}

/// Takes and restores snapshots in an open store.
#[derive(Clone, Copy)]
pub struct Snapshots<'s> {
    pub(crate) store: &'s Store,
    pub(crate) limits: Limits,
    pub(crate) steps: &'s dyn Steps,
    hurry: Option<Hurry>,
}

impl fmt::Debug for Snapshots<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Snapshots").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl<'s> Snapshots<'s> {
    /// With the usual limits.
    #[must_use]
    pub fn new(store: &'s Store) -> Self {
        Self { store, limits: Limits::default(), steps: &Uninterrupted, hurry: None }
    }

    /// For someone who waits.
    pub(crate) fn in_a_hurry(self, limits: Limits, hurry: Hurry) -> Self {
        Self { limits, hurry: Some(hurry), ..self }
    }

    /// With other limits.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// With someone who is told of each step.
    #[must_use]
    pub fn with_steps(self, steps: &'s dyn Steps) -> Self {
        Self { steps, ..self }
    }

    /// Takes a snapshot of a workspace.
    ///
    /// # Errors
    /// When the workspace cannot be opened, or something not written.
    pub fn take(&self, workspace: &Path, scope: Scope, reason: &str, by: By<'_>) -> Result<Taken> {
        let root = open_workspace(workspace)?;
        let _lock = self.lock()?;
        self.take_locked(&root, scope, scope.covers(), &self.limits, reason, by)
    }

    /// Takes a snapshot before something changes, unless one was taken less than
    /// [`COOLDOWN_SECONDS`] ago, or nothing changed since. `last` is the newest one that is known;
    /// see [`Catalogue::last`] after a start.
    ///
    /// # Errors
    /// As [`Snapshots::take`].
    pub fn take_if_due(
        &self,
        workspace: &Path,
        reason: &str,
        by: By<'_>,
        last: Option<&Last>,
    ) -> Result<Option<Taken>> {
        let now = self.store.now().unix();
        if last.is_some_and(|last| (0..COOLDOWN_SECONDS).contains(&(now - last.at))) {
            return Ok(None);
        }
        let root = open_workspace(workspace)?;
        let _lock = self.lock()?;
        let scope = Scope::Full;
        if let Some(last) = last {
            let manifest =
                self.look(&root, scope, scope.covers(), &self.limits, &mut |_| Ok(()))?.0;
            if manifest.contents().is_ok_and(|contents| contents == last.contents) {
                return Ok(None);
            }
        }
        self.take_locked(&root, scope, scope.covers(), &self.limits, reason, by).map(Some)
    }

    /// Takes a snapshot of some files, or of those of a scope, while the lock is held.
    pub(crate) fn take_locked(
        &self,
        root: &Root,
        scope: Scope,
        covers: Vec<RelativePath>,
        limits: &Limits,
        reason: &str,
        by: By<'_>,
    ) -> Result<Taken> {
        let mut blobs = Blobs::create(self.store.path())?;
        let mut keep = |bytes: &[u8]| blobs.put(bytes, self.steps).map(drop);
        let (mut manifest, bytes) = self.look(root, scope, covers, limits, &mut keep)?;
        blobs.flush(self.steps)?;
        manifest.reason = reason.chars().take(MAX_REASON).collect();
        self.write_down(manifest, bytes, by)
    }

    /// Writes a manifest and its record; the contents are durable already.
    pub(crate) fn write_down(
        &self,
        mut manifest: Manifest,
        bytes: u64,
        by: By<'_>,
    ) -> Result<Taken> {
        let now = self.store.now();
        let folder = folder(self.store.path())?;
        manifest.id = self.unused_id(&folder)?;
        manifest.taken = now.to_string();
        let text = manifest.to_bytes().map_err(SnapshotError::Unwritable)?;
        let name = manifest_name(manifest.id);
        self.place(&folder, &name, &text)?;
        self.steps.step("append the record of the snapshot");
        let mut content = Object::from([
            ("files", Value::from(manifest.files.len() as u64)),
            ("id", Value::from(manifest.id.to_string())),
            ("kind", Value::from("snapshot")),
            ("left_out", Value::from(manifest.left_out.len() as u64 + manifest.more_left_out)),
            ("manifest", Value::from(BlobHash(sha256(&text)).to_string())),
        ]);
        content.push("reason", Value::from(manifest.reason.clone()));
        content.push("scope", Value::from(manifest.scope.as_str()));
        content.push("v", Value::from(1u64));
        let workspace = manifest.workspace.to_string_lossy().into_owned();
        let mut event = Event::new(RecordType::Snapshot, by.principal, Value::Object(content));
        event.agent = by.about.agent;
        event.session = by.about.session;
        event.workspace = &workspace;
        let appended = self.store.append(event)?;
        self.steps.step("the snapshot is taken");
        let contents = manifest.contents().map_err(SnapshotError::Unwritable)?;
        let last = Last { id: manifest.id, at: now.unix(), contents };
        let listed = Listed {
            id: manifest.id,
            scope: manifest.scope,
            manifest: BlobHash(sha256(&text)),
            files: manifest.files.len() as u64,
            left_out: manifest.left_out.len() as u64 + manifest.more_left_out,
            reason: manifest.reason.clone(),
            principal: by.principal,
            workspace,
            at: now,
            record: appended.id,
            index: appended.index,
            location: appended.location,
        };
        Ok(Taken { listed, last, manifest, bytes })
    }

    /// A manifest of what is there now, without id, time and reason.
    pub(crate) fn look(
        &self,
        root: &Root,
        scope: Scope,
        covers: Vec<RelativePath>,
        limits: &Limits,
        keep: capture::Keep<'_>,
    ) -> Result<(Manifest, u64)> {
        let identity = state_identity(self.store.path());
        let state = match scope.has_state() {
            true => signed_set(self.store.path(), keep)?,
            false => Vec::new(),
        };
        let found: Capture = capture(root, scope, &covers, limits, identity, self.hurry, keep)?;
        let manifest = Manifest {
            id: SnapshotId::default(),
            scope,
            taken: String::new(),
            reason: String::new(),
            workspace: root.path().to_owned(),
            covers,
            files: found.entries(),
            state,
            left_out: found.left_out(),
            more_left_out: found.more_left_out,
        };
        Ok((manifest, found.bytes))
    }

    /// Writes a file of the snapshots' folder, durable with its name.
    pub(crate) fn place(&self, folder: &Root, name: &str, bytes: &[u8]) -> Result<()> {
        let failed = |error| SnapshotError::io("write", &folder.path().join(name), error);
        let what = Put::File { bytes, mode: 0o600 };
        let temporary = OsStr::new(TEMPORARY);
        place(folder.handle(), temporary, OsStr::new(name), what, self.steps).map_err(failed)?;
        rustix::fs::fsync(folder.handle()).map_err(|errno| failed(errno.into()))
    }

    fn unused_id(&self, folder: &Root) -> Result<SnapshotId> {
        loop {
            let id = SnapshotId::random()?;
            let name = manifest_name(id);
            if id != SnapshotId::default()
                && matches!(look(folder.handle(), OsStr::new(&name), 0), Seen::Missing)
            {
                return Ok(id);
            }
        }
    }

    /// Waits for other processes that take or restore snapshots.
    pub(crate) fn lock(&self) -> Result<Lock> {
        self.lock_until(Instant::now() + LOCK_WAIT)
    }

    /// As [`Self::lock`], not longer than until then.
    pub(crate) fn lock_until(&self, until: Instant) -> Result<Lock> {
        let folder = folder(self.store.path())?;
        let path = folder.path().join(LOCK);
        let failed = |error: io::Error| SnapshotError::io("lock", &path, error);
        let flags = rustix::fs::OFlags::RDWR
            | rustix::fs::OFlags::CREATE
            | rustix::fs::OFlags::NOFOLLOW
            | rustix::fs::OFlags::CLOEXEC;
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let file = rustix::fs::openat(folder.handle(), LOCK, flags, mode)
            .map_err(|errno| failed(errno.into()))?;
        let file = File::from(file);
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Lock { _file: file }),
                Err(std::fs::TryLockError::WouldBlock) if Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(std::fs::TryLockError::WouldBlock) => return Err(SnapshotError::Busy),
                Err(std::fs::TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
    }
}

/// Held while a snapshot is taken or restored.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

/// The folder of the snapshots, made where it is not there.
pub(crate) fn folder(state: &Path) -> Result<Root> {
    Folder::create(&state.join(FOLDER))?;
    existing_folder(state)
}

/// The folder of the snapshots.
pub(crate) fn existing_folder(state: &Path) -> Result<Root> {
    let state = state.canonicalize().map_err(|error| SnapshotError::io("open", state, error))?;
    Root::open(&state.join(FOLDER))
}

pub(crate) fn manifest_name(id: SnapshotId) -> String {
    format!("{id}.json")
}

/// Opens a workspace that the owner named: links on the way are the owner's.
pub(crate) fn open_workspace(path: &Path) -> Result<Root> {
    let real = path.canonicalize().map_err(|error| SnapshotError::io("open", path, error))?;
    Root::open(&real)
}

pub(crate) fn state_identity(state: &Path) -> Option<(u64, u64)> {
    state.metadata().ok().map(|data| (data.dev(), data.ino()))
}

/// The files of the signed set, to compare with. One that cannot be read is not there to compare.
pub(crate) fn signed_set(state: &Path, keep: capture::Keep<'_>) -> Result<Vec<Entry>> {
    let Ok(draft) = SetDraft::read(state) else { return Ok(Vec::new()) };
    let mut entries = Vec::new();
    for (name, bytes) in draft.files() {
        let Some(path) = RelativePath::new(Path::new(name)) else { continue };
        keep(bytes)?;
        let hash = BlobHash(sha256(bytes));
        let content = Content::File { hash, size: bytes.len() as u64, mode: 0o600 };
        entries.push(Entry { path, content });
    }
    entries.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(entries)
}

/// The time of a manifest or record.
pub(crate) fn time_of(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}
