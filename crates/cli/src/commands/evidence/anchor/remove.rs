//! `evidence anchor remove`

use serde::Serialize;

use super::{find, open, words};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Forgets an anchor; what it holds stays there
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Its name
    name: String,
}

#[derive(Serialize)]
struct Answer {
    name: String,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let mut outbox = open(context)?;
    let name = args.name;
    if let Some(alarm) = find(&outbox, &name)?.state.alarm {
        return Err(CliError::refused(
            format!("`{name}` has something to say: {}", words(alarm)),
            format!("find out why; then `wardkeep evidence anchor clear {name}`, and remove it"),
        ));
    }
    outbox.remove(&name)?;
    context.ui.say(format!("Removed: {name}"));
    Ok(context.done(&Answer { name }))
}
