//! Content under its hash, in the blobs of the state directory.

use std::ffi::OsStr;
use std::os::fd::AsFd as _;
use std::path::Path;

use rustix::fs::fsync;
use wardkeep_evidence::hash::{BlobHash, sha256};

use super::root::{Put, Root, Seen, look, place};
use super::{Result, SnapshotError, Steps};
use crate::journal::Folder;

/// Whoever writes here holds the lock of the snapshots: one name is enough.
const TEMPORARY: &str = ".snapshot.partial";

/// The blobs of a state directory.
#[derive(Debug)]
pub(crate) struct Blobs {
    root: Root,
}

impl Blobs {
    /// Opens them, making the folder where it is not there.
    pub(crate) fn create(state: &Path) -> Result<Self> {
        Folder::create(&state.join("blobs"))?;
        Self::open(state)
    }

    /// Opens them to read.
    pub(crate) fn open(state: &Path) -> Result<Self> {
        let state =
            state.canonicalize().map_err(|error| SnapshotError::io("open", state, error))?;
        Ok(Self { root: Root::open(&state.join("blobs"))? })
    }

    /// Keeps bytes. They are durable after [`Blobs::flush`].
    pub(crate) fn put(&self, bytes: &[u8], steps: &dyn Steps) -> Result<BlobHash> {
        let hash = BlobHash(sha256(bytes));
        let name = hash.to_string();
        let name = OsStr::new(&name);
        let folder = self.root.handle();
        if !matches!(look(folder, name, bytes.len() as u64), Seen::File { bytes: there, .. } if there == bytes)
        {
            let what = Put::File { bytes, mode: 0o600 };
            place(folder, OsStr::new(TEMPORARY), name, what, steps)
                .map_err(|error| SnapshotError::io("write", &self.root.path().join(name), error))?;
        }
        Ok(hash)
    }

    /// Makes the names of all that was kept durable.
    pub(crate) fn flush(&self, steps: &dyn Steps) -> Result<()> {
        steps.step("flush the names of the blobs");
        fsync(self.root.handle().as_fd())
            .map_err(|errno| SnapshotError::io("flush", self.root.path(), errno))
    }

    /// Reads bytes and holds them against their hash.
    pub(crate) fn read(&self, hash: BlobHash, limit: u64) -> Result<Vec<u8>> {
        let name = hash.to_string();
        match look(self.root.handle(), OsStr::new(&name), limit) {
            Seen::File { bytes, .. } if BlobHash(sha256(&bytes)) == hash => Ok(bytes),
            Seen::File { .. } => Err(SnapshotError::BlobSwapped { hash }),
            Seen::Missing => Err(SnapshotError::BlobMissing { hash }),
            _ => Err(SnapshotError::BlobSwapped { hash }),
        }
    }
}
