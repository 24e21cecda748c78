//! The shell around a hook, with programs in the hook's place that break in all ways.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use wardkeep_agents::Agent;
use wardkeep_agents::install::trial::{self, Verdict};
use wardkeep_agents::install::{INSTALLABLE, Surroundings, plan};

/// Runs what an agent would for an event, around a program that does this.
fn run(agent: Agent, event: &str, does: Option<&str>, shell: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("it's a \"place\" $HOME `x` \\");
    fs::create_dir(&place).unwrap();
    let program = place.join("wardkeep");
    if let Some(does) = does {
        // By a process of its own: a child of another thread may hold what is written here, so that it cannot be
        // started.
        let write = r#"printf '#!/bin/sh\n%s\n' "$2" >"$1" && chmod 755 "$1""#;
        let written =
            Command::new("/bin/sh").args(["-c", write, "sh"]).arg(&program).arg(does).status();
        assert!(written.unwrap().success());
    }
    let (home, state) = (folder.path().to_owned(), "/a b'c".into());
    let around = Surroundings { home, machine: None, program, state };
    let plan = plan(agent, &around).unwrap();
    for change in &plan.changes {
        fs::create_dir_all(change.path.parent().unwrap()).unwrap();
        fs::write(&change.path, &change.after).unwrap();
    }
    let words = &plan.commands.iter().find(|one| one.event == event).unwrap().words;
    let mut child = Command::new(if words[0] == "/bin/sh" { shell } else { &words[0] })
        .args(&words[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let _ = child.stdin.take().unwrap().write_all(b"the event");
    child.wait_with_output().unwrap()
}

const BROKEN: [Option<&str>; 9] = [
    Some("exit 0"),
    Some("printf '{\"decision\": \"all'; exit 0"),
    Some("echo allow"),
    Some("exit 1"),
    Some("exit 2"),
    Some("kill -KILL $$"),
    Some("kill -SEGV $$"),
    Some("echo '{\"cancel\": false}'; kill -TERM $$"),
    None,
];

#[test]
fn only_what_was_judged_gets_through() {
    for shell in ["/bin/sh", "bash"] {
        let yes = run(Agent::Codex, "PreToolUse", Some("cat >/dev/null; exit 77"), shell);
        assert_eq!(yes.status.code(), Some(0), "{yes:?}");
        assert!(yes.stdout.is_empty() && yes.stderr.is_empty(), "{yes:?}");
        let said = run(Agent::Codex, "PreToolUse", Some("cat; printf '{}\\n'; exit 77"), shell);
        assert_eq!(said.stdout, b"the event{}", "{said:?}");
        let no = run(Agent::Codex, "PreToolUse", Some("echo why >&2; exit 78"), shell);
        assert_eq!((no.status.code(), &no.stderr[..]), (Some(2), &b"why\n"[..]), "{no:?}");
        for does in BROKEN {
            let no = run(Agent::Codex, "PreToolUse", does, shell);
            assert_eq!(no.status.code(), Some(2), "{does:?} {no:?}");
            assert!(no.stdout.is_empty(), "{does:?} {no:?}");
            let said = String::from_utf8_lossy(&no.stderr).into_owned();
            assert!(said.contains("denied by wardkeep: it gave no answer"), "{does:?} {said}");
        }
    }
}

#[test]
fn every_agent_takes_what_breaks_for_a_no() {
    // Plugins are their own guard, see `plugins/tests`.
    let plugged = |agent: &Agent| matches!(agent, Agent::OpenClaw | Agent::OpenCode);
    for agent in INSTALLABLE.into_iter().filter(|agent| !plugged(agent)) {
        let Some((event, _)) = trial::event(agent, "s", "/w".as_ref(), "true") else { continue };
        for does in BROKEN {
            let ran = run(agent, event, does, "/bin/sh");
            let verdict = trial::verdict(agent, ran.status.code(), &ran.stdout, &ran.stderr);
            let Verdict::No(why) = verdict else { panic!("{agent} {does:?} {ran:?}") };
            assert!(why.contains("it gave no answer"), "{agent} {does:?} {why}");
        }
        let said = if agent == Agent::Cline { "echo '{\"cancel\": false}'; " } else { "" };
        let ran = run(agent, event, Some(&format!("{said}exit 77")), "/bin/sh");
        let verdict = trial::verdict(agent, ran.status.code(), &ran.stdout, &ran.stderr);
        assert_eq!(verdict, Verdict::Yes, "{agent} {ran:?}");
    }
}

/// A result that nobody has judged is not shown.
#[test]
fn results_are_withheld_by_a_hook_that_breaks() {
    for (agent, event) in [
        (Agent::ClaudeCode, "PostToolUse"),
        (Agent::Codex, "PostToolUse"),
        (Agent::GeminiCli, "AfterTool"),
        (Agent::CopilotCli, "postToolUse"),
        (Agent::QwenCode, "PostToolUse"),
        (Agent::Cline, "PostToolUse"),
    ] {
        let ran = run(agent, event, Some("kill -KILL $$"), "/bin/sh");
        let wanted =
            agent.refuse(Some(event), "it gave no answer. Tell the user to run wardkeep doctor.");
        assert_eq!(ran.stdout, wanted.stdout, "{agent}");
        assert_eq!(ran.status.code(), Some(wanted.code.into()), "{agent}");
    }
}

#[test]
fn the_words_arrive_as_they_are() {
    let does = Some("printf '%s|' \"$@\"; exit 77");
    for (agent, event) in [(Agent::ClaudeCode, "PreToolUse"), (Agent::Codex, "PreToolUse")] {
        let said = String::from_utf8(run(agent, event, does, "/bin/sh").stdout).unwrap();
        assert_eq!(said, format!("--state-dir|/a b'c|hook|{agent}|{event}|--guarded|"));
    }
}

#[test]
fn long_answers_arrive_whole() {
    let does = "head -c 3000000 /dev/zero | tr '\\0' x; exit 77";
    let said = run(Agent::GeminiCli, "AfterTool", Some(does), "/bin/sh");
    assert_eq!((said.status.code(), said.stdout.len()), (Some(0), 3_000_000));
}
