//! Appending, rotation and recovery.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use wardkeep_evidence::json::Value;
use wardkeep_evidence::record::{Principal, RecordType};
use wardkeep_monitor::journal::{Config, Journal, JournalError};
use wardkeep_monitor::store::{Event, Store, StoreConfig, StoreError};

use crate::shared::{SetClock, failed, fill, message, newest_segment, open, verify};

fn append_bytes(path: &std::path::Path, bytes: &[u8]) {
    OpenOptions::new().append(true).open(path).unwrap().write_all(bytes).unwrap();
}

#[test]
fn a_session_is_recorded_and_verifies() {
    let folder = tempfile::tempdir().unwrap();
    let clock = SetClock::new();
    let store = open(folder.path(), &clock);
    fill(&store, 20);
    let last = store.append(message(20)).unwrap();
    assert_eq!(last.index, 20);
    let report = verify(folder.path());
    assert_eq!(failed(&report), Vec::<&str>::new());
    assert_eq!((report.records, report.open_tail), (21, 0));
    assert_eq!(report.head, Some(last.entry));
}

#[test]
fn records_that_are_waited_for_together_keep_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), &SetClock::new());
    let first = store.append_later(message(0)).unwrap();
    let second = store.append_later(message(1)).unwrap();
    let third = store.append_later(message(2)).unwrap();
    let length = || fs::metadata(newest_segment(folder.path())).unwrap().len();
    assert_eq!(length(), 0, "nothing is written before somebody waits");
    let ids = [first.id(), second.id(), third.id()];
    let third = third.on_disk().unwrap();
    assert_eq!((third.id, third.index), (ids[2], 2));
    let all = length();
    // Those before it went with it.
    assert_eq!(first.on_disk().unwrap().index, 0);
    drop(second);
    assert_eq!(length(), all);
    // Whoever lets go of one has it written all the same, and leaves nothing behind for others.
    drop(store.append_later(message(3)).unwrap());
    assert!(length() > all);
    assert_eq!(store.append(message(4)).unwrap().index, 4);
    let report = verify(folder.path());
    assert_eq!((failed(&report), report.records), (Vec::new(), 5));
}

#[test]
fn everything_is_private_from_the_first_byte() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let store = open(&state, &SetClock::new());
    fill(&store, 2);
    store.put_blob(b"secret").unwrap();
    for entry in walk(&state) {
        let mode = fs::symlink_metadata(&entry).unwrap().permissions().mode() & 0o777;
        let expected = if entry.is_dir() { 0o700 } else { 0o600 };
        // The public keys are for everybody.
        let expected = if entry.ends_with("log.pub") { 0o644 } else { expected };
        assert_eq!(mode, expected, "{}", entry.display());
    }
}

fn walk(path: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = vec![path.to_owned()];
    let mut next = 0;
    while let Some(path) = found.get(next).cloned() {
        next += 1;
        if path.is_dir() {
            found.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    found
}

#[test]
fn a_torn_tail_is_left_and_told_of() {
    let clock = SetClock::new();
    let whole = {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path(), &clock);
        fill(&store, 3);
        let text = fs::read(newest_segment(folder.path())).unwrap();
        let start = text.iter().rposition(|&byte| byte == b'\n').unwrap();
        let start = text[..start].iter().rposition(|&byte| byte == b'\n').unwrap() + 1;
        (folder, text[start..].to_vec())
    };
    // Ways to tear the last line: from nothing of it to all but its newline.
    for cut in (0..whole.1.len()).filter(|cut| cut % 9 == 0 || cut + 12 > whole.1.len()) {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path(), &clock);
        fill(&store, 3);
        drop(store);
        let segment = newest_segment(folder.path());
        let length = fs::metadata(&segment).unwrap().len();
        let file = OpenOptions::new().write(true).open(&segment).unwrap();
        let last = fs::read(&segment).unwrap();
        let start = last[..last.len() - 1].iter().rposition(|&byte| byte == b'\n').unwrap() + 1;
        let keep = (start + cut) as u64;
        if keep >= length {
            continue;
        }
        file.set_len(keep).unwrap();
        let before = verify(folder.path());
        assert!(before.passed(), "cut {cut}: {:?}", failed(&before));
        let store = open(folder.path(), &clock);
        store.append(message(9)).unwrap();
        let report = verify(folder.path());
        assert_eq!(failed(&report), Vec::<&str>::new(), "cut {cut}");
        let torn = report.recoveries.get("torn-tail").copied().unwrap_or(0);
        let unfinished = report.recoveries.get("unfinished-line").copied().unwrap_or(0);
        assert_eq!(torn + unfinished, u64::from(cut > 0), "cut {cut}");
        // Two whole ones, the torn one if only its newline was missing, recovery, the new one.
        assert_eq!(report.records, 3 + u64::from(cut > 0) + unfinished, "cut {cut}");
    }
}

#[test]
fn garbage_is_left_and_told_of_once() {
    for garbage in [
        &b"garbage\n"[..],
        b"\n\n\n",
        b"\xff\xfe\x00\n",
        b"{\"entry\":{},\"record\":{}}\n",
        b"half a line",
        b"\xf0\x9f",
        b"{}\nmore\nand no end",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let clock = SetClock::new();
        fill(&open(folder.path(), &clock), 5);
        append_bytes(&newest_segment(folder.path()), garbage);
        for _ in 0..3 {
            fill(&open(folder.path(), &clock), 1);
        }
        let report = verify(folder.path());
        assert_eq!(failed(&report), Vec::<&str>::new(), "{garbage:?}");
        assert_eq!(report.recoveries.values().sum::<u64>(), 1, "{garbage:?}");
        assert_eq!(report.records, 5 + 1 + 3);
    }
}

#[test]
fn garbage_that_no_record_tells_of_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let clock = SetClock::new();
    fill(&open(folder.path(), &clock), 5);
    let segment = newest_segment(folder.path());
    let text = fs::read_to_string(&segment).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let changed = format!("{}\nplanted\n{}\n", lines[..2].join("\n"), lines[2..].join("\n"));
    fs::write(&segment, changed).unwrap();
    assert_eq!(failed(&verify(folder.path())), ["journal-garbage"]);
}

#[test]
fn a_line_that_was_changed_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let clock = SetClock::new();
    fill(&open(folder.path(), &clock), 5);
    let segment = newest_segment(folder.path());
    let text = fs::read_to_string(&segment).unwrap();
    fs::write(&segment, text.replace("\"n\":2", "\"n\":7")).unwrap();
    assert_eq!(failed(&verify(folder.path())), ["record-id"]);
    // The next writer does not mind, and the change stays visible.
    fill(&open(folder.path(), &clock), 1);
    assert_eq!(failed(&verify(folder.path())), ["record-id"]);
}

#[test]
fn segments_rotate_and_a_missing_one_is_found_and_told_of_once() {
    let folder = tempfile::tempdir().unwrap();
    let clock = SetClock::new();
    let mut config = StoreConfig::new(clock.clock());
    config.segment_bytes = 2000;
    let store = Store::open(folder.path(), config.clone()).unwrap();
    fill(&store, 40);
    drop(store);
    let report = verify(folder.path());
    assert!(report.passed() && report.segments > 5, "{:?}", failed(&report));
    fs::remove_file(folder.path().join("journal/00000003.jsonl")).unwrap();
    for _ in 0..3 {
        fill(&Store::open(folder.path(), config.clone()).unwrap(), 1);
    }
    let report = verify(folder.path());
    assert_eq!(failed(&report)[0], "segment-missing");
    assert_eq!(report.recoveries["missing-segment"], 1);
    // The newest: nothing else on disk shows that it was there but the hint.
    fill(&Store::open(folder.path(), config.clone()).unwrap(), 10);
    fs::remove_file(newest_segment(folder.path())).unwrap();
    for _ in 0..3 {
        fill(&Store::open(folder.path(), config.clone()).unwrap(), 1);
    }
    assert_eq!(verify(folder.path()).recoveries["missing-segment"], 2);
}

#[test]
fn a_segment_that_vanishes_or_shrinks_under_a_writer_is_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let clock = SetClock::new();
    let store = open(folder.path(), &clock);
    fill(&store, 5);
    fs::remove_file(newest_segment(folder.path())).unwrap();
    fill(&store, 5);
    let report = verify(folder.path());
    assert_eq!(report.recoveries["missing-segment"], 1);
    let segment = newest_segment(folder.path());
    let length = fs::metadata(&segment).unwrap().len();
    OpenOptions::new().write(true).open(&segment).unwrap().set_len(length / 2).unwrap();
    fill(&store, 1);
    let report = verify(folder.path());
    assert_eq!(report.recoveries["shrunk"], 1);
    // Gone entirely: folder and all, while nobody has it open.
    drop(store);
    fs::remove_dir_all(folder.path().join("journal")).unwrap();
    fill(&open(folder.path(), &clock), 2);
}

#[test]
fn a_clock_set_back_is_told_of_once() {
    let folder = tempfile::tempdir().unwrap();
    let clock = SetClock::new();
    let store = open(folder.path(), &clock);
    fill(&store, 2);
    clock.advance(-3000);
    fill(&store, 3);
    let report = verify(folder.path());
    assert!(report.passed(), "{:?}", failed(&report));
    assert_eq!(report.recoveries["clock-back"], 1);
}

#[test]
fn many_threads_share_one_chain() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), &SetClock::new());
    let mut indexes: Vec<u64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..16)
            .map(|_| {
                scope.spawn(|| {
                    (0..25).map(|n| store.append(message(n)).unwrap().index).collect::<Vec<_>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    indexes.sort_unstable();
    assert_eq!(indexes, (0..400).collect::<Vec<_>>());
    let report = verify(folder.path());
    assert!(report.passed(), "{:?}", failed(&report));
}

#[test]
fn writers_of_two_stores_on_one_folder_take_turns() {
    let folder = tempfile::tempdir().unwrap();
    let clock = SetClock::new();
    let stores = [open(folder.path(), &clock), open(folder.path(), &clock)];
    for number in 0..50 {
        stores[usize::from(number % 3 == 0)].append(message(number)).unwrap();
    }
    let report = verify(folder.path());
    assert!(report.passed(), "{:?}", failed(&report));
    assert_eq!((report.records, report.recoveries.len()), (50, 0));
}

#[test]
fn links_and_folders_of_others_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let clock = SetClock::new();
    let elsewhere = folder.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let link = folder.path().join("link");
    symlink(&elsewhere, &link).unwrap();
    let opened = Journal::open(&link, Config::new(clock.clock()));
    assert!(matches!(opened, Err(JournalError::Unsafe { .. })), "{opened:?}");
    fs::set_permissions(&elsewhere, fs::Permissions::from_mode(0o777)).unwrap();
    let opened = Journal::open(&elsewhere, Config::new(clock.clock()));
    assert!(matches!(opened, Err(JournalError::Unsafe { .. })), "{opened:?}");
    // A link in place of a segment is not followed.
    let journal = folder.path().join("journal");
    let target = folder.path().join("target");
    fs::write(&target, "").unwrap();
    drop(Journal::open(&journal, Config::new(clock.clock())).unwrap());
    fs::remove_file(journal.join("00000001.jsonl")).unwrap();
    symlink(&target, journal.join("00000001.jsonl")).unwrap();
    Journal::open(&journal, Config::new(clock.clock())).unwrap();
    assert_eq!(fs::read(&target).unwrap(), b"");
    let text = fs::read_to_string(journal.join("00000002.jsonl")).unwrap();
    assert!(text.contains("stray-file"), "{text}");
}

#[test]
fn what_readers_disagree_about_is_refused_and_so_is_the_oversized() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), &SetClock::new());
    let event = |value| Event::new(RecordType::ToolCall, Principal::Tool, value);
    for value in [Value::Float(1.5), Value::Unsigned(u64::MAX), Value::from("x".repeat(5 << 20))] {
        assert!(matches!(store.append(event(value)), Err(StoreError::Journal(_))));
    }
    fill(&store, 1);
    assert_eq!(verify(folder.path()).records, 1);
}

#[test]
fn a_newer_state_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("version"), "2\n").unwrap();
    let opened = Store::open(folder.path(), StoreConfig::new(SetClock::new().clock()));
    assert!(matches!(opened, Err(StoreError::Newer { .. })));
}

#[test]
fn many_bring_the_index_up_to_date_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), &SetClock::new());
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut index = wardkeep_monitor::index::Index::open(folder.path()).unwrap();
                    for _ in 0..40 {
                        let caught = index.catch_up(store.journal().folder(), &mut |_| {});
                        caught.unwrap_or_else(|error| panic!("{error}"));
                    }
                })
            })
            .collect();
        for number in 0..200 {
            store.append(message(number)).unwrap();
        }
        readers.into_iter().for_each(|reader| reader.join().unwrap());
    });
    let mut index = wardkeep_monitor::index::Index::open(folder.path()).unwrap();
    index.catch_up(store.journal().folder(), &mut |_| {}).unwrap();
    assert_eq!(index.records().unwrap(), 200);
}
