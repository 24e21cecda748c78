//! The journal from the command line: recorded, verified, proven, exported.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::Value;
use wardkeep_evidence::merkle::TreeHash;
use wardkeep_evidence::note::{Algorithm, SigningKey};
use wardkeep_evidence::record::{Principal, RecordType};
use wardkeep_evidence::seal::{EpochKey, LogPublic, sign_seal};
use wardkeep_evidence::time::Timestamp;
use wardkeep_monitor::journal::Clock;
use wardkeep_monitor::store::{Event, Store, StoreConfig};

use crate::shared::{BINARY, Ran, command, edit, run, skip, succeed};

/// A state directory `state` in `folder` with ten records of two sessions, the first eight of
/// them sealed; gives the ids.
pub(crate) fn sealed_state(folder: &Path) -> Vec<String> {
    let time = Arc::new(AtomicI64::new(1_788_003_000));
    let shared = Arc::clone(&time);
    let clock = Clock::new(move || Timestamp::from_unix(shared.load(Ordering::SeqCst)).unwrap());
    let store = Store::open(&folder.join("state"), StoreConfig::new(clock)).unwrap();
    let mut ids = Vec::new();
    for number in 0..10u64 {
        if number == 8 {
            time.fetch_add(900, Ordering::SeqCst);
        }
        let content = wardkeep_evidence::json::Value::from(number);
        let mut event = Event::new(RecordType::ToolCall, Principal::Tool, content);
        event.session = if number % 2 == 0 { "even" } else { "odd" };
        event.agent = "tester";
        ids.push(store.append(event).unwrap().id.to_string());
    }
    ids
}

fn with_state<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [&["--state-dir", "state"], arguments].concat()
}

fn json(folder: &Path, arguments: &[&str]) -> Value {
    let ran = run(folder, &with_state(&[arguments, &["--json"]].concat()));
    serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"))
}

#[test]
fn what_is_appended_is_there_and_verifies() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let append = ["evidence", "append", "--type", "SessionStart", "--principal", "SYS"];
    let first = succeed(at, &with_state(&[&append[..], &["--inline", "{}"]].concat()));
    fs::write(at.join("hello.txt"), "hello\n").unwrap();
    let rest = ["--file", "hello.txt", "--mime", "text/plain", "--parents", first.trim_end()];
    succeed(at, &with_state(&[&append[..], &rest].concat()));
    let report = json(at, &["evidence", "verify"]);
    assert_eq!((&report["records"], &report["verdict"]), (&Value::from(2), &Value::from("PASS")));
    // A parent that is nowhere, content that readers disagree about, no content at all.
    let nowhere = "0".repeat(64);
    for rest in [
        &["--inline", "{}", "--parents", &nowhere][..],
        &["--inline", "1.5"],
        &["--inline", "{"],
        &[],
        &["--file", "/dev/zero"],
    ] {
        let ran = run(at, &with_state(&[&append[..], rest].concat()));
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(ran.stderr.contains("\nhint: "), "{ran:?}");
    }
    assert_eq!(json(at, &["evidence", "verify"])["records"], 2);
    // The blob is part of what is verified.
    let blob = fs::read_dir(at.join("state/blobs")).unwrap().next().unwrap().unwrap().path();
    fs::write(&blob, "HELLO\n").unwrap();
    let report = json(at, &["evidence", "verify"]);
    assert_eq!(report["findings"][0]["check"], "blob-hash");
}

#[test]
fn lines_from_standard_input_are_kept_up_to_the_first_bad_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = command(BINARY, folder.path())
        .args(with_state(&["evidence", "append", "--jsonl"]))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let good = r#"{"type":"ToolCall","principal":"TOOL","inline":{"n":1},"session":"s"}"#;
    let input =
        format!("{good}\n{good}\n{{\"type\":\"Nonsense\",\"principal\":\"TOOL\"}}\n{good}\n");
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.stdout.lines().count()), (1, 2), "{ran:?}");
    assert!(ran.stderr.contains("line 3: ") && ran.stderr.contains("2 records before it"));
    assert_eq!(json(folder.path(), &["evidence", "verify"])["records"], 2);
}

#[test]
fn verify_says_how_far_each_protection_reaches() {
    let folder = tempfile::tempdir().unwrap();
    sealed_state(folder.path());
    let text = succeed(folder.path(), &with_state(&["evidence", "verify"]));
    for expected in [
        "Verification: PASS",
        "to record 10, head ",
        "to record 8 by 2 seals",
        "by nobody: a restored older copy would not be noticed",
        "2 records not sealed yet, 10 not witnessed yet",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    // The same with the log's keys named, and with those of another log.
    let named = with_state(&["evidence", "verify", "--log", "state/log.pub"]);
    assert!(succeed(folder.path(), &named).contains("the one you named"));
    let other = tempfile::tempdir().unwrap();
    sealed_state(other.path());
    let keys = other.path().join("state/log.pub");
    let ran =
        run(folder.path(), &with_state(&["evidence", "verify", "--log", keys.to_str().unwrap()]));
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("seal-origin"));
    // A witness that is demanded and never asked.
    let key = SigningKey::from_seed("witness.example", Algorithm::CosignatureV1, &[3; 32]).unwrap();
    let witness = key.verifier().to_string();
    let ran = run(folder.path(), &with_state(&["evidence", "verify", "--witness", &witness]));
    assert_eq!((ran.code, ran.stderr.matches("witness-missing").count()), (2, 1), "{ran:?}");
}

#[test]
fn a_changed_journal_fails_with_the_name_of_the_check() {
    let folder = tempfile::tempdir().unwrap();
    sealed_state(folder.path());
    edit(
        &folder.path().join("state/journal/00000001.jsonl"),
        "\"session\":\"odd\"",
        "\"session\":\"eve\"",
    );
    let ran = run(folder.path(), &with_state(&["evidence", "verify"]));
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr.starts_with("journal/00000001.jsonl line 2 (index 1): record-id: "),
        "{ran:?}"
    );
    assert!(ran.stdout.starts_with("Verification: FAIL\n"));
    let report = json(folder.path(), &["evidence", "verify"]);
    assert_eq!((&report["ok"], &report["exit"]), (&Value::Bool(false), &Value::from(2)));
}

#[test]
fn a_proof_is_written_once_and_checks_anywhere() {
    let folder = tempfile::tempdir().unwrap();
    let ids = sealed_state(folder.path());
    let prove = with_state(&["evidence", "prove", &ids[3][..12], "--out", "p"]);
    succeed(folder.path(), &prove);
    assert_eq!(run(folder.path(), &prove).code, 1, "the proof is not overwritten");
    let elsewhere = tempfile::tempdir().unwrap();
    fs::copy(folder.path().join("p"), elsewhere.path().join("p")).unwrap();
    let keys = folder.path().join("state/log.pub");
    let check = ["evidence", "check", "p", "--log", keys.to_str().unwrap(), "--json"];
    let answer: Value = serde_json::from_str(&succeed(elsewhere.path(), &check)).unwrap();
    assert_eq!(answer["record"]["recordId"], ids[3]);
    assert_eq!((&answer["pinned"], &answer["size"]), (&Value::Bool(true), &Value::from(8)));
    // Every line of it counts.
    let whole = fs::read_to_string(elsewhere.path().join("p")).unwrap();
    for (number, line) in whole.lines().enumerate().filter(|(_, line)| line.len() > 8) {
        let middle = line.len() / 2;
        let Some(old) = line.get(middle..=middle) else { continue };
        let new = if old == "A" { "B" } else { "A" };
        let changed = format!("{}{new}{}", &line[..middle], &line[middle + 1..]);
        let text = whole.replacen(line, &changed, 1);
        fs::write(elsewhere.path().join("p"), text).unwrap();
        let ran = run(elsewhere.path(), &check[..5]);
        assert!(ran.code == 2 || line.contains("/epoch"), "line {number}: {line}: {ran:?}");
    }
    for (what, code) in [(&ids[9][..], 1), ("00000000", 1), ("xyz", 1), (&"0".repeat(64)[..], 1)] {
        let ran = run(folder.path(), &with_state(&["evidence", "prove", what]));
        assert_eq!(ran.code, code, "{ran:?}");
        assert!(ran.stderr.contains("\nhint: "));
    }
}

#[test]
fn parts_say_what_they_are_a_part_of() {
    let folder = tempfile::tempdir().unwrap();
    let ids = sealed_state(folder.path());
    let at = folder.path();
    succeed(at, &with_state(&["evidence", "export", "all.zip"]));
    let text = succeed(at, &["aegx", "verify", "all.zip", "--log", "state/log.pub"]);
    let verdict = "Verification: PASS (8 of 10 entries signed by the log that you named)\n";
    assert!(text.starts_with(verdict), "{text}");
    // Whoever made it could have made the keys, too.
    let text = succeed(at, &["aegx", "verify", "all.zip"]);
    let verdict = "Verification: PASS (it holds together; signed only by keys that came with it)\n";
    assert!(text.starts_with(verdict), "{text}");
    succeed(at, &with_state(&["evidence", "export", "odd", "--session", "odd"]));
    let text = succeed(at, &["aegx", "verify", "odd", "--log", "state/log.pub"]);
    let verdict = "Verification: PASS (4 of 5 records signed by the log that you named)\n";
    assert!(text.starts_with(verdict), "{text}");
    assert!(text.contains("which had 10 entries"), "{text}");
    assert!(text.contains("4 records to be in the sealed log, 1 not sealed yet"), "{text}");
    let records = fs::read_to_string(at.join("odd/records.jsonl")).unwrap();
    assert!(!records.contains("\"even\"") && records.contains(&ids[1]));
    // An existing target stays as it is.
    for target in ["odd", "all.zip"] {
        assert_eq!(run(at, &with_state(&["evidence", "export", target])).code, 1);
    }
    let around = json(at, &["evidence", "export", "one", "--around", &ids[4]]);
    assert_eq!(around["exported"]["records"], 1);
    let none = json(at, &["evidence", "export", "none", "--since", "2099-01-01T00:00:00Z"]);
    assert_eq!(none["exported"]["records"], 0);
    succeed(at, &["aegx", "verify", "none"]);
}

#[test]
fn a_bundle_that_another_program_unpacks_verifies_for_any_user() {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::CommandExt as _;
    const TEST: &str = "a_bundle_that_another_program_unpacks_verifies_for_any_user";
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    sealed_state(at);
    succeed(at, &with_state(&["evidence", "export", "all.zip"]));
    let is_root = rustix::process::geteuid().is_root();
    fs::set_permissions(at, fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(at.join("work")).unwrap();
    // A build folder need not be open to everybody.
    fs::copy(BINARY, at.join("program")).unwrap();
    let user = |program: &str, arguments: &[&str]| {
        let mut command = command(program, &at.join("work"));
        command.args(arguments);
        if is_root {
            // Root enters any folder.
            command.uid(65534).gid(65534);
        }
        command.output().map(Ran::from)
    };
    if is_root {
        std::os::unix::fs::chown(at.join("work"), Some(65534), Some(65534)).unwrap();
    }
    let Ok(ran) = user("unzip", &["-q", "../all.zip", "-d", "out"]) else {
        return skip("unzip", TEST);
    };
    assert_eq!(ran.code, 0, "{ran:?}");
    let ran = user(at.join("program").to_str().unwrap(), &["aegx", "verify", "out"]).unwrap();
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.starts_with("Verification: PASS ("), "{ran:?}");
}

#[test]
fn heads_of_two_histories_prove_a_fork() {
    let folder = tempfile::tempdir().unwrap();
    sealed_state(folder.path());
    let at = folder.path();
    let note = |name: &str| {
        let bytes = fs::read(at.join(name)).unwrap();
        let frames = wardkeep_evidence::seal::split_frames(&bytes);
        let Some(wardkeep_evidence::seal::Frame::Note { text, .. }) = frames.last() else {
            panic!("a note")
        };
        (*text).to_owned()
    };
    fs::write(at.join("a"), note("state/checkpoints")).unwrap();
    let compare = ["evidence", "compare", "a", "b", "--log", "state/log.pub"];
    fs::write(at.join("b"), note("state/checkpoints")).unwrap();
    assert!(succeed(at, &compare).starts_with("equal: "));
    // Another history of the same size, signed with the log's own key.
    let public: LogPublic =
        fs::read_to_string(at.join("state/log.pub")).unwrap().trim_end().parse().unwrap();
    let seed = fs::read_to_string(at.join("state/log_key")).unwrap();
    let seed = wardkeep_evidence::hash::decode_hex(seed.trim_end().as_bytes()).unwrap();
    let key = public.signing_key(&seed).unwrap();
    let epoch = EpochKey::restore(9, &[5; 32]);
    let other = sign_seal(&public, &key, &epoch, (1, 1), 8, TreeHash([7; 32])).unwrap();
    fs::write(at.join("b"), other.to_string()).unwrap();
    let ran = run(at, &compare);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stdout.starts_with("fork: two roots over 8 records"), "{ran:?}");
    fs::write(at.join("b"), "nothing").unwrap();
    assert_eq!(run(at, &compare).code, 4);
}

#[test]
fn where_there_is_nothing_it_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [
        &["evidence", "verify"][..],
        &["evidence", "seal"],
        &["evidence", "reindex"],
        &["evidence", "export", "x"],
        &["evidence", "prove", "00000000"],
    ] {
        let ran = run(folder.path(), &with_state(arguments));
        assert_eq!(ran.code, 4, "{ran:?}");
        assert!(ran.stderr.contains("there is no evidence in "), "{ran:?}");
        assert!(
            ran.stderr
                .contains("\nhint: protect an agent with `wardkeep --state-dir state install`"),
            "{ran:?}"
        );
    }
    // Reading made nothing.
    assert!(!folder.path().join("state").exists());
}
