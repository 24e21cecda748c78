//! The same command twice in a row.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::shared::{folder_with_bundle, run, succeed};

fn content(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(content(&path));
        } else {
            found.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    found
}

#[test]
fn looking_twice_shows_the_same() {
    let folder = folder_with_bundle();
    let before = content(folder.path());
    for arguments in [
        &["aegx", "verify", "b"][..],
        &["aegx", "verify", "b", "--json"],
        &["aegx", "summarize", "b"],
        &["completions", "zsh"],
        &["man"],
    ] {
        let first = succeed(folder.path(), arguments);
        assert_eq!(first, succeed(folder.path(), arguments), "{arguments:?}");
    }
    assert_eq!(content(folder.path()), before);
}

#[test]
fn what_would_be_overwritten_stays() {
    let folder = folder_with_bundle();
    let at = folder.path();
    succeed(at, &["aegx", "export", "b", "b.zip"]);
    succeed(at, &["aegx", "import", "b.zip", "c"]);
    let before = content(at);
    for arguments in [
        &["aegx", "init", "b"][..],
        &["aegx", "init", "d", "--zip-out", "b.zip"],
        &["aegx", "export", "b", "b.zip"],
        &["aegx", "import", "b.zip", "c"],
    ] {
        let ran = run(at, arguments);
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(ran.stderr.contains("exists already\nhint: "), "{ran:?}");
        assert_eq!(content(at), before, "{arguments:?}");
    }
    // Replacing it on request gives the same bytes again.
    succeed(at, &["aegx", "export", "b", "b.zip", "--force"]);
    assert_eq!(content(at), before);
}

#[test]
fn adding_twice() {
    let folder = folder_with_bundle();
    let at = folder.path();
    let blob = succeed(at, &["aegx", "add-blob", "b", "hello.txt"]);
    assert_eq!(blob, succeed(at, &["aegx", "add-blob", "b", "hello.txt"]));
    let meta = crate::shared::META;
    let again = ["aegx", "add-record", "b", "--type", "SessionStart", "--principal", "USER"];
    let ran = run(at, &[&again[..], &["--meta", meta, "--inline", "1"]].concat());
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.starts_with("error: an equal record "), "{ran:?}");
    let verified = succeed(at, &["aegx", "verify", "b"]);
    assert!(verified.contains("  records      2, "), "{verified}");
}

#[test]
fn manual_pages_are_replaced() {
    let folder = folder_with_bundle();
    let at = folder.path();
    succeed(at, &["man", "--out", "pages"]);
    let before = content(at);
    succeed(at, &["man", "--out", "pages"]);
    assert_eq!(content(at), before);
}
