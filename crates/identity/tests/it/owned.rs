//! The owned level, with a real other user.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use rustix::fs::{Gid, IFlags, Mode, OFlags, Uid, ioctl_getflags, ioctl_setflags};
use wardkeep_identity::error::IdentityError;
use wardkeep_identity::level::Level;
use wardkeep_identity::lock::Lock;
use wardkeep_identity::state::{Drift, Status};

use crate::lab::{Scene, copy_of_this_program, name, skip, tree};

/// Users that no machine has; nothing needs their names.
pub(crate) const GUARDIAN: u32 = 61_001;
pub(crate) const GROUP: u32 = 61_001;
pub(crate) const AGENT: u32 = 61_002;

pub(crate) fn level(word: &str) -> Level {
    let lock = match word {
        "user" => return Level::User,
        "immutable" => Lock::Immutable,
        "sticky" => Lock::Sticky,
        _ => Lock::None,
    };
    Level::Owned {
        guardian: Uid::from_raw(GUARDIAN),
        group: Gid::from_raw(GROUP),
        agent: Uid::from_raw(AGENT),
        agent_group: Gid::from_raw(AGENT),
        lock,
    }
}

pub(crate) fn word(level: Level) -> &'static str {
    match level {
        Level::User => "user",
        Level::Owned { lock: Lock::Immutable, .. } => "immutable",
        Level::Owned { lock: Lock::Sticky, .. } => "sticky",
        Level::Owned { lock: Lock::None, .. } => "none",
    }
}

/// Whether this process may do what a guardian does, in the place where tests lie.
pub(crate) fn possible() -> bool {
    let folder = if Path::new("/dev/shm").is_dir() { "/dev/shm" } else { "/tmp" };
    let handle = rustix::fs::open(folder, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    rustix::process::geteuid().is_root()
        && handle.is_ok_and(|handle| {
            use std::os::fd::AsFd as _;
            let works = wardkeep_identity::lock::supported(handle.as_fd());
            works.is_ok_and(|works| works == wardkeep_identity::lock::Support::Works)
        })
}

/// The workspace is the agent's.
pub(crate) fn hand_over(scene: &Scene) {
    if scene.level == Level::User {
        return;
    }
    fs::set_permissions(scene.folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    give(&scene.work());
}

/// What a test put into staging is the agent's.
pub(crate) fn hand_over_staging(scene: &Scene) {
    if scene.level != Level::User && scene.staging().exists() {
        give(&scene.staging());
    }
}

fn give(path: &Path) {
    chown(path, Some(AGENT), Some(AGENT)).unwrap();
    if fs::symlink_metadata(path).unwrap().is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            give(&entry.unwrap().path());
        }
    }
}

/// Takes off every lock, so that a test can do what it likes.
pub(crate) fn open_up(scene: &Scene) {
    if scene.level != Level::User {
        unlock(scene.folder.path());
    }
}

fn unlock(path: &Path) {
    let Ok(meta) = fs::symlink_metadata(path) else { return };
    if !meta.is_file() && !meta.is_dir() {
        return;
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    if let Ok(file) = rustix::fs::open(path, flags, Mode::empty())
        && let Ok(flags) = ioctl_getflags(&file)
        && flags.contains(IFlags::IMMUTABLE)
    {
        ioctl_setflags(&file, flags - IFlags::IMMUTABLE).unwrap();
    }
    if meta.is_dir() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            unlock(&entry.path());
        }
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        open_up(self);
    }
}

fn scene(lock: &str) -> Scene {
    let scene = Scene::in_memory(level(lock));
    hand_over(&scene);
    scene.set_up();
    scene
}

/// Runs a line of shell as the agent, in the workspace.
fn agent(scene: &Scene, line: &str) -> bool {
    let status = Command::new("/bin/sh")
        .args(["-c", line])
        .uid(AGENT)
        .gid(AGENT)
        .current_dir(scene.work())
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .stderr(std::process::Stdio::null())
        .status()
        .unwrap();
    status.success()
}

fn owner(scene: &Scene, path: &str) -> (u32, u32, u32) {
    let meta = fs::symlink_metadata(scene.work().join(path)).unwrap();
    (meta.uid(), meta.gid(), meta.mode() & 0o7777)
}

#[test]
fn files_belong_to_whom_they_should() {
    if !possible() {
        return skip("root and the immutable flag", "owned");
    }
    for lock in ["none", "immutable", "sticky"] {
        let scene = scene(lock);
        scene.assert_clean();
        assert_eq!(owner(&scene, "SOUL.md"), (GUARDIAN, GROUP, 0o444), "{lock}");
        assert_eq!(owner(&scene, "bin/run"), (GUARDIAN, GROUP, 0o555), "{lock}");
        assert_eq!(owner(&scene, "skills"), (GUARDIAN, GROUP, 0o555), "{lock}");
        assert_eq!(owner(&scene, "skills/deep"), (GUARDIAN, GROUP, 0o555), "{lock}");
        assert_eq!(owner(&scene, ".soulguard"), (GUARDIAN, GROUP, 0o755), "{lock}");
        assert_eq!(owner(&scene, ".soulguard/staging"), (AGENT, GROUP, 0o755), "{lock}");
        assert_eq!(owner(&scene, ".soulguard/staging/skills/a.md"), (AGENT, GROUP, 0o644));
        assert_eq!(owner(&scene, ".soulguard/staging/skills"), (AGENT, GROUP, 0o755));
        assert_eq!(owner(&scene, "other.txt"), (AGENT, AGENT, 0o644));
        assert_eq!(owner(&scene, "memory/one.md"), (AGENT, GROUP, 0o644));
    }
}

#[test]
fn the_agent_is_denied() {
    if !possible() {
        return skip("root and the immutable flag", "owned");
    }
    for lock in ["immutable", "sticky"] {
        let scene = scene(lock);
        for line in [
            "echo evil > SOUL.md",
            "echo evil >> SOUL.md",
            "rm -f SOUL.md",
            "mv SOUL.md .x",
            "mv -f other.txt SOUL.md",
            "ln -f other.txt SOUL.md",
            "chmod 666 SOUL.md",
            "mv soulguard.json .x",
            "rm -f soulguard.json",
            "echo evil > skills/evil.md",
            "mkdir skills/evil",
            "mv skills .x",
            "mv skills/a.md .x",
            "rm -f skills/a.md",
            "mv .soulguard .x",
            "rm -rf .soulguard/staging && ! test -e .soulguard/staging",
            "mv .soulguard/staging .x",
            "ls .soulguard/work",
            "echo evil > .soulguard/work/x",
            "mv bin/run bin/x",
        ] {
            assert!(!agent(&scene, line), "{lock}: {line}");
        }
        // The staging copies are the agent's, and a deletion is a proposal.
        scene.open().reset(None).unwrap();
        scene.assert_clean();
        assert!(scene.changes().is_empty(), "{lock}: {:?}", scene.words());
        for line in [
            "echo more >> memory/one.md",
            "echo new > mine.txt && mv mine.txt mine2.txt && rm mine2.txt",
            "echo new > .soulguard/staging/SOUL.md",
            "mkdir -p .soulguard/staging/skills/x && echo c > .soulguard/staging/skills/x/c.md",
        ] {
            assert!(agent(&scene, line), "{lock}: {line}");
        }
        scene.apply().unwrap();
        assert_eq!(scene.text("SOUL.md"), "new\n");
        assert_eq!(owner(&scene, "skills/x"), (GUARDIAN, GROUP, 0o555), "{lock}: S-19");
        assert_eq!(owner(&scene, "skills/x/c.md"), (GUARDIAN, GROUP, 0o444), "{lock}");
        assert!(!agent(&scene, "echo evil > skills/x/evil.md"));
        assert!(!agent(&scene, "echo evil > skills/x/c.md"));
        assert!(!agent(&scene, "mv SOUL.md .x"), "{lock}");
        assert!(agent(&scene, "echo again > .soulguard/staging/SOUL.md"), "{lock}: S-21");
        scene.sync();
        scene.open().reset(None).unwrap();
        scene.assert_clean();
        scene.assert_bench_is_empty();
    }
}

/// Without a lock the owner of the folder can rename; it is seen and put right.
#[test]
fn without_a_lock_it_is_seen_and_put_right() {
    if !possible() {
        return skip("root and the immutable flag", "owned");
    }
    let scene = scene("none");
    assert!(!agent(&scene, "echo evil > SOUL.md"));
    assert!(agent(&scene, "mv SOUL.md .x && echo evil > SOUL.md && mv skills .y && mkdir skills"));
    assert!(agent(&scene, "mv .soulguard .z; mkdir -p .soulguard/staging .soulguard/work"));
    assert_eq!(scene.status("SOUL.md"), Status::Drifted);
    scene.sync();
    assert_eq!(scene.text("SOUL.md"), "# My Soul\n");
    assert_eq!(scene.text("skills/a.md"), "skill a\n");
    assert_eq!(owner(&scene, "skills"), (GUARDIAN, GROUP, 0o555));
    assert_eq!(owner(&scene, ".soulguard"), (GUARDIAN, GROUP, 0o755));
    scene.assert_clean();
    scene.assert_outside();
}

/// O-7, O-16, O-18: somebody with rights changed owner and mode.
#[test]
fn owner_and_mode_are_put_right() {
    if !possible() {
        return skip("root and the immutable flag", "owned");
    }
    let scene = scene("immutable");
    open_up(&scene);
    for path in ["SOUL.md", "memory/one.md"] {
        chown(scene.work().join(path), Some(0), Some(0)).unwrap();
        let mode = fs::Permissions::from_mode(0o666);
        fs::set_permissions(scene.work().join(path), mode).unwrap();
    }
    chown(scene.work().join("skills"), Some(AGENT), Some(AGENT)).unwrap();
    fs::set_permissions(scene.work().join("skills"), fs::Permissions::from_mode(0o755)).unwrap();
    let drift = scene.state_of("SOUL.md").drift;
    assert_eq!(
        drift,
        [
            Drift::Owner { expected: GUARDIAN, found: 0 },
            Drift::Group { expected: GROUP, found: 0 },
            Drift::Mode { expected: 0o444, found: 0o666 },
            Drift::Unlocked,
        ]
    );
    assert_eq!(scene.status("memory/one.md"), Status::Drifted);
    assert_eq!(scene.status("skills"), Status::Drifted);
    let synced = scene.sync();
    assert_eq!(synced.left, []);
    // These three, and the files that nothing held in their places any more.
    assert_eq!(synced.mended.len(), 8);
    assert_eq!(owner(&scene, "memory/one.md"), (AGENT, GROUP, 0o644));
    assert_eq!(owner(&scene, "SOUL.md"), (GUARDIAN, GROUP, 0o444));
    assert!(!agent(&scene, "mv skills .x"));
    scene.assert_clean();
}

/// Rows 4 and 8: what the agent has no rights to is not handed to it.
#[test]
fn foreign_files_are_not_handed_to_the_agent() {
    if !possible() {
        return skip("root and the immutable flag", "owned");
    }
    for lock in ["none", "immutable"] {
        let scene = scene(lock);
        let private = scene.work().join("private");
        fs::write(&private, "private of root").unwrap();
        fs::set_permissions(&private, fs::Permissions::from_mode(0o600)).unwrap();
        fs::create_dir(scene.work().join("closed")).unwrap();
        fs::write(scene.work().join("closed/key"), "key of root").unwrap();
        let mode = fs::Permissions::from_mode(0o700);
        fs::set_permissions(scene.work().join("closed"), mode).unwrap();
        assert!(agent(&scene, "mv private memory/x.md"));
        assert!(agent(&scene, "ln -s ../../outside/secret memory/l.md; mkfifo memory/p.md"));
        let (uid, gid, mode) = owner(&scene, "memory/x.md");
        let synced = scene.sync();
        assert_eq!(owner(&scene, "memory/x.md"), (uid, gid, mode), "{lock}");
        assert_eq!(synced.left.len(), 3, "{:?}", synced.left);
        if lock == "none" {
            assert!(agent(&scene, "mv skills .x && mv closed skills"));
            scene.sync();
            let (uid, _, mode) = owner(&scene, "skills");
            assert_eq!((uid, mode), (0, 0o700), "a folder of root stays closed");
            assert!(!agent(&scene, "cat skills/key"));
        }
        scene.assert_outside();
    }
}

/// Row 6, S-4: a link to what only root reads; a hard link; a file of somebody else.
#[test]
fn staging_gives_nothing_away() {
    if !possible() {
        return skip("root and the immutable flag", "owned");
    }
    let scene = scene("immutable");
    let secret = scene.outside().join("secret");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    assert!(agent(&scene, "cd .soulguard/staging && ln -sf ../../../outside/secret SOUL.md"));
    fs::remove_file(scene.staging().join("AGENTS.md")).unwrap();
    fs::hard_link(&secret, scene.staging().join("AGENTS.md")).unwrap();
    fs::write(scene.staging().join("skills/root.md"), "by root").unwrap();
    assert!(agent(&scene, "cd .soulguard/staging && rm -rf bin && ln -s /etc bin"));
    let changes = scene.changes();
    assert!(changes.is_empty(), "{:?}", scene.words());
    assert_eq!(changes.refused.len(), 4, "{:?}", changes.refused);
    scene.open().reset(None).unwrap();
    assert!(scene.changes().is_empty());
    assert_eq!(fs::read(&secret).unwrap(), b"secret of the owner");
    assert_eq!(fs::metadata(&secret).unwrap().uid(), 0);
    assert_eq!(fs::metadata("/etc").unwrap().uid(), 0);
    assert_eq!(owner(&scene, ".soulguard/staging/bin/run"), (AGENT, GROUP, 0o755));
}

/// Decision 19: a new file in a protected place is locked where that can be, and not approved.
#[test]
fn a_pending_file_is_locked() {
    if !possible() {
        return skip("root and the immutable flag", "owned");
    }
    let scene = scene("immutable");
    assert!(agent(&scene, "echo planted > bin/new"));
    assert_eq!(scene.status("bin/new"), Status::Pending);
    let synced = scene.sync();
    assert_eq!(synced.locked, [name("bin/new")]);
    assert_eq!(owner(&scene, "bin/new"), (GUARDIAN, GROUP, 0o444));
    assert!(!agent(&scene, "echo evil > bin/new"));
    assert!(!agent(&scene, "rm -f bin/new"));
    assert_eq!(scene.status("bin/new"), Status::Pending);
    assert_eq!(scene.words(), ["new bin/new"]);
    assert_eq!(scene.sync().locked, []);
    scene.apply().unwrap();
    scene.assert_clean();
    // A link, which cannot be locked, goes.
    assert!(agent(&scene, "ln -s /etc/passwd bin/link"));
    scene.sync();
    assert!(fs::symlink_metadata(scene.work().join("bin/link")).is_err());
}

/// Rows 21-23.
#[test]
fn what_is_released_is_the_agents() {
    if !possible() {
        return skip("root and the immutable flag", "owned");
    }
    for lock in ["immutable", "sticky", "none"] {
        let scene = scene(lock);
        assert!(matches!(
            scene.open().release(&[name("soulguard.json")]),
            Err(IdentityError::SelfProtection { .. })
        ));
        let done = scene.open().release(&[name("skills"), name("SOUL.md")]).unwrap();
        assert_eq!(done.left, [], "{lock}");
        assert_eq!(owner(&scene, "SOUL.md"), (AGENT, AGENT, 0o644), "{lock}");
        assert_eq!(owner(&scene, "skills"), (AGENT, AGENT, 0o755), "{lock}");
        assert!(agent(&scene, "echo mine > skills/mine.md && echo mine > SOUL.md"), "{lock}");
        scene.open().protect(&[name("skills")]).unwrap();
        assert!(!agent(&scene, "echo evil > skills/evil.md"), "{lock}");
        assert_eq!(owner(&scene, "skills/mine.md"), (GUARDIAN, GROUP, 0o444), "{lock}");
        scene.open().watch(&[name("AGENTS.md")]).unwrap();
        assert_eq!(owner(&scene, "AGENTS.md"), (AGENT, GROUP, 0o644), "{lock}");
        scene.assert_clean();
    }
}

/// O-20: who is not root can give nothing to the guardian; it fails, and nothing changes.
#[test]
fn without_rights_it_fails_and_nothing_changes() {
    if !possible() {
        return skip("root and the immutable flag", "owned");
    }
    let scene = Scene::in_memory(level("none"));
    hand_over(&scene);
    fs::create_dir(scene.state_folder()).unwrap();
    chown(scene.state_folder(), Some(AGENT), Some(AGENT)).unwrap();
    let before = tree(&scene.work());
    let program = copy_of_this_program(&scene);
    let status = crate::crashes::child(&program, &scene, "init", u32::MAX)
        .uid(AGENT)
        .gid(AGENT)
        .status()
        .unwrap();
    assert!(!status.success());
    let mut after = tree(&scene.work());
    after.retain(|path, _| !path.starts_with(".soulguard"));
    assert_eq!(after, before);
    assert_eq!(owner(&scene, "SOUL.md"), (AGENT, AGENT, 0o644));
}
