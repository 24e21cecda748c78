//! Snapshots: what they hold, what they leave out, and when they are refused.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use wardkeep_monitor::snapshot::{
    By, Catalogue, Content, Difference, Limits, Listed, Opened, RelativePath, Scope, SnapshotError,
    Snapshots, Taken, Why,
};
use wardkeep_monitor::store::{Store, StoreReader};

use crate::shared::{SetClock, open, verify};

/// A workspace with something in it, a store, and a clock.
pub(crate) struct Scene {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) clock: SetClock,
    pub(crate) store: Store,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = SetClock::new();
        let work = folder.path().join("work");
        fs::create_dir(&work).unwrap();
        let scene = Self { store: open(&folder.path().join("state"), &clock), folder, clock };
        scene.write("SOUL.md", "soul");
        scene.write("MEMORY.md", "memory");
        scene.write("memory/2026-01-01.md", "new year");
        scene.write(".claude/settings.json", "{}");
        scene.write("src/main.rs", "fn main() {}");
        scene
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("work")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.work().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn text(&self, name: &str) -> String {
        fs::read_to_string(self.work().join(name)).unwrap()
    }

    pub(crate) fn exists(&self, name: &str) -> bool {
        fs::symlink_metadata(self.work().join(name)).is_ok()
    }

    pub(crate) fn snapshots(&self) -> Snapshots<'_> {
        Snapshots::new(&self.store)
    }

    pub(crate) fn take(&self, scope: Scope) -> Taken {
        self.snapshots().take(&self.work(), scope, "test", By::owner()).unwrap()
    }

    pub(crate) fn reader(&self) -> StoreReader {
        StoreReader::open(&self.state()).unwrap()
    }

    pub(crate) fn catalogue(&self) -> Catalogue {
        Catalogue::read(&self.reader()).unwrap()
    }

    pub(crate) fn opened(&self, listed: &Listed) -> Opened {
        Opened::open(&self.state(), listed).unwrap()
    }

    pub(crate) fn diff(&self, listed: &Listed) -> Vec<(String, Difference)> {
        let changes = self.opened(listed).diff(&Limits::default()).unwrap();
        changes.into_iter().map(|change| (change.path.to_string(), change.difference)).collect()
    }
}

pub(crate) fn path(text: &str) -> RelativePath {
    RelativePath::parse(text).unwrap()
}

/// Every file below a folder, with its bytes or where it leads.
pub(crate) fn tree(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let data = fs::symlink_metadata(&path).unwrap();
        if data.is_dir() {
            found.append(&mut tree(&path));
        } else if data.is_symlink() {
            let target = fs::read_link(&path).unwrap();
            found.insert(path, [b"link to ", target.as_os_str().as_bytes()].concat());
        } else if data.is_file() {
            let bytes = fs::read(&path).unwrap();
            found.insert(path, bytes);
        }
    }
    found
}

fn names(taken: &Taken) -> Vec<String> {
    taken.manifest.files.iter().map(|entry| entry.path.to_string()).collect()
}

#[test]
fn a_scope_holds_its_files_and_no_others() {
    let scene = Scene::new();
    fs::write(scene.state().join("config.toml"), "[security]\n").unwrap();
    let memory = scene.take(Scope::Memory);
    assert_eq!(names(&memory), ["MEMORY.md", "SOUL.md", "memory/2026-01-01.md"]);
    assert_eq!(memory.manifest.state, []);
    let control = scene.take(Scope::ControlPlane);
    assert_eq!(names(&control), [".claude/settings.json"]);
    assert_eq!(control.manifest.state[0].path.to_string(), "config.toml");
    let full = scene.take(Scope::Full);
    assert_eq!(names(&full).len(), 4);
    let opened = scene.opened(&full.listed);
    opened.check().unwrap();
    let entry = opened.manifest().file(&path("MEMORY.md")).unwrap();
    assert_eq!(opened.read(&entry.content).unwrap(), b"memory");
    let listed: Vec<_> = scene.catalogue().snapshots.iter().map(|one| one.scope).collect();
    assert_eq!(listed, [Scope::Full, Scope::ControlPlane, Scope::Memory]);
    assert_eq!(scene.catalogue().snapshots[0], full.listed);
    assert_eq!(Catalogue::scanned(&scene.reader()).unwrap().snapshots[0], full.listed);
    assert!(verify(&scene.state()).passed());
}

#[test]
fn what_changed_since_is_told() {
    let scene = Scene::new();
    fs::write(scene.state().join("config.toml"), "[security]\n").unwrap();
    let taken = scene.take(Scope::Full);
    assert_eq!(scene.diff(&taken.listed), []);
    scene.write("MEMORY.md", "other");
    scene.write("memory/evil.md", "evil");
    scene.write("src/main.rs", "not covered");
    // Names that some systems take for the same are covered too.
    scene.write("heartbeat.MD", "added");
    scene.write(".claude/hooks/evil.sh", "evil");
    fs::remove_file(scene.work().join("SOUL.md")).unwrap();
    let mode = fs::Permissions::from_mode(0o600);
    fs::set_permissions(scene.work().join("memory/2026-01-01.md"), mode).unwrap();
    use Difference::{Added, Modified, Removed};
    let expected = [
        (".claude/hooks/evil.sh", Added),
        ("MEMORY.md", Modified),
        ("SOUL.md", Removed),
        ("heartbeat.MD", Added),
        ("memory/2026-01-01.md", Modified),
        ("memory/evil.md", Added),
    ];
    assert_eq!(scene.diff(&taken.listed), expected.map(|(name, what)| (name.to_owned(), what)));
    assert_eq!(scene.opened(&taken.listed).state_diff().unwrap(), []);
    fs::write(scene.state().join("config.toml"), "[guard]\n").unwrap();
    let state = scene.opened(&taken.listed).state_diff().unwrap();
    assert_eq!(
        (state[0].path.to_string().as_str(), state[0].difference),
        ("config.toml", Modified)
    );
}

#[test]
fn odd_names_links_and_pipes_are_what_they_are() {
    let scene = Scene::new();
    let memory = scene.work().join("memory");
    let odd = [&b"\xff\xfe.md"[..], "e\u{301}.md".as_bytes(), b"100%.md", b"a\nb\x1b[31m.md"];
    for name in odd {
        fs::write(memory.join(OsStr::from_bytes(name)), "odd").unwrap();
    }
    symlink("/etc/passwd", memory.join("link")).unwrap();
    symlink(scene.folder.path(), memory.join("way")).unwrap();
    let pipe = memory.join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let taken = scene.take(Scope::Memory);
    assert_eq!(taken.manifest.files.len(), 3 + odd.len() + 2);
    let link = &taken.manifest.file(&path("memory/link")).unwrap().content;
    assert_eq!(*link, Content::Link { target: b"/etc/passwd".to_vec() });
    let left: Vec<_> = taken.manifest.left_out.iter().map(|left| (&left.path, left.why)).collect();
    assert_eq!(left, [(&path("memory/pipe"), Why::NotRegular)]);
    assert_eq!(scene.diff(&taken.listed), []);
    let before = tree(&scene.work());
    for name in odd {
        fs::remove_file(memory.join(OsStr::from_bytes(name))).unwrap();
    }
    fs::remove_file(memory.join("link")).unwrap();
    scene.snapshots().restore(&taken.listed, None, By::owner()).unwrap();
    assert_eq!(tree(&scene.work()), before);
}

#[test]
fn what_is_over_the_limits_is_said_and_never_removed() {
    let scene = Scene::new();
    scene.write("memory/large.md", &"x".repeat(2000));
    for number in 0..20 {
        scene.write(&format!("memory/more/{number:02}.md"), "more");
    }
    let limits = Limits { files: 6, file_bytes: 1000, ..Limits::default() };
    let small = scene.snapshots().with_limits(limits);
    let taken = small.take(&scene.work(), Scope::Memory, "", By::owner()).unwrap();
    // What fills a folder does not push out the files that are named.
    assert!(names(&taken).starts_with(&["MEMORY.md".into(), "SOUL.md".into()]));
    assert_eq!(taken.manifest.files.len(), 6);
    assert_eq!(taken.listed.left_out, 1 + 17);
    let why = |name: &str| {
        taken.manifest.left_out.iter().find(|left| left.path == path(name)).unwrap().why
    };
    assert_eq!((why("memory/large.md"), why("memory/more/19.md")), (Why::TooLarge, Why::Limit));
    let before = tree(&scene.work());
    scene.write("memory/added.md", "added");
    let done = scene.snapshots().restore(&taken.listed, None, By::owner()).unwrap();
    assert_eq!(done.removed, [path("memory/added.md")]);
    assert_eq!(tree(&scene.work()), before);
    // Where not all of it was looked at, nothing counts as added.
    let limits = Limits { names: 12, ..Limits::default() };
    let few = scene.snapshots().with_limits(limits);
    let taken = few.take(&scene.work(), Scope::Memory, "", By::owner()).unwrap();
    assert!(taken.manifest.more_left_out > 0);
    scene.write("memory/added.md", "added");
    let done = scene.snapshots().restore(&taken.listed, None, By::owner()).unwrap();
    assert!(done.removed.is_empty() && scene.exists("memory/added.md"));
}

#[test]
fn a_beginning_of_an_id_is_enough_if_only_one_has_it() {
    let scene = Scene::new();
    let ids: Vec<String> =
        (0..300).map(|_| scene.take(Scope::ControlPlane).listed.id.to_string()).collect();
    let catalogue = scene.catalogue();
    for id in &ids {
        // Row 25: what is shown short must be accepted short.
        assert_eq!(catalogue.find(&id[..8]).unwrap().id.to_string(), *id);
        assert_eq!(catalogue.find(id).unwrap().id.to_string(), *id);
        match catalogue.find(&id[..4]) {
            Ok(found) => assert_eq!(found.id.to_string(), *id),
            Err(SnapshotError::Ambiguous { candidates, .. }) => {
                assert!(candidates.iter().any(|one| one.to_string() == *id));
            }
            Err(other) => panic!("{other}"),
        }
    }
    for text in ["", "abc", "ABCD", "../..", "zzzz", &"a".repeat(13)] {
        assert!(matches!(catalogue.find(text), Err(SnapshotError::NoId { .. })), "{text}");
    }
    let unknown = (0..).map(|n| format!("{n:012x}")).find(|id| !ids.contains(id)).unwrap();
    assert!(matches!(catalogue.find(&unknown), Err(SnapshotError::Unknown { .. })));
}

#[test]
fn several_candidates_are_listed() {
    let scene = Scene::new();
    let one = scene.take(Scope::ControlPlane).listed;
    let mut other = one.clone();
    let digits = one.id.to_string();
    let last = if digits.ends_with('0') { "1" } else { "0" };
    other.id = format!("{}{last}", &digits[..11]).parse().unwrap();
    let catalogue = Catalogue { snapshots: vec![other, one], rollbacks: Vec::new() };
    let error = catalogue.find(&digits[..6]).unwrap_err();
    assert!(matches!(&error, SnapshotError::Ambiguous { candidates, .. } if candidates.len() == 2));
    assert!(error.to_string().contains(&digits), "{error}");
    assert_eq!(catalogue.find(&digits).unwrap().id.to_string(), digits);
}

#[test]
fn one_by_itself_is_taken_only_when_due() {
    let scene = Scene::new();
    let due = |last| {
        scene.snapshots().take_if_due(&scene.work(), "before a change", By::system(), last).unwrap()
    };
    let first = due(None).unwrap();
    assert_eq!(first.listed.scope, Scope::Full);
    scene.write("MEMORY.md", "other");
    assert!(due(Some(&first.last)).is_none(), "too soon");
    scene.clock.advance(60);
    let second = due(Some(&first.last)).unwrap();
    scene.clock.advance(3600);
    assert!(due(Some(&second.last)).is_none(), "nothing changed");
    assert_eq!(scene.catalogue().snapshots.len(), 2);
    // What is known after a start is the same.
    assert_eq!(scene.catalogue().last(&scene.reader(), &scene.work()), Some(second.last));
    // A clock that was set back does not stop it for ever.
    scene.clock.advance(-7200);
    scene.write("MEMORY.md", "third");
    assert!(due(Some(&second.last)).is_some());
}
