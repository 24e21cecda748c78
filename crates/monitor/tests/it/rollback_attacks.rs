//! Row 24 and its kin: snapshots that were swapped, paths that lead out, links in the way.

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};

use wardkeep_evidence::hash::{BlobHash, sha256};
use wardkeep_evidence::json::Value;
use wardkeep_evidence::record::{Principal, RecordType};
use wardkeep_monitor::rollback::LeftWhy;
use wardkeep_monitor::snapshot::{By, Listed, Opened, Scope, SnapshotError, Steps};
use wardkeep_monitor::store::Event;

use crate::snapshot::{Scene, path, tree};

fn manifest(scene: &Scene, listed: &Listed) -> std::path::PathBuf {
    scene.state().join(format!("snapshots/{}.json", listed.id))
}

fn hash(text: &[u8]) -> String {
    BlobHash(sha256(text)).to_string()
}

#[test]
fn a_swapped_content_is_refused() {
    let scene = Scene::new();
    let taken = scene.take(Scope::Full).listed;
    scene.write("SOUL.md", "changed");
    scene.write("MEMORY.md", "changed");
    let before = tree(&scene.work());
    let blob = scene.state().join("blobs").join(hash(b"soul"));
    fs::write(&blob, "EVIL").unwrap();
    let restored = scene.snapshots().restore(&taken, None, By::owner());
    assert!(matches!(restored, Err(SnapshotError::BlobSwapped { .. })), "{restored:?}");
    assert!(matches!(scene.opened(&taken).check(), Err(SnapshotError::BlobSwapped { .. })));
    // Nor is a link followed that leads to the right bytes, or a missing one overlooked.
    fs::remove_file(&blob).unwrap();
    fs::write(scene.folder.path().join("soul"), "soul").unwrap();
    symlink(scene.folder.path().join("soul"), &blob).unwrap();
    assert!(scene.snapshots().restore(&taken, None, By::owner()).is_err());
    fs::remove_file(&blob).unwrap();
    let restored = scene.snapshots().restore(&taken, None, By::owner());
    assert!(matches!(restored, Err(SnapshotError::BlobMissing { .. })));
    assert_eq!(tree(&scene.work()), before, "nothing was touched");
    // A new snapshot of the same content mends it.
    scene.write("SOUL.md", "soul");
    fs::write(&blob, "EVIL").unwrap();
    scene.take(Scope::Memory);
    scene.opened(&taken).check().unwrap();
}

#[test]
fn a_swapped_manifest_is_refused() {
    let scene = Scene::new();
    let taken = scene.take(Scope::Full).listed;
    let other = scene.take(Scope::Memory).listed;
    let file = manifest(&scene, &taken);
    let sound = fs::read_to_string(&file).unwrap();
    fs::write(scene.state().join("blobs").join(hash(b"EVIL")), "EVIL").unwrap();
    let evil = sound.replace(&hash(b"soul"), &hash(b"EVIL"));
    assert_ne!(evil, sound);
    let escaping = sound.replace("\"SOUL.md\",\"sha256\"", "\"../escaped.txt\",\"sha256\"");
    assert_ne!(escaping, sound);
    let foreign = fs::read_to_string(manifest(&scene, &other)).unwrap();
    for text in [&evil, &escaping, &foreign, &sound.replace("\"v\":1", "\"v\":1 "), ""] {
        fs::write(&file, text).unwrap();
        let restored = scene.snapshots().restore(&taken, None, By::owner());
        assert!(matches!(restored, Err(SnapshotError::ManifestSwapped { .. })), "{restored:?}");
    }
    fs::remove_file(&file).unwrap();
    assert!(matches!(
        Opened::open(&scene.state(), &taken),
        Err(SnapshotError::ManifestSwapped { .. })
    ));
    fs::write(scene.folder.path().join("m"), &sound).unwrap();
    symlink(scene.folder.path().join("m"), &file).unwrap();
    assert!(Opened::open(&scene.state(), &taken).is_err());
    assert_eq!(scene.text("SOUL.md"), "soul");
    assert!(!scene.folder.path().join("escaped.txt").exists());
}

/// Even with a record of its own: someone who can append to the journal and write into the state
/// directory still cannot name a path outside, nor take over an id.
#[test]
fn a_forged_record_leads_nowhere() {
    let scene = Scene::new();
    let taken = scene.take(Scope::Full).listed;
    let sound = fs::read_to_string(manifest(&scene, &taken)).unwrap();
    let forge = |id: &str, text: &str| {
        fs::write(scene.state().join(format!("snapshots/{id}.json")), text).unwrap();
        let content = Value::from([
            ("files", Value::from(1u64)),
            ("id", Value::from(id)),
            ("kind", Value::from("snapshot")),
            ("manifest", Value::from(hash(text.as_bytes()))),
            ("scope", Value::from("full")),
            ("v", Value::from(1u64)),
        ]);
        scene.store.append(Event::new(RecordType::Snapshot, Principal::Tool, content)).unwrap();
    };
    let id = taken.id.to_string();
    let escaping = sound.replace("\"SOUL.md\",\"sha256\"", "\"../escaped.txt\",\"sha256\"");
    forge("0123456789ab", &escaping.replace(&id, "0123456789ab"));
    let catalogue = scene.catalogue();
    let forged = catalogue.find("0123456789ab").unwrap();
    let restored = scene.snapshots().restore(forged, None, By::owner());
    assert!(matches!(restored, Err(SnapshotError::ManifestSwapped { .. })), "{restored:?}");
    assert!(!scene.folder.path().join("escaped.txt").exists());
    fs::write(scene.state().join("blobs").join(hash(b"EVIL")), "EVIL").unwrap();
    forge(&id, &sound.replace(&hash(b"soul"), &hash(b"EVIL")));
    assert!(matches!(scene.catalogue().find(&id), Err(SnapshotError::Doubled { .. })));
}

#[test]
fn links_never_lead_a_write_out_of_the_workspace() {
    let scene = Scene::new();
    let outside = scene.folder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("victim"), "victim").unwrap();
    fs::write(outside.join("2026-01-01.md"), "victim").unwrap();
    let taken = scene.take(Scope::Full).listed;
    let work = scene.work();
    // At the target.
    fs::remove_file(work.join("SOUL.md")).unwrap();
    symlink(outside.join("victim"), work.join("SOUL.md")).unwrap();
    // A further name of a file outside.
    fs::remove_file(work.join("MEMORY.md")).unwrap();
    fs::hard_link(outside.join("victim"), work.join("MEMORY.md")).unwrap();
    // On the way.
    fs::rename(work.join("memory"), work.join("memory.old")).unwrap();
    symlink(&outside, work.join("memory")).unwrap();
    let victims = tree(&outside);
    let done = scene.snapshots().restore(&taken, None, By::owner()).unwrap();
    assert!(done.left.is_empty(), "{:?}", done.left);
    assert_eq!(tree(&outside), victims);
    assert_eq!((scene.text("SOUL.md"), scene.text("MEMORY.md")), ("soul".into(), "memory".into()));
    assert_eq!(fs::metadata(work.join("MEMORY.md")).unwrap().nlink(), 1);
    assert_eq!(scene.text("memory/2026-01-01.md"), "new year");
}

#[test]
fn a_workspace_that_became_a_link_is_not_written_to() {
    let scene = Scene::new();
    let taken = scene.take(Scope::Full).listed;
    let outside = scene.folder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::rename(scene.work(), scene.folder.path().join("moved")).unwrap();
    symlink(&outside, scene.work()).unwrap();
    let restored = scene.snapshots().restore(&taken, None, By::owner());
    assert!(matches!(restored, Err(SnapshotError::Moved { .. })), "{restored:?}");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

/// Does something in the middle of a rollback: before a step for the n-th time, the plan being
/// written.
struct Meddler<'a> {
    at: &'static str,
    left: Cell<u32>,
    planned: Cell<bool>,
    what: &'a dyn Fn(),
}

impl Steps for Meddler<'_> {
    fn step(&self, name: &'static str) {
        self.planned.set(self.planned.get() || name == "write the plan");
        if self.planned.get() && name == self.at {
            self.left.set(self.left.get().wrapping_sub(1));
            if self.left.get() == 0 {
                (self.what)();
            }
        }
    }
}

fn meddled(
    scene: &Scene,
    taken: &Listed,
    at: (&'static str, u32),
    what: &dyn Fn(),
) -> Vec<LeftWhy> {
    let (at, nth) = at;
    let meddler = Meddler { at, left: Cell::new(nth), planned: Cell::new(false), what };
    let snapshots = scene.snapshots().with_steps(&meddler);
    let done = snapshots.restore(taken, None, By::owner()).unwrap();
    done.left.into_iter().map(|left| left.why).collect()
}

#[test]
fn what_is_written_while_it_runs_is_not_lost() {
    let scene = Scene::new();
    let taken = scene.take(Scope::Memory).listed;
    scene.write("MEMORY.md", "poison");
    scene.write("memory/added.md", "poison");
    let newer = || {
        scene.write("MEMORY.md", "the user's newer words");
        scene.write("memory/added.md", "the user's newer file");
    };
    let left = meddled(&scene, &taken, ("write the plan", 1), &newer);
    assert!(matches!(left[..], [LeftWhy::Changed, LeftWhy::Changed]), "{left:?}");
    assert_eq!(scene.text("MEMORY.md"), "the user's newer words");
    assert_eq!(scene.text("memory/added.md"), "the user's newer file");
}

#[test]
fn a_folder_swapped_for_a_link_while_it_runs_leads_nowhere() {
    let scene = Scene::new();
    let outside = scene.folder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("2026-01-01.md"), "poison").unwrap();
    let taken = scene.take(Scope::Memory).listed;
    scene.write("memory/2026-01-01.md", "poison");
    let work = scene.work();
    let swap = || {
        fs::rename(work.join("memory"), work.join("memory.old")).unwrap();
        symlink(&outside, work.join("memory")).unwrap();
    };
    let swap_back = || {
        fs::remove_file(work.join("memory")).unwrap();
        fs::rename(work.join("memory.old"), work.join("memory")).unwrap();
    };
    // Before its folder is opened, and after; the first to be renamed is the plan.
    for at in [("write the plan", 1), ("make a temporary file", 2), ("rename it", 2)] {
        let left = meddled(&scene, &taken, at, &swap);
        assert!(matches!(left[..], [LeftWhy::Changed | LeftWhy::Failed(_)]), "{at:?} {left:?}");
        assert_eq!(fs::read(outside.join("2026-01-01.md")).unwrap(), b"poison");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
        swap_back();
        scene.write("memory/2026-01-01.md", "poison");
    }
    assert_eq!(meddled(&scene, &taken, ("never", 1), &swap).len(), 0);
    assert_eq!(scene.text("memory/2026-01-01.md"), "new year");
}

#[test]
fn an_edited_plan_restores_nothing_that_was_not_recorded() {
    let scene = Scene::new();
    let taken = scene.take(Scope::Full).listed;
    scene.write("SOUL.md", "the user's own");
    let plan = |paths: &str, snapshot: &str, kept: &str| {
        let text = format!(
            r#"{{"agent":"","auto":false,"kept":"{kept}","paths":[{paths}],"principal":"USER","session":"","snapshot":"{snapshot}","v":1}}"#
        );
        fs::write(scene.state().join("snapshots/rollback.json"), text).unwrap();
    };
    let id = taken.id.to_string();
    let before = tree(&scene.work());
    // The file is not what is kept, so it is newer, and stays.
    plan(r#""SOUL.md""#, &id, &id);
    let done = scene.snapshots().resume().unwrap().unwrap();
    assert!(matches!(done.left[0].why, LeftWhy::Changed));
    assert_eq!(tree(&scene.work()), before);
    for (paths, snapshot) in [(r#""../x""#, id.as_str()), (r#""SOUL.md""#, "ffffffffffff")] {
        plan(paths, snapshot, &id);
        assert!(scene.snapshots().resume().is_err());
        assert!(scene.snapshots().resume().unwrap().is_none(), "it is given up once");
        assert_eq!(tree(&scene.work()), before);
    }
    assert!(!scene.exists("x") && path("SOUL.md").names().count() == 1);
}
