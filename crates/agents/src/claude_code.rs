//! Claude Code. Deny: exit code 2, with the reason on standard error, whatever else is wrong with
//! the output. Leave is silence: an answer `allow` would skip the user's own permission rules.

use std::path::Path;

use serde_json::json;

use crate::agent::{Adapter, Agent, Asked};
use crate::answer::Answer;
use crate::common::{kind_in, read_named, told, withheld};
use crate::event::{Crossing, Event, Kind};
use crate::input::{self, Malformed};
use crate::output::{BLOCK, Output};
use crate::result;

pub(crate) struct ClaudeCode;

/// Claude Code ends the turn with the call open; seen with 2.1.325 and `-p`. One that does not know it
/// might go on, so that only the owner turns it on.
pub(crate) fn defer(event: &str, reason: &str) -> Output {
    Output::json(&json!({
        "hookSpecificOutput": {
            "hookEventName": event,
            "permissionDecision": "defer",
            "permissionDecisionReason": reason,
        },
        "systemMessage": reason,
    }))
}

/// Events that it can be installed for. Of those that only tell something, these are known.
const EVENTS: &[(&str, Kind)] = &[
    ("PreToolUse", Kind::ToolCall),
    ("PostToolUse", Kind::ToolResult),
    ("UserPromptSubmit", Kind::Prompt),
    ("SessionStart", Kind::SessionStart),
    ("SessionEnd", Kind::SessionEnd),
    ("ConfigChange", Kind::ConfigChange),
    ("PostToolUseFailure", Kind::Observed),
    ("InstructionsLoaded", Kind::Observed),
    ("Stop", Kind::Observed),
    ("SubagentStart", Kind::Observed),
    ("SubagentStop", Kind::Observed),
    ("Notification", Kind::Observed),
    ("PreCompact", Kind::Observed),
    ("PostCompact", Kind::Observed),
];

impl Adapter for ClaudeCode {
    fn kind(&self, name: &str) -> Option<Kind> {
        kind_in(EVENTS, name)
    }

    fn read(
        &self,
        hint: Option<&str>,
        bytes: &[u8],
        home: Option<&Path>,
    ) -> Result<Event, Malformed> {
        let object = input::read(bytes)?;
        let mut event = read_named(self, Agent::ClaudeCode, hint, &object, home)?;
        match event.name.as_str() {
            "PostToolUseFailure" => {
                let text = object.text_if_any("error")?.unwrap_or_default().to_owned();
                event.origin = wardkeep_evidence::record::Principal::Tool;
                event.crossings.push(Crossing::Said { text });
            }
            "InstructionsLoaded" => {
                let path = event.directory.join(object.text("file_path")?);
                event.crossings.push(Crossing::Read { path });
            }
            _ => {}
        }
        Ok(event)
    }

    fn write(&self, asked: &Asked<'_>, answer: &Answer) -> Output {
        match (asked.kind, answer) {
            (_, Answer::Allow(leave)) => match asked.kind {
                Some(Kind::SessionEnd | Kind::Observed | Kind::ConfigChange) | None => {
                    Output::silent()
                }
                _ => told(asked.name, leave),
            },
            (_, Answer::Rewrite { input, leave }) => Output::json(&json!({
                "hookSpecificOutput": {
                    "hookEventName": asked.name,
                    // Without it the new input may not count; it only leads to the staging folder.
                    "permissionDecision": "allow",
                    "permissionDecisionReason": "wardkeep sends it to the staging folder",
                    "updatedInput": input,
                    "additionalContext": leave.context().unwrap_or_default(),
                },
            })),
            (_, Answer::Redact { result, leave, .. }) => Output::json(&json!({
                "hookSpecificOutput": {
                    "hookEventName": asked.name,
                    "updatedToolOutput": result,
                    "additionalContext": leave.context().unwrap_or_default(),
                },
            })),
            (kind, Answer::Deny { reason } | Answer::Pending { reason, .. }) => match kind {
                // The tool has run: what is left to do is to keep the model from seeing it.
                Some(Kind::ToolResult) => {
                    let mut out = json!({
                        "hookSpecificOutput": {
                            "hookEventName": asked.name,
                            "updatedToolOutput": result::withheld(asked.result, &withheld(reason)),
                        },
                    });
                    // In another shape than that of the tool it does not count.
                    if asked.result.is_none() {
                        out["continue"] = json!(false);
                        out["stopReason"] = json!(reason);
                    }
                    Output::json(&out)
                }
                Some(Kind::SessionStart) => Output::json(&json!({
                    "continue": false,
                    "stopReason": reason,
                    "systemMessage": reason,
                })),
                _ => Output::block(reason),
            },
        }
    }
}

/// The same no on standard output. By exit code, Claude Code puts the whole command of the hook in front
/// of the reason, the shell of the guard and all.
pub(crate) fn without_command(event: &str, output: Output) -> Output {
    if output.code != BLOCK {
        return output;
    }
    let reason = String::from_utf8_lossy(&output.stderr).trim_end().to_owned();
    match event {
        "PreToolUse" => Output::json(&json!({
            "hookSpecificOutput": {
                "hookEventName": event,
                "permissionDecision": "deny",
                "permissionDecisionReason": reason,
            },
        })),
        "UserPromptSubmit" => Output::json(&json!({ "decision": "block", "reason": reason })),
        _ => output,
    }
}
