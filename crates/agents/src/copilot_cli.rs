//! GitHub Copilot CLI. An event does not say what it is: the hook is installed with its name. Deny:
//! `permissionDecision` with a reason; exit code 2 where there is none to make.

use std::path::Path;

use serde_json::{Value, json};

use crate::agent::{Adapter, Agent, Asked};
use crate::answer::Answer;
use crate::common::{Members, kind_in, name, read, unknown, withheld};
use crate::event::{Event, Kind};
use crate::input::{self, Malformed};
use crate::output::Output;

pub(crate) struct CopilotCli;

const EVENTS: &[(&str, Kind)] = &[
    ("preToolUse", Kind::ToolCall),
    ("postToolUse", Kind::ToolResult),
    ("userPromptSubmitted", Kind::Prompt),
    ("sessionStart", Kind::SessionStart),
    ("sessionEnd", Kind::SessionEnd),
    ("agentStop", Kind::Observed),
    ("subagentStop", Kind::Observed),
    ("errorOccurred", Kind::Observed),
    ("postToolUseFailure", Kind::Observed),
    ("notification", Kind::Observed),
    ("preCompact", Kind::Observed),
];

const MEMBERS: Members = Members {
    session: "sessionId",
    directory: "cwd",
    tool: "toolName",
    input: "toolArgs",
    result: "toolResult",
    prompt: "prompt",
};

impl Adapter for CopilotCli {
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
        let name = name(hint, None)?;
        let kind = self.kind(&name).ok_or_else(|| unknown(&name))?;
        read(Agent::CopilotCli, name, kind, &object, &MEMBERS, home)
    }

    fn write(&self, asked: &Asked<'_>, answer: &Answer) -> Output {
        let result = |text: &str| json!({ "modifiedResult": { "resultType": "success", "textResultForLlm": text } });
        match answer {
            Answer::Allow(leave) => match (asked.kind, leave.context()) {
                (Some(Kind::ToolCall | Kind::ToolResult | Kind::SessionStart), Some(context)) => {
                    Output::json(&json!({ "additionalContext": context }))
                }
                _ => Output::silent(),
            },
            Answer::Rewrite { input, leave } => {
                let mut out = json!({ "modifiedArgs": input });
                if let Some(context) = leave.context() {
                    out["additionalContext"] = json!(context);
                }
                Output::json(&out)
            }
            Answer::Redact { result: given, text, .. } => {
                let text = given.get("textResultForLlm").and_then(Value::as_str).unwrap_or(text);
                Output::json(&result(text))
            }
            Answer::Deny { reason } | Answer::Pending { reason, .. } => match asked.kind {
                Some(Kind::ToolResult) => Output::json(&result(&withheld(reason))),
                // With exit code 2 the model would be told the code and not the reason.
                Some(Kind::ToolCall) => Output::json(&json!({
                    "permissionDecision": "deny",
                    "permissionDecisionReason": reason,
                })),
                _ => Output::block(reason),
            },
        }
    }
}
