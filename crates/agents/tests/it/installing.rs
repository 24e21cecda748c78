//! Installing into many different configurations and taking it back, byte for byte.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use serde_json::Value;
use wardkeep_agents::Agent;
use wardkeep_agents::install::{
    InstallError, Restored, Surroundings, codex_trust, examine, plan, set_proxy, uninstall,
};

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
            (Agent::Codex, None) => home.join(".codex/hooks.json"),
            (Agent::Codex, Some(etc)) => etc.join("codex/requirements.toml"),
            (Agent::GeminiCli, None) => home.join(".gemini/settings.json"),
            (Agent::GeminiCli, Some(etc)) => etc.join("gemini-cli/settings.json"),
            (Agent::CopilotCli, None) => home.join(".copilot/hooks/wardkeep.json"),
            (Agent::CopilotCli, Some(etc)) => etc.join("github-copilot/policy.d/wardkeep.json"),
            (Agent::QwenCode, None) => home.join(".qwen/settings.json"),
            (Agent::QwenCode, Some(etc)) => etc.join("qwen-code/settings.json"),
            (Agent::Cursor, None) => home.join(".cursor/hooks.json"),
            (Agent::Cursor, Some(etc)) => etc.join("cursor/hooks.json"),
            (Agent::Windsurf, None) => home.join(".codeium/windsurf/hooks.json"),
            (Agent::Windsurf, Some(etc)) => etc.join("windsurf/hooks.json"),
            (_, _) => home.join(".cline/hooks/PreToolUse.sh"),
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

/// Agents with a JSON file of settings.
const JSON: [Agent; 7] = [
    Agent::ClaudeCode,
    Agent::Codex,
    Agent::GeminiCli,
    Agent::CopilotCli,
    Agent::QwenCode,
    Agent::Cursor,
    Agent::Windsurf,
];

/// What a configuration is, beyond plain JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Looseness {
    Plain,
    Comments,
    Commas,
}
use Looseness::{Commas, Comments, Plain};

/// What an agent takes.
fn taken(agent: Agent) -> Looseness {
    match agent {
        Agent::ClaudeCode => Commas,
        Agent::GeminiCli | Agent::QwenCode => Comments,
        _ => Plain,
    }
}

/// JSON that Claude Code takes; some of it is not what others take.
fn configs() -> Vec<(&'static str, Looseness, Vec<u8>)> {
    let huge = {
        let rules: Vec<String> = (0..40_000).map(|n| format!("\"Bash(tool-{n}:*)\"")).collect();
        format!("{{\"permissions\": {{\"allow\": [{}]}}}}", rules.join(",\n"))
    };
    let text = |text: &str| text.as_bytes().to_vec();
    vec![
        ("empty", Plain, text("")),
        ("blank", Plain, text("\n\n  ")),
        ("an empty object", Plain, text("{}")),
        ("one line", Plain, text(r#"{"model":"opus","permissions":{"allow":["Bash(ls:*)"]}}"#)),
        (
            "pretty",
            Plain,
            text("{\n  \"model\": \"opus\",\n  \"env\": {\n    \"A\": \"b\"\n  }\n}\n"),
        ),
        ("tabs", Plain, text("{\n\t\"model\": \"opus\"\n}\n")),
        ("windows", Plain, text("{\r\n  \"model\": \"opus\"\r\n}\r\n")),
        ("no end of line", Plain, text("{\n  \"a\": 1\n}")),
        (
            "comments and commas",
            Commas,
            text("// mine\n{\n  /* why */ \"a\": 1, // because\n  \"b\": [2,]\n}\n"),
        ),
        ("comments", Comments, text("// mine\n{ /* why */ \"a\": 1 // because\n}\n")),
        ("commas at ends", Commas, text("{\n  \"a\": [1, 2,],\n}\n")),
        (
            "own hooks",
            Plain,
            text(
                r#"{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"mine.sh"}]}]}}"#,
            ),
        ),
        (
            "own hooks, pretty",
            Plain,
            text(
                "{\n  \"hooks\": {\n    \"Stop\": [\n      {\n        \"hooks\": []\n      }\n    ],\n    \"PreToolUse\": []\n  },\n  \"z\": null\n}\n",
            ),
        ),
        ("empty hooks", Plain, text("{\"hooks\": {}}\n")),
        (
            "numbers",
            Plain,
            text("{\"a\": 1.0, \"b\": 1e400, \"c\": -0, \"d\": 12345678901234567890123}"),
        ),
        ("odd strings", Plain, text("{\"\\u0061\": \"\\ud83d\\ude00 \\/ \u{202e}\"}")),
        ("letters", Plain, text("{\"name\": \"Grüße, 世界\"}\n")),
        ("huge", Plain, huge.into_bytes()),
        ("deep", Plain, format!("{{\"a\": {}1{}}}", "[".repeat(60), "]".repeat(60)).into_bytes()),
        ("blank lines", Plain, text("\n\n{\n\n  \"a\": 1\n\n\n}\n\n")),
        (
            "a name with spaces",
            Plain,
            text("{\"hooks\" : { \"SessionStart\" : [ ] } , \"x\" : true }"),
        ),
    ]
}

/// Without the file of a command for the user, which is gone.
fn settings_of(mut restored: Vec<Restored>) -> Vec<Restored> {
    restored.retain(|one| match one {
        Restored::Exactly(path) => {
            path.file_stem().is_none_or(|name| name != "prove") || path.exists()
        }
        _ => true,
    });
    restored
}

#[test]
fn the_bytes_of_before_come_back() {
    for (name, looseness, before) in configs() {
        for agent in JSON {
            let home = Home::new(false);
            if looseness > taken(agent) {
                let file = home.write(agent, &before);
                assert!(home.install(agent).is_err(), "{name} {agent}");
                assert_eq!(fs::read(&file).unwrap(), before, "{name} {agent}");
                continue;
            }
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
            let restored = settings_of(uninstall(agent, &home.around.state).unwrap());
            assert_eq!(restored, [Restored::Exactly(file.clone())], "{name}");
            assert_eq!(fs::read(&file).unwrap(), before, "{name} {agent}");
        }
    }
}

#[test]
fn nothing_of_the_user_is_lost() {
    let home = Home::new(false);
    for (name, looseness, before) in configs() {
        let file = home.write(Agent::ClaudeCode, &before);
        home.install(Agent::ClaudeCode).unwrap();
        let after = fs::read_to_string(&file).unwrap();
        let before = String::from_utf8(before).unwrap();
        // Whatever the user has set is there, and their own hooks come first.
        if let (Plain, Ok(Value::Object(own))) = (looseness, serde_json::from_str(&before)) {
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
    assert_eq!((&hook["command"], &hook["onFailure"]), (&"/bin/sh".into(), &"block".into()));
    let words: Vec<&str> =
        hook["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    let state = home.around.state.to_str().unwrap();
    let own = ["--state-dir", state, "hook", "claude-code", "PreToolUse", "--guarded"];
    assert_eq!(words[0], "-c");
    assert_eq!(words[2..4], ["wardkeep", "/opt/a b/wardkeep"]);
    assert_eq!(words[4..], own);

    let entry = |agent: Agent, event: &str| {
        let file = home.write(agent, b"{}");
        home.install(agent).unwrap();
        let said: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        (said["hooks"][event][0].clone(), said)
    };
    let is_guarded = |command: &Value, agent: Agent, event: &str| {
        let command = command.as_str().unwrap();
        assert!(command.starts_with("/bin/sh -c '") && command.contains("o=$("), "{command}");
        let end = format!(
            " wardkeep '/opt/a b/wardkeep' --state-dir {state} hook {agent} {event} --guarded"
        );
        assert!(command.ends_with(&end), "{command}");
    };
    let (group, _) = entry(Agent::Codex, "PreToolUse");
    is_guarded(&group["hooks"][0]["command"], Agent::Codex, "PreToolUse");
    assert_eq!((&group["matcher"], &group["hooks"][0]["timeout"]), (&"*".into(), &86_400.into()));
    for (agent, event) in [(Agent::GeminiCli, "BeforeTool"), (Agent::QwenCode, "PreToolUse")] {
        let (group, _) = entry(agent, event);
        is_guarded(&group["hooks"][0]["command"], agent, event);
        assert_eq!(
            (&group["matcher"], &group["hooks"][0]["timeout"]),
            (&"*".into(), &86_400_000.into())
        );
    }
    let (hook, all) = entry(Agent::CopilotCli, "preToolUse");
    is_guarded(&hook["bash"], Agent::CopilotCli, "preToolUse");
    assert_eq!((&hook["timeoutSec"], &all["version"]), (&86_400.into(), &1.into()));
    let (hook, all) = entry(Agent::Cursor, "beforeShellExecution");
    is_guarded(&hook["command"], Agent::Cursor, "beforeShellExecution");
    assert_eq!((&hook["failClosed"], &all["version"]), (&true.into(), &1.into()));
    let (hook, _) = entry(Agent::Windsurf, "pre_run_command");
    is_guarded(&hook["command"], Agent::Windsurf, "pre_run_command");
}

#[test]
fn cline_gets_files_beside_those_of_the_user() {
    let home = Home::new(false);
    let own = home.around.home.join(".cline/hooks/PreToolUse");
    fs::create_dir_all(own.parent().unwrap()).unwrap();
    fs::write(&own, "#!/bin/sh\necho mine\n").unwrap();
    home.install(Agent::Cline).unwrap();
    assert_eq!(fs::read_to_string(&own).unwrap(), "#!/bin/sh\necho mine\n");
    let file = home.file(Agent::Cline);
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.starts_with("#!/bin/sh\n") && text.contains("hook cline PreToolUse"), "{text}");
    assert!(plan(Agent::Cline, &home.around).unwrap().is_done());
    assert_eq!(examine(Agent::Cline, &home.around), []);
    fs::write(&file, text.replace("exit 2", "exit 0")).unwrap();
    assert!(examine(Agent::Cline, &home.around)[0].what.contains("was changed"));
    assert!(uninstall(Agent::Cline, &home.around.state).is_err(), "what it was is not known");
    assert!(file.exists());
    home.install(Agent::Cline).unwrap();
    uninstall(Agent::Cline, &home.around.state).unwrap();
    assert!(!file.exists() && own.exists());

    home.write(Agent::Cline, b"#!/bin/sh\necho somebody else\n");
    assert!(matches!(home.install(Agent::Cline), Err(InstallError::Unusable { .. })));
}

#[test]
fn files_of_the_machine_can_be_read_by_its_users() {
    for agent in JSON {
        let home = Home::new(true);
        home.install(agent).unwrap();
        let file = home.file(agent);
        let mode = fs::metadata(&file).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o644, "{agent}");
        assert!(!fs::read_to_string(&file).unwrap().contains("--state-dir"), "{agent}");
        assert_eq!(examine(agent, &home.around), [], "{agent}");
        uninstall(agent, &home.around.state).unwrap();
        assert!(!file.exists() && !file.parent().unwrap().exists(), "{agent}");
    }
    // Settings of the machine come before those of a user.
    let home = Home::new(true);
    for (agent, member) in [
        (Agent::GeminiCli, "{\"hooksConfig\": {\"enabled\": false, \"a\": 1}}"),
        (Agent::QwenCode, "{\"disableAllHooks\": true}"),
    ] {
        let file = home.write(agent, member.as_bytes());
        home.install(agent).unwrap();
        let said: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        assert!(said["hooksConfig"]["enabled"] == true || said["disableAllHooks"] == false);
        uninstall(agent, &home.around.state).unwrap();
        assert_eq!(fs::read(&file).unwrap(), member.as_bytes());
    }
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
        for agent in JSON {
            // Each has its own name for it.
            let text = String::from_utf8_lossy(bytes).into_owned();
            let event = match agent {
                Agent::GeminiCli => "BeforeTool",
                Agent::CopilotCli | Agent::Cursor => "preToolUse",
                Agent::Windsurf => "pre_run_command",
                _ => "PreToolUse",
            };
            let renamed = text.replace("PreToolUse", event).into_bytes();
            let bytes = if text.contains("PreToolUse") { &renamed[..] } else { bytes };
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
    for agent in JSON {
        let file = home.write(agent, b"{\n  \"a\": 1\n}\n");
        home.install(agent).unwrap();
        let text = fs::read_to_string(&file).unwrap().replace("\"a\": 1", "\"a\": 2");
        fs::write(&file, text).unwrap();
        let restored = settings_of(uninstall(agent, &home.around.state).unwrap());
        assert_eq!(restored, [Restored::InPart(file.clone())]);
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains("\"a\": 2") && !text.contains("wardkeep"), "{agent}: {text}");
    }
    let file = home.write(Agent::ClaudeCode, b"{\n  \"a\": 1 // one\n}\n");
    home.install(Agent::ClaudeCode).unwrap();
    let text = fs::read_to_string(&file).unwrap().replace("\"a\": 1", "\"a\": 2");
    fs::write(&file, text).unwrap();
    let restored = settings_of(uninstall(Agent::ClaudeCode, &home.around.state).unwrap());
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
    let config = home.around.home.join(".codex/config.toml");
    let trust = |more: &str| {
        let events =
            ["pre_tool_use", "post_tool_use", "user_prompt_submit", "session_start", "session_end"];
        let hooks = home.file(Agent::Codex);
        let state = |event: &&str| {
            format!(
                "[hooks.state.\"{}:{event}:0:0\"]\ntrusted_hash = \"sha256:00\"\n{more}",
                hooks.display()
            )
        };
        events.iter().map(state).collect::<String>()
    };
    fs::write(&config, trust("")).unwrap();
    assert_eq!(examine(Agent::Codex, &home.around), []);
    fs::write(&config, trust("").replace("session_start", "other")).unwrap();
    assert!(examine(Agent::Codex, &home.around)[0].what.contains("trust"));
    fs::write(&config, trust("enabled = false\n")).unwrap();
    assert!(examine(Agent::Codex, &home.around)[0].what.contains("told not to run"));
    fs::write(&config, format!("[features]\nhooks = false\n{}", trust(""))).unwrap();
    assert!(examine(Agent::Codex, &home.around)[0].what.contains("features.hooks"));
}

#[test]
fn the_others_switches_are_found() {
    let home = Home::new(false);
    let found = |agent: Agent, path: &str, text: &str| {
        let file = home.around.home.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        home.install(agent).unwrap();
        let found = examine(agent, &home.around);
        uninstall(agent, &home.around.state).unwrap();
        fs::remove_file(file).unwrap();
        found.into_iter().map(|one| one.what).collect::<Vec<_>>().join("; ")
    };
    let gemini = ".gemini/settings.json";
    assert_eq!(found(Agent::GeminiCli, gemini, "{}"), "");
    let off = "{\"hooksConfig\": {\"enabled\": false}}";
    assert!(found(Agent::GeminiCli, gemini, off).contains("hooksConfig.enabled"));
    let off = "{\"hooksConfig\": {\"disabled\": [\"wardkeep\"]}}";
    assert!(found(Agent::GeminiCli, gemini, off).contains("hooksConfig.disabled"));
    let off = "{\"disableAllHooks\": true}";
    assert!(found(Agent::QwenCode, ".qwen/settings.json", off).contains("disableAllHooks"));
    for file in ["settings.json", "config.json", "hooks/wardkeep.json"] {
        let file = format!(".copilot/{file}");
        assert!(found(Agent::CopilotCli, &file, off).contains("disableAllHooks"), "{file}");
    }
    for agent in JSON {
        let file = home.write(agent, b"{}");
        home.install(agent).unwrap();
        let good = fs::read_to_string(&file).unwrap();
        fs::write(&file, good.replace("--guarded", "")).unwrap();
        let found = examine(agent, &home.around);
        assert!(found[0].what.contains("was changed"), "{agent}: {found:?}");
        fs::write(&file, "{}").unwrap();
        let found = examine(agent, &home.around);
        assert!(found[0].what.contains("nothing there does"), "{agent}: {found:?}");
        fs::remove_file(&file).unwrap();
    }
}

#[test]
fn what_codex_wrote_itself_is_taken_back() {
    let home = Home::new(false);
    let config = home.around.home.join(".codex/config.toml");
    for (before, later) in [
        (None, false),
        (Some("model = \"x\" # mine\n"), false),
        (Some("model = \"x\" # mine\n"), true),
        (Some("[hooks.state.\"/other:stop:0:0\"]\ntrusted_hash = \"a\"\n"), true),
    ] {
        home.install(Agent::Codex).unwrap();
        match before {
            Some(text) => fs::write(&config, text).unwrap(),
            None => drop(fs::remove_file(&config)),
        }
        let given = "\n[hooks.state.\"/h:pre_tool_use:0:0\"]\ntrusted_hash = \"b\"\n";
        codex_trust(&home.around, || {
            let text = format!("{}{given}", before.unwrap_or_default());
            fs::write(&config, text).unwrap();
            Ok::<(), InstallError>(())
        })
        .unwrap();
        if later {
            let text = fs::read_to_string(&config).unwrap();
            fs::write(&config, format!("{text}\n[projects.\"/p\"]\ntrust_level = \"trusted\"\n"))
                .unwrap();
        }
        uninstall(Agent::Codex, &home.around.state).unwrap();
        let text = fs::read_to_string(&config).ok();
        if later {
            let text = text.unwrap();
            assert!(text.contains("trust_level") && !text.contains("/h:pre"), "{text}");
            assert!(text.starts_with(before.unwrap().trim_end()), "{text}");
        } else {
            assert_eq!(text.as_deref(), before);
        }
    }
}

#[test]
fn a_base_url_is_led_to_the_proxy_and_put_back() {
    let url = "http://127.0.0.1:1";
    for (agent, name, before, shown) in [
        (
            Agent::ClaudeCode,
            ".claude/settings.json",
            "{\n  // mine\n  \"env\": {\"ANTHROPIC_BASE_URL\": \"https://gate.example\"},\n}\n",
            "\"ANTHROPIC_BASE_URL\": \"http://127.0.0.1:1/anthropic\"",
        ),
        (
            Agent::GeminiCli,
            ".gemini/.env",
            "GEMINI_API_KEY=x\nexport GOOGLE_GEMINI_BASE_URL=https://gate.example\n",
            "GEMINI_API_KEY=x\nGOOGLE_GEMINI_BASE_URL=http://127.0.0.1:1/gemini\n",
        ),
        (
            Agent::OpenCode,
            ".config/opencode/opencode.json",
            "{\"provider\": {\"anthropic\": {\"options\": {\"apiKey\": \"x\"}}}}",
            "http://127.0.0.1:1/anthropic/v1",
        ),
    ] {
        let lab = Home::new(false);
        let file = lab.around.home.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, before).unwrap();
        set_proxy(agent, &lab.around.state, url).unwrap();
        lab.install(agent).unwrap();
        let after = fs::read_to_string(&file).unwrap();
        assert!(after.contains(shown), "{agent}: {after}");
        assert!(plan(agent, &lab.around).unwrap().is_done(), "{agent}");
        let found = |lab: &Home| examine(agent, &lab.around);
        assert_eq!(found(&lab).len(), 1, "{agent}: {:?}", found(&lab));
        assert!(found(&lab)[0].what.contains("nobody answers"), "{agent}");
        // Someone leads it elsewhere: that is seen.
        fs::write(&file, after.replace("127.0.0.1:1/", "127.0.0.1:9/")).unwrap();
        assert!(found(&lab).iter().any(|one| one.what.contains("as it should")), "{agent}");
        fs::write(&file, &after).unwrap();
        uninstall(agent, &lab.around.state).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), before, "{agent}");
        assert!(!plan(agent, &lab.around).unwrap().is_done(), "{agent}");

        // What was changed since stays; only the base URL of ours goes.
        set_proxy(agent, &lab.around.state, url).unwrap();
        lab.install(agent).unwrap();
        let changed = match agent {
            Agent::GeminiCli => format!("{after}OTHER=1\n"),
            _ => after.replacen('{', "{ \"other\": 1,", 1),
        };
        fs::write(&file, changed).unwrap();
        uninstall(agent, &lab.around.state).unwrap();
        let left = fs::read_to_string(&file).unwrap();
        assert!(!left.contains("127.0.0.1"), "{agent}: {left}");
        assert!(left.to_lowercase().contains("other"), "{agent}: {left}");
    }
}
