//! Telling an agent to ask wardkeep, and taking that back byte for byte.
//!
//! What is to change is worked out first, as a [`Plan`]: bytes before, bytes after. A file that
//! cannot be understood is an error, never rewritten. Before anything is written, the bytes of
//! before are kept in the state directory.

mod claude_code;
mod cline;
mod codex;
mod copilot_cli;
mod cursor;
mod files;
mod gemini_cli;
mod guard;
mod json;
mod kept;
mod openclaw;
mod opencode;
mod plugin;
pub mod presence;
mod proxied;
mod qwen_code;
mod settings;
mod slash;
pub mod trial;
mod windsurf;

use std::io;
use std::path::{Path, PathBuf};

use crate::agent::Agent;

pub use files::Change;
pub use kept::{Restored, defers, installed, set_defer, set_proxy, uninstall};
pub use proxied::LED;

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
pub const INSTALLABLE: [Agent; 10] = [
    Agent::ClaudeCode,
    Agent::Codex,
    Agent::GeminiCli,
    Agent::CopilotCli,
    Agent::OpenClaw,
    Agent::OpenCode,
    Agent::QwenCode,
    Agent::Cline,
    Agent::Cursor,
    Agent::Windsurf,
];

/// Works out what is to change; changes nothing.
///
/// # Errors
/// When the agent's files cannot be used as they are.
pub fn plan(agent: Agent, around: &Surroundings) -> Result<Plan> {
    let mut plan = match agent {
        Agent::ClaudeCode => claude_code::plan(around),
        Agent::Codex => codex::plan(around),
        Agent::OpenClaw => openclaw::plan(around),
        Agent::OpenCode => opencode::plan(around),
        Agent::GeminiCli => gemini_cli::plan(around),
        Agent::CopilotCli => copilot_cli::plan(around),
        Agent::QwenCode => qwen_code::plan(around),
        Agent::Cursor => cursor::plan(around),
        Agent::Windsurf => windsurf::plan(around),
        // It has no place for the whole machine.
        Agent::Cline => cline::plan(&Surroundings { machine: None, ..around.clone() }),
    }?;
    plan.changes.extend(slash::change(agent, around)?);
    proxied::add(&mut plan, around)?;
    Ok(plan)
}

/// What keeps hooks from running, although they are there.
fn switched_off(agent: Agent, around: &Surroundings) -> Vec<Finding> {
    match agent {
        Agent::ClaudeCode => claude_code::switched_off(around),
        Agent::Codex => codex::switched_off(around),
        Agent::GeminiCli => gemini_cli::switched_off(around),
        Agent::CopilotCli => copilot_cli::switched_off(around),
        Agent::QwenCode => qwen_code::switched_off(around),
        _ => Vec::new(),
    }
}

/// A file that was changed since, without what is ours. `kept` is what it held before and after.
fn without(agent: Agent, path: &Path, now: &[u8], kept: [&[u8]; 2]) -> Result<Vec<u8>> {
    if path.ends_with(".gemini/.env") {
        return proxied::without(agent, path, now.to_vec());
    }
    proxied::without(agent, path, without_hooks(agent, path, now, kept)?)
}

fn without_hooks(agent: Agent, path: &Path, now: &[u8], kept: [&[u8]; 2]) -> Result<Vec<u8>> {
    let dialect = match agent {
        Agent::Codex => return codex::without(path, now, kept),
        Agent::Cline => return cline::without(path, now),
        Agent::OpenClaw => return openclaw::without(path, now),
        Agent::OpenCode => return opencode::without(path, now),
        Agent::ClaudeCode => claude_code::DIALECT,
        Agent::GeminiCli => gemini_cli::DIALECT,
        Agent::CopilotCli => copilot_cli::DIALECT,
        Agent::QwenCode => qwen_code::DIALECT,
        Agent::Cursor => cursor::DIALECT,
        Agent::Windsurf => windsurf::DIALECT,
    };
    settings::without(agent, path, now, dialect)
}

impl Plan {
    /// With commands that are run as a text.
    fn of(agent: Agent, changes: Vec<Change>, commands: Vec<(&'static str, String)>) -> Self {
        let installed =
            |(event, text): (_, String)| Installed { event, words: guard::run_as_text(&text) };
        let commands = commands.into_iter().map(installed).collect();
        Self { agent, changes, commands, left: Vec::new() }
    }

    /// Writes it, after the bytes of before were kept.
    ///
    /// # Errors
    /// When a file cannot be written; those that were written before it are put back.
    pub fn apply(&self, around: &Surroundings) -> Result<()> {
        kept::keep(self.agent, &self.changes, around)?;
        for (number, change) in self.changes.iter().enumerate() {
            let machine = around.machine.as_ref();
            let shared = machine.is_some_and(|machine| change.path.starts_with(machine));
            if let Err(error) = change.write(shared) {
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

/// Lets Codex write down that it trusts the hooks, so that [`uninstall`] can take that back.
///
/// # Errors
/// What `trust` says; or when its file cannot be read or kept.
pub fn codex_trust<E: From<InstallError>>(
    around: &Surroundings,
    trust: impl FnOnce() -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let before = files::read(&codex::trusted::config_file(around))?;
    trust()?;
    let change = codex::trusted::change(around, before)?;
    Ok(kept::keep(Agent::Codex, &[change], around)?)
}

/// What is found of an installation, by `wardkeep doctor`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What is wrong.
    pub what: String,
    /// How to mend it.
    pub mend: String,
}

impl Finding {
    /// Whether nothing is wrong but that Codex has still to be told to trust the hooks, as far as it is
    /// known: it was not told so when they were installed.
    #[must_use]
    pub fn waits_for_trust(&self, agent: Agent, state: &Path) -> bool {
        let told = || kept::paths(agent, state).iter().any(|path| path.ends_with("config.toml"));
        agent == Agent::Codex && self.what == codex::trusted::UNTRUSTED && !told()
    }
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
            // Without a command for the user, calls are judged all the same.
            let matters = |one: &&Change| !one.is_done() && !slash::is_file(&one.path, &one.after);
            for change in plan.changes.iter().filter(matters) {
                let path = change.path.display();
                let now = String::from_utf8_lossy(change.before.as_deref().unwrap_or_default());
                let what = if now.contains("wardkeep") {
                    format!(
                        "`{path}` does not ask wardkeep as it should: what it says was changed, or \
                         was written by another version or for another place of wardkeep"
                    )
                } else {
                    format!("`{path}` does not ask wardkeep as it should: nothing there does")
                };
                found.push(Finding { what, mend: again.clone() });
            }
        }
    }
    found.extend(switched_off(agent, around));
    found.extend(proxied::unreachable(agent, around));
    found
}

/// Whether the words of a command are those of a hook of ours, of any version and place.
fn is_ours(agent: Agent, text: &str) -> bool {
    let own = format!(" hook {agent}");
    text.contains(&own) && text.contains("wardkeep")
}
