//! Claude Code: `~/.claude/settings.json`, or the managed settings of the machine, which no user's
//! settings switch off.

use std::path::PathBuf;

use jsonc_parser::cst::CstObject;
use serde_json::{Value, json};

use super::json::{Dialect, switch};
use super::settings::{Settings, look};
use super::{Finding, Installed, Plan, Result, Surroundings, guard, proxied};
use crate::agent::Agent;

/// Events, whether they are for tools, and whether a hook that fails must stop what it was asked
/// for.
const EVENTS: [(&str, bool, bool); 8] = [
    ("PreToolUse", true, true),
    ("PostToolUse", true, true),
    ("UserPromptSubmit", false, true),
    ("ConfigChange", false, true),
    ("SessionStart", false, false),
    ("SessionEnd", false, false),
    ("PostToolUseFailure", true, false),
    ("InstructionsLoaded", false, false),
];
/// Seconds; the hook itself answers sooner.
const TIMEOUT: u64 = 15;
pub(super) const DIALECT: Dialect = Dialect::Loose;

fn path(around: &Surroundings) -> PathBuf {
    match &around.machine {
        Some(machine) => machine.join("claude-code/managed-settings.json"),
        None => around.home.join(".claude/settings.json"),
    }
}

pub(super) fn plan(around: &Surroundings) -> Result<Plan> {
    let words = |event| guard::words(Agent::ClaudeCode, event, around);
    let entry = |(event, tools, stops)| (event, group(&words(event), tools, stops));
    let settings = Settings {
        agent: Agent::ClaudeCode,
        path: path(around),
        dialect: DIALECT,
        entries: EVENTS.into_iter().map(entry).collect(),
        members: Vec::new(),
    };
    let commands =
        EVENTS.iter().map(|(event, ..)| Installed { event, words: words(event) }).collect();
    Ok(Plan {
        agent: Agent::ClaudeCode,
        changes: vec![settings.change()?],
        commands,
        left: Vec::new(),
    })
}

/// One entry of a list of hooks. The shell of the guard is started without another around it.
fn group(words: &[String], tools: bool, stops: bool) -> Value {
    let (program, arguments) =
        words.split_first().map_or(("", &[][..]), |(p, rest)| (p.as_str(), rest));
    let mut hook = json!({
        "type": "command", "command": program, "args": arguments, "timeout": TIMEOUT,
    });
    if stops {
        hook["onFailure"] = json!("block");
    }
    let mut group = json!({ "hooks": [hook] });
    if tools {
        group["matcher"] = json!("*");
    }
    group
}

/// What keeps hooks from running, although they are there.
pub(super) fn switched_off(around: &Surroundings) -> Vec<Finding> {
    let mut found = Vec::new();
    let user = around.home.join(".claude/settings.json");
    if around.machine.is_none()
        && let Some(settings) = look(&user, DIALECT)
    {
        if switch(&settings, "disableAllHooks") == Some(true) {
            found.push(Finding {
                what: format!("`disableAllHooks` is on in `{}`: no hook runs", user.display()),
                mend: "take it out; or install for the whole machine, as root".to_owned(),
            });
        }
        let variables = settings.object_value("env");
        for name in ["CLAUDE_CODE_SAFE_MODE", "ANTHROPIC_BASE_URL"] {
            let set = |variables: &CstObject| {
                variables.get(name).is_some()
                    && !proxied::is_led(Agent::ClaudeCode, around, variables, name)
            };
            if variables.as_ref().is_some_and(set) {
                found.push(Finding {
                    what: format!("`{name}` is set in `{}`", user.display()),
                    mend: "take it out unless you have set it yourself".to_owned(),
                });
            }
        }
    }
    found
}
