//! Qwen Code: `~/.qwen/settings.json`, or the settings of the machine, which come before a user's.

use std::path::PathBuf;

use serde_json::json;

use super::json::{Dialect, switch};
use super::settings::{Settings, look};
use super::{Finding, Plan, Result, Surroundings, guard};
use crate::agent::Agent;

const EVENTS: [&str; 5] =
    ["PreToolUse", "PostToolUse", "UserPromptSubmit", "SessionStart", "SessionEnd"];
/// A day, in milliseconds, as Qwen Code takes so large a number: when it gives up waiting it goes on.
const TIMEOUT: u64 = 86_400_000;
pub(super) const DIALECT: Dialect = Dialect::Commented;

fn user(around: &Surroundings) -> PathBuf {
    around.home.join(".qwen/settings.json")
}

pub(super) fn plan(around: &Surroundings) -> Result<Plan> {
    let commands = guard::commands(Agent::QwenCode, &EVENTS, around);
    let entry = |(event, command): &(&'static str, String)| {
        let hook = json!({
            "type": "command", "name": "wardkeep", "command": command, "timeout": TIMEOUT,
        });
        (*event, json!({ "matcher": "*", "hooks": [hook] }))
    };
    let (path, members) = match &around.machine {
        Some(machine) => {
            let on = (None, "disableAllHooks", json!(false));
            (machine.join("qwen-code/settings.json"), vec![on])
        }
        None => (user(around), Vec::new()),
    };
    let entries = commands.iter().map(entry).collect();
    let settings = Settings { agent: Agent::QwenCode, path, dialect: DIALECT, entries, members };
    Ok(Plan::of(Agent::QwenCode, vec![settings.change()?], commands))
}

/// What keeps hooks from running, although they are there.
pub(super) fn switched_off(around: &Surroundings) -> Vec<Finding> {
    let path = user(around);
    let off = around.machine.is_none()
        && look(&path, DIALECT)
            .is_some_and(|settings| switch(&settings, "disableAllHooks") == Some(true));
    let finding = || Finding {
        what: format!("`disableAllHooks` is on in `{}`: no hook runs", path.display()),
        mend: "take it out; or install for the whole machine, as root".to_owned(),
    };
    off.then(finding).into_iter().collect()
}
