//! Telling an agent to ask wardkeep, and taking that back byte for byte.
//!
//! What is to change is worked out first, as a [`Plan`]: bytes before, bytes after. A file that
//! cannot be understood is an error, never rewritten. Before anything is written, the bytes of
//! before are kept in the state directory.

mod claude_code;
mod codex;
mod files;
mod json;
mod kept;

use std::io;
use std::path::{Path, PathBuf};

use crate::agent::Agent;

pub use files::Change;
pub use kept::{Restored, uninstall};

/// Where things are.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// The user's home.
    pub home: PathBuf,
    /// The machine's configuration, `/etc`; only where the whole machine is to be protected.
    pub machine: Option<PathBuf>,
    /// This program, absolute.
    pub program: PathBuf,
    /// The state directory, absolute.
    pub state: PathBuf,
}

/// A command that an agent is told to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// The event that it is for.
    pub event: &'static str,
    /// The program, and what it is given.
    pub words: Vec<String>,
}

/// What is to change.
#[derive(Debug)]
pub struct Plan {
    /// The agent.
    pub agent: Agent,
    /// The files, in the order in which they are written.
    pub changes: Vec<Change>,
    /// The commands that the agent is told to run.
    pub commands: Vec<Installed>,
    /// What the user has to do, where that cannot be done for them.
    pub left: Vec<String>,
}

/// Why it cannot be installed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InstallError {
    /// This version does not install there.
    #[error("wardkeep cannot install itself into {0} yet: see docs/agents.md for its hooks")]
    NotYet(Agent),
    /// A file is not what it must be.
    #[error("`{}` {what}: mend it first, nothing was changed", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// It is not installed.
    #[error("wardkeep is not installed into {0}: see `wardkeep doctor`")]
    NotInstalled(Agent),
    /// The file system refused.
    #[error("cannot {action} `{}` ({error}): check its owner and mode, nothing was lost", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

impl InstallError {
    fn io(action: &'static str, path: &Path, error: io::Error) -> Self {
        Self::Io { action, path: path.to_owned(), error }
    }

    fn unusable(path: &Path, what: impl Into<String>) -> Self {
        Self::Unusable { path: path.to_owned(), what: what.into() }
    }
}

type Result<T> = std::result::Result<T, InstallError>;

/// Agents that wardkeep installs itself into.
pub const INSTALLABLE: [Agent; 2] = [Agent::ClaudeCode, Agent::Codex];

/// Works out what is to change; changes nothing.
///
/// # Errors
/// When the agent's files cannot be used as they are.
pub fn plan(agent: Agent, around: &Surroundings) -> Result<Plan> {
    match agent {
        Agent::ClaudeCode => claude_code::plan(around),
        Agent::Codex => codex::plan(around),
        _ => Err(InstallError::NotYet(agent)),
    }
}

impl Plan {
    /// Writes it, after the bytes of before were kept.
    ///
    /// # Errors
    /// When a file cannot be written; those that were written before it are put back.
    pub fn apply(&self, around: &Surroundings) -> Result<()> {
        kept::keep(self, &around.state)?;
        for (number, change) in self.changes.iter().enumerate() {
            if let Err(error) = change.write() {
                for done in self.changes[..number].iter().rev() {
                    // The first failure is the one to tell.
                    let _ = done.undo();
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Whether it is all there already.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.changes.iter().all(|change| change.before.as_deref() == Some(change.after.as_slice()))
    }
}

/// What is found of an installation, by `wardkeep doctor`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What is wrong.
    pub what: String,
    /// How to mend it.
    pub mend: String,
}

/// Looks whether an agent asks wardkeep as it was told to; what is found is what has been switched
/// off or changed since.
#[must_use]
pub fn examine(agent: Agent, around: &Surroundings) -> Vec<Finding> {
    let again = format!("run `wardkeep install {agent}`");
    let mut found = Vec::new();
    match plan(agent, around) {
        Err(error) => found.push(Finding { what: error.to_string(), mend: again.clone() }),
        Ok(plan) => {
            for change in plan.changes.iter().filter(|one| !one.is_done()) {
                let what =
                    format!("`{}` does not ask wardkeep as it should", change.path.display());
                found.push(Finding { what, mend: again.clone() });
            }
        }
    }
    found.extend(match agent {
        Agent::ClaudeCode => claude_code::switched_off(around),
        Agent::Codex => codex::switched_off(around),
        _ => Vec::new(),
    });
    found
}

/// The words of a command for an event.
fn words(agent: Agent, event: &str, around: &Surroundings) -> Vec<String> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let mut words = vec![text(&around.program)];
    // On a whole machine each user has a state of their own, which the hook finds by itself.
    if around.machine.is_none() {
        words.extend(["--state-dir".to_owned(), text(&around.state)]);
    }
    words.extend(["hook".to_owned(), agent.name().to_owned(), event.to_owned()]);
    words
}

/// A command as a shell reads it.
fn quoted(words: &[String]) -> String {
    let plain = |sign: char| sign.is_ascii_alphanumeric() || "/._-=+:@".contains(sign);
    let word = |word: &String| {
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// Whether the words of a command are those of a hook of ours, of any version and place.
fn is_ours(agent: Agent, text: &str) -> bool {
    let own = format!(" hook {agent}");
    text.contains(&own) && text.contains("wardkeep")
}
