//! Figures for `docs/benchmarks.md`: a decision by itself, and one hook call against a bare durable
//! append of the same size, on a short journal and on a long one. Ratios of one run.
//!
//! `cargo run --release -p wardkeep-monitor --example bench-monitor -- FOLDER [RECORDS]`

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a program for figures, not for users"
)]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use wardkeep_detect::leak::OutputGuard;
use wardkeep_detect::scan::Detector;
use wardkeep_evidence::json::Value;
use wardkeep_evidence::record::{Principal, RecordType};
use wardkeep_evidence::time::Timestamp;
use wardkeep_guard::action::Action;
use wardkeep_guard::assess::Around;
use wardkeep_guard::decide::{Means, decide};
use wardkeep_guard::rules::Rules;
use wardkeep_guard::surface::{Act, Surface};
use wardkeep_monitor::journal::Clock;
use wardkeep_monitor::monitor::{Monitor, MonitorConfig, Who};
use wardkeep_monitor::store::{Event, Store, StoreConfig};

const SENTENCE: &str =
    "Please look at the failing test in the parser and tell me what you think of it. ";

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().expect("give a folder to write to"));
    let records: u64 = arguments.next().map_or(0, |text| text.parse().expect("a number"));
    let message: String = SENTENCE.chars().cycle().take(1024).collect();
    alone(&message);
    hooks(&folder, &message, "short journal");
    if records > 0 {
        fill(&folder, records);
        hooks(&folder, &message, &format!("after {records} more records"));
    }
}

fn store_config() -> StoreConfig {
    StoreConfig::new(Clock::new(|| {
        let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        Timestamp::from_unix(i64::try_from(since.as_secs()).unwrap_or(0)).expect("this century")
    }))
}

/// `guard::decide`, scan and rules included.
fn alone(message: &str) {
    let (detector, guard, rules) = (Detector::new(), OutputGuard::new(), Rules::new(&[]));
    let means = Means { detector: &detector, guard: &guard, rules: &rules };
    let mut action = Action::new(Principal::User, Surface::ConversationIO, Act::Receive, "message");
    action.content = Some(message);
    let times = (0..20_000).map(|_| {
        let begin = Instant::now();
        std::hint::black_box(decide(&action, Around::default(), means));
        begin.elapsed()
    });
    report("decide, 1 KB message", times.collect());
}

fn hooks(folder: &Path, message: &str, name: &str) {
    let owner = rustix::process::getuid().as_raw();
    let config = MonitorConfig::new(store_config(), owner);
    let monitor = Monitor::open(&folder.join("state"), config).expect("a state directory");
    let who = Who::new("bench", "bench:1", folder, Principal::User);
    let line = "x".repeat(900);
    let (mut appends, mut calls) = (Vec::new(), Vec::new());
    // In turn, so that both meet the same disk.
    for _ in 0..2000 {
        let content = Value::from([("text", Value::from(line.clone()))]);
        let begin = Instant::now();
        let event = Event::new(RecordType::SessionMessage, Principal::User, content);
        monitor.store().append(event).expect("appended");
        appends.push(begin.elapsed());
        let begin = Instant::now();
        let _ = monitor.on_message_input(&who, message).expect("decided");
        calls.push(begin.elapsed());
    }
    let append = report(&format!("bare append, {name}"), appends);
    let call = report(&format!("on_message_input, {name}"), calls);
    println!("  ratio of the medians: {:.2}", call.as_secs_f64() / append.as_secs_f64());
}

fn fill(folder: &Path, records: u64) {
    let store = Store::open(&folder.join("state"), store_config()).expect("a state directory");
    std::thread::scope(|scope| {
        for thread in 0..64 {
            let store = &store;
            scope.spawn(move || {
                for number in (thread..records).step_by(64) {
                    let content = Value::from([("number", Value::from(number))]);
                    let event = Event::new(RecordType::ToolCall, Principal::Tool, content);
                    store.append(event).expect("appended");
                }
            });
        }
    });
}

fn report(name: &str, mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    let at = |share: usize| times[(times.len() - 1) * share / 100];
    println!("{name}: p50 {:?}, p99 {:?}", at(50), at(99));
    at(50)
}
