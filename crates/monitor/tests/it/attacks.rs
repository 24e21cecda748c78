//! Attacks by someone who can write every file of the state directory: nothing may hang, panic,
//! fill the memory or hide a record without being seen.

mod seals;

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use wardkeep_evidence::check::Mode;
use wardkeep_evidence::entry::Entry;
use wardkeep_evidence::hash::{EntryHash, RecordId, encode_hex, sha256};
use wardkeep_evidence::json::{Object, Value};
use wardkeep_evidence::record::{NewRecord, Payload, Principal, RecordType};
use wardkeep_evidence::source;
use wardkeep_evidence::time::Timestamp;
use wardkeep_evidence::verify::{Options, Trust};
use wardkeep_monitor::export::{Selection, export};
use wardkeep_monitor::index::{Filter, Index};
use wardkeep_monitor::journal::{Clock, Config, Journal, parse_line};
use wardkeep_monitor::proof::{check, prove};
use wardkeep_monitor::store::{Event, Store, StoreConfig, StoreReader};

use crate::shared::{SetClock, failed, fill, message, newest_segment, open, verify, verify_with};

/// Runs `work` and gives up on it when it hangs.
fn within<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(work()));
    receiver.recv_timeout(Duration::from_secs(30)).expect("it hangs, or panicked")
}

/// Time on the processor: other work on the machine does not count.
fn thread_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap())
}

fn fifo(path: &Path) {
    let _ = fs::remove_file(path);
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
}

fn append_bytes(path: &Path, bytes: &[u8]) {
    OpenOptions::new().append(true).open(path).unwrap().write_all(bytes).unwrap();
}

fn record(payload: Value<'static>) -> NewRecord<'static> {
    NewRecord {
        kind: RecordType::GuardDecision,
        principal: Principal::Sys,
        taint: Vec::new(),
        parents: Vec::new(),
        meta: Object::from([("ts", Value::from("2026-08-29T10:00:00Z"))]),
        payload: Payload::Inline(payload),
    }
}

/// A line that holds together, wherever it claims to stand.
fn forged(index: u64, previous: EntryHash, payload: Value<'static>) -> String {
    let record = record(payload).seal().unwrap();
    let entry = Entry::chained(index, "2026-08-29T10:00:00Z".to_owned(), record.id, previous);
    let (mut head, mut body) = (Vec::new(), Vec::new());
    entry.write_line(&mut head);
    record.write_line(&mut body);
    let (head, body) = (String::from_utf8(head).unwrap(), String::from_utf8(body).unwrap());
    format!("{{\"entry\":{head},\"record\":{body}}}\n")
}

fn lines(path: &Path) -> Vec<String> {
    fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
}

fn last_hash(path: &Path) -> EntryHash {
    parse_line(lines(path).last().unwrap().as_bytes()).unwrap().entry.hash
}

/// Three seals, and some records after the last.
fn sealed_log(state: &Path, clock: &SetClock) -> Store {
    let store = open(state, clock);
    for _ in 0..2 {
        fill(&store, 4);
        clock.advance(900);
    }
    fill(&store, 4);
    store
}

fn epoch_state(state: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(state.join("epoch_key")).unwrap()).unwrap()
}

fn set_epoch_state(state: &Path, change: impl FnOnce(&mut serde_json::Value)) {
    let mut value = epoch_state(state);
    change(&mut value);
    fs::write(state.join("epoch_key"), serde_json::to_vec(&value).unwrap()).unwrap();
}

fn strict(path: &Path) -> wardkeep_evidence::verify::Report {
    let options = Options { mode: Mode::Strict, threads: 2, trust: Trust::default() };
    wardkeep_evidence::verify::verify(&mut *source::open(path).unwrap(), &options)
}

// ---- files that are no files ----

#[test]
fn a_pipe_in_place_of_any_file_hangs_nobody() {
    let names = [
        "version",
        "log.pub",
        "checkpoints",
        "cosigned",
        "leaves",
        "index.sqlite",
        "index.sqlite-journal",
        "index.sqlite-wal",
        "epoch_key",
        "log_key",
        "journal/lock",
        "journal/00000001.jsonl",
        "journal/00000002.jsonl",
    ];
    for name in names {
        within(move || {
            let folder = tempfile::tempdir().unwrap();
            let state = folder.path().join("state");
            let clock = SetClock::new();
            let store = sealed_log(&state, &clock);
            let id = store.append(message(1)).unwrap().id;
            drop(store);
            let reader = StoreReader::open(&state).unwrap();
            let mut index = Index::open(&state).unwrap();
            index.catch_up(reader.folder(), &mut |_| {}).unwrap();
            drop(index);
            fifo(&state.join(name));
            clock.advance(900);
            if let Ok(store) = Store::open(&state, StoreConfig::new(clock.clock())) {
                let _ = store.append(message(2));
                let _ = store.seal();
            }
            fifo(&state.join(name));
            if let Ok(reader) = StoreReader::open(&state) {
                let _ = reader.public();
                let trust = Trust::default();
                let verified = wardkeep_monitor::verify::verify_store;
                let _ = verified(&reader, &trust, 2, &mut |_| {});
                let _ = prove(&reader, id);
                let part = Filter { session: Some(String::new()), ..Filter::default() };
                let selection = Selection { filter: part, around: None };
                let target = folder.path().join("part");
                let now = Timestamp::from_unix(1_788_000_300).unwrap();
                let _ = export(&reader, &selection, &target, now);
                if let Ok(mut index) = Index::open(&state) {
                    let _ = index.catch_up(reader.folder(), &mut |_| {});
                }
            }
        });
    }
}

#[test]
fn a_pipe_or_an_endless_device_in_place_of_a_blob_hangs_nobody() {
    for device in [false, true] {
        within(move || {
            let folder = tempfile::tempdir().unwrap();
            let state = folder.path().join("state");
            let clock = SetClock::new();
            let store = open(&state, &clock);
            let hash = store.put_blob(b"content").unwrap();
            let mut event = message(1);
            event.payload = Payload::Blob { hash, mime: "text/plain".into(), size: 7 };
            store.append(event).unwrap();
            let blob = state.join("blobs").join(hash.to_string());
            fs::remove_file(&blob).unwrap();
            if device {
                symlink("/dev/zero", &blob).unwrap();
            } else {
                fifo(&blob);
            }
            assert_eq!(failed(&verify(&state)), ["record-blob-missing"]);
            let reader = StoreReader::open(&state).unwrap();
            let target = folder.path().join("all");
            let exported = export(&reader, &Selection::default(), &target, store.now()).unwrap();
            assert_eq!((exported.blobs, exported.missing_blobs), (0, 1));
            // Written again, it is there again.
            store.put_blob(b"content").unwrap();
            assert!(verify(&state).passed());
        });
    }
}

#[test]
fn a_device_in_place_of_a_small_file_does_not_fill_the_memory() {
    for name in ["version", "log.pub", "cosigned", "checkpoints", "leaves"] {
        within(move || {
            let folder = tempfile::tempdir().unwrap();
            let clock = SetClock::new();
            let id = {
                let store = sealed_log(folder.path(), &clock);
                store.append(message(1)).unwrap().id
            };
            let path = folder.path().join(name);
            let _ = fs::remove_file(&path);
            symlink("/dev/zero", &path).unwrap();
            let _ = Store::open(folder.path(), StoreConfig::new(clock.clock()));
            let _ = fs::remove_file(&path);
            symlink("/dev/zero", &path).unwrap();
            if let Ok(reader) = StoreReader::open(folder.path()) {
                let verified = wardkeep_monitor::verify::verify_store;
                let _ = verified(&reader, &Trust::default(), 2, &mut |_| {});
                let _ = prove(&reader, id);
            }
        });
    }
}

#[test]
fn what_stands_in_the_place_of_a_segment_is_gone_around() {
    for kind in 0..3 {
        let folder = tempfile::tempdir().unwrap();
        let clock = SetClock::new();
        let store = open(folder.path(), &clock);
        fill(&store, 3);
        let planted = folder.path().join("journal/00000002.jsonl");
        match kind {
            0 => fs::create_dir(&planted).unwrap(),
            1 => symlink("/dev/zero", &planted).unwrap(),
            _ => fifo(&planted),
        }
        // A writer that is running, a new one, and a seal.
        fill(&store, 2);
        drop(store);
        clock.advance(900);
        fill(&open(folder.path(), &clock), 2);
        fill(&open(folder.path(), &clock), 2);
        let report = verify(folder.path());
        assert_eq!(failed(&report), ["segment-unreadable"], "{kind}");
        assert_eq!(report.recoveries["stray-file"], 1, "{kind}");
        // Five, and the record that tells of it.
        assert_eq!(report.seals.unwrap().signed_to, 6, "{kind}");
        assert_eq!(report.records, 9 + 1, "{kind}");
    }
}

// ---- lies in the hint, planted segments ----

#[test]
fn a_lying_hint_does_not_send_records_where_nobody_reads() {
    let many: Vec<String> = (1..150_000).map(|number: u32| number.to_string()).collect();
    for hint in [
        "{\"segment\":4294967295,\"missing\":[],\"lost\":0}".to_owned(),
        "{\"segment\":99999999,\"missing\":[],\"lost\":0}".to_owned(),
        format!("{{\"segment\":4000000000,\"missing\":[{}],\"lost\":0}}", many.join(",")),
        "{\"segment\":-1}".to_owned(),
        "\u{feff}{}".to_owned(),
    ] {
        within(move || {
            let folder = tempfile::tempdir().unwrap();
            let clock = SetClock::new();
            fill(&open(folder.path(), &clock), 3);
            fs::write(folder.path().join("journal/lock"), &hint).unwrap();
            for _ in 0..3 {
                fill(&open(folder.path(), &clock), 1);
            }
            let report = verify(folder.path());
            assert!(report.records >= 6, "{hint:.60}: {} records", report.records);
            assert!(!failed(&report).contains(&"entry-index"), "{:?}", failed(&report));
            // Told of once, not at each start.
            let size = fs::metadata(newest_segment(folder.path())).unwrap().len();
            assert!(size < 20_000, "{size}");
        });
    }
}

#[test]
fn the_highest_segment_there_can_be_takes_records_and_they_are_seen() {
    let folder = tempfile::tempdir().unwrap();
    let clock = SetClock::new();
    let mut config = StoreConfig::new(clock.clock());
    config.segment_bytes = 1000;
    fill(&Store::open(folder.path(), config.clone()).unwrap(), 3);
    File::create(folder.path().join("journal/99999999.jsonl")).unwrap();
    for _ in 0..3 {
        fill(&Store::open(folder.path(), config.clone()).unwrap(), 5);
    }
    let report = verify(folder.path());
    assert_eq!(failed(&report)[0], "segment-missing");
    assert!(!failed(&report).contains(&"entry-index"));
    assert_eq!(report.records, 3 + 15 + 1);
    // And the gap is told of once.
    assert_eq!(report.recoveries["missing-segment"], 1);
    // It vanishes under a writer.
    let store = Store::open(folder.path(), config).unwrap();
    fill(&store, 1);
    fs::remove_file(folder.path().join("journal/99999999.jsonl")).unwrap();
    fill(&store, 5);
    let after = verify(folder.path());
    assert!(after.records >= 8, "{}", after.records);
}

#[test]
fn a_planted_segment_does_not_part_two_writers() {
    let folder = tempfile::tempdir().unwrap();
    let clock = SetClock::new();
    let old = open(folder.path(), &clock);
    fill(&old, 3);
    File::create(folder.path().join("journal/00000007.jsonl")).unwrap();
    let new = open(folder.path(), &clock);
    for _ in 0..3 {
        fill(&new, 1);
        fill(&old, 1);
    }
    let report = verify(folder.path());
    // The gap is said; the chain is one.
    assert!(failed(&report).iter().all(|name| *name == "segment-missing"), "{:?}", failed(&report));
    assert_eq!(report.records, 9 + 1);
}

#[test]
fn a_planted_copy_of_old_lines_does_not_turn_the_chain_back() {
    let folder = tempfile::tempdir().unwrap();
    let clock = SetClock::new();
    let store = sealed_log(folder.path(), &clock);
    let old = lines(&newest_segment(folder.path()));
    fs::write(folder.path().join("journal/00000002.jsonl"), format!("{}\n{}\n", old[0], old[1]))
        .unwrap();
    let last = store.append(message(1)).unwrap();
    assert_eq!(last.index, 12);
    drop(store);
    assert_eq!(open(folder.path(), &clock).append(message(1)).unwrap().index, 13);
    assert!(!verify(folder.path()).passed());
}

#[test]
fn a_line_at_the_end_of_all_numbers_stops_nobody() {
    for index in [u64::MAX, u64::MAX - 1, 1 << 53] {
        within(move || {
            let folder = tempfile::tempdir().unwrap();
            let clock = SetClock::new();
            let store = open(folder.path(), &clock);
            fill(&store, 3);
            let line = forged(index, EntryHash::ZERO, Value::from(true));
            append_bytes(&newest_segment(folder.path()), line.as_bytes());
            assert_eq!(store.append(message(1)).unwrap().index, 4);
            drop(store);
            fill(&open(folder.path(), &clock), 2);
            // It cannot be an entry, so it is garbage, told of.
            let report = verify(folder.path());
            assert_eq!(failed(&report), Vec::<&str>::new());
            assert_eq!((report.records, report.recoveries["garbage"]), (7, 1));
        });
    }
}

#[test]
fn a_planted_line_that_is_not_chained_stays_visible_and_hides_nothing() {
    for (index, chained) in [(3, false), (900, true), (1, false)] {
        let folder = tempfile::tempdir().unwrap();
        let clock = SetClock::new();
        let store = open(folder.path(), &clock);
        fill(&store, 3);
        let segment = newest_segment(folder.path());
        let previous = if chained { last_hash(&segment) } else { EntryHash::ZERO };
        let line = forged(index, previous, Value::from(true));
        // With and without its newline.
        append_bytes(&segment, &line.as_bytes()[..line.len() - 1]);
        fill(&store, 2);
        fill(&open(folder.path(), &clock), 1);
        let report = verify(folder.path());
        assert!(!report.passed());
        assert!(report.records >= 7, "{}", report.records);
    }
}

#[test]
fn a_running_writer_notices_that_what_it_wrote_was_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let clock = SetClock::new();
    let store = open(folder.path(), &clock);
    fill(&store, 5);
    let segment = newest_segment(folder.path());
    let old = lines(&segment);
    // The last two acknowledged records go, a longer and well-chained one comes.
    let previous = parse_line(old[2].as_bytes()).unwrap().entry.hash;
    let line = forged(3, previous, Value::from("x".repeat(5000)));
    fs::write(&segment, format!("{}\n{line}", old[..3].join("\n"))).unwrap();
    fill(&store, 1);
    let report = verify(folder.path());
    assert_eq!(report.recoveries.get("rewritten").copied(), Some(1), "{:?}", report.recoveries);
    // The same by way of a new file; and an honest writer beside it is not suspected.
    let other = open(folder.path(), &clock);
    fill(&other, 2);
    fill(&store, 2);
    fill(&other, 2);
    assert_eq!(verify(folder.path()).recoveries["rewritten"], 1);
}

#[test]
fn a_lock_file_that_was_replaced_still_locks() {
    let folder = tempfile::tempdir().unwrap();
    let clock = SetClock::new();
    let old = open(folder.path(), &clock);
    fill(&old, 1);
    let lock = folder.path().join("journal/lock");
    fs::remove_file(&lock).unwrap();
    let new = open(folder.path(), &clock);
    // Whoever holds the lock that stands there now keeps both out.
    let held = File::open(&lock).unwrap();
    rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let length = || fs::metadata(newest_segment(folder.path())).unwrap().len();
    let before = length();
    let blocked = std::thread::scope(|scope| {
        let append = scope.spawn(|| old.append(message(1)).unwrap());
        std::thread::park_timeout(Duration::from_millis(50));
        let blocked = length() == before && !append.is_finished();
        rustix::fs::flock(&held, rustix::fs::FlockOperation::Unlock).unwrap();
        append.join().unwrap();
        blocked
    });
    assert!(blocked, "a writer went on without the lock");
    fill(&new, 1);
    fill(&old, 1);
    assert!(verify(folder.path()).passed());
}

#[test]
fn a_line_without_its_end_is_not_lost_when_the_segment_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let clock = SetClock::new();
    fill(&open(folder.path(), &clock), 3);
    let segment = newest_segment(folder.path());
    let file = OpenOptions::new().write(true).open(&segment).unwrap();
    file.set_len(file.metadata().unwrap().len() - 1).unwrap();
    let mut config = StoreConfig::new(clock.clock());
    config.segment_bytes = 100;
    fill(&Store::open(folder.path(), config).unwrap(), 1);
    assert_ne!(newest_segment(folder.path()), segment);
    clock.advance(900);
    fill(&open(folder.path(), &clock), 1);
    let report = verify(folder.path());
    assert!(report.passed(), "{:?}", failed(&report));
    assert_eq!((report.records, report.seals.unwrap().signed_to), (6, 5));
}

// ---- a panic, a full queue ----

#[test]
fn a_panic_while_writing_leaves_no_thread_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let armed = Arc::new(AtomicBool::new(false));
    let trigger = Arc::clone(&armed);
    let clock = Clock::new(move || {
        assert!(!trigger.swap(false, Ordering::SeqCst), "the clock is broken");
        Timestamp::from_unix(1_788_000_300).unwrap()
    });
    let journal = Arc::new(Journal::open(&folder.path().join("j"), Config::new(clock)).unwrap());
    armed.store(true, Ordering::SeqCst);
    let first = Arc::clone(&journal);
    let panicked = std::thread::spawn(move || first.append(record(Value::from(true)))).join();
    assert!(panicked.is_err());
    let second = Arc::clone(&journal);
    assert_eq!(within(move || second.append(record(Value::from(false))).unwrap().index), 0);
}

// ---- sizes ----

#[test]
fn a_huge_sparse_segment_costs_neither_memory_nor_time() {
    within(|| {
        let folder = tempfile::tempdir().unwrap();
        let clock = SetClock::new();
        let store = open(folder.path(), &clock);
        fill(&store, 3);
        let segment = newest_segment(folder.path());
        OpenOptions::new().write(true).open(&segment).unwrap().set_len(200 << 30).unwrap();
        fill(&store, 2);
        drop(store);
        clock.advance(900);
        let store = open(folder.path(), &clock);
        assert_eq!(store.append(message(1)).unwrap().index, 6);
        assert_ne!(newest_segment(folder.path()), segment);
        let report = verify(folder.path());
        assert_eq!(failed(&report), ["line-too-long"]);
        assert_eq!((report.records, report.seals.unwrap().signed_to), (7, 6));
        assert_eq!(report.recoveries["garbage"], 1);
    });
}

#[test]
fn much_garbage_is_told_of_in_bounded_time() {
    for unit in [&b"\n"[..], b"{\"entry\":\n", b"xxxxxxxxx\n"] {
        let unit = unit.to_vec();
        within(move || {
            let folder = tempfile::tempdir().unwrap();
            let clock = SetClock::new();
            let store = open(folder.path(), &clock);
            fill(&store, 3);
            let segment = newest_segment(folder.path());
            append_bytes(&segment, &unit.repeat((4 << 20) / unit.len()));
            fill(&store, 1);
            let report = verify(folder.path());
            assert!(report.passed(), "{:?}", failed(&report));
            assert_eq!((report.records, report.recoveries["garbage"]), (5, 1));
            // The same garbage that no record tells of: findings, bounded.
            let text = fs::read(&segment).unwrap();
            let file = OpenOptions::new().write(true).open(&segment).unwrap();
            file.write_all_at(b"?", text.len() as u64 / 2).unwrap();
            let report = verify(folder.path());
            assert_eq!(failed(&report)[0], "journal-garbage");
        });
    }
}

#[test]
fn a_recovery_record_with_many_regions_costs_little() {
    within(|| {
        let folder = tempfile::tempdir().unwrap();
        let clock = SetClock::new();
        fill(&open(folder.path(), &clock), 2);
        let segment = newest_segment(folder.path());
        append_bytes(&segment, &b"garbage\n".repeat(20_000));
        let length = fs::metadata(&segment).unwrap().len();
        let regions: Vec<Value<'static>> = (0..40_000u64)
            .map(|number| {
                Value::from([
                    ("length", Value::from(length - number)),
                    ("offset", Value::from(number)),
                    ("segment", Value::from(1u64)),
                    ("sha256", Value::from(encode_hex(&[7; 32]))),
                    ("what", Value::from(format!("garbage {number}"))),
                ])
            })
            .collect();
        let payload = Value::from([
            ("found", Value::Array(regions)),
            ("kind", Value::from("recovery")),
            ("v", Value::from(1u64)),
        ]);
        let previous = {
            let text = fs::read_to_string(&segment).unwrap();
            parse_line(text.lines().nth(1).unwrap().as_bytes()).unwrap().entry.hash
        };
        append_bytes(&segment, forged(2, previous, payload).as_bytes());
        let report = verify(folder.path());
        assert_eq!(failed(&report)[0], "journal-garbage");
        assert!(report.recoveries.len() < 100);
        // A region far beyond what there is takes no memory.
        let big = Value::from([
            ("length", Value::from(1u64 << 40)),
            ("offset", Value::from(0u64)),
            ("segment", Value::from(1u64)),
            ("sha256", Value::from(encode_hex(&[7; 32]))),
            ("what", Value::from("garbage")),
        ]);
        let payload = Value::from([
            ("found", Value::Array(vec![big])),
            ("kind", Value::from("recovery")),
            ("v", Value::from(1u64)),
        ]);
        append_bytes(&segment, forged(3, last_hash(&segment), payload).as_bytes());
        File::options().write(true).open(&segment).unwrap().set_len((1 << 40) + 9).unwrap();
        assert!(!verify(folder.path()).passed());
    });
}

#[test]
fn a_forged_recovery_record_excuses_only_the_very_bytes_it_names() {
    let folder = tempfile::tempdir().unwrap();
    let clock = SetClock::new();
    fill(&open(folder.path(), &clock), 4);
    let segment = newest_segment(folder.path());
    let old = lines(&segment);
    // An entry becomes garbage, and a well-chained record claims that it always was.
    let start = (old[0].len() + 1) as u64;
    let garbage = "x".repeat(old[1].len());
    let tell = |bytes: &str| {
        let region = Value::from([
            ("length", Value::from(bytes.len() as u64)),
            ("offset", Value::from(start)),
            ("segment", Value::from(1u64)),
            ("sha256", Value::from(encode_hex(&sha256(bytes.as_bytes())))),
            ("what", Value::from("garbage")),
        ]);
        let payload = Value::from([
            ("found", Value::Array(vec![region])),
            ("kind", Value::from("recovery")),
            ("v", Value::from(1u64)),
        ]);
        forged(4, parse_line(old[3].as_bytes()).unwrap().entry.hash, payload)
    };
    let text = [&old[0], &garbage, &old[2], &old[3]].map(String::as_str).join("\n");
    fs::write(&segment, format!("{text}\n{}", tell(&garbage))).unwrap();
    let report = verify(folder.path());
    assert_eq!(failed(&report), ["entry-index", "entry-previous"]);
    // A region over real entries excuses nothing of them.
    let whole = old[1..3].join("\n");
    fs::write(
        &segment,
        format!("{}\n{}", old.join("\n").replace("\"n\":1", "\"n\":9"), tell(&whole)),
    )
    .unwrap();
    assert_eq!(failed(&verify(folder.path())), ["record-id"]);
}

#[test]
fn a_line_with_a_million_defects_is_reported_in_bounded_memory() {
    let folder = tempfile::tempdir().unwrap();
    fill(&open(folder.path(), &SetClock::new()), 1);
    let segment = newest_segment(folder.path());
    let line = lines(&segment)[0].clone();
    let parents = format!("\"parents\":[{}]", vec!["\"\""; 200_000].join(","));
    let line = line.replacen("\"parents\":[]", &parents, 1);
    fs::write(&segment, format!("{line}\n").repeat(3)).unwrap();
    let report = verify(folder.path());
    assert!(!report.passed());
    assert!(report.findings.kept().len() <= 1000);
}

// ---- what verify must not let pass ----

#[test]
fn what_was_added_to_a_line_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let clock = SetClock::new();
    sealed_log(folder.path(), &clock);
    let segment = newest_segment(folder.path());
    let text = fs::read_to_string(&segment).unwrap();
    let changes: [(&str, String); 6] = [
        (
            "extensions",
            text.replacen(
                "\"schema\":\"0.1\"",
                "\"schema\":\"0.1\",\"extensions\":{\"approved\":true}",
                1,
            ),
        ),
        ("carriage returns", text.replace('\n', "\r\n")),
        ("spaces", text.replacen("{\"entry\":", " {\"entry\":", 1)),
        ("mark", format!("\u{feff}{text}")),
        ("member", text.replacen("{\"entry\":", "{\"a\":1,\"entry\":", 1)),
        ("twice", text.replacen("\"idx\":0", "\"idx\":0,\"idx\":0", 1)),
    ];
    for (what, changed) in changes {
        assert_ne!(changed, text);
        fs::write(&segment, changed).unwrap();
        assert!(!verify(folder.path()).passed(), "{what}");
    }
}

#[test]
fn two_records_cannot_name_one_blob_with_two_sizes() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), &SetClock::new());
    let hash = store.put_blob(b"content").unwrap();
    for size in [7, 8] {
        let mut event = message(1);
        event.payload = Payload::Blob { hash, mime: "text/plain".into(), size };
        store.append(event).unwrap();
    }
    assert_eq!(failed(&verify(folder.path())), ["record-blob-size"]);
}

#[test]
fn a_planted_blob_of_the_same_length_is_replaced() {
    for link in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path(), &SetClock::new());
        let content = b"/etc/passwd";
        let path = folder.path().join("blobs").join(encode_hex(&sha256(content)));
        fs::create_dir(path.parent().unwrap()).unwrap();
        fs::set_permissions(path.parent().unwrap(), fs::Permissions::from_mode(0o700)).unwrap();
        if link {
            symlink("/etc/passwd", &path).unwrap();
        } else {
            fs::write(&path, b"/etc/shadow").unwrap();
        }
        store.put_blob(content).unwrap();
        assert_eq!(fs::read(&path).unwrap(), content);
    }
}

#[test]
fn a_filter_holds_for_the_ancestors_too() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let store = open(&state, &SetClock::new());
    let put = |session: &'static str, parents: Vec<RecordId>| {
        let event = Event { session, parents, ..message(1) };
        store.append(event).unwrap().id
    };
    let secret = put("alice", Vec::new());
    let own = put("bob", vec![secret]);
    let center = put("bob", vec![own]);
    put("alice", vec![center]);
    let reader = StoreReader::open(&state).unwrap();
    let filter = Filter { session: Some("bob".to_owned()), ..Filter::default() };
    let selection = Selection { filter, around: Some(center) };
    let target = folder.path().join("part");
    let exported = export(&reader, &selection, &target, store.now()).unwrap();
    assert_eq!((exported.records, exported.omitted_parents), (2, 1));
    assert!(!fs::read_to_string(target.join("records.jsonl")).unwrap().contains("alice"));
    assert!(strict(&target).passed());
}

#[test]
fn what_a_crash_left_among_the_seals_is_not_exported() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let clock = SetClock::new();
    let store = sealed_log(&state, &clock);
    append_bytes(&state.join("checkpoints"), b"~ 300\nwardkeep/torn");
    append_bytes(&state.join("checkpoints"), b"\n");
    clock.advance(900);
    fill(&store, 1);
    assert!(verify(&state).passed());
    let reader = StoreReader::open(&state).unwrap();
    let part = Selection {
        filter: Filter { session: Some(String::new()), ..Filter::default() },
        around: None,
    };
    for (name, selection) in [("all", Selection::default()), ("part", part)] {
        let target = folder.path().join(name);
        export(&reader, &selection, &target, store.now()).unwrap();
        let report = strict(&target);
        assert!(report.passed(), "{name}: {:?}", report.findings.kept());
    }
}

#[test]
fn a_part_never_carries_a_proof_that_does_not_hold() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let clock = SetClock::new();
    let store = sealed_log(&state, &clock);
    let segment = newest_segment(&state);
    append_bytes(&segment, forged(3, EntryHash::ZERO, Value::from(true)).as_bytes());
    fill(&store, 4);
    clock.advance(900);
    fill(&store, 1);
    let reader = StoreReader::open(&state).unwrap();
    let filter = Filter { session: Some(String::new()), ..Filter::default() };
    let selection = Selection { filter, around: None };
    let target = folder.path().join("part");
    assert!(export(&reader, &selection, &target, store.now()).is_err() || strict(&target).passed());
}

#[test]
fn verify_and_export_hold_while_others_write_and_seal() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let clock = SetClock::new();
    let store = open(&state, &clock);
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..150 {
                let mut event = message(number);
                // Long enough for more than one page of the file.
                event.payload = Payload::Inline(Value::from("x".repeat(9000)));
                store.append(event).unwrap();
                clock.advance(300);
            }
            ended.store(true, Ordering::SeqCst);
        });
        let mut round = 0;
        while !ended.load(Ordering::SeqCst) {
            let report = verify(&state);
            assert!(report.passed(), "{:?}", report.findings.kept());
            let filter = Filter { session: Some(String::new()), ..Filter::default() };
            let part = Selection { filter, around: None };
            for selection in [Selection::default(), part] {
                round += 1;
                let target = folder.path().join(round.to_string());
                let reader = StoreReader::open(&state).unwrap();
                export(&reader, &selection, &target, store.now()).unwrap();
                let report = strict(&target);
                assert!(report.passed(), "{:?}", report.findings.kept());
            }
        }
    });
}

#[test]
fn many_omitted_parents_are_listed_in_linear_time() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let store = open(&state, &SetClock::new());
    let parents: Vec<RecordId> =
        (0..50_000u64).map(|number| RecordId(sha256(&number.to_le_bytes()))).collect();
    for _ in 0..3 {
        store.append(Event { session: "s", parents: parents.clone(), ..message(1) }).unwrap();
    }
    let reader = StoreReader::open(&state).unwrap();
    let filter = Filter { session: Some("s".to_owned()), ..Filter::default() };
    let selection = Selection { filter, around: None };
    let target = folder.path().join("part");
    let start = thread_time();
    let exported = export(&reader, &selection, &target, store.now()).unwrap();
    assert_eq!(exported.omitted_parents, 50_000);
    let took = thread_time() - start;
    assert!(took < Duration::from_secs(4), "{took:?}");
}

// ---- the index ----

#[test]
fn the_index_is_private_and_follows_no_link() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let store = open(&state, &SetClock::new());
    fill(&store, 3);
    let reader = StoreReader::open(&state).unwrap();
    let elsewhere = folder.path().join("elsewhere");
    symlink(&elsewhere, state.join("index.sqlite")).unwrap();
    let mut index = Index::open(&state).unwrap();
    assert_eq!(index.catch_up(reader.folder(), &mut |_| {}).unwrap(), 3);
    assert!(!elsewhere.exists());
    for name in ["index.sqlite", "index.sqlite-wal", "index.sqlite-shm"] {
        let metadata = fs::symlink_metadata(state.join(name)).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600, "{name}");
    }
    drop(index);
    // A link to a database of someone else is not read either.
    fs::rename(state.join("index.sqlite"), &elsewhere).unwrap();
    symlink(&elsewhere, state.join("index.sqlite")).unwrap();
    assert!(Index::open_existing(&state).is_none());
    assert_eq!(Index::rebuild(&state, reader.folder(), &mut |_| {}).unwrap(), 3);
    // By way of a linked folder it works as ever.
    let link = folder.path().join("link");
    symlink(&state, &link).unwrap();
    assert!(Index::open_existing(&link).is_some());
    assert!(Index::open(&link).is_ok());
}

#[test]
fn a_poisoned_schema_is_not_run() {
    let endless =
        "CREATE VIEW lines AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
        SELECT i AS idx, CAST(i AS BLOB) AS id, 1 AS segment, 0 AS offset, 0 AS length, 0 AS time,
        '' AS kind, '' AS session, '' AS agent FROM n;
        CREATE TABLE reached (segment INTEGER NOT NULL, offset INTEGER NOT NULL);
        PRAGMA user_version = 1;";
    within(move || {
        let folder = tempfile::tempdir().unwrap();
        let clock = SetClock::new();
        let store = sealed_log(folder.path(), &clock);
        let id = store.append(message(1)).unwrap().id;
        clock.advance(900);
        store.seal().unwrap();
        let database = rusqlite::Connection::open(folder.path().join("index.sqlite")).unwrap();
        database.execute_batch(endless).unwrap();
        drop(database);
        let reader = StoreReader::open(folder.path()).unwrap();
        let proof = prove(&reader, id).unwrap();
        assert_eq!(check(&proof, &Trust::default()).unwrap().record.id, id);
        let mut index = Index::open(folder.path()).unwrap();
        assert_eq!(index.catch_up(reader.folder(), &mut |_| {}).unwrap(), 13);
        assert_eq!(index.newest(&Filter::default(), 3).unwrap().len(), 3);
    });
}
