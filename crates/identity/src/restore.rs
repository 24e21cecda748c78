//! An earlier version comes back: as a proposal, or at once.

use std::sync::Arc;

use wardkeep_evidence::hash::{BlobHash, sha256};

use crate::changes::{Change, ChangeKind, Changes, Source};
use crate::config::Tier;
use crate::error::{IdentityError, Result};
use crate::level::{is_executable, plain_mode};
use crate::name::Name;
use crate::quarantine::Quarantine;
use crate::workspace::Workspace;

impl Workspace<'_> {
    /// Puts bytes of an earlier version into staging, where they are a proposal like any other.
    ///
    /// # Errors
    /// If the file is not protected, or the file system refuses.
    pub fn stage_version(&self, name: &Name, bytes: &[u8], executable: bool) -> Result<()> {
        let _lock = self.store.lock()?;
        self.recover_locked()?;
        self.check_place()?;
        let record = self.record()?;
        self.check_version(&record.tiers, name, bytes)?;
        let bench = self.bench()?;
        let quarantine = Quarantine::new(self);
        let staging = self.make_staging(&record, &bench, &quarantine)?;
        let mode = plain_mode(executable);
        self.write_bytes(&staging, &bench, &quarantine, name, bytes, mode)?;
        quarantine.finish(&bench)?;
        Ok(())
    }

    /// The change that would make an earlier version the approved one; [`Workspace::apply`] does it.
    ///
    /// # Errors
    /// If the file is not protected.
    pub fn version_change(&self, name: &Name, bytes: &[u8], executable: bool) -> Result<Changes> {
        let record = self.record()?;
        self.check_version(&record.tiers, name, bytes)?;
        let old = record.baseline.entry(name);
        let new = BlobHash(sha256(bytes));
        let was_executable = old.is_some_and(|old| is_executable(old.mode));
        if old.is_some_and(|old| old.hash == new) && was_executable == executable {
            return Ok(Changes::default());
        }
        let standing = match old {
            Some(_) => None,
            None => {
                self.root.hash(name, self.limits.file, &mut Vec::new()).ok().map(|(hash, _)| hash)
            }
        };
        let change = Change {
            name: name.clone(),
            kind: if old.is_some() { ChangeKind::Modified } else { ChangeKind::New },
            old: old.map(|old| old.hash),
            new: Some(new),
            was_executable,
            executable,
            source: Source::History,
            standing,
            bytes: Some(Arc::from(bytes)),
        };
        Ok(Changes { changes: vec![change], ..Changes::default() })
    }

    fn check_version(&self, tiers: &crate::config::Tiers, name: &Name, bytes: &[u8]) -> Result<()> {
        if tiers.tier_of(name) != Some(Tier::Protect) {
            return Err(IdentityError::NotProtected { name: name.clone() });
        }
        if bytes.len() as u64 > self.limits.file {
            let why = "it is too large".to_owned();
            return Err(IdentityError::Unfit { name: name.clone(), why });
        }
        Ok(())
    }
}
