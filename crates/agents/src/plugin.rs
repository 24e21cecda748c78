//! Agents with plugins of their own language: our plugin hands each event to `wardkeep hook` in a
//! form of ours, and fails closed unless it reads exactly an answer of that form.
//!
//! Event: `{"v":1,"hook":…,"session":…,"directory":…}` with `tool`, `input` and `result`, or `text`,
//! or `source`. Answer: `{"v":1,"verdict":…}`, one of `allow`, `deny`, `pending`, `rewrite` and
//! `redact`, with `reason`, `id`, `input`, `result`, `text`, `context` and `message` as they apply.

use std::path::Path;

use serde_json::{Value, json};
use wardkeep_evidence::record::Principal;

use crate::agent::{Agent, Asked};
use crate::answer::{Answer, Leave};
use crate::common::{called, kind_in, name, returned, unknown};
use crate::event::{Crossing, Event, Kind};
use crate::input::{self, Malformed};
use crate::output::Output;

/// The version of the form.
const VERSION: u64 = 1;
/// The event of something that is to join the agent; it has a `name` and a `text`.
pub(crate) const INSTALL: &str = "before_install";

pub(crate) fn read(
    agent: Agent,
    events: &[(&str, Kind)],
    hint: Option<&str>,
    bytes: &[u8],
    home: Option<&Path>,
) -> Result<Event, Malformed> {
    let object = input::read(bytes)?;
    if object.get("v").and_then(Value::as_u64) != Some(VERSION) {
        return Err(Malformed::new("the plugin is of another version: install it anew"));
    }
    let name = name(hint, Some(object.text("hook")?))?;
    let kind = kind_in(events, &name).ok_or_else(|| unknown(&name))?;
    let mut event = Event {
        agent,
        session: input::session(agent.name(), object.text("session")?)?,
        kind,
        name,
        directory: object.directory("directory")?,
        tool: None,
        input: None,
        result: None,
        crossings: Vec::new(),
        origin: Principal::User,
    };
    let text = || object.text("text").map(str::to_owned);
    match kind {
        Kind::ToolCall => {
            let input = object.object("input", "the input of the tool")?;
            called(&mut event, object.text("tool")?, Value::Object(input.members), home)?;
        }
        Kind::ToolResult => {
            let input = match object.get("input") {
                Some(_) => Some(object.object("input", "the input of the tool")?.members.into()),
                None => None,
            };
            let given = object.get("result").cloned().unwrap_or(Value::Null);
            returned(&mut event, object.text("tool")?, input, given)?;
        }
        Kind::Prompt => {
            // Whoever is not the owner speaks for themselves.
            event.origin = match object.text_if_any("sender")? {
                None | Some("owner") => Principal::User,
                Some(_) => Principal::Channel,
            };
            event.crossings.push(Crossing::Message { text: text()? });
        }
        Kind::Sending => event.crossings.push(Crossing::Reply { text: text()? }),
        Kind::SessionStart => {
            let channel = object.text_if_any("source")?.unwrap_or("startup").to_owned();
            let parent = object.text_if_any("parent")?;
            let parent = parent.map(|id| input::session(agent.name(), id)).transpose()?;
            event.crossings.push(Crossing::Start { channel, parent });
        }
        Kind::SessionEnd => {
            let reason = object.text_if_any("reason")?.unwrap_or("end").to_owned();
            event.crossings.push(Crossing::End { reason });
        }
        Kind::ConfigChange if event.name == INSTALL => {
            let name = object.text("name")?.to_owned();
            event.crossings.push(Crossing::Install { name, text: text()?, folder: None });
        }
        Kind::ConfigChange => {
            let key = object.text("key")?.to_owned();
            event.crossings.push(Crossing::Change { key, detail: text()? });
        }
        Kind::Observed => {}
    }
    Ok(event)
}

pub(crate) fn write(_asked: &Asked<'_>, answer: &Answer) -> Output {
    let mut out = match answer {
        Answer::Allow(_) => json!({ "verdict": "allow" }),
        Answer::Deny { reason } => json!({ "verdict": "deny", "reason": reason }),
        Answer::Pending { reason, id } => {
            json!({ "verdict": "pending", "reason": reason, "id": id })
        }
        Answer::Rewrite { input, .. } => json!({ "verdict": "rewrite", "input": input }),
        Answer::Redact { result, text, .. } => {
            json!({ "verdict": "redact", "result": result, "text": text })
        }
    };
    out["v"] = json!(VERSION);
    if let Answer::Allow(leave) | Answer::Rewrite { leave, .. } | Answer::Redact { leave, .. } =
        answer
    {
        tell(&mut out, leave);
    }
    Output::json(&out)
}

fn tell(out: &mut Value, leave: &Leave) {
    if let Some(context) = leave.context() {
        out["context"] = json!(context);
    }
    if let Some(message) = leave.message() {
        out["message"] = json!(message);
    }
}
