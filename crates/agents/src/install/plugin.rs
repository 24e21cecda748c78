//! The files of our plugins: part of this program, and written where no tool of an agent may write.

use std::path::{Path, PathBuf};

use super::{Change, Installed, Result, Surroundings, files};
use crate::agent::Agent;

/// What both plugins ask with.
const ASK: (&str, &str) = ("ask.js", include_str!("../../../../plugins/ask.js"));
/// The file that says which program is asked.
const COMMAND: &str = "command.js";

/// The files of an agent's plugin.
pub(super) type Files = &'static [(&'static str, &'static str)];

/// The folder of an agent's plugin. In the state directory, which no tool of an agent may read or
/// write; for a whole machine beside the settings of the machine, where users can read it.
pub(super) fn folder(agent: Agent, around: &Surroundings) -> PathBuf {
    let above = match &around.machine {
        Some(machine) => machine.join("wardkeep"),
        None => around.state.clone(),
    };
    above.join("plugins").join(agent.name())
}

/// Whether a path is that of a plugin's folder, of any installation.
pub(super) fn is_folder(agent: Agent, text: &str) -> bool {
    let end = format!("wardkeep/plugins/{}", agent.name());
    text.trim_end_matches('/').ends_with(&end)
}

/// Whether a file is one of a plugin.
pub(super) fn is_file(agent: Agent, path: &Path) -> bool {
    let folder = path.parent().unwrap_or(Path::new("/"));
    folder.ends_with(Path::new("plugins").join(agent.name()))
}

/// The files of a plugin as they must be.
pub(super) fn changes(agent: Agent, around: &Surroundings, own: Files) -> Result<Vec<Change>> {
    let folder = folder(agent, around);
    // The plugin adds `hook`, the agent and the event itself.
    let words = serde_json::Value::from(words(agent, None, around));
    let command = format!("// Written by `wardkeep install`.\nexport default {words};\n");
    let mut all: Vec<(&str, &str)> = own.to_vec();
    all.extend([ASK, (COMMAND, &command)]);
    all.into_iter()
        .map(|(name, text)| {
            let path = folder.join(name);
            let before = files::read(&path)?;
            Ok(Change { path, before, after: text.as_bytes().to_vec() })
        })
        .collect()
}

/// The commands that a plugin runs.
pub(super) fn commands(
    agent: Agent,
    around: &Surroundings,
    events: &[&'static str],
) -> Vec<Installed> {
    events
        .iter()
        .map(|event| Installed { event, words: words(agent, Some(event), around) })
        .collect()
}

/// The program and what it is given, with or without an event.
pub(super) fn words(agent: Agent, event: Option<&str>, around: &Surroundings) -> Vec<String> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let mut words = vec![text(&around.program)];
    // On a whole machine each user has a state of their own, which the hook finds by itself.
    if around.machine.is_none() {
        words.extend(["--state-dir".to_owned(), text(&around.state)]);
    }
    if let Some(event) = event {
        words.extend(["hook", agent.name(), event].map(str::to_owned));
    }
    words
}
