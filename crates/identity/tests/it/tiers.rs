//! Files move between tiers, and the configuration protects itself.

use std::fs;

use wardkeep_identity::config::{Config, Tier};
use wardkeep_identity::error::IdentityError;
use wardkeep_identity::state::Status;

use crate::lab::{CONFIG, Scene, name};

fn config(scene: &Scene) -> Vec<(Tier, String)> {
    let config = Config::parse(&scene.read("soulguard.json")).unwrap();
    config.entries().unwrap().iter().map(|(tier, text)| (*tier, (*text).to_owned())).collect()
}

#[test]
fn a_file_and_a_folder_are_protected_watched_and_released() {
    let scene = Scene::new();
    scene.write("docs/x/y.md", "y\n");
    let done = scene.open().protect(&[name("other.txt"), name("docs")]).unwrap();
    assert_eq!(done.moved.len(), 2);
    assert_eq!(done.files, [name("docs/x/y.md"), name("other.txt")]);
    assert!(config(&scene).contains(&(Tier::Protect, "docs/".to_owned())));
    assert_eq!(scene.mode("other.txt"), 0o444);
    assert!(scene.staging().join("docs/x/y.md").exists());
    assert!(scene.changes().is_empty(), "{:?}", scene.words());
    scene.assert_clean();
    assert_eq!(scene.open().protect(&[name("docs")]).unwrap().already, [name("docs")]);

    let done = scene.open().watch(&[name("other.txt")]).unwrap();
    assert_eq!(done.moved[0].from, Some(Tier::Protect));
    assert_eq!(scene.mode("other.txt"), 0o644);
    assert!(!scene.staging().join("other.txt").exists());
    scene.assert_clean();

    scene.open().release(&[name("docs"), name("other.txt")]).unwrap();
    assert_eq!(scene.mode("docs/x/y.md"), 0o644);
    assert!(!scene.staging().join("docs/x/y.md").exists());
    assert_eq!(config(&scene), {
        let before = Config::parse(CONFIG.as_bytes()).unwrap();
        before
            .entries()
            .unwrap()
            .iter()
            .map(|(tier, text)| (*tier, (*text).to_owned()))
            .collect::<Vec<_>>()
    });
    scene.assert_clean();
    assert!(scene.changes().is_empty());
}

#[test]
fn a_watched_file_is_protected_as_it_is_when_the_owner_says_so() {
    let scene = Scene::new();
    scene.write("memory/one.md", "latest");
    scene.open().protect(&[name("memory/one.md")]).unwrap();
    assert_eq!(scene.text("memory/one.md"), "latest");
    assert_eq!(scene.mode("memory/one.md"), 0o444);
    scene.assert_clean();
}

#[test]
fn what_does_not_exist_is_not_protected() {
    let scene = Scene::new();
    let error = scene.open().protect(&[name("other.txt"), name("none.md")]).unwrap_err();
    assert!(matches!(error, IdentityError::Missing { .. }));
    assert_eq!(scene.text("soulguard.json"), CONFIG);
    assert_eq!(scene.mode("other.txt"), 0o644);
    // What only a glob tracks has no entry that could be taken away.
    let error = scene.open().release(&[name("skills/a.md")]).unwrap_err();
    assert!(matches!(error, IdentityError::NotListed { .. }), "{error}");
}

/// S-16.
#[test]
fn the_configuration_is_never_released_deleted_or_made_invalid() {
    let scene = Scene::new();
    let own = [name("soulguard.json")];
    for refused in [scene.open().release(&own), scene.open().watch(&own)] {
        assert!(matches!(refused, Err(IdentityError::SelfProtection { .. })), "{refused:?}");
    }
    for text in [
        "not json",
        "{}",
        r#"{"version":1,"protect":["../../etc/passwd"]}"#,
        r#"{"version":1,"protect":["SOUL.md"]}"#,
        r#"{"version":1,"protect":[],"watch":["soulguard.json"]}"#,
    ] {
        scene.propose("soulguard.json", text);
        let error = scene.apply().unwrap_err();
        assert!(matches!(error, IdentityError::SelfProtection { .. }), "{text}: {error}");
        assert_eq!(scene.text("soulguard.json"), CONFIG);
    }
    fs::remove_file(scene.staging().join("soulguard.json")).unwrap();
    assert_eq!(scene.words(), ["deleted soulguard.json"]);
    let error = scene.apply().unwrap_err();
    assert!(matches!(error, IdentityError::SelfProtection { .. }), "{error}");
    scene.open().reset(None).unwrap();
    scene.assert_clean();
}

#[test]
fn an_approved_configuration_moves_files_between_tiers() {
    let scene = Scene::new();
    scene.propose(
        "soulguard.json",
        r#"{"version":1,"protect":["soulguard.json","SOUL.md","memory/","other.txt"],"watch":["AGENTS.md"]}"#,
    );
    let done = scene.apply().unwrap();
    let released: Vec<String> = done.released.iter().map(ToString::to_string).collect();
    assert_eq!(released, ["AGENTS.md", "bin/run", "skills/a.md", "skills/deep/b.md"]);
    assert_eq!(scene.mode("AGENTS.md"), 0o644);
    assert_eq!(scene.mode("bin/run"), 0o755);
    assert!(!scene.staging().join("skills/a.md").exists());
    // What nobody has seen is not approved by a new list.
    assert_eq!(scene.status("memory/one.md"), Status::Pending);
    assert_eq!(scene.status("other.txt"), Status::Pending);
    assert_eq!(scene.words(), ["new memory/one.md", "new other.txt"]);
    scene.apply().unwrap();
    scene.assert_clean();
}

/// S-2: the agent's own configuration counts for nothing.
#[test]
fn another_configuration_in_its_place_is_drift_and_changes_nothing() {
    let scene = Scene::new();
    scene.write("soulguard.json", r#"{"version":1,"protect":[],"watch":[]}"#);
    scene.write("SOUL.md", "evil");
    assert_eq!(scene.status("soulguard.json"), Status::Drifted);
    assert_eq!(scene.status("SOUL.md"), Status::Drifted);
    scene.sync();
    assert_eq!(scene.text("soulguard.json"), CONFIG);
    assert_eq!(scene.text("SOUL.md"), "# My Soul\n");
}
