//! Figures for `docs/benchmarks.md`: the index, `prove` and contamination on a long log.
//!
//! `cargo run --release -p wardkeep-monitor --example bench-prove -- FOLDER [RECORDS]`
//!
//! An existing log in the folder is used again.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a program for figures, not for users"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Instant, SystemTime};

use wardkeep_evidence::hash::RecordId;
use wardkeep_evidence::json::Value;
use wardkeep_evidence::record::{Payload, Principal, RecordType};
use wardkeep_evidence::time::Timestamp;
use wardkeep_evidence::verify::Trust;
use wardkeep_monitor::index::{Asked, Index, Severity};
use wardkeep_monitor::journal::{Clock, Position, parse_line, scan};
use wardkeep_monitor::notices;
use wardkeep_monitor::prove::{Query, page, prove};
use wardkeep_monitor::provenance::{
    Closure, Direction, Graph, Walk, contamination, restore_plan, svg,
};
use wardkeep_monitor::store::{Event, Store, StoreConfig, StoreReader};

const SESSIONS: u64 = 64;
/// Sessions that begin with what the first record brought in.
const POISONED: u64 = 7;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().expect("give a folder to write to"));
    let records: u64 = arguments.next().map_or(1_000_000, |text| text.parse().expect("a number"));
    if !folder.join("journal").is_dir() {
        fill(&folder, records);
    }
    let reader = StoreReader::open(&folder).expect("a store");
    measure(&reader);
}

/// Wall time, and CPU time of all threads: on a busy machine only the latter can be compared.
struct Watch(Instant, f64);

impl Watch {
    fn start() -> Self {
        Self(Instant::now(), cpu_seconds())
    }
}

impl std::fmt::Display for Watch {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:.1?} ({:.2} s CPU)", self.0.elapsed(), cpu_seconds() - self.1)
    }
}

fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let behind = text.rsplit(") ").next().unwrap_or_default();
    // User and system time in hundredths, the 12th and 13th behind the name.
    let times = behind.split(' ').skip(11).take(2);
    times.filter_map(|time| time.parse::<f64>().ok()).sum::<f64>() / 100.0
}

fn now() -> i64 {
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(0)
}

/// A record a second from now on, so that there is a seal for every 900.
fn fill(folder: &Path, records: u64) {
    let time = Arc::new(AtomicI64::new(now()));
    let ticks = Arc::clone(&time);
    let clock = Clock::new(move || {
        Timestamp::from_unix(ticks.load(Ordering::Relaxed)).expect("this century")
    });
    let store = Store::open(folder, StoreConfig::new(clock)).expect("a store");
    let start = Watch::start();
    let root = append(&store, 0, 0, &[], None);
    std::thread::scope(|scope| {
        for session in 0..SESSIONS {
            let (store, time) = (&store, &time);
            scope.spawn(move || {
                let mut context = (session < POISONED).then_some(root);
                let mut named = None;
                for number in 1..=records / SESSIONS {
                    time.fetch_add(1, Ordering::Relaxed);
                    let parents: Vec<RecordId> = context.into_iter().chain(named).collect();
                    let id = append(store, session, number, &parents, context);
                    named = (number % 3 == 0).then_some(id);
                    context = Some(id);
                }
            });
        }
    });
    println!("filling a log with {records} records by {SESSIONS} threads took {}", start);
}

/// What an agent does: mostly it calls tools, one action in fifty is denied.
fn append(
    store: &Store,
    session: u64,
    number: u64,
    parents: &[RecordId],
    context: Option<RecordId>,
) -> RecordId {
    let denied = number % 50 == 49;
    let (kind, act, surface, subject) = match number % 8 {
        _ if denied => (
            RecordType::GuardDecision,
            "write",
            "DurableMemory",
            "/home/user/work/MEMORY.md".to_owned(),
        ),
        0 | 1 => (RecordType::ToolCall, "call", "ConversationIO", "bash".to_owned()),
        2 | 3 => (RecordType::ToolResult, "return", "ConversationIO", "bash".to_owned()),
        4 | 5 => (
            RecordType::FileRead,
            "read",
            "FileSystem",
            format!("/home/user/work/src/file{}.rs", number % 997),
        ),
        6 => (
            RecordType::FileWrite,
            "write",
            "FileSystem",
            format!("/home/user/work/src/file{}.rs", number % 499),
        ),
        _ => (
            RecordType::NetworkRequest,
            "send",
            "NetworkIO",
            format!("https://example.org/{}", number % 97),
        ),
    };
    let mut content = vec![
        ("act", Value::from(act)),
        ("action", Value::from(format!("{number:064x}"))),
        ("kind", Value::from("decision")),
        ("reason", Value::from("a sentence that says why this was decided as it was")),
        ("rule", Value::from(if denied { "mi-deny-tainted" } else { "fs-allow-default" })),
        ("subject", Value::from(subject)),
        ("surface", Value::from(surface)),
        ("v", Value::from(1u64)),
        ("verdict", Value::from(if denied { "deny" } else { "allow" })),
    ];
    if denied {
        content.push(("category", Value::from("MI")));
        content.push(("severity", Value::from("high")));
    }
    if kind == RecordType::FileWrite {
        content.push(("before", Value::Null));
    }
    if let Some(context) = context {
        content.push(("context", Value::from(context.to_string())));
    }
    let session = format!("bench:{session}");
    let event = Event {
        kind,
        principal: Principal::Tool,
        taint: vec!["TOOL_OUTPUT".into()],
        parents: parents.to_vec(),
        agent: "bench",
        session: &session,
        workspace: "w",
        meta: Default::default(),
        payload: Payload::Inline(Value::Object(wardkeep_evidence::json::Object {
            members: content.into_iter().map(|(key, value)| (key.into(), value)).collect(),
        })),
    };
    store.append(event).expect("an append").id
}

fn measure(reader: &StoreReader) {
    let sizes = |suffix: &str| {
        std::fs::metadata(reader.path().join(format!("index.sqlite{suffix}")))
            .map_or(0, |metadata| metadata.len())
    };
    let start = Watch::start();
    let count = Index::rebuild(reader.path(), reader.folder(), &mut |_| {}).expect("an index");
    println!(
        "index of {count} records: {}, {} MB (and {} MB beside it)",
        start,
        sizes("") >> 20,
        (sizes("-wal") + sizes("-shm")) >> 20
    );
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let at = Timestamp::from_unix(now()).expect("this century");
    let mut asked = Query { asked: Asked::default(), limit: 20, full: false };
    let run = |what: &str, query: &Query| {
        let start = Watch::start();
        let report =
            prove(reader, &Trust::default(), query, at, threads, &mut |_| {}).expect("a report");
        println!(
            "prove, {what}: {}; read {} of {} records, {} seals, valid {}, {} blocked, {}",
            start,
            report.health.verified_now,
            report.health.records,
            report.health.seals.as_ref().map_or(0, |seals| seals.seals),
            report.health.chain_valid,
            report.protection.total_threats_blocked,
            report.health.why_full.unwrap_or("as asked"),
        );
        report
    };
    let _ = std::fs::remove_file(reader.path().join("verified"));
    run("first", &asked);
    let report = run("again", &asked);
    run("again", &asked);
    asked.asked.session = Some("bench:3".to_owned());
    run("one session", &asked);
    asked.asked = Asked { severity: Some(Severity::High), ..Asked::default() };
    run("high and above", &asked);
    let last = report.alerts.last().and_then(|notice| notice.time.parse().ok());
    asked.asked = Asked { since: last, ..Asked::default() };
    run("since the last alerts", &asked);
    let start = Watch::start();
    println!("page: {} bytes in {}", page(&report, None, None).len(), start);

    let index = Index::open(reader.path()).expect("an index");
    let start = Watch::start();
    let open = notices::list(reader, &index, &Asked::default(), false, 50).expect("notices");
    println!("notifications: {} and {} more in {}", open.notices.len(), open.more, start);
    let mut root = None;
    scan(reader.folder(), Position::START, |_, text| {
        root = parse_line(text).map(|line| line.record.id);
        std::ops::ControlFlow::Break(())
    })
    .expect("a journal");
    let root = root.expect("a record");
    for (what, direct) in [("all edges", false), ("direct edges", true)] {
        let walk = Walk { direction: Direction::Forward, direct };
        let start = Watch::start();
        let found = contamination(reader, &index, root, walk, 100).expect("a closure");
        println!(
            "contamination over {what}: {} records, {} files and {} more in {}",
            found.records,
            found.files.len(),
            found.more.files,
            start
        );
    }
    let walk = Walk { direction: Direction::Forward, direct: false };
    let closure = Closure::of(reader, &index, root, walk).expect("a closure");
    let start = Watch::start();
    let graph = Graph::of(reader, &index, &closure).expect("a graph");
    println!(
        "graph: {} nodes, {} bytes in {}",
        graph.nodes.len(),
        svg(&graph, "x", None).len(),
        start
    );
    let start = Watch::start();
    let plan = restore_plan(reader, &index, &closure).expect("a plan");
    println!("plan: {} files in {}", plan.restore.len(), start);
    let start = Watch::start();
    let newest = report.alerts.first().map(|notice| notice.record).expect("an alert");
    let walk = Walk { direction: Direction::Backward, direct: false };
    let found = contamination(reader, &index, newest, walk, 100).expect("a closure");
    println!("backward from the newest alert: {} records in {}", found.records, start);
}
