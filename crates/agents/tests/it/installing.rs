//! Installing into many different configurations and taking it back, byte for byte.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use serde_json::Value;
use wardkeep_agents::Agent;
use wardkeep_agents::install::{InstallError, Restored, Surroundings, examine, plan, uninstall};

struct Home {
    folder: tempfile::TempDir,
    around: Surroundings,
}

impl Home {
    fn new(machine: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("state")).unwrap();
        fs::create_dir(at("home")).unwrap();
        let around = Surroundings {
            home: at("home"),
            machine: machine.then(|| at("etc")),
            program: PathBuf::from("/opt/a b/wardkeep"),
            state: at("state"),
        };
        Self { folder, around }
    }

    fn file(&self, agent: Agent) -> PathBuf {
        let Surroundings { home, machine, .. } = &self.around;
        match (agent, machine) {
            (Agent::ClaudeCode, None) => home.join(".claude/settings.json"),
            (Agent::ClaudeCode, Some(etc)) => etc.join("claude-code/managed-settings.json"),
            (_, None) => home.join(".codex/hooks.json"),
            (_, Some(etc)) => etc.join("codex/requirements.toml"),
        }
    }

    fn write(&self, agent: Agent, bytes: &[u8]) -> PathBuf {
        let file = self.file(agent);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, bytes).unwrap();
        file
    }

    fn install(&self, agent: Agent) -> Result<(), InstallError> {
        plan(agent, &self.around)?.apply(&self.around)
    }
}

/// JSON that Claude Code takes; those marked are not what Codex takes.
fn configs() -> Vec<(&'static str, bool, Vec<u8>)> {
    let huge = {
        let rules: Vec<String> = (0..40_000).map(|n| format!("\"Bash(tool-{n}:*)\"")).collect();
        format!("{{\"permissions\": {{\"allow\": [{}]}}}}", rules.join(",\n"))
    };
    let text = |text: &str| text.as_bytes().to_vec();
    vec![
        ("empty", true, text("")),
        ("blank", true, text("\n\n  ")),
        ("an empty object", true, text("{}")),
        ("one line", true, text(r#"{"model":"opus","permissions":{"allow":["Bash(ls:*)"]}}"#)),
        (
            "pretty",
            true,
            text("{\n  \"model\": \"opus\",\n  \"env\": {\n    \"A\": \"b\"\n  }\n}\n"),
        ),
        ("tabs", true, text("{\n\t\"model\": \"opus\"\n}\n")),
        ("windows", true, text("{\r\n  \"model\": \"opus\"\r\n}\r\n")),
        ("no end of line", true, text("{\n  \"a\": 1\n}")),
        (
            "comments",
            false,
            text("// mine\n{\n  /* why */ \"a\": 1, // because\n  \"b\": [2,]\n}\n"),
        ),
        ("commas at ends", false, text("{\n  \"a\": [1, 2,],\n}\n")),
        (
            "own hooks",
            true,
            text(
                r#"{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"mine.sh"}]}]}}"#,
            ),
        ),
        (
            "own hooks, pretty",
            true,
            text(
                "{\n  \"hooks\": {\n    \"Stop\": [\n      {\n        \"hooks\": []\n      }\n    ],\n    \"PreToolUse\": []\n  },\n  \"z\": null\n}\n",
            ),
        ),
        ("empty hooks", true, text("{\"hooks\": {}}\n")),
        (
            "numbers",
            true,
            text("{\"a\": 1.0, \"b\": 1e400, \"c\": -0, \"d\": 12345678901234567890123}"),
        ),
        ("odd strings", true, text("{\"\\u0061\": \"\\ud83d\\ude00 \\/ \u{202e}\"}")),
        ("letters", true, text("{\"name\": \"Grüße, 世界\"}\n")),
        ("huge", true, huge.into_bytes()),
        ("deep", true, format!("{{\"a\": {}1{}}}", "[".repeat(60), "]".repeat(60)).into_bytes()),
        ("blank lines", true, text("\n\n{\n\n  \"a\": 1\n\n\n}\n\n")),
        (
            "a name with spaces",
            true,
            text("{\"hooks\" : { \"SessionStart\" : [ ] } , \"x\" : true }"),
        ),
    ]
}

#[test]
fn the_bytes_of_before_come_back() {
    for (name, plain, before) in configs() {
        for agent in [Agent::ClaudeCode, Agent::Codex] {
            if agent == Agent::Codex && !plain {
                continue;
            }
            let home = Home::new(false);
            let file = home.write(agent, &before);
            fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
            home.install(agent).unwrap_or_else(|error| panic!("{name} {agent}: {error}"));
            let after = fs::read(&file).unwrap();
            assert_ne!(after, before, "{name}");
            let mode = fs::metadata(&file).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, 0o640, "{name}");
            assert!(plan(agent, &home.around).unwrap().is_done(), "{name}: a second time, nothing");
            home.install(agent).unwrap();
            assert_eq!(fs::read(&file).unwrap(), after, "{name}");
            let restored = uninstall(agent, &home.around.state).unwrap();
            assert_eq!(restored, [Restored::Exactly(file.clone())], "{name}");
            assert_eq!(fs::read(&file).unwrap(), before, "{name} {agent}");
        }
    }
}

#[test]
fn nothing_of_the_user_is_lost() {
    let home = Home::new(false);
    for (name, plain, before) in configs() {
        let file = home.write(Agent::ClaudeCode, &before);
        home.install(Agent::ClaudeCode).unwrap();
        let after = fs::read_to_string(&file).unwrap();
        let before = String::from_utf8(before).unwrap();
        // Whatever the user has set is there, and their own hooks come first.
        if let (true, Ok(Value::Object(own))) = (plain, serde_json::from_str(&before)) {
            let all: Value = serde_json::from_str(&after).unwrap();
            for (key, value) in own.iter().filter(|(key, _)| *key != "hooks") {
                assert_eq!(&all[key], value, "{name}");
            }
            let lists = own.get("hooks").and_then(Value::as_object).into_iter().flatten();
            for (event, list) in lists {
                let list = list.as_array().unwrap();
                let found = all["hooks"][event].as_array().unwrap();
                assert_eq!(&found[..list.len()], &list[..], "{name}");
            }
        }
        for comment in ["// mine", "/* why */", "// because"] {
            assert_eq!(before.contains(comment), after.contains(comment), "{name}");
        }
        uninstall(Agent::ClaudeCode, &home.around.state).unwrap();
    }
}

#[test]
fn the_entries_are_what_the_agent_reads() {
    let home = Home::new(false);
    let file = home.write(Agent::ClaudeCode, br#"{"hooks":{"PreToolUse":[{"hooks":[]}]}}"#);
    home.install(Agent::ClaudeCode).unwrap();
    let said: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let list = said["hooks"]["PreToolUse"].as_array().unwrap();
    assert_eq!(list.len(), 2, "the user's own comes first");
    let hook = &list[1]["hooks"][0];
    assert_eq!((&list[1]["matcher"], &hook["type"]), (&"*".into(), &"command".into()));
    assert_eq!(hook["command"], "/opt/a b/wardkeep");
    assert_eq!(hook["onFailure"], "block");
    let words: Vec<&str> =
        hook["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    let state = home.around.state.to_str().unwrap();
    assert_eq!(words, ["--state-dir", state, "hook", "claude-code", "PreToolUse"]);

    let file = home.write(Agent::Codex, b"{}");
    home.install(Agent::Codex).unwrap();
    let said: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let command = said["hooks"]["PreToolUse"][0]["hooks"][0]["command"].as_str().unwrap();
    assert!(command.starts_with("'/opt/a b/wardkeep' --state-dir "), "{command}");
    assert!(command.ends_with(" hook codex PreToolUse"), "{command}");
}

#[test]
fn on_a_whole_machine_it_goes_where_users_cannot_switch_it_off() {
    let home = Home::new(true);
    let claude = home.file(Agent::ClaudeCode);
    home.install(Agent::ClaudeCode).unwrap();
    let text = fs::read_to_string(&claude).unwrap();
    assert!(text.contains("onFailure") && !text.contains("--state-dir"), "{text}");
    let before = "# ours\nallow_managed_hooks_only = true\n\n[hooks]\nmanaged_dir = \"/opt\" # there\n\n\
                  [[hooks.PreToolUse]]\nmatcher = \"Bash\"\n[[hooks.PreToolUse.hooks]]\n\
                  type = \"command\"\ncommand = \"mine.sh\"\n";
    let file = home.write(Agent::Codex, before.as_bytes());
    home.install(Agent::Codex).unwrap();
    let text = fs::read_to_string(&file).unwrap();
    for kept in ["# ours", "# there", "mine.sh", "managed_dir = \"/opt\""] {
        assert!(text.contains(kept), "{kept} in {text}");
    }
    let read: toml_edit::DocumentMut = text.parse().unwrap();
    let groups = read["hooks"]["PreToolUse"].as_array_of_tables().unwrap();
    assert_eq!(groups.len(), 2);
    assert!(plan(Agent::Codex, &home.around).unwrap().is_done());
    assert!(plan(Agent::Codex, &home.around).unwrap().left.is_empty(), "no trust is needed");
    uninstall(Agent::Codex, &home.around.state).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
    // Where there was nothing, nothing is left.
    uninstall(Agent::ClaudeCode, &home.around.state).unwrap();
    assert!(!claude.exists() && !claude.parent().unwrap().exists());
}

#[test]
fn what_is_not_understood_is_never_rewritten() {
    for bytes in [
        &b"{"[..],
        b"[]",
        b"null",
        b"\"x\"",
        b"{} {}",
        b"\xff\xfe{}",
        b"{'a': 1}",
        b"{a: 1}",
        b"{\"hooks\": []}",
        b"{\"hooks\": null}",
        b"{\"hooks\": {\"PreToolUse\": {}}}",
        b"{\"hooks\": {}, \"hooks\": {}}",
        b"{\"a\": 1 \"b\": 2}",
        b"not json at all",
    ] {
        for agent in [Agent::ClaudeCode, Agent::Codex] {
            let home = Home::new(false);
            let file = home.write(agent, bytes);
            let error = home.install(agent).expect_err(&String::from_utf8_lossy(bytes));
            assert!(matches!(error, InstallError::Unusable { .. }), "{error}");
            assert_eq!(fs::read(&file).unwrap(), bytes);
        }
    }
    let home = Home::new(false);
    home.write(Agent::ClaudeCode, "[".repeat(1 << 20).as_bytes());
    assert!(home.install(Agent::ClaudeCode).is_err());
    let home = Home::new(true);
    let file = home.write(Agent::Codex, b"[hooks\n");
    assert!(home.install(Agent::Codex).is_err());
    assert_eq!(fs::read(&file).unwrap(), b"[hooks\n");
}

#[test]
fn links_stay_links_and_what_is_read_only_stays_as_it_is() {
    let home = Home::new(false);
    let real = home.folder.path().join("dotfiles.json");
    fs::write(&real, "{\"a\": 1}").unwrap();
    let link = home.file(Agent::ClaudeCode);
    fs::create_dir_all(link.parent().unwrap()).unwrap();
    symlink(&real, &link).unwrap();
    home.install(Agent::ClaudeCode).unwrap();
    assert_eq!(fs::read_link(&link).unwrap(), real);
    assert!(fs::read_to_string(&real).unwrap().contains("wardkeep"));
    uninstall(Agent::ClaudeCode, &home.around.state).unwrap();
    assert_eq!(fs::read_link(&link).unwrap(), real);
    assert_eq!(fs::read_to_string(&real).unwrap(), "{\"a\": 1}");

    fs::set_permissions(&real, fs::Permissions::from_mode(0o444)).unwrap();
    assert!(home.install(Agent::ClaudeCode).is_err());
    assert_eq!(fs::read_to_string(&real).unwrap(), "{\"a\": 1}");

    fs::remove_file(&link).unwrap();
    symlink("nowhere", &link).unwrap();
    assert!(home.install(Agent::ClaudeCode).is_err());
    fs::remove_file(&link).unwrap();
    fs::create_dir(&link).unwrap();
    assert!(home.install(Agent::ClaudeCode).is_err());
}

#[test]
fn what_was_changed_since_is_kept() {
    let home = Home::new(false);
    let file = home.write(Agent::ClaudeCode, b"{\n  \"a\": 1 // one\n}\n");
    home.install(Agent::ClaudeCode).unwrap();
    let text = fs::read_to_string(&file).unwrap().replace("\"a\": 1", "\"a\": 2");
    fs::write(&file, text).unwrap();
    let restored = uninstall(Agent::ClaudeCode, &home.around.state).unwrap();
    assert_eq!(restored, [Restored::InPart(file.clone())]);
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("\"a\": 2") && text.contains("// one"), "{text}");
    assert!(!text.contains("wardkeep"), "{text}");
    assert!(matches!(
        uninstall(Agent::ClaudeCode, &home.around.state),
        Err(InstallError::NotInstalled(_))
    ));
}

#[test]
fn a_newer_place_takes_that_of_an_older_one() {
    let mut home = Home::new(false);
    let file = home.write(Agent::ClaudeCode, b"{}");
    home.install(Agent::ClaudeCode).unwrap();
    home.around.program = PathBuf::from("/usr/bin/wardkeep");
    assert!(!examine(Agent::ClaudeCode, &home.around).is_empty(), "the old one is found");
    home.install(Agent::ClaudeCode).unwrap();
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("/usr/bin/wardkeep") && !text.contains("/opt/a b"), "{text}");
    uninstall(Agent::ClaudeCode, &home.around.state).unwrap();
    assert_eq!(fs::read(&file).unwrap(), b"{}", "the user's own bytes, not those in between");
}

#[test]
fn what_has_been_switched_off_is_found() {
    let home = Home::new(false);
    let file = home.write(Agent::ClaudeCode, b"{}");
    home.install(Agent::ClaudeCode).unwrap();
    assert_eq!(examine(Agent::ClaudeCode, &home.around), []);
    let good = fs::read_to_string(&file).unwrap();
    let found = |text: &str| {
        fs::write(&file, text).unwrap();
        let found = examine(Agent::ClaudeCode, &home.around);
        found.into_iter().map(|one| one.what).collect::<Vec<_>>().join("; ")
    };
    let with = |member: &str| good.replacen('{', &format!("{{ {member},"), 1);
    assert!(found(&with("\"disableAllHooks\": true")).contains("disableAllHooks"));
    assert!(
        found(&with("\"env\": {\"ANTHROPIC_BASE_URL\": \"x\"}")).contains("ANTHROPIC_BASE_URL")
    );
    assert!(found("{}").contains("does not ask"));
    assert!(found("{").contains("no JSON"));
    assert!(found(&good.replace("\"block\"", "\"ignore\"")).contains("does not ask"));
    fs::remove_file(&file).unwrap();
    assert!(!examine(Agent::ClaudeCode, &home.around).is_empty());

    home.write(Agent::Codex, b"{}");
    home.install(Agent::Codex).unwrap();
    let found = examine(Agent::Codex, &home.around);
    assert!(found.iter().any(|one| one.what.contains("trust")), "{found:?}");
    let key = format!("{}:PreToolUse:0:0", home.file(Agent::Codex).display());
    let config = home.around.home.join(".codex/config.toml");
    let state = format!("[hooks.state.\"{key}\"]\ntrusted_hash = \"sha256:00\"\n");
    fs::write(&config, &state).unwrap();
    assert_eq!(examine(Agent::Codex, &home.around), []);
    fs::write(&config, format!("[features]\nhooks = false\n{state}")).unwrap();
    assert!(examine(Agent::Codex, &home.around)[0].what.contains("features.hooks"));
}
