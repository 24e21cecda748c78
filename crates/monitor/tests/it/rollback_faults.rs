//! Processes that end at every step of a snapshot and of a rollback.

use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use wardkeep_monitor::rollback::unfinished;
use wardkeep_monitor::snapshot::{By, Catalogue, Scope, Snapshots, Steps};
use wardkeep_monitor::store::StoreReader;

use crate::shared::{SetClock, open, verify};
use crate::snapshot::{Scene, tree};

const CHILD: &str = "WARDKEEP_TEST_ROLL_BACK_IN";
const STEP: &str = "WARDKEEP_TEST_END_AT_STEP";

/// Ends the process at a step, as `kill -9` does.
struct End {
    left: Cell<u32>,
}

impl Steps for End {
    fn step(&self, _: &'static str) {
        let left = self.left.get();
        if left == 0 {
            let this = rustix::process::getpid();
            rustix::process::kill_process(this, rustix::process::Signal::KILL).unwrap();
        }
        self.left.set(left.saturating_sub(1));
    }
}

/// Not a test of its own: the process that the tests below start and that ends itself.
#[test]
fn child_ends_at_a_step() {
    let Some(folder) = std::env::var_os(CHILD) else { return };
    let step = std::env::var(STEP).unwrap();
    let (what, step) = step.split_once(':').unwrap();
    let folder = Path::new(&folder);
    let store = open(&folder.join("state"), &SetClock::new());
    let end = End { left: Cell::new(step.parse().unwrap()) };
    let snapshots = Snapshots::new(&store).with_steps(&end);
    let reader = StoreReader::open(&folder.join("state")).unwrap();
    let catalogue = Catalogue::read(&reader).unwrap();
    match what {
        "take" => drop(snapshots.take(&folder.join("work"), Scope::Full, "", By::owner()).unwrap()),
        "resume" => drop(snapshots.resume().unwrap()),
        _ => {
            let first = catalogue.snapshots.last().unwrap();
            snapshots.restore(first, None, By::owner()).unwrap();
        }
    }
}

/// Whether the process came to its end by itself.
fn run_child(folder: &Path, what: &str, step: u32) -> bool {
    use std::os::unix::process::ExitStatusExt as _;
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "rollback_faults::child_ends_at_a_step", "--nocapture"])
        .env(CHILD, folder)
        .env(STEP, format!("{what}:{step}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success() || status.signal() == Some(9), "{what} {step}: {status}");
    status.success()
}

#[test]
fn a_snapshot_that_is_killed_anywhere_is_there_whole_or_not_at_all() {
    let mut steps = 0;
    loop {
        let scene = Scene::new();
        let before = tree(&scene.work());
        let finished = run_child(scene.folder.path(), "take", steps);
        assert_eq!(tree(&scene.work()), before);
        for listed in &scene.catalogue().snapshots {
            let opened = scene.opened(listed);
            opened.check().unwrap();
            assert_eq!(opened.manifest().files.len(), 4);
        }
        // Another one completes, whatever was left behind, and is whole.
        let taken = scene.take(Scope::Full);
        scene.opened(&taken.listed).check().unwrap();
        assert_eq!(scene.diff(&taken.listed), []);
        assert!(verify(&scene.state()).passed());
        let partial = |folder: &str| {
            let names = fs::read_dir(scene.state().join(folder)).unwrap();
            names
                .filter(|name| {
                    name.as_ref().unwrap().file_name().to_string_lossy().contains("partial")
                })
                .count()
        };
        assert!(partial("blobs") + partial("snapshots") <= 1, "at step {steps}");
        if finished {
            break;
        }
        steps += 1;
    }
    assert!(steps > 20, "only {steps} steps");
}

/// Changed, removed, added, and one for another.
fn attacked() -> Scene {
    let scene = Scene::new();
    scene.take(Scope::Full);
    scene.write("MEMORY.md", "poison in the memory");
    fs::remove_file(scene.work().join("SOUL.md")).unwrap();
    scene.write("memory/evil/added.md", "added");
    fs::remove_file(scene.work().join(".claude/settings.json")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", scene.work().join(".claude/settings.json")).unwrap();
    scene
}

#[test]
fn a_rollback_that_is_killed_anywhere_leaves_old_or_new_and_is_finished_by_the_next() {
    let clean = tree(&Scene::new().work());
    let mut steps = 0;
    loop {
        let scene = attacked();
        let old = tree(&scene.work());
        let finished = run_child(scene.folder.path(), "restore", steps);
        let rename = |path: &Path| path.strip_prefix(scene.work()).unwrap().to_owned();
        let new: std::collections::BTreeMap<_, _> = clean
            .iter()
            .map(|(path, bytes)| {
                let below = path.components().skip_while(|part| part.as_os_str() != "work").skip(1);
                (scene.work().join(below.collect::<std::path::PathBuf>()), bytes.clone())
            })
            .collect();
        for (path, bytes) in tree(&scene.work()) {
            // What is being made has a name of its own.
            if path.file_name().unwrap().to_string_lossy().starts_with(".wardkeep-") {
                continue;
            }
            let known = old.get(&path) == Some(&bytes) || new.get(&path) == Some(&bytes);
            assert!(known, "{} at step {steps}", rename(&path).display());
        }
        for path in old.keys().filter(|path| new.contains_key(*path)) {
            assert!(fs::symlink_metadata(path).is_ok(), "{path:?} is gone at step {steps}");
        }
        // Half of the time the one who finishes is killed as well.
        if steps % 2 == 1 && unfinished(&scene.state()).is_some() {
            run_child(scene.folder.path(), "resume", steps / 2);
        }
        let resumed = scene.snapshots().resume().unwrap();
        let catalogue = scene.catalogue();
        let first = catalogue.snapshots.last().unwrap();
        if resumed.is_none() && scene.catalogue().rollbacks.is_empty() {
            scene.snapshots().restore(first, None, By::owner()).unwrap();
        }
        assert_eq!(tree(&scene.work()), new, "at step {steps}");
        assert_eq!(unfinished(&scene.state()), None);
        let catalogue = scene.catalogue();
        assert_eq!(catalogue.rollbacks.len(), 1, "one record, at step {steps}");
        assert_eq!(catalogue.rollbacks[0].files.len(), 4);
        assert!(verify(&scene.state()).passed());
        // What was replaced can be had back.
        let kept = catalogue.undo(&scene.work()).unwrap();
        scene.snapshots().restore(kept, None, By::owner()).unwrap();
        assert_eq!(tree(&scene.work()), old, "at step {steps}");
        if finished {
            break;
        }
        steps += 1;
    }
    assert!(steps > 30, "only {steps} steps");
}
