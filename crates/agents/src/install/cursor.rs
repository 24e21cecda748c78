//! Cursor, from its documentation alone: `~/.cursor/hooks.json`, or that of the machine.

use serde_json::json;

use super::json::Dialect;
use super::settings::Settings;
use super::{Plan, Result, Surroundings, guard};
use crate::agent::Agent;

const EVENTS: [&str; 9] = [
    "preToolUse",
    "beforeShellExecution",
    "beforeMCPExecution",
    "beforeReadFile",
    "beforeTabFileRead",
    "beforeSubmitPrompt",
    "postToolUse",
    "sessionStart",
    "sessionEnd",
];
/// Seconds; the hook itself answers sooner.
const TIMEOUT: u64 = 15;
pub(super) const DIALECT: Dialect = Dialect::Plain;

pub(super) fn plan(around: &Surroundings) -> Result<Plan> {
    let commands = guard::commands(Agent::Cursor, &EVENTS, around);
    let entry = |(event, command): &(&'static str, String)| {
        (*event, json!({ "command": command, "timeout": TIMEOUT, "failClosed": true }))
    };
    let path = match &around.machine {
        Some(machine) => machine.join("cursor/hooks.json"),
        None => around.home.join(".cursor/hooks.json"),
    };
    let entries = commands.iter().map(entry).collect();
    let members = vec![(None, "version", json!(1))];
    let settings = Settings { agent: Agent::Cursor, path, dialect: DIALECT, entries, members };
    Ok(Plan::of(Agent::Cursor, vec![settings.change()?], commands))
}
