//! `wardkeep snapshot list`

use std::path::PathBuf;

use serde::Serialize;
use wardkeep_monitor::snapshot::{Catalogue, Listed};

use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::Line;

/// Lists snapshots, newest first
///
/// Those with the scope `files` were made by rollbacks: they hold what was replaced.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only those of this workspace
    #[arg(long, short, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// How many at most
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
}

#[derive(Serialize)]
struct Answer {
    snapshots: Vec<Row>,
    /// How many more there are.
    more: usize,
}

#[derive(Serialize)]
struct Row {
    id: String,
    taken: String,
    scope: &'static str,
    files: u64,
    left_out: u64,
    workspace: String,
    reason: String,
    record: String,
}

impl Row {
    fn of(listed: &Listed) -> Self {
        Self {
            id: listed.id.to_string(),
            taken: listed.at.to_string(),
            scope: listed.scope.as_str(),
            files: listed.files,
            left_out: listed.left_out,
            workspace: listed.workspace.clone(),
            reason: listed.reason.clone(),
            record: listed.record.to_string(),
        }
    }
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let reader = context.open_reader()?;
    let workspace = args
        .workspace
        .as_deref()
        .map(|path| path.canonicalize().map_err(|error| CliError::io("open", path, &error)));
    let workspace = workspace.transpose()?.map(|path| path.to_string_lossy().into_owned());
    let mut found = Catalogue::read(&reader)?.snapshots;
    found.retain(|one| workspace.as_ref().is_none_or(|path| one.workspace == *path));
    let more = found.len().saturating_sub(args.limit);
    let snapshots: Vec<Row> = found.iter().take(args.limit).map(Row::of).collect();
    if snapshots.is_empty() {
        context.ui.say("No snapshots.");
    } else {
        let header = ["id", "taken", "scope", "files", "workspace", "reason"];
        let mut rows: Vec<Vec<Line>> = vec![header.map(Line::from).to_vec()];
        rows.extend(snapshots.iter().map(|row| {
            let files = row.files.to_string();
            let cells = [&row.id, &row.taken, row.scope, &files, &row.workspace, &row.reason];
            cells.map(|cell| Line::from(cell.to_owned())).to_vec()
        }));
        context.ui.answer_table(&rows);
        if more > 0 {
            context.ui.say(format!("{more} more: see them with --limit"));
        }
    }
    Ok(context.done(&Answer { snapshots, more }))
}
