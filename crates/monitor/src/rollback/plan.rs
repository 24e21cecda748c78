//! What a rollback is about to do, written down so that it can be finished.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rustix::fs::{fsync, renameat};
use serde::{Deserialize, Serialize};
use wardkeep_evidence::canonical::canonical;
use wardkeep_evidence::json;
use wardkeep_evidence::record::Principal;

use crate::snapshot::{
    By, RelativePath, Result, Seen, SnapshotError, SnapshotId, Snapshots, clear, existing_folder,
    folder, look,
};

const FILE: &str = "rollback.json";
const ABANDONED: &str = "rollback.abandoned.json";
const VERSION: u32 = 1;
const MAX_BYTES: u64 = 128 << 20;

/// It names no contents: an edited plan can restore nothing but what was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plan {
    pub(super) agent: String,
    pub(super) auto: bool,
    /// What is replaced.
    pub(super) kept: SnapshotId,
    pub(super) paths: Vec<RelativePath>,
    principal: String,
    pub(super) session: String,
    /// What is restored.
    pub(super) snapshot: SnapshotId,
    v: u32,
}

impl Plan {
    pub(super) fn new(
        snapshot: SnapshotId,
        kept: SnapshotId,
        paths: Vec<RelativePath>,
        auto: bool,
        by: By<'_>,
    ) -> Self {
        Self {
            agent: by.about.agent.to_owned(),
            auto,
            kept,
            paths,
            principal: by.principal.as_str().to_owned(),
            session: by.about.session.to_owned(),
            snapshot,
            v: VERSION,
        }
    }

    pub(super) fn principal(&self) -> Principal {
        // INVARIANT: checked when it was read.
        self.principal.parse().unwrap_or(Principal::Sys)
    }

    /// Name under which the file at a position is made.
    pub(super) fn temporary(&self, position: usize) -> String {
        format!(".wardkeep-{}-{position}", self.kept)
    }

    pub(super) fn write(&self, snapshots: &Snapshots<'_>) -> Result<()> {
        let text = serde_json::to_vec(self)
            .map_err(|error| error.to_string())
            .and_then(|text| json::parse(&text).map(|v| canonical(&v)).map_err(|e| e.to_string()))
            .map_err(SnapshotError::Unwritable)?;
        snapshots.steps.step("write the plan");
        snapshots.place(&folder(snapshots.store.path())?, FILE, &text)
    }

    /// The plan that there is, or what is wrong with it.
    pub(super) fn read(state: &Path) -> std::result::Result<Option<Self>, String> {
        let Ok(folder) = existing_folder(state) else { return Ok(None) };
        let bytes = match look(folder.handle(), OsStr::new(FILE), MAX_BYTES) {
            Seen::File { bytes, .. } => bytes,
            Seen::Missing => return Ok(None),
            _ => return Err("it is no file that can be read".to_owned()),
        };
        let plan: Self = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
        if plan.v != VERSION {
            return Err(format!("it has version {}, this program knows {VERSION}", plan.v));
        }
        let _known: Principal = plan.principal.parse().map_err(|_| "its principal is unknown")?;
        Ok(Some(plan))
    }

    pub(super) fn remove(snapshots: &Snapshots<'_>) -> Result<()> {
        let folder = folder(snapshots.store.path())?;
        let failed = |error| SnapshotError::io("remove", &folder.path().join(FILE), error);
        snapshots.steps.step("remove the plan");
        clear(folder.handle(), OsStr::new(FILE)).map_err(failed)?;
        snapshots.steps.step("the plan is removed");
        fsync(folder.handle()).map_err(|errno| failed(errno.into()))
    }

    /// Moves a plan out of the way that cannot be carried out.
    pub(super) fn abandon(state: &Path) -> Result<PathBuf> {
        let folder = folder(state)?;
        let path = folder.path().join(ABANDONED);
        renameat(folder.handle(), FILE, folder.handle(), ABANDONED)
            .map_err(|errno| SnapshotError::io("rename", &path, errno))?;
        Ok(path)
    }
}
