//! Cursor, from its documentation alone: it was never run with this. Deny: `permission` in the answer
//! and exit code 2, both.

use std::path::Path;

use serde_json::{Value, json};
use wardkeep_evidence::record::Principal;

use crate::agent::{Adapter, Agent, Asked};
use crate::answer::Answer;
use crate::common::{called, kind_in, name, returned, unknown};
use crate::event::{Crossing, Event, Kind};
use crate::input::{self, Malformed, Object};
use crate::output::{BLOCK, Output};
use crate::tools::Place;

pub(crate) struct Cursor;

const EVENTS: &[(&str, Kind)] = &[
    ("preToolUse", Kind::ToolCall),
    ("beforeShellExecution", Kind::ToolCall),
    ("beforeMCPExecution", Kind::ToolCall),
    ("beforeReadFile", Kind::ToolCall),
    ("beforeTabFileRead", Kind::ToolCall),
    ("beforeSubmitPrompt", Kind::Prompt),
    ("postToolUse", Kind::ToolResult),
    ("afterShellExecution", Kind::ToolResult),
    ("afterMCPExecution", Kind::ToolResult),
    ("sessionStart", Kind::SessionStart),
    ("sessionEnd", Kind::SessionEnd),
    ("afterFileEdit", Kind::Observed),
    ("afterTabFileEdit", Kind::Observed),
    ("afterAgentResponse", Kind::Observed),
    ("preCompact", Kind::Observed),
    ("stop", Kind::Observed),
];

impl Adapter for Cursor {
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
        let name = name(hint, Some(object.text("hook_event_name")?))?;
        let kind = self.kind(&name).ok_or_else(|| unknown(&name))?;
        let id = match object.text_if_any("conversation_id")? {
            Some(id) => id,
            None => object.text("session_id")?,
        };
        let roots = object.get("workspace_roots").and_then(Value::as_array);
        let root = roots.and_then(|roots| roots.first()).and_then(Value::as_str);
        let place = object.text_if_any("cwd")?.filter(|text| !text.is_empty()).or(root);
        let place = place.ok_or_else(|| Malformed::new("the event has no `workspace_roots`"))?;
        let mut event = Event {
            agent: Agent::Cursor,
            session: input::session("cursor", id)?,
            kind,
            directory: input::absolute(place, "workspace_roots")?,
            tool: None,
            input: None,
            result: None,
            crossings: Vec::new(),
            origin: Principal::User,
            name,
        };
        match kind {
            Kind::ToolCall => call(&mut event, &object, home)?,
            Kind::ToolResult => {
                let given = ["tool_output", "output", "result_json"];
                let given = given.iter().find_map(|key| object.get(key)).cloned();
                let tool = match event.name.as_str() {
                    "afterShellExecution" => "Shell".to_owned(),
                    "afterMCPExecution" => format!("mcp__{}", object.text("tool_name")?),
                    _ => object.text("tool_name")?.to_owned(),
                };
                let input = object.get("command").map(|command| json!({ "command": command }));
                returned(&mut event, &tool, input, given.unwrap_or(Value::Null))?;
            }
            Kind::Prompt => {
                let text = object.text("prompt")?.to_owned();
                event.crossings.push(Crossing::Message { text });
                attached(&mut event, &object, home);
            }
            Kind::SessionStart => {
                event.crossings.push(Crossing::Start { channel: "startup".into(), parent: None });
            }
            Kind::SessionEnd => {
                let reason = object.text_if_any("reason")?.unwrap_or("end").to_owned();
                event.crossings.push(Crossing::End { reason });
            }
            Kind::ConfigChange | Kind::Sending | Kind::Observed => {}
        }
        Ok(event)
    }

    fn write(&self, asked: &Asked<'_>, answer: &Answer) -> Output {
        match answer {
            Answer::Allow(leave) => match asked.kind {
                // `allow` would skip the user's own rules.
                Some(Kind::Prompt) => Output::json(&json!({ "continue": true })),
                Some(Kind::SessionStart | Kind::ToolResult) => match leave.context() {
                    Some(context) => Output::json(&json!({ "additional_context": context })),
                    None => Output::silent(),
                },
                _ => Output::silent(),
            },
            // Neither an input nor a result is changed.
            Answer::Rewrite { leave, .. } | Answer::Redact { leave, .. } => {
                denied(asked, &leave.context().unwrap_or_default())
            }
            Answer::Deny { reason } | Answer::Pending { reason, .. } => denied(asked, reason),
        }
    }
}

fn denied(asked: &Asked<'_>, reason: &str) -> Output {
    let out = match asked.kind {
        Some(Kind::Prompt | Kind::SessionStart) => {
            json!({ "continue": false, "user_message": reason })
        }
        Some(Kind::SessionEnd | Kind::Observed) => return Output::silent(),
        _ => json!({ "permission": "deny", "user_message": reason, "agent_message": reason }),
    };
    let out = Output::json(&out);
    Output { stdout: out.stdout, code: BLOCK, ..Output::block(reason) }
}

fn call(event: &mut Event, object: &Object, home: Option<&Path>) -> Result<(), Malformed> {
    match event.name.as_str() {
        "beforeShellExecution" => {
            let input = json!({ "command": object.text("command")? });
            called(event, "Shell", input, home)
        }
        "beforeMCPExecution" => {
            let input = object.object("tool_input", "the input of the tool")?;
            let tool = format!("mcp__{}", object.text("tool_name")?);
            called(event, &tool, Value::Object(input.members), home)
        }
        "beforeReadFile" | "beforeTabFileRead" => {
            let input = json!({ "file_path": object.text("file_path")? });
            called(event, "Read", input, home)?;
            attached(event, object, home);
            Ok(())
        }
        _ => {
            let input = object.object("tool_input", "the input of the tool")?;
            called(event, object.text("tool_name")?, Value::Object(input.members), home)
        }
    }
}

/// Files that go to the model along with it.
fn attached(event: &mut Event, object: &Object, home: Option<&Path>) {
    let files = object.get("attachments").and_then(Value::as_array);
    let directory = event.directory.clone();
    let place = Place { directory: &directory, home };
    for file in files.into_iter().flatten() {
        let path =
            ["file_path", "filePath", "path"].iter().find_map(|key| file.get(*key)?.as_str());
        for path in path.into_iter().flat_map(|path| place.paths(path)) {
            event.crossings.push(Crossing::Read { path });
        }
    }
}
