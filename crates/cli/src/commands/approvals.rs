//! `wardkeep approvals`

mod approve;
mod deny;
mod list;
mod show;

use clap::Subcommand;
use wardkeep_monitor::approvals::Approvals;

use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Lists, shows and answers what agents ask for
///
/// A decision to ask denies the agent for now and leaves a request. What is approved passes when the
/// agent tries again; what is not answered within ten minutes stays denied.
#[derive(Debug, clap::Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_long_help = crate::exit::HELP
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

/// What can be done with requests.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    List(list::Args),
    Show(show::Args),
    Approve(approve::Args),
    Deny(deny::Args),
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    match args.command {
        Command::List(args) => list::run(context, args),
        Command::Show(args) => show::run(context, args),
        Command::Approve(args) => approve::run(context, args),
        Command::Deny(args) => deny::run(context, args),
    }
}

pub(super) fn open(context: &Context) -> Result<Approvals, CliError> {
    let owner = rustix::process::getuid().as_raw();
    Ok(Approvals::open(&context.state_dir()?, owner)?)
}
