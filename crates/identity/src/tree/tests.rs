use std::fs;
use std::os::unix::fs::{FileTypeExt as _, symlink};
use std::os::unix::net::UnixListener;

use rustix::fs::CWD;

use super::walk::Walk;
use super::*;
use crate::config::Config;

fn name(text: &str) -> Name {
    Name::new(text.as_bytes()).unwrap()
}

fn pipe(path: &Path) {
    rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
}

fn all(root: &Root, protect: &str) -> Result<Walk> {
    let tiers = Config::parse(protect.as_bytes()).unwrap().tiers().unwrap();
    let hold = Hold { tiers: Some(&tiers), limits: Limits::default(), progress: &|_| {} };
    walk(root, &hold)
}

#[test]
fn only_plain_files_below_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("work");
    fs::create_dir_all(at.join("sub")).unwrap();
    fs::write(folder.path().join("secret"), "secret").unwrap();
    fs::write(at.join("plain"), "abc").unwrap();
    fs::write(at.join("sub/inner"), "def").unwrap();
    symlink("../secret", at.join("up")).unwrap();
    symlink("/etc/passwd", at.join("passwd")).unwrap();
    symlink("sub", at.join("way")).unwrap();
    symlink("loop", at.join("loop")).unwrap();
    symlink("/proc/self/root/etc/passwd", at.join("magic")).unwrap();
    pipe(&at.join("pipe"));
    let _socket = UnixListener::bind(at.join("socket")).unwrap();
    fs::File::create(at.join("sparse")).unwrap().set_len(10 << 30).unwrap();
    let root = Root::open(&at).unwrap();
    assert_eq!(root.read(&name("plain"), 3).unwrap().0, b"abc");
    assert_eq!(root.read(&name("sub/inner"), 3).unwrap().0, b"def");
    let why = |text: &str| root.read(&name(text), 1 << 20).map(|_| ()).unwrap_err();
    assert!(matches!(why("none"), Unread::Missing));
    for link in ["up", "passwd", "loop", "magic", "way"] {
        assert!(matches!(why(link), Unread::Kind(Kind::Link)), "{link}: {:?}", why(link));
    }
    assert!(matches!(why("way/inner"), Unread::Way));
    assert!(matches!(why("plain/x"), Unread::Way));
    assert!(matches!(why("pipe"), Unread::Kind(Kind::Pipe)));
    assert!(matches!(why("socket"), Unread::Kind(Kind::Socket)));
    assert!(matches!(why("sub"), Unread::Kind(Kind::Folder)));
    assert!(matches!(why("sparse"), Unread::TooLarge(_)));
    assert!(fs::metadata(at.join("socket")).unwrap().file_type().is_socket());
}

#[test]
fn a_walk_finds_what_is_tracked_and_reports_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::create_dir_all(at.join("skills/a/b")).unwrap();
    fs::create_dir_all(at.join("node_modules/x")).unwrap();
    fs::create_dir_all(at.join(".soulguard/staging")).unwrap();
    for file in ["SOUL.md", "skills/a/b/x.md", "skills/-rf", "node_modules/x/SOUL.md", "other"] {
        fs::write(at.join(file), file).unwrap();
    }
    fs::write(at.join(".soulguard/staging/SOUL.md"), "").unwrap();
    symlink("/etc", at.join("skills/etc")).unwrap();
    pipe(&at.join("skills/pipe"));
    let root = Root::open(at).unwrap();
    let walk = all(&root, r#"{"version":1,"protect":["SOUL.md","skills/"]}"#).unwrap();
    let found: Vec<(String, Kind)> =
        walk.found.iter().map(|found| (found.name.to_string(), found.look.kind)).collect();
    let expected = [
        ("SOUL.md", Kind::File),
        ("skills", Kind::Folder),
        ("skills/-rf", Kind::File),
        ("skills/a", Kind::Folder),
        ("skills/a/b", Kind::Folder),
        ("skills/a/b/x.md", Kind::File),
        ("skills/etc", Kind::Link),
        ("skills/pipe", Kind::Pipe),
    ];
    assert_eq!(found, expected.map(|(name, kind)| (name.to_owned(), kind)));
    assert!(root.is_in_place());
    fs::rename(at.join("skills"), at.join("old")).unwrap();
    assert!(matches!(root.look(&name("skills")), Err(Unread::Missing)));
}

#[test]
fn a_very_deep_tree_is_reported_and_the_rest_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::write(at.join("a.md"), "a").unwrap();
    let mut handle = rustix::fs::open(at, FOLDER, Mode::empty()).unwrap();
    for _ in 0..600 {
        rustix::fs::mkdirat(&handle, "d", Mode::from_raw_mode(0o755)).unwrap();
        handle = rustix::fs::openat(&handle, "d", FOLDER, Mode::empty()).unwrap();
    }
    let root = Root::open(at).unwrap();
    let walk = all(&root, r#"{"version":1,"protect":["**"]}"#).unwrap();
    assert!(walk.found.iter().any(|found| found.name == name("a.md")));
    assert_eq!(walk.closed.len(), 1);
    assert!(walk.closed[0].1.contains("deep"));
    // Too deep for a path, so it is taken down from above.
    for _ in 0..600 {
        let top = at.join("d");
        if top.join("d").exists() {
            fs::rename(top.join("d"), at.join("next")).unwrap();
            fs::remove_dir(&top).unwrap();
            fs::rename(at.join("next"), &top).unwrap();
        }
    }
}

#[test]
fn too_many_entries_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    for file in 0..50 {
        fs::write(folder.path().join(format!("{file}.md")), "").unwrap();
    }
    let root = Root::open(folder.path()).unwrap();
    let tiers = Config::parse(br#"{"version":1,"protect":["*.md"]}"#).unwrap().tiers().unwrap();
    for limits in
        [Limits { entries: 20, ..Limits::default() }, Limits { files: 20, ..Limits::default() }]
    {
        let hold = Hold { tiers: Some(&tiers), limits, progress: &|_| {} };
        assert!(matches!(walk(&root, &hold), Err(IdentityError::TooMuch { limit: 20, .. })));
    }
}
