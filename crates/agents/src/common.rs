//! What the events of several agents have in common.

use std::path::Path;

use serde_json::{Value, json};
use wardkeep_evidence::record::Principal;

use crate::agent::{Adapter, Agent};
use crate::answer::Leave;
use crate::event::{Crossing, Event, Kind};
use crate::input::{self, Malformed, Object};
use crate::output::Output;
use crate::result;
use crate::tools::{self, Place};

type Result<T> = std::result::Result<T, Malformed>;

/// How an agent names the members of its events.
#[derive(Debug)]
pub(crate) struct Members {
    pub(crate) session: &'static str,
    pub(crate) directory: &'static str,
    pub(crate) tool: &'static str,
    pub(crate) input: &'static str,
    pub(crate) result: &'static str,
    pub(crate) prompt: &'static str,
}

/// As Claude Code names them, and those who follow it.
pub(crate) const CLAUDE: Members = Members {
    session: "session_id",
    directory: "cwd",
    tool: "tool_name",
    input: "tool_input",
    result: "tool_response",
    prompt: "prompt",
};

/// The kind of an event in a table of names.
pub(crate) fn kind_in(events: &[(&str, Kind)], name: &str) -> Option<Kind> {
    events.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
}

/// The name of an event, as the hook was installed for it and as the event says.
pub(crate) fn name(hint: Option<&str>, said: Option<&str>) -> Result<String> {
    match (hint, said) {
        (Some(hint), Some(said)) if hint != said => Err(Malformed::new(format!(
            "the hook is installed for `{hint}`, and the event calls itself `{}`",
            wardkeep_evidence::check::printable(said)
        ))),
        (_, Some(name)) | (Some(name), None) => Ok(name.to_owned()),
        (None, None) => Err(Malformed::new("the event has no name")),
    }
}

/// An event that is not known.
pub(crate) fn unknown(name: &str) -> Malformed {
    let name = wardkeep_evidence::check::printable(name);
    Malformed::new(format!("the event `{name}` is not known to this version of wardkeep"))
}

/// Reads an event that says its name, and names its members, as those of Claude Code do.
pub(crate) fn read_named(
    adapter: &dyn Adapter,
    agent: Agent,
    hint: Option<&str>,
    object: &Object,
    home: Option<&Path>,
) -> Result<Event> {
    let name = name(hint, Some(object.text("hook_event_name")?))?;
    let kind = adapter.kind(&name).ok_or_else(|| unknown(&name))?;
    read(agent, name, kind, object, &CLAUDE, home)
}

/// Reads an event of an agent that names its members so.
pub(crate) fn read(
    agent: Agent,
    name: String,
    kind: Kind,
    object: &Object,
    members: &Members,
    home: Option<&Path>,
) -> Result<Event> {
    let directory = object.directory(members.directory)?;
    let mut event = Event {
        agent,
        session: input::session(agent.name(), object.text(members.session)?)?,
        kind,
        name,
        directory,
        tool: None,
        input: None,
        result: None,
        crossings: Vec::new(),
        origin: Principal::User,
    };
    match kind {
        Kind::ToolCall => {
            let tool = object.text(members.tool)?;
            let input = object.object(members.input, "the input of the tool")?;
            called(&mut event, tool, Value::Object(input.members), home)?;
        }
        Kind::ToolResult => {
            let tool = object.text(members.tool)?;
            let input = match object.get(members.input) {
                None => None,
                Some(_) => {
                    Some(object.object(members.input, "the input of the tool")?.members.into())
                }
            };
            let given = object.get(members.result).cloned().unwrap_or(Value::Null);
            returned(&mut event, tool, input, given)?;
        }
        Kind::Prompt => {
            let text = object.text(members.prompt)?.to_owned();
            event.crossings.push(Crossing::Message { text });
        }
        Kind::SessionStart => {
            let channel = object.text_if_any("source")?.unwrap_or("startup").to_owned();
            event.crossings.push(Crossing::Start { channel, parent: None });
        }
        Kind::SessionEnd => {
            let reason = object.text_if_any("reason")?.unwrap_or("end").to_owned();
            event.crossings.push(Crossing::End { reason });
        }
        Kind::ConfigChange => {
            let source = object.text_if_any("source")?.unwrap_or("settings").to_owned();
            let key = object.text_if_any("file_path")?.unwrap_or(&source).to_owned();
            event.crossings.push(Crossing::Change { key, detail: source });
        }
        Kind::Sending | Kind::Observed => {}
    }
    Ok(event)
}

/// Completes the event of a call.
pub(crate) fn called(
    event: &mut Event,
    tool: &str,
    input: Value,
    home: Option<&Path>,
) -> Result<()> {
    let tool = named(tool)?;
    let place = Place { directory: &event.directory, home };
    event.crossings = tools::crossings(&tool, &input, place)?;
    event.tool = Some(tool);
    event.input = Some(input);
    Ok(())
}

/// Completes the event of a result.
pub(crate) fn returned(
    event: &mut Event,
    tool: &str,
    input: Option<Value>,
    given: Value,
) -> Result<()> {
    let tool = named(tool)?;
    event.origin = tools::origin(&tool, input.as_ref());
    event.crossings.push(Crossing::Result { text: result::text_of(&given) });
    event.tool = Some(tool);
    event.input = input;
    event.result = Some(given);
    Ok(())
}

fn named(tool: &str) -> Result<String> {
    if tool.is_empty() || tool.len() > 512 || tool.chars().any(char::is_control) {
        return Err(Malformed::new("the tool has no name that can be one"));
    }
    Ok(tool.to_owned())
}

/// What goes along with leave, in the form of Claude Code and those who follow it; nothing, if
/// there is nothing to tell.
pub(crate) fn told(event: &str, leave: &Leave) -> Output {
    let mut out = serde_json::Map::new();
    if let Some(message) = leave.message() {
        out.insert("systemMessage".to_owned(), json!(message));
    }
    if let Some(context) = leave.context() {
        let more = json!({ "hookEventName": event, "additionalContext": context });
        out.insert("hookSpecificOutput".to_owned(), more);
    }
    if out.is_empty() { Output::silent() } else { Output::json(&Value::Object(out)) }
}

/// What the model sees in the place of a result that it may not see.
pub(crate) fn withheld(reason: &str) -> String {
    format!("[The result of this tool was withheld. {reason}]")
}
