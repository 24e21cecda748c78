//! `wardkeep snapshot`

mod changes;
mod diff;
mod list;
mod show;
mod take;

use clap::Subcommand;
use wardkeep_monitor::snapshot::{Catalogue, Listed, Opened, SnapshotError};
use wardkeep_monitor::store::StoreReader;

pub(super) use changes::{ChangeRow, rows, show_changes};

use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Takes and shows snapshots of what steers an agent and of what it remembers
///
/// A snapshot holds the files of a workspace that steer the agent (LocalGPT.md and its manifest,
/// soulguard.json, settings of agents), those that it remembers by (SOUL.md, MEMORY.md, memory/ and
/// others), or both. `wardkeep rollback` puts them back. Every other file of the workspace is left
/// alone by both.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What can be done with snapshots.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Take(take::Args),
    List(list::Args),
    Show(show::Args),
    Diff(diff::Args),
}

pub(crate) fn run(context: &mut Context, command: Command) -> Result<Exit, CliError> {
    match command {
        Command::Take(args) => take::run(context, args),
        Command::List(args) => list::run(context, args),
        Command::Show(args) => show::run(context, &args),
        Command::Diff(args) => diff::run(context, &args),
    }
}

/// The snapshot that a text names. What the index does not know is looked for in all of the journal.
pub(super) fn find(reader: &StoreReader, text: &str) -> Result<Listed, CliError> {
    match Catalogue::read(reader)?.find(text) {
        Err(SnapshotError::Unknown { .. }) => Ok(Catalogue::scanned(reader)?.find(text)?.clone()),
        found => Ok(found?.clone()),
    }
}

fn open(context: &Context, text: &str) -> Result<Opened, CliError> {
    let reader = context.open_reader()?;
    let listed = find(&reader, text)?;
    Ok(Opened::open(reader.path(), &listed)?)
}
