//! Bundles that grow record by record: locks, what a crash leaves, and what is refused.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use wardkeep_evidence::bundle::{BundleDirectory, BundleError, BundleWriter};
use wardkeep_evidence::check::Mode;
use wardkeep_evidence::hash::{BlobHash, RecordId, sha256};
use wardkeep_evidence::json::{Object, Value};
use wardkeep_evidence::record::{NewRecord, Payload, Principal, RecordType};
use wardkeep_evidence::source::{AUDIT_LOG, MANIFEST, RECORDS};

use crate::lab::{CREATED_AT, blob, checks, inline, verify_path};

fn new_record(number: usize, parents: Vec<RecordId>) -> NewRecord<'static> {
    NewRecord {
        kind: RecordType::ToolCall,
        principal: Principal::User,
        taint: Vec::new(),
        parents,
        meta: Object::from([
            ("ts", Value::from("2026-01-02T04:04:05.5+01:00")),
            ("nonce", Value::from(number.to_string())),
        ]),
        payload: inline("1"),
    }
}

fn fresh() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    BundleDirectory::init(folder.path(), CREATED_AT.to_owned()).unwrap();
    folder
}

fn add(folder: &Path, number: usize) -> Result<RecordId, BundleError> {
    BundleDirectory::open(folder)?.add_record(new_record(number, Vec::new()))
}

fn assert_sound(folder: &Path, records: u64) {
    for mode in [Mode::Strict, Mode::Lenient] {
        let report = verify_path(folder, mode);
        assert!(report.passed(), "{:?}", report.findings.kept());
        assert_eq!(report.records, records);
    }
}

#[test]
fn records_and_blobs_are_added() {
    let folder = fresh();
    assert_sound(folder.path(), 0);
    let mut bundle = BundleDirectory::open(folder.path()).unwrap();
    let first = bundle.add_record(new_record(0, Vec::new())).unwrap();
    fs::write(folder.path().with_extension("txt"), "content").unwrap();
    let hash = bundle.add_blob(&folder.path().with_extension("txt")).unwrap();
    fs::remove_file(folder.path().with_extension("txt")).unwrap();
    assert_eq!(hash, BlobHash(sha256(b"content")));
    let mut second = new_record(1, vec![first]);
    second.payload = blob(b"content", "text/plain");
    bundle.add_record(second).unwrap();
    drop(bundle);
    assert_sound(folder.path(), 2);
    let text = fs::read_to_string(folder.path().join(RECORDS)).unwrap();
    assert!(text.contains("\"ts\":\"2026-01-02T03:04:05Z\""), "the time is normalised");
}

#[test]
fn what_would_not_verify_is_refused_and_changes_nothing() {
    let folder = fresh();
    add(folder.path(), 0).unwrap();
    let mut bundle = BundleDirectory::open(folder.path()).unwrap();
    let nowhere = RecordId(sha256(b"nowhere"));
    let refused = bundle.add_record(new_record(1, vec![nowhere]));
    assert!(matches!(refused, Err(BundleError::ParentUnknown(id)) if id == nowhere));
    let with = |payload: Payload<'static>| NewRecord { payload, ..new_record(1, Vec::new()) };
    let refused = bundle.add_record(with(blob(b"content", "text/plain")));
    assert!(matches!(refused, Err(BundleError::BlobUnknown(_))));
    let name = folder.path().join("blobs").join(BlobHash(sha256(b"content")).to_string());
    fs::write(&name, "content").unwrap();
    let hash = BlobHash(sha256(b"content"));
    let refused = bundle.add_record(with(Payload::Blob { hash, mime: "x/y".into(), size: 8 }));
    assert!(matches!(refused, Err(BundleError::BlobSize { actual: 7, given: 8, .. })));
    fs::remove_file(&name).unwrap();
    // A link of the right length is no blob.
    std::os::unix::fs::symlink("./x.link", &name).unwrap();
    let refused = bundle.add_record(with(Payload::Blob { hash, mime: "x/y".into(), size: 8 }));
    assert!(matches!(refused, Err(BundleError::BlobUnknown(_))));
    fs::remove_file(&name).unwrap();
    assert!(matches!(bundle.add_record(new_record(0, Vec::new())), Err(BundleError::Duplicate(_))));
    for ts in [Value::Null, Value::from("yesterday"), Value::from("2026-02-30T00:00:00Z")] {
        let mut record = new_record(1, Vec::new());
        record.meta.set("ts", ts);
        assert!(matches!(bundle.add_record(record), Err(BundleError::Record(_))));
    }
    drop(bundle);
    assert_sound(folder.path(), 1);
}

#[test]
fn the_second_writer_is_told_that_there_is_a_first() {
    let folder = fresh();
    let held = BundleDirectory::open(folder.path()).unwrap();
    assert!(matches!(BundleDirectory::open(folder.path()), Err(BundleError::Locked(_))));
    assert!(matches!(add(folder.path(), 0), Err(BundleError::Locked(_))));
    drop(held);
    add(folder.path(), 0).unwrap();
    assert_sound(folder.path(), 1);
}

/// Names the child process below the bundle to write to.
const CHILD: &str = "WARDKEEP_TEST_WRITER";

/// Not a test of its own: a process that adds records as soon as it gets the lock.
#[test]
fn writer_child() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let base = usize::try_from(std::process::id()).unwrap() * 1000;
    let mut done = 0;
    while done < 5 {
        match add(Path::new(&path), base + done) {
            Ok(_) => done += 1,
            Err(BundleError::Locked(_)) => std::thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn many_writers_lose_nothing() {
    let folder = fresh();
    let children: Vec<_> = (0..3)
        .map(|_| {
            std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "writing::writer_child"])
                .env(CHILD, folder.path())
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= 15 {
                        break;
                    }
                    loop {
                        match add(folder.path(), number) {
                            Ok(_) => break,
                            Err(BundleError::Locked(_)) => std::thread::yield_now(),
                            Err(error) => panic!("{error}"),
                        }
                    }
                }
            });
        }
    });
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_sound(folder.path(), 30);
}

/// Every state that a crash between the writes of one `add_record` can leave.
#[test]
fn a_record_that_was_never_acknowledged_is_overwritten() {
    let folder = fresh();
    for number in 0..3 {
        add(folder.path(), number).unwrap();
    }
    let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
    let (manifest, records, entries) = (read(MANIFEST), read(RECORDS), read(AUDIT_LOG));
    add(folder.path(), 3).unwrap();
    let (records_after, entries_after) = (read(RECORDS), read(AUDIT_LOG));
    let restore = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    let mut states = Vec::new();
    for length in records.len()..=records_after.len() {
        states.push((records_after[..length].to_vec(), entries.clone()));
    }
    for length in entries.len()..=entries_after.len() {
        states.push((records_after.clone(), entries_after[..length].to_vec()));
    }
    // Every one of them would flush to disk a few thousand times; the seams and a few between do.
    let step = states.len() / 40;
    for (number, (records, entries)) in states.into_iter().step_by(step).enumerate() {
        restore(MANIFEST, &manifest);
        restore(RECORDS, &records);
        restore(AUDIT_LOG, &entries);
        add(folder.path(), 100 + number).unwrap();
        assert_sound(folder.path(), 4);
    }
}

#[test]
fn more_than_a_crash_can_leave_is_damage() {
    let folder = fresh();
    for number in 0..3 {
        add(folder.path(), number).unwrap();
    }
    let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
    let good: Vec<_> = [MANIFEST, RECORDS, AUDIT_LOG].map(|name| (name, read(name))).into();
    let text = |name: &str| String::from_utf8(read(name)).unwrap();
    let last = |name: &str| text(name).lines().last().unwrap().to_owned();
    let other = |name: &str| text(name).replacen("03:04:05", "03:04:06", 1).into_bytes();
    let cut = |name: &str, by: usize| {
        let bytes = read(name);
        bytes[..bytes.len() - by].to_vec()
    };
    let cases: Vec<(&str, &str, Vec<u8>)> = vec![
        (
            "two lines more",
            RECORDS,
            [text(RECORDS), last(RECORDS), "\n{}\n".to_owned()].concat().into(),
        ),
        (
            "two entries more",
            AUDIT_LOG,
            [text(AUDIT_LOG), last(AUDIT_LOG), "\n{}\n".to_owned()].concat().into(),
        ),
        ("a line less", RECORDS, cut(RECORDS, last(RECORDS).len() + 1)),
        ("an entry less", AUDIT_LOG, cut(AUDIT_LOG, last(AUDIT_LOG).len() + 1)),
        ("no newline at the end", RECORDS, cut(RECORDS, 1)),
        ("no newline at the end of the audit log", AUDIT_LOG, cut(AUDIT_LOG, 1)),
        ("half a line", RECORDS, cut(RECORDS, 10)),
        ("a line of garbage", RECORDS, text(RECORDS).replacen('{', "", 1).into()),
        ("another head", AUDIT_LOG, {
            let hash = last(AUDIT_LOG)[..].rsplit('"').nth(1).unwrap().to_owned();
            text(AUDIT_LOG).replace(&hash, &"a".repeat(64)).into()
        }),
        ("manifest cut", MANIFEST, cut(MANIFEST, 1)),
        (
            "manifest with an unknown member",
            MANIFEST,
            text(MANIFEST).replacen('{', "{\"x\":1,", 1).into(),
        ),
    ];
    assert_ne!(other(RECORDS), read(RECORDS));
    for (what, name, bytes) in cases {
        for (name, bytes) in &good {
            fs::write(folder.path().join(name), bytes).unwrap();
        }
        fs::write(folder.path().join(name), &bytes).unwrap();
        let refused = add(folder.path(), 9);
        assert!(matches!(refused, Err(BundleError::Damaged(_))), "{what}: {refused:?}");
        assert_eq!(read(name), bytes, "{what}: nothing was changed");
    }
}

#[test]
fn what_a_killed_writer_left_is_removed_by_the_next() {
    let folder = fresh();
    fs::write(folder.path().join("blobs/.incoming.partial-1-0"), "half a blob").unwrap();
    fs::write(folder.path().join(".manifest.json.partial-1-0"), "{").unwrap();
    let found = verify_path(folder.path(), Mode::Strict);
    assert_eq!(checks(&found)[..2], ["file-unexpected", "blob-name"]);
    add(folder.path(), 0).unwrap();
    assert_sound(folder.path(), 1);
}

#[test]
fn init_does_not_overwrite() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("file"), "me").unwrap();
    fs::create_dir(at("full")).unwrap();
    fs::write(at("full/keep"), "me").unwrap();
    BundleDirectory::init(&at("bundle"), CREATED_AT.to_owned()).unwrap();
    add(&at("bundle"), 0).unwrap();
    for name in ["file", "full", "bundle", "file/below"] {
        assert!(BundleDirectory::init(&at(name), CREATED_AT.to_owned()).is_err(), "{name}");
    }
    assert_eq!(fs::read_to_string(at("full/keep")).unwrap(), "me");
    assert_sound(&at("bundle"), 1);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "nothing is left behind");
}

#[test]
fn a_writer_that_is_dropped_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let mut writer = BundleWriter::create(&at("bundle"), CREATED_AT.to_owned()).unwrap();
    writer.push(RecordId(sha256(b"x")), true, b"{}", CREATED_AT).unwrap();
    let wrong = writer.push_blob(BlobHash(sha256(b"x")), &mut &b"y"[..]);
    assert!(matches!(wrong, Err(BundleError::Damaged(_))));
    assert!(!at("bundle").exists(), "it appears whole or not at all");
    drop(writer);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
