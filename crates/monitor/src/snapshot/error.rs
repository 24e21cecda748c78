//! Why a snapshot cannot be used.

use std::io;
use std::path::{Path, PathBuf};

use wardkeep_evidence::hash::BlobHash;

use super::path::RelativePath;
use super::{LOCK_WAIT, SnapshotId};
use crate::journal::JournalError;
use crate::store::StoreError;

/// Why a snapshot cannot be taken, read or restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The file system refused.
    #[error("cannot {action} `{}`: {error}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A workspace is no longer where it was.
    #[error(
        "`{}` leads over a link, so it is not the folder that was meant: put the folder back",
        path.display()
    )]
    Moved {
        /// Its path.
        path: PathBuf,
    },
    /// Another process is at work.
    #[error("another process takes or restores a snapshot for over {} s: run it again", LOCK_WAIT.as_secs())]
    Busy,
    /// There is none.
    #[error("no snapshot has an id that begins with `{given}`: see `wardkeep snapshot list`")]
    Unknown {
        /// What was asked for.
        given: String,
    },
    /// There is no record of a rollback.
    #[error("there was no rollback in this workspace: see `wardkeep snapshot list`")]
    NoRollback,
    /// It is no beginning of an id.
    #[error(
        "`{given}` is no id of a snapshot: give 12 hexadecimal digits, or at least the first 4"
    )]
    NoId {
        /// What was asked for.
        given: String,
    },
    /// There are several.
    #[error("several snapshots begin with `{given}`: give more digits of {}", list(candidates))]
    Ambiguous {
        /// What was asked for.
        given: String,
        /// Those that begin so.
        candidates: Vec<SnapshotId>,
    },
    /// Two records disagree.
    #[error("two records tell of a snapshot {id}, with different manifests: use another snapshot")]
    Doubled {
        /// Its id.
        id: SnapshotId,
    },
    /// The manifest is not the one that was recorded.
    #[error(
        "the manifest of snapshot {id} is not the one that was recorded ({what}): use another snapshot"
    )]
    ManifestSwapped {
        /// Its id.
        id: SnapshotId,
        /// What is wrong.
        what: String,
    },
    /// A content is not the one that was kept.
    #[error("the content {hash} is not what was kept: use another snapshot")]
    BlobSwapped {
        /// Its hash.
        hash: BlobHash,
    },
    /// A content is gone.
    #[error("the content {hash} is gone: use another snapshot")]
    BlobMissing {
        /// Its hash.
        hash: BlobHash,
    },
    /// The plan of an unfinished rollback cannot be read.
    #[error("the plan of an unfinished rollback is damaged ({what}), and moved to `{}`: roll back again", path.display())]
    Plan {
        /// Where it is.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// An unfinished rollback cannot be finished.
    #[error(
        "the unfinished rollback to {snapshot} cannot be finished ({what}), and is given up; what it \
         replaced is in {kept}: see `wardkeep snapshot diff {kept}`"
    )]
    Abandoned {
        /// Where it led.
        snapshot: SnapshotId,
        /// Where the replaced state is.
        kept: SnapshotId,
        /// Why.
        what: String,
    },
    /// A file changed after it was judged.
    #[error("`{path}` was changed just now: nothing was restored, try again")]
    ChangedSince {
        /// The file.
        path: RelativePath,
    },
    /// A manifest cannot be written.
    #[error("the manifest cannot be written ({0}): report this")]
    Unwritable(String),
}

impl SnapshotError {
    pub(crate) fn io(action: &'static str, path: &Path, error: impl Into<io::Error>) -> Self {
        Self::Io { action, path: path.to_owned(), error: error.into() }
    }
}

impl From<JournalError> for SnapshotError {
    fn from(error: JournalError) -> Self {
        Self::Store(error.into())
    }
}

fn list(ids: &[SnapshotId]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
