//! `wardkeep evidence`: the journal, its seals, and what can be proven by them.

pub(super) mod anchor;
mod append;
mod body;
mod check;
mod compare;
mod export;
mod prove;
mod reindex;
pub(super) mod report;
pub(super) mod resolve;
mod seal;
mod verify;

use clap::Subcommand;

use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Records, verifies, proves and exports what happened
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

/// What can be done with the evidence.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Append(append::Args),
    Verify(verify::Args),
    Seal(seal::Args),
    Prove(prove::Args),
    Check(check::Args),
    Export(export::Args),
    Compare(compare::Args),
    Reindex(reindex::Args),
    Anchor(anchor::Args),
    Body(body::Args),
    Erase(body::EraseArgs),
}

/// Runs a command of the group.
pub(crate) fn run(context: &mut Context, command: Command) -> Result<Exit, CliError> {
    match command {
        Command::Append(args) => append::run(context, args),
        Command::Verify(args) => verify::run(context, args),
        Command::Seal(args) => seal::run(context, args),
        Command::Prove(args) => prove::run(context, args),
        Command::Check(args) => check::run(context, args),
        Command::Export(args) => export::run(context, args),
        Command::Compare(args) => compare::run(context, args),
        Command::Reindex(args) => reindex::run(context, args),
        Command::Anchor(args) => anchor::run(context, args.command),
        Command::Body(args) => body::run(context, args),
        Command::Erase(args) => body::erase(context, args),
    }
}
