//! Windsurf, from its documentation alone: `~/.codeium/windsurf/hooks.json`, or that of the machine.

use serde_json::json;

use super::json::Dialect;
use super::settings::Settings;
use super::{Plan, Result, Surroundings, guard};
use crate::agent::Agent;

const EVENTS: [&str; 8] = [
    "pre_read_code",
    "pre_write_code",
    "pre_run_command",
    "pre_mcp_tool_use",
    "pre_user_prompt",
    "post_read_code",
    "post_run_command",
    "post_mcp_tool_use",
];
pub(super) const DIALECT: Dialect = Dialect::Plain;

pub(super) fn plan(around: &Surroundings) -> Result<Plan> {
    let commands = guard::commands(Agent::Windsurf, &EVENTS, around);
    let entry = |(event, command): &(&'static str, String)| {
        // The reason of a no is an output.
        (*event, json!({ "command": command, "show_output": true }))
    };
    let path = match &around.machine {
        Some(machine) => machine.join("windsurf/hooks.json"),
        None => around.home.join(".codeium/windsurf/hooks.json"),
    };
    let entries = commands.iter().map(entry).collect();
    let settings =
        Settings { agent: Agent::Windsurf, path, dialect: DIALECT, entries, members: Vec::new() };
    Ok(Plan::of(Agent::Windsurf, vec![settings.change()?], commands))
}
