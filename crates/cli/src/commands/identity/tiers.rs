//! `wardkeep protect`, `wardkeep watch` and `wardkeep release`

use std::path::PathBuf;

use serde::Serialize;
use wardkeep_identity::error::IdentityError;
use wardkeep_identity::name::Name;
use wardkeep_identity::tiering::Retiered;
use wardkeep_identity::workspace::Workspace;
use wardkeep_monitor::identity::Told;

use super::history::{Kept, keep};
use super::{names, only_owner, owned};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::Line;

/// Protects files: from now on they change only by your approval
///
/// What they hold now counts as approved. `soulguard.json` is changed to say so.
#[derive(Debug, clap::Args)]
pub(crate) struct ProtectArgs {
    #[command(flatten)]
    what: What,
}

/// Watches files: the agent writes them freely, and each version is kept
#[derive(Debug, clap::Args)]
pub(crate) struct WatchArgs {
    #[command(flatten)]
    what: What,
}

/// Takes files out of their tier: nobody looks after them any more
#[derive(Debug, clap::Args)]
pub(crate) struct ReleaseArgs {
    #[command(flatten)]
    what: What,
}

#[derive(Debug, clap::Args)]
struct What {
    /// Files, or folders with all in them
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The workspace [default: the current folder]
    #[arg(long, short)]
    workspace: Option<PathBuf>,
    /// Do it without asking
    #[arg(long, short)]
    yes: bool,
}

#[derive(Serialize)]
struct Answer<'a> {
    workspace: String,
    #[serde(flatten)]
    retiered: &'a Retiered,
    record: String,
    history: Option<Kept>,
}

type Move = fn(&Workspace<'static>, &[Name]) -> Result<Retiered, IdentityError>;

pub(crate) fn protect(context: &mut Context, args: ProtectArgs) -> Result<Exit, CliError> {
    run(context, args.what, "protect", |workspace, names| workspace.protect(names))
}

pub(crate) fn watch(context: &mut Context, args: WatchArgs) -> Result<Exit, CliError> {
    run(context, args.what, "watch", |workspace, names| workspace.watch(names))
}

pub(crate) fn release(context: &mut Context, args: ReleaseArgs) -> Result<Exit, CliError> {
    run(context, args.what, "release", |workspace, names| workspace.release(names))
}

fn run(
    context: &mut Context,
    what: What,
    operation: &'static str,
    work: Move,
) -> Result<Exit, CliError> {
    only_owner(context, what.yes)?;
    let meant = owned(context, what.workspace.as_deref())?;
    let files = names(meant.place.path(), &what.files)?;
    let named: Vec<String> = files.iter().map(ToString::to_string).collect();
    let question = format!("{operation} {}?", named.join(", "));
    if !what.yes && !context.confirm(&question)? {
        return Err(CliError::refused("nothing was changed", "run it again if you want it"));
    }
    let store = meant.open_store(context)?;
    let desk = meant.desk(&store);
    let done = desk.run(
        operation,
        Told::default().with_files(&files),
        |workspace| work(workspace, &files),
        |retiered| Told::default().with_files(&retiered.files),
    )?;
    let retiered = done.outcome;
    for moved in &retiered.moved {
        let tier = moved.to.map_or("released", |tier| tier.word());
        let from = moved.from.map(|tier| format!(" (was {})", tier.word())).unwrap_or_default();
        context.ui.say(
            Line::default().strong(format!("{tier}: ")).plain(moved.name.to_string()).plain(from),
        );
    }
    for name in &retiered.already {
        context.ui.say(format!("already so: {name}"));
    }
    for refused in &retiered.refused {
        context.ui.note(&format!("left out: {}: {}", refused.name, refused.why));
    }
    for left in &retiered.left {
        context.ui.note(&format!("{}: {}", left.name, left.why));
    }
    let history = keep(context, &meant, &desk, &retiered.versions, operation, done.record);
    context.ui.answer(match (retiered.moved.is_empty(), retiered.files.len()) {
        (true, _) => "Nothing to change".to_owned(),
        (false, 1) => "1 file concerned".to_owned(),
        (false, many) => format!("{many} files concerned"),
    });
    let answer = Answer {
        workspace: meant.place.path().display().to_string(),
        retiered: &retiered,
        record: done.record.to_string(),
        history,
    };
    Ok(context.done(&answer))
}
