//! `wardkeep install`, `uninstall` and `doctor` by the real binary.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, chown};
use std::path::PathBuf;
use std::process::Command;

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

    let command = place.scene.at("home/.claude/commands/prove.md");
    assert!(fs::read_to_string(&command).unwrap().contains(" prove"));
    let starts = |place: &Place| {
        let event = r#"{"session_id":"a","transcript_path":"/t","cwd":"/","hook_event_name":"SessionStart","source":"startup"}"#;
        let mut command = place.scene.command("s", &["hook", "claude-code", "SessionStart"]);
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(event.as_bytes()).unwrap();
        String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
    };
    assert!(!starts(&place).contains("not protected"));
    fs::write(place.settings(), text.replacen('{', "{ \"disableAllHooks\": true,", 1)).unwrap();
    assert!(starts(&place).contains("claude-code is not protected"));
    let ran = place.run(&["doctor", "--user", "--json"]);
    assert_eq!(ran.code, 20, "{ran:?}");
    let said: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(said["agents"][0]["protected"], false);
    fs::write(place.settings(), text).unwrap();

    let ran = place.run(&["uninstall", "claude-code"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(fs::read_to_string(place.settings()).unwrap(), before);
    assert!(!command.exists() && !command.parent().unwrap().exists());
    assert_eq!(place.run(&["uninstall", "claude-code"]).code, 1);
    assert_eq!(place.run(&["doctor", "--user"]).code, 20);
}

/// An agent's home need not be the one that the system's list of users tells.
#[test]
fn an_agent_cannot_take_its_hooks_out_of_another_home() {
    let place = Place::new();
    assert_eq!(place.run(&["install", "claude-code", "--user"]).code, 0);
    // Where it was installed is where it is looked for, without being told.
    let ran = place.run(&["doctor"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let home = place.scene.at("home");
    let says = |command: &str| {
        let work = place.scene.at("home/work");
        fs::create_dir_all(&work).unwrap();
        let event = serde_json::json!({
            "session_id": "a", "transcript_path": "/t", "cwd": work, "hook_event_name": "PreToolUse",
            "tool_name": "Bash", "tool_input": { "command": command },
        });
        let mut run = place.scene.command("s", &["hook", "claude-code", "PreToolUse"]);
        run.stdin(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let mut child = run.spawn().unwrap();
        child.stdin.take().unwrap().write_all(event.to_string().as_bytes()).unwrap();
        String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap()
    };
    let home = home.display();
    for command in [
        format!("echo {{}} > {home}/.claude/settings.json"),
        format!("rm -rf {home}/.claude"),
        format!("mv {home}/.claude /tmp/x"),
        format!("sed -i d {home}/.claude/settings.json"),
        format!("rm -rf {home}"),
        format!("rm {home}/.claude/commands/prove.md"),
        format!("echo {{}} > {home}/.codex/hooks.json"),
    ] {
        let said = says(&command);
        assert!(said.starts_with("denied by wardkeep: "), "{command}: {said}");
    }
    let said = says(&format!("echo x > {home}/work/notes.txt"));
    assert!(!said.contains("denied"), "{said}");
}

#[test]
fn what_cannot_be_used_is_an_error_and_stays() {
    let place = Place::new();
    fs::create_dir_all(place.settings().parent().unwrap()).unwrap();
    fs::write(place.settings(), "{ broken").unwrap();
    let ran = place.run(&["install", "claude-code", "--user"]);
    assert_eq!(ran.code, 4, "{ran:?}");
    assert_eq!(fs::read_to_string(place.settings()).unwrap(), "{ broken");
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
    let folder = place.scene.at("bin");
    fs::create_dir(&folder).unwrap();
    let install = |path: String| {
        let mut command = place.scene.command("s", &["install", "codex", "--user"]);
        command.env("HOME", place.scene.at("home")).env("PATH", path);
        Ran::from(command.output().unwrap())
    };
    let ran = install(folder.display().to_string());
    assert_eq!(ran.code, 20, "{ran:?}");
    assert!(ran.stdout.contains("does not ask wardkeep yet"), "{ran:?}");
    assert!(
        ran.stdout.contains("/hooks") && ran.stderr.contains("no `codex` was found"),
        "{ran:?}"
    );
    // One that ends at once, and one that says nothing of use.
    for does in ["exit 1", "read line; echo '{\"id\":1,\"error\":{\"message\":\"no\"}}'"] {
        let program = folder.join("codex");
        fs::write(&program, format!("#!/bin/sh\n{does}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let ran = install(format!("{}:/usr/bin:/bin", folder.display()));
        assert_eq!(ran.code, 20, "{ran:?}");
        assert!(ran.stdout.contains("/hooks"), "{ran:?}");
    }
    assert_eq!(place.run(&["uninstall", "codex"]).code, 0);
    assert!(!place.scene.at("home/.codex").exists());
}

#[test]
fn every_other_agent_is_installed_tried_examined_and_taken_back() {
    let place = Place::new();
    for agent in ["gemini-cli", "copilot-cli", "qwen-code", "cline", "cursor", "windsurf"] {
        let ran = place.run(&["install", agent, "--user"]);
        assert_eq!(ran.code, 0, "{agent} {ran:?}");
        assert!(ran.stdout.contains(&format!("Installed: {agent}")), "{ran:?}");
        let ran = place.run(&["doctor", agent, "--user"]);
        assert_eq!(ran.code, 0, "{agent} {ran:?}");
        let ran = place.run(&["uninstall", agent]);
        assert_eq!(ran.code, 0, "{agent} {ran:?}");
        let left: Vec<_> = fs::read_dir(place.scene.at("home")).unwrap().collect();
        assert!(left.is_empty(), "{agent} {left:?}");
    }
}

#[test]
fn it_is_not_called_installed_where_hooks_are_off() {
    let place = Place::new();
    let folder = place.scene.at("home/.gemini");
    fs::create_dir(&folder).unwrap();
    let before = "{ \"hooksConfig\": { \"enabled\": false } }";
    fs::write(folder.join("settings.json"), before).unwrap();
    let ran = place.run(&["install", "gemini-cli", "--user"]);
    assert_eq!(ran.code, 20, "{ran:?}");
    assert!(ran.stdout.contains("hooksConfig.enabled"), "{ran:?}");
    assert_eq!(place.run(&["uninstall", "gemini-cli"]).code, 0);
    assert_eq!(fs::read_to_string(folder.join("settings.json")).unwrap(), before);
}

#[test]
fn plugins_are_installed_tried_examined_and_taken_back() {
    for (agent, file, before) in [
        ("openclaw", "home/.openclaw/openclaw.json", "// mine\n{ gateway: { mode: 'local' } }\n"),
        (
            "opencode",
            "home/.config/opencode/opencode.json",
            "{ \"share\": \"disabled\" } // mine\n",
        ),
    ] {
        let place = Place::new();
        let file = place.scene.at(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, before).unwrap();
        let dry = place.run(&["install", agent, "--user", "--dry-run"]);
        assert_eq!(dry.code, 0, "{dry:?}");
        assert!(
            dry.stdout.contains("plugins/") && !place.scene.at("s/plugins").exists(),
            "{dry:?}"
        );
        let ran = place.run(&["install", agent, "--user"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(ran.stdout.contains(&format!("Installed: {agent}")), "{ran:?}");
        assert_eq!(place.run(&["doctor", "--user"]).code, 0);
        judges(&place, agent);

        let command = place.scene.at(&format!("s/plugins/{agent}/command.js"));
        let good = fs::read(&command).unwrap();
        fs::write(&command, "export default [\"true\"];\n").unwrap();
        let ran = place.run(&["doctor", "--user"]);
        assert_eq!(ran.code, 20, "{ran:?}");
        assert!(ran.stdout.contains("command.js"), "{ran:?}");
        fs::write(&command, good).unwrap();

        let ran = place.run(&["uninstall", agent]);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert_eq!(fs::read_to_string(&file).unwrap(), before);
        assert!(!place.scene.at("s/plugins").exists(), "{ran:?}");
    }
}

/// The plugin as it was written, in a host of our own: what it forbids and what not.
fn judges(place: &Place, agent: &str) {
    let script = r#"
        const [agent, folder, work] = process.argv.slice(1);
        const hooks = {};
        const api = {
            on: () => {}, registerAgentToolResultMiddleware: () => {},
            registerTrustedToolPolicy: (policy) => { hooks.policy = policy; },
            runtime: { agent: { resolveAgentWorkspaceDir: () => work } },
        };
        const ask = agent === "openclaw"
            ? async (command) => (await hooks.policy.evaluate(
                { toolName: "exec", params: { command } }, { sessionId: "one" }))?.blockReason
            : (command) => hooks.plugin["tool.execute.before"](
                { tool: "bash", sessionID: "one", callID: "1" }, { args: { command } })
                .then(() => undefined, (error) => error.message);
        const { default: plugin } = await import(`${folder}/index.${agent === "openclaw" ? "ts" : "js"}`);
        if (agent === "openclaw") plugin.register(api);
        else hooks.plugin = await plugin.server({ directory: work });
        console.log(JSON.stringify([await ask("true"), await ask("echo x > LocalGPT.md")]));
    "#;
    let folder = place.scene.at(&format!("s/plugins/{agent}"));
    let work = place.scene.at("work");
    fs::create_dir_all(&work).unwrap();
    let cached = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let cached = cached.join(".cache/wardkeep-agents/node/node_modules/.bin/node");
    // One that takes types off by itself.
    let strips = |node: &PathBuf| {
        let said = Command::new(node).args(["-p", "process.features.typescript"]).output();
        said.is_ok_and(|said| said.stdout.starts_with(b"strip"))
    };
    let Some(node) = [PathBuf::from("node"), cached].into_iter().find(strips) else {
        return skip(
            "Node 22.18 or newer",
            "install::plugins_are_installed_tried_examined_and_taken_back",
        );
    };
    let mut command = Command::new(node);
    command.args(["--input-type=module", "-e", script, agent]).arg(&folder).arg(&work);
    let ran = Ran::from(command.output().unwrap());
    let said: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    assert_eq!(said[0], Value::Null, "a harmless call");
    assert!(said[1].as_str().unwrap().contains("denied by wardkeep: `LocalGPT.md`"), "{said}");
}
