//! `wardkeep witness`: cosigns the logs of others, so that they cannot be taken back unseen.

mod identity;
mod key;
mod serve;

use clap::Subcommand;

use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Vouches for the logs of others: remembers how far each had come, and never signs less
#[derive(Debug, clap::Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_long_help = crate::exit::HELP
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What a witness can be asked to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Serve(serve::Args),
    Key(key::Args),
}

/// Runs a command of the group.
pub(crate) fn run(context: &mut Context, command: Command) -> Result<Exit, CliError> {
    match command {
        Command::Serve(args) => serve::run(context, args),
        Command::Key(args) => key::run(context, args),
    }
}
