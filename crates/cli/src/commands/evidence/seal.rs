//! `evidence seal`

use serde::Serialize;

use super::report::time;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Seals what was recorded, if the epoch's seal is due
///
/// There is exactly one seal an epoch of 15 minutes. Writers make it when it is due; run this from
/// a timer where nothing may be written for long.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

#[derive(Serialize)]
struct Answer {
    sealed: bool,
    epoch: Option<u64>,
    size: Option<u64>,
    next_due: Option<u64>,
    log: Option<String>,
}

pub(crate) fn run(context: &mut Context, _: Args) -> Result<Exit, CliError> {
    context.open_reader()?;
    let store = context.open_store()?;
    let seal = store.seal()?;
    if let Some(problem) = store.seal_problem() {
        return Err(CliError::new(
            Exit::Unreadable,
            format!("no seal can be made: {problem}"),
            "restore the key from a backup, or begin a new log in another state directory",
        ));
    }
    let next_due = store.next_seal();
    match &seal {
        Some(seal) => {
            context.ui.answer(format!("sealed {} records, epoch {}", seal.size, seal.epoch))
        }
        None => context.ui.answer("nothing is due".to_owned()),
    }
    if let Some(due) = next_due {
        context.ui.say(format!("the next seal is due at {}", time(due)));
    }
    Ok(context.done(&Answer {
        sealed: seal.is_some(),
        epoch: seal.map(|seal| seal.epoch),
        size: seal.map(|seal| seal.size),
        next_due,
        log: store.public().map(|public| public.to_string()),
    }))
}
