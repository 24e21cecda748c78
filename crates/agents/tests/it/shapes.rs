//! Events in the shape that each agent sends, and how each agent reads an answer.

use serde_json::{Value, json};
use wardkeep_agents::{Agent, Kind, Output};

/// The name of an event, its kind, and an event.
pub(crate) type Shape = (&'static str, Kind, Value);

const CLAUDE_LIKE: [&str; 5] =
    ["PreToolUse", "PostToolUse", "UserPromptSubmit", "SessionStart", "SessionEnd"];
const GEMINI: [&str; 5] = ["BeforeTool", "AfterTool", "BeforeAgent", "SessionStart", "SessionEnd"];

/// One event of each kind that an agent asks for leave with, or tells of. The call runs `command`.
pub(crate) fn shapes(agent: Agent, command: &str) -> Vec<Shape> {
    match agent {
        Agent::ClaudeCode | Agent::Codex => claude(CLAUDE_LIKE, "Bash", command),
        Agent::QwenCode => claude(CLAUDE_LIKE, "run_shell_command", command),
        Agent::GeminiCli => claude(GEMINI, "run_shell_command", command),
        Agent::CopilotCli => copilot(command),
        Agent::OpenClaw => plugin("before_tool_call", "tool_result", "before_agent_run", command),
        Agent::OpenCode => {
            plugin("tool.execute.before", "tool.execute.after", "chat.message", command)
        }
        Agent::Cline => cline(command),
        Agent::Cursor => cursor(command),
        Agent::Windsurf => windsurf(command),
    }
}

fn claude(names: [&'static str; 5], tool: &str, command: &str) -> Vec<Shape> {
    let event = |name: &str, more: Value| {
        let mut event = json!({
            "session_id": "0b1c2d3e-1111-4222-8333-444455556666",
            "transcript_path": "/home/u/.agent/t.jsonl",
            "cwd": "/w",
            "hook_event_name": name,
        });
        let (Value::Object(all), Value::Object(more)) = (&mut event, more) else { panic!() };
        all.extend(more);
        event
    };
    let call = json!({"tool_name": tool, "tool_use_id": "t1", "tool_input": {"command": command}});
    let mut result = call.clone();
    result["tool_response"] = json!({"stdout": "hello", "stderr": "", "interrupted": false});
    let [before, after, prompt, start, end] = names;
    vec![
        (before, Kind::ToolCall, event(before, call)),
        (after, Kind::ToolResult, event(after, result)),
        (prompt, Kind::Prompt, event(prompt, json!({"prompt": "do it"}))),
        (start, Kind::SessionStart, event(start, json!({"source": "startup"}))),
        (end, Kind::SessionEnd, event(end, json!({"reason": "exit"}))),
    ]
}

fn copilot(command: &str) -> Vec<Shape> {
    let base = |more: Value| {
        let mut event = json!({"sessionId": "c-1", "timestamp": 1_700_000_000_000u64, "cwd": "/w"});
        let (Value::Object(all), Value::Object(more)) = (&mut event, more) else { panic!() };
        all.extend(more);
        event
    };
    // As a text, as older versions send it.
    let arguments = json!({ "command": command }).to_string();
    let call = json!({"toolName": "bash", "toolArgs": arguments});
    let result = json!({
        "toolName": "bash",
        "toolArgs": {"command": command},
        "toolResult": {"resultType": "success", "textResultForLlm": "hello"},
    });
    vec![
        ("preToolUse", Kind::ToolCall, base(call)),
        ("postToolUse", Kind::ToolResult, base(result)),
        ("userPromptSubmitted", Kind::Prompt, base(json!({"prompt": "do it"}))),
        ("sessionStart", Kind::SessionStart, base(json!({"source": "new"}))),
        ("sessionEnd", Kind::SessionEnd, base(json!({"reason": "complete"}))),
    ]
}

fn plugin(
    before: &'static str,
    after: &'static str,
    prompt: &'static str,
    command: &str,
) -> Vec<Shape> {
    let event = |hook: &str, more: Value| {
        let mut event = json!({"v": 1, "hook": hook, "session": "s-1", "directory": "/w"});
        let (Value::Object(all), Value::Object(more)) = (&mut event, more) else { panic!() };
        all.extend(more);
        event
    };
    let call = json!({"tool": "bash", "input": {"command": command}});
    let result = json!({"tool": "bash", "input": {"command": command}, "result": "hello"});
    vec![
        (before, Kind::ToolCall, event(before, call)),
        (after, Kind::ToolResult, event(after, result)),
        (prompt, Kind::Prompt, event(prompt, json!({"text": "do it"}))),
    ]
}

fn cline(command: &str) -> Vec<Shape> {
    let event = |name: &str, key: &str, more: Value| {
        let mut event = json!({"hookName": name, "taskId": "t-1", "workspaceRoots": ["/w"]});
        event[key] = more;
        event
    };
    let call = json!({"toolName": "execute_command", "parameters": {"command": command}});
    let mut result = call.clone();
    result["result"] = json!("hello");
    vec![
        ("PreToolUse", Kind::ToolCall, event("tool_call", "preToolUse", call)),
        ("PostToolUse", Kind::ToolResult, event("tool_result", "postToolUse", result)),
        (
            "UserPromptSubmit",
            Kind::Prompt,
            event("prompt_submit", "userPromptSubmit", json!({"prompt": "do it"})),
        ),
        ("TaskStart", Kind::SessionStart, event("agent_start", "taskStart", json!({}))),
    ]
}

fn cursor(command: &str) -> Vec<Shape> {
    let event = |name: &str, more: Value| {
        let mut event = json!({
            "conversation_id": "c-1",
            "generation_id": "g-1",
            "hook_event_name": name,
            "workspace_roots": ["/w"],
        });
        let (Value::Object(all), Value::Object(more)) = (&mut event, more) else { panic!() };
        all.extend(more);
        event
    };
    let shell = json!({"command": command, "cwd": "/w"});
    vec![
        ("beforeShellExecution", Kind::ToolCall, event("beforeShellExecution", shell)),
        (
            "beforeReadFile",
            Kind::ToolCall,
            event("beforeReadFile", json!({"file_path": "/w/.env", "content": "x"})),
        ),
        (
            "beforeMCPExecution",
            Kind::ToolCall,
            event(
                "beforeMCPExecution",
                json!({"tool_name": "write", "tool_input": "{\"path\":\"/w/SOUL.md\"}"}),
            ),
        ),
        (
            "beforeSubmitPrompt",
            Kind::Prompt,
            event("beforeSubmitPrompt", json!({"prompt": "do it", "attachments": []})),
        ),
    ]
}

fn windsurf(command: &str) -> Vec<Shape> {
    let event = |name: &str, info: Value| json!({"agent_action_name": name, "trajectory_id": "t-1", "tool_info": info});
    vec![
        (
            "pre_run_command",
            Kind::ToolCall,
            event("pre_run_command", json!({"command_line": command, "cwd": "/w"})),
        ),
        (
            "pre_write_code",
            Kind::ToolCall,
            event(
                "pre_write_code",
                json!({"file_path": "/w/a", "edits": [{"old_string": "x", "new_string": "y"}]}),
            ),
        ),
        (
            "pre_user_prompt",
            Kind::Prompt,
            event("pre_user_prompt", json!({"user_prompt": "do it", "cwd": "/w"})),
        ),
    ]
}

/// Whether the agent goes on after this, and with what it was about to do or to show.
pub(crate) fn goes_on(agent: Agent, kind: Kind, output: &Output) -> bool {
    let said: Value = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    let has = |pointer: &str| said.pointer(pointer).is_some();
    let is = |pointer: &str, text: &str| said.pointer(pointer).is_some_and(|v| v == text);
    let blocked = output.code == 2;
    if output.code != 0 && output.code != 2 {
        return true;
    }
    match (agent, kind) {
        (Agent::OpenClaw | Agent::OpenCode, _) => is("/verdict", "allow"),
        (Agent::ClaudeCode, Kind::ToolResult) => !has("/hookSpecificOutput/updatedToolOutput"),
        (Agent::Codex | Agent::QwenCode, Kind::ToolResult) => !is("/decision", "block"),
        (Agent::GeminiCli, Kind::ToolResult) => !is("/decision", "deny"),
        (Agent::CopilotCli, Kind::ToolResult) => !has("/modifiedResult"),
        (Agent::CopilotCli, Kind::ToolCall) => !blocked && !is("/permissionDecision", "deny"),
        (Agent::ClaudeCode | Agent::Codex | Agent::GeminiCli, Kind::SessionStart) => {
            said.pointer("/continue") != Some(&Value::Bool(false))
        }
        // With exit code 2 and nothing to say, it goes on.
        (Agent::Codex, _) => !blocked || output.stderr.is_empty(),
        (Agent::Cline, _) => said.pointer("/cancel") != Some(&Value::Bool(true)),
        _ => !blocked,
    }
}
