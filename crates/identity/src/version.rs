//! A version of a file, for the history.

use wardkeep_evidence::hash::BlobHash;

use crate::error::Result;
use crate::name::Name;
use crate::workspace::Workspace;

/// What a file is from now on.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Version {
    /// Which.
    pub name: Name,
    /// Whether it can be executed.
    pub executable: bool,
    /// Of its bytes, which [`Workspace::bytes`] gives; `None` where it is gone.
    pub hash: Option<BlobHash>,
}

impl Workspace<'_> {
    /// Bytes that are kept, by their hash.
    ///
    /// # Errors
    /// If they are not, or damaged.
    pub fn bytes(&self, hash: BlobHash) -> Result<Vec<u8>> {
        self.objects.read(hash)
    }

    /// Removes kept bytes that nothing approved refers to; how many.
    ///
    /// # Errors
    /// If the state directory cannot be read.
    pub fn prune(&self) -> Result<usize> {
        let _lock = self.store.lock()?;
        self.recover_locked()?;
        let record = self.record()?;
        let used = record.baseline.iter().map(|(_, entry)| entry.hash).collect();
        self.objects.prune(&used)
    }
}
