//! The acceptance cases of the newer layout, by their names, where they still make sense: staging is
//! always filled here, and a deletion is a copy that is gone.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::shared::{Ran, run};

struct Scene(tempfile::TempDir);

impl Scene {
    /// A folder `ws` with these files; not set up.
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("ws")).unwrap();
        let scene = Self(folder);
        for (name, text) in files {
            scene.write(name, text);
        }
        scene
    }

    /// The same, set up with SOUL.md protected and nothing else.
    fn protected(files: &[(&str, &str)]) -> Self {
        let scene = Self::new(files);
        scene.write(
            "soulguard.json",
            r#"{"version":1,"files":{"soulguard.json":"protect","SOUL.md":"protect"}}"#,
        );
        scene.write("SOUL.md", "# My Soul\n");
        scene.expect(0, &["init", "ws", "--only", "identity"]);
        scene
    }

    fn at(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.at().join("ws").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.at().join("ws").join(name)).ok()
    }

    fn staged(&self, name: &str) -> Option<String> {
        self.read(&format!(".soulguard/staging/{name}"))
    }

    fn propose(&self, name: &str, text: &str) {
        self.write(&format!(".soulguard/staging/{name}"), text);
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        run(self.at(), &[arguments, &["--state-dir", "s"]].concat())
    }

    #[track_caller]
    fn expect(&self, code: i32, arguments: &[&str]) -> Ran {
        let ran = self.run(arguments);
        assert_eq!(ran.code, code, "{arguments:?}: {ran:?}");
        ran
    }

    #[track_caller]
    fn json(&self, arguments: &[&str]) -> Value {
        let ran = self.run(&[arguments, &["--json"]].concat());
        serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
    }

    fn config(&self) -> Value {
        serde_json::from_str(&self.read("soulguard.json").unwrap()).unwrap()
    }
}

#[test]
fn n_init_1_2_3_4_init_is_repeatable_and_keeps_a_configuration() {
    let scene = Scene::protected(&[("notes.md", "n\n")]);
    assert!(scene.at().join("ws/.soulguard/staging").is_dir());
    let before = scene.config();
    scene.expect(0, &["init", "ws", "--only", "identity"]);
    assert_eq!(scene.config(), before);
    assert_eq!(scene.read("notes.md").as_deref(), Some("n\n"));
}

#[test]
fn n_init_5_the_first_version_is_kept() {
    let scene = Scene::protected(&[]);
    let history = scene.json(&["history", "soulguard.json", "-w", "ws"]);
    assert_eq!(history["entries"].as_array().unwrap().len(), 1, "{history}");
}

#[test]
fn n_init_6_a_broken_configuration_sets_nothing_up() {
    let scene = Scene::new(&[("soulguard.json", "{ not json")]);
    let ran = scene.expect(1, &["init", "ws", "--only", "identity"]);
    assert!(ran.stderr.contains("soulguard.json"), "{ran:?}");
    assert!(!scene.at().join("ws/.soulguard").exists());
}

#[test]
fn n_protect_1_3_4_5_files_and_folders() {
    let scene = Scene::protected(&[("notes.md", "n\n"), ("skills/a.md", "a\n")]);
    scene.expect(0, &["protect", "notes.md", "-w", "ws", "--yes"]);
    assert_eq!(scene.config()["files"]["notes.md"], "protect");
    assert_eq!(scene.staged("notes.md").as_deref(), Some("n\n"));
    let again = scene.json(&["protect", "notes.md", "-w", "ws", "--yes"]);
    assert_eq!(again["already"][0], "notes.md", "{again}");
    scene.expect(0, &["protect", "skills", "-w", "ws", "--yes"]);
    assert_eq!(scene.staged("skills/a.md").as_deref(), Some("a\n"));
    let ran = scene.expect(1, &["protect", "nonexistent.md", "-w", "ws", "--yes"]);
    assert!(ran.stderr.contains("does not exist"), "{ran:?}");
}

#[test]
fn n_watch_1_n_trans_1_2_n_release_1_tiers_change() {
    let scene = Scene::protected(&[("notes.md", "n\n")]);
    scene.expect(0, &["watch", "notes.md", "-w", "ws", "--yes"]);
    assert_eq!(scene.config()["files"]["notes.md"], "watch");
    let moved = scene.json(&["watch", "SOUL.md", "-w", "ws", "--yes"]);
    assert_eq!(moved["moved"][0]["from"], "protect", "{moved}");
    assert_eq!(scene.staged("SOUL.md"), None, "a watched file is not staged");
    scene.write("SOUL.md", "# The agent may\n");
    scene.expect(0, &["release", "SOUL.md", "-w", "ws", "--yes"]);
    assert_eq!(scene.config()["files"].get("SOUL.md"), None);
    assert_eq!(scene.read("SOUL.md").as_deref(), Some("# The agent may\n"));
}

#[test]
fn n_stage_copies_and_deletions() {
    let scene = Scene::protected(&[("notes.md", "n\n"), ("docs/guide.md", "g\n")]);
    scene.expect(0, &["protect", "docs", "-w", "ws", "--yes"]);
    // N-stage-1, 2: it is there already, and stays as it is.
    let staged = scene.json(&["stage", "SOUL.md", "-w", "ws"]);
    assert_eq!(staged["already"][0], "SOUL.md", "{staged}");
    // N-stage-3, 6, 7: only what is protected.
    scene.expect(1, &["stage", "notes.md", "-w", "ws"]);
    scene.expect(1, &["stage", "-d", "unknown.md", "-w", "ws"]);
    // N-stage-4, 5, 14: a deletion, and taken back.
    scene.expect(0, &["stage", "-d", "docs/guide.md", "-w", "ws"]);
    assert_eq!(scene.staged("docs/guide.md"), None);
    scene.expect(0, &["stage", "docs/guide.md", "-w", "ws"]);
    assert_eq!(scene.staged("docs/guide.md").as_deref(), Some("g\n"));
    // N-stage-8, 11: several, the configuration too.
    scene.expect(0, &["stage", "soulguard.json", "SOUL.md", "-w", "ws"]);
    // N-stage-9, 10: a new file below a protected folder.
    let staged = scene.json(&["stage", "docs/deep/new.md", "-w", "ws"]);
    assert_eq!(staged["made"][0], "docs/deep/new.md", "{staged}");
    assert_eq!(scene.staged("docs/deep/new.md").as_deref(), Some(""));
    // N-stage-12, 13: a folder stands for what is in it.
    let staged = scene.json(&["stage", "-d", "docs", "-w", "ws"]);
    assert_eq!(staged["deleted"][0], "docs/guide.md", "{staged}");
}

#[test]
fn n_diff_and_n_status_tell_what_is_staged() {
    let scene = Scene::protected(&[("docs/a.md", "a\n"), ("docs/b.md", "b\n")]);
    scene.expect(0, &["protect", "docs", "-w", "ws", "--yes"]);
    // N-diff-1, 4, 6, N-status-1, 5: nothing.
    scene.expect(0, &["diff", "ws"]);
    scene.expect(0, &["status", "ws"]);
    // N-diff-2, 5, N-status-4: one change is shown, and no other.
    scene.propose("docs/a.md", "changed\n");
    let shown = scene.json(&["diff", "ws"]);
    assert_eq!(shown["changes"].as_array().unwrap().len(), 1, "{shown}");
    assert_eq!(shown["hash"].as_str().unwrap().len(), 64);
    assert_eq!(scene.json(&["status", "ws"])["staged"][0]["status"], "modified");
    // N-diff-7, N-status-6: a new file.
    scene.propose("docs/new.md", "new\n");
    assert_eq!(scene.json(&["status", "ws"])["staged"][1]["status"], "new");
    // N-diff-8, 9, N-status-7, 8, 9: deletions, nested ones too.
    scene.expect(0, &["stage", "-d", "docs/b.md", "-w", "ws"]);
    let words = scene.json(&["status", "ws"])["staged"].to_string();
    assert!(words.contains("deleted"), "{words}");
    // N-status-3: no set-up.
    fs::create_dir(scene.at().join("other")).unwrap();
    scene.expect(1, &["status", "other"]);
}

#[test]
fn n_sync_1_n_log_1_drift_is_mended_and_versions_are_listed() {
    let scene = Scene::protected(&[("memory/notes.md", "one\n")]);
    scene.expect(0, &["watch", "memory/notes.md", "-w", "ws", "--yes"]);
    scene.write("memory/notes.md", "two\n");
    fs::remove_file(scene.at().join("ws/SOUL.md")).unwrap();
    scene.write("SOUL.md", "# Evil\n");
    scene.expect(1, &["status", "ws"]);
    scene.expect(0, &["sync", "ws"]);
    scene.expect(0, &["status", "ws"]);
    let all = scene.json(&["history", "-w", "ws"]);
    let titles: Vec<&str> = all["entries"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|entry| entry["message"].as_str()?.lines().next())
        .collect();
    assert!(titles[0].contains("sync") && titles[1].contains("watch"), "{titles:?}");
    let one = scene.json(&["history", "memory/notes.md", "-w", "ws"]);
    assert_eq!(one["entries"].as_array().unwrap().len(), 2, "{one}");
}

#[test]
fn n_reset_drops_only_what_it_is_told_to() {
    let scene = Scene::protected(&[("b.md", "b\n")]);
    scene.expect(0, &["protect", "b.md", "-w", "ws", "--yes"]);
    // N-reset-4.
    assert!(scene.expect(0, &["reset", "ws"]).stdout.contains("Nothing is staged"));
    scene.propose("SOUL.md", "1\n");
    scene.propose("b.md", "2\n");
    // N-reset-1.
    scene.expect(0, &["reset", "ws"]);
    assert_eq!(scene.staged("SOUL.md").as_deref(), Some("1\n"));
    // N-reset-2, 5.
    scene.expect(0, &["reset", "ws", "SOUL.md"]);
    assert_eq!(scene.staged("SOUL.md").as_deref(), Some("# My Soul\n"));
    assert_eq!(scene.staged("b.md").as_deref(), Some("2\n"));
    // N-reset-3.
    scene.expect(0, &["reset", "ws", "--all"]);
    scene.expect(0, &["diff", "ws"]);
}

#[test]
fn n_apply_installs_what_was_approved() {
    let scene = Scene::protected(&[("docs/a.md", "a\n")]);
    scene.expect(0, &["protect", "docs", "-w", "ws", "--yes"]);
    // N-apply-1, 3.
    scene.propose("docs/a.md", "changed\n");
    scene.expect(0, &["apply", "ws", "--yes"]);
    assert_eq!(scene.read("docs/a.md").as_deref(), Some("changed\n"));
    // N-apply-2.
    scene.expect(0, &["stage", "-d", "docs/a.md", "-w", "ws"]);
    scene.expect(0, &["apply", "ws", "--yes"]);
    assert_eq!(scene.read("docs/a.md"), None);
    // N-apply-4, 5, 6.
    scene.propose("SOUL.md", "# New\n");
    let wrong = "de".repeat(32);
    let ran = scene.expect(1, &["apply", "ws", "--hash", &wrong]);
    assert!(ran.stderr.contains("diff"), "{ran:?}");
    scene.expect(2, &["apply", "ws", "--hash", &wrong, "--yes"]);
    let hash = scene.json(&["diff", "ws"])["hash"].as_str().unwrap().to_owned();
    scene.expect(0, &["apply", "ws", "--hash", &hash]);
    assert_eq!(scene.read("SOUL.md").as_deref(), Some("# New\n"));
}
