//! Tool calls as the model API shows them: the same tools, without the agent's own hook.

use std::collections::HashSet;
use std::path::Path;

use serde_json::{Value, json};
use wardkeep_evidence::json::Value as Strict;
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
        Ok(value @ Value::Object(_)) => {
            unique(arguments)?;
            value
        }
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

/// Refuses a key that stands twice in one object, at any depth. Letters of another case make no other key:
/// some programs read them as the same.
fn unique(arguments: &str) -> Result<(), Malformed> {
    let value = wardkeep_evidence::json::parse(arguments.as_bytes())
        .map_err(|error| Malformed::new(format!("what the tool is given is {error}")))?;
    let mut rest = vec![&value];
    while let Some(value) = rest.pop() {
        match value {
            Strict::Array(items) => rest.extend(items),
            Strict::Object(object) => {
                let mut seen = HashSet::new();
                for (key, value) in &object.members {
                    // There are letters that only one of both ways makes the same.
                    if !seen.insert(key.to_uppercase().to_lowercase()) {
                        let key = wardkeep_evidence::check::printable(key);
                        return Err(Malformed::new(format!(
                            "the tool is given `{key}` twice, in the same letters or in small and \
                             capital ones: it is not clear which one counts"
                        )));
                    }
                    rest.push(value);
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// On whose behalf a tool speaks that was given this.
#[must_use]
pub fn origin(tool: &str, arguments: Option<&str>) -> Principal {
    let input = arguments.and_then(|text| serde_json::from_str(text).ok());
    tools::origin(tool, input.as_ref())
}
