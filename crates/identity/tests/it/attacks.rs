//! What an agent plants, at user level: nothing is followed, nothing is adopted, the rest works on.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use wardkeep_identity::error::IdentityError;
use wardkeep_identity::level::Level;
use wardkeep_identity::name::Name;
use wardkeep_identity::state::{Drift, Status};
use wardkeep_identity::tree::{Kind, Limits};

use crate::lab::{Scene, cpu, name, put, skip, tree};

fn pipe(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o644), 0).unwrap();
}

/// S-1: the agent owns the folder, so it can put another file in the place.
#[test]
fn another_file_in_the_place_is_never_blessed() {
    let scene = Scene::new();
    fs::rename(scene.work().join("SOUL.md"), scene.work().join(".x")).unwrap();
    fs::write(scene.work().join("SOUL.md"), "evil").unwrap();
    fs::set_permissions(
        scene.work().join("SOUL.md"),
        std::os::unix::fs::PermissionsExt::from_mode(0o444),
    )
    .unwrap();
    assert!(matches!(scene.state_of("SOUL.md").drift[..], [Drift::Content { .. }]));
    scene.sync();
    assert_eq!(scene.text("SOUL.md"), "# My Soul\n");
    scene.assert_clean();
}

/// S-3: a folder is replaced.
#[test]
fn another_folder_in_the_place_is_put_right() {
    let scene = Scene::new();
    fs::write(scene.outside().join("a.md"), "outside").unwrap();
    fs::rename(scene.work().join("skills"), scene.work().join("moved")).unwrap();
    symlink(scene.outside(), scene.work().join("skills")).unwrap();
    let state = scene.state_of("skills/a.md");
    assert_eq!(state.status, Status::Drifted);
    assert_eq!(state.drift, [Drift::Folder { at: name("skills"), found: Kind::Link }]);
    scene.propose("skills/a.md", "new");
    let error = scene.apply().unwrap_err();
    assert!(matches!(error, IdentityError::Drifted { .. }), "{error}");
    assert_eq!(fs::read(scene.outside().join("a.md")).unwrap(), b"outside");
    scene.sync();
    assert_eq!(scene.text("skills/a.md"), "skill a\n");
    assert_eq!(scene.text("skills/deep/b.md"), "skill b\n");
    assert_eq!(fs::read(scene.outside().join("a.md")).unwrap(), b"outside");
    fs::remove_file(scene.outside().join("a.md")).unwrap();
    scene.apply().unwrap();
    assert_eq!(scene.text("skills/a.md"), "new");
    scene.assert_clean();
    scene.assert_outside();

    // By a folder that holds other files, and by a file.
    fs::rename(scene.work().join("skills"), scene.work().join("moved2")).unwrap();
    scene.write("skills/a.md", "evil");
    scene.write("skills/z.md", "added");
    scene.sync();
    assert_eq!(scene.text("skills/a.md"), "new");
    assert_eq!(scene.status("skills/z.md"), Status::Pending);
    fs::remove_dir_all(scene.work().join("skills")).unwrap();
    scene.write("skills", "a file");
    scene.sync();
    scene.assert_clean();
    assert!(scene.quarantined().contains(&("skills".to_owned(), b"a file".to_vec())));
}

/// S-3: our own folder, and staging.
#[test]
fn our_own_folder_leads_nowhere() {
    let scene = Scene::new();
    for planted in ["link", "file", "inner link"] {
        let own = scene.work().join(".soulguard");
        fs::rename(&own, scene.folder.path().join(planted)).unwrap();
        match planted {
            "link" => symlink(scene.outside(), &own).unwrap(),
            "file" => fs::write(&own, "").unwrap(),
            _ => {
                fs::create_dir(&own).unwrap();
                symlink(scene.outside(), own.join("staging")).unwrap();
                symlink(scene.outside(), own.join("work")).unwrap();
                symlink(scene.outside(), own.join("replaced")).unwrap();
            }
        }
        let error = scene.open().changes(&|_| {}).unwrap_err();
        assert!(matches!(error, IdentityError::NoStaging), "{planted}: {error}");
        scene.write("SOUL.md", "evil");
        scene.sync();
        assert_eq!(scene.text("SOUL.md"), "# My Soul\n");
        scene.open().reset(None).unwrap();
        assert!(scene.changes().is_empty());
        scene.propose("SOUL.md", "new");
        scene.apply().unwrap();
        scene.propose("SOUL.md", "# My Soul\n");
        scene.apply().unwrap();
        scene.assert_outside();
    }
}

/// S-3: the workspace itself is replaced while it is open.
#[test]
fn another_workspace_in_the_place_is_told() {
    let scene = Scene::new();
    scene.propose("SOUL.md", "new");
    let workspace = scene.open();
    let changes = workspace.changes(&|_| {}).unwrap();
    fs::rename(scene.work(), scene.folder.path().join("away")).unwrap();
    fs::create_dir(scene.work()).unwrap();
    assert!(!workspace.look(&|_| {}).unwrap().in_place);
    for refused in [
        workspace.apply(&changes, &changes.hash()).map(|_| ()),
        workspace.sync(&|_| {}).map(|_| ()),
        workspace.reset(None).map(|_| ()),
        workspace.protect(&[name("other.txt")]).map(|_| ()),
    ] {
        assert!(matches!(refused, Err(IdentityError::Moved { .. })), "{refused:?}");
    }
    assert_eq!(fs::read(scene.folder.path().join("away/SOUL.md")).unwrap(), b"# My Soul\n");
    assert_eq!(fs::read_dir(scene.work()).unwrap().count(), 0);
}

/// S-4, S-7: what is no plain file of one name is no proposal, and no deletion.
#[test]
fn staging_is_refused_where_it_is_no_plain_file() {
    let scene = Scene::new();
    let secret = scene.outside().join("secret");
    let soul = scene.staging().join("SOUL.md");
    type Plant<'a> = (&'static str, Box<dyn Fn() + 'a>);
    let plants: Vec<Plant<'_>> = vec![
        ("link", Box::new(|| symlink(&secret, &soul).unwrap())),
        ("loop", Box::new(|| symlink("SOUL.md", &soul).unwrap())),
        ("hard link", Box::new(|| fs::hard_link(&secret, &soul).unwrap())),
        ("pipe", Box::new(|| pipe(&soul))),
        ("socket", Box::new(|| drop(UnixListener::bind(&soul).unwrap()))),
        (
            "device",
            Box::new(|| {
                let mode = Mode::from_raw_mode(0o644);
                let null = rustix::fs::makedev(1, 3);
                if mknodat(CWD, &soul, FileType::CharacterDevice, mode, null).is_err() {
                    skip("the right to make devices", "attacks");
                    pipe(&soul);
                }
            }),
        ),
        ("sparse", Box::new(|| fs::File::create(&soul).unwrap().set_len(10 << 30).unwrap())),
        (
            "folder",
            Box::new(|| {
                fs::create_dir(&soul).unwrap();
                fs::write(soul.join("x"), "").unwrap();
            }),
        ),
    ];
    for (what, plant) in plants {
        fs::remove_file(&soul).unwrap();
        plant();
        scene.propose("AGENTS.md", format!("good {what}"));
        let before = cpu();
        let changes = scene.changes();
        assert!(cpu() - before < 0.1, "{what}");
        let words: Vec<&str> = changes.changes.iter().map(|change| change.status()).collect();
        if what == "folder" {
            // A folder in the place of a file is a deletion and a new file, and shown as such.
            assert_eq!(words, ["modified", "deleted", "new"], "{what}");
        } else {
            assert_eq!(words, ["modified"], "{what}");
            assert_eq!(changes.refused.len(), 1, "{what}: {:?}", changes.refused);
        }
        let part = changes.only(&[name("AGENTS.md")]);
        scene.open().apply(&part, &part.hash()).unwrap();
        assert_eq!(scene.text("AGENTS.md"), format!("good {what}"));
        assert_eq!(scene.text("SOUL.md"), "# My Soul\n");
        scene.open().reset(None).unwrap();
        assert!(scene.changes().is_empty(), "{what}");
        assert!(fs::symlink_metadata(&soul).unwrap().is_file(), "{what}");
        scene.assert_outside();
    }
}

/// S-6, S-7: the same in the place of a protected file.
#[test]
fn a_protected_place_is_put_right_whatever_stands_there() {
    let scene = Scene::new();
    let secret = scene.outside().join("secret");
    let soul = scene.work().join("SOUL.md");
    let meta = || {
        let meta = fs::metadata(&secret).unwrap();
        (meta.mode(), meta.uid(), meta.ctime(), meta.ctime_nsec())
    };
    type Plant<'a> = (&'static str, Box<dyn Fn() + 'a>);
    let plants: Vec<Plant<'_>> = vec![
        ("link", Box::new(|| symlink(&secret, &soul).unwrap())),
        ("dangling", Box::new(|| symlink("/nowhere", &soul).unwrap())),
        ("loop", Box::new(|| symlink("SOUL.md", &soul).unwrap())),
        ("pipe", Box::new(|| pipe(&soul))),
        ("socket", Box::new(|| drop(UnixListener::bind(&soul).unwrap()))),
        ("sparse", Box::new(|| fs::File::create(&soul).unwrap().set_len(10 << 30).unwrap())),
        ("empty folder", Box::new(|| fs::create_dir(&soul).unwrap())),
        (
            "full folder",
            Box::new(|| {
                fs::create_dir_all(soul.join("a/b/c")).unwrap();
                fs::write(soul.join("a/b/c/d"), "deep").unwrap();
            }),
        ),
    ];
    for (what, plant) in plants {
        fs::remove_file(&soul).unwrap();
        plant();
        let untouched = meta();
        let before = cpu();
        assert_eq!(scene.status("SOUL.md"), Status::Drifted, "{what}");
        let synced = scene.sync();
        assert!(cpu() - before < 0.1, "{what}");
        assert_eq!(synced.left, [], "{what}");
        assert_eq!(scene.text("SOUL.md"), "# My Soul\n");
        scene.assert_clean();
        scene.assert_outside();
        assert_eq!(meta(), untouched, "{what}");
        scene.assert_bench_is_empty();
    }
    // Nothing was lost.
    let kept = tree(&scene.work().join(".soulguard/replaced"));
    assert!(kept.values().any(|bytes| bytes == b"deep"), "{kept:?}");
    // A second name of a foreign file: its bytes are copied nowhere but into quarantine.
    fs::remove_file(&soul).unwrap();
    fs::hard_link(&secret, &soul).unwrap();
    scene.sync();
    assert_eq!(scene.text("SOUL.md"), "# My Soul\n");
    assert_eq!(fs::metadata(&secret).unwrap().mode() & 0o777, 0o644);
}

/// S-19, row 20: what stands in a protected folder and is no file.
#[test]
fn links_and_pipes_in_a_protected_folder_are_told_and_moved_away() {
    let scene = Scene::new();
    symlink(scene.outside(), scene.work().join("skills/out")).unwrap();
    symlink("a.md", scene.work().join("skills/alias.md")).unwrap();
    pipe(&scene.work().join("skills/pipe"));
    let state = scene.state_of("skills/out");
    assert_eq!(
        (state.status, &state.drift[..]),
        (Status::Drifted, &[Drift::Kind { found: Kind::Link }][..])
    );
    assert_eq!(scene.changes().refused.len(), 3);
    scene.sync();
    scene.assert_clean();
    assert!(fs::symlink_metadata(scene.work().join("skills/out")).is_err());
    scene.assert_outside();
}

#[test]
fn hostile_names_are_names() {
    let scene = Scene::new();
    let long = "n".repeat(255);
    let names: Vec<&[u8]> = vec![
        b"new\nline.md",
        b"\xff\xfe\x80.md",
        b"-rf",
        b"--help",
        b" ",
        b"*",
        b"a\x1b[2Jb.md",
        "🦀🔥.md".as_bytes(),
        "r\u{202e}dm.md".as_bytes(),
        b"%2e%2e",
        b"...",
        b"$(touch x)",
        b"\\x41",
        long.as_bytes(),
    ];
    for bytes in &names {
        put(&scene.staging().join("skills").join(OsStr::from_bytes(bytes)), b"proposed");
        put(&scene.work().join("skills/placed").join(OsStr::from_bytes(bytes)), b"placed");
    }
    let changes = scene.changes();
    assert_eq!(changes.changes.len(), 2 * names.len());
    assert!(changes.refused.is_empty(), "{:?}", changes.refused);
    scene.open().apply(&changes, &changes.hash()).unwrap();
    scene.assert_clean();
    for bytes in &names {
        let place = scene.work().join("skills").join(OsStr::from_bytes(bytes));
        assert_eq!(fs::read(&place).unwrap(), b"proposed");
        fs::remove_file(&place).unwrap();
        fs::write(&place, "evil").unwrap();
    }
    assert_eq!(scene.sync().mended.len(), names.len());
    scene.assert_clean();
    // Each can be named by the owner, and becomes an entry that means exactly it.
    let odd = Name::new(b"odd\xff*\n").unwrap();
    put(&scene.work().join(odd.as_path()), b"odd");
    put(&scene.work().join("oddX"), b"other");
    scene.open().protect(std::slice::from_ref(&odd)).unwrap();
    scene.assert_clean();
    assert_eq!(scene.look().files.iter().filter(|file| file.name == odd).count(), 1);
    let shown = serde_json::to_string(&scene.look()).unwrap();
    assert!(shown.contains("odd%FF*%0A"), "{shown}");
    assert!(!shown.contains('\u{1b}') && !shown.contains("\\u001b"), "{shown}");
}

#[test]
fn deep_and_long_trees_leave_the_rest_alone() {
    let scene = Scene::new();
    for top in [scene.staging().join("skills"), scene.work().join("skills")] {
        let mut folder =
            rustix::fs::open(&top, rustix::fs::OFlags::DIRECTORY, Mode::empty()).unwrap();
        for _ in 0..300 {
            let long = "d".repeat(200);
            rustix::fs::mkdirat(&folder, &long, Mode::from_raw_mode(0o755)).unwrap();
            folder =
                rustix::fs::openat(&folder, &long, rustix::fs::OFlags::DIRECTORY, Mode::empty())
                    .unwrap();
        }
    }
    scene.propose("SOUL.md", "new");
    let before = cpu();
    let changes = scene.changes();
    assert_eq!(scene.look().closed.len(), 1);
    assert!(cpu() - before < 0.1);
    let part = changes.only(&[name("SOUL.md")]);
    scene.open().apply(&part, &part.hash()).unwrap();
    assert_eq!(scene.text("SOUL.md"), "new");
    scene.write("AGENTS.md", "evil");
    assert!(!scene.sync().left.is_empty());
    assert_eq!(scene.text("AGENTS.md"), "Be kind.\n");
}

/// Row 18: a watched file, or any other, is no proposal.
#[test]
fn only_protected_files_are_staged() {
    let scene = Scene::new();
    for path in ["memory/one.md", "other.txt", ".soulguard/staging/x", "x/../../y"] {
        put(&scene.staging().join(path.replace("..", "dots")), b"evil");
    }
    let changes = scene.changes();
    assert!(changes.is_empty());
    assert_eq!(changes.refused.len(), 4);
    let done = scene.apply().unwrap();
    assert!(done.files.is_empty());
    assert_eq!(scene.text("memory/one.md"), "one\n");
    assert_eq!(scene.mode("memory/one.md"), 0o644);
}

/// S-9: between showing and applying, everything that was shown changes.
#[test]
fn the_bytes_that_were_shown_are_those_that_are_installed() {
    let scene = Scene::new();
    scene.propose("SOUL.md", "good");
    scene.propose("skills/new.md", "good too");
    let changes = scene.changes();
    scene.propose("SOUL.md", "evil");
    fs::remove_file(scene.staging().join("skills/new.md")).unwrap();
    symlink(scene.outside().join("secret"), scene.staging().join("skills/new.md")).unwrap();
    scene.open().apply(&changes, &changes.hash()).unwrap();
    assert_eq!(scene.text("SOUL.md"), "good");
    assert_eq!(scene.text("skills/new.md"), "good too");
    // What the agent wrote since is its next proposal.
    assert_eq!(scene.words(), ["modified SOUL.md"]);
    scene.assert_outside();
}

#[test]
fn changes_that_were_altered_in_memory_are_refused() {
    let scene = Scene::new();
    scene.propose("SOUL.md", "good");
    let changes = scene.changes();
    let hash = changes.hash();
    let mut altered = changes.clone();
    altered.changes[0].bytes = Some(Arc::from(&b"evil"[..]));
    assert!(matches!(scene.open().apply(&altered, &hash), Err(IdentityError::Stale { .. })));
    let mut altered = changes.clone();
    altered.changes[0].name = name("other.txt");
    assert!(scene.open().apply(&altered, &altered.hash()).is_err());
    let mut altered = changes.clone();
    altered.changes.push(altered.changes[0].clone());
    assert!(matches!(
        scene.open().apply(&altered, &altered.hash()),
        Err(IdentityError::Stale { .. })
    ));
    let mut altered = changes;
    altered.changes[0].bytes = None;
    assert!(matches!(scene.open().apply(&altered, &hash), Err(IdentityError::Stale { .. })));
    assert_eq!(scene.text("SOUL.md"), "# My Soul\n");
}

/// One of several cannot be installed: none is, the failing one included.
#[test]
fn all_or_nothing() {
    let scene = Scene::new();
    scene.propose("AGENTS.md", "new");
    scene.propose("SOUL.md", "new");
    scene.propose("skills/sub/new.md", "new");
    let changes = scene.changes();
    // A file where a folder is needed.
    scene.write("skills/sub", "in the way");
    let error = scene.open().apply(&changes, &changes.hash()).unwrap_err();
    assert!(matches!(error, IdentityError::Drifted { .. }), "{error}");
    assert_eq!(scene.text("AGENTS.md"), "Be kind.\n");
    assert_eq!(scene.text("SOUL.md"), "# My Soul\n");
    assert_eq!(scene.text("skills/sub"), "in the way");
    assert!(!scene.look().unfinished);
    scene.assert_bench_is_empty();
    assert_eq!(scene.mode("SOUL.md"), 0o444);
}

#[test]
fn too_much_is_refused_and_nothing_is_read() {
    let scene = Scene::new();
    for number in 0..20 {
        scene.propose(&format!("skills/{number}"), vec![b'x'; 1000]);
    }
    let limits = Limits { total: 5000, ..Limits::default() };
    let error = scene.open().with_limits(limits).changes(&|_| {}).unwrap_err();
    assert!(matches!(error, IdentityError::TooMuch { .. }), "{error}");
    let limits = Limits { file: 999, ..Limits::default() };
    let changes = scene.open().with_limits(limits).changes(&|_| {}).unwrap();
    assert!(changes.is_empty());
    assert_eq!(changes.refused.len(), 20);
    assert_eq!(scene.changes().changes.len(), 20);
}

/// The cache believes times that nobody can set, and only those.
#[test]
fn a_changed_file_with_its_old_times_is_seen() {
    let scene = Scene::new();
    std::thread::sleep(std::time::Duration::from_millis(120));
    scene.assert_clean();
    scene.assert_clean();
    let soul = scene.work().join("SOUL.md");
    let before = fs::metadata(&soul).unwrap();
    // Same length, same inode, same modification time.
    let mut open = fs::OpenOptions::new().write(true).open(&soul).unwrap();
    open.write_all(b"# My Evil\n").unwrap();
    open.set_times(fs::FileTimes::new().set_modified(before.modified().unwrap())).unwrap();
    drop(open);
    assert_eq!(fs::metadata(&soul).unwrap().mtime_nsec(), before.mtime_nsec());
    assert_eq!(scene.status("SOUL.md"), Status::Drifted);
}

/// A page that is dirty already can be written through a mapping without a new time.
#[test]
fn a_file_that_is_written_through_a_mapping_is_seen() {
    const SCRIPT: &str = "import mmap,sys
f=open(sys.argv[1],'r+b'); m=mmap.mmap(f.fileno(),0)
m[0:1]=m[0:1]; print('dirty',flush=True); sys.stdin.readline()
m[0:4]=b'evil'; print('evil',flush=True); sys.stdin.readline()
";
    for folder in [tempfile::tempdir().unwrap(), tempfile::tempdir_in("/dev/shm").unwrap()] {
        let scene = Scene::bare(folder, Level::User);
        for number in 0..100 {
            scene.write(&format!("skills/{number}.md"), "same text\n");
        }
        scene.set_up();
        let child = Command::new("python3")
            .args(["-c", SCRIPT])
            .arg(scene.work().join("SOUL.md"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let Ok(mut child) = child else { return skip("python3", "attacks: mapping") };
        let mut said = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(120));
        scene.assert_clean();
        scene.assert_clean();
        let mut tell = child.stdin.take().unwrap();
        tell.write_all(b"\n").unwrap();
        line.clear();
        said.read_line(&mut line).unwrap();
        assert_eq!(line, "evil\n");
        assert_eq!(scene.read("SOUL.md")[..4], *b"evil");
        assert_eq!(scene.status("SOUL.md"), Status::Drifted);
        tell.write_all(b"\n").unwrap();
        child.wait().unwrap();
    }
}

#[test]
fn a_damaged_state_is_an_error_and_restores_nothing() {
    let scene = Scene::new();
    let baseline = scene.state_folder().join("baseline");
    let text = fs::read_to_string(&baseline).unwrap();
    fs::write(&baseline, text.replace("SOUL.md", "SOUL.mb")).unwrap();
    assert!(matches!(scene.open().look(&|_| {}), Err(IdentityError::Damaged { .. })));
    fs::write(&baseline, text).unwrap();
    // An object that was swapped is not installed, and does not keep others from being restored.
    let record = scene.open().record().unwrap();
    let hash = record.baseline.entry(&name("SOUL.md")).unwrap().hash.to_string();
    let object = scene.state_folder().join("objects").join(&hash[..2]).join(&hash[2..]);
    fs::write(&object, "swapped").unwrap();
    scene.write("SOUL.md", "evil");
    scene.write("AGENTS.md", "evil");
    let synced = scene.sync();
    assert_eq!(synced.left.len(), 1, "{synced:?}");
    assert_eq!(scene.text("AGENTS.md"), "Be kind.\n");
    assert_eq!(scene.text("SOUL.md"), "evil");
    assert_eq!(scene.status("SOUL.md"), Status::Drifted);
}
