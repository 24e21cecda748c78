//! Paths as an agent writes them, and the file that each one is.

use std::ffi::OsStr;
use std::fs;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use wardkeep_monitor::resolve::{ResolveError, Resolver};
use wardkeep_policy::protect::{FileKind, Identity, PathFacts};

/// A folder with a real path.
struct Place {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        Self { _folder: folder, path }
    }

    fn resolver(&self) -> Resolver {
        Resolver::new(&self.path).unwrap()
    }

    fn target(&self, path: &str) -> PathFacts {
        self.resolver().target(Path::new(path)).unwrap().literal
    }

    fn entry(&self, path: &str) -> PathFacts {
        self.resolver().entry(Path::new(path)).unwrap().literal
    }
}

fn identity(path: &Path) -> Option<Identity> {
    let data = fs::symlink_metadata(path).unwrap();
    Some(Identity { device: data.dev(), inode: data.ino() })
}

fn workspace() -> Place {
    let place = Place::new();
    let at = |name: &str| place.path.join(name);
    fs::write(at("LocalGPT.md"), "rules").unwrap();
    fs::create_dir_all(at("sub/deep")).unwrap();
    fs::create_dir(at("other")).unwrap();
    fs::write(at("sub/file"), "").unwrap();
    symlink("LocalGPT.md", at("link")).unwrap();
    symlink("link", at("chain")).unwrap();
    symlink(at("LocalGPT.md"), at("absolute")).unwrap();
    symlink("..", at("sub/up")).unwrap();
    symlink("../sub", at("other/in")).unwrap();
    symlink("nowhere/x", at("dangling")).unwrap();
    symlink("loop-b", at("loop-a")).unwrap();
    symlink("loop-a", at("loop-b")).unwrap();
    symlink("me/me", at("me")).unwrap();
    fs::hard_link(at("LocalGPT.md"), at("second")).unwrap();
    place
}

#[test]
fn every_spelling_is_the_file() {
    let place = workspace();
    let policy = place.path.join("LocalGPT.md");
    let root = place.path.to_str().unwrap().to_owned();
    let pid = std::process::id();
    for path in [
        "LocalGPT.md".to_owned(),
        "./LocalGPT.md".into(),
        ".//././LocalGPT.md".into(),
        "LocalGPT.md/".into(),
        "LocalGPT.md/.".into(),
        "LocalGPT.md//".into(),
        "sub/../LocalGPT.md".into(),
        "sub/deep/../../LocalGPT.md".into(),
        "link".into(),
        "chain".into(),
        "absolute".into(),
        "sub/up/LocalGPT.md".into(),
        "sub/up/sub/up/link".into(),
        "other/in/up/LocalGPT.md".into(),
        "other/in/../LocalGPT.md".into(),
        format!("{root}/LocalGPT.md"),
        format!("//{root}//LocalGPT.md"),
        format!("/../../{root}/LocalGPT.md"),
        format!("/proc/self/root{root}/LocalGPT.md"),
        format!("/proc/thread-self/root/{root}/LocalGPT.md"),
        format!("/proc/self/root/proc/self/root{root}/link"),
        format!("/proc/{pid}/root{root}/LocalGPT.md"),
        "/proc/self/cwd/LocalGPT.md".into(),
        "/proc/self/cwd/sub/../chain".into(),
        "/proc/self/task/1/cwd/LocalGPT.md".into(),
    ] {
        // Some of these exist only where the task has that number.
        if path.contains("task/1") && !Path::new("/proc/self/task/1").exists() {
            continue;
        }
        let facts = place.target(&path);
        assert_eq!(facts.path, policy, "{path}");
        assert_eq!(facts.identity, identity(&policy), "{path}");
        assert_eq!((facts.kind, facts.links), (FileKind::File, 2), "{path}");
        assert_eq!(facts.parent(), identity(&place.path), "{path}");
        assert_eq!(facts.ancestors.len(), policy.components().count() - 1, "{path}");
        let linked = ["link", "chain", "absolute", "up", "in", "proc"];
        let expected = linked.iter().any(|name| path.replace(&root, "").contains(name));
        assert_eq!(facts.through_link, expected, "{path}");
        assert_eq!(facts.folded_name, "localgpt.md");
    }
    let second = place.target("second");
    assert_eq!(second.path, place.path.join("second"));
    assert_eq!((second.identity, second.links), (identity(&policy), 2));
}

#[test]
fn entries_are_not_followed() {
    let place = workspace();
    let link = place.entry("link");
    assert_eq!(link.path, place.path.join("link"));
    assert_eq!((link.kind, link.identity), (FileKind::Link, identity(&place.path.join("link"))));
    assert_eq!(place.entry("sub/up").path, place.path.join("sub/up"));
    // A link on the way is followed, and so is one with a slash behind it.
    assert_eq!(place.entry("other/in/file").path, place.path.join("sub/file"));
    assert_eq!(place.entry("sub/up/").path, place.path);
    assert_eq!(place.entry("loop-a").kind, FileKind::Link);
    assert_eq!(place.entry("dangling").kind, FileKind::Link);
}

#[test]
fn what_is_missing_is_named() {
    let place = workspace();
    for (path, expected, missing) in [
        ("new", "new", 1),
        ("sub/new", "sub/new", 1),
        ("a/b/c", "a/b/c", 3),
        ("other/in/x/y", "sub/x/y", 2),
        ("dangling", "nowhere/x", 2),
        ("LocalGPT.md.", "LocalGPT.md.", 1),
        ("LocalGPT.md ", "LocalGPT.md ", 1),
        ("LocalGPT.md/x", "LocalGPT.md/x", 2),
        ("~/x", "~/x", 2),
        ("~", "~", 1),
    ] {
        let facts = place.target(path);
        assert_eq!(facts.path, place.path.join(expected), "{path}");
        assert_eq!((facts.kind, facts.missing), (FileKind::Missing, missing), "{path}");
        assert_eq!(facts.identity, None);
        assert_eq!(facts.parent().is_some(), missing == 1, "{path}");
    }
    assert_eq!(place.target("LocalGPT.md. ").folded_name, "localgpt.md");
    // Out of what does not exist, by the text alone, as programs do that clean paths up.
    let facts = place.target("missing/../LocalGPT.md");
    assert_eq!(facts.path, place.path.join("LocalGPT.md"));
    assert_eq!(place.target("missing/../../x").path, place.path.parent().unwrap().join("x"));
    assert_eq!(place.target("LocalGPT.md/../link").path, place.path.join("LocalGPT.md"));
}

#[test]
fn both_readings_of_dots_count() {
    let place = workspace();
    fs::create_dir_all(place.path.join("far/away/here")).unwrap();
    fs::write(place.path.join("far/away/LocalGPT.md"), "other").unwrap();
    symlink("far/away/here", place.path.join("jump")).unwrap();
    // The kernel goes up from where the link leads; many programs do not.
    let readings = place.resolver().target(Path::new("jump/../LocalGPT.md")).unwrap();
    assert_eq!(readings.literal.path, place.path.join("far/away/LocalGPT.md"));
    assert_eq!(readings.cleaned.unwrap().path, place.path.join("LocalGPT.md"));
    let plain = place.resolver().target(Path::new("sub/../LocalGPT.md")).unwrap();
    assert_eq!(plain.cleaned, None);
}

#[test]
fn what_only_the_agent_knows_is_said() {
    let place = workspace();
    for (path, number) in
        [("/dev/fd/3", 3), ("/proc/self/fd/9", 9), ("/dev/stdin", 0), ("/dev/stderr", 2)]
    {
        if Path::new("/dev/stdin").is_symlink() || !path.contains("std") {
            assert_eq!(place.target(path).kind, FileKind::Descriptor(number), "{path}");
        }
    }
    let own = place.resolver().target(Path::new("/proc/self/exe"));
    assert!(matches!(own, Err(ResolveError::OwnProcess { .. })));
    assert_eq!(place.target("/proc/self/environ").path, Path::new("/proc/self/environ"));
    // Out of the agent's own part again.
    assert_eq!(place.target("/proc/self/../version").path, Path::new("/proc/version"));

    // An open file of another process is the file, under whatever name it is open.
    let pid = std::process::id();
    let policy = place.path.join("LocalGPT.md");
    let open = fs::File::open(&policy).unwrap();
    let facts = place.target(&format!("/proc/{pid}/fd/{}", open.as_raw_fd()));
    assert_eq!((facts.path, facts.identity), (policy.clone(), identity(&policy)));
    let gone = place.path.join("gone");
    let open = fs::File::create(&gone).unwrap();
    fs::remove_file(&gone).unwrap();
    let path = format!("/proc/{pid}/fd/{}", open.as_raw_fd());
    let error = place.resolver().target(Path::new(&path)).unwrap_err();
    assert!(matches!(error, ResolveError::OwnProcess { .. }), "{error}");
    // The text of the link is no longer the file that is open.
    fs::write(&gone, "another").unwrap();
    assert!(place.resolver().target(Path::new(&path)).is_err());
}

#[test]
fn hostile_paths_are_errors() {
    let place = workspace();
    let target = |path: &Path| place.resolver().target(path);
    assert!(matches!(target(Path::new("")), Err(ResolveError::Empty)));
    assert!(matches!(target(OsStr::from_bytes(b"a\0b").as_ref()), Err(ResolveError::ZeroByte)));
    assert!(matches!(target(Path::new("loop-a")), Err(ResolveError::Loop { .. })));
    assert!(matches!(target(Path::new("loop-a/x")), Err(ResolveError::Loop { .. })));
    assert!(matches!(
        target(Path::new("me")),
        Err(ResolveError::Loop { .. } | ResolveError::TooLong)
    ));
    let long = "x/".repeat(40_000);
    assert!(matches!(target(Path::new(&long)), Err(ResolveError::TooLong)));
    let many = "./".repeat(5000);
    assert!(matches!(target(Path::new(&many)), Err(ResolveError::TooLong)));
    let name = "n".repeat(300);
    assert!(matches!(target(Path::new(&name)), Err(ResolveError::System { .. })));
    assert!(matches!(Resolver::new(Path::new("relative")), Err(ResolveError::Base { .. })));
    assert!(matches!(Resolver::new(&place.path.join("link")), Err(ResolveError::Base { .. })));
    for error in [target(Path::new("loop-a")).unwrap_err(), target(Path::new("")).unwrap_err()] {
        assert!(error.to_string().contains("; "), "says what to do: {error}");
    }
    // A name that is no text is a name.
    let name = OsStr::from_bytes(b"\xff\xfe");
    fs::write(place.path.join(name), "").unwrap();
    assert_eq!(target(name.as_ref()).unwrap().literal.path, place.path.join(name));
}

#[test]
fn links_of_links_grow_no_further() {
    let place = Place::new();
    // Each leads twice through the next: two to the power of forty steps, if they were all made.
    for number in 0..39 {
        let next = number + 1;
        symlink(format!("l{next}/../l{next}"), place.path.join(format!("l{number}"))).unwrap();
    }
    fs::create_dir(place.path.join("l39")).unwrap();
    let start = std::time::Instant::now();
    assert!(place.resolver().target(Path::new("l0")).is_err());
    assert!(start.elapsed().as_secs() < 20);
}

/// Whoever changes the tree meanwhile gets an error or an answer that was true.
#[test]
fn a_tree_that_changes_gives_no_wrong_answer() {
    let place = Place::new();
    let at = |name: &str| place.path.join(name);
    for folder in ["one", "two"] {
        fs::create_dir(at(folder)).unwrap();
        fs::write(at(folder).join("file"), folder).unwrap();
    }
    symlink("one", at("link-one")).unwrap();
    symlink("two", at("link-two")).unwrap();
    fs::create_dir(at("real")).unwrap();
    fs::write(at("real/file"), "real").unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let order = std::sync::atomic::Ordering::Relaxed;
    let allowed: Vec<(PathBuf, Option<Identity>)> = ["one/file", "two/file", "real/file"]
        .iter()
        .map(|name| (at(name), identity(&at(name))))
        .collect();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(order) {
                for name in ["link-one", "link-two", "real"] {
                    let _ = fs::rename(at(name), at("now"));
                    let _ = fs::rename(at("now"), at(name));
                }
            }
        });
        let resolver = place.resolver();
        for _ in 0..3000 {
            let Ok(readings) = resolver.target(Path::new("now/file")) else { continue };
            let facts = readings.literal;
            if facts.kind == FileKind::Missing {
                continue;
            }
            let real = facts.identity == allowed[2].1;
            assert!(real || allowed.contains(&(facts.path.clone(), facts.identity)), "{facts:?}");
        }
        stop.store(true, order);
    });
}

/// Names that a file system takes for one are one by identity.
#[test]
fn other_cases_are_the_file_where_the_system_says_so() {
    let place = Place::new();
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "casefold", "none"])
        .arg(&place.path)
        .output()
        .is_ok_and(|output| output.status.success());
    let folder = place.path.join("folded");
    let folded = mounted
        && fs::create_dir(&folder).is_ok()
        && std::process::Command::new("chattr")
            .arg("+F")
            .arg(&folder)
            .status()
            .is_ok_and(|status| status.success());
    if folded {
        fs::write(folder.join("LocalGPT.md"), "").unwrap();
        let facts = place.target("folded/LOCALgpt.md");
        assert_eq!(facts.identity, identity(&folder.join("LocalGPT.md")));
    } else {
        super::shared::skip("a tmpfs that folds cases", "other_cases_are_the_file");
    }
    if mounted {
        let _ = std::process::Command::new("umount").arg(&place.path).status();
    }
}

/// What a random tree is made of.
#[derive(Debug, Clone)]
enum Made {
    File,
    Folder,
    Link(String),
    HardLink(String),
}

fn path() -> impl Strategy<Value = String> {
    let part = proptest::sample::select(vec!["a", "b", "c", ".", "..", "", "A"]);
    (any::<bool>(), proptest::collection::vec(part, 1..7))
        .prop_map(|(slash, parts)| parts.join("/") + if slash { "/" } else { "" })
        .prop_filter("a path", |path| !path.is_empty() && !path.starts_with('/'))
}

fn tree() -> impl Strategy<Value = Vec<(String, Made)>> {
    let name = proptest::collection::vec(proptest::sample::select(vec!["a", "b", "c"]), 1..4)
        .prop_map(|parts| parts.join("/"));
    let made = prop_oneof![
        Just(Made::File),
        Just(Made::Folder),
        Just(Made::Folder),
        path().prop_map(Made::Link),
        path().prop_map(Made::HardLink),
    ];
    proptest::collection::vec((name, made), 0..14)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Where the system resolves a path, so do we, to the same file.
    #[test]
    fn agrees_with_the_system(tree in tree(), paths in proptest::collection::vec(path(), 1..12)) {
        let place = Place::new();
        let root = place.path.join("root/inner");
        fs::create_dir_all(&root).unwrap();
        for (name, made) in &tree {
            let at = root.join(name);
            let _ = match made {
                Made::File => fs::write(&at, ""),
                Made::Folder => fs::create_dir_all(&at),
                Made::Link(text) => symlink(text, &at),
                Made::HardLink(text) => fs::hard_link(root.join(text), &at),
            };
        }
        let resolver = Resolver::new(&root).unwrap();
        for path in &paths {
            let ours = resolver.target(Path::new(path));
            if let Ok(system) = root.join(path).canonicalize() {
                let ours = ours.unwrap().literal;
                prop_assert_eq!(&ours.path, &system, "{}", path);
                prop_assert_eq!(ours.identity, identity(&system));
                let above: Vec<Option<Identity>> = system.ancestors().skip(1).map(identity).collect();
                let noted: Vec<Option<Identity>> = ours.ancestors.iter().rev().map(|id| Some(*id)).collect();
                prop_assert_eq!(noted, above);
            }
            let entry = resolver.entry(Path::new(path));
            if let Ok(data) = fs::symlink_metadata(root.join(path)) && !path.ends_with(['/', '.']) {
                let entry = entry.unwrap().literal;
                prop_assert_eq!(entry.identity.map(|id| id.inode), Some(data.ino()), "{}", path);
                prop_assert_eq!(entry.links.max(1), if data.is_dir() { 1 } else { data.nlink() });
            }
        }
    }
}
