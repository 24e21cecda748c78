//! Bundles on disk: made record by record, written whole, packed and unpacked.

mod directory;
mod pack;
mod staged;
mod writer;

use std::io;
use std::path::Path;

pub use directory::BundleDirectory;
pub use pack::{export_zip, import_zip};
pub use staged::{StagedDirectory, StagedFile};
pub use writer::BundleWriter;

use crate::hash::{BlobHash, RecordId};
use crate::record::NewRecordError;
use crate::source::SourceError;

/// Why a bundle cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BundleError {
    /// The file system refused.
    #[error("cannot {action} `{path}`: {error}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: String,
        /// What the system said.
        error: io::Error,
    },
    /// There is something already.
    #[error("`{0}` exists already: choose another path or remove it first")]
    Exists(String),
    /// Another process writes to the bundle.
    #[error("`{0}` is in use by another process: try again when it is done")]
    Locked(String),
    /// The bundle does not hold together.
    #[error("the bundle is damaged ({0}): run `aegx verify` on it and start a new one")]
    Damaged(String),
    /// The record cannot be made.
    #[error(transparent)]
    Record(#[from] NewRecordError),
    /// A parent is not in the bundle.
    #[error("the parent {0} is not in the bundle: add it first")]
    ParentUnknown(RecordId),
    /// The blob is not in the bundle.
    #[error("the blob {0} is not in the bundle: add it first with add-blob")]
    BlobUnknown(BlobHash),
    /// The blob has another size.
    #[error("the blob {hash} has {actual} bytes, not {given}: give its real size")]
    BlobSize {
        /// The blob.
        hash: BlobHash,
        /// Its size.
        actual: u64,
        /// The size given.
        given: u64,
    },
    /// An equal record is in the bundle.
    #[error(
        "an equal record {0} is in the bundle: make it differ, for example by a `nonce` in meta"
    )]
    Duplicate(RecordId),
    /// What should be packed or unpacked cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The zip could not be written.
    #[error("cannot write the zip: {0}")]
    Zip(String),
}

impl BundleError {
    pub(crate) fn io(action: &'static str, path: &Path, error: io::Error) -> Self {
        Self::Io { action, path: path.display().to_string(), error }
    }
}

pub(crate) type Result<T> = std::result::Result<T, BundleError>;

/// Flushes a folder's own entries to disk.
pub(crate) fn sync_directory(path: &Path) -> Result<()> {
    std::fs::File::open(path)
        .and_then(|folder| folder.sync_all())
        .map_err(|error| BundleError::io("flush", path, error))
}
