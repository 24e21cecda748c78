//! `wardkeep completions`

use clap::CommandFactory as _;
use clap_complete::Shell;
use serde::Serialize;

use crate::cli::Cli;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Prints a script that lets a shell complete wardkeep's commands
///
/// For bash: wardkeep completions bash > ~/.local/share/bash-completion/completions/wardkeep
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell to write it for
    shell: Shell,
}

#[derive(Serialize)]
struct Answer {
    shell: String,
    script: String,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "wardkeep", &mut script);
    context.ui.generated(&script);
    let script = String::from_utf8_lossy(&script).into_owned();
    Ok(context.done(&Answer { shell: args.shell.to_string(), script }))
}
