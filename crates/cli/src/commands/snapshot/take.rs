//! `wardkeep snapshot take`

use serde::Serialize;
use wardkeep_monitor::snapshot::{By, LeftOut, Scope, Snapshots};

use crate::commands::md::Place;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Takes a snapshot of a workspace
///
/// What is too large, too much or no plain file is left out, and named.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    place: Place,
    /// Which files: both kinds, what steers the agent, or what it remembers
    #[arg(long, value_parser = ["full", "control-plane", "memory"], default_value = "full")]
    scope: String,
    /// Why, for the list
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
}

#[derive(Serialize)]
struct Answer {
    id: String,
    scope: &'static str,
    workspace: String,
    files: usize,
    bytes: u64,
    left_out: Vec<LeftOut>,
    more_left_out: u64,
    record: String,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let workspace = args.place.open(context)?;
    let scope: Scope = args
        .scope
        .parse()
        .map_err(|_| CliError::refused("unknown scope", "give full, control-plane or memory"))?;
    let store = context.open_store()?;
    let taken = Snapshots::new(&store).take(workspace.path(), scope, &args.reason, By::owner())?;
    let id = taken.listed.id;
    context.ui.answer(format!("✓ Snapshot {id}: {} files", taken.manifest.files.len()));
    for left in &taken.manifest.left_out {
        context.ui.note(&format!("`{}` {}: it is left out", left.path, left.why.words()));
    }
    if taken.manifest.more_left_out > 0 {
        let more = taken.manifest.more_left_out;
        context.ui.note(&format!(
            "{more} more are left out, so a rollback to it removes nothing that was added"
        ));
    }
    Ok(context.done(&Answer {
        id: id.to_string(),
        scope: scope.as_str(),
        workspace: workspace.path().display().to_string(),
        files: taken.manifest.files.len(),
        bytes: taken.bytes,
        left_out: taken.manifest.left_out.clone(),
        more_left_out: taken.manifest.more_left_out,
        record: taken.listed.record.to_string(),
    }))
}
