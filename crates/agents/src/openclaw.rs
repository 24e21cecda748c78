//! OpenClaw: through the plugin, and what it asks by itself before it installs something.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use wardkeep_evidence::record::Principal;

use crate::agent::{Adapter, Agent, Asked};
use crate::answer::Answer;
use crate::common::kind_in;
use crate::event::{Crossing, Event, Kind};
use crate::input::{self, Malformed};
use crate::output::Output;
use crate::plugin;

pub(crate) struct OpenClaw;

/// What `security.installPolicy` asks, in OpenClaw's own form.
pub(crate) const INSTALL_POLICY: &str = "install_policy";
/// The version of that form.
const POLICY_VERSION: u64 = 1;

const EVENTS: &[(&str, Kind)] = &[
    ("before_tool_call", Kind::ToolCall),
    ("tool_result", Kind::ToolResult),
    ("before_agent_run", Kind::Prompt),
    ("message_sending", Kind::Sending),
    ("session_start", Kind::SessionStart),
    ("session_end", Kind::SessionEnd),
    ("config_change", Kind::ConfigChange),
    (plugin::INSTALL, Kind::ConfigChange),
];

impl Adapter for OpenClaw {
    fn kind(&self, name: &str) -> Option<Kind> {
        if name == INSTALL_POLICY { Some(Kind::ConfigChange) } else { kind_in(EVENTS, name) }
    }

    fn read(
        &self,
        hint: Option<&str>,
        bytes: &[u8],
        home: Option<&Path>,
    ) -> Result<Event, Malformed> {
        if hint == Some(INSTALL_POLICY) {
            return read_policy(bytes, home);
        }
        plugin::read(Agent::OpenClaw, EVENTS, hint, bytes, home)
    }

    fn write(&self, asked: &Asked<'_>, answer: &Answer) -> Output {
        if asked.name == INSTALL_POLICY {
            return write_policy(answer);
        }
        plugin::write(asked, answer)
    }
}

/// Where the material lies is another place each time: an approval would never be found again.
fn read_policy(bytes: &[u8], home: Option<&Path>) -> Result<Event, Malformed> {
    let object = input::read(bytes)?;
    if object.get("protocolVersion").and_then(Value::as_u64) != Some(POLICY_VERSION) {
        return Err(Malformed::new("OpenClaw asks in a form that this version does not know"));
    }
    let name = object.text("targetName")?.to_owned();
    let request = object.object("request", "what is to be installed")?;
    let text = json!({
        "type": object.text("targetType")?,
        "kind": request.text_if_any("kind")?,
        "mode": request.text_if_any("mode")?,
        "specifier": request.text_if_any("requestedSpecifier")?,
    });
    // What is downloaded later, or lies in an archive, is not looked into.
    let folder = object.text_if_any("sourcePath")?.map(PathBuf::from);
    let folder = folder.filter(|folder| folder.is_absolute());
    Ok(Event {
        agent: Agent::OpenClaw,
        session: input::session(Agent::OpenClaw.name(), "installs")?,
        kind: Kind::ConfigChange,
        name: INSTALL_POLICY.to_owned(),
        directory: home.map_or_else(|| PathBuf::from("/"), Path::to_owned),
        tool: None,
        input: None,
        result: None,
        crossings: vec![Crossing::Install { name, text: text.to_string(), folder }],
        origin: Principal::User,
    })
}

fn write_policy(answer: &Answer) -> Output {
    let mut said = match answer {
        Answer::Allow(_) => json!({ "decision": "allow" }),
        // OpenClaw asks more than once for one installation.
        Answer::Pending { reason, id } => {
            let approve = "wardkeep approvals approve ";
            let both = format!("{approve}--session {id}");
            let reason = reason.replacen(&format!("{approve}{id}"), &both, 1);
            json!({ "decision": "block", "reason": reason })
        }
        _ => json!({
            "decision": "block",
            "reason": answer.reason().unwrap_or("denied by wardkeep"),
        }),
    };
    said["protocolVersion"] = json!(POLICY_VERSION);
    Output::json(&said)
}
