//! Tests of walks that remember.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::*;

const KEY: [u8; 16] = [7; 16];

fn names_in(folder: &Path) -> Walked {
    let root = rustix::fs::open(folder, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty());
    let mut walked = walk(root.unwrap().as_fd(), folder, &Names::standard(), None).unwrap();
    walked.found.sort_by(|a, b| a.path.cmp(&b.path));
    walked
}

fn later() -> SystemTime {
    SystemTime::now() + Duration::from_secs(10)
}

/// A walk with what is remembered, and what to remember of it.
fn again(folder: &Path, known: &Listings) -> (Walked, Seen) {
    let root = rustix::fs::open(folder, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty());
    let names = Names::standard();
    let mut both = walk_again(root.unwrap().as_fd(), folder, &names, None, Some(known)).unwrap();
    both.0.found.sort_by(|a, b| a.path.cmp(&b.path));
    both
}

fn remembered(folder: &Path) -> Listings {
    // In place of the time for which a folder must have been as it is.
    std::thread::sleep(Duration::from_millis(30));
    let known = Listings::new(KEY, later());
    let bytes = again(folder, &known).1.to_bytes(&known).unwrap();
    Listings::read(KEY, later(), bytes)
}

fn is_sure(folder: &Path) -> bool {
    let root = rustix::fs::open(folder, OFlags::RDONLY, Mode::empty()).unwrap();
    let sure = listings::is_sure(root.as_fd());
    if !sure {
        let line = "skipped: needs a file system that tells of every change in a folder\n";
        print!("{line}");
        if let Some(log) = std::env::var_os("WARDKEEP_SKIP_LOG") {
            let mut log = fs::File::options().append(true).create(true).open(log).unwrap();
            log.write_all(line.as_bytes()).unwrap();
        }
    }
    sure
}

fn lab() -> Option<tempfile::TempDir> {
    let lab = tempfile::tempdir().unwrap();
    let at = |path: &str| lab.path().join(path);
    for folder in ["a/b/.git/hooks", "a/b/.git/objects", "c/d/e", "bare/objects", "bare/refs"] {
        fs::create_dir_all(at(folder)).unwrap();
    }
    for file in [
        "a/b/.git/config",
        ".env",
        "c/AGENTS.md",
        "c/d/agents.md",
        "c/x",
        "bare/HEAD",
        "bare/config",
    ] {
        fs::write(at(file), "x").unwrap();
    }
    std::os::unix::fs::symlink("../x", at("c/d/CLAUDE.md")).unwrap();
    for many in 0..100 {
        fs::create_dir_all(at(&format!("many/{many}/below"))).unwrap();
        fs::write(at(&format!("many/{many}/.npmrc")), "x").unwrap();
    }
    is_sure(lab.path()).then_some(lab)
}

#[test]
fn what_is_remembered_is_judged_as_what_is_listed() {
    let Some(lab) = lab() else { return };
    let listed = names_in(lab.path());
    let known = remembered(lab.path());
    let (walked, seen) = again(lab.path(), &known);
    assert_eq!(
        (walked.found, walked.entries, walked.cut_short),
        (listed.found.clone(), listed.entries, listed.cut_short)
    );
    assert_eq!((walked.links.len(), walked.sockets), (listed.links.len(), listed.sockets));
    // So none was listed.
    assert!(!seen.is_new(&known));
}

/// Each of these is a way in which a guarded name comes to be after the folder was remembered.
#[test]
fn nothing_that_came_later_is_missed() {
    let Some(lab) = lab() else { return };
    let at = |path: &str| lab.path().join(path);
    let changes: &[(&str, &dyn Fn())] = &[
        ("c/d/e/.env", &|| fs::write(at("c/d/e/.env"), "x").unwrap()),
        ("many/7/below/.mcp.json", &|| {
            fs::write(at("many/7/below/plain"), "x").unwrap();
            fs::rename(at("many/7/below/plain"), at("many/7/below/.mcp.json")).unwrap();
        }),
        ("many/8/below/.vscode", &|| {
            fs::create_dir_all(at("elsewhere/deep/.vscode")).unwrap();
            fs::write(at("elsewhere/deep/.vscode/tasks.json"), "x").unwrap();
            fs::rename(at("elsewhere/deep/.vscode"), at("many/8/below/.vscode")).unwrap();
        }),
        ("many/9/below/.bashrc", &|| {
            fs::hard_link(at("c/x"), at("many/9/below/.bashrc")).unwrap();
        }),
        // The folder itself is put in the place of another.
        ("c/d/e/.netrc", &|| {
            fs::create_dir(at("new")).unwrap();
            fs::write(at("new/.netrc"), "x").unwrap();
            fs::remove_file(at("c/d/e/.env")).unwrap();
            fs::remove_dir(at("c/d/e")).unwrap();
            fs::rename(at("new"), at("c/d/e")).unwrap();
        }),
    ];
    for (name, change) in changes {
        let known = remembered(lab.path());
        let folder = at(name).parent().unwrap().to_owned();
        let before = folder.metadata().unwrap().modified().unwrap();
        change();
        // The time that a program can set is what it was. The other cannot be set.
        let times = fs::FileTimes::new().set_modified(before);
        fs::File::open(&folder).unwrap().set_times(times).unwrap();
        let (walked, _) = again(lab.path(), &known);
        let found = walked.found.iter().any(|one| {
            let path = one.path.to_str().unwrap();
            path == *name || path.starts_with(&format!("{name}/"))
        });
        assert!(found, "{name}: {:?}", walked.found);
        assert_eq!(walked.found, names_in(lab.path()).found, "{name}");
    }
}

#[test]
fn what_has_just_changed_is_not_remembered() {
    let Some(lab) = lab() else { return };
    let known = Listings::new(KEY, SystemTime::now());
    assert!(!again(lab.path(), &known).1.is_new(&known));
}

#[test]
fn of_another_start_of_the_machine_or_damaged_nothing_is_believed() {
    let Some(lab) = lab() else { return };
    let known = Listings::new(KEY, later());
    let bytes = again(lab.path(), &known).1.to_bytes(&known).unwrap();
    assert!(!Listings::read(KEY, later(), bytes.clone()).is_empty());
    assert!(Listings::read([8; 16], later(), bytes.clone()).is_empty());
    for at in (0..bytes.len()).step_by(7) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        assert!(Listings::read(KEY, later(), damaged).is_empty(), "byte {at}");
        assert!(Listings::read(KEY, later(), bytes[..at].to_vec()).is_empty(), "cut at {at}");
    }
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_read(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
        let mut whole = b"wk-list1".to_vec();
        whole.extend(crc32fast::hash(&[&KEY[..], &bytes].concat()).to_le_bytes());
        whole.extend(KEY);
        whole.extend(bytes);
        let known = Listings::read(KEY, later(), whole);
        for folder in 0..3 {
            known.entries(folder).count();
        }
    }
}
