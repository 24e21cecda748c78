//! What several tests use.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use wardkeep_evidence::json::Value;
use wardkeep_evidence::record::{Principal, RecordType};
use wardkeep_evidence::time::Timestamp;
use wardkeep_evidence::verify::Trust;
use wardkeep_monitor::journal::Clock;
use wardkeep_monitor::store::{Event, Store, StoreConfig, StoreReader};
use wardkeep_monitor::verify::{JournalReport, verify_store};

/// A clock that stands where it is set.
#[derive(Clone)]
pub(crate) struct SetClock(Arc<AtomicI64>);

impl SetClock {
    /// Stands at the start of a time slot in 2026.
    pub(crate) fn new() -> Self {
        Self(Arc::new(AtomicI64::new(1_788_000_300)))
    }

    pub(crate) fn advance(&self, seconds: i64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }

    pub(crate) fn clock(&self) -> Clock {
        let time = Arc::clone(&self.0);
        Clock::new(move || Timestamp::from_unix(time.load(Ordering::SeqCst)).unwrap())
    }
}

pub(crate) fn open(state: &Path, clock: &SetClock) -> Store {
    Store::open(state, StoreConfig::new(clock.clock())).unwrap()
}

pub(crate) fn message(number: u64) -> Event<'static> {
    Event::new(
        RecordType::SessionMessage,
        Principal::User,
        Value::from([("n", Value::from(number))]),
    )
}

/// Appends `count` numbered messages.
pub(crate) fn fill(store: &Store, count: u64) {
    for number in 0..count {
        store.append(message(number)).unwrap();
    }
}

pub(crate) fn verify(state: &Path) -> JournalReport {
    verify_with(state, &Trust::default())
}

pub(crate) fn verify_with(state: &Path, trust: &Trust) -> JournalReport {
    verify_store(&StoreReader::open(state).unwrap(), trust, 2, &mut |_| {}).unwrap()
}

/// Names of the failed checks, in order.
pub(crate) fn failed(report: &JournalReport) -> Vec<&'static str> {
    report.findings.kept().iter().map(|finding| finding.check.name()).collect()
}

/// The newest segment of a journal.
pub(crate) fn newest_segment(state: &Path) -> std::path::PathBuf {
    let mut names: Vec<_> = std::fs::read_dir(state.join("journal"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .collect();
    names.sort();
    names.pop().unwrap()
}

/// Says that a test did not run, in the place where `scripts/test` collects such lines.
pub(crate) fn skip(what: &str, test: &str) {
    use std::io::Write as _;
    let line = format!("skipped: needs {what} ({test})\n");
    eprint!("{line}");
    if let Some(path) = std::env::var_os("WARDKEEP_SKIP_LOG") {
        let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
        let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
    }
}
