//! Rollback: files put back to what a snapshot holds.
//!
//! First what is about to be replaced is itself kept as a snapshot, then a plan is written down,
//! then each file is replaced whole or removed, all is looked at once more, recorded, and the plan
//! removed. A process that ends anywhere leaves each file old or new, and whoever comes next finds
//! the plan and finishes. The plan holds no contents: they come from the two snapshots, which are
//! held against their records. A file that is neither old nor new any more is left alone and named.

mod apply;
pub mod automatic;
mod plan;
pub mod policy;

use std::collections::BTreeMap;
use std::path::Path;

use wardkeep_evidence::hash::{BlobHash, RecordId};
use wardkeep_evidence::json::{Object, Value};
use wardkeep_evidence::record::RecordType;

use crate::snapshot::{
    Blobs, By, Catalogue, Change, Content, Entry, Limits, Listed, Manifest, Opened, RelativePath,
    Result, Root, Scope, Seen, SnapshotError, SnapshotId, Snapshots, Why, open_workspace,
};
use crate::store::{Event, StoreReader};

use plan::Plan;

/// Most paths that a record names; more are counted.
const MAX_NAMED: usize = 1000;
/// Mode of a file that was not there.
const USUAL_MODE: u32 = 0o644;

/// What a rollback did.
#[derive(Debug, Clone)]
pub struct RolledBack {
    /// What was restored.
    pub snapshot: SnapshotId,
    /// Where the replaced state is kept; nothing where nothing differed.
    pub kept: Option<SnapshotId>,
    /// Its record; none where nothing differed.
    pub record: Option<RecordId>,
    /// Files that have the content of the snapshot again.
    pub restored: Vec<RelativePath>,
    /// Files that were added since and are gone.
    pub removed: Vec<RelativePath>,
    /// Files that should have changed and did not.
    pub left: Vec<Left>,
    /// Whether an earlier process had begun it.
    pub resumed: bool,
}

/// A file that a rollback left alone.
#[derive(Debug, Clone)]
pub struct Left {
    /// Where it is.
    pub path: RelativePath,
    /// Why.
    pub why: LeftWhy,
}

/// Why a rollback left a file alone.
#[derive(Debug, Clone)]
pub enum LeftWhy {
    /// No copy can be kept of it.
    Unknown(Why),
    /// It was changed by someone else meanwhile.
    Changed,
    /// The file system refused.
    Failed(String),
}

impl std::fmt::Display for LeftWhy {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unknown(why) => write!(formatter, "{}, so no copy can be kept", why.words()),
            Self::Changed => formatter.write_str("was changed meanwhile"),
            Self::Failed(why) => write!(formatter, "cannot be changed: {why}"),
        }
    }
}

/// How a rollback is done.
struct Order<'a> {
    auto: bool,
    by: By<'a>,
    /// What files must hold when their copy is kept; nothing is restored otherwise.
    expected: Option<&'a BTreeMap<RelativePath, Option<BlobHash>>>,
}

/// The differences that a rollback would undo.
///
/// # Errors
/// When the workspace cannot be read, or a content of the snapshot is not what was kept.
pub fn preview(
    opened: &Opened,
    only: Option<&[RelativePath]>,
    limits: &Limits,
) -> Result<Vec<Change>> {
    let mut changes = opened.diff(&limits.kept())?;
    changes.retain(|change| is_meant(&change.path, only));
    for content in changes.iter().filter_map(|change| change.before.as_ref()) {
        opened.read(content)?;
    }
    Ok(changes)
}

/// The snapshot that an unfinished rollback leads to, if there is one.
#[must_use]
pub fn unfinished(state: &Path) -> Option<SnapshotId> {
    Plan::read(state).ok().flatten().map(|plan| plan.snapshot)
}

impl Snapshots<'_> {
    /// Puts the files of a snapshot back, or only some of them, and removes what was added since.
    /// A path in `only` is a file, or a folder with all below it. An unfinished rollback is
    /// finished first.
    ///
    /// # Errors
    /// When snapshot or contents are not what was recorded: then nothing was changed. When
    /// something cannot be written: then [`Snapshots::resume`] finishes it.
    pub fn restore(
        &self,
        snapshot: &Listed,
        only: Option<&[RelativePath]>,
        by: By<'_>,
    ) -> Result<RolledBack> {
        let _lock = self.lock()?;
        self.resume_locked()?;
        self.roll_back(snapshot, only, &Order { auto: false, by, expected: None })
    }

    /// Puts files of a workspace back to contents that are kept in the store; `None` removes one.
    /// They are written down as a snapshot of their own, which is then restored.
    ///
    /// # Errors
    /// As [`Snapshots::restore`].
    pub fn restore_files(
        &self,
        workspace: &Path,
        files: &[(RelativePath, Option<BlobHash>)],
        reason: &str,
        by: By<'_>,
    ) -> Result<RolledBack> {
        let root = open_workspace(workspace)?;
        let _lock = self.lock()?;
        self.resume_locked()?;
        let limits = self.limits.kept();
        let mut blobs = Blobs::create(self.store.path())?;
        let files: BTreeMap<_, _> = files.iter().cloned().collect();
        let (mut entries, mut total) = (Vec::new(), 0);
        for (path, hash) in &files {
            let Some(hash) = *hash else { continue };
            let size = blobs.read(hash, limits.file_bytes)?.len() as u64;
            let mode = match root.look(path, limits.file_bytes) {
                Seen::File { mode, .. } => mode,
                _ => USUAL_MODE,
            };
            total += size;
            entries.push(Entry { path: path.clone(), content: Content::File { hash, size, mode } });
        }
        // What the journal speaks of may have been kept by a process that did not flush the name.
        blobs.flush(self.steps)?;
        let manifest = Manifest {
            id: SnapshotId::default(),
            scope: Scope::Files,
            taken: String::new(),
            reason: reason.to_owned(),
            workspace: root.path().to_owned(),
            covers: files.into_keys().collect(),
            files: entries,
            state: Vec::new(),
            left_out: Vec::new(),
            more_left_out: 0,
        };
        let taken = self.write_down(manifest, total, by)?;
        self.roll_back(&taken.listed, None, &Order { auto: false, by, expected: None })
    }

    /// Puts files below a folder back to what they were, and removes others. They are written down as
    /// a snapshot of their own, which is then restored.
    ///
    /// # Errors
    /// As [`Snapshots::restore`].
    pub fn put_back(
        &self,
        root: &Path,
        files: Vec<Entry>,
        gone: Vec<RelativePath>,
        reason: &str,
        by: By<'_>,
    ) -> Result<RolledBack> {
        let root = Root::open(root)?;
        let _lock = self.lock()?;
        self.resume_locked()?;
        let sizes = files.iter().map(|entry| match entry.content {
            Content::File { size, .. } => size,
            Content::Link { .. } => 0,
        });
        let total = sizes.sum();
        let mut covers: Vec<RelativePath> =
            files.iter().map(|entry| entry.path.clone()).chain(gone).collect();
        covers.sort();
        let manifest = Manifest {
            id: SnapshotId::default(),
            scope: Scope::Files,
            taken: String::new(),
            reason: reason.to_owned(),
            workspace: root.path().to_owned(),
            covers,
            files,
            state: Vec::new(),
            left_out: Vec::new(),
            more_left_out: 0,
        };
        let taken = self.write_down(manifest, total, by)?;
        self.roll_back(&taken.listed, None, &Order { auto: false, by, expected: None })
    }

    /// Finishes a rollback that a process began and did not finish.
    ///
    /// # Errors
    /// When it cannot be finished, or not now.
    pub fn resume(&self) -> Result<Option<RolledBack>> {
        let _lock = self.lock()?;
        self.resume_locked()
    }

    fn resume_locked(&self) -> Result<Option<RolledBack>> {
        let state = self.store.path();
        let plan = match Plan::read(state) {
            Ok(None) => return Ok(None),
            Ok(Some(plan)) => plan,
            Err(what) => {
                let path = Plan::abandon(state)?;
                return Err(SnapshotError::Plan { path, what });
            }
        };
        let reader = StoreReader::open(state)?;
        let catalogue = Catalogue::read(&reader)?;
        let recorded = catalogue.rollbacks.iter().find(|one| one.kept == plan.kept);
        let opened = || {
            let target = Opened::open(state, catalogue.by_id(plan.snapshot)?)?;
            let kept = Opened::open(state, catalogue.by_id(plan.kept)?)?;
            for path in &plan.paths {
                target
                    .manifest()
                    .file(path)
                    .map(|entry| target.read(&entry.content))
                    .transpose()?;
            }
            Ok::<_, SnapshotError>((target, kept))
        };
        let (target, kept) = match opened() {
            Ok(opened) => opened,
            Err(error @ (SnapshotError::Io { .. } | SnapshotError::Store(_))) => return Err(error),
            Err(error) => {
                Plan::abandon(state)?;
                let (snapshot, kept) = (plan.snapshot, plan.kept);
                let what = error.to_string();
                return Err(SnapshotError::Abandoned { snapshot, kept, what });
            }
        };
        let record = recorded.map(|record| record.record);
        let mut done = self.run(&plan, &target, &kept, record, Vec::new())?;
        done.resumed = true;
        Ok(Some(done))
    }

    fn roll_back(
        &self,
        snapshot: &Listed,
        only: Option<&[RelativePath]>,
        order: &Order<'_>,
    ) -> Result<RolledBack> {
        let state = self.store.path();
        let target = Opened::open(state, snapshot)?;
        let root = Root::open(&target.manifest().workspace)?;
        let limits = self.limits.kept();
        let mut changes = target.diff_below(&root, &limits)?;
        changes.retain(|change| is_meant(&change.path, only));
        let mut left = Vec::new();
        changes.retain(|change| match change.unknown {
            // Nothing is lost with it.
            Some(Why::NotRegular) if change.before.is_some() => true,
            Some(why) => {
                left.push(Left { path: change.path.clone(), why: LeftWhy::Unknown(why) });
                false
            }
            None => true,
        });
        for content in changes.iter().filter_map(|change| change.before.as_ref()) {
            target.read(content)?;
        }
        let nothing = |left| RolledBack {
            snapshot: snapshot.id,
            kept: None,
            record: None,
            restored: Vec::new(),
            removed: Vec::new(),
            left,
            resumed: false,
        };
        if changes.is_empty() {
            return Ok(nothing(left));
        }
        let covers = changes.iter().map(|change| change.path.clone()).collect();
        let reason = format!("replaced by the rollback to {}", snapshot.id);
        let kept = self.take_locked(&root, Scope::Files, covers, &limits, &reason, order.by)?;
        if let Some(expected) = order.expected {
            check_expected(&kept.manifest, expected)?;
        }
        changes.retain(|change| {
            let known = kept.manifest.file(&change.path).is_some()
                || !kept.manifest.leaves_out(&change.path)
                || change.unknown == Some(Why::NotRegular);
            if !known {
                let why = LeftWhy::Unknown(Why::Limit);
                left.push(Left { path: change.path.clone(), why });
            }
            known
        });
        let paths: Vec<RelativePath> = changes.into_iter().map(|change| change.path).collect();
        if paths.is_empty() {
            return Ok(nothing(left));
        }
        let plan = Plan::new(snapshot.id, kept.listed.id, paths, order.auto, order.by);
        plan.write(self)?;
        let kept = Opened::open(state, &kept.listed)?;
        self.run(&plan, &target, &kept, None, left)
    }

    /// Does what a plan says, records it unless `record` did, and removes the plan.
    fn run(
        &self,
        plan: &Plan,
        target: &Opened,
        kept: &Opened,
        record: Option<RecordId>,
        mut left: Vec<Left>,
    ) -> Result<RolledBack> {
        let root = Root::open(&target.manifest().workspace)?;
        let mut done = apply::apply(self, &root, plan, target, kept.manifest())?;
        left.append(&mut done.left);
        let record = match record {
            Some(record) => record,
            None => self.append_rollback(plan, target, kept, &done, &left)?,
        };
        Plan::remove(self)?;
        Ok(RolledBack {
            snapshot: plan.snapshot,
            kept: Some(plan.kept),
            record: Some(record),
            restored: done.restored,
            removed: done.removed,
            left,
            resumed: false,
        })
    }

    fn append_rollback(
        &self,
        plan: &Plan,
        target: &Opened,
        kept: &Opened,
        done: &apply::Done,
        left: &[Left],
    ) -> Result<RecordId> {
        self.steps.step("append the record of the rollback");
        let changed = done.restored.iter().chain(&done.removed);
        let text = |path: &RelativePath| Value::from(path.to_string());
        let files: Vec<Value<'_>> = changed.clone().take(MAX_NAMED).map(text).collect();
        let more = changed.count().saturating_sub(MAX_NAMED);
        let unchanged = left.iter().take(MAX_NAMED).map(|left| text(&left.path)).collect();
        let mut content = Object::from([
            ("auto", Value::from(plan.auto)),
            ("files", Value::Array(files)),
            ("kept", Value::from(plan.kept.to_string())),
            ("kind", Value::from("rollback")),
        ]);
        content.push("left", Value::Array(unchanged));
        content.push("more", Value::from(more as u64));
        content.push("removed", Value::from(done.removed.len() as u64));
        content.push("snapshot", Value::from(plan.snapshot.to_string()));
        content.push("v", Value::from(1u64));
        let workspace = target.manifest().workspace.to_string_lossy().into_owned();
        let principal = plan.principal();
        let mut event = Event::new(RecordType::Rollback, principal, Value::Object(content));
        event.parents = vec![target.listed().record, kept.listed().record];
        event.agent = &plan.agent;
        event.session = &plan.session;
        event.workspace = &workspace;
        Ok(self.store.append(event)?.id)
    }
}

/// Whether a path is one of those that were asked for.
fn is_meant(path: &RelativePath, only: Option<&[RelativePath]>) -> bool {
    only.is_none_or(|only| only.iter().any(|one| one == path || path.is_below(one)))
}

fn check_expected(
    kept: &Manifest,
    expected: &BTreeMap<RelativePath, Option<BlobHash>>,
) -> Result<()> {
    for (path, wanted) in expected {
        let found = match kept.file(path).map(|entry| &entry.content) {
            Some(Content::File { hash, .. }) => Some(*hash),
            Some(Content::Link { .. }) => {
                return Err(SnapshotError::ChangedSince { path: path.clone() });
            }
            None => None,
        };
        if found != *wanted {
            return Err(SnapshotError::ChangedSince { path: path.clone() });
        }
    }
    Ok(())
}
