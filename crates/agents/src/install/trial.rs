//! The trial: an event of each agent's own form, and whether what comes back is its no.

use std::path::Path;

use serde_json::{Value, json};

use crate::agent::Agent;

/// How a hook has answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The agent goes on.
    Yes,
    /// The agent stops, and says this.
    No(String),
    /// The agent may do either.
    Unclear,
}

/// The event by which an agent asks for a command of a shell, and its name; none, where that is not
/// known.
#[must_use]
pub fn event(
    agent: Agent,
    session: &str,
    folder: &Path,
    command: &str,
) -> Option<(&'static str, Value)> {
    let claude = |event: &'static str, tool: &str| {
        let value = json!({
            "session_id": session, "transcript_path": null, "cwd": folder, "hook_event_name": event,
            "tool_name": tool, "tool_input": { "command": command },
        });
        (event, value)
    };
    let plugin = |event: &'static str| {
        let value = json!({
            "v": 1, "hook": event, "session": session, "directory": folder,
            "tool": "bash", "input": { "command": command },
        });
        (event, value)
    };
    Some(match agent {
        Agent::ClaudeCode | Agent::Codex => claude("PreToolUse", "Bash"),
        Agent::QwenCode => claude("PreToolUse", "run_shell_command"),
        Agent::GeminiCli => claude("BeforeTool", "run_shell_command"),
        Agent::CopilotCli => (
            "preToolUse",
            json!({
                "sessionId": session, "timestamp": 0, "cwd": folder,
                "toolName": "bash", "toolArgs": { "command": command },
            }),
        ),
        Agent::Cline => (
            "PreToolUse",
            json!({
                "hookName": "tool_call", "taskId": session, "workspaceRoots": [folder],
                "preToolUse": { "toolName": "execute_command", "parameters": { "command": command } },
            }),
        ),
        Agent::Cursor => (
            "beforeShellExecution",
            json!({
                "conversation_id": session, "hook_event_name": "beforeShellExecution",
                "workspace_roots": [folder], "cwd": folder, "command": command,
            }),
        ),
        Agent::Windsurf => (
            "pre_run_command",
            json!({
                "trajectory_id": session, "agent_action_name": "pre_run_command",
                "tool_info": { "command_line": command, "cwd": folder },
            }),
        ),
        Agent::OpenClaw => plugin("before_tool_call"),
        Agent::OpenCode => plugin("tool.execute.before"),
    })
}

/// What the agent makes of an answer to such an event.
#[must_use]
pub fn verdict(agent: Agent, code: Option<i32>, stdout: &[u8], stderr: &[u8]) -> Verdict {
    let reason = String::from_utf8_lossy(stderr).trim().to_owned();
    let said: Option<Value> = match stdout.trim_ascii() {
        [] => Some(json!({})),
        text => serde_json::from_slice(text).ok(),
    };
    let Some(said) = said.filter(Value::is_object) else { return Verdict::Unclear };
    let text = |key: &str| said[key].as_str().unwrap_or_default().to_owned();
    let specific =
        |key: &str| said["hookSpecificOutput"][key].as_str().unwrap_or_default().to_owned();
    match agent {
        // The exit code says nothing there.
        Agent::Cline => match said["cancel"].as_bool() {
            Some(true) => Verdict::No(text("errorMessage")),
            Some(false) => Verdict::Yes,
            None => Verdict::Unclear,
        },
        Agent::OpenClaw | Agent::OpenCode => match (code, text("verdict").as_str()) {
            (Some(0), "allow") => Verdict::Yes,
            (Some(0), "deny") => Verdict::No(text("reason")),
            _ => Verdict::Unclear,
        },
        Agent::CopilotCli if code == Some(0) && text("permissionDecision") == "deny" => {
            Verdict::No(text("permissionDecisionReason"))
        }
        Agent::ClaudeCode if code == Some(0) && specific("permissionDecision") == "deny" => {
            Verdict::No(specific("permissionDecisionReason"))
        }
        _ => match code {
            Some(0) => Verdict::Yes,
            Some(2) if !reason.is_empty() => Verdict::No(reason),
            _ => Verdict::Unclear,
        },
    }
}
