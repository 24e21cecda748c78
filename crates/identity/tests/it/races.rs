//! A hostile thread or process at the same time.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use wardkeep_identity::error::IdentityError;
use wardkeep_identity::level::Level;
use wardkeep_identity::workspace::Workspace;

use crate::lab::{Scene, copy_of_this_program, name, skip};
use crate::owned::{self, AGENT};

const ATTEMPTS: usize = 10_000;
const LONG: Duration = Duration::from_secs(60);
const HOSTILE: &str = "WARDKEEP_TEST_HOSTILE_IN";

/// Writes a file, and does not wait where it is a pipe by now.
fn write(path: &Path, text: impl AsRef<[u8]>) -> std::io::Result<()> {
    let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap();
    let mut options = fs::OpenOptions::new();
    let file = options.write(true).create(true).truncate(true).custom_flags(flags).open(path);
    file?.write_all(text.as_ref())
}

/// What a hostile agent does to staging, round after round. What it calls good, the owner approves.
fn swap_staging(staging: &Path, outside: &Path, round: usize) {
    let soul = staging.join("SOUL.md");
    let aside = staging.join("aside");
    match round % 8 {
        0 | 2 => drop(write(&soul, format!("good {round}\n").repeat(50))),
        1 | 3 => drop(write(&soul, format!("evil {round}\n").repeat(50))),
        4 => {
            let _ = write(&aside, "evil by rename\n");
            let _ = fs::rename(&aside, &soul);
        }
        5 => {
            let _ = symlink(outside.join("secret"), &aside);
            let _ = fs::rename(&aside, &soul);
        }
        6 => {
            let _ = fs::remove_file(&soul);
            let _ = mknodat(CWD, &soul, FileType::Fifo, Mode::from_raw_mode(0o644), 0);
        }
        _ => {
            let _ = fs::remove_file(&soul);
            let _ = write(&soul, format!("good {round}\n").repeat(50));
        }
    }
}

/// What it does to the places of protected files.
fn swap_places(work: &Path, outside: &Path, round: usize) {
    let (soul, aside) = (work.join("SOUL.md"), work.join("aside"));
    let (skills, moved) = (work.join("skills"), work.join("moved"));
    match round % 9 {
        0 => drop(fs::rename(&soul, &aside)),
        1 => drop(write(&soul, "evil in place\n")),
        2 => {
            let _ = fs::remove_file(&aside);
            let _ = symlink(outside.join("secret"), &aside);
            let _ = fs::rename(&aside, &soul);
        }
        3 => drop(fs::rename(&skills, &moved)),
        4 => drop(symlink(outside, &skills)),
        5 => drop(fs::remove_file(&skills)),
        6 => {
            let _ = fs::create_dir(&skills);
            let _ = write(&skills.join("a.md"), "evil in place\n");
        }
        7 => {
            let _ = fs::rename(work.join(".soulguard"), work.join(".away"));
            let _ = symlink(outside, work.join(".soulguard"));
        }
        _ => {
            let _ = fs::remove_file(work.join(".soulguard"));
            let _ = fs::rename(work.join(".away"), work.join(".soulguard"));
        }
    }
}

/// Applies what is good, as often as it comes; what is installed is what was read.
fn apply_good(workspace: &Workspace<'_>, scene: &Scene) -> Option<Vec<u8>> {
    let changes = workspace.changes(&|_| {}).ok()?.only(&[name("SOUL.md")]);
    let bytes = changes.changes.first()?.bytes.clone()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    assert!(!text.contains("secret"), "a link was followed");
    if !text.starts_with("good") || text.contains("evil") {
        return None;
    }
    match workspace.apply(&changes, &changes.hash()) {
        Ok(_) => Some(bytes.to_vec()),
        Err(
            IdentityError::Raced { .. }
            | IdentityError::Drifted { .. }
            | IdentityError::NoStaging
            | IdentityError::Io { .. },
        ) => None,
        Err(error) => panic!("{error} in {}", scene.work().display()),
    }
}

#[test]
fn staging_that_is_swapped_during_apply_installs_no_foreign_byte() {
    let scene = Scene::in_memory(Level::User);
    scene.set_up();
    let stop = AtomicBool::new(false);
    let rounds = AtomicUsize::new(0);
    let mut applied = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let round = rounds.fetch_add(1, Ordering::Relaxed);
                swap_staging(&scene.staging(), &scene.outside(), round);
            }
        });
        let _stop = StopAtEnd(&stop);
        let mut last = scene.read("SOUL.md");
        let workspace = scene.open();
        for _ in 0..ATTEMPTS {
            if let Some(bytes) = apply_good(&workspace, &scene) {
                last = bytes;
                applied += 1;
            }
            assert_eq!(scene.read("SOUL.md"), last);
        }
    });
    assert!(applied > 100, "only {applied} of {ATTEMPTS} were good");
    assert!(rounds.into_inner() > 1000);
    scene.assert_outside();
    scene.open().reset(None).unwrap();
    scene.assert_clean();
    scene.assert_bench_is_empty();
}

#[test]
fn places_that_are_renamed_during_sync_touch_nothing_outside() {
    let scene = Scene::in_memory(Level::User);
    scene.set_up();
    let stop = AtomicBool::new(false);
    let rounds = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let round = rounds.fetch_add(1, Ordering::Relaxed);
                swap_places(&scene.work(), &scene.outside(), round);
            }
        });
        let _stop = StopAtEnd(&stop);
        for attempt in 0..ATTEMPTS {
            let _ = scene.open().sync(&|_| {});
            if attempt.is_multiple_of(100) {
                scene.assert_outside();
            }
        }
    });
    assert!(rounds.into_inner() > 1000);
    scene.assert_outside();
    // Once it is alone, everything is put right.
    let _ = fs::remove_file(scene.work().join(".soulguard"));
    scene.sync();
    scene.sync();
    assert_eq!(scene.text("SOUL.md"), "# My Soul\n");
    assert_eq!(scene.text("skills/a.md"), "skill a\n");
    assert!(scene.look().is_clean(), "{:#?}", scene.look());
}

/// Not a test of its own: the hostile agent, as another user.
#[test]
fn hostile_child() {
    let Some(folder) = std::env::var_os(HOSTILE) else { return };
    let folder = Path::new(&folder);
    let (work, outside) = (folder.join("work"), folder.join("outside"));
    for round in 0.. {
        // Whoever started it ended.
        if rustix::process::getppid().is_none_or(rustix::process::Pid::is_init) {
            return;
        }
        swap_staging(&work.join(".soulguard/staging"), &outside, round);
        swap_places(&work, &outside, round);
    }
}

struct Hostile {
    child: Child,
}

impl Hostile {
    fn start(scene: &Scene) -> Option<Self> {
        let child = Command::new(copy_of_this_program(scene))
            .args(["--exact", "races::hostile_child", "--nocapture"])
            .uid(AGENT)
            .gid(AGENT)
            .env_clear()
            .env(HOSTILE, scene.folder.path())
            .current_dir("/")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        Some(Self { child })
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn another_user_that_swaps_everything_installs_no_foreign_byte() {
    if !owned::possible() {
        return skip("root and the immutable flag", "races");
    }
    for lock in ["immutable", "sticky", "none"] {
        let scene = Scene::in_memory(owned::level(lock));
        owned::hand_over(&scene);
        scene.set_up();
        let (mut applied, mut raced) = (0, 0);
        // Before anyone moves it.
        let mut allowed = scene.read("SOUL.md");
        // Not read: it may be a pipe by then.
        let staged = || {
            let meta = fs::symlink_metadata(scene.staging().join("SOUL.md"));
            meta.and_then(|meta| meta.modified()).ok()
        };
        let before = staged();
        let hostile = Hostile::start(&scene).unwrap();
        let begun = Instant::now();
        while staged() == before {
            assert!(begun.elapsed() < LONG, "{lock}: nobody is hostile");
            std::thread::yield_now();
        }
        let attempts = if lock == "immutable" { ATTEMPTS } else { ATTEMPTS / 10 };
        let workspace =
            Workspace::open(&scene.work(), &scene.state_folder(), scene.level, SystemTime::now())
                .unwrap();
        let begun = Instant::now();
        let mut attempt = 0;
        // Where the other hardly gets to run, it takes more of them.
        while attempt < attempts || (lock != "none" && applied <= 50 && begun.elapsed() < LONG) {
            let done = apply_good(&workspace, &scene);
            let said_so = done.is_some();
            if let Some(bytes) = done {
                allowed = bytes;
                applied += 1;
            }
            if lock != "none" && scene.read("SOUL.md") != allowed {
                // The folder is the other user's: between two steps of an apply that then says that it was raced,
                // its file can be in place. Where it says that it is done, never; and the next look puts it right.
                assert!(!said_so, "{lock}: attempt {attempt}: not what was applied");
                raced += 1;
                let is_right = |_| {
                    let _ = workspace.sync(&|_| {});
                    scene.read("SOUL.md") == allowed
                };
                assert!((0..50).any(is_right), "{lock}: attempt {attempt}: it stayed");
            }
            if lock != "none" {
                assert_eq!(scene.text("skills/a.md"), "skill a\n");
            }
            if attempt.is_multiple_of(10) {
                let _ = workspace.sync(&|_| {});
            }
            if attempt.is_multiple_of(50) {
                let _ = workspace.reset(Some(&[name("SOUL.md")]));
            }
            attempt += 1;
        }
        drop(hostile);
        assert!(lock == "none" || applied > 50, "{lock}: only {applied} of {attempt} were good");
        assert!(raced <= attempt / 10, "{lock}: {raced} of {attempt} were raced");
        scene.assert_outside();
        for path in [scene.outside(), scene.outside().join("secret")] {
            use std::os::unix::fs::MetadataExt as _;
            assert_eq!(fs::metadata(path).unwrap().uid(), 0, "{lock}");
        }
        scene.sync();
        scene.open().reset(None).unwrap();
        scene.sync();
        assert_eq!(scene.read("SOUL.md"), allowed, "{lock}");
        assert_eq!(scene.text("skills/a.md"), "skill a\n", "{lock}");
    }
}

/// Stops the other thread whatever happens to this one.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
