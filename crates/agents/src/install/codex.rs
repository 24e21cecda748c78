//! OpenAI Codex: `/etc/codex/requirements.toml` for the whole machine, whose hooks need no trust; else
//! `~/.codex/hooks.json`, whose hooks run only once the user has trusted them.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, value};

use super::json::{Dialect, array, input, object, parse, take_out};
use super::{Change, Finding, InstallError, Installed, Plan, Result, Surroundings, files};
use crate::agent::Agent;

const EVENTS: [&str; 5] =
    ["PreToolUse", "PostToolUse", "UserPromptSubmit", "SessionStart", "SessionEnd"];
/// Seconds; at the end of a session Codex waits no longer than 3.
fn timeout(event: &str) -> u64 {
    if event == "SessionEnd" { 3 } else { 15 }
}

fn is_for_tools(event: &str) -> bool {
    event.ends_with("ToolUse")
}

pub(super) fn plan(around: &Surroundings) -> Result<Plan> {
    match &around.machine {
        Some(machine) => managed(machine, around),
        None => user(around),
    }
}

fn user(around: &Surroundings) -> Result<Plan> {
    let path = around.home.join(".codex/hooks.json");
    let before = files::read(&path)?;
    let root = parse(&path, before.as_deref().unwrap_or_default(), Dialect::Plain)?;
    let settings = root
        .object_value_or_create()
        .ok_or_else(|| InstallError::unusable(&path, "holds something else than an object"))?;
    let hooks = object(&path, &settings, "hooks")?;
    let mut commands = Vec::new();
    for event in EVENTS {
        let words = super::words(Agent::Codex, event, around);
        let mut group = json!({ "hooks": [{
            "type": "command", "command": super::quoted(&words), "timeout": timeout(event),
        }] });
        if is_for_tools(event) {
            group["matcher"] = json!("*");
        }
        let list = array(&path, &hooks, event)?;
        let there = |one: &jsonc_parser::cst::CstNode| {
            serde_json::from_str::<Value>(&one.to_string()).is_ok_and(|one| one == group)
        };
        if !list.elements().iter().any(there) {
            take_out(&list, &|text| super::is_ours(Agent::Codex, text));
            list.append(input(&group));
        }
        commands.push(Installed { event, words });
    }
    let mut after = root.to_string().into_bytes();
    if before.as_deref().is_none_or(|bytes| bytes.trim_ascii().is_empty())
        && !after.ends_with(b"\n")
    {
        after.push(b'\n');
    }
    let changes = vec![Change { path, before, after }];
    let left = vec![
        "Codex skips hooks that it was not told to trust, without a word: start `codex`, type \
         `/hooks`, and trust those of wardkeep. As root, `wardkeep install codex` needs no such step."
            .to_owned(),
    ];
    Ok(Plan { agent: Agent::Codex, changes, commands, left })
}

fn requirements(machine: &Path) -> PathBuf {
    machine.join("codex/requirements.toml")
}

fn document(path: &Path, bytes: &[u8]) -> Result<DocumentMut> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| InstallError::unusable(path, format!("is no text ({error})")))?;
    text.parse().map_err(|error: toml_edit::TomlError| {
        let why = error.message().to_owned();
        InstallError::unusable(path, format!("is no TOML ({why})"))
    })
}

fn managed(machine: &Path, around: &Surroundings) -> Result<Plan> {
    let path = requirements(machine);
    let before = files::read(&path)?;
    let mut document = document(&path, before.as_deref().unwrap_or_default())?;
    let features = table(&path, document.as_table_mut(), "features")?;
    if features.get("hooks").and_then(Item::as_bool) != Some(true) {
        features.insert("hooks", value(true));
    }
    let hooks = table(&path, document.as_table_mut(), "hooks")?;
    if !hooks.contains_key("managed_dir") {
        let folder = around.program.parent().unwrap_or(Path::new("/usr/bin"));
        hooks.insert("managed_dir", value(folder.to_string_lossy().into_owned()));
    }
    let mut commands = Vec::new();
    for event in EVENTS {
        let words = super::words(Agent::Codex, event, around);
        let list = hooks.entry(event).or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
        let list = list.as_array_of_tables_mut().ok_or_else(|| {
            InstallError::unusable(&path, format!("has a `hooks.{event}` of another form"))
        })?;
        let command = super::quoted(&words);
        let there = list.iter().any(|group| commands_in(group).eq([command.clone()]));
        if !there {
            list.retain(|group| {
                !commands_in(group).any(|text| super::is_ours(Agent::Codex, &text))
            });
            list.push(group(event, &command));
        }
        commands.push(Installed { event, words });
    }
    let after = document.to_string().into_bytes();
    let changes = vec![Change { path, before, after }];
    Ok(Plan { agent: Agent::Codex, changes, commands, left: Vec::new() })
}

fn table<'t>(path: &Path, parent: &'t mut Table, name: &str) -> Result<&'t mut Table> {
    let item = parent.entry(name).or_insert_with(|| Item::Table(Table::new()));
    item.as_table_mut()
        .ok_or_else(|| InstallError::unusable(path, format!("has a `{name}` that is no table")))
}

fn group(event: &str, command: &str) -> Table {
    let mut hook = Table::new();
    hook.insert("type", value("command"));
    hook.insert("command", value(command));
    hook.insert("timeout", value(i64::try_from(timeout(event)).unwrap_or(15)));
    let mut hooks = ArrayOfTables::new();
    hooks.push(hook);
    let mut group = Table::new();
    if is_for_tools(event) {
        group.insert("matcher", value("*"));
    }
    group.insert("hooks", Item::ArrayOfTables(hooks));
    group
}

fn commands_in(group: &Table) -> impl Iterator<Item = String> + use<> {
    let hooks = group.get("hooks").and_then(Item::as_array_of_tables);
    let commands: Vec<String> = hooks
        .into_iter()
        .flat_map(ArrayOfTables::iter)
        .filter_map(|hook| hook.get("command")?.as_str().map(str::to_owned))
        .collect();
    commands.into_iter()
}

/// The file without what is ours.
pub(super) fn without(path: &Path, bytes: &[u8]) -> Result<Vec<u8>> {
    if path.extension().is_some_and(|ending| ending == "toml") {
        let mut document = document(path, bytes)?;
        if let Some(hooks) = document.get_mut("hooks").and_then(Item::as_table_mut) {
            for event in EVENTS {
                let Some(list) = hooks.get_mut(event).and_then(Item::as_array_of_tables_mut) else {
                    continue;
                };
                list.retain(|group| {
                    !commands_in(group).any(|text| super::is_ours(Agent::Codex, &text))
                });
                if list.is_empty() {
                    hooks.remove(event);
                }
            }
        }
        return Ok(document.to_string().into_bytes());
    }
    let root = parse(path, bytes, Dialect::Plain)?;
    if let Some(hooks) = root.object_value().and_then(|settings| settings.object_value("hooks")) {
        for event in EVENTS {
            let Some(list) = hooks.array_value(event) else { continue };
            take_out(&list, &|text| super::is_ours(Agent::Codex, text));
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
    if around.machine.is_some() {
        return found;
    }
    let path = around.home.join(".codex/config.toml");
    let config = files::read(&path).ok().flatten().and_then(|bytes| document(&path, &bytes).ok());
    let switch = config.as_ref().and_then(|config| config.get("features")?.get("hooks")?.as_bool());
    if switch == Some(false) {
        found.push(Finding {
            what: format!("`features.hooks` is off in `{}`: no hook runs", path.display()),
            mend: "take it out".to_owned(),
        });
    }
    let hooks = around.home.join(".codex/hooks.json");
    let prefix = format!("{}:", hooks.display());
    let state =
        config.as_ref().and_then(|config| config.get("hooks")?.get("state")?.as_table_like());
    let trusted = state.is_some_and(|state| state.iter().any(|(key, _)| key.starts_with(&prefix)));
    if !trusted {
        found.push(Finding {
            what: "Codex was not told to trust the hooks: it skips them without a word".to_owned(),
            mend: "start `codex`, type `/hooks`, and trust those of wardkeep".to_owned(),
        });
    }
    found
}
