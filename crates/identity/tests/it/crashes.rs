//! Processes that end at every step.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

use wardkeep_identity::config::Config;
use wardkeep_identity::level::Level;
use wardkeep_identity::steps::Steps;
use wardkeep_identity::workspace::Workspace;

use crate::lab::{Scene, name, skip, tree};
use crate::owned;

const CHILD: &str = "WARDKEEP_TEST_IDENTITY_IN";
const STEP: &str = "WARDKEEP_TEST_END_AT_STEP";

/// Ends the process at a step, as `kill -9` does.
struct End {
    left: AtomicU32,
    /// What is put in the way when the first file is replaced.
    plant: Option<PathBuf>,
}

impl Steps for End {
    fn step(&self, name: &'static str) {
        if let (Some(plant), "replace the file") = (&self.plant, name) {
            let _ = fs::write(plant, "in the way\n");
        }
        let left = self.left.load(Ordering::SeqCst);
        if left == 0 {
            let this = rustix::process::getpid();
            rustix::process::kill_process(this, rustix::process::Signal::KILL).unwrap();
        }
        self.left.store(left - 1, Ordering::SeqCst);
    }
}

/// Not a test of its own: the process that the tests below start and that ends itself.
#[test]
fn child_ends_at_a_step() {
    let Some(folder) = std::env::var_os(CHILD) else { return };
    let step = std::env::var(STEP).unwrap();
    let mut words = step.split(':');
    let mut word = || words.next().unwrap();
    let (level, what, step) = (owned::level(word()), word(), word().parse().unwrap());
    let folder = Path::new(&folder);
    let (work, state) = (folder.join("work"), folder.join("state"));
    let plant = (what == "fail").then(|| work.join("skills/new"));
    let end = End { left: AtomicU32::new(step), plant };
    let workspace =
        Workspace::open(&work, &state, level, SystemTime::now()).unwrap().with_steps(&end);
    match what {
        "init" => drop(workspace.set_up(&Config::new([]), &|_| {}).unwrap()),
        "apply" => {
            let changes = workspace.changes(&|_| {}).unwrap();
            workspace.apply(&changes, &changes.hash()).unwrap();
        }
        "fail" => {
            let changes = workspace.changes(&|_| {}).unwrap();
            workspace.apply(&changes, &changes.hash()).unwrap_err();
        }
        "sync" => drop(workspace.sync(&|_| {}).unwrap()),
        "protect" => drop(workspace.protect(&[name("other.txt"), name("memory")]).unwrap()),
        "release" => drop(workspace.release(&[name("skills"), name("AGENTS.md")]).unwrap()),
        "recover" => drop(workspace.recover().unwrap()),
        other => panic!("{other}"),
    }
}

/// A process that does one thing in a scene.
pub(crate) fn child(program: &Path, scene: &Scene, what: &str, step: u32) -> Command {
    let mut command = Command::new(program);
    command
        .args(["--exact", "crashes::child_ends_at_a_step", "--nocapture"])
        .env(CHILD, scene.folder.path())
        .env(STEP, format!("{}:{what}:{step}", owned::word(scene.level)))
        .current_dir("/")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// Whether the process came to its end by itself.
fn run(scene: &Scene, what: &str, step: u32) -> bool {
    use std::os::unix::process::ExitStatusExt as _;
    let program = std::env::current_exe().unwrap();
    let status = child(&program, scene, what, step).status().unwrap();
    assert!(status.success() || status.signal() == Some(9), "{what} {step}: {status}");
    status.success()
}

/// The files of the workspace, without our own.
fn files(scene: &Scene) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = tree(&scene.work());
    files.retain(|path, _| !path.starts_with(".soulguard"));
    files
}

/// Runs `what` and ends it at every step; each file is old or new then, and afterwards all are.
fn everywhere(level: Level, what: &str, least: u32, prepare: &dyn Fn(&Scene)) {
    let fresh = || {
        let scene = Scene::in_memory(level);
        owned::hand_over(&scene);
        prepare(&scene);
        owned::hand_over_staging(&scene);
        scene
    };
    let done = fresh();
    let old = files(&done);
    assert!(run(&done, what, u32::MAX));
    let new = files(&done);
    let mut new = new;
    // What fails later was no obstacle to whoever completed it before.
    let other = if what == "fail" {
        let applied = fresh();
        assert!(run(&applied, "apply", u32::MAX));
        files(&applied)
    } else {
        new.clone()
    };
    if what == "fail" {
        new.remove(Path::new("skills/new"));
        assert_eq!(new, old);
    }
    assert!(old != new || matches!(what, "init" | "fail"), "{what} changes nothing");
    let mut steps = 0;
    let (mut completed, mut reverted) = (0, 0);
    loop {
        let scene = fresh();
        let finished = run(&scene, what, steps);
        let now = files(&scene);
        for path in old.keys().chain(new.keys()).chain(other.keys()) {
            let here = now.get(path);
            let known = [&old, &new, &other].iter().any(|one| here == one.get(path));
            assert!(known, "{what} at step {steps}: {} holds {here:?}", path.display());
        }
        let planted = |path: &PathBuf| what == "fail" && path == Path::new("skills/new");
        let known =
            |path: &&PathBuf| [&old, &new, &other].iter().any(|one| one.contains_key(*path));
        assert!(now.keys().all(|path| known(&path) || planted(path)));
        // Half of the time the one who recovers is ended as well.
        if steps % 2 == 1 {
            run(&scene, "recover", steps / 2);
        }
        scene.open().recover().unwrap();
        let mut now = files(&scene);
        now.retain(|path, _| !planted(path));
        match (now == new || now == other, now == old) {
            (true, _) => completed += 1,
            (_, true) => reverted += 1,
            _ => panic!("{what} at step {steps}: neither old nor new: {now:?}"),
        }
        assert!(
            !scene.work().join(".soulguard").exists() || scene.open().recover().unwrap().is_none()
        );
        if scene.open().is_set_up().unwrap() {
            assert!(!scene.look().unfinished);
            if what != "sync" {
                let state = scene.look();
                assert!(state.is_clean(), "{what} at step {steps}: {state:#?}");
            }
            // Whatever was left behind keeps nothing from working.
            scene.sync();
            assert!(scene.look().is_clean(), "{what} at step {steps}");
        } else {
            scene.set_up();
            assert!(scene.look().is_clean(), "{what} at step {steps}");
        }
        scene.assert_bench_is_empty();
        if finished {
            break;
        }
        steps += 1;
    }
    assert!(steps >= least, "{what}: only {steps} steps");
    assert!(completed > 0, "{what}: {completed} {reverted}");
    if old != new {
        assert!(reverted > 0, "{what}: {completed} {reverted}");
    }
}

fn propose(scene: &Scene) {
    scene.set_up();
    scene.propose("SOUL.md", "a new soul\n");
    scene.propose("skills/new/c.md", "skill c\n");
    fs::remove_file(scene.staging().join("AGENTS.md")).unwrap();
    fs::remove_dir_all(scene.staging().join("skills/deep")).unwrap();
}

fn drift(scene: &Scene) {
    scene.set_up();
    owned::open_up(scene);
    scene.write("SOUL.md", "evil\n");
    fs::remove_file(scene.work().join("AGENTS.md")).unwrap();
    fs::remove_dir_all(scene.work().join("skills")).unwrap();
    symlink("../outside", scene.work().join("skills")).unwrap();
    fs::remove_file(scene.work().join("bin/run")).unwrap();
    fs::create_dir(scene.work().join("bin/run")).unwrap();
}

#[test]
fn a_set_up_that_is_killed_anywhere_is_there_whole_or_not_at_all() {
    everywhere(Level::User, "init", 40, &|_| {});
}

#[test]
fn an_apply_that_is_killed_anywhere_is_completed_or_reverted() {
    everywhere(Level::User, "apply", 30, &propose);
}

#[test]
fn an_apply_that_fails_and_is_killed_anywhere_is_reverted() {
    everywhere(Level::User, "fail", 30, &propose);
    if !owned::possible() {
        return skip("root and the immutable flag", "crashes");
    }
    everywhere(owned::level("sticky"), "fail", 30, &propose);
}

#[test]
fn a_sync_that_is_killed_anywhere_is_finished_by_the_next() {
    everywhere(Level::User, "sync", 20, &drift);
}

#[test]
fn a_new_tier_that_is_killed_anywhere_is_completed_or_reverted() {
    everywhere(Level::User, "protect", 40, &Scene::set_up);
    everywhere(Level::User, "release", 30, &Scene::set_up);
}

#[test]
fn the_same_holds_at_the_owned_level() {
    if !owned::possible() {
        return skip("root and the immutable flag", "crashes");
    }
    let level = owned::level("immutable");
    everywhere(level, "apply", 30, &propose);
    everywhere(level, "sync", 20, &drift);
    everywhere(level, "release", 30, &Scene::set_up);
}

/// What sync replaces is never lost.
#[test]
fn what_a_killed_sync_replaced_is_kept() {
    let mut steps = 0;
    loop {
        let scene = Scene::in_memory(Level::User);
        scene.set_up();
        scene.write("SOUL.md", "evil\n");
        let finished = run(&scene, "sync", steps);
        scene.open().recover().unwrap();
        scene.sync();
        let kept = scene.quarantined();
        let evil = |(_, bytes): &&(String, Vec<u8>)| bytes == b"evil\n";
        assert!(kept.iter().any(|one| evil(&one)), "at step {steps}: {kept:?}");
        assert!(kept.iter().all(|one| evil(&one)), "at step {steps}: {kept:?}");
        if finished {
            break;
        }
        steps += 1;
    }
    assert!(steps > 15, "only {steps} steps");
}
