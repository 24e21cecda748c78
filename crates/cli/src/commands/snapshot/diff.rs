//! `wardkeep snapshot diff`

use serde::Serialize;
use wardkeep_monitor::snapshot::Limits;

use super::{ChangeRow, rows, show_changes};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Shows what changed since a snapshot
///
/// The signed files of the state directory are compared as well; a rollback leaves them alone, and
/// `wardkeep config` changes them.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Its id, or at least the first 4 digits of it
    id: String,
    /// Only the names of the files
    #[arg(long)]
    names: bool,
}

#[derive(Serialize)]
struct Answer {
    id: String,
    changes: Vec<ChangeRow>,
    /// Of the state directory.
    state: Vec<ChangeRow>,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CliError> {
    let opened = super::open(context, &args.id)?;
    let changes = opened.diff(&Limits::default().kept())?;
    let state = opened.state_diff()?;
    if changes.is_empty() && state.is_empty() {
        context.ui.answer("Nothing changed.");
    }
    show_changes(context, &opened, &changes, !args.names)?;
    for change in &state {
        let path = &change.path;
        context.ui.answer(format!("{} STATE/{path}", super::changes::word(change.difference)));
    }
    let id = opened.listed().id.to_string();
    Ok(context.done(&Answer { id, changes: rows(&changes), state: rows(&state) }))
}
