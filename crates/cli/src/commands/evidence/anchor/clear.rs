//! `evidence anchor clear`

use serde::Serialize;
use wardkeep_monitor::anchor::outbox::Alarm;

use super::{find, open, words};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Clears an anchor's alarm once you know what happened
///
/// A rollback or fork means that this log is not the one the anchor saw: an older copy of the state
/// directory was put back, records were cut off, or the log was rewritten. Clearing forgets the
/// alarm and what this machine remembers of the anchor; it changes nothing at the anchor. If the
/// log is still older or different there, the next push says so again.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Its name
    name: String,
    /// You know what happened
    #[arg(long)]
    yes: bool,
}

#[derive(Serialize)]
struct Answer {
    name: String,
    cleared: Option<Alarm>,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let mut outbox = open(context)?;
    let name = args.name;
    let alarm = find(&outbox, &name)?.state.alarm;
    if !args.yes {
        return Err(match alarm {
            Some(alarm) => CliError::refused(
                format!("`{name}` reported {}", words(alarm)),
                "keep both copies and find out why; if you know, run it again with --yes: this \
                 machine then forgets it, and the anchor does not",
            ),
            None => CliError::refused(
                format!("`{name}` reported nothing"),
                "with --yes this machine forgets how far it has come, for use with another log",
            ),
        });
    }
    outbox.clear(&name)?;
    context.ui.say(format!("Cleared: {name}"));
    Ok(context.done(&Answer { name, cleared: alarm }))
}
