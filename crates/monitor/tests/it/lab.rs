//! Journals of judged actions, as the monitor writes them.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::SystemTime;

use wardkeep_evidence::entry::Entry;
use wardkeep_evidence::hash::{EntryHash, RecordId};
use wardkeep_evidence::json::{self, Object, Value};
use wardkeep_evidence::record::{NewRecord, Payload, Principal, RecordType};
use wardkeep_evidence::time::Timestamp;
use wardkeep_monitor::index::Index;
use wardkeep_monitor::journal::Clock;
use wardkeep_monitor::store::{Event, Store, StoreConfig, StoreReader};

/// A state directory whose clock is the system's, some seconds ahead.
pub(crate) struct Lab {
    pub(crate) folder: tempfile::TempDir,
    ahead: Arc<AtomicI64>,
}

impl Lab {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), ahead: Arc::default() }
    }

    pub(crate) fn state(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn advance(&self, seconds: i64) {
        self.ahead.fetch_add(seconds, Ordering::SeqCst);
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::from_unix(system_time() + self.ahead.load(Ordering::SeqCst)).unwrap()
    }

    /// The store, with segments of `bytes`.
    pub(crate) fn store_of(&self, bytes: u64) -> Store {
        let ahead = Arc::clone(&self.ahead);
        let clock = Clock::new(move || {
            Timestamp::from_unix(system_time() + ahead.load(Ordering::SeqCst)).unwrap()
        });
        let mut config = StoreConfig::new(clock);
        config.segment_bytes = bytes;
        Store::open(self.state(), config).unwrap()
    }

    pub(crate) fn store(&self) -> Store {
        self.store_of(64 << 20)
    }

    pub(crate) fn reader(&self) -> StoreReader {
        StoreReader::open(self.state()).unwrap()
    }

    pub(crate) fn index(&self) -> Index {
        let reader = self.reader();
        Index::ready(self.state(), reader.folder(), false, &mut |_| {}).unwrap()
    }

    /// Changes the index by hand.
    pub(crate) fn tamper(&self, statements: &str) {
        let database = rusqlite::Connection::open(self.state().join("index.sqlite")).unwrap();
        database.execute_batch(statements).unwrap();
    }
}

pub(crate) fn system_time() -> i64 {
    i64::try_from(SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs()).unwrap()
}

pub(crate) fn value(content: &serde_json::Value) -> Value<'static> {
    json::parse(content.to_string().as_bytes()).unwrap().into_owned()
}

/// A record on its way.
pub(crate) struct Deed {
    pub(crate) kind: RecordType,
    pub(crate) principal: Principal,
    pub(crate) session: &'static str,
    pub(crate) parents: Vec<RecordId>,
    pub(crate) content: serde_json::Value,
}

impl Deed {
    /// A judged action.
    pub(crate) fn new(kind: RecordType, content: serde_json::Value) -> Self {
        let mut all = serde_json::json!({"kind":"decision","v":1,"verdict":"allow"});
        let members = content.as_object().unwrap().clone();
        all.as_object_mut().unwrap().extend(members);
        Self { kind, principal: Principal::Tool, session: "s:1", parents: vec![], content: all }
    }

    pub(crate) fn from(mut self, parents: &[RecordId]) -> Self {
        self.parents = parents.to_vec();
        self
    }

    /// From what the session had seen.
    pub(crate) fn seen(mut self, context: RecordId) -> Self {
        self.content["context"] = context.to_string().into();
        self.parents.insert(0, context);
        self
    }

    pub(crate) fn by(mut self, principal: Principal) -> Self {
        self.principal = principal;
        self
    }

    pub(crate) fn within(mut self, session: &'static str) -> Self {
        self.session = session;
        self
    }

    pub(crate) fn append(self, store: &Store) -> RecordId {
        let event = Event::new(self.kind, self.principal, value(&self.content));
        let event = Event { session: self.session, agent: "a", parents: self.parents, ..event };
        store.append(event).unwrap().id
    }
}

pub(crate) fn tool(store: &Store, parents: &[RecordId]) -> RecordId {
    Deed::new(RecordType::ToolCall, serde_json::json!({"act":"call","subject":"bash"}))
        .from(parents)
        .append(store)
}

pub(crate) fn write(path: &str, before: serde_json::Value) -> Deed {
    let content =
        serde_json::json!({"act":"write","surface":"FileSystem","subject":path,"before":before});
    Deed::new(RecordType::FileWrite, content)
}

pub(crate) fn denied(category: &str, severity: &str) -> Deed {
    let content = serde_json::json!({
        "act":"write","surface":"DurableMemory","subject":"/w/MEMORY.md","verdict":"deny",
        "rule":"mi-deny-tainted","reason":"it came from the web","category":category,
        "severity":severity
    });
    Deed::new(RecordType::GuardDecision, content)
}

/// Writes a journal without flushing each line: `parents` gives those of each record by position.
pub(crate) fn write_journal(
    state: &Path,
    records: u64,
    mut parents: impl FnMut(u64, &[RecordId]) -> Vec<RecordId>,
) -> Vec<RecordId> {
    let mut text = Vec::new();
    let mut ids = Vec::new();
    let mut previous = EntryHash::ZERO;
    for number in 0..records {
        let record = NewRecord {
            kind: RecordType::ToolCall,
            principal: Principal::Tool,
            taint: Vec::new(),
            parents: parents(number, &ids),
            meta: Object::from([
                ("session", Value::from("bulk")),
                ("ts", Value::from("2026-11-15T12:00:00Z")),
            ]),
            payload: Payload::Inline(Value::from(number)),
        };
        let record = record.seal().unwrap();
        let entry = Entry::chained(number, "2026-11-15T12:00:00Z".to_owned(), record.id, previous);
        previous = entry.hash;
        ids.push(record.id);
        text.extend_from_slice(b"{\"entry\":");
        entry.write_line(&mut text);
        text.extend_from_slice(b",\"record\":");
        record.write_line(&mut text);
        text.extend_from_slice(b"}\n");
    }
    // The store makes its folders as they must be.
    drop(Store::open(state, StoreConfig::new(Clock::new(|| Timestamp::from_unix(0).unwrap()))));
    fs::write(state.join("journal/00000001.jsonl"), text).unwrap();
    ids
}
