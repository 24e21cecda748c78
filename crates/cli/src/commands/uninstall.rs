//! `wardkeep uninstall`

use serde::Serialize;
use wardkeep_agents::Agent;
use wardkeep_agents::install::{Restored, uninstall};

use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Takes an installation back: the agent's settings get the bytes that they had before
///
/// A file that was changed since keeps those changes; only the entries of wardkeep are taken out of it.
/// What `install` wrote is known from the state directory, for the machine as for one user.
#[derive(Debug, clap::Args)]
#[command(after_long_help = crate::exit::HELP)]
pub(crate) struct Args {
    /// The agent, as `install` was given it
    #[arg(value_parser = |text: &str| text.parse::<Agent>())]
    agent: Agent,
}

#[derive(Serialize)]
struct Answer {
    agent: &'static str,
    restored: Vec<String>,
    in_part: Vec<String>,
    gone: Vec<String>,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    if context.is_confined() {
        return Err(CliError::refused(
            "nothing is uninstalled from inside of `wardkeep run`",
            "run it in a terminal of your own",
        ));
    }
    let files = uninstall(args.agent, &context.state_dir()?)?;
    let agent = args.agent.name();
    let mut answer = Answer { agent, restored: Vec::new(), in_part: Vec::new(), gone: Vec::new() };
    for file in files {
        match file {
            Restored::Exactly(path) => {
                let path = path.display().to_string();
                context.ui.say(format!("as before: {path}"));
                answer.restored.push(path);
            }
            Restored::InPart(path) => {
                let path = path.display().to_string();
                context.ui.note(&format!(
                    "`{path}` was changed since: only wardkeep's entries were taken out"
                ));
                answer.in_part.push(path);
            }
            Restored::Gone(path) => {
                let path = path.display().to_string();
                context.ui.note(&format!("`{path}` is not there any more"));
                answer.gone.push(path);
            }
        }
    }
    context.ui.answer(format!("Uninstalled: {agent} does not ask wardkeep any more."));
    Ok(context.done(&answer))
}
