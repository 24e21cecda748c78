//! What a daemon does now and then.

use std::ops::ControlFlow;
use std::sync::{Mutex, MutexGuard, PoisonError};

use wardkeep_evidence::hash::RecordId;
use wardkeep_policy::store::PolicyStore;

use crate::approvals::Approvals;
use crate::index::{Index, IndexError};
use crate::journal::{Position, parse_line, scan};
use crate::store::Store;

/// Seals when it is due, brings the index up to date, and forgets requests that ended.
#[derive(Debug)]
pub struct Keeper<'a> {
    store: &'a Store,
    approvals: &'a Approvals,
    policy: PolicyStore,
    work: Mutex<Work>,
}

#[derive(Debug, Default)]
struct Work {
    index: Option<Index>,
    // Entries of the journal that are in the index.
    indexed: u64,
    problems: Vec<String>,
}

impl<'a> Keeper<'a> {
    /// Of an open store of the user `owner`.
    #[must_use]
    pub fn new(store: &'a Store, approvals: &'a Approvals, owner: u32) -> Self {
        let policy = PolicyStore::new(store.path(), owner);
        Self { store, approvals, policy, work: Mutex::default() }
    }

    /// Does what is due. What fails is kept in mind and tried again the next time.
    pub fn tick(&self) {
        let mut problems = Vec::new();
        if let Err(error) = self.store.seal() {
            problems.push(error.to_string());
        }
        self.approvals.refresh_standing(&self.policy.settings().set);
        if let Err(error) = self.approvals.tidy(self.store.now()) {
            problems.push(error.to_string());
        }
        let mut work = self.work();
        problems.extend(self.index_anew(&mut work));
        work.problems = problems;
    }

    /// Brings the index up to date, unless somebody is at it.
    pub(super) fn catch_up(&self) {
        // What fails is tried again with the rest, and told then.
        if let Ok(mut work) = self.work.try_lock() {
            let _ = self.index_anew(&mut work);
        }
    }

    fn index_anew(&self, work: &mut Work) -> Option<String> {
        let error = self.index(work).err()?;
        // The next time it is opened anew.
        work.index = None;
        Some(error.to_string())
    }

    /// What went wrong the last time.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        self.work().problems.clone()
    }

    /// The line of a record, if it is in the journal.
    #[must_use]
    pub fn line(&self, id: RecordId) -> Option<Vec<u8>> {
        let folder = self.store.journal().folder();
        let is_it = |line: &[u8]| parse_line(line).is_some_and(|line| line.record.id == id);
        let location = {
            let mut work = self.work();
            let _ = self.index(&mut work);
            work.index.as_ref().and_then(|index| index.location(id).ok().flatten())
        };
        let line = location.and_then(|location| folder.read_line(location).ok());
        if let Some(line) = line.filter(|line| is_it(line)) {
            return Some(line);
        }
        // The index is never believed, not even that there is none.
        let mut found = None;
        let _ = scan(folder, Position::START, |_, line| {
            if is_it(line) {
                found = Some(line.to_vec());
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        found
    }

    fn index(&self, work: &mut Work) -> Result<(), IndexError> {
        let entries = self.store.journal().while_locked(|entries, _| entries)?;
        if work.index.is_some() && work.indexed == entries {
            return Ok(());
        }
        let mut index = match work.index.take() {
            Some(index) => index,
            None => Index::open(self.store.path())?,
        };
        index.catch_up(self.store.journal().folder(), &mut |_| {})?;
        work.index = Some(index);
        work.indexed = entries;
        Ok(())
    }

    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
