//! Tool calls as the model API shows them: the same tools, without the agent's own hook.

use std::path::Path;

use serde_json::{Value, json};
use wardkeep_evidence::record::Principal;
use wardkeep_monitor::monitor::{EventBody, WhoBody};

use crate::agent::Agent;
use crate::common;
use crate::event::{Event, Kind};
use crate::input::Malformed;
use crate::tools;

/// The question that a tool call in a model's reply asks. `arguments` are as the model wrote them:
/// JSON, or a text for tools that take one. Relative paths are taken from `directory`, or else from the
/// workspace.
///
/// # Errors
/// When it cannot be told what the call does: that is a denial.
pub fn call(
    who: WhoBody,
    tool: &str,
    arguments: &str,
    directory: Option<&Path>,
    home: Option<&Path>,
) -> Result<EventBody, Malformed> {
    let input = match serde_json::from_str(arguments) {
        Ok(value @ Value::Object(_)) => value,
        Ok(Value::Null) => json!({}),
        _ if arguments.trim().is_empty() => json!({}),
        _ => json!({ "input": arguments }),
    };
    let mut event = Event {
        // Whose hook it would be does not matter to what a call means.
        agent: Agent::ClaudeCode,
        session: who.session.clone(),
        kind: Kind::ToolCall,
        name: "model-call".to_owned(),
        directory: directory.unwrap_or(&who.workspace).to_path_buf(),
        tool: None,
        input: None,
        result: None,
        crossings: Vec::new(),
        origin: Principal::User,
    };
    common::called(&mut event, tool, input, home)?;
    let parts = event.parts().into_iter().map(|(part, _)| part).collect();
    Ok(EventBody { who, parts })
}

/// On whose behalf a tool speaks that was given this.
#[must_use]
pub fn origin(tool: &str, arguments: Option<&str>) -> Principal {
    let input = arguments.and_then(|text| serde_json::from_str(text).ok());
    tools::origin(tool, input.as_ref())
}
