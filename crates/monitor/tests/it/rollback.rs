//! Rollbacks: what they put back, what they remove, what they keep, and what they leave alone.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use wardkeep_evidence::hash::{BlobHash, sha256};
use wardkeep_evidence::json::Value;
use wardkeep_evidence::record::{Principal, RecordType};
use wardkeep_monitor::policy::About;
use wardkeep_monitor::rollback::automatic::{Automatic, Doubt, changed_since};
use wardkeep_monitor::rollback::policy::{Call, Denials};
use wardkeep_monitor::rollback::{LeftWhy, preview, unfinished};
use wardkeep_monitor::snapshot::{By, Limits, Scope, SnapshotError};
use wardkeep_monitor::store::Event;

use crate::shared::verify;
use crate::snapshot::{Scene, path, tree};

#[test]
fn a_rollback_restores_removes_and_can_be_undone() {
    let scene = Scene::new();
    let before = tree(&scene.work());
    let taken = scene.take(Scope::Full);
    scene.write("MEMORY.md", "poisoned");
    scene.write("src/main.rs", "the user's own work");
    fs::remove_file(scene.work().join("SOUL.md")).unwrap();
    // Row 23: what was added goes.
    scene.write("memory/evil.md", "evil");
    scene.write(".claude/plugins/evil/run.js", "evil");
    fs::set_permissions(
        scene.work().join(".claude/settings.json"),
        fs::Permissions::from_mode(0o666),
    )
    .unwrap();
    let poisoned = tree(&scene.work());
    let opened = scene.opened(&taken.listed);
    assert_eq!(preview(&opened, None, &Limits::default()).unwrap().len(), 5);
    assert_eq!(tree(&scene.work()), poisoned, "a preview changes nothing");

    let done = scene.snapshots().restore(&taken.listed, None, By::owner()).unwrap();
    assert_eq!(done.restored, [".claude/settings.json", "MEMORY.md", "SOUL.md"].map(path));
    assert_eq!(done.removed, [".claude/plugins/evil/run.js", "memory/evil.md"].map(path));
    assert!(done.left.is_empty() && !done.resumed);
    let mut expected = before.clone();
    expected.insert(scene.work().join("src/main.rs"), b"the user's own work".to_vec());
    assert_eq!(tree(&scene.work()), expected);
    assert!(!scene.exists(".claude/plugins/evil"), "the folder that came with it goes");
    let mode = fs::metadata(scene.work().join(".claude/settings.json")).unwrap().mode();
    assert_eq!(mode & 0o777, 0o644);
    assert_eq!(unfinished(&scene.state()), None);
    assert_eq!(scene.diff(&taken.listed), []);

    let catalogue = scene.catalogue();
    let record = &catalogue.rollbacks[0];
    assert_eq!((record.snapshot, Some(record.kept)), (taken.listed.id, done.kept));
    assert_eq!((record.auto, record.files.len()), (false, 5));
    // Again: there is nothing to do, and nothing is written.
    let again = scene.snapshots().restore(&taken.listed, None, By::owner()).unwrap();
    assert_eq!((again.kept, again.record), (None, None));
    assert_eq!(scene.catalogue().rollbacks.len(), 1);

    // Undone, and undone again.
    scene.write("src/main.rs", "newer work");
    let kept = catalogue.undo(&scene.work()).unwrap();
    let undone = scene.snapshots().restore(kept, None, By::owner()).unwrap();
    assert_eq!((undone.restored.len(), undone.removed.len()), (4, 1));
    let mut expected = poisoned;
    expected.insert(scene.work().join("src/main.rs"), b"newer work".to_vec());
    assert_eq!(tree(&scene.work()), expected);
    let catalogue = scene.catalogue();
    let kept = catalogue.undo(&scene.work()).unwrap();
    scene.snapshots().restore(kept, None, By::owner()).unwrap();
    assert_eq!(scene.text("MEMORY.md"), "memory");
    assert!(!scene.exists("memory/evil.md"));
    assert!(verify(&scene.state()).passed());
}

#[test]
fn an_undo_leaves_newer_work_elsewhere_alone() {
    let scene = Scene::new();
    let taken = scene.take(Scope::Memory);
    scene.write("SOUL.md", "changed");
    scene.snapshots().restore(&taken.listed, None, By::owner()).unwrap();
    scene.write("MEMORY.md", "the user wrote this after the rollback");
    let catalogue = scene.catalogue();
    let kept = catalogue.undo(&scene.work()).unwrap();
    scene.snapshots().restore(kept, None, By::owner()).unwrap();
    assert_eq!(scene.text("SOUL.md"), "changed");
    assert_eq!(scene.text("MEMORY.md"), "the user wrote this after the rollback");
}

#[test]
fn only_what_is_asked_for_is_restored() {
    let scene = Scene::new();
    let taken = scene.take(Scope::Memory);
    scene.write("SOUL.md", "changed");
    scene.write("memory/a/b.md", "added");
    scene.write("memory/2026-01-01.md", "changed");
    scene.write("memory2.md", "not covered");
    let only = [path("memory")];
    let done = scene.snapshots().restore(&taken.listed, Some(&only), By::owner()).unwrap();
    assert_eq!(done.restored, [path("memory/2026-01-01.md")]);
    assert_eq!(done.removed, [path("memory/a/b.md")]);
    assert_eq!(scene.text("SOUL.md"), "changed");
}

#[test]
fn files_are_put_back_to_given_contents() {
    let scene = Scene::new();
    let old = scene.store.put_blob(b"what was there before the attack").unwrap();
    scene.write("src/main.rs", "tainted");
    scene.write("src/evil.rs", "tainted");
    fs::set_permissions(scene.work().join("src/main.rs"), fs::Permissions::from_mode(0o755))
        .unwrap();
    let files = [
        (path("src/main.rs"), Some(old)),
        (path("src/evil.rs"), None),
        (path("deep/new/file"), Some(old)),
    ];
    let before = tree(&scene.work());
    let snapshots = scene.snapshots();
    let done =
        snapshots.restore_files(&scene.work(), &files, "contamination", By::owner()).unwrap();
    assert_eq!(done.restored, ["deep/new/file", "src/main.rs"].map(path));
    assert_eq!(done.removed, [path("src/evil.rs")]);
    assert_eq!(scene.text("src/main.rs"), "what was there before the attack");
    assert_eq!(fs::metadata(scene.work().join("src/main.rs")).unwrap().mode() & 0o777, 0o755);
    let catalogue = scene.catalogue();
    snapshots.restore(catalogue.undo(&scene.work()).unwrap(), None, By::owner()).unwrap();
    assert_eq!(tree(&scene.work()), before);
    // A content that is not there, or not what its name says, is refused before anything changes.
    let gone = BlobHash(sha256(b"never kept"));
    let files = [(path("SOUL.md"), None), (path("src/main.rs"), Some(gone))];
    let refused = snapshots.restore_files(&scene.work(), &files, "", By::owner());
    assert!(matches!(refused, Err(SnapshotError::BlobMissing { .. })));
    fs::write(scene.state().join("blobs").join(gone.to_string()), "EVIL").unwrap();
    let refused = snapshots.restore_files(&scene.work(), &files, "", By::owner());
    assert!(matches!(refused, Err(SnapshotError::BlobSwapped { .. })));
    assert_eq!(tree(&scene.work()), before);
}

#[test]
fn what_stands_in_the_way_is_replaced_and_kept() {
    let scene = Scene::new();
    let elsewhere = scene.folder.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("2026-01-01.md"), "not ours").unwrap();
    let before = tree(&scene.work());
    let taken = scene.take(Scope::Full);
    let work = scene.work();
    // A link for a folder, a folder for a file, a file for a folder, a pipe for a file.
    fs::remove_dir_all(work.join("memory")).unwrap();
    symlink(&elsewhere, work.join("memory")).unwrap();
    fs::remove_file(work.join("SOUL.md")).unwrap();
    scene.write("SOUL.md/deep/er/file", "in the way");
    fs::create_dir_all(work.join("SOUL.md/empty/folders")).unwrap();
    fs::remove_dir_all(work.join(".claude")).unwrap();
    scene.write(".claude", "a file");
    fs::remove_file(work.join("MEMORY.md")).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, work.join("MEMORY.md"), fifo, mode, 0).unwrap();
    let mut blocked = tree(&work);
    let done = scene.snapshots().restore(&taken.listed, None, By::owner()).unwrap();
    assert!(done.left.is_empty(), "{:?}", done.left);
    assert_eq!(tree(&work), before);
    assert_eq!(fs::read(elsewhere.join("2026-01-01.md")).unwrap(), b"not ours");
    let catalogue = scene.catalogue();
    let kept = catalogue.undo(&work).unwrap();
    scene.snapshots().restore(kept, None, By::owner()).unwrap();
    // A pipe holds nothing, so nothing of it is kept: the restored file stays.
    blocked.insert(work.join("MEMORY.md"), b"memory".to_vec());
    assert_eq!(tree(&work), blocked);
}

#[test]
fn what_cannot_be_kept_is_not_replaced() {
    let scene = Scene::new();
    let limits = Limits { file_bytes: 100, ..Limits::default() };
    let snapshots = scene.snapshots().with_limits(limits);
    let taken = snapshots.take(&scene.work(), Scope::Memory, "", By::owner()).unwrap();
    let large = "x".repeat(401);
    scene.write("MEMORY.md", &large);
    scene.write("memory/large.md", &large);
    scene.write("SOUL.md", "changed");
    let done = snapshots.restore(&taken.listed, None, By::owner()).unwrap();
    assert_eq!(done.restored, [path("SOUL.md")]);
    let left: Vec<_> = done.left.iter().map(|left| left.path.to_string()).collect();
    assert_eq!(left, ["MEMORY.md", "memory/large.md"]);
    assert!(done.left.iter().all(|left| matches!(left.why, LeftWhy::Unknown(_))));
    assert_eq!(scene.text("MEMORY.md"), large);
}

/// A write as the monitor records it.
pub(crate) fn record_write(
    scene: &Scene,
    session: &str,
    principal: Principal,
    name: &str,
    before: Option<&str>,
    after: &str,
) {
    let hash = |text: &str| {
        Value::from([("sha256", Value::from(BlobHash(sha256(text.as_bytes())).to_string()))])
    };
    let subject = scene.work().join(name).display().to_string();
    let content = Value::from([
        ("act", Value::from("write")),
        ("before", before.map_or(Value::Null, hash)),
        ("content", hash(after)),
        ("kind", Value::from("decision")),
        ("subject", Value::from(subject)),
        ("v", Value::from(1u64)),
        ("verdict", Value::from("allow")),
    ]);
    let mut event = Event::new(RecordType::FileWrite, principal, content);
    event.session = session;
    scene.store.append(event).unwrap();
    scene.write(name, after);
}

fn system(session: &str) -> By<'_> {
    By { principal: Principal::Sys, about: About { agent: "claude", session } }
}

fn automatic(scene: &Scene, session: &str) -> Automatic {
    let catalogue = scene.catalogue();
    let newest = catalogue.newest(&scene.work()).unwrap();
    let changes = changed_since(scene.reader().folder(), newest).unwrap();
    scene.snapshots().restore_automatically(newest, &changes, session, system(session)).unwrap()
}

#[test]
fn by_itself_only_what_the_session_wrote_is_restored() {
    let scene = Scene::new();
    record_write(
        &scene,
        "evil",
        Principal::Tool,
        "SOUL.md",
        Some("soul"),
        "older than the snapshot",
    );
    scene.take(Scope::Full);
    record_write(&scene, "evil", Principal::Tool, "MEMORY.md", Some("memory"), "poison");
    record_write(&scene, "evil", Principal::Skill, "MEMORY.md", Some("poison"), "more poison");
    record_write(&scene, "evil", Principal::Tool, "memory/evil.md", None, "added");
    record_write(
        &scene,
        "other",
        Principal::Tool,
        "memory/2026-01-01.md",
        Some("new year"),
        "other's",
    );
    record_write(
        &scene,
        "evil",
        Principal::Tool,
        "src/main.rs",
        Some("fn main() {}"),
        "not covered",
    );
    scene.write("SOUL.md", "edited by hand");
    let Automatic::Restored(done) = automatic(&scene, "evil") else { panic!("restored") };
    assert_eq!(
        (&done.restored[..], &done.removed[..]),
        (&[path("MEMORY.md")][..], &[path("memory/evil.md")][..])
    );
    assert_eq!(scene.text("MEMORY.md"), "memory");
    assert_eq!(scene.text("SOUL.md"), "edited by hand");
    assert_eq!(scene.text("memory/2026-01-01.md"), "other's");
    assert_eq!(scene.text("src/main.rs"), "not covered");
    let catalogue = scene.catalogue();
    assert!(catalogue.rollbacks[0].auto);
    assert!(matches!(automatic(&scene, "evil"), Automatic::Nothing));
    assert!(matches!(automatic(&scene, "nobody"), Automatic::Nothing));
    // The replaced state is kept.
    let kept = catalogue.undo(&scene.work()).unwrap();
    scene.snapshots().restore(kept, None, By::owner()).unwrap();
    assert_eq!(scene.text("MEMORY.md"), "more poison");
}

/// Row 22: five hostile messages cannot destroy the user's own newer work.
#[test]
fn five_hostile_messages_cannot_destroy_the_users_newer_work() {
    let newer = "the user's own newer work";
    // Written by the user through the agent, by hand, by hand before or after the session wrote.
    type Story = fn(&Scene);
    let stories: [(&str, Option<Doubt>, Story); 5] = [
        ("by hand", None, |scene| scene.write("MEMORY.md", "the user's own newer work")),
        ("through the agent", Some(Doubt::Owner), |scene| {
            let text = "the user's own newer work";
            record_write(scene, "s", Principal::User, "MEMORY.md", Some("memory"), text);
        }),
        ("by hand after the session", Some(Doubt::Differs), |scene| {
            record_write(scene, "s", Principal::Tool, "MEMORY.md", Some("memory"), "poison");
            scene.write("MEMORY.md", "the user's own newer work");
        }),
        ("by hand before the session", Some(Doubt::Differs), |scene| {
            scene.write("MEMORY.md", "the user's own newer work");
            let (before, after) =
                ("the user's own newer work", "the user's own newer work, and poison");
            record_write(scene, "s", Principal::Tool, "MEMORY.md", Some(before), after);
        }),
        ("through another session", Some(Doubt::Differs), |scene| {
            record_write(scene, "s", Principal::Tool, "MEMORY.md", Some("memory"), "poison");
            let text = "the user's own newer work";
            record_write(scene, "mine", Principal::Tool, "MEMORY.md", Some("poison"), text);
        }),
    ];
    for (name, doubt, story) in stories {
        let scene = Scene::new();
        scene.take(Scope::Full);
        story(&scene);
        let before = tree(&scene.work());
        let mut denials = Denials::default();
        let now = scene.store.now().unix();
        let calls: Vec<Call> =
            (0..6).map(|second| denials.note("s", Principal::Web, now + second)).collect();
        assert!(matches!(calls[4], Call::Automatic { .. }) && calls[5] == Call::None);
        match (automatic(&scene, "s"), doubt) {
            (Automatic::Nothing, None) => {}
            (Automatic::AskOwner(files), Some(doubt)) => {
                assert_eq!(files.into_iter().collect::<Vec<_>>(), [(path("MEMORY.md"), doubt)]);
            }
            (other, _) => panic!("{name}: {other:?}"),
        }
        assert_eq!(tree(&scene.work()), before, "{name}");
        assert!(scene.text("MEMORY.md").starts_with(newer));
        assert!(scene.catalogue().rollbacks.is_empty());
    }
}

#[test]
fn one_doubt_keeps_all_from_being_restored() {
    let scene = Scene::new();
    scene.take(Scope::Full);
    record_write(&scene, "s", Principal::Tool, "SOUL.md", Some("soul"), "poison");
    record_write(&scene, "s", Principal::Tool, "MEMORY.md", Some("memory"), "poison");
    scene.write("MEMORY.md", "edited by hand");
    assert!(matches!(automatic(&scene, "s"), Automatic::AskOwner(files) if files.len() == 1));
    assert_eq!(scene.text("SOUL.md"), "poison");
}
