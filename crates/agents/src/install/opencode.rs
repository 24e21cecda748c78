//! OpenCode: `~/.config/opencode/opencode.json`, or the settings of the machine, which are read last.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::json::{Dialect, array, input, parse, text_of, texts_in};
use super::{Change, InstallError, Plan, Result, Surroundings, files, plugin};
use crate::agent::Agent;

const AGENT: Agent = Agent::OpenCode;
const ENTRY: &str = "index.js";
const FILES: plugin::Files = &[(ENTRY, include_str!("../../../../plugins/opencode/index.js"))];
/// What is asked, the call of a tool first.
const EVENTS: &[&str] = &[
    "tool.execute.before",
    "tool.execute.after",
    "chat.message",
    "text.complete",
    "session.start",
    "session.end",
];

/// The settings: those that are there, else those with the name that the documentation has.
fn path(around: &Surroundings) -> PathBuf {
    let folder = match &around.machine {
        Some(machine) => machine.join("opencode"),
        None => around.home.join(".config/opencode"),
    };
    let commented = folder.join("opencode.jsonc");
    if commented.symlink_metadata().is_ok() { commented } else { folder.join("opencode.json") }
}

pub(super) fn plan(around: &Surroundings) -> Result<Plan> {
    let mut changes = plugin::changes(AGENT, around, FILES)?;
    let path = path(around);
    let before = files::read(&path)?;
    let root = parse(&path, before.as_deref().unwrap_or_default(), Dialect::Loose)?;
    let settings = root
        .object_value_or_create()
        .ok_or_else(|| InstallError::unusable(&path, "holds something else than an object"))?;
    let list = array(&path, &settings, "plugin")?;
    let entry = plugin::folder(AGENT, around).join(ENTRY).to_string_lossy().into_owned();
    let others = texts_in(&list).into_iter().filter(|(text, _)| *text != entry && is_entry(text));
    others.for_each(|(_, place)| place.remove());
    if !texts_in(&list).iter().any(|(text, _)| *text == entry) {
        list.append(input(&Value::from(entry)));
    }
    let after = text_of(&root, before.as_deref());
    changes.push(Change { path, before, after });
    let commands = plugin::commands(AGENT, around, EVENTS);
    Ok(Plan { agent: AGENT, changes, commands, left: Vec::new() })
}

/// Whether it names our plugin, of any installation.
fn is_entry(text: &str) -> bool {
    let folder = text.strip_suffix(ENTRY).unwrap_or_default();
    plugin::is_folder(AGENT, folder)
}

/// The settings without what is ours.
pub(super) fn without(path: &Path, bytes: &[u8]) -> Result<Vec<u8>> {
    let root = parse(path, bytes, Dialect::Loose)?;
    let list = root.object_value().and_then(|settings| settings.array_value("plugin"));
    let ours = Path::new("plugins").join(AGENT.name()).join(ENTRY);
    for (text, place) in list.map(|list| texts_in(&list)).unwrap_or_default() {
        if Path::new(&text).ends_with(&ours) {
            place.remove();
        }
    }
    Ok(root.to_string().into_bytes())
}
