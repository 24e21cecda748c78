//! What an owner and an agent do all day.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use wardkeep_identity::changes::ChangeKind;
use wardkeep_identity::config::{Config, Tier};
use wardkeep_identity::error::IdentityError;
use wardkeep_identity::level::Level;
use wardkeep_identity::state::{Drift, Status};

use crate::lab::{Scene, name, other_hash};

#[test]
fn a_workspace_is_set_up_as_it_is_found() {
    let scene = Scene::bare(tempfile::tempdir().unwrap(), Level::User);
    assert!(matches!(scene.open().look(&|_| {}), Err(IdentityError::NotSetUp)));
    let done = scene.open().set_up(&Config::new([]), &|_| {}).unwrap();
    assert!(done.new && !done.config_made);
    let names = |list: &[wardkeep_identity::name::Name]| -> Vec<String> {
        list.iter().map(ToString::to_string).collect()
    };
    let expected =
        ["AGENTS.md", "SOUL.md", "bin/run", "skills/a.md", "skills/deep/b.md", "soulguard.json"];
    assert_eq!(names(&done.protected), expected);
    assert_eq!(names(&done.watched), ["memory/one.md"]);
    assert_eq!(done.versions.len(), 7);
    scene.assert_clean();
    scene.assert_bench_is_empty();
    assert_eq!(scene.mode("SOUL.md"), 0o444);
    assert_eq!(scene.mode("bin/run"), 0o555);
    assert_eq!(scene.mode("memory/one.md"), 0o644);
    assert_eq!(fs::read(scene.staging().join("skills/deep/b.md")).unwrap(), b"skill b\n");
    assert_eq!(scene.mode(".soulguard/staging/SOUL.md"), 0o644);
    assert_eq!(scene.mode(".soulguard/staging/bin/run"), 0o755);
    // The second time approves nothing.
    scene.write("skills/new.md", "new");
    let again = scene.open().set_up(&Config::new([]), &|_| {}).unwrap();
    assert!(!again.new && again.protected.is_empty() && again.versions.is_empty());
    assert_eq!(scene.status("skills/new.md"), Status::Pending);
}

#[test]
fn what_was_proposed_before_proposes_no_deletion() {
    let scene = Scene::bare(tempfile::tempdir().unwrap(), Level::User);
    fs::create_dir_all(scene.staging()).unwrap();
    fs::write(scene.staging().join("SOUL.md"), "another\n").unwrap();
    scene.open().set_up(&Config::new([]), &|_| {}).unwrap();
    let changes = scene.changes();
    let changed: Vec<String> = changes.changes.iter().map(|one| one.name.to_string()).collect();
    assert_eq!(changed, ["SOUL.md"]);
    assert_eq!(fs::read(scene.staging().join("SOUL.md")).unwrap(), b"another\n");
}

#[test]
fn a_workspace_without_a_configuration_gets_the_default() {
    let scene = Scene::bare(tempfile::tempdir().unwrap(), Level::User);
    fs::remove_file(scene.work().join("soulguard.json")).unwrap();
    let done = scene.open().set_up(&Config::new([".claude/settings.json"]), &|_| {}).unwrap();
    assert!(done.config_made);
    let config = Config::parse(&scene.read("soulguard.json")).unwrap();
    assert!(config.entries().unwrap().contains(&(Tier::Protect, ".claude/settings.json")));
    scene.assert_clean();
}

#[test]
fn an_invalid_configuration_is_an_error_and_nothing_is_set_up() {
    let scene = Scene::bare(tempfile::tempdir().unwrap(), Level::User);
    scene.write("soulguard.json", "{ \"version\": 1, ");
    let error = scene.open().set_up(&Config::new([]), &|_| {}).unwrap_err();
    assert!(matches!(error, IdentityError::Config(_)), "{error}");
    assert!(!scene.work().join(".soulguard").exists());
    assert!(!scene.open().is_set_up().unwrap());
}

#[test]
fn what_is_proposed_is_shown_approved_and_installed() {
    let scene = Scene::new();
    assert!(scene.changes().is_empty());
    scene.propose("SOUL.md", "# My Updated Soul\n");
    let changes = scene.changes();
    assert_eq!(changes.changes.len(), 1);
    let error = scene.open().apply(&changes, &other_hash()).unwrap_err();
    assert!(matches!(error, IdentityError::HashMismatch { .. }), "{error}");
    assert_eq!(scene.text("SOUL.md"), "# My Soul\n");
    let done = scene.open().apply(&changes, &changes.hash()).unwrap();
    assert_eq!(done.files.len(), 1);
    assert_eq!(done.versions.len(), 1);
    assert!(done.left.is_empty());
    assert_eq!(scene.text("SOUL.md"), "# My Updated Soul\n");
    assert_eq!(scene.mode("SOUL.md"), 0o444);
    scene.assert_clean();
    assert!(scene.changes().is_empty());
    scene.assert_bench_is_empty();
    // S-21: the agent can go on.
    fs::write(scene.staging().join("SOUL.md"), "more").unwrap();
    assert_eq!(scene.words(), ["modified SOUL.md"]);
    // The same value again is about another baseline by now.
    let error = scene.open().apply(&changes, &changes.hash()).unwrap_err();
    assert!(matches!(error, IdentityError::Stale { .. }), "{error}");
}

#[test]
fn files_come_go_and_change_their_mode() {
    let scene = Scene::new();
    scene.propose("skills/new/deep/c.md", "skill c\n");
    fs::remove_file(scene.staging().join("AGENTS.md")).unwrap();
    fs::remove_dir_all(scene.staging().join("skills/deep")).unwrap();
    let run = scene.staging().join("bin/run");
    fs::set_permissions(&run, fs::Permissions::from_mode(0o644)).unwrap();
    let soul = scene.staging().join("SOUL.md");
    fs::set_permissions(&soul, fs::Permissions::from_mode(0o4755)).unwrap();
    scene.propose("bin/tool", "tool\n");
    fs::set_permissions(scene.staging().join("bin/tool"), fs::Permissions::from_mode(0o700))
        .unwrap();
    assert_eq!(
        scene.words(),
        [
            "deleted AGENTS.md",
            "modified+x SOUL.md",
            "modified bin/run",
            "new+x bin/tool",
            "deleted skills/deep/b.md",
            "new skills/new/deep/c.md",
        ]
    );
    scene.apply().unwrap();
    scene.assert_clean();
    assert!(!scene.work().join("AGENTS.md").exists());
    assert!(!scene.work().join("skills/deep").exists(), "an emptied folder goes");
    assert_eq!(scene.text("skills/new/deep/c.md"), "skill c\n");
    // No bit that lends rights, and no more than was shown.
    assert_eq!(scene.mode("SOUL.md"), 0o555);
    assert_eq!(scene.mode("bin/run"), 0o444);
    assert_eq!(scene.mode("bin/tool"), 0o555);
    assert!(scene.changes().is_empty());
}

#[test]
fn a_part_is_approved_alone() {
    let scene = Scene::new();
    scene.propose("SOUL.md", "evil");
    scene.propose("AGENTS.md", "good");
    let all = scene.changes();
    let part = all.only(&[name("AGENTS.md")]);
    // S-11: the hash of the part approves nothing else.
    let error = scene.open().apply(&all, &part.hash()).unwrap_err();
    assert!(matches!(error, IdentityError::HashMismatch { .. }));
    scene.open().apply(&part, &part.hash()).unwrap();
    assert_eq!(scene.text("SOUL.md"), "# My Soul\n");
    assert_eq!(scene.text("AGENTS.md"), "good");
    assert_eq!(scene.words(), ["modified SOUL.md"]);
}

#[test]
fn a_new_file_in_a_protected_place_waits_for_approval() {
    let scene = Scene::new();
    scene.write("skills/new.md", "planted");
    assert_eq!(scene.status("skills/new.md"), Status::Pending);
    assert!(scene.look().is_clean());
    let synced = scene.sync();
    assert!(synced.mended.is_empty(), "{synced:?}");
    assert_eq!(scene.status("skills/new.md"), Status::Pending);
    assert_eq!(scene.words(), ["new skills/new.md"]);
    scene.apply().unwrap();
    scene.assert_clean();
    assert_eq!(fs::read(scene.staging().join("skills/new.md")).unwrap(), b"planted");
}

#[test]
fn a_file_that_was_listed_and_never_was_there_is_no_fault() {
    let scene = Scene::new();
    fs::remove_file(scene.staging().join("AGENTS.md")).unwrap();
    scene.apply().unwrap();
    scene.assert_clean();
    scene.propose("AGENTS.md", "back");
    assert_eq!(scene.words(), ["new AGENTS.md"]);
    scene.apply().unwrap();
    assert_eq!(scene.text("AGENTS.md"), "back");
}

#[test]
fn bytes_are_bytes() {
    let scene = Scene::new();
    let bytes: Vec<u8> = (0..=255u8).cycle().take(3000).collect();
    scene.propose("SOUL.md", &bytes);
    scene.propose("skills/empty", "");
    scene.apply().unwrap();
    assert_eq!(scene.read("SOUL.md"), bytes);
    assert_eq!(scene.read("skills/empty"), b"");
    scene.assert_clean();
}

#[test]
fn drift_is_told_and_put_right() {
    let scene = Scene::new();
    scene.write("SOUL.md", "evil");
    fs::remove_file(scene.work().join("AGENTS.md")).unwrap();
    fs::set_permissions(scene.work().join("bin/run"), fs::Permissions::from_mode(0o777)).unwrap();
    fs::hard_link(scene.work().join("skills/a.md"), scene.work().join("alias")).unwrap();
    assert!(matches!(
        scene.state_of("SOUL.md").drift[..],
        [Drift::Content { .. }, Drift::Mode { .. }]
    ));
    assert_eq!(scene.status("AGENTS.md"), Status::Missing);
    assert_eq!(scene.state_of("bin/run").drift, [Drift::Mode { expected: 0o555, found: 0o777 }]);
    assert_eq!(scene.state_of("skills/a.md").drift, [Drift::Links { found: 2 }]);
    let synced = scene.sync();
    let mended: Vec<String> = synced.mended.iter().map(|one| one.name.to_string()).collect();
    assert_eq!(mended, ["AGENTS.md", "SOUL.md", "bin/run", "skills/a.md"]);
    scene.assert_clean();
    assert_eq!(scene.text("SOUL.md"), "# My Soul\n");
    assert_eq!(scene.quarantined(), [("SOUL.md".to_owned(), b"evil".to_vec())]);
    assert_eq!(synced.kept.len(), 1);
    assert!(scene.sync().mended.is_empty());
    scene.assert_bench_is_empty();
}

#[test]
fn a_drifted_file_is_not_changed_before_it_was_put_right() {
    let scene = Scene::new();
    scene.propose("SOUL.md", "new");
    scene.write("SOUL.md", "evil");
    let error = scene.apply().unwrap_err();
    assert!(matches!(error, IdentityError::Drifted { .. }), "{error}");
    assert_eq!(scene.text("SOUL.md"), "evil");
    scene.sync();
    scene.apply().unwrap();
    assert_eq!(scene.text("SOUL.md"), "new");
    // One that is missing can be changed: nothing is lost.
    fs::remove_file(scene.work().join("SOUL.md")).unwrap();
    scene.propose("SOUL.md", "newer");
    scene.apply().unwrap();
    assert_eq!(scene.text("SOUL.md"), "newer");
}

#[test]
fn watched_files_are_versioned_and_never_restored() {
    let scene = Scene::new();
    scene.write("memory/one.md", "two\n");
    scene.write("memory/new.md", "new\n");
    assert_eq!(scene.status("memory/one.md"), Status::Pending);
    let synced = scene.sync();
    let names: Vec<String> = synced.versions.iter().map(|one| one.name.to_string()).collect();
    assert_eq!(names, ["memory/new.md", "memory/one.md"]);
    let hash = synced.versions[1].hash.unwrap();
    assert_eq!(scene.open().bytes(hash).unwrap(), b"two\n");
    assert_eq!(scene.text("memory/one.md"), "two\n");
    scene.assert_clean();
    fs::remove_file(scene.work().join("memory/one.md")).unwrap();
    assert_eq!(scene.status("memory/one.md"), Status::Missing);
    let synced = scene.sync();
    assert_eq!(synced.versions[0].hash, None);
    assert!(!scene.work().join("memory/one.md").exists());
    scene.assert_clean();
    assert_eq!(scene.open().prune().unwrap(), 2);
    scene.sync();
    scene.assert_clean();
}

#[test]
fn staging_is_reset_to_what_was_approved() {
    let scene = Scene::new();
    scene.propose("SOUL.md", "a");
    scene.propose("AGENTS.md", "b");
    scene.propose("skills/new.md", "c");
    scene.propose("nonsense.txt", "d");
    fs::remove_dir_all(scene.staging().join("skills/deep")).unwrap();
    let reset = scene.open().reset(Some(&[name("SOUL.md")])).unwrap();
    assert_eq!(reset.reset, [name("SOUL.md")]);
    assert_eq!(scene.words().len(), 3);
    let reset = scene.open().reset(None).unwrap();
    assert_eq!(reset.reset.len(), 4);
    assert!(scene.changes().is_empty());
    assert!(scene.changes().refused.is_empty());
    assert!(!scene.staging().join("skills/new.md").exists());
    assert_eq!(scene.open().reset(None).unwrap().reset, []);
}

#[test]
fn a_missing_staging_folder_deletes_nothing() {
    let scene = Scene::new();
    fs::remove_dir_all(scene.staging()).unwrap();
    let error = scene.open().changes(&|_| {}).unwrap_err();
    assert!(matches!(error, IdentityError::NoStaging), "{error}");
    scene.open().reset(None).unwrap();
    assert!(scene.changes().is_empty());
    fs::remove_dir_all(scene.work().join(".soulguard")).unwrap();
    assert!(scene.open().changes(&|_| {}).is_err());
    scene.open().set_up(&Config::new([]), &|_| {}).unwrap();
    assert!(scene.changes().is_empty());
}

#[test]
fn files_are_staged_for_editing_and_for_deletion() {
    let scene = Scene::new();
    let workspace = scene.open();
    assert_eq!(workspace.stage(&[name("SOUL.md")], false).unwrap().already.len(), 1);
    let deleted = workspace.stage(&[name("skills")], true).unwrap().deleted;
    assert_eq!(deleted, [name("skills/a.md"), name("skills/deep/b.md")]);
    assert_eq!(scene.words(), ["deleted skills/a.md", "deleted skills/deep/b.md"]);
    let staged = workspace.stage(&[name("skills/a.md"), name("skills/x/new.md")], false).unwrap();
    assert_eq!((staged.staged.len(), staged.made.len()), (1, 1));
    assert_eq!(scene.words(), ["deleted skills/deep/b.md", "new skills/x/new.md"]);
    for unfit in ["memory/one.md", "other.txt", "none"] {
        let error = workspace.stage(&[name(unfit)], false).unwrap_err();
        assert!(matches!(error, IdentityError::NotProtected { .. }), "{unfit}: {error}");
    }
    assert!(workspace.stage(&[name("soulguard.json")], true).is_err());
}

#[test]
fn an_earlier_version_comes_back_as_a_proposal_or_at_once() {
    let scene = Scene::new();
    scene.propose("SOUL.md", "second\n");
    scene.apply().unwrap();
    scene.open().stage_version(&name("SOUL.md"), b"# My Soul\n", false).unwrap();
    assert_eq!(scene.text("SOUL.md"), "second\n");
    assert_eq!(scene.words(), ["modified SOUL.md"]);
    let changes = scene.open().version_change(&name("SOUL.md"), b"# My Soul\n", false).unwrap();
    assert_eq!(changes.changes[0].kind, ChangeKind::Modified);
    scene.open().apply(&changes, &changes.hash()).unwrap();
    assert_eq!(scene.text("SOUL.md"), "# My Soul\n");
    assert!(scene.changes().is_empty());
    assert!(scene.open().stage_version(&name("memory/one.md"), b"", false).is_err());
}

/// More files than a process may hold open at once.
#[test]
fn many_files_change_at_once() {
    use rustix::process::{Resource, getrlimit};
    let handles = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let count = usize::try_from(handles.min(20_000)).unwrap() / 2 + 200;
    let scene = Scene::in_memory(Level::User);
    for number in 0..count {
        scene.write(&format!("skills/{}/{number}", number / 500), number.to_string());
    }
    scene.set_up();
    scene.assert_clean();
    for number in 0..count {
        scene.propose(&format!("skills/{}/{number}", number / 500), "new");
    }
    assert_eq!(scene.apply().unwrap().files.len(), count);
    for number in 0..count {
        scene.write(&format!("skills/{}/{number}", number / 500), "evil");
    }
    assert_eq!(scene.sync().kept.len(), count);
    scene.assert_clean();
    scene.assert_bench_is_empty();
}
