//! What was there before, kept in the state directory until it is taken back.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::files::{self, put, remove};
use super::{Change, InstallError, Result, Surroundings, plugin, slash, without};
use crate::agent::Agent;

/// What was done to a file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    path: PathBuf,
    /// The file beside this list that holds the bytes of before; nothing, where there was no file.
    before: Option<String>,
    /// The one that holds the bytes of after.
    after: String,
    /// Folders that were made for it, the innermost first.
    made: Vec<PathBuf>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    version: u32,
    /// Whose settings were changed, and whether the machine's were.
    #[serde(default)]
    home: Option<PathBuf>,
    #[serde(default)]
    machine: Option<PathBuf>,
    files: Vec<Kept>,
}

/// What became of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Restored {
    /// It holds the bytes of before, or is not there any more.
    Exactly(PathBuf),
    /// It was changed since: only what belongs to wardkeep was taken out.
    InPart(PathBuf),
    /// It is gone.
    Gone(PathBuf),
}

/// The file beside the list that says that calls are left open.
const DEFER: &str = "defer";
/// The file beside the list that holds the URL of the model API proxy that the agent is led to.
const PROXY: &str = "proxy";

fn folder(agent: Agent, state: &Path) -> PathBuf {
    state.join("installed").join(agent.name())
}

/// The files that were changed.
pub(super) fn paths(agent: Agent, state: &Path) -> Vec<PathBuf> {
    let list = read_list(&folder(agent, state).join("list.json")).ok().flatten();
    list.map(|list| list.files.into_iter().map(|kept| kept.path).collect()).unwrap_or_default()
}

/// Keeps the bytes of before. Those of an earlier installation stay: they are the user's own.
pub(super) fn keep(agent: Agent, changes: &[Change], around: &Surroundings) -> Result<()> {
    let folder = folder(agent, &around.state);
    let list_path = folder.join("list.json");
    let earlier = read_list(&list_path)?;
    let mut files: Vec<Kept> = earlier.map(|list| list.files).unwrap_or_default();
    for change in changes {
        let known = files.iter_mut().find(|kept| kept.path == change.path);
        let number = match &known {
            Some(kept) => kept.after.trim_end_matches(".after").to_owned(),
            None => files.len().to_string(),
        };
        let after = format!("{number}.after");
        put(&folder.join(&after), &change.after)?;
        if files.iter().any(|kept| kept.path == change.path) {
            continue;
        }
        let before = match &change.before {
            None => None,
            Some(bytes) => {
                let name = format!("{number}.before");
                put(&folder.join(&name), bytes)?;
                Some(name)
            }
        };
        let made = change
            .path
            .ancestors()
            .skip(1)
            .take_while(|folder| !folder.exists())
            .map(Path::to_owned)
            .collect();
        files.push(Kept { path: change.path.clone(), before, after, made });
    }
    let (home, machine) = (Some(around.home.clone()), around.machine.clone());
    let text = serde_json::to_vec_pretty(&List { version: 1, home, machine, files })
        .map_err(|error| InstallError::io("write", &list_path, error.into()))?;
    put(&list_path, &text)
}

/// Says whether calls of an agent that wait for the owner are left open, and not denied.
///
/// # Errors
/// When it cannot be written down, or the agent is not installed.
pub fn set_defer(agent: Agent, state: &Path, on: bool) -> Result<()> {
    let path = folder(agent, state).join(DEFER);
    match on {
        true => put(&path, b""),
        false if path.exists() => remove(&path),
        false => Ok(()),
    }
}

/// Whether they are.
#[must_use]
pub fn defers(agent: Agent, state: &Path) -> bool {
    folder(agent, state).join(DEFER).is_file()
}

/// Says where the proxy is that an agent's model API is to be reached through, before it is planned.
///
/// # Errors
/// When it cannot be written down.
pub fn set_proxy(agent: Agent, state: &Path, url: &str) -> Result<()> {
    put(&folder(agent, state).join(PROXY), url.as_bytes())
}

/// Where that is.
pub(super) fn proxy(agent: Agent, state: &Path) -> Option<String> {
    let bytes = files::read(&folder(agent, state).join(PROXY)).ok()??;
    String::from_utf8(bytes).ok()
}

/// Where an agent was told to ask, if it was; `program` is the one that looks.
#[must_use]
pub fn installed(agent: Agent, state: &Path, program: &Path) -> Option<Surroundings> {
    let list = read_list(&folder(agent, state).join("list.json")).ok()??;
    Some(Surroundings {
        home: list.home?,
        machine: list.machine,
        program: program.to_owned(),
        state: state.to_owned(),
    })
}

fn read_list(path: &Path) -> Result<Option<List>> {
    let Some(bytes) = files::read(path)? else { return Ok(None) };
    let list: List = serde_json::from_slice(&bytes)
        .map_err(|error| InstallError::unusable(path, format!("cannot be read ({error})")))?;
    if list.version != 1 {
        return Err(InstallError::unusable(path, "was written by a newer wardkeep"));
    }
    Ok(Some(list))
}

/// Takes an installation back: the bytes of before, where nobody has changed the file since; else
/// only what belongs to wardkeep is taken out.
///
/// # Errors
/// When it is not installed, or a file cannot be read or written.
pub fn uninstall(agent: Agent, state: &Path) -> Result<Vec<Restored>> {
    let folder = folder(agent, state);
    let list = read_list(&folder.join("list.json"))?.ok_or(InstallError::NotInstalled(agent))?;
    let mut restored = Vec::new();
    for kept in list.files.iter().rev() {
        let path = kept.path.clone();
        let before = match &kept.before {
            None => None,
            Some(name) => {
                let place = folder.join(name);
                let bytes = files::read(&place)?;
                Some(bytes.ok_or_else(|| InstallError::unusable(&place, "is not there"))?)
            }
        };
        let after = files::read(&folder.join(&kept.after))?;
        match files::read(&path)? {
            None => restored.push(Restored::Gone(path)),
            Some(now) if Some(&now) == after.as_ref() || Some(&now) == before.as_ref() => {
                match &before {
                    Some(bytes) if *bytes == now => {}
                    Some(bytes) => put(&path, bytes)?,
                    None => remove(&path)?,
                }
                // Only folders that were made for it, and only while they are empty.
                for folder in &kept.made {
                    if before.is_some() || fs::remove_dir(folder).is_err() {
                        break;
                    }
                }
                restored.push(Restored::Exactly(path));
            }
            // A file of a plugin is ours, whatever it holds.
            Some(now) if plugin::is_file(agent, &path) || slash::is_file(&path, &now) => {
                remove(&path)?;
                restored.push(Restored::Exactly(path));
            }
            Some(now) => {
                let kept = [before.as_deref(), after.as_deref()].map(Option::unwrap_or_default);
                let without = without(agent, &path, &now, kept)?;
                put(&path, &without)?;
                restored.push(Restored::InPart(path));
            }
        }
    }
    fs::remove_dir_all(&folder).map_err(|error| InstallError::io("remove", &folder, error))?;
    Ok(restored)
}
