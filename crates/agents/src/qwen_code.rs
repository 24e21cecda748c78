//! Qwen Code: nearly the form of Claude Code. Deny: exit code 2 with the reason on standard error.
//! No input is rewritten: that it counts was not seen.

use std::path::Path;

use serde_json::json;

use crate::agent::{Adapter, Agent, Asked};
use crate::answer::Answer;
use crate::common::{kind_in, read_named, told, withheld};
use crate::event::{Event, Kind};
use crate::input::{self, Malformed};
use crate::output::Output;

pub(crate) struct QwenCode;

const EVENTS: &[(&str, Kind)] = &[
    ("PreToolUse", Kind::ToolCall),
    ("PostToolUse", Kind::ToolResult),
    ("UserPromptSubmit", Kind::Prompt),
    ("SessionStart", Kind::SessionStart),
    ("SessionEnd", Kind::SessionEnd),
    ("Stop", Kind::Observed),
    ("Notification", Kind::Observed),
];

impl Adapter for QwenCode {
    fn kind(&self, name: &str) -> Option<Kind> {
        kind_in(EVENTS, name)
    }

    fn read(
        &self,
        hint: Option<&str>,
        bytes: &[u8],
        home: Option<&Path>,
    ) -> Result<Event, Malformed> {
        read_named(self, Agent::QwenCode, hint, &input::read(bytes)?, home)
    }

    fn write(&self, asked: &Asked<'_>, answer: &Answer) -> Output {
        // A block alone leaves the model what the tool gave; this puts the text in its place, as an error.
        let instead = |text: &str| json!({ "continue": false, "stopReason": text, "decision": "block", "reason": text });
        match answer {
            Answer::Allow(leave) => match asked.kind {
                Some(Kind::ToolCall | Kind::ToolResult | Kind::Prompt | Kind::SessionStart) => {
                    told(asked.name, leave)
                }
                _ => Output::silent(),
            },
            Answer::Rewrite { leave, .. } => {
                Output::block(&leave.context().unwrap_or_else(|| "denied by wardkeep".to_owned()))
            }
            Answer::Redact { text, .. } => Output::json(&instead(text)),
            Answer::Deny { reason } | Answer::Pending { reason, .. } => match asked.kind {
                Some(Kind::ToolResult) => Output::json(&instead(&withheld(reason))),
                _ => Output::block(reason),
            },
        }
    }
}
