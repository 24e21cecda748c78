//! A workspace and what is kept of it.

use std::fmt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::baseline::{Baseline, Entry, Objects};
use crate::config::{Config, Tiers};
use crate::error::{IdentityError, Result};
use crate::level::Level;
use crate::name::Name;
use crate::steps::{Steps, Uninterrupted};
use crate::store::Store;
use crate::tree::{Limits, Look, Root};

/// The change that is being made.
pub(crate) const INTENT: &str = "intent.json";
pub(crate) const MAX_INTENT: u64 = 1 << 30;

/// A folder whose tracked files are judged by what was approved of them.
pub struct Workspace<'a> {
    pub(crate) root: Root,
    pub(crate) store: Store,
    pub(crate) objects: Objects,
    pub(crate) level: Level,
    pub(crate) limits: Limits,
    /// In nanoseconds since 1970.
    pub(crate) now: i64,
    pub(crate) steps: &'a dyn Steps,
}

/// What was approved, read once for an operation.
#[derive(Debug, Clone)]
pub struct Record {
    /// The approved files.
    pub baseline: Baseline,
    /// The configuration of record.
    pub config: Config,
    /// Its tiers.
    pub tiers: Tiers,
}

impl Workspace<'static> {
    /// Opens a workspace, with the folder in the state directory that belongs to it. The folder is
    /// made where it is missing; `now` is the time of everything that is done with this value.
    ///
    /// # Errors
    /// If one of them is no folder.
    pub fn open(place: &Path, state: &Path, level: Level, now: SystemTime) -> Result<Self> {
        let root = Root::open(place)?;
        let store = Store::open(state)?;
        let limits = Limits::default();
        let objects = Objects::open(&store, limits.file)?;
        let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = i64::try_from(since.as_nanos()).unwrap_or(i64::MAX);
        Ok(Self { root, store, objects, level, limits, now, steps: &Uninterrupted })
    }
}

impl Workspace<'_> {
    /// With other limits.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// With somebody who is told of each step.
    #[must_use]
    pub fn with_steps<'b>(self, steps: &'b dyn Steps) -> Workspace<'b> {
        let Self { root, store, objects, level, limits, now, .. } = self;
        Workspace { root, store, objects, level, limits, now, steps }
    }

    /// The folder.
    #[must_use]
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// How it is enforced.
    #[must_use]
    pub fn level(&self) -> Level {
        self.level
    }

    /// What was approved.
    ///
    /// # Errors
    /// If nothing was, or it cannot be read.
    pub fn record(&self) -> Result<Record> {
        let baseline = Baseline::read(&self.store)?.ok_or(IdentityError::NotSetUp)?;
        let config = baseline.config(&self.objects)?;
        let tiers = config.tiers()?;
        Ok(Record { baseline, config, tiers })
    }

    /// Whether something was approved here before.
    ///
    /// # Errors
    /// If that cannot be read.
    pub fn is_set_up(&self) -> Result<bool> {
        Ok(Baseline::read(&self.store)?.is_some())
    }

    /// The approved bytes of a file; `None` where none were approved.
    ///
    /// # Errors
    /// If they are damaged.
    pub fn approved(&self, record: &Record, name: &Name) -> Result<Option<(Entry, Vec<u8>)>> {
        let Some(entry) = record.baseline.entry(name) else { return Ok(None) };
        Ok(Some((*entry, self.objects.read(entry.hash)?)))
    }

    /// Whether a change was begun and not finished.
    pub(crate) fn has_intent(&self) -> Result<bool> {
        Ok(self.store.read(INTENT, MAX_INTENT)?.is_some())
    }

    /// Whether a file may be read for the agent: its own, the guardian's, or one that everybody can
    /// read where it lies. Any other was moved there, and its owner did not mean to hand it out.
    pub(crate) fn may_read(&self, name: &Name, look: &Look) -> bool {
        let folder_is_open = |folder: Name| {
            let look = self.root.look(&folder);
            look.is_ok_and(|look| self.level.is_ours(look.uid) || look.mode & 0o001 != 0)
        };
        self.level.is_ours(look.uid)
            || (look.mode & 0o004 != 0 && name.ancestors().all(folder_is_open))
    }

    /// The folder is the one that its path leads to.
    pub(crate) fn check_place(&self) -> Result<()> {
        if self.root.is_in_place() {
            return Ok(());
        }
        Err(IdentityError::Moved { place: self.root.path().display().to_string() })
    }
}

impl fmt::Debug for Workspace<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Workspace")
            .field("root", &self.root)
            .field("level", &self.level)
            .finish_non_exhaustive()
    }
}
