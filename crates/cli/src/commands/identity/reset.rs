//! `wardkeep reset`

use std::path::PathBuf;

use serde::Serialize;
use wardkeep_identity::stage::Reset;
use wardkeep_monitor::identity::{Told, files_of};

use super::{names, owned};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::Line;

/// Drops what is staged: the copies become what you approved
///
/// With FILES or --all; without them, only shows what would be dropped.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The workspace [default: the current folder]
    workspace: Option<PathBuf>,
    /// These files, or all in these folders
    #[arg(conflicts_with = "all")]
    files: Vec<PathBuf>,
    /// Everything that is staged
    #[arg(long, short)]
    all: bool,
}

#[derive(Serialize)]
struct Answer {
    workspace: String,
    /// What would be dropped.
    staged: Vec<String>,
    #[serde(flatten)]
    reset: Option<Reset>,
    record: Option<String>,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let meant = owned(context, args.workspace.as_deref())?;
    meant.place.usable()?;
    let workspace = meant.place.path().display().to_string();
    if args.files.is_empty() && !args.all {
        let changes = meant.place.workspace().changes(&|_| {})?;
        let staged: Vec<String> =
            changes.changes.iter().map(|change| change.name.to_string()).collect();
        for change in &changes.changes {
            context.ui.answer(format!("{:<10} {}", change.status(), change.name));
        }
        match staged.is_empty() {
            true => context.ui.answer("Nothing is staged"),
            false => context.ui.say("Nothing was dropped: name files, or give --all."),
        }
        return Ok(context.done(&Answer { workspace, staged, reset: None, record: None }));
    }
    let files = names(meant.place.path(), &args.files)?;
    let only = (!args.all).then_some(files.as_slice());
    let store = meant.open_store(context)?;
    let desk = meant.desk(&store);
    let staged = match meant.place.workspace().changes(&|_| {}) {
        Ok(changes) => files_of(&only.map_or_else(|| changes.clone(), |only| changes.only(only))),
        Err(_) => Told::default(),
    };
    let done = desk.run(
        "reset",
        staged,
        |workspace| workspace.reset(only),
        |reset| Told::default().with_files(&reset.reset),
    )?;
    for name in &done.outcome.reset {
        context.ui.say(Line::default().strong("dropped: ").plain(name.to_string()));
    }
    context.ui.answer(match done.outcome.reset.len() {
        0 => "Nothing was staged".to_owned(),
        1 => "1 file is as approved again in staging".to_owned(),
        many => format!("{many} files are as approved again in staging"),
    });
    let record = Some(done.record.to_string());
    Ok(context.done(&Answer { workspace, staged: Vec::new(), reset: Some(done.outcome), record }))
}
