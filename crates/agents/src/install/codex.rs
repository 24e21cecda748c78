//! OpenAI Codex: `/etc/codex/requirements.toml` for the whole machine, whose hooks need no trust; else
//! `~/.codex/hooks.json`, whose hooks run only once the user has trusted them.

pub(super) mod trusted;

use std::path::{Path, PathBuf};

use serde_json::json;
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, value};

use super::json::Dialect;
use super::settings::{self, Settings};
use super::{Change, Finding, InstallError, Plan, Result, Surroundings, files, guard};
use crate::agent::Agent;

const EVENTS: [&str; 5] =
    ["PreToolUse", "PostToolUse", "UserPromptSubmit", "SessionStart", "SessionEnd"];

/// Seconds; at the end of a session Codex waits no longer than 3. Else it is a day: when Codex gives
/// up waiting it goes on, and the hook itself answers within seconds.
fn timeout(event: &str) -> u64 {
    if event == "SessionEnd" { 3 } else { 24 * 60 * 60 }
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

pub(super) fn hooks_file(around: &Surroundings) -> PathBuf {
    around.home.join(".codex/hooks.json")
}

fn user(around: &Surroundings) -> Result<Plan> {
    let commands = guard::commands(Agent::Codex, &EVENTS, around);
    let entry = |(event, command): &(&'static str, String)| {
        let mut group = json!({ "hooks": [{
            "type": "command", "command": command, "timeout": timeout(event),
        }] });
        if is_for_tools(event) {
            group["matcher"] = json!("*");
        }
        (*event, group)
    };
    let settings = Settings {
        agent: Agent::Codex,
        path: hooks_file(around),
        dialect: Dialect::Plain,
        entries: commands.iter().map(entry).collect(),
        members: Vec::new(),
    };
    let left = vec![
        "Codex skips hooks that it was not told to trust, without a word: start `codex`, type \
         `/hooks`, and trust those of wardkeep. As root, `wardkeep install codex` needs no such step."
            .to_owned(),
    ];
    Ok(Plan { left, ..Plan::of(Agent::Codex, vec![settings.change()?], commands) })
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
    let commands = guard::commands(Agent::Codex, &EVENTS, around);
    for (event, command) in &commands {
        let list = hooks.entry(event).or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
        let list = list.as_array_of_tables_mut().ok_or_else(|| {
            InstallError::unusable(&path, format!("has a `hooks.{event}` of another form"))
        })?;
        if !list.iter().any(|group| is_as_it_should(group, event, command)) {
            list.retain(|group| {
                !commands_in(group).any(|text| super::is_ours(Agent::Codex, &text))
            });
            list.push(group(event, command));
        }
    }
    let after = document.to_string().into_bytes();
    let changes = vec![Change { path, before, after }];
    Ok(Plan::of(Agent::Codex, changes, commands))
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

fn is_as_it_should(group: &Table, event: &str, command: &str) -> bool {
    let matcher = group.get("matcher").and_then(Item::as_str);
    let hooks = group.get("hooks").and_then(Item::as_array_of_tables);
    let hook = hooks.filter(|hooks| hooks.len() == 1).and_then(|hooks| hooks.get(0));
    let text = |hook: &Table, name: &str| hook.get(name)?.as_str().map(str::to_owned);
    matcher == is_for_tools(event).then_some("*")
        && hook.is_some_and(|hook| {
            hook.len() == 3
                && text(hook, "type").as_deref() == Some("command")
                && text(hook, "command").as_deref() == Some(command)
                && hook.get("timeout").and_then(Item::as_integer)
                    == i64::try_from(timeout(event)).ok()
        })
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
pub(super) fn without(path: &Path, bytes: &[u8], kept: [&[u8]; 2]) -> Result<Vec<u8>> {
    if path.ends_with(".codex/config.toml") {
        return trusted::without(path, bytes, kept);
    }
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
    settings::without(Agent::Codex, path, bytes, Dialect::Plain)
}

/// What keeps hooks from running, although they are there.
pub(super) fn switched_off(around: &Surroundings) -> Vec<Finding> {
    let mut found = Vec::new();
    if around.machine.is_some() {
        return found;
    }
    let path = trusted::config_file(around);
    let config = files::read(&path).ok().flatten().and_then(|bytes| document(&path, &bytes).ok());
    let switch = config.as_ref().and_then(|config| config.get("features")?.get("hooks")?.as_bool());
    if switch == Some(false) {
        found.push(Finding {
            what: format!("`features.hooks` is off in `{}`: no hook runs", path.display()),
            mend: "take it out".to_owned(),
        });
    }
    found.extend(trusted::findings(around, config.as_ref()));
    found
}
