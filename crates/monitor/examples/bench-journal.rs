//! Figures for `docs/benchmarks.md`: appends against a bare write and flush of the same bytes, on
//! a long log against a short one, and by many threads against one. Ratios of one run.
//!
//! `cargo run --release -p wardkeep-monitor --example bench-journal -- FOLDER [RECORDS]`

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a program for figures, not for users"
)]

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use wardkeep_evidence::json::{Object, Value};
use wardkeep_evidence::record::{NewRecord, Payload, Principal, RecordType};
use wardkeep_evidence::time::Timestamp;
use wardkeep_monitor::journal::{Clock, Config, Journal};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().expect("give a folder to write to"));
    let records: u64 = arguments.next().map_or(1_000_000, |text| text.parse().expect("a number"));
    std::fs::create_dir_all(&folder).expect("the folder can be made");

    single(&folder);
    long(&folder, records);
    threads(&folder);
}

fn clock() -> Clock {
    Clock::new(|| {
        let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        Timestamp::from_unix(i64::try_from(since.as_secs()).unwrap_or(0)).expect("this century")
    })
}

fn record(number: u64) -> NewRecord<'static> {
    NewRecord {
        kind: RecordType::ToolCall,
        principal: Principal::Tool,
        taint: vec!["TOOL_OUTPUT".into()],
        parents: Vec::new(),
        meta: Object::from([
            ("agent", Value::from("bench")),
            ("nonce", Value::from(format!("{number:032x}"))),
            ("session", Value::from("bench:1")),
            ("ts", Value::from("2026-11-15T12:00:00Z")),
            ("workspace", Value::from("w")),
        ]),
        payload: Payload::Inline(Value::from([
            ("command", Value::from("cargo test --workspace")),
            ("tool", Value::from("bash")),
        ])),
    }
}

fn fresh(folder: &Path, name: &str) -> Journal {
    let path = folder.join(name);
    let _ = std::fs::remove_dir_all(&path);
    Journal::open(&path, Config::new(clock())).expect("a journal")
}

/// Appends alternate with bare writes of equally many bytes to a file beside it.
fn single(folder: &Path) {
    const ROUNDS: usize = 3000;
    let journal = fresh(folder, "single");
    let path = folder.join("bare");
    let _ = std::fs::remove_file(&path);
    let mut bare = OpenOptions::new().append(true).create(true).open(&path).expect("a file");
    let first = journal.append(record(0)).expect("an append");
    let bytes = vec![b'x'; usize::try_from(first.location.length).unwrap_or(0) + 1];
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        let start = Instant::now();
        bare.write_all(&bytes).and_then(|()| bare.sync_data()).expect("a bare write");
        theirs.push(start.elapsed());
        let start = Instant::now();
        journal.append(record(round as u64)).expect("an append");
        ours.push(start.elapsed());
    }
    let (ours, theirs) = (quantiles(ours), quantiles(theirs));
    println!("single append of {} bytes, {ROUNDS} each, alternating:", bytes.len());
    println!(
        "  bare write+fdatasync p50 {:?} p90 {:?} p99 {:?} mean {:?}",
        theirs[0], theirs[1], theirs[2], theirs[3]
    );
    println!(
        "  journal append       p50 {:?} p90 {:?} p99 {:?} mean {:?}",
        ours[0], ours[1], ours[2], ours[3]
    );
    println!(
        "  ratio                p50 {:.2} mean {:.2}",
        ratio(ours[0], theirs[0]),
        ratio(ours[3], theirs[3])
    );
}

/// The rate on a log of a thousand records against that on a long one, by turns.
fn long(folder: &Path, records: u64) {
    const ROUNDS: u64 = 1500;
    let long = fresh(folder, "long");
    let start = Instant::now();
    std::thread::scope(|scope| {
        for part in 0..64 {
            let long = &long;
            scope.spawn(move || {
                for number in 0..records / 64 {
                    long.append(record(part * records + number)).expect("an append");
                }
            });
        }
    });
    println!("filling a log with {records} records by 64 threads took {:?}", start.elapsed());
    let short = fresh(folder, "short");
    for number in 0..1000 {
        short.append(record(number)).expect("an append");
    }
    let mut totals = [Duration::ZERO; 2];
    for round in 0..ROUNDS {
        for (journal, total) in [&short, &long].into_iter().zip(&mut totals) {
            let start = Instant::now();
            journal.append(record(u64::MAX - round)).expect("an append");
            *total += start.elapsed();
        }
    }
    let rate = |total: Duration| ROUNDS as f64 / total.as_secs_f64();
    println!(
        "rate at 1,000 records {:.0}/s, at {records} {:.0}/s: ratio {:.3}",
        rate(totals[0]),
        rate(totals[1]),
        rate(totals[1]) / rate(totals[0])
    );
    // A process that has only just started finds the end of the log as fast.
    let start = Instant::now();
    drop(Journal::open(&folder.join("long"), Config::new(clock())).expect("a journal"));
    println!("opening the long log took {:?}", start.elapsed());
}

fn threads(folder: &Path) {
    let mut rates = Vec::new();
    for threads in [1u64, 8, 64, 1, 8, 64] {
        let journal = fresh(folder, "threads");
        let each = 4000 / threads.min(8);
        let start = Instant::now();
        std::thread::scope(|scope| {
            for part in 0..threads {
                let journal = &journal;
                scope.spawn(move || {
                    for number in 0..each {
                        journal.append(record(part * each + number)).expect("an append");
                    }
                });
            }
        });
        let rate = (each * threads) as f64 / start.elapsed().as_secs_f64();
        println!("{threads} threads: {rate:.0} appends/s");
        rates.push(rate);
    }
    println!("64 threads against one: {:.1} and {:.1}", rates[2] / rates[0], rates[5] / rates[3]);
}

fn quantiles(mut times: Vec<Duration>) -> [Duration; 4] {
    times.sort_unstable();
    let at = |part: usize| times[times.len() * part / 100];
    let mean = times.iter().sum::<Duration>() / u32::try_from(times.len()).unwrap_or(1);
    [at(50), at(90), at(99), mean]
}

fn ratio(a: Duration, b: Duration) -> f64 {
    a.as_secs_f64() / b.as_secs_f64()
}
