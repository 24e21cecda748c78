//! `wardkeep md`

mod audit;
mod check;
pub(crate) mod diff;
pub(crate) mod edit;
pub(crate) mod sign;
mod start;
mod status;
mod verify;
mod watch;

use std::path::{Path, PathBuf};

use clap::Subcommand;
use wardkeep_policy::store::PolicyStore;
use wardkeep_policy::verify::State;
use wardkeep_policy::workspace::Workspace;

use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Signs, verifies and shows the owner's standing instructions, LocalGPT.md
///
/// LocalGPT.md in a workspace holds what the agent must always follow. It counts only while it has
/// the bytes that the owner signed with the key of this machine.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What can be done with the policy.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Sign(sign::Args),
    Verify(verify::Args),
    Audit(audit::Args),
    Status(status::Args),
    Edit(edit::Args),
    Start(start::Args),
    Watch(watch::Args),
    Check(check::Args),
}

pub(crate) fn run(context: &mut Context, command: Command) -> Result<Exit, CliError> {
    match command {
        Command::Sign(args) => sign::run(context, args),
        Command::Verify(args) => verify::run(context, args),
        Command::Audit(args) => audit::run(context, args),
        Command::Status(args) => status::run(context, args),
        Command::Edit(args) => edit::run(context, args),
        Command::Start(args) => start::run(context, args),
        Command::Watch(args) => watch::run(context, args),
        Command::Check(args) => check::run(context, args),
    }
}

/// Which workspace is meant.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Place {
    /// The agent's workspace, instead of the current folder
    #[arg(long, short, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
}

impl Place {
    pub(crate) fn open(&self, context: &Context) -> Result<Workspace, CliError> {
        let path = self.workspace.clone().unwrap_or_else(|| context.workspace());
        Workspace::open(&path).map_err(|error| CliError::io("open", &error.path, &error.error))
    }
}

impl From<State> for Exit {
    fn from(state: State) -> Self {
        match state {
            State::Valid => Self::Success,
            State::Unsigned => Self::Unsigned,
            State::TamperDetected => Self::Tampered,
            State::Missing => Self::Missing,
            State::ManifestCorrupted => Self::ManifestCorrupted,
            State::SuspiciousContent => Self::Suspicious,
        }
    }
}

/// A path with the home directory as `~`.
pub(crate) fn shown(context: &Context, path: &Path) -> String {
    match context.home().and_then(|home| path.strip_prefix(home).ok().map(Path::to_owned)) {
        Some(below) => format!("~/{}", below.display()),
        None => path.display().to_string(),
    }
}

/// The policy's part of the state directory; makes nothing.
pub(crate) fn policy_store(context: &Context) -> Result<PolicyStore, CliError> {
    Ok(PolicyStore::new(&context.state_dir()?, rustix::process::getuid().as_raw()))
}

/// What the owner does next about a state of the policy.
pub(crate) fn next_step(state: State, tool: &str) -> Option<String> {
    Some(match state {
        State::Valid => return None,
        State::Unsigned => format!("read it, then run `{tool} md sign`"),
        State::TamperDetected => format!(
            "`{tool} md status` shows what changed: restore it, or sign it if the change is yours"
        ),
        State::Missing => format!("restore it from a backup, or make one with `{tool} init`"),
        State::ManifestCorrupted => format!("check the policy, then run `{tool} md sign`"),
        State::SuspiciousContent => format!("remove what is named, then run `{tool} md sign`"),
    })
}

/// The same on the page, where it is signed below what is said.
pub(crate) fn next_step_on_page(state: State) -> Option<&'static str> {
    Some(match state {
        State::Valid => return None,
        State::Unsigned => "read it, then sign it below",
        State::TamperDetected => {
            "`wardkeep md status` shows what changed: restore it, or sign it below if the change is yours"
        }
        State::Missing => "restore it from a backup, or write it anew and sign it below",
        State::ManifestCorrupted => "check the policy, then sign it below",
        State::SuspiciousContent => "remove what `wardkeep md status` names, then sign it below",
    })
}
