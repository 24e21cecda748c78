//! Claude Code: `~/.claude/settings.json`, or the managed settings of the machine, which no user's
//! settings switch off.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::json::{Dialect, array, input, is_on, object, parse, take_out};
use super::{Change, Finding, InstallError, Installed, Plan, Result, Surroundings, files};
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

fn path(around: &Surroundings) -> PathBuf {
    match &around.machine {
        Some(machine) => machine.join("claude-code/managed-settings.json"),
        None => around.home.join(".claude/settings.json"),
    }
}

pub(super) fn plan(around: &Surroundings) -> Result<Plan> {
    let path = path(around);
    let before = files::read(&path)?;
    let root = parse(&path, before.as_deref().unwrap_or_default(), Dialect::Commented)?;
    let settings = root
        .object_value_or_create()
        .ok_or_else(|| InstallError::unusable(&path, "holds something else than an object"))?;
    let hooks = object(&path, &settings, "hooks")?;
    let mut commands = Vec::new();
    for (event, tools, stops) in EVENTS {
        let words = super::words(Agent::ClaudeCode, event, around);
        let list = array(&path, &hooks, event)?;
        let group = group(&words, tools, stops);
        let mine = list.elements().iter().any(|one| one.to_serde() == Some(group.clone()));
        if !mine {
            take_out(&list, &|text| super::is_ours(Agent::ClaudeCode, text));
            list.append(input(&group));
        }
        commands.push(Installed { event, words });
    }
    let after = text_of(&root, before.as_deref());
    let changes = vec![Change { path, before, after }];
    Ok(Plan { agent: Agent::ClaudeCode, changes, commands, left: Vec::new() })
}

fn text_of(root: &jsonc_parser::cst::CstRootNode, before: Option<&[u8]>) -> Vec<u8> {
    let mut text = root.to_string();
    if before.is_none_or(|bytes| bytes.trim_ascii().is_empty()) && !text.ends_with('\n') {
        text.push('\n');
    }
    text.into_bytes()
}

/// One entry of a list of hooks. The program is started without a shell.
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

/// The file without what is ours.
pub(super) fn without(path: &Path, bytes: &[u8]) -> Result<Vec<u8>> {
    let root = parse(path, bytes, Dialect::Commented)?;
    if let Some(hooks) = root.object_value().and_then(|settings| settings.object_value("hooks")) {
        for (event, ..) in EVENTS {
            let Some(list) = hooks.array_value(event) else { continue };
            take_out(&list, &|text| super::is_ours(Agent::ClaudeCode, text));
            if list.elements().is_empty()
                && let Some(prop) = hooks.get(event)
            {
                prop.remove();
            }
        }
    }
    Ok(root.to_string().into_bytes())
}

/// What keeps hooks from running, although they are there.
pub(super) fn switched_off(around: &Surroundings) -> Vec<Finding> {
    let mut found = Vec::new();
    let user = around.home.join(".claude/settings.json");
    if around.machine.is_none()
        && let Ok(Some(bytes)) = files::read(&user)
        && let Ok(root) = parse(&user, &bytes, Dialect::Commented)
        && let Some(settings) = root.object_value()
    {
        if is_on(&settings, "disableAllHooks") {
            found.push(Finding {
                what: format!("`disableAllHooks` is on in `{}`: no hook runs", user.display()),
                mend: "take it out; or install for the whole machine, as root".to_owned(),
            });
        }
        let variables = settings.object_value("env");
        for name in ["CLAUDE_CODE_SAFE_MODE", "ANTHROPIC_BASE_URL"] {
            if variables.as_ref().is_some_and(|variables| variables.get(name).is_some()) {
                found.push(Finding {
                    what: format!("`{name}` is set in `{}`", user.display()),
                    mend: "take it out unless you have set it yourself".to_owned(),
                });
            }
        }
    }
    found
}

trait ToSerde {
    fn to_serde(&self) -> Option<Value>;
}

impl ToSerde for jsonc_parser::cst::CstNode {
    fn to_serde(&self) -> Option<Value> {
        serde_json::from_str(&self.to_string()).ok()
    }
}
