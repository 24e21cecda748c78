//! Gemini CLI: `~/.gemini/settings.json`, or the settings of the machine, whose switch for hooks no
//! user's settings turn off.

use std::path::PathBuf;

use serde_json::json;

use super::json::{Dialect, switch, texts};
use super::settings::{Settings, look};
use super::{Finding, Plan, Result, Surroundings, guard};
use crate::agent::Agent;

const EVENTS: [&str; 5] = ["BeforeTool", "AfterTool", "BeforeAgent", "SessionStart", "SessionEnd"];
/// A day, in milliseconds: when Gemini CLI gives up waiting it goes on.
const TIMEOUT: u64 = 86_400_000;
/// What Gemini CLI calls the hook, also where it is switched off by name.
const NAME: &str = "wardkeep";
pub(super) const DIALECT: Dialect = Dialect::Commented;

fn user(around: &Surroundings) -> PathBuf {
    around.home.join(".gemini/settings.json")
}

pub(super) fn plan(around: &Surroundings) -> Result<Plan> {
    let commands = guard::commands(Agent::GeminiCli, &EVENTS, around);
    let entry = |(event, command): &(&'static str, String)| {
        let hook =
            json!({ "type": "command", "name": NAME, "command": command, "timeout": TIMEOUT });
        (*event, json!({ "matcher": "*", "hooks": [hook] }))
    };
    let (path, members) = match &around.machine {
        Some(machine) => {
            let on = (Some("hooksConfig"), "enabled", json!(true));
            (machine.join("gemini-cli/settings.json"), vec![on])
        }
        None => (user(around), Vec::new()),
    };
    let entries = commands.iter().map(entry).collect();
    let settings = Settings { agent: Agent::GeminiCli, path, dialect: DIALECT, entries, members };
    Ok(Plan::of(Agent::GeminiCli, vec![settings.change()?], commands))
}

/// What keeps hooks from running, although they are there.
pub(super) fn switched_off(around: &Surroundings) -> Vec<Finding> {
    let mut found = Vec::new();
    let path = user(around);
    let Some(settings) = look(&path, DIALECT) else { return found };
    let mut find = |what: String| {
        found.push(Finding { what, mend: format!("take that out of `{}`", path.display()) });
    };
    let Some(config) = settings.object_value("hooksConfig") else { return found };
    if around.machine.is_none() && switch(&config, "enabled") == Some(false) {
        find("`hooksConfig.enabled` is off: no hook runs".to_owned());
    }
    // Such lists count even where the machine says otherwise: all of them are taken together.
    let off = |name: &String| name == NAME || super::is_ours(Agent::GeminiCli, name);
    if texts(&config, "disabled").iter().any(off) {
        find("`hooksConfig.disabled` names wardkeep: its hooks do not run".to_owned());
    }
    found
}
