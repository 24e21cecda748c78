//! GitHub Copilot CLI: a file of our own in `~/.copilot/hooks`, or in the policy folder of the machine,
//! whose hooks no settings switch off.

use serde_json::json;

use super::json::{Dialect, switch, texts};
use super::settings::{Settings, look};
use super::{Finding, Plan, Result, Surroundings, guard};
use crate::agent::Agent;

const EVENTS: [&str; 5] =
    ["preToolUse", "postToolUse", "userPromptSubmitted", "sessionStart", "sessionEnd"];
/// A day, in seconds: when Copilot CLI gives up waiting it goes on.
const TIMEOUT: u64 = 86_400;
pub(super) const DIALECT: Dialect = Dialect::Plain;

pub(super) fn plan(around: &Surroundings) -> Result<Plan> {
    let commands = guard::commands(Agent::CopilotCli, &EVENTS, around);
    let entry = |(event, command): &(&'static str, String)| {
        (*event, json!({ "type": "command", "bash": command, "timeoutSec": TIMEOUT }))
    };
    let path = match &around.machine {
        Some(machine) => machine.join("github-copilot/policy.d/wardkeep.json"),
        None => around.home.join(".copilot/hooks/wardkeep.json"),
    };
    let entries = commands.iter().map(entry).collect();
    let members = vec![(None, "version", json!(1))];
    let settings = Settings { agent: Agent::CopilotCli, path, dialect: DIALECT, entries, members };
    Ok(Plan::of(Agent::CopilotCli, vec![settings.change()?], commands))
}

/// What keeps hooks from running, although they are there.
pub(super) fn switched_off(around: &Surroundings) -> Vec<Finding> {
    let mut found = Vec::new();
    if around.machine.is_some() {
        return found;
    }
    for name in ["settings.json", "config.json", "hooks/wardkeep.json"] {
        let path = around.home.join(".copilot").join(name);
        let Some(settings) = look(&path, Dialect::Loose) else { continue };
        let mend = "take it out; or install for the whole machine, as root";
        if switch(&settings, "disableAllHooks") == Some(true) {
            found.push(Finding {
                what: format!("`disableAllHooks` is on in `{}`: no hook runs", path.display()),
                mend: mend.to_owned(),
            });
        }
        if texts(&settings, "disabledHooks").iter().any(|hook| hook.contains("wardkeep")) {
            found.push(Finding {
                what: format!("`disabledHooks` in `{}` names wardkeep", path.display()),
                mend: mend.to_owned(),
            });
        }
    }
    found
}
