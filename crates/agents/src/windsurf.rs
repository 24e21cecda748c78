//! Windsurf, from its documentation alone: it was never run with this. Deny: exit code 2 with the
//! reason on standard error; what has happened cannot be changed any more.

use std::path::Path;

use serde_json::{Value, json};
use wardkeep_evidence::record::Principal;

use crate::agent::{Adapter, Agent, Asked};
use crate::answer::Answer;
use crate::common::{called, kind_in, name, unknown};
use crate::event::{Crossing, Event, Kind};
use crate::input::{self, Malformed};
use crate::output::Output;

pub(crate) struct Windsurf;

const EVENTS: &[(&str, Kind)] = &[
    ("pre_read_code", Kind::ToolCall),
    ("pre_write_code", Kind::ToolCall),
    ("pre_run_command", Kind::ToolCall),
    ("pre_mcp_tool_use", Kind::ToolCall),
    ("pre_user_prompt", Kind::Prompt),
    ("post_read_code", Kind::Observed),
    ("post_write_code", Kind::Observed),
    ("post_run_command", Kind::Observed),
    ("post_mcp_tool_use", Kind::Observed),
    ("post_cascade_response", Kind::Observed),
];

impl Adapter for Windsurf {
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
        let name = name(hint, Some(object.text("agent_action_name")?))?;
        let kind = self.kind(&name).ok_or_else(|| unknown(&name))?;
        let info = object.object("tool_info", "`tool_info`")?;
        let place = match (info.text_if_any("cwd")?, info.text_if_any("file_path")?) {
            (Some(cwd), _) => input::absolute(cwd, "cwd")?,
            // Where the agent is is not said: the folder of the file has to do.
            (None, Some(file)) => {
                let file = input::absolute(file, "file_path")?;
                file.parent().unwrap_or(Path::new("/")).to_owned()
            }
            (None, None) => home
                .ok_or_else(|| Malformed::new("it cannot be told where the agent is"))?
                .to_owned(),
        };
        let mut event = Event {
            agent: Agent::Windsurf,
            session: input::session("windsurf", object.text("trajectory_id")?)?,
            kind,
            directory: place,
            tool: None,
            input: None,
            result: None,
            crossings: Vec::new(),
            origin: Principal::User,
            name,
        };
        match event.name.as_str() {
            "pre_read_code" => {
                let input = json!({ "file_path": info.text("file_path")? });
                called(&mut event, "Read", input, home)?;
            }
            "pre_write_code" => {
                called(&mut event, "Edit", Value::Object(info.members), home)?;
            }
            "pre_run_command" => {
                let input = json!({ "command": info.text("command_line")? });
                called(&mut event, "Shell", input, home)?;
            }
            "pre_mcp_tool_use" => {
                let tool = format!(
                    "mcp__{}__{}",
                    info.text("mcp_server_name")?,
                    info.text("mcp_tool_name")?
                );
                let input = info.object("mcp_tool_arguments", "the input of the tool")?;
                called(&mut event, &tool, Value::Object(input.members), home)?;
            }
            "pre_user_prompt" => {
                let text = info.text("user_prompt")?.to_owned();
                event.crossings.push(Crossing::Message { text });
            }
            _ => {
                let text = crate::result::text_of(&Value::Object(info.members));
                event.origin = Principal::External;
                event.crossings.push(Crossing::Said { text });
            }
        }
        Ok(event)
    }

    fn write(&self, asked: &Asked<'_>, answer: &Answer) -> Output {
        match answer {
            Answer::Allow(_) => Output::silent(),
            Answer::Rewrite { leave, .. } | Answer::Redact { leave, .. } => {
                Output::block(&leave.context().unwrap_or_default())
            }
            Answer::Deny { reason } | Answer::Pending { reason, .. } => match asked.kind {
                Some(Kind::Observed) => Output::silent(),
                _ => Output::block(reason),
            },
        }
    }
}
