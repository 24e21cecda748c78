//! The git store: what real git says of it, hostile bytes in it, and what crashes leave.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use proptest::prelude::*;
use tempfile::TempDir;
use wardkeep_evidence::hash::BlobHash;
use wardkeep_identity::config::Config;
use wardkeep_identity::history::{
    Change, Committed, Content, Damage, FileVersion, History, HistoryError, LeftOut, Revision,
};
use wardkeep_identity::level::Level;
use wardkeep_identity::name::Name;

use crate::lab::{Scene, cpu, skip};

const TIME: i64 = 1_788_000_000;

struct Place {
    folder: TempDir,
    history: History,
}

impl Place {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let history = History::open_or_create(&folder.path().join("git")).unwrap();
        Self { folder, history }
    }

    fn git_dir(&self) -> PathBuf {
        self.folder.path().join("git")
    }

    fn commit(&self, files: &[(&str, Option<&str>)], message: &str) -> Committed {
        let names: Vec<Name> = files.iter().map(|(path, _)| name(path)).collect();
        let changes: Vec<Change<'_>> = names
            .iter()
            .zip(files)
            .map(|(name, (_, text))| Change {
                name,
                content: text.map(|text| Content { bytes: text.as_bytes(), is_executable: false }),
            })
            .collect();
        self.history.commit(&changes, message, TIME).unwrap()
    }

    fn read(&self, path: &str, revision: &str) -> Result<String, HistoryError> {
        let version = self.history.read(&name(path), &revision.parse::<Revision>()?)?;
        Ok(String::from_utf8(version.bytes).unwrap())
    }

    /// What real git answers; `None` where there is none.
    fn git(&self, test: &str, arguments: &[&str]) -> Option<String> {
        let output = Command::new("git")
            .arg("--git-dir")
            .arg(self.git_dir())
            .args(arguments)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .current_dir("/")
            .output();
        let Ok(output) = output else {
            skip("git", test);
            return None;
        };
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {text}{errors}");
        Some(format!("{text}{errors}"))
    }

    fn objects(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for folder in fs::read_dir(self.git_dir().join("objects")).unwrap() {
            let path = folder.unwrap().path();
            let is_of_objects = path.file_name().is_some_and(|name| name.len() == 2);
            if is_of_objects && path.is_dir() {
                found.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
            }
        }
        found.sort();
        found
    }

    fn object(&self, id: &str) -> PathBuf {
        self.git_dir().join("objects").join(&id[..2]).join(&id[2..])
    }

    fn head(&self) -> String {
        let text = fs::read_to_string(self.git_dir().join("refs/heads/main")).unwrap();
        text.trim_end().to_owned()
    }
}

fn name(path: &str) -> Name {
    Name::new(path.as_bytes()).unwrap()
}

#[test]
fn versions_are_kept_and_read_back() {
    let place = Place::new();
    assert!(place.history.log(None, 10).unwrap().entries.is_empty());
    assert!(place.commit(&[], "nothing").commit.is_none());
    let files = [("SOUL.md", Some("one")), ("memory/a.md", Some("a")), ("memory/b.md", Some("b"))];
    assert!(place.commit(&files, "soulguard: initial commit").commit.is_some());
    assert!(place.commit(&[("SOUL.md", Some("two"))], "second").commit.is_some());
    assert!(place.commit(&[("SOUL.md", Some("two"))], "the same").commit.is_none());
    assert!(place.commit(&[("memory/a.md", None)], "third").commit.is_some());
    assert!(place.commit(&[("SOUL.md", Some("three"))], "fourth").commit.is_some());
    let log = place.history.log(None, 10).unwrap();
    let messages: Vec<&str> = log.entries.iter().map(|entry| entry.message.as_str()).collect();
    assert_eq!(messages, ["fourth\n", "third\n", "second\n", "soulguard: initial commit\n"]);
    assert!(log.entries.iter().all(|entry| entry.time == TIME && entry.file.is_none()));
    let log = place.history.log(Some(&name("memory/a.md")), 10).unwrap();
    let messages: Vec<&str> = log.entries.iter().map(|entry| entry.message.as_str()).collect();
    assert_eq!(messages, ["third\n", "soulguard: initial commit\n"]);
    assert_eq!(log.entries[0].file, Some(FileVersion::Removed));
    assert!(matches!(log.entries[1].file, Some(FileVersion::There { .. })));
    let log = place.history.log(Some(&name("SOUL.md")), 2).unwrap();
    assert_eq!((log.entries.len(), log.more), (2, true));
    assert_eq!(place.read("SOUL.md", "-0").unwrap(), "three");
    assert_eq!(place.read("SOUL.md", "-1").unwrap(), "two");
    assert_eq!(place.read("SOUL.md", "-2").unwrap(), "one");
    assert!(matches!(place.read("SOUL.md", "-3"), Err(HistoryError::TooFar)));
    assert_eq!(place.read("SOUL.md", "~1").unwrap(), "two");
    assert_eq!(place.read("memory/a.md", "~2").unwrap(), "a");
    assert!(matches!(place.read("memory/a.md", "~1"), Err(HistoryError::NotThere { .. })));
    assert!(matches!(place.read("memory", "~1"), Err(HistoryError::NotThere { .. })));
    assert!(matches!(place.read("SOUL.md/x", "~1"), Err(HistoryError::NotThere { .. })));
    let second = place.history.log(None, 10).unwrap().entries[2].commit.to_string();
    assert_eq!(place.read("SOUL.md", &second).unwrap(), "two");
    assert_eq!(place.read("SOUL.md", &second[..12].to_uppercase()).unwrap(), "two");
    assert!(matches!(place.read("SOUL.md", "00000000"), Err(HistoryError::Unknown(_))));
    for bad in ["", "-", "~", "-x", "~-1", "abc", "main", "HEAD", "-9999999", "\u{1b}[2J", "g000"] {
        assert!(matches!(place.read("SOUL.md", bad), Err(HistoryError::Revision(_))), "{bad}");
    }
}

#[test]
fn what_a_workspace_keeps_is_recorded_from_its_own_copies() {
    let scene = Scene::bare(TempDir::new().unwrap(), Level::User);
    let made = scene.open().set_up(&Config::new([]), &|_| {}).unwrap();
    let place = Place::new();
    let workspace = scene.open();
    let first = place.history.commit_versions(&workspace, &made.versions, "first", TIME).unwrap();
    assert!(first.commit.is_some() && first.left_out.is_empty(), "{first:?}");
    assert_eq!(place.read("SOUL.md", "-0").unwrap(), "# My Soul\n");
    let again = place.history.commit_versions(&workspace, &made.versions, "again", TIME).unwrap();
    assert!(again.commit.is_none());
    // What is gone, and what cannot be read, are told apart.
    let mut gone = made.versions[0].clone();
    gone.hash = None;
    let mut lost = made.versions[1].clone();
    lost.hash = Some(BlobHash([7; 32]));
    let next = place.history.commit_versions(&workspace, &[gone.clone(), lost.clone()], "x", TIME);
    let next = next.unwrap();
    assert_eq!(next.left_out, [(lost.name.clone(), LeftOut::Unreadable)]);
    let newest = Revision::Commits(0);
    assert!(place.history.read(&gone.name, &newest).is_err());
    assert!(place.history.read(&lost.name, &newest).is_ok(), "the last one that was kept stays");
}

#[test]
fn real_git_finds_nothing_wrong() {
    let test = "real_git_finds_nothing_wrong";
    let place = Place::new();
    // In git's order `a.b` comes before the folder `a`, which comes before `a0`.
    let files = [
        ("a/x", Some("1")),
        ("a.b", Some("2")),
        ("a0", Some("3")),
        ("a/b/c/d", Some("4")),
        ("empty", Some("")),
        ("-rf", Some("5")),
        ("new\nline", Some("6")),
        ("größe 🦀", Some("7")),
    ];
    place.commit(&files, "first\n\nbody with \u{1b}[2J in it");
    place.commit(&[("a/x", None), ("a0", Some("33"))], "second");
    let raw = Name::new(b"not\xffutf8").unwrap();
    let bytes = [0_u8, 159, 146, 150];
    let change =
        Change { name: &raw, content: Some(Content { bytes: &bytes, is_executable: true }) };
    place.history.commit(&[change], "third", TIME + 60).unwrap();
    let Some(found) = place.git(test, &["fsck", "--strict", "--full"]) else { return };
    assert!(!found.contains("error") && !found.contains("warning"), "{found}");
    let log = place.git(test, &["log", "--format=%an <%ae> %cn <%ce> %at %s"]).unwrap();
    let who = "SoulGuardian <soulguardian@soulguard.ai>";
    let expected = format!(
        "{who} {who} {} third\n{who} {who} {TIME} second\n{who} {who} {TIME} first\n",
        TIME + 60
    );
    assert_eq!(log, expected);
    assert!(!place.git(test, &["log", "--format=%B"]).unwrap().contains('\u{1b}'));
    let listed =
        place.git(test, &["ls-tree", "-r", "-z", "--format=%(objectmode) %(path)", "HEAD"]);
    let listed = listed.unwrap();
    for line in
        ["100644 a.b", "100644 a/b/c/d", "100644 a0", "100644 empty", "100644 \"new\\nline\""]
    {
        assert!(listed.split('\0').any(|one| one == line), "{line} in {listed:?}");
    }
    assert!(listed.contains("100755 \"not"), "{listed:?}");
    assert!(!listed.contains("a/x"));
    assert_eq!(place.git(test, &["show", "HEAD:a0"]).unwrap(), "33");
    let version = place.history.read(&raw, &Revision::Versions(0)).unwrap();
    assert_eq!((version.bytes.as_slice(), version.is_executable), (&bytes[..], true));
    // Its housekeeping leaves everything where it is read.
    let objects = place.objects();
    let mut gc = Command::new("git");
    gc.arg("--git-dir").arg(place.git_dir()).args(["gc", "--prune=now"]).current_dir("/");
    gc.output().unwrap();
    place.git(test, &["pack-refs", "--all"]);
    assert!(!place.git_dir().join("refs/heads/main").exists());
    assert_eq!(place.objects(), objects);
    assert_eq!(place.read("a0", "-1").unwrap(), "3");
    place.commit(&[("a0", Some("333"))], "fourth");
    assert_eq!(place.history.log(None, 9).unwrap().entries.len(), 4);
    assert_eq!(place.read("a0", "-2").unwrap(), "3");
}

#[test]
fn a_file_can_become_a_folder_and_back() {
    let place = Place::new();
    place.commit(&[("a", Some("file")), ("b/c", Some("in b"))], "first");
    place.commit(&[("a", None), ("a/b", Some("below"))], "to a folder");
    assert_eq!(place.read("a/b", "-0").unwrap(), "below");
    assert!(matches!(place.read("a", "~0"), Err(HistoryError::NotThere { .. })));
    place.commit(&[("a", Some("again")), ("a/b", None)], "back");
    assert_eq!(place.read("a", "-0").unwrap(), "again");
    // Without a word about what was in it.
    place.commit(&[("b", Some("now a file"))], "replaced");
    assert_eq!(place.read("b", "~0").unwrap(), "now a file");
    place.commit(&[("b/c", Some("in b again"))], "and back");
    assert_eq!(place.read("b/c", "~0").unwrap(), "in b again");
    // To delete what is not there is nothing.
    assert!(
        place.commit(&[("x/y/z", None), ("b/c/d", None), ("b", None)], "none").commit.is_none()
    );
    let both = [name("d"), name("d/e")];
    let content = Some(Content { bytes: b"x", is_executable: false });
    let changes: Vec<Change<'_>> = both.iter().map(|name| Change { name, content }).collect();
    let result = place.history.commit(&changes, "both", TIME);
    assert!(matches!(result, Err(HistoryError::Conflict(_))), "{result:?}");
    place.git("a_file_can_become_a_folder_and_back", &["fsck", "--strict", "--full"]);
}

#[test]
fn what_git_reserves_is_left_out_and_named() {
    let place = Place::new();
    let deep = vec!["d"; 300].join("/");
    let reserved = [
        ".git",
        ".git/hooks/pre-commit",
        "a/.GIT/config",
        "git~1/x",
        ".git\u{200c}/x",
        ".g\u{200c}it",
        ".git.",
        ".git /x",
        "a\\.git",
        "x\\.GIT\\y",
    ];
    let files: Vec<(&str, Option<&str>)> = reserved
        .iter()
        .chain([&deep.as_str(), &".gitignore", &".github/x", &"a.git"])
        .map(|path| (*path, Some("x")))
        .collect();
    let committed = place.commit(&files, "first");
    let left: Vec<LeftOut> = committed.left_out.iter().map(|(_, why)| *why).collect();
    assert_eq!(left.len(), reserved.len() + 1, "{committed:?}");
    assert_eq!(left.iter().filter(|why| **why == LeftOut::TooDeep).count(), 1);
    assert_eq!(place.read(".gitignore", "-0").unwrap(), "x");
    assert_eq!(place.read("a.git", "-0").unwrap(), "x");
    place.git("what_git_reserves_is_left_out_and_named", &["fsck", "--strict", "--full"]);
}

#[test]
fn a_torn_object_is_reported_and_stops_nobody() {
    let place = Place::new();
    place.commit(&[("SOUL.md", Some("one")), ("memory/a.md", Some("a"))], "first");
    place.commit(&[("SOUL.md", Some("two"))], "second");
    let log = place.history.log(Some(&name("SOUL.md")), 9).unwrap();
    let Some(FileVersion::There { blob, .. }) = &log.entries[0].file else { panic!("{log:?}") };
    // A torn version of a file: the others can be read, and writing it again mends it.
    let path = place.object(blob);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    assert!(matches!(place.read("SOUL.md", "-0"), Err(HistoryError::Damaged(_))));
    assert_eq!(place.read("SOUL.md", "-1").unwrap(), "one");
    place.commit(&[("other.md", Some("x"))], "third");
    place.commit(&[("copy.md", Some("two"))], "fourth");
    assert_eq!(place.read("SOUL.md", "-0").unwrap(), "two");
    // A torn folder: the commit goes on without it, and says so.
    let tree =
        place.git("a_torn_object_is_reported_and_stops_nobody", &["rev-parse", "HEAD:memory"]);
    let Some(tree) = tree else { return };
    fs::write(place.object(tree.trim()), b"").unwrap();
    let committed = place.commit(&[("memory/b.md", Some("b"))], "fifth");
    assert_eq!(committed.damage, [Damage::Object(tree.trim().to_owned())]);
    assert_eq!(place.read("memory/b.md", "-0").unwrap(), "b");
    // A torn commit: what follows begins anew, and the list ends there.
    let torn = place.head();
    place.commit(&[("SOUL.md", Some("three"))], "sixth");
    fs::write(place.object(&torn), b"x").unwrap();
    let log = place.history.log(None, 9).unwrap();
    assert_eq!((log.entries.len(), log.damage), (1, Some(Damage::Object(torn.clone()))));
    assert_eq!(place.read("SOUL.md", "-0").unwrap(), "three");
    fs::remove_file(place.object(&place.head())).unwrap();
    let committed = place.commit(&[("SOUL.md", Some("four"))], "seventh");
    assert!(matches!(committed.damage[..], [Damage::Missing(_)]), "{committed:?}");
    assert_eq!(place.history.log(None, 9).unwrap().entries.len(), 1);
    assert_eq!(place.read("SOUL.md", "-0").unwrap(), "four");
}

#[test]
fn a_reference_with_junk_in_it_is_reported_and_stops_nobody() {
    let place = Place::new();
    let path = place.git_dir().join("refs/heads/main");
    let good = {
        place.commit(&[("SOUL.md", Some("one"))], "first");
        place.head()
    };
    let junk: Vec<Vec<u8>> = vec![
        b"".to_vec(),
        b"\n".to_vec(),
        b"ref: refs/heads/main\n".to_vec(),
        good.as_bytes()[..40].to_vec(),
        format!("{good} {good}\n").into_bytes(),
        vec![0; 64],
        vec![b'a'; 1 << 20],
        good.replace('a', "\u{e9}").into_bytes(),
    ];
    for junk in junk {
        fs::write(&path, &junk).unwrap();
        if junk.is_ascii() && !good.contains('a') && junk.len() == good.len() {
            continue;
        }
        let log = place.history.log(None, 9).unwrap();
        assert_eq!(log.damage, Some(Damage::Reference), "{junk:?}");
        assert!(matches!(place.read("SOUL.md", "-0"), Err(HistoryError::Damaged(_))));
        let committed = place.commit(&[("SOUL.md", Some("again"))], "anew");
        assert_eq!(committed.damage, [Damage::Reference]);
        assert_eq!(place.read("SOUL.md", "-0").unwrap(), "again");
    }
    // One that names no commit, or nothing that is there.
    for id in ["0".repeat(64), "f".repeat(64)] {
        fs::write(&path, format!("{id}\n")).unwrap();
        assert!(matches!(place.history.log(None, 9).unwrap().damage, Some(Damage::Missing(_))));
    }
    let log = {
        fs::write(&path, format!("{good}\n")).unwrap();
        place.history.log(Some(&name("SOUL.md")), 9).unwrap()
    };
    let Some(FileVersion::There { blob, .. }) = &log.entries[0].file else { panic!("{log:?}") };
    fs::write(&path, format!("{blob}\n")).unwrap();
    assert_eq!(place.history.log(None, 9).unwrap().damage, Some(Damage::Object(blob.clone())));
}

#[test]
fn hostile_things_in_the_store_are_never_followed_or_waited_for() {
    let place = Place::new();
    place.commit(&[("SOUL.md", Some("one"))], "first");
    let head = place.head();
    let path = place.object(&head);
    let whole = fs::read(&path).unwrap();
    let secret = place.folder.path().join("secret");
    fs::write(&secret, &whole).unwrap();
    let put = |what: &str, path: &Path| match what {
        "link" => std::os::unix::fs::symlink(&secret, path).unwrap(),
        "pipe" => {
            let mode = rustix::fs::Mode::from_raw_mode(0o600);
            rustix::fs::mkfifoat(rustix::fs::CWD, path, mode).unwrap();
        }
        "folder" => fs::create_dir(path).unwrap(),
        _ => drop(std::os::unix::net::UnixListener::bind(path).unwrap()),
    };
    for what in ["link", "pipe", "folder", "socket"] {
        let _ = fs::remove_file(&path);
        put(what, &path);
        let log = place.history.log(None, 9).unwrap();
        assert_eq!(log.damage, Some(Damage::Object(head.clone())), "{what}");
        if path.is_dir() {
            fs::remove_dir(&path).unwrap();
        }
    }
    let _ = fs::remove_file(&path);
    // A small object that would fill the memory.
    let mut writer = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut writer, b"commit 99999999999\0").unwrap();
    for _ in 0..256 {
        std::io::Write::write_all(&mut writer, &vec![b' '; 1 << 20]).unwrap();
    }
    fs::write(&path, writer.finish().unwrap()).unwrap();
    let before = cpu();
    assert_eq!(place.history.log(None, 9).unwrap().damage, Some(Damage::Object(head)));
    assert!(cpu() - before < 0.5, "it was read to its end");
    fs::write(place.git_dir().join("refs/heads/main"), "").unwrap();
    assert!(place.commit(&[("SOUL.md", Some("two"))], "anew").commit.is_some());
}

#[test]
fn nothing_in_the_store_or_around_is_run() {
    let place = Place::new();
    let proof = place.folder.path().join("ran");
    let script = format!("#!/bin/sh\ntouch {}\n", proof.display());
    let git = place.git_dir();
    fs::create_dir(git.join("hooks")).unwrap();
    for hook in ["pre-commit", "post-commit", "reference-transaction", "post-index-change"] {
        fs::write(git.join("hooks").join(hook), &script).unwrap();
        crate::agent::set_mode(&git.join("hooks").join(hook), 0o755);
    }
    let program = git.join("hooks/pre-commit").display().to_string();
    let config = format!(
        "[core]\n\tfsmonitor = {program}\n\thooksPath = {}\n[filter \"x\"]\n\tclean = {program}\n\
         [gpg]\n\tprogram = {program}\n[commit]\n\tgpgsign = true\n",
        git.join("hooks").display()
    );
    fs::write(git.join("config"), config).unwrap();
    place.commit(&[(".gitattributes", Some("* filter=x\n")), ("a", Some("b"))], "first");
    assert_eq!(place.read("a", "-0").unwrap(), "b");
    assert!(!proof.exists());
}

#[test]
fn what_a_crash_leaves_is_passed_over() {
    let place = Place::new();
    place.commit(&[("SOUL.md", Some("one"))], "first");
    // Temporary files of any state, and objects that nothing names.
    let objects = place.git_dir().join("objects");
    for number in 0..20 {
        fs::write(objects.join(format!("tmp_obj_wardkeep_{number}")), b"torn").unwrap();
    }
    fs::write(place.git_dir().join("wardkeep.new"), b"torn").unwrap();
    let many: Vec<String> = (0..40).map(|number| format!("m/{number}")).collect();
    let files: Vec<(&str, Option<&str>)> =
        many.iter().map(|path| (path.as_str(), Some(path.as_str()))).collect();
    place.commit(&files, "many");
    assert_eq!(place.read("m/39", "-0").unwrap(), "m/39");
    let left: Vec<_> = fs::read_dir(&objects)
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().path().is_file())
        .collect();
    assert!(left.is_empty(), "{left:?}");
    // A store that was begun and has no head yet is finished.
    let folder = place.folder.path().join("begun");
    fs::create_dir_all(folder.join("objects")).unwrap();
    let begun = History::open_or_create(&folder).unwrap();
    assert!(begun.log(None, 1).unwrap().entries.is_empty());
    place.git("what_a_crash_leaves_is_passed_over", &["fsck", "--strict", "--full"]);
}

#[test]
fn objects_are_whole_before_the_reference_moves() {
    // A commit that fails half-way leaves the reference where it was.
    let place = Place::new();
    place.commit(&[("SOUL.md", Some("one"))], "first");
    let before = place.head();
    for number in 0..=255 {
        let path = place.git_dir().join(format!("objects/{number:02x}"));
        if !path.exists() {
            fs::write(path, "in the way").unwrap();
        }
    }
    let file = name("SOUL.md");
    let content = Some(Content { bytes: b"two", is_executable: false });
    let result = place.history.commit(&[Change { name: &file, content }], "second", TIME);
    assert!(result.is_err(), "{result:?}");
    assert_eq!(place.head(), before);
    assert_eq!(place.read("SOUL.md", "-0").unwrap(), "one");
}

/// The process that is killed: commits without end and says each one.
#[test]
#[ignore = "started by `a_killed_writer_leaves_a_whole_history`"]
fn writer_without_end() {
    let Some(folder) = std::env::var_os("WARDKEEP_TEST_HISTORY") else { return };
    let history = History::open_or_create(Path::new(&folder)).unwrap();
    let names: Vec<Name> = (0..30).map(|number| name(&format!("m/{number}/x.md"))).collect();
    for round in 0.. {
        let text = format!("{} {round}", std::process::id());
        let content = Some(Content { bytes: text.as_bytes(), is_executable: false });
        // By turns a few files and many, as they are flushed in different ways.
        let count = if round % 2 == 0 { 2 } else { names.len() };
        let changes: Vec<Change<'_>> =
            names[..count].iter().map(|name| Change { name, content }).collect();
        history.commit(&changes, &text, TIME).unwrap();
        println!("made {round}");
    }
}

#[test]
fn a_killed_writer_leaves_a_whole_history() {
    let place = Place::new();
    let mut least = 0;
    for kill in 1..=12 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["history::writer_without_end", "--exact", "--ignored", "--nocapture"])
            .env("WARDKEEP_TEST_HISTORY", place.git_dir())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let made = lines.filter(|line| line.contains("made")).take(kill % 4 + 1).count();
        // Somewhere in the next commit.
        for _ in 0..kill * 20_000 {
            std::hint::spin_loop();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        least += made;
        let log = place.history.log(None, 10_000).unwrap();
        assert_eq!(log.damage, None);
        assert!(log.entries.len() >= least, "{} of {least}", log.entries.len());
        least = log.entries.len();
        let newest = log.entries[0].message.trim_end();
        assert_eq!(place.read("m/1/x.md", "~0").unwrap(), newest);
        assert!(place.commit(&[("after.md", Some(&format!("{kill}")))], "after").damage.is_empty());
        least += 1;
    }
    place.git("a_killed_writer_leaves_a_whole_history", &["fsck", "--strict", "--full"]);
}

#[test]
fn writers_take_turns() {
    let place = Place::new();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let place = &place;
            scope.spawn(move || {
                for number in 0..10 {
                    let text = format!("{writer} {number}");
                    place.commit(&[(&format!("f{writer}"), Some(&text))], &text);
                }
            });
        }
    });
    let log = place.history.log(None, 100).unwrap();
    assert_eq!((log.entries.len(), log.damage), (40, None));
    for writer in 0..4 {
        assert_eq!(place.read(&format!("f{writer}"), "-9").unwrap(), format!("{writer} 0"));
    }
    place.git("writers_take_turns", &["fsck", "--strict", "--full"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Any sequence of changes reads back as a plain map would.
    #[test]
    fn history_is_a_map_with_a_past(
        rounds in proptest::collection::vec(
            proptest::collection::btree_map("[ab](/[ab]){0,3}", proptest::option::of("[xy]{0,3}"), 0..6),
            1..6,
        ),
    ) {
        let place = Place::new();
        let mut now: BTreeMap<String, String> = BTreeMap::new();
        let mut states = Vec::new();
        for round in &rounds {
            let below = |path: &str, other: &str| other.starts_with(&format!("{path}/"));
            let puts: Vec<&String> =
                round.iter().filter(|(_, text)| text.is_some()).map(|(path, _)| path).collect();
            if puts.iter().any(|path| puts.iter().any(|other| below(path, other))) {
                continue;
            }
            for (path, text) in round {
                match text {
                    Some(text) => {
                        now.retain(|other, _| !below(path, other) && !below(other, path));
                        now.insert(path.clone(), text.clone());
                    }
                    None => {
                        now.remove(path);
                    }
                }
            }
            let files: Vec<(&str, Option<&str>)> =
                round.iter().map(|(path, text)| (path.as_str(), text.as_deref())).collect();
            if place.commit(&files, "round").commit.is_some() {
                states.push(now.clone());
            }
        }
        for (back, state) in states.iter().rev().enumerate() {
            for path in ["a", "b", "a/a", "a/b", "b/a", "a/a/a", "a/a/b", "a/b/a", "b/b/b/b"] {
                let found = place.read(path, &format!("~{back}")).ok();
                prop_assert_eq!(found.as_ref(), state.get(path), "{} {}", path, back);
            }
        }
    }

    /// Bytes of any kind in place of any object end in an answer.
    #[test]
    fn hostile_bytes_end_in_an_answer(
        which in any::<prop::sample::Index>(),
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        header in prop::sample::select(vec!["commit ", "tree ", "blob ", "tag ", ""]),
        is_packed in any::<bool>(),
    ) {
        let place = Place::new();
        place.commit(&[("a/b", Some("1")), ("c", Some("2"))], "first");
        place.commit(&[("a/b", Some("3"))], "second");
        let objects = place.objects();
        let path = &objects[which.index(objects.len())];
        let body = if header.is_empty() {
            bytes.clone()
        } else {
            [format!("{header}{}\0", bytes.len()).as_bytes(), &bytes[..]].concat()
        };
        let written = if is_packed {
            let mut writer = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
            std::io::Write::write_all(&mut writer, &body).unwrap();
            writer.finish().unwrap()
        } else {
            body
        };
        fs::write(path, written).unwrap();
        let _ = place.history.log(None, 9).unwrap();
        let _ = place.history.log(Some(&name("a/b")), 9).unwrap();
        for revision in ["-0", "-1", "~0", "~1"] {
            let _ = place.read("a/b", revision);
        }
        prop_assert!(place.commit(&[("a/b", Some("4"))], "third").commit.is_some());
        prop_assert_eq!(place.read("a/b", "~0").unwrap(), "4");
    }
}
