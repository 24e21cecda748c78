//! `wardkeep skill`

mod folder;
mod sarif;
mod verify;

use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Judges skills, plugins and tool definitions before they enter an agent
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Verify(verify::Args),
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    match args.command {
        Command::Verify(args) => verify::run(context, &args),
    }
}
