//! Content under its hash, in the blobs of the state directory.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;

use rustix::fs::fsync;
use wardkeep_evidence::hash::{BlobHash, sha256};

use super::root::{Put, Root, Seen, Unflushed, clear, look, prepare, rename_over};
use super::{Result, SnapshotError, Steps};
use crate::journal::Folder;

/// The blobs of a state directory.
#[derive(Debug)]
pub(crate) struct Blobs {
    root: Root,
    // What was written and has not its name yet.
    made: BTreeSet<BlobHash>,
    order: Vec<BlobHash>,
    unflushed: Unflushed,
}

/// Whoever writes here holds the lock of the snapshots, so numbers are enough.
fn temporary(number: usize) -> String {
    format!(".snapshot-{number}.partial")
}

impl Blobs {
    /// Opens them, making the folder where it is not there, and removes what an ended process left.
    pub(crate) fn create(state: &Path) -> Result<Self> {
        Folder::create(&state.join("blobs"))?;
        let blobs = Self::open(state)?;
        let folder = blobs.root.handle();
        let left = |number: &usize| {
            !matches!(look(folder, OsStr::new(&temporary(*number)), 0), Seen::Missing)
        };
        for number in (0..).take_while(left) {
            clear(folder, OsStr::new(&temporary(number)))
                .map_err(|error| SnapshotError::io("clear", blobs.root.path(), error))?;
        }
        Ok(blobs)
    }

    /// Opens them to read.
    pub(crate) fn open(state: &Path) -> Result<Self> {
        let state =
            state.canonicalize().map_err(|error| SnapshotError::io("open", state, error))?;
        let root = Root::open(&state.join("blobs"))?;
        Ok(Self { root, made: BTreeSet::new(), order: Vec::new(), unflushed: Unflushed::default() })
    }

    /// Keeps bytes. They are there, and durable, after [`Blobs::flush`].
    pub(crate) fn put(&mut self, bytes: &[u8], steps: &dyn Steps) -> Result<BlobHash> {
        let hash = BlobHash(sha256(bytes));
        let name = hash.to_string();
        let name = OsStr::new(&name);
        let folder = self.root.handle();
        let is_there = |seen| matches!(seen, Seen::File { bytes: there, .. } if there == bytes);
        if self.made.contains(&hash) || is_there(look(folder, name, bytes.len() as u64)) {
            return Ok(hash);
        }
        let failed = |error| SnapshotError::io("write", &self.root.path().join(name), error);
        let temporary = temporary(self.order.len());
        let what = Put::File { bytes, mode: 0o600 };
        let file = prepare(folder, OsStr::new(&temporary), name, what, steps).map_err(failed)?;
        self.unflushed.add(file).map_err(failed)?;
        self.made.insert(hash);
        self.order.push(hash);
        Ok(hash)
    }

    /// Makes all that was kept durable, contents first, then names.
    pub(crate) fn flush(&mut self, steps: &dyn Steps) -> Result<()> {
        let failed = |error| SnapshotError::io("write", self.root.path(), error);
        self.unflushed.flush(steps).map_err(failed)?;
        // From the last on: what a process leaves that ends here has numbers without a gap.
        while let Some(hash) = self.order.pop() {
            let (from, to) = (temporary(self.order.len()), hash.to_string());
            rename_over(self.root.handle(), OsStr::new(&from), OsStr::new(&to), steps)
                .map_err(failed)?;
        }
        self.made.clear();
        steps.step("flush the names of the blobs");
        fsync(self.root.handle()).map_err(|errno| failed(errno.into()))
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
