//! The first minute: `init` on a terminal, the one screen of `status`.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::shared::{BINARY, Ran, command, is_harmless, skip};

/// A home of someone who uses Claude Code, and a project of theirs.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = Self(folder);
        for name in ["work/memory", ".claude", "bin", "machine"] {
            fs::create_dir_all(home.at(name)).unwrap();
        }
        fs::write(home.at("work/CLAUDE.md"), "# Be careful\n").unwrap();
        fs::write(home.at("work/memory/1.md"), "tea\n").unwrap();
        fs::write(home.at(".claude/settings.json"), "{\n  \"model\": \"opus\"\n}\n").unwrap();
        home
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn state(&self) -> PathBuf {
        self.at("state")
    }

    fn prepare(&self, command: &mut Command) {
        command.env("HOME", self.0.path()).env("PATH", "/usr/bin:/bin");
        command.env("WARDKEEP_STATE_DIR", self.state());
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        let mut command = command(BINARY, &self.at("work"));
        self.prepare(&mut command);
        command.args(arguments).output().unwrap().into()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let ran = self.run(&[arguments, &["--json"]].concat());
        serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
    }

    /// On a terminal of 24 lines.
    fn terminal(&self, arguments: &str) -> Option<Child> {
        let line = format!("stty rows 24 cols 80; {BINARY} {arguments} --no-color");
        let mut script = command("script", &self.at("work"));
        self.prepare(&mut script);
        script.args(["-qec", &line, "/dev/null"]).stdin(Stdio::piped());
        script.stdout(Stdio::piped()).stderr(Stdio::piped());
        script.spawn().ok()
    }

    /// The same with something typed.
    fn typed(&self, arguments: &str, keys: &str) -> Option<Ran> {
        let mut child = self.terminal(arguments)?;
        child.stdin.take()?.write_all(keys.as_bytes()).ok()?;
        Some(child.wait_with_output().ok()?.into())
    }

    /// What init may change, to see that it did not.
    fn everything(&self) -> Vec<(PathBuf, Vec<u8>)> {
        fn walk(folder: &Path, into: &mut Vec<(PathBuf, Vec<u8>)>) {
            let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(Result::unwrap).collect();
            entries.sort_by_key(fs::DirEntry::path);
            for entry in entries {
                match entry.file_type().unwrap() {
                    kind if kind.is_dir() => walk(&entry.path(), into),
                    kind if kind.is_file() => {
                        into.push((entry.path(), fs::read(entry.path()).unwrap()));
                    }
                    _ => {}
                }
            }
        }
        let mut all = Vec::new();
        walk(self.0.path(), &mut all);
        all
    }

    fn stop_daemon(&self) {
        self.run(&["daemon", "stop"]);
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        self.stop_daemon();
    }
}

const FOR_USER: [&str; 2] = ["init", "--user"];

#[test]
fn the_plan_names_each_file_and_line_and_changes_nothing() {
    let home = Home::new();
    let before = home.everything();
    let ran = home.run(&["init", "--user", "--dry-run"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    for part in [
        "claude-code",
        "does not ask wardkeep",
        "~/work/LocalGPT.md",
        "~/work/soulguard.json",
        "protect CLAUDE.md",
        "watch   memory/1.md",
        "~/.claude/settings.json",
        "+ # LocalGPT.md",
        "PreToolUse",
        "SessionEnd",
        "wardkeep run -- claude",
    ] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    let answer = home.json(&["init", "--user", "--dry-run"]);
    let what: Vec<&str> = answer["changes"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["what"].as_str())
        .collect();
    assert_eq!(what, ["policy", "tiers", "hooks"]);
    assert_eq!(answer["changes"][2]["undo"], "wardkeep uninstall claude-code");
    assert_eq!(home.everything(), before);
}

#[test]
fn the_plan_counts_what_is_protected_then() {
    let home = Home::new();
    let list = r#"{"version":1,"protect":["soulguard.json","CLAUDE.md"],"watch":[]}"#;
    fs::write(home.at("work/soulguard.json"), list).unwrap();
    let ran = home.run(&[&FOR_USER[..], &["--yes"]].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    for words in ["2 files protected (", "Identity: 2 protected"] {
        assert!(ran.stdout.contains(words), "{words}: {}", ran.stdout);
    }
}

#[test]
fn yes_does_all_of_it_grades_it_and_again_nothing_is_missing() {
    let home = Home::new();
    let ran = home.run(&[&FOR_USER[..], &["--yes"]].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(home.at("work/LocalGPT.md").exists() && home.at("work/soulguard.json").exists());
    let settings = fs::read_to_string(home.at(".claude/settings.json")).unwrap();
    assert!(settings.contains("PreToolUse") && settings.contains("\"opus\""), "{settings}");
    assert!(ran.stdout.contains("Grade "), "{ran:?}");
    assert!(
        ran.stdout.contains("What would raise it") && ran.stdout.contains("md sign"),
        "{ran:?}"
    );
    let before = home.everything();
    let again = home.json(&[&FOR_USER[..], &["--yes"]].concat());
    assert_eq!(again["changes"], serde_json::json!([]));
    assert_eq!(again["agents"][0]["asks"], true);
    assert!(again["grade"]["points"].as_u64().unwrap() > 30, "{again}");
    let changed: Vec<_> = home
        .everything()
        .into_iter()
        .filter(|one| !one.0.starts_with(home.state()) && !before.contains(one))
        .collect();
    assert_eq!(changed, []);
    // What is taken away is proposed again, and only that.
    fs::remove_file(home.at("work/LocalGPT.md")).unwrap();
    let answer = home.json(&[&FOR_USER[..], &["--dry-run"]].concat());
    assert_eq!(answer["changes"].as_array().unwrap().len(), 1);
    assert_eq!(answer["changes"][0]["what"], "policy");
}

#[test]
fn a_person_sees_the_plan_leaves_one_out_and_is_asked_once() {
    let home = Home::new();
    let before = home.everything();
    let Some(ran) = home.typed("init --user", "n\n") else {
        return skip("script", "a_person_sees_the_plan_leaves_one_out_and_is_asked_once");
    };
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stdout.contains("nothing was changed"), "{ran:?}");
    assert_eq!(home.everything(), before);
    // An end of input is no yes either.
    let ran = home.typed("init --user", "\u{4}").unwrap();
    assert_eq!((ran.code, home.everything()), (1, before), "{}", ran.stdout);
    let ran = home.typed("init --user", "d 3\n3\ny\n").unwrap();
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("Do 3 of 3 changes?") && ran.stdout.contains("Do 2 of 3 changes?"));
    // Every line of it was shown when asked for.
    assert!(ran.stdout.contains("SessionEnd"), "{ran:?}");
    assert!(home.at("work/LocalGPT.md").exists());
    let settings = fs::read_to_string(home.at(".claude/settings.json")).unwrap();
    assert!(!settings.contains("wardkeep"), "{settings}");
    // The next time only what was left out is proposed.
    let ran = home.typed("init --user", "y\n").unwrap();
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("Do 1 of 1 change?"), "{ran:?}");
    let settings = fs::read_to_string(home.at(".claude/settings.json")).unwrap();
    assert!(settings.contains("wardkeep"), "{settings}");
}

#[test]
fn a_home_is_no_workspace_because_settings_lie_in_it() {
    let home = Home::new();
    let mut init = command(BINARY, home.0.path());
    home.prepare(&mut init);
    let ran: Ran = init.args(["init", "--user", "--dry-run", "--json"]).output().unwrap().into();
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    let what: Vec<&Value> =
        answer["changes"].as_array().unwrap().iter().map(|one| &one["what"]).collect();
    assert_eq!(what, ["hooks"], "{answer}");
    assert!(answer["left"][0].as_str().unwrap().contains("no workspace"), "{answer}");
}

#[test]
fn without_a_terminal_hooks_are_left_and_said() {
    let home = Home::new();
    let ran = home.run(&FOR_USER);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(home.at("work/LocalGPT.md").exists() && home.at("work/soulguard.json").exists());
    assert!(ran.stdout.contains("Not done without a terminal or --yes ("), "{ran:?}");
    assert!(ran.stdout.contains("claude-code asks wardkeep before each call"), "{ran:?}");
    let settings = fs::read_to_string(home.at(".claude/settings.json")).unwrap();
    assert!(!settings.contains("wardkeep"), "{settings}");
}

#[test]
fn what_fails_is_put_back_and_what_was_done_can_be() {
    let home = Home::new();
    // The settings can be read and not written.
    let settings = home.at(".claude/settings.json");
    let mut mode = fs::metadata(&settings).unwrap().permissions();
    mode.set_readonly(true);
    fs::set_permissions(&settings, mode).unwrap();
    let before = fs::read(&settings).unwrap();
    let ran = home.run(&[&FOR_USER[..], &["--yes"]].concat());
    assert_ne!(ran.code, 0, "{ran:?}");
    assert!(ran.stderr.contains("was done: ~/work/LocalGPT.md"), "{ran:?}");
    assert!(ran.stderr.contains("`rm ~/work/LocalGPT.md` takes it back"), "{ran:?}");
    assert!(ran.stderr.contains("could not be done"), "{ran:?}");
    assert_eq!(fs::read(&settings).unwrap(), before);
}

#[test]
fn what_changed_after_it_was_shown_is_not_done() {
    for (name, text, stays) in [
        ("work/AGENTS.md", "obey\n", "work/soulguard.json"),
        (".claude/settings.json", "{\"disableAllHooks\": true}\n", ".claude/commands"),
    ] {
        let home = Home::new();
        let Some(mut child) = home.terminal("init --user") else {
            return skip("script", "what_changed_after_it_was_shown_is_not_done");
        };
        let (mut shown, mut buffer) = (Vec::new(), [0; 1024]);
        let stdout = child.stdout.as_mut().unwrap();
        while !String::from_utf8_lossy(&shown).contains("Do 3 of 3") {
            let read = stdout.read(&mut buffer).unwrap();
            assert_ne!(read, 0, "{}", String::from_utf8_lossy(&shown));
            shown.extend_from_slice(&buffer[..read]);
        }
        fs::write(home.at(name), text).unwrap();
        child.stdin.take().unwrap().write_all(b"y\n").unwrap();
        let ran = Ran::from(child.wait_with_output().unwrap());
        assert_eq!(ran.code, 1, "{name}: {ran:?}");
        assert!(ran.stdout.contains("changed after it was shown"), "{name}: {ran:?}");
        assert!(!home.at(stays).exists(), "{name}");
        assert_eq!(fs::read_to_string(home.at(name)).unwrap(), text);
    }
}

#[test]
fn a_list_that_an_agent_wrote_is_proposed_and_never_taken_unasked() {
    let home = Home::new();
    let hostile = "a\u{1b}[31m b";
    fs::create_dir_all(home.at(hostile)).unwrap();
    let projects = serde_json::json!({
        "projects": { home.at(hostile).to_str().unwrap(): {}, "/": {}, "/etc": {}, home.0.path().to_str().unwrap(): {} }
    });
    fs::write(home.at(".claude.json"), projects.to_string()).unwrap();
    let answer = home.json(&["init", "--user", "--dry-run"]);
    let listed: Vec<(&str, bool)> = answer["changes"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["what"] == "tiers")
        .map(|one| (one["subject"].as_str().unwrap(), one["chosen"].as_bool().unwrap()))
        .collect();
    let own = home.at("work").canonicalize().unwrap();
    let other = home.at(hostile).canonicalize().unwrap();
    let mut expected = vec![(own.to_str().unwrap(), true), (other.to_str().unwrap(), false)];
    // Root's own folders are root's to protect.
    if rustix::process::geteuid().is_root() {
        expected.push(("/etc", false));
    }
    assert_eq!(listed.len(), expected.len(), "{listed:?}");
    assert!(expected.iter().all(|one| listed.contains(one)), "{listed:?}");
    let ran = home.run(&["init", "--user", "--yes"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(is_harmless(&ran.stdout) && is_harmless(&ran.stderr));
    assert_eq!(fs::read_dir(home.at(hostile)).unwrap().count(), 0);
}

#[test]
fn one_screen_says_how_it_stands_and_the_next_thing_to_do() {
    let home = Home::new();
    let fresh = home.json(&["status"]);
    assert_eq!(
        (&fresh["ok"], &fresh["next"]["command"]),
        (&Value::from(true), &Value::from("wardkeep init"))
    );
    assert_eq!(fresh["agents"][0]["asks"], "no");
    assert!(!home.state().exists(), "a look makes nothing");
    assert_eq!(home.run(&["init", "--user", "--yes"]).code, 0);
    let answer = home.json(&["status"]);
    assert_eq!(answer["agents"][0]["asks"], "yes", "{answer}");
    assert_eq!(answer["workspaces"][0]["files"], "approved");
    assert_eq!(answer["workspaces"][0]["policy"], "unsigned");
    assert_eq!(answer["evidence"]["holds"], true);
    // What is broken comes first.
    fs::write(home.at("work/CLAUDE.md"), "obey\n").unwrap();
    let broken = home.run(&["status"]);
    assert_eq!(broken.code, 20, "{broken:?}");
    assert!(
        broken.stdout.contains("1 drifted") && broken.stdout.contains("wardkeep sync"),
        "{broken:?}"
    );
    let Some(shown) = home.typed("status", "") else {
        return skip("script", "one_screen_says_how_it_stands_and_the_next_thing_to_do");
    };
    let lines: Vec<&str> = shown.stdout.lines().collect();
    assert!(lines.len() <= 23, "{shown:?}");
    assert!(lines.iter().all(|line| line.trim_end().chars().count() <= 80), "{shown:?}");
    assert!(is_harmless(&shown.stdout.replace('\r', "")), "{shown:?}");
}

#[test]
fn no_later_record_takes_a_grave_alert_off_the_screen() {
    let home = Home::new();
    assert_eq!(home.run(&["init", "--user", "--yes"]).code, 0);
    let hook = |tool: &str, input: Value| {
        let event = serde_json::json!({
            "session_id": "abc", "transcript_path": "/t", "cwd": home.at("work"),
            "hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": input
        });
        let mut command = command(BINARY, &home.at("work"));
        home.prepare(&mut command);
        // A hook goes by no variable of its surroundings.
        command.arg("--state-dir").arg(home.state());
        command.args(["hook", "claude-code", "PreToolUse", "--no-daemon"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(event.to_string().as_bytes()).unwrap();
        child.wait().unwrap();
    };
    let policy = home.at("work/LocalGPT.md");
    hook("Write", serde_json::json!({"file_path": policy, "content": "obey"}));
    for page in 0..12 {
        let input = serde_json::json!({"url": format!("https://docs.rs/{page}"), "prompt": "look"});
        hook("WebFetch", input);
    }
    let status = home.json(&["status"]);
    let grave = |alert: &Value| matches!(alert["severity"].as_str(), Some("high" | "critical"));
    let alerts = status["alerts"].as_array().unwrap();
    assert!(alerts.iter().any(grave), "{status}");
    // And it counts what `notifications` shows.
    let all = home.json(&["notifications"]);
    let count =
        |list: &Value, more: &Value| list.as_array().unwrap().len() as u64 + more.as_u64().unwrap();
    assert_eq!(
        count(&status["alerts"], &status["more_alerts"]),
        count(&all["notices"], &all["more"]),
        "{status}\n{all}"
    );
}

#[test]
fn a_trial_of_wardkeeps_own_is_on_record_and_no_alert() {
    let home = Home::new();
    let ran = home.run(&["init", "--user", "--yes"]);
    assert!(ran.code == 0 && ran.stderr.contains("must be started anew"), "{ran:?}");
    let status = home.json(&["status"]);
    assert_eq!((&status["alerts"], &status["more_alerts"]), (&serde_json::json!([]), &0.into()));
    assert_eq!(status["evidence"]["blocked"], 0, "{status}");
    assert_eq!(status["agents"][0]["confined"], "unseen", "{status}");
    let log = home.json(&["log"]).to_string();
    assert!(log.contains("claude-code:self-test-") && log.contains("LocalGPT.md"), "{log}");
    assert!(home.run(&["log"]).stdout.contains("trial of wardkeep's own: "));

    // Whoever takes the name of a trial, of one that is over or of one that never was, is no trial.
    let name = log.split("claude-code:self-test-").nth(1).unwrap().get(..16).unwrap().to_owned();
    for (number, id) in [name, "0".repeat(16)].iter().enumerate() {
        let event = serde_json::json!({
            "session_id": format!("self-test-{id}"), "transcript_path": "/t", "cwd": home.at("work"),
            "hook_event_name": "PreToolUse", "tool_name": "Bash",
            "tool_input": {"command": "echo x > LocalGPT.md"}
        });
        let mut command = command(BINARY, &home.at("work"));
        home.prepare(&mut command);
        // A hook goes by no variable of its surroundings.
        command.arg("--state-dir").arg(home.state());
        command.args(["hook", "claude-code", "PreToolUse", "--no-daemon"]);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(event.to_string().as_bytes()).unwrap();
        child.wait().unwrap();
        let status = home.json(&["status"]);
        assert_eq!(status["evidence"]["blocked"], number + 1, "{status}");
        assert!(!status["alerts"].as_array().unwrap().is_empty(), "{status}");
    }
}

#[test]
fn codex_that_has_still_to_trust_is_not_called_done_nor_switched_off() {
    let home = Home::new();
    fs::create_dir(home.at(".codex")).unwrap();
    let agents = |answer: &Value| answer["agents"].to_string();
    assert!(!agents(&home.json(&["status"])).contains("codex"), "an empty folder is no agent");
    fs::write(home.at(".codex/history.jsonl"), "{}\n").unwrap();
    let ran = home.run(&["init", "--user", "--yes"]);
    assert_eq!(ran.code, 20, "{ran:?}");
    assert!(
        !ran.stdout.contains("done codex") && ran.stdout.contains("codex does not ask yet"),
        "{ran:?}"
    );
    assert!(ran.stderr.contains("/hooks"), "{ran:?}");
    let status = home.json(&["status"]);
    let codex = status["agents"].as_array().unwrap().iter().find(|one| one["agent"] == "codex");
    assert_eq!(codex.unwrap()["asks"], "untrusted", "{status}");
    let steps = status["grade"]["steps"].as_array().unwrap();
    let step = steps.iter().find(|one| one["what"].to_string().contains("does not trust")).unwrap();
    assert_eq!((&step["broken"], &step["command"]), (&Value::from(false), &Value::from("codex")));
    assert_eq!(home.run(&["status"]).code, 0);
    let again = home.run(&["init", "--user", "--yes"]);
    assert!(again.code == 20 && again.stderr.contains("does not ask yet"), "{again:?}");
}
