//! Cline: a program for each event, which answers `{"cancel":…}`. It goes on after a program that fails,
//! says nothing or takes too long, whatever its exit code; a `cancel` ends the task.

use std::path::Path;

use serde_json::{Value, json};
use wardkeep_evidence::record::Principal;

use crate::agent::{Adapter, Agent, Asked};
use crate::answer::Answer;
use crate::common::{called, kind_in, name, returned, unknown};
use crate::event::{Crossing, Event, Kind};
use crate::input::{self, Malformed};
use crate::output::{BLOCK, Output};

pub(crate) struct Cline;

const EVENTS: &[(&str, Kind)] = &[
    ("PreToolUse", Kind::ToolCall),
    ("PostToolUse", Kind::ToolResult),
    ("UserPromptSubmit", Kind::Prompt),
    ("TaskStart", Kind::SessionStart),
    ("TaskResume", Kind::SessionStart),
    ("TaskComplete", Kind::SessionEnd),
    ("TaskCancel", Kind::SessionEnd),
    ("PreCompact", Kind::Observed),
];

/// What it calls an event in the event itself, beside the name of the hook's file.
const INNER_NAMES: &[(&str, &str)] = &[
    ("tool_call", "PreToolUse"),
    ("tool_result", "PostToolUse"),
    ("prompt_submit", "UserPromptSubmit"),
    ("agent_start", "TaskStart"),
    ("agent_resume", "TaskResume"),
    ("agent_end", "TaskComplete"),
    ("agent_abort", "TaskCancel"),
];

impl Adapter for Cline {
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
        let said = object.text_if_any("hookName")?;
        let outer = |said| INNER_NAMES.iter().find(|(inner, _)| *inner == said);
        let said = said.map(|said| outer(said).map_or(said, |(_, name)| name));
        let name = name(hint, said)?;
        let kind = self.kind(&name).ok_or_else(|| unknown(&name))?;
        let roots = object.get("workspaceRoots").and_then(Value::as_array);
        let root = roots.and_then(|roots| roots.first()).and_then(Value::as_str);
        let root = root.ok_or_else(|| Malformed::new("the event has no `workspaceRoots`"))?;
        let mut event = Event {
            agent: Agent::Cline,
            session: input::session("cline", object.text("taskId")?)?,
            kind,
            directory: input::absolute(root, "workspaceRoots")?,
            tool: None,
            input: None,
            result: None,
            crossings: Vec::new(),
            origin: Principal::User,
            name,
        };
        match kind {
            Kind::ToolCall => {
                let told = object.object("preToolUse", "`preToolUse`")?;
                let tool = told.text("toolName")?;
                // It is told twice; in the first telling, what is no text was made one.
                let input = match object.get("tool_call") {
                    None => told.object("parameters", "the input of the tool")?,
                    Some(_) => {
                        let call = object.object("tool_call", "`tool_call`")?;
                        if call.text("name")? != tool {
                            return Err(Malformed::new("the event tells of two different calls"));
                        }
                        call.object("input", "the input of the tool")?
                    }
                };
                called(&mut event, tool, Value::Object(input.members), home)?;
            }
            Kind::ToolResult => {
                let call = object.object("postToolUse", "`postToolUse`")?;
                let input = match call.get("parameters") {
                    Some(_) => Some(call.object("parameters", "the input")?.members.into()),
                    None => None,
                };
                let given = match object.get("tool_result").and_then(|told| told.get("output")) {
                    Some(output) => output.clone(),
                    None => call.get("result").cloned().unwrap_or(Value::Null),
                };
                returned(&mut event, call.text("toolName")?, input, given)?;
            }
            Kind::Prompt => {
                let said = object.object("userPromptSubmit", "`userPromptSubmit`")?;
                let text = said.text("prompt")?.to_owned();
                event.crossings.push(Crossing::Message { text });
            }
            Kind::SessionStart => {
                event.crossings.push(Crossing::Start { channel: event.name.clone(), parent: None });
            }
            Kind::SessionEnd => {
                event.crossings.push(Crossing::End { reason: event.name.clone() });
            }
            Kind::ConfigChange | Kind::Sending | Kind::Observed => {}
        }
        Ok(event)
    }

    fn write(&self, asked: &Asked<'_>, answer: &Answer) -> Output {
        match answer {
            Answer::Allow(leave) => {
                let mut out = json!({ "cancel": false });
                if let Some(context) = leave.context() {
                    out["contextModification"] = json!(context);
                }
                Output::json(&out)
            }
            Answer::Deny { reason } | Answer::Pending { reason, .. } => cancelled(asked, reason),
            // Neither an input nor a result can be changed.
            Answer::Rewrite { leave, .. } | Answer::Redact { leave, .. } => {
                cancelled(asked, &leave.context().unwrap_or_default())
            }
        }
    }
}

fn cancelled(asked: &Asked<'_>, reason: &str) -> Output {
    let out = Output::json(&json!({ "cancel": true, "errorMessage": reason }));
    match asked.kind {
        // They stop nothing: an error would only be one.
        Some(Kind::SessionEnd | Kind::Observed) => out,
        _ => Output { stdout: out.stdout, code: BLOCK, ..Output::block(reason) },
    }
}
