//! What an event means.

use std::path::Path;

use serde_json::{Value, json};
use wardkeep_agents::{Agent, Crossing, Event, Kind};

use crate::shapes::shapes;

fn read(agent: Agent, name: &str, event: &Value) -> Event {
    let home = Some(Path::new("/home/u"));
    agent.read(Some(name), event.to_string().as_bytes(), home).unwrap()
}

#[test]
fn every_agent_says_the_same_in_its_own_way() {
    for agent in Agent::ALL {
        let mut kinds = Vec::new();
        for (name, kind, event) in shapes(*agent, "cat .env") {
            let read = read(*agent, name, &event);
            assert_eq!(read.kind, kind, "{agent} {name}");
            assert!(read.session.starts_with(&format!("{agent}:")), "{}", read.session);
            assert!(read.question().is_some(), "{agent} {name}");
            kinds.push(kind);
            if name.to_lowercase().contains("shell") || name.contains("command") {
                assert_eq!(read.directory, Path::new("/w"));
            }
        }
        let (name, _, event) = shapes(*agent, "cat .env").remove(0);
        let command = Crossing::Command { text: "cat .env".into(), directory: "/w".into() };
        assert_eq!(read(*agent, name, &event).crossings, [command], "{agent}");
        assert!(kinds.contains(&Kind::Prompt) && kinds.contains(&Kind::ToolCall), "{agent}");
    }
}

#[test]
fn what_comes_from_outside_is_told_apart() {
    let result = |tool: &str, command: &str| {
        let event = json!({
            "session_id": "s", "cwd": "/w", "hook_event_name": "PostToolUse", "tool_name": tool,
            "tool_input": {"command": command}, "tool_response": "x",
        });
        read(Agent::ClaudeCode, "PostToolUse", &event).origin.as_str().to_owned()
    };
    assert_eq!(result("Bash", "ls"), "TOOL");
    assert_eq!(result("Bash", "curl https://example.org"), "WEB");
    assert_eq!(result("WebFetch", ""), "WEB");
    assert_eq!(result("WebSearch", ""), "WEB");
    assert_eq!(result("mcp__x__y", ""), "EXTERNAL");
    assert_eq!(result("Read", ""), "TOOL");
}

#[test]
fn a_settings_change_and_a_loaded_file_are_crossings() {
    let base = json!({"session_id": "s", "cwd": "/w"});
    let mut change = base.clone();
    change["hook_event_name"] = json!("ConfigChange");
    change["source"] = json!("user_settings");
    change["file_path"] = json!("/home/u/.claude/settings.json");
    let event = read(Agent::ClaudeCode, "ConfigChange", &change);
    assert!(matches!(
        &event.crossings[..],
        [Crossing::Change { key, .. }] if key == "/home/u/.claude/settings.json"
    ));
    let mut loaded = base;
    loaded["hook_event_name"] = json!("InstructionsLoaded");
    loaded["file_path"] = json!("/w/CLAUDE.md");
    let event = read(Agent::ClaudeCode, "InstructionsLoaded", &loaded);
    assert_eq!(event.crossings, [Crossing::Read { path: "/w/CLAUDE.md".into() }]);
}

#[test]
fn a_call_that_is_told_twice_counts_as_both() {
    let event = json!({
        "hookName": "PreToolUse", "taskId": "t", "workspaceRoots": ["/w"],
        "preToolUse": {"toolName": "read_file", "parameters": {"path": "a"}},
        "tool_call": {"name": "write_to_file", "input": {"path": "SOUL.md", "content": "x"}},
    });
    let crossings = read(Agent::Cline, "PreToolUse", &event).crossings;
    assert!(crossings.contains(&Crossing::Read { path: "/w/a".into() }), "{crossings:?}");
    assert!(
        crossings.iter().any(
            |one| matches!(one, Crossing::Write { path, .. } if path == Path::new("/w/SOUL.md"))
        ),
        "{crossings:?}"
    );
}
