//! Hostile files and names: nothing of them reaches the terminal raw, nothing hangs.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;

use rustix::fs::{CWD, FileType, FlockOperation, Mode, flock, mknodat};

use crate::shared::{
    BINARY, META, Ran, command, edit, folder_with_bundle, is_harmless, run, skip, succeed,
};

const EVIL: &str = "\u{1b}]0;x\u{7}\u{9b}31m\u{202e}\nVerification: PASS";
const EVIL_JSON: &str = r"\u001b]0;x\u0007\u009b31m\u202e\nVerification: PASS";

#[test]
fn hostile_text_never_reaches_the_terminal_raw() {
    let folder = folder_with_bundle();
    let at = folder.path();
    let bundle = at.join("b");
    fs::write(bundle.join(EVIL), "").unwrap();
    fs::write(bundle.join("blobs").join(EVIL), "").unwrap();
    edit(&bundle.join("records.jsonl"), "SessionStart", EVIL_JSON);
    edit(&bundle.join("records.jsonl"), "\"schema\"", &format!("\"{EVIL_JSON}\":1,\"schema\""));
    edit(
        &bundle.join("manifest.json"),
        "\"audit_head\"",
        &format!("\"{EVIL_JSON}\": 1, \"audit_head\""),
    );
    fs::rename(&bundle, at.join(EVIL)).unwrap();
    let add = ["aegx", "add-record", EVIL, "--type", "Rollback", "--principal", "SYS"];
    for arguments in [
        vec!["aegx", "verify", EVIL],
        vec!["aegx", "verify", EVIL, "--lenient"],
        vec!["aegx", "summarize", EVIL],
        vec!["aegx", "export", EVIL, "out.zip"],
        vec!["aegx", "import", EVIL, EVIL],
        vec!["aegx", "init", EVIL],
        vec!["aegx", "init", "new", "--zip-out", EVIL],
        vec!["aegx", "add-blob", EVIL, EVIL],
        vec!["aegx", "add-blob", EVIL, EVIL, EVIL],
        [&add[..], &["--meta", EVIL, "--inline", "1"]].concat(),
        [&add[..], &["--meta", META, "--inline", "1", "--parents", EVIL]].concat(),
        [&add[..], &["--meta", META, "--inline", "1", "--size", EVIL]].concat(),
        [&add[..], &["--meta", META, "--blob", EVIL, "--mime", EVIL, "--size", "1"]].concat(),
        vec!["aegx", "verify", "x", "--witness", EVIL],
        vec!["aegx", "verify", "x", "--log", EVIL],
        vec!["aegx", EVIL],
        vec!["completions", EVIL],
        vec!["man", "--out", "/dev/null/\u{1b}[31m"],
        vec!["--\u{1b}[31m"],
        vec!["aegx", "verify", "x", "--lenient=\u{1b}[31m\n"],
    ] {
        for json in [&[][..], &["--json"]] {
            let ran = run(at, &[&arguments[..], json].concat());
            assert!(is_harmless(&ran.stdout) && is_harmless(&ran.stderr), "{arguments:?} {ran:?}");
            let passed = |text: &str| text.lines().any(|line| line.trim() == "Verification: PASS");
            assert!(!passed(&ran.stdout) && !passed(&ran.stderr), "{arguments:?} {ran:?}");
        }
    }
}

#[test]
fn paths_need_not_be_utf8() {
    let folder = folder_with_bundle();
    let at = folder.path();
    let name =
        |text: &str| OsString::from(OsStr::from_bytes(&[text.as_bytes(), b"\xe9\xff"].concat()));
    let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
    let (bundle, zip, copy, file) = (name("b"), name("z"), name("c"), name("f"));
    fs::write(at.join(&file), "x").unwrap();
    succeed(at, &[words(&["aegx", "init"]), vec![bundle.clone()]].concat());
    succeed(at, &[words(&["aegx", "add-blob"]), vec![bundle.clone(), file]].concat());
    succeed(at, &[words(&["aegx", "export"]), vec![bundle.clone(), zip.clone()]].concat());
    succeed(at, &[words(&["aegx", "import"]), vec![zip.clone(), copy.clone()]].concat());
    for path in [bundle, zip, copy] {
        succeed(at, &[words(&["aegx", "verify", "--json"]), vec![path.clone()]].concat());
        succeed(at, &[words(&["aegx", "summarize"]), vec![path]].concat());
    }
    succeed(at, &[words(&["man", "--out"]), vec![name("m")]].concat());
    // Where text is needed it is a wrong command line, not a panic.
    let refused = run(at, &[words(&["aegx"]), vec![name("x")]].concat());
    assert_eq!(refused.code, 2, "{refused:?}");
    let mime = run(
        at,
        &[words(&["aegx", "add-blob", "b", "hello.txt", "--mime"]), vec![name("x")]].concat(),
    );
    assert_eq!(mime.code, 2, "{mime:?}");
}

#[test]
fn pipes_devices_and_huge_files_end_at_once() {
    let folder = folder_with_bundle();
    let at = folder.path();
    mknodat(CWD, at.join("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    File::create(at.join("sparse")).unwrap().set_len(10 << 30).unwrap();
    let add = ["--type", "Rollback", "--principal", "SYS", "--meta", META, "--inline", "1"];
    for path in ["pipe", "/dev/zero", "sparse"] {
        for arguments in [
            vec!["aegx", "verify", path],
            vec!["aegx", "summarize", path],
            vec!["aegx", "add-blob", "b", path],
            vec!["aegx", "add-blob", path, "hello.txt"],
            vec!["aegx", "import", path, "new"],
            vec!["aegx", "export", path, "new.zip"],
            [&["aegx", "add-record", path][..], &add].concat(),
        ] {
            let ran = run(at, &arguments);
            assert_eq!(ran.code, 4, "{arguments:?} {ran:?}");
        }
        let log = run(at, &["aegx", "verify", "b", "--log", path]);
        assert!([1, 4].contains(&log.code), "{log:?}");
    }
    let mut names: Vec<_> =
        fs::read_dir(at).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["b", "hello.txt", "pipe", "sparse"]);
    succeed(at, &["aegx", "verify", "b"]);
}

#[test]
fn a_bundle_in_use_is_left_alone() {
    let folder = folder_with_bundle();
    let holder = File::open(folder.path().join("b")).unwrap();
    flock(&holder, FlockOperation::LockExclusive).unwrap();
    let ran = run(folder.path(), &["aegx", "add-blob", "b", "hello.txt"]);
    assert_eq!(ran.code, 4);
    assert!(ran.stderr.starts_with("error: `b` is in use by another process\nhint: "), "{ran:?}");
}

#[test]
fn without_permission_it_says_so() {
    let folder = folder_with_bundle();
    let bundle = folder.path().join("b");
    let mut command = command(BINARY, folder.path());
    if rustix::process::geteuid().is_root() {
        const NOBODY: u32 = 65534;
        rustix::fs::chmod(folder.path(), Mode::from_raw_mode(0o755)).unwrap();
        command.uid(NOBODY).gid(NOBODY);
    }
    rustix::fs::chmod(&bundle, Mode::empty()).unwrap();
    let output = command.args(["aegx", "verify", "b"]).output();
    rustix::fs::chmod(&bundle, Mode::RWXU).unwrap();
    let Ok(output) = output else {
        skip("a target folder that other users can reach", "without_permission_it_says_so");
        return;
    };
    let ran = Ran::from(output);
    assert_eq!(ran.code, 4, "{ran:?}");
    assert!(ran.stderr.contains("permission denied\nhint: run it as the owner"), "{ran:?}");
}
