//! `wardkeep daemon`

mod install_units;
mod serve;
mod status;
mod stop;

use std::time::Duration;

use clap::Subcommand;

use super::time::parse_duration;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// How long a command waits for a daemon.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// Starts the monitor as a process of its own, which hooks ask over a socket
///
/// Without --foreground it is started apart from this terminal, and ends by itself when nobody was
/// connected for a while; one that runs already is left alone. Whoever needs a daemon starts it so.
///
/// The socket is run/monitor.sock in the state directory. The kernel says who asks: the owner may
/// ask everything, the agent's own user only what hooks need, and everybody else nothing. What
/// stands at run/hooks.sock answers hooks alone, whoever asks: it is the one for confined agents.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, after_long_help = crate::exit::HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: serve::ServeArgs,
}

/// What can be done with a daemon.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Status(status::Args),
    Stop(stop::Args),
    InstallUnits(install_units::Args),
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    match args.command {
        None => serve::run(context, args.serve),
        Some(Command::Status(args)) => status::run(context, args),
        Some(Command::Stop(args)) => stop::run(context, args),
        Some(Command::InstallUnits(args)) => install_units::run(context, args),
    }
}

/// A time as people give it: `90s`, `15m`, `2h`, `3d`; more than nothing.
fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text)
        .filter(|seconds| *seconds > 0)
        .map(|seconds| Duration::from_secs(seconds.into()))
        .ok_or_else(|| "give a time like 90s, 15m, 2h or 3d".to_owned())
}
