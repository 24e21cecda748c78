//! The outbox, with a clock of its own.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use wardkeep_evidence::note::Note;
use wardkeep_evidence::seal::{Frame, split_frames};
use wardkeep_monitor::anchor::outbox::{
    Alarm, AnchorConfig, AnchorState, Outbox, OutboxError, Outcome, Place,
};
use wardkeep_monitor::anchor::{AnchorError, Surroundings};

use super::{Served, TestLog, rollback, witness_key};

fn open(state: &Path) -> Outbox {
    Outbox::open(state, Surroundings::new(std::env::var_os("PATH").unwrap())).unwrap()
}

fn witness(url: &str) -> AnchorConfig {
    let key = witness_key("w.example/1").verifier().to_string();
    AnchorConfig { name: "w".to_owned(), place: Place::Witness { url: url.to_owned(), key } }
}

fn file(name: &str, path: &Path) -> AnchorConfig {
    let path = path.to_str().unwrap().to_owned();
    AnchorConfig { name: name.to_owned(), place: Place::File { path } }
}

fn push(outbox: &mut Outbox, log: &TestLog, note: &Note, now: u64, force: bool) -> Vec<Outcome> {
    log.submit(note, |submission| outbox.push(submission, now, force)).unwrap()
}

fn state_of(outbox: &Outbox, name: &str) -> AnchorState {
    outbox.list().iter().find(|status| status.config.name == name).unwrap().state.clone()
}

/// A port nothing listens on.
const DEAD_URL: &str = "http://127.0.0.1:1";

#[test]
fn all_kinds_take_the_newest_seal_and_cosignatures_are_kept() {
    let (state, memory, place) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut log = TestLog::of_size(1, 3);
    let served = Served::open(memory.path(), &[&log]);
    let path = place.path().join("seals");
    fs::write(&path, "").unwrap();
    let mut outbox = open(state.path());
    assert!(outbox.list().is_empty());
    outbox.add(witness(&served.url())).unwrap();
    outbox.add(file("f", &path)).unwrap();
    let has_git = std::process::Command::new("git").arg("--version").output().is_ok();
    if has_git {
        let remote = place.path().join("remote.git");
        let made =
            std::process::Command::new("git").args(["init", "-q", "--bare"]).arg(&remote).status();
        assert!(made.unwrap().success());
        let url = remote.to_str().unwrap().to_owned();
        let place = Place::Git { url, branch: "seals".to_owned() };
        outbox.add(AnchorConfig { name: "g".to_owned(), place }).unwrap();
    }
    let mut cosigned = Vec::new();
    for round in 1..4 {
        log.grow(2, "");
        let note = log.seal();
        // Another process each time.
        let mut outbox = open(state.path());
        let outcomes = push(&mut outbox, &log, &note, 100 * round, false);
        assert_eq!(outcomes.len(), if has_git { 3 } else { 2 });
        for outcome in outcomes {
            let receipt = outcome.result.unwrap();
            assert_eq!(receipt.size, log.tree.size());
            cosigned.extend(receipt.cosigned.map(|note| note.to_string()));
            let state = state_of(&outbox, &outcome.name);
            assert_eq!(
                (state.acknowledged, state.failures, state.alarm),
                (log.tree.size(), 0, None)
            );
        }
        assert_eq!(push(&mut outbox, &log, &note, 100 * round + 1, false), []);
        let latest = outbox.anchor("f").unwrap().latest(&log.public());
        assert_eq!(latest, Ok(Some(log.tree.size())));
    }
    let kept = fs::read(state.path().join("cosigned")).unwrap();
    let texts: Vec<_> = split_frames(&kept)
        .into_iter()
        .map(|frame| match frame {
            Frame::Note { text, .. } => text.to_owned(),
            Frame::Damaged { .. } => panic!("damaged"),
        })
        .collect();
    assert_eq!(texts, cosigned);
    for name in ["anchors.json", "anchors-state.json", "cosigned"] {
        let mode = fs::metadata(state.path().join(name)).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let again = log.seal();
    let forced = push(&mut open(state.path()), &log, &again, 1000, true);
    assert!(forced.iter().all(|outcome| outcome.result.is_ok()));
}

#[test]
fn failures_are_kept_and_tried_again_later_and_later() {
    let (state, memory) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut log = TestLog::of_size(1, 3);
    open(state.path()).add(witness(DEAD_URL)).unwrap();
    let note = log.seal();
    let mut now = 1_000_000;
    for pause in [60, 120, 240, 480, 960, 1920, 3600, 3600] {
        let mut outbox = open(state.path());
        let outcomes = push(&mut outbox, &log, &note, now, false);
        assert_eq!(outcomes[0].result.as_ref().unwrap_err().kind(), "unreachable");
        let kept = state_of(&open(state.path()), "w");
        assert_eq!(kept.next_attempt, now + pause);
        let failure = kept.last_failure.unwrap();
        assert_eq!((failure.at, failure.kind.as_str()), (now, "unreachable"));
        assert_eq!(failure.message, outcomes[0].result.as_ref().unwrap_err().to_string());
        assert_eq!(push(&mut outbox, &log, &note, now + pause - 1, false), []);
        now += pause;
    }
    // An owner who cannot wait forces it.
    let mut outbox = open(state.path());
    assert_eq!(push(&mut outbox, &log, &note, now - 1, true).len(), 1);
    // The witness comes to life: a success ends the pauses, and the failure stays visible.
    let served = Served::open(memory.path(), &[&log]);
    let config = state.path().join("anchors.json");
    let moved = fs::read_to_string(&config).unwrap().replace(DEAD_URL, &served.url());
    fs::write(&config, moved).unwrap();
    assert!(push(&mut outbox, &log, &note, now + 3600, false)[0].result.is_ok());
    let kept = state_of(&open(state.path()), "w");
    assert_eq!((kept.failures, kept.acknowledged), (0, 3));
    assert_eq!(kept.last_failure.unwrap().kind, "unreachable");
}

#[test]
fn a_rollback_stays_until_an_owner_clears_it() {
    let (state, memory) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut log = TestLog::of_size(1, 10);
    let served = Served::open(memory.path(), &[&log]);
    open(state.path()).add(witness(&served.url())).unwrap();
    let mut backup = log.clone();
    log.grow(10, "");
    let newest = log.seal();
    push(&mut open(state.path()), &log, &newest, 1, false)[0].result.as_ref().unwrap();
    // The log alone is rolled back: the outbox remembers.
    let old = backup.seal();
    let outcomes = push(&mut open(state.path()), &backup, &old, 2, false);
    assert_eq!(outcomes[0].result, Err(rollback("w", 20, 10)));
    // The whole state directory is rolled back: the witness remembers.
    fs::remove_file(state.path().join("anchors-state.json")).unwrap();
    let lost = state_of(&open(state.path()), "w");
    assert_eq!(lost.alarm, Some(Alarm::StateLost));
    let outcomes = push(&mut open(state.path()), &backup, &old, 3, false);
    assert_eq!(outcomes[0].result, Err(rollback("w", 20, 10)));
    let alarm = Alarm::Rollback { at: 3, theirs: 20, ours: 10 };
    assert_eq!(state_of(&open(state.path()), "w").alarm, Some(alarm));
    // A success later does not hide it.
    assert!(push(&mut open(state.path()), &log, &newest, 1000, false)[0].result.is_ok());
    assert_eq!(state_of(&open(state.path()), "w").alarm, Some(alarm));
    open(state.path()).clear("w").unwrap();
    assert_eq!(state_of(&open(state.path()), "w").alarm, None);
    backup.grow(20, "other");
    let forked = backup.seal();
    let outcomes = push(&mut open(state.path()), &backup, &forked, 4, false);
    assert!(matches!(outcomes[0].result, Err(AnchorError::Fork { .. })));
    assert_eq!(state_of(&open(state.path()), "w").alarm, Some(Alarm::Fork { at: 4, size: 20 }));
}

#[test]
fn one_anchor_that_fails_does_not_keep_the_others_from_working() {
    let (state, place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut log = TestLog::of_size(1, 3);
    let path = place.path().join("seals");
    fs::write(&path, "").unwrap();
    let mut outbox = open(state.path());
    outbox.add(witness(DEAD_URL)).unwrap();
    outbox.add(file("missing", &place.path().join("nothing"))).unwrap();
    outbox.add(file("f", &path)).unwrap();
    let note = log.seal();
    let outcomes = push(&mut outbox, &log, &note, 1, false);
    let kinds: Vec<_> = outcomes
        .iter()
        .map(|outcome| outcome.result.as_ref().map_or_else(AnchorError::kind, |_| "ok"))
        .collect();
    assert_eq!(kinds, ["unreachable", "refused", "ok"]);
}

#[test]
fn an_anchor_of_one_log_is_not_used_for_another() {
    let (state, place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (mut log, mut other) = (TestLog::of_size(1, 3), TestLog::of_size(2, 3));
    let path = place.path().join("seals");
    fs::write(&path, "").unwrap();
    let mut outbox = open(state.path());
    outbox.add(file("f", &path)).unwrap();
    let note = log.seal();
    assert!(push(&mut outbox, &log, &note, 1, false)[0].result.is_ok());
    let foreign = other.seal();
    let refused = push(&mut outbox, &other, &foreign, 2, false)[0].result.clone().unwrap_err();
    assert!(refused.to_string().contains(&log.origin()), "{refused}");
    outbox.clear("f").unwrap();
    assert!(push(&mut outbox, &other, &foreign, 3, false)[0].result.is_ok());
}

#[test]
fn the_set_of_anchors_is_kept_and_checked() {
    let state = tempfile::tempdir().unwrap();
    let mut outbox = open(state.path());
    outbox.add(file("f", Path::new("/a"))).unwrap();
    assert!(matches!(outbox.add(file("f", Path::new("/b"))), Err(OutboxError::Config(_))));
    assert!(matches!(outbox.add(file("F", Path::new("/b"))), Err(OutboxError::Config(_))));
    assert!(matches!(outbox.add(file("g", Path::new("b"))), Err(OutboxError::Anchor(_))));
    assert!(matches!(outbox.add(witness("https://w")), Err(OutboxError::Anchor(_))));
    assert!(matches!(outbox.remove("g"), Err(OutboxError::Config(_))));
    assert!(matches!(outbox.clear("g"), Err(OutboxError::Config(_))));
    let mut second = open(state.path());
    second.add(file("g", Path::new("/b"))).unwrap();
    outbox.add(file("h", Path::new("/c"))).unwrap();
    let names: Vec<_> = outbox.list().iter().map(|status| status.config.name.clone()).collect();
    assert_eq!(names, ["f", "g", "h"]);
    outbox.remove("g").unwrap();
    let names: Vec<_> =
        open(state.path()).list().iter().map(|status| status.config.name.clone()).collect();
    assert_eq!(names, ["f", "h"]);
    fs::write(state.path().join("anchors.json"), "{").unwrap();
    let surroundings = Surroundings::new("".into());
    assert!(matches!(Outbox::open(state.path(), surroundings), Err(OutboxError::Config(_))));
}

#[test]
fn only_one_process_pushes_at_a_time() {
    let state = tempfile::tempdir().unwrap();
    let mut log = TestLog::of_size(1, 3);
    let mut outbox = open(state.path());
    outbox.add(file("f", Path::new("/nowhere/seals"))).unwrap();
    let held = fs::OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(state.path().join("anchors-push.lock"))
        .unwrap();
    held.lock().unwrap();
    let note = log.seal();
    let busy = log.submit(&note, |submission| outbox.push(submission, 1, false));
    assert!(matches!(busy, Err(OutboxError::Busy)));
    // The set of anchors can be changed meanwhile.
    outbox.remove("f").unwrap();
    drop(held);
    assert_eq!(push(&mut outbox, &log, &note, 1, false), []);
}

#[test]
fn a_cosignature_that_cannot_be_kept_is_a_failure() {
    let (state, memory) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut log = TestLog::of_size(1, 3);
    let served = Served::open(memory.path(), &[&log]);
    let mut outbox = open(state.path());
    outbox.add(witness(&served.url())).unwrap();
    fs::create_dir(state.path().join("cosigned")).unwrap();
    let note = log.seal();
    let outcome = push(&mut outbox, &log, &note, 1, false);
    assert_eq!(outcome[0].result.as_ref().unwrap_err().kind(), "local");
    fs::remove_dir(state.path().join("cosigned")).unwrap();
    assert!(push(&mut outbox, &log, &note, 61, false)[0].result.is_ok());
    assert!(state.path().join("cosigned").exists());
}
