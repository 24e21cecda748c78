//! `wardkeep config`

mod edit;
mod show;
mod sign;

use clap::Subcommand;

use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Shows, edits and signs the configuration: config.toml, rules, profiles and pins
///
/// What is in the state directory counts only as it was signed: an agent that changes the config
/// loosens nothing by it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What can be done with the configuration.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Show(show::Args),
    Edit(edit::Args),
    Sign(sign::Args),
}

pub(crate) fn run(context: &mut Context, command: Command) -> Result<Exit, CliError> {
    match command {
        Command::Show(args) => show::run(context, args),
        Command::Edit(args) => edit::run(context, args),
        Command::Sign(args) => sign::run(context, args),
    }
}
