//! The reference monitor through its hooks.

mod chains;
mod floods;
mod laundering;
mod properties;
mod recovery;
mod reference;
mod seeds;
mod surroundings;
mod workflows;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use tempfile::TempDir;
use wardkeep_evidence::hash::RecordId;
use wardkeep_evidence::json::Value;
use wardkeep_evidence::record::{Payload, Principal, Record};
use wardkeep_evidence::time::Timestamp;
use wardkeep_monitor::journal::{Clock, Position, parse_line, scan};
use wardkeep_monitor::monitor::{Monitor, MonitorConfig, Who};
use wardkeep_monitor::store::StoreConfig;
use wardkeep_policy::store::PolicyStore;

/// A state directory, a workspace and a clock that stands still.
pub(crate) struct Stage {
    pub(crate) folder: TempDir,
    pub(crate) now: Arc<AtomicI64>,
}

pub(crate) const AGENT: &str = "claude";
pub(crate) const SESSION: &str = "claude:1";

impl Stage {
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        let stage = Self { folder, now: Arc::new(AtomicI64::new(1_800_000_000)) };
        drop(stage.open());
        PolicyStore::new(&stage.state(), owner())
            .create_key(std::array::from_fn(|at| u8::try_from(at).unwrap() ^ 7))
            .unwrap();
        stage
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    pub(crate) fn work(&self) -> PathBuf {
        std::fs::canonicalize(self.folder.path().join("work")).unwrap()
    }

    pub(crate) fn config(&self) -> MonitorConfig {
        let now = Arc::clone(&self.now);
        let clock = Clock::new(move || Timestamp::from_unix(now.load(Ordering::Relaxed)).unwrap());
        MonitorConfig::new(StoreConfig::new(clock), owner())
    }

    pub(crate) fn open(&self) -> Monitor {
        Monitor::open(&self.state(), self.config()).unwrap()
    }

    pub(crate) fn pass(&self, seconds: i64) {
        self.now.fetch_add(seconds, Ordering::Relaxed);
    }

    pub(crate) fn put(&self, name: &str, content: &str) -> PathBuf {
        let path = self.work().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    /// Every record, the oldest first.
    pub(crate) fn records(&self) -> Vec<Record<'static>> {
        let folder =
            wardkeep_monitor::journal::Folder::open(&self.state().join("journal")).unwrap();
        let mut records = Vec::new();
        scan(&folder, Position::START, |_, line| {
            // A torn line is none.
            records.extend(parse_line(line).map(|line| line.record.into_owned()));
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
        records
    }

    /// The line of a record.
    pub(crate) fn line(&self, id: RecordId) -> Vec<u8> {
        let folder =
            wardkeep_monitor::journal::Folder::open(&self.state().join("journal")).unwrap();
        let mut found = Vec::new();
        scan(&folder, Position::START, |_, line| {
            if parse_line(line).is_some_and(|line| line.record.id == id) {
                found = line.to_vec();
            }
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
        found
    }

    pub(crate) fn record(&self, id: RecordId) -> Record<'static> {
        self.records().into_iter().find(|record| record.id == id).unwrap()
    }
}

pub(crate) fn owner() -> u32 {
    rustix::process::getuid().as_raw()
}

pub(crate) fn user(work: &Path) -> Who<'_> {
    Who::new(AGENT, SESSION, work, Principal::User)
}

/// A member of a record's content.
pub(crate) fn text<'a>(record: &'a Record<'_>, key: &str) -> Option<&'a str> {
    let Payload::Inline(Value::Object(content)) = &record.payload else { return None };
    content.get(key).and_then(Value::as_str)
}
