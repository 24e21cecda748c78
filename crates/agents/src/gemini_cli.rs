//! Gemini CLI. Deny: exit code 2 with the reason on standard error. Standard output is always one
//! JSON object: anything else is shown to the user as a message.

use std::path::Path;

use serde_json::{Value, json};

use crate::agent::{Adapter, Agent, Asked};
use crate::answer::{Answer, Leave};
use crate::common::{kind_in, read_named, withheld};
use crate::event::{Event, Kind};
use crate::input::{self, Malformed};
use crate::output::Output;

pub(crate) struct GeminiCli;

const EVENTS: &[(&str, Kind)] = &[
    ("BeforeTool", Kind::ToolCall),
    ("AfterTool", Kind::ToolResult),
    ("BeforeAgent", Kind::Prompt),
    ("SessionStart", Kind::SessionStart),
    ("SessionEnd", Kind::SessionEnd),
    ("AfterAgent", Kind::Observed),
    ("Notification", Kind::Observed),
    ("PreCompress", Kind::Observed),
];

impl Adapter for GeminiCli {
    fn kind(&self, name: &str) -> Option<Kind> {
        kind_in(EVENTS, name)
    }

    fn read(
        &self,
        hint: Option<&str>,
        bytes: &[u8],
        home: Option<&Path>,
    ) -> Result<Event, Malformed> {
        read_named(self, Agent::GeminiCli, hint, &input::read(bytes)?, home)
    }

    fn write(&self, asked: &Asked<'_>, answer: &Answer) -> Output {
        match answer {
            // What is added at the start comes back as a part of the user's first prompt, where it would
            // be judged as if the user had said it.
            Answer::Allow(leave) if asked.kind == Some(Kind::SessionStart) => Output::json(
                &leave.message().map_or(json!({}), |text| json!({ "systemMessage": text })),
            ),
            Answer::Allow(leave) => Output::json(&said(asked.name, leave, None)),
            Answer::Rewrite { input, leave } => {
                Output::json(&said(asked.name, leave, Some(("tool_input", input))))
            }
            // A denial after the tool puts its reason in the place of what the tool gave.
            Answer::Redact { text, leave, .. } => {
                let mut out = said(asked.name, leave, None);
                out["decision"] = json!("deny");
                out["reason"] = json!(text);
                Output::json(&out)
            }
            Answer::Deny { reason } | Answer::Pending { reason, .. } => match asked.kind {
                Some(Kind::ToolResult) => {
                    Output::json(&json!({ "decision": "deny", "reason": withheld(reason) }))
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

fn said(event: &str, leave: &Leave, more: Option<(&str, &Value)>) -> Value {
    let mut out = json!({});
    if let Some(message) = leave.message() {
        out["systemMessage"] = json!(message);
    }
    let context = leave.context();
    if context.is_some() || more.is_some() {
        let mut specific = json!({ "hookEventName": event });
        if let Some(context) = context {
            specific["additionalContext"] = json!(context);
        }
        if let Some((key, value)) = more {
            specific[key] = value.clone();
        }
        out["hookSpecificOutput"] = specific;
    }
    out
}
