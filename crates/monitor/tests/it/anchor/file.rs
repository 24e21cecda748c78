//! The file anchor.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown, symlink};
use std::path::Path;
use std::process::Command;

use wardkeep_evidence::seal::frame;
use wardkeep_monitor::anchor::file::FileAnchor;
use wardkeep_monitor::anchor::{Anchor as _, AnchorError};

use super::{TestLog, fork, rollback};
use crate::shared::skip;

const OTHER: u32 = 65533;

fn anchor(path: &Path) -> FileAnchor {
    FileAnchor::new("f", path).unwrap()
}

fn refusal(log: &mut TestLog, path: &Path) -> String {
    match log.put(&mut anchor(path)) {
        Err(AnchorError::Refused { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn seals_are_appended_and_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seals");
    let mut log = TestLog::of_size(1, 3);
    assert!(refusal(&mut log, &path).contains("let its owner make it"));
    assert!(!path.exists());
    anchor(&path).create().unwrap();
    assert_eq!(anchor(&path).create().unwrap_err().kind(), "refused");
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    assert_eq!(anchor(&path).latest(&log.public()), Ok(None));
    let mut expected = String::new();
    for growth in [0, 1, 0, 20] {
        log.grow(growth, "");
        let note = log.seal();
        for _ in 0..2 {
            let receipt = log.submit(&note, |submission| anchor(&path).put(submission, 7)).unwrap();
            assert_eq!((receipt.size, receipt.at, receipt.cosigned), (log.tree.size(), 7, None));
            assert!(receipt.detail.contains("weak: owned by the same user"), "{}", receipt.detail);
        }
        expected.push_str(&frame(&note));
        assert_eq!(fs::read_to_string(&path).unwrap(), expected);
    }
    assert_eq!(anchor(&path).latest(&log.public()), Ok(Some(24)));
    assert_eq!(anchor(&path).latest(&TestLog::new(2).public()), Ok(None));
}

#[test]
fn rollback_and_fork_are_seen_whatever_else_is_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seals");
    anchor(&path).create().unwrap();
    let mut log = TestLog::of_size(1, 10);
    let first = log.seal();
    let mut backup = log.clone();
    log.submit(&first, |submission| anchor(&path).put(submission, 0)).unwrap();
    log.grow(10, "");
    log.put(&mut anchor(&path)).unwrap();
    let sound = fs::read(&path).unwrap();
    // A thief hides the newest head: an old one again, forged ones, other logs, junk.
    let mut forged = TestLog::of_size(1, 99).seal();
    forged.signatures = first.signatures.clone();
    let hiding = [
        frame(&first),
        frame(&forged),
        frame(&TestLog::of_size(2, 50).seal()),
        "~ 5\njunk\n\u{fffd}".to_owned(),
        "x".repeat(100_000),
    ];
    fs::write(&path, [sound, hiding.concat().into_bytes()].concat()).unwrap();
    assert_eq!(anchor(&path).latest(&log.public()), Ok(Some(20)));
    assert_eq!(backup.put(&mut anchor(&path)), Err(rollback("f", 20, 10)));
    backup.grow(10, "other");
    assert_eq!(backup.put(&mut anchor(&path)), Err(fork("f", 20)));
    backup.grow(1, "other");
    assert_eq!(backup.put(&mut anchor(&path)), Err(fork("f", 20)));
    log.grow(5, "");
    assert_eq!(log.put(&mut anchor(&path)).unwrap().size, 25);
    assert_eq!(anchor(&path).latest(&log.public()), Ok(Some(25)));
}

#[test]
fn a_fork_already_in_the_file_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seals");
    let mut log = TestLog::of_size(1, 10);
    let mut forked = log.clone();
    log.grow(1, "");
    forked.grow(1, "other");
    fs::write(&path, [frame(&log.seal()), frame(&forked.seal())].concat()).unwrap();
    log.grow(3, "");
    assert_eq!(log.put(&mut anchor(&path)), Err(fork("f", 11)));
}

#[test]
fn only_a_plain_file_of_one_name_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let mut log = TestLog::of_size(1, 3);
    fs::write(at("plain"), "").unwrap();
    symlink(at("plain"), at("link")).unwrap();
    assert!(refusal(&mut log, &at("link")).contains("a symbolic link"));
    symlink(at("nowhere"), at("dangling")).unwrap();
    assert!(refusal(&mut log, &at("dangling")).contains("a symbolic link"));
    assert_eq!(anchor(&at("dangling")).create().unwrap_err().kind(), "refused");
    assert!(!at("nowhere").exists());
    assert!(Command::new("mkfifo").arg(at("fifo")).status().unwrap().success());
    assert!(refusal(&mut log, &at("fifo")).contains("not a regular file"));
    assert!(refusal(&mut log, folder.path()).contains("a folder"));
    assert!(refusal(&mut log, Path::new("/dev/null")).contains("not a regular file"));
    fs::hard_link(at("plain"), at("second")).unwrap();
    assert!(refusal(&mut log, &at("plain")).contains("more than one name"));
    fs::remove_file(at("second")).unwrap();
    assert!(log.put(&mut anchor(&at("plain"))).is_ok());
    assert_eq!(FileAnchor::new("f", Path::new("plain")).unwrap_err().kind(), "refused");
    let locked = fs::File::open(at("plain")).unwrap();
    locked.lock().unwrap();
    assert_eq!(log.put(&mut anchor(&at("plain"))).unwrap_err().kind(), "unreachable");
}

#[test]
fn the_owner_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seals");
    fs::write(&path, "").unwrap();
    if chown(&path, Some(OTHER), None).is_err() {
        return skip("root", "the_owner_is_reported");
    }
    let mut log = TestLog::of_size(1, 3);
    let receipt = log.put(&mut anchor(&path)).unwrap();
    assert!(receipt.detail.starts_with("owned by uid 65533, "), "{}", receipt.detail);
    assert!(!receipt.detail.contains("same user"));
    assert_eq!(fs::metadata(&path).unwrap().uid(), OTHER);
}

#[test]
fn an_append_only_file_works_and_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seals");
    fs::write(&path, "").unwrap();
    let chattr = |flag: &str| {
        Command::new("chattr").arg(flag).arg(&path).output().is_ok_and(|done| done.status.success())
    };
    if !chattr("+a") {
        return skip("chattr +a", "an_append_only_file_works_and_is_reported");
    }
    let mut log = TestLog::of_size(1, 3);
    let result = log.put(&mut anchor(&path));
    assert!(chattr("-a"));
    let detail = result.unwrap().detail;
    assert!(detail.contains(", append-only"), "{detail}");
}

#[test]
fn a_file_full_of_forgeries_is_bounded_work() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seals");
    let mut log = TestLog::of_size(1, 3);
    let sound = log.seal();
    let forgeries: String = (0..10_001)
        .map(|size| {
            let mut note = sound.clone();
            note.text = note.text.replace("\n3\n", &format!("\n{}\n", 100 + size));
            frame(&note)
        })
        .collect();
    fs::write(&path, frame(&sound) + &forgeries).unwrap();
    assert_eq!(log.put(&mut anchor(&path)).unwrap_err().kind(), "format");
}
