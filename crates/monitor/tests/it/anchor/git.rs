//! The git anchor, with bare repositories on this machine as remotes.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use wardkeep_monitor::anchor::git::GitAnchor;
use wardkeep_monitor::anchor::{Anchor as _, AnchorError, Surroundings};

use super::{NOW, TestLog, fork, rollback};
use crate::shared::skip;

const BRANCH: &str = "seals";

fn search_path() -> OsString {
    std::env::var_os("PATH").unwrap()
}

/// A remote, gitdirs, and a place where an attack leaves its mark.
struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    fn new(test: &str) -> Option<Self> {
        if Command::new("git").arg("--version").output().is_err() {
            skip("git", test);
            return None;
        }
        let scene = Self { folder: tempfile::tempdir().unwrap() };
        scene.git(&["init", "--quiet", "--bare", scene.remote().to_str().unwrap()]);
        Some(scene)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn remote(&self) -> PathBuf {
        self.at("remote.git")
    }

    fn marker(&self) -> PathBuf {
        self.at("marker")
    }

    fn git(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("git");
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
        command.args(["-c", "safe.directory=*"]).current_dir(self.folder.path());
        let done = command.args(arguments).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    }

    fn remote_git(&self, arguments: &[&str]) -> String {
        let remote = self.remote();
        self.git(&[&["--git-dir", remote.to_str().unwrap()], arguments].concat())
    }

    fn anchor_with(&self, gitdir: &str, surroundings: Surroundings) -> GitAnchor {
        let url = self.remote();
        let gitdir = self.at("anchors").join(gitdir);
        GitAnchor::new("g", url.to_str().unwrap(), BRANCH, &gitdir, surroundings).unwrap()
    }

    fn anchor(&self, gitdir: &str) -> GitAnchor {
        self.anchor_with(gitdir, Surroundings::new(search_path()))
    }

    /// A program that leaves a mark when anything runs it.
    fn trap(&self, path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("#!/bin/sh\necho $0 >> {}\n", self.marker().display())).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn assert_no_mark(&self) {
        let marked = fs::read_to_string(self.marker()).unwrap_or_default();
        assert_eq!(marked, "", "something ran that must not");
    }
}

#[test]
fn each_seal_is_a_commit_on_the_branch() {
    let Some(scene) = Scene::new("each_seal_is_a_commit_on_the_branch") else { return };
    let mut log = TestLog::of_size(1, 3);
    assert_eq!(scene.anchor("a").latest(&log.public()), Ok(None));
    let mut notes = Vec::new();
    for growth in [0, 4, 0, 9] {
        log.grow(growth, "");
        let note = log.seal();
        for _ in 0..2 {
            let receipt = log.submit(&note, |submission| scene.anchor("a").put(submission, NOW));
            assert_eq!(receipt.unwrap().size, log.tree.size());
        }
        notes.push(note.to_string());
    }
    assert_eq!(scene.anchor("a").latest(&log.public()), Ok(Some(16)));
    let commits = scene.remote_git(&["log", "--reverse", "--format=%H %at %ct %an", BRANCH]);
    let commits: Vec<_> = commits.lines().collect();
    assert_eq!(commits.len(), notes.len());
    for (line, note) in commits.iter().zip(&notes) {
        let (commit, rest) = line.split_once(' ').unwrap();
        assert_eq!(rest, format!("{NOW} {NOW} wardkeep"));
        let listing = scene.remote_git(&["ls-tree", "--name-only", commit]);
        assert_eq!(listing, "checkpoint\n");
        assert_eq!(&scene.remote_git(&["show", &format!("{commit}:checkpoint")]), note);
    }
    // Without its gitdir it goes on from what the remote has.
    log.grow(1, "");
    assert_eq!(log.put(&mut scene.anchor("b")).unwrap().size, 17);
    // And a remote that lost everything is given all of it again.
    fs::remove_dir_all(scene.remote()).unwrap();
    scene.git(&["init", "--quiet", "--bare", scene.remote().to_str().unwrap()]);
    log.grow(1, "");
    assert_eq!(log.put(&mut scene.anchor("b")).unwrap().size, 18);
    assert_eq!(scene.remote_git(&["rev-list", "--count", BRANCH]), "6\n");
}

#[test]
fn rollback_and_fork_are_seen_with_and_without_the_gitdir() {
    let Some(scene) = Scene::new("rollback_and_fork_are_seen_with_and_without_the_gitdir") else {
        return;
    };
    let mut log = TestLog::of_size(1, 10);
    log.put(&mut scene.anchor("a")).unwrap();
    let backup = log.clone();
    let copy = |to: &str| {
        let to = scene.at("anchors").join(to);
        let copied = Command::new("cp").arg("-a").arg(scene.at("anchors/a")).arg(&to).status();
        assert!(copied.unwrap().success());
    };
    copy("old");
    log.grow(10, "");
    log.put(&mut scene.anchor("a")).unwrap();
    for gitdir in ["a", "old", "new"] {
        let mut restored = backup.clone();
        let head = scene.remote_git(&["rev-parse", BRANCH]);
        assert_eq!(restored.put(&mut scene.anchor(gitdir)), Err(rollback("g", 20, 10)), "{gitdir}");
        restored.grow(10, "other");
        assert_eq!(restored.put(&mut scene.anchor(gitdir)), Err(fork("g", 20)), "{gitdir}");
        restored.grow(10, "other");
        assert_eq!(restored.put(&mut scene.anchor(gitdir)), Err(fork("g", 20)), "{gitdir}");
        assert_eq!(scene.remote_git(&["rev-parse", BRANCH]), head, "nothing was forced");
    }
    log.grow(1, "");
    assert!(log.put(&mut scene.anchor("old")).is_ok());
    log.grow(1, "");
    assert!(log.put(&mut scene.anchor("a")).is_ok());
}

#[test]
fn a_branch_of_something_else_is_left_alone() {
    let Some(scene) = Scene::new("a_branch_of_something_else_is_left_alone") else { return };
    let mut log = TestLog::of_size(1, 10);
    TestLog::of_size(2, 3).put(&mut scene.anchor("other")).unwrap();
    let refused = log.put(&mut scene.anchor("a")).unwrap_err();
    assert!(refused.to_string().contains("a branch of its own"), "{refused}");
    assert_eq!(log.put(&mut scene.anchor("other")).unwrap_err().kind(), "refused");
    assert_eq!(scene.remote_git(&["rev-list", "--count", BRANCH]), "1\n");
}

#[test]
fn nothing_planted_around_git_runs() {
    let Some(scene) = Scene::new("nothing_planted_around_git_runs") else { return };
    let mut log = TestLog::of_size(1, 10);
    let trap = scene.at("traps/trap");
    scene.trap(&trap);
    let trap = trap.to_str().unwrap();
    let hooks = [
        "applypatch-msg",
        "pre-commit",
        "commit-msg",
        "post-commit",
        "pre-push",
        "pre-receive",
        "update",
        "post-receive",
        "post-update",
        "push-to-checkout",
        "proc-receive",
        "reference-transaction",
        "post-checkout",
        "post-merge",
        "pre-auto-gc",
        "fsmonitor-watchman",
        "post-index-change",
    ];
    let hostile = format!(
        "[core]\n\tbare = true\n\thooksPath = {0}/hooks\n\tfsmonitor = {trap}\n\tsshCommand = {trap}\n\
         \tpager = {trap}\n\teditor = {trap}\n\taskPass = {trap}\n\tgitProxy = {trap}\n\
         \talternateRefsCommand = {trap}\n\
         [credential]\n\thelper = !{trap}\n[gpg]\n\tprogram = {trap}\n\
         [commit]\n\tgpgSign = true\n[push]\n\tgpgSign = if-asked\n\
         [alias]\n\tpush = !{trap}\n\tcommit-tree = !{trap}\n\tfetch = !{trap}\n\
         [protocol \"ext\"]\n\tallow = always\n[protocol]\n\tallow = always\n\
         [url \"ext::{trap} \"]\n\tinsteadOf = /\n\
         [receive]\n\tautogc = true\n\tdenyCurrentBranch = updateInstead\n\
         [gc]\n\tauto = 1\n[uploadpack]\n\tpackObjectsHook = {trap}\n\
         [diff]\n\texternal = {trap}\n[filter \"x\"]\n\tclean = {trap}\n\tsmudge = {trap}\n\
         [remote \"origin\"]\n\turl = ext::{trap}\n\tpromisor = true\n\tuploadpack = {trap}\n\
         \treceivepack = {trap}\n[trace2]\n\teventTarget = {0}/marker\n",
        scene.folder.path().display()
    );
    for hook in hooks {
        for folder in [scene.at("hooks"), scene.remote().join("hooks"), scene.at("anchors/a/hooks")]
        {
            scene.trap(&folder.join(hook));
        }
    }
    fs::set_permissions(scene.at("anchors"), fs::Permissions::from_mode(0o700)).unwrap();
    fs::set_permissions(scene.at("anchors/a"), fs::Permissions::from_mode(0o700)).unwrap();
    // As a home, as XDG, in the current folder, and in the gitdir that HOME points to.
    for file in
        [".gitconfig", ".config/git/config", "anchors/a/.gitconfig", "anchors/a/.config/git/config"]
    {
        let path = scene.at(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, &hostile).unwrap();
    }
    // Alternates make receive-pack look for references through a command of the repository.
    scene.git(&["init", "--quiet", "--bare", "alternate.git"]);
    let alternates = scene.remote().join("objects/info/alternates");
    fs::write(alternates, format!("{}\n", scene.at("alternate.git/objects").display())).unwrap();
    fs::write(
        scene.remote().join("config"),
        format!("[core]\n\trepositoryFormatVersion = 0\n{hostile}"),
    )
    .unwrap();
    fs::write(scene.remote().join("info/attributes"), "* filter=x diff=x\n").unwrap();
    // A relative folder in the search path could be the agent's; its git must not be found.
    for program in ["git", "ssh", "git-receive-pack", "sh"] {
        scene.trap(&scene.at("anchors/a").join("bin").join(program));
    }
    let mut path = OsString::from("bin:.:");
    path.push(search_path());
    for round in 0..3 {
        log.grow(3, "");
        let surroundings = Surroundings::new(path.clone());
        let receipt = log.put(&mut scene.anchor_with("a", surroundings.clone()));
        assert_eq!(receipt.unwrap().size, log.tree.size(), "{round}");
        let latest = scene.anchor_with("a", surroundings.clone()).latest(&log.public());
        assert_eq!(latest, Ok(Some(log.tree.size())));
        let elsewhere = format!("fresh{round}");
        log.grow(1, "");
        assert!(log.put(&mut scene.anchor_with(&elsewhere, surroundings)).is_ok());
    }
    scene.assert_no_mark();
    // A remote that wants its hook asked gets no push, rather than its hook run.
    scene.remote_git(&["config", "receive.procReceiveRefs", "refs"]);
    log.grow(1, "");
    assert_eq!(log.put(&mut scene.anchor("a")).unwrap_err().kind(), "refused");
    scene.assert_no_mark();
}

#[test]
fn the_traps_of_the_test_above_do_work() {
    let Some(scene) = Scene::new("the_traps_of_the_test_above_do_work") else { return };
    let mut log = TestLog::of_size(1, 3);
    log.put(&mut scene.anchor("a")).unwrap();
    scene.assert_no_mark();
    // A plain push of the same commit runs what ours does not.
    scene.trap(&scene.remote().join("hooks/post-receive"));
    let gitdir = scene.at("anchors/a");
    let remote = scene.remote();
    let pushed = "refs/wardkeep/head:refs/heads/plain";
    scene.git(&[
        "--git-dir",
        gitdir.to_str().unwrap(),
        "push",
        "--quiet",
        remote.to_str().unwrap(),
        pushed,
    ]);
    assert!(scene.marker().exists());
}

#[test]
fn dangerous_addresses_branches_and_variables_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let make = |url: &str, branch: &str, variable: Option<&str>| {
        let mut surroundings = Surroundings::new(search_path());
        surroundings.variables.extend(variable.map(|name| (name.into(), "x".into())));
        GitAnchor::new("g", url, branch, &folder.path().join("a"), surroundings).map(drop)
    };
    assert!(make("/a", "seals", None).is_ok());
    assert!(make("/a", "seals", Some("SSH_AUTH_SOCK")).is_ok());
    for url in ["ext::sh -c x", "ext::x", "-x", "--receive-pack=x", "a"] {
        assert!(matches!(make(url, "seals", None), Err(AnchorError::Refused { .. })), "{url}");
    }
    for branch in ["", "-f", "a:b", "../x"] {
        assert!(make("/a", branch, None).is_err(), "{branch}");
    }
    for variable in ["LD_PRELOAD", "GIT_EXEC_PATH", "GIT_CONFIG_GLOBAL", "PATH", "GIT_DIR"] {
        assert!(make("/a", "seals", Some(variable)).is_err(), "{variable}");
    }
}

#[test]
fn what_is_missing_or_hangs_is_named() {
    let Some(scene) = Scene::new("what_is_missing_or_hangs_is_named") else { return };
    let mut log = TestLog::of_size(1, 3);
    let mut anchor = scene.anchor_with("a", Surroundings::new("/nowhere:relative".into()));
    let missing = log.put(&mut anchor).unwrap_err();
    assert!(missing.to_string().contains("git is not installed"), "{missing}");
    let nowhere = scene.at("nowhere.git");
    let gitdir = scene.at("anchors/n");
    let surroundings = Surroundings::new(search_path());
    let mut anchor =
        GitAnchor::new("g", nowhere.to_str().unwrap(), BRANCH, &gitdir, surroundings).unwrap();
    assert_eq!(log.put(&mut anchor).unwrap_err().kind(), "refused");
    // A transport that never answers: ssh replaced by something that waits.
    let mut surroundings = Surroundings::new(search_path());
    surroundings.variables.push(("GIT_SSH_COMMAND".into(), "sleep 1000 #".into()));
    surroundings.deadline = Duration::from_millis(500);
    let mut anchor = GitAnchor::new("g", "host:path", BRANCH, &gitdir, surroundings).unwrap();
    let hanging = log.put(&mut anchor).unwrap_err();
    assert_eq!(hanging.kind(), "unreachable");
    assert!(hanging.to_string().contains("was stopped"), "{hanging}");
    // A lock left by a git that was killed does not stop the next one.
    log.put(&mut scene.anchor("a")).unwrap();
    fs::write(scene.at("anchors/a/refs/wardkeep/head.lock"), "").unwrap();
    log.grow(1, "");
    assert!(log.put(&mut scene.anchor("a")).is_ok());
    // A remote whose owner says no.
    scene.remote_git(&["config", "receive.hideRefs", "refs/heads/seals"]);
    log.grow(1, "");
    let rejected = log.put(&mut scene.anchor("a")).unwrap_err();
    assert!(rejected.to_string().contains("the remote rejects it"), "{rejected}");
}
