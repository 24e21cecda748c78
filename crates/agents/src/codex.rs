//! OpenAI Codex. Its schema takes no member that it does not know: with one, the whole answer is
//! thrown away and the tool runs. Deny: exit code 2 with text on standard error; with exit code 2 and
//! nothing there, the tool runs.

use std::path::Path;

use serde_json::json;

use crate::agent::{Adapter, Agent, Asked};
use crate::answer::Answer;
use crate::common::{kind_in, read_named, told, withheld};
use crate::event::{Event, Kind};
use crate::input::{self, Malformed};
use crate::output::Output;

pub(crate) struct Codex;

const EVENTS: &[(&str, Kind)] = &[
    ("PreToolUse", Kind::ToolCall),
    ("PostToolUse", Kind::ToolResult),
    ("UserPromptSubmit", Kind::Prompt),
    ("SessionStart", Kind::SessionStart),
    ("SessionEnd", Kind::SessionEnd),
    ("Stop", Kind::Observed),
    ("SubagentStart", Kind::Observed),
    ("SubagentStop", Kind::Observed),
    ("PreCompact", Kind::Observed),
    ("PostCompact", Kind::Observed),
    ("Interrupt", Kind::Observed),
];

impl Adapter for Codex {
    fn kind(&self, name: &str) -> Option<Kind> {
        kind_in(EVENTS, name)
    }

    fn read(
        &self,
        hint: Option<&str>,
        bytes: &[u8],
        home: Option<&Path>,
    ) -> Result<Event, Malformed> {
        read_named(self, Agent::Codex, hint, &input::read(bytes)?, home)
    }

    fn write(&self, asked: &Asked<'_>, answer: &Answer) -> Output {
        match answer {
            Answer::Allow(leave) => match asked.kind {
                Some(Kind::ToolCall | Kind::Prompt | Kind::SessionStart | Kind::ToolResult) => {
                    told(asked.name, leave)
                }
                _ => Output::silent(),
            },
            // In the place of what the tool gave.
            Answer::Redact { text, leave, .. } => {
                let mut reason = text.clone();
                if let Some(context) = leave.context() {
                    reason.push_str("\n\n");
                    reason.push_str(&context);
                }
                Output::json(&json!({ "decision": "block", "reason": reason }))
            }
            // It is not known whether another input counts in every version.
            Answer::Rewrite { leave, .. } => {
                Output::block(&leave.context().unwrap_or_else(|| "denied by wardkeep".to_owned()))
            }
            Answer::Deny { reason } | Answer::Pending { reason, .. } => match asked.kind {
                Some(Kind::ToolResult) => {
                    Output::json(&json!({ "decision": "block", "reason": withheld(reason) }))
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
