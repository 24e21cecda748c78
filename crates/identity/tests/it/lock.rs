//! What a hostile agent tries against locked files, and whether the report on the way is true.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use rustix::fs::{Gid, Uid};
use wardkeep_identity::config::Config;
use wardkeep_identity::level::Level;
use wardkeep_identity::lock::{
    Lock, Support, Why, anchors, is_immutable, is_sticky, lock, lock_in_place, make_sticky,
    supported, unlock,
};
use wardkeep_identity::workspace::Workspace;

use crate::agent::{AGENT, GUARDIAN, Ground, agent, is_root, set_mode, skip};

/// Places where the attribute works.
fn grounds(test: &str) -> Vec<Ground> {
    if !is_root(test) {
        return Vec::new();
    }
    let works = |ground: &Ground| {
        let folder = File::open(ground.path("ws")).unwrap();
        supported(folder.as_fd()).unwrap() == Support::Works
    };
    let grounds: Vec<Ground> = Ground::each().into_iter().filter(works).collect();
    if grounds.is_empty() {
        skip("a file system with the immutable attribute", test);
    }
    grounds
}

/// The attacks on one file in the agent's own directory.
const ON_A_FILE: [&str; 18] = [
    "mv ws/SOUL.md ws/.x",
    "mv ws/SOUL.md ws/.x && echo evil > ws/SOUL.md",
    "echo evil > ws/.evil && mv -f ws/.evil ws/SOUL.md",
    "ln -f ws/.evil ws/SOUL.md",
    "ln -sf /etc/passwd ws/SOUL.md",
    "rm -f ws/SOUL.md && echo evil > ws/SOUL.md",
    "unlink ws/SOUL.md",
    "ln ws/SOUL.md ws/second",
    "echo evil > ws/SOUL.md",
    "echo evil >> ws/SOUL.md",
    "truncate -s 0 ws/SOUL.md",
    "chmod 666 ws/SOUL.md",
    "chown 61789 ws/SOUL.md",
    "chattr -i ws/SOUL.md",
    "cp --remove-destination ws/.evil ws/SOUL.md",
    // As root of a user namespace of its own.
    "unshare -Ur chattr -i ws/SOUL.md",
    "unshare -Ur mv ws/SOUL.md ws/.x",
    "unshare -Ur chown 0 ws/SOUL.md",
];

#[test]
fn without_a_lock_the_owner_of_the_directory_replaces_a_file_of_the_guardian() {
    if !is_root("without_a_lock_the_owner_of_the_directory_replaces_a_file_of_the_guardian") {
        return;
    }
    let ground = Ground::new();
    ground.file("ws/SOUL.md", "soul", GUARDIAN, 0o444);
    let output = ground.try_as_agent("mv ws/SOUL.md ws/.x && echo evil > ws/SOUL.md");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(std::fs::read_to_string(ground.path("ws/SOUL.md")).unwrap(), "evil\n");
}

#[test]
fn an_immutable_file_stays_what_and_where_it_is() {
    for ground in grounds("an_immutable_file_stays_what_and_where_it_is") {
        let file = ground.file("ws/SOUL.md", "soul", GUARDIAN, 0o444);
        ground.file("ws/.evil", "evil", AGENT, 0o644);
        assert!(lock(&file).unwrap());
        assert!(!lock(&file).unwrap(), "it was locked already");
        let before = file.metadata().unwrap();
        ground.refuses("ws/SOUL.md", "soul", &ON_A_FILE);
        let after = ground.path("ws/SOUL.md").metadata().unwrap();
        assert_eq!((before.ino(), before.mode(), before.nlink()), (after.ino(), after.mode(), 1));
        // Even its own file, were it the agent's.
        let own = ground.file("ws/own.md", "own", AGENT, 0o644);
        lock(&own).unwrap();
        let lines = [
            "echo evil > ws/own.md",
            "rm -f ws/own.md",
            "mv ws/own.md ws/x",
            "chattr -i ws/own.md",
        ];
        ground.refuses("ws/own.md", "own", &lines);
    }
}

/// A file that the agent had opened for writing while it was its own: whether it still writes after
/// `protect`.
fn writes_later(ground: &Ground, protect: impl Fn()) -> bool {
    ground.file("ws/SOUL.md", "soul", AGENT, 0o644);
    let mut child = Command::new("/bin/sh")
        .args(["-c", "exec 3>>ws/SOUL.md; echo ready; read go; echo evil >&3"])
        .current_dir(ground.path(""))
        .uid(AGENT)
        .gid(AGENT)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    protect();
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    child.wait().unwrap();
    std::fs::read_to_string(ground.path("ws/SOUL.md")).unwrap() != "soul"
}

#[test]
fn only_a_file_made_anew_is_free_of_what_was_opened_before() {
    for ground in grounds("only_a_file_made_anew_is_free_of_what_was_opened_before") {
        let path = ground.path("ws/SOUL.md");
        let take = || {
            std::os::unix::fs::chown(&path, Some(GUARDIAN), Some(GUARDIAN)).unwrap();
            set_mode(&path, 0o444);
        };
        assert!(writes_later(&ground, take), "owner and mode do not end what is open");
        let anew = || {
            ground.file("ws/.new", "soul", GUARDIAN, 0o444);
            std::fs::rename(ground.path("ws/.new"), &path).unwrap();
            lock(File::open(&path).unwrap()).unwrap();
        };
        assert!(!writes_later(&ground, anew));
    }
}

/// The owned level, with one of the two locks.
fn owned(lock: Lock) -> Level {
    let (agent, guardian) = (Uid::from_raw(AGENT), Uid::from_raw(GUARDIAN));
    let (agent_group, group) = (Gid::from_raw(AGENT), Gid::from_raw(GUARDIAN));
    Level::Owned { guardian, group, agent, agent_group, lock }
}

#[test]
fn setting_up_makes_files_anew() {
    for held in [Lock::Immutable, Lock::Sticky] {
        for ground in grounds("setting_up_makes_files_anew") {
            let set_up = || {
                let (work, state) = (ground.path("ws"), ground.path("state"));
                let time = std::time::SystemTime::UNIX_EPOCH;
                let workspace = Workspace::open(&work, &state, owned(held), time).unwrap();
                let done = workspace.set_up(&Config::new([]), &|_| {}).unwrap();
                assert!(done.left.is_empty() && done.refused.is_empty(), "{done:?}");
            };
            assert!(!writes_later(&ground, set_up), "{held:?}");
            ground.file("ws/.evil", "evil", AGENT, 0o644);
            let linked = "ln ws/SOUL.md ws/second";
            let tries: Vec<&str> = ON_A_FILE.into_iter().filter(|line| *line != linked).collect();
            ground.refuses("ws/SOUL.md", "soul", &tries);
            let config = std::fs::read_to_string(ground.path("ws/soulguard.json")).unwrap();
            ground.refuses(
                "ws/soulguard.json",
                &config,
                &[
                    "mv ws/soulguard.json ws/.y",
                    "rm -f ws/soulguard.json",
                    "echo '{}' > ws/soulguard.json",
                    "mv ws/.soulguard ws/.z",
                    "mv ws/.soulguard/staging ws/.soulguard/x",
                    "rmdir ws/.soulguard/staging",
                    "rm -rf ws/.soulguard",
                ],
            );
            assert!(ground.path("ws/.soulguard/staging").is_dir());
            // And what the agent is meant to do works.
            let output = ground.try_as_agent(
                "echo proposal > ws/.soulguard/staging/SOUL.md && mkdir ws/new && mv ws/new ws/other",
            );
            assert!(output.status.success(), "{held:?}: {output:?}");
            let way = anchors(&ground.path("ws/SOUL.md"), &agent()).unwrap();
            assert!(way.iter().all(|step| step.holds), "{way:?}");
        }
    }
}

#[test]
fn an_immutable_directory_keeps_its_entries_and_its_name() {
    for ground in grounds("an_immutable_directory_keeps_its_entries_and_its_name") {
        // `.soulguard` is closed; the staging folder in it is the agent's.
        let own = ground.folder("ws/.soulguard", AGENT, 0o755);
        ground.folder("ws/.soulguard/staging", AGENT, 0o755);
        ground.file("ws/.soulguard/staging/SOUL.md", "soul", AGENT, 0o644);
        lock(&own).unwrap();
        let lines = [
            "mv ws/.soulguard ws/.x",
            "rm -rf ws/.soulguard/staging && mkdir ws/.soulguard/staging && false",
            "mv ws/.soulguard/staging ws/.soulguard/old",
            "mv ws/.soulguard/staging ws/staging",
            "touch ws/.soulguard/new",
            "ln -s /etc ws/.soulguard/link",
            "chmod 777 ws/.soulguard",
            "rmdir ws/.soulguard/staging",
            "mkdir ws/.y && mv -T ws/.y ws/.soulguard",
        ];
        for line in lines {
            let output = ground.try_as_agent(line);
            assert!(!output.status.success(), "{line}: {output:?}");
            assert!(ground.path("ws/.soulguard/staging").is_dir(), "{line}");
            assert_eq!(own.metadata().unwrap().mode() & 0o7777, 0o755, "{line}");
        }
        // What the agent is meant to do still works.
        let output = ground.try_as_agent("echo proposal > ws/.soulguard/staging/SOUL.md");
        assert!(output.status.success(), "{output:?}");
    }
}

#[test]
fn a_sticky_directory_of_roots_keeps_what_is_not_the_agents() {
    if !is_root("a_sticky_directory_of_roots_keeps_what_is_not_the_agents") {
        return;
    }
    for ground in Ground::each() {
        ground.file("ws/SOUL.md", "soul", GUARDIAN, 0o444);
        ground.file("ws/.evil", "evil", AGENT, 0o644);
        ground.folder("ws/skills", GUARDIAN, 0o555);
        let workspace = File::open(ground.path("ws")).unwrap();
        let group = Gid::from_raw(AGENT);
        assert!(!is_sticky(&workspace, group).unwrap());
        make_sticky(&workspace, group).unwrap();
        assert!(is_sticky(&workspace, group).unwrap());
        let linked = "ln ws/SOUL.md ws/second";
        let tries: Vec<&str> = ON_A_FILE.into_iter().filter(|line| *line != linked).collect();
        ground.refuses("ws/SOUL.md", "soul", &tries);
        ground.refuses(
            "ws/SOUL.md",
            "soul",
            &[
                "mv ws/skills ws/x",
                "rmdir ws/skills",
                "touch ws/skills/evil.md",
                "chmod 777 ws",
                "chmod -t ws",
                "mv ws ws2",
            ],
        );
        let output = ground.try_as_agent("echo a > ws/a && mv ws/a ws/b && rm ws/b && mkdir ws/d");
        assert!(output.status.success(), "{output:?}");
    }
}

#[test]
fn a_directory_that_the_agent_can_rename_is_reported() {
    for ground in grounds("a_directory_that_the_agent_can_rename_is_reported") {
        let file = ground.file("ws/SOUL.md", "soul", GUARDIAN, 0o444);
        ground.folder("ws/shared", GUARDIAN, 0o755);
        let inner = ground.file("ws/shared/settings.json", "{}", GUARDIAN, 0o444);
        lock(&file).unwrap();
        lock(&inner).unwrap();
        let last = |path: &str| anchors(&ground.path(path), &agent()).unwrap().pop().unwrap();
        // The workspace stands in a folder of root's: it holds, and the kernel agrees.
        assert_eq!((last("ws").holds, last("ws").why), (true, Why::NotWritable));
        assert!(!ground.try_as_agent("mv ws ws2").status.success());
        assert_eq!((last("ws/SOUL.md").holds, last("ws/SOUL.md").why), (true, Why::Immutable));
        // The locked file does not hold the folder that it is in.
        assert_eq!(last("ws/shared/settings.json").why, Why::Immutable);
        let steps = anchors(&ground.path("ws/shared/settings.json"), &agent()).unwrap();
        let loose: Vec<Why> =
            steps.iter().filter(|step| !step.holds).map(|step| step.why).collect();
        assert_eq!(loose, [Why::OwnDirectory]);
        let swap = "mv ws/shared ws/x && mkdir ws/shared && echo evil > ws/shared/settings.json";
        assert!(ground.try_as_agent(swap).status.success());
        // A sticky workspace of root's closes that.
        set_mode(&ground.path("ws/x"), 0o755);
        make_sticky(File::open(ground.path("ws")).unwrap(), Gid::from_raw(AGENT)).unwrap();
        assert_eq!((last("ws/x").holds, last("ws/x").why), (true, Why::Sticky));
        assert!(!ground.try_as_agent("mv ws/x ws/y").status.success());
        // What is the agent's own it can always move.
        assert_eq!((last("ws/shared").holds, last("ws/shared").why), (false, Why::OwnInSticky));
        // An ancestor that is the agent's own.
        std::os::unix::fs::chown(ground.path(""), Some(AGENT), None).unwrap();
        assert_eq!((last("ws").holds, last("ws").why), (false, Why::OwnDirectory));
        assert!(ground.try_as_agent("mv ws ws2").status.success());
        assert_eq!(last("ws").why, Why::NotThere);
    }
}

#[test]
fn a_link_on_the_way_does_not_hold() {
    if !is_root("a_link_on_the_way_does_not_hold") {
        return;
    }
    let ground = Ground::new();
    std::os::unix::fs::symlink("ws", ground.path("link")).unwrap();
    let steps = anchors(&ground.path("link/x"), &agent()).unwrap();
    assert_eq!(steps.last().unwrap().why, Why::NotThere);
    assert!(steps.last().unwrap().path.ends_with("link"));
}

#[test]
fn a_lock_that_is_off_comes_back_by_itself() {
    for ground in grounds("a_lock_that_is_off_comes_back_by_itself") {
        let file = ground.file("ws/SOUL.md", "soul", GUARDIAN, 0o444);
        let open = unlock(&file).unwrap();
        assert!(!open.was_locked());
        open.relock().unwrap();
        assert!(!is_immutable(&file).unwrap(), "what was not locked stays so");
        lock(&file).unwrap();
        let open = unlock(&file).unwrap();
        assert!(open.was_locked() && !is_immutable(&file).unwrap());
        drop(open);
        assert!(is_immutable(&file).unwrap());
        unlock(&file).unwrap().relock().unwrap();
        assert!(is_immutable(&file).unwrap());
        unlock(&file).unwrap().leave_open();
        assert!(!is_immutable(&file).unwrap());
    }
}

#[test]
fn a_file_that_was_moved_before_the_lock_is_noticed() {
    for ground in grounds("a_file_that_was_moved_before_the_lock_is_noticed") {
        let file = ground.file("ws/SOUL.md", "soul", GUARDIAN, 0o444);
        let folder = File::open(ground.path("ws")).unwrap();
        let name = OsStr::new("SOUL.md");
        lock_in_place(folder.as_fd(), name, &file).unwrap();
        assert!(is_immutable(&file).unwrap());
        unlock(&file).unwrap().leave_open();
        let swap = "mv ws/SOUL.md ws/.x && echo evil > ws/SOUL.md";
        assert!(ground.try_as_agent(swap).status.success());
        let error = lock_in_place(folder.as_fd(), name, &file).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::StaleNetworkFileHandle);
        assert!(!is_immutable(&file).unwrap(), "the one that was moved is not left locked");
        assert!(ground.try_as_agent("rm -f ws/SOUL.md").status.success());
        lock_in_place(folder.as_fd(), name, &file).unwrap_err();
    }
}

#[test]
fn who_may_not_lock_is_told_so() {
    if !is_root("who_may_not_lock_is_told_so") {
        return;
    }
    // Where the kernel has no such files at all.
    let proc = File::open("/proc").unwrap();
    assert_ne!(supported(proc.as_fd()).unwrap(), Support::Works);
    assert!(!is_immutable(&proc).unwrap());
    lock(&proc).unwrap_err();
}
