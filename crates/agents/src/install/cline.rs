//! Cline: a file for each event in `~/.cline/hooks`. All files of an event's name run, whatever their
//! ending, so that ours stand beside the user's own.

use std::path::Path;

use super::{Change, InstallError, Installed, Plan, Result, Surroundings, files, guard};
use crate::agent::Agent;

const EVENTS: [&str; 7] = [
    "PreToolUse",
    "PostToolUse",
    "UserPromptSubmit",
    "TaskStart",
    "TaskResume",
    "TaskComplete",
    "TaskCancel",
];
/// Seconds; Cline gives up after 120 and goes on, and the hook itself answers sooner than either.
const TIMEOUT: u32 = 60;

pub(super) fn plan(around: &Surroundings) -> Result<Plan> {
    let folder = around.home.join(".cline/hooks");
    let (mut changes, mut commands) = (Vec::new(), Vec::new());
    for event in EVENTS {
        let path = folder.join(format!("{event}.sh"));
        let before = files::read(&path)?;
        if before.as_deref().is_some_and(|bytes| !is_ours(bytes)) {
            return Err(InstallError::unusable(&path, "is a hook of somebody else"));
        }
        let after = guard::file(Agent::Cline, event, around, TIMEOUT);
        let words = vec!["/bin/sh".to_owned(), path.to_string_lossy().into_owned()];
        changes.push(Change { path, before, after });
        commands.push(Installed { event, words });
    }
    Ok(Plan { agent: Agent::Cline, changes, commands, left: Vec::new() })
}

fn is_ours(bytes: &[u8]) -> bool {
    super::is_ours(Agent::Cline, &String::from_utf8_lossy(bytes))
}

/// A file that was changed since is not one that could be taken apart.
pub(super) fn without(path: &Path, now: &[u8]) -> Result<Vec<u8>> {
    if is_ours(now) {
        return Err(InstallError::unusable(path, "was changed since it was installed"));
    }
    Ok(now.to_vec())
}
