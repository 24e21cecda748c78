//! `wardkeep install`, `uninstall` and `doctor` by the real binary.

use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, chown};
use std::path::PathBuf;

use serde_json::Value;

use crate::shared::{Ran, skip};
use crate::state::Scene;

struct Place {
    scene: Scene,
}

impl Place {
    fn new() -> Self {
        let scene = Scene::new();
        fs::create_dir(scene.at("home")).unwrap();
        Self { scene }
    }

    fn settings(&self) -> PathBuf {
        self.scene.at("home/.claude/settings.json")
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        let mut command = self.scene.command("s", arguments);
        command.env("HOME", self.scene.at("home"));
        command.output().unwrap().into()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.scene.at("s/run/monitor.sock").exists() {
            let _ = self.scene.command("s", &["daemon", "stop"]).output();
        }
    }
}

#[test]
fn an_agent_is_installed_tried_examined_and_taken_back() {
    let place = Place::new();
    let before = "{\n  // mine\n  \"model\": \"opus\"\n}\n";
    fs::create_dir_all(place.settings().parent().unwrap()).unwrap();
    fs::write(place.settings(), before).unwrap();
    let dry = place.run(&["install", "claude-code", "--user", "--dry-run"]);
    assert_eq!(dry.code, 0, "{dry:?}");
    assert!(dry.stdout.contains("+ ") && dry.stdout.contains("PreToolUse"), "{dry:?}");
    assert_eq!(fs::read_to_string(place.settings()).unwrap(), before);

    let ran = place.run(&["install", "claude-code", "--user"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("Installed: claude-code"), "{ran:?}");
    let text = fs::read_to_string(place.settings()).unwrap();
    assert!(text.contains("// mine") && text.contains("onFailure"), "{text}");
    assert!(place.scene.at("s/.device_key").exists(), "sessions are recognised by it");
    let ran = place.run(&["doctor", "--user"]);
    assert_eq!(ran.code, 0, "{ran:?}");

    fs::write(place.settings(), text.replacen('{', "{ \"disableAllHooks\": true,", 1)).unwrap();
    let ran = place.run(&["doctor", "--user", "--json"]);
    assert_eq!(ran.code, 20, "{ran:?}");
    let said: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(said["agents"][0]["protected"], false);
    fs::write(place.settings(), text).unwrap();

    let ran = place.run(&["uninstall", "claude-code"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(fs::read_to_string(place.settings()).unwrap(), before);
    assert_eq!(place.run(&["uninstall", "claude-code"]).code, 1);
    assert_eq!(place.run(&["doctor", "--user"]).code, 20);
}

#[test]
fn what_cannot_be_used_is_an_error_and_stays() {
    let place = Place::new();
    fs::create_dir_all(place.settings().parent().unwrap()).unwrap();
    fs::write(place.settings(), "{ broken").unwrap();
    let ran = place.run(&["install", "claude-code", "--user"]);
    assert_eq!(ran.code, 4, "{ran:?}");
    assert_eq!(fs::read_to_string(place.settings()).unwrap(), "{ broken");
    let ran = place.run(&["install", "windsurf", "--user"]);
    assert_eq!(ran.code, 1, "{ran:?}");
}

#[test]
fn a_trial_that_is_not_blocked_leaves_nothing_behind() {
    let place = Place::new();
    // The folder of the daemon's doors is somebody else's: every hook denies, harmless calls as well.
    drop(place.scene.store("s"));
    let run = place.scene.at("s/run");
    fs::DirBuilder::new().mode(0o700).recursive(true).create(&run).unwrap();
    if chown(&run, Some(54_321), None).is_err() {
        return skip("root", "install::a_trial_that_is_not_blocked_leaves_nothing_behind");
    }
    let ran = place.run(&["install", "claude-code", "--user"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("a harmless call was denied"), "{ran:?}");
    assert!(!place.settings().exists(), "{ran:?}");
}

#[test]
fn codex_is_not_called_protected_before_it_trusts() {
    let place = Place::new();
    let ran = place.run(&["install", "codex", "--user"]);
    assert_eq!(ran.code, 20, "{ran:?}");
    assert!(ran.stdout.contains("does not ask wardkeep yet"), "{ran:?}");
    assert_eq!(place.run(&["uninstall", "codex"]).code, 0);
}
