//! `wardkeep rollback`

mod contaminated;

use std::path::PathBuf;

use serde::Serialize;
use wardkeep_identity::config::CONFIG_FILE;
use wardkeep_monitor::rollback::{RolledBack, preview, unfinished};
use wardkeep_monitor::snapshot::{
    By, Catalogue, Change, Difference, Limits, Listed, Opened, RelativePath, Snapshots,
};
use wardkeep_policy::sign::Presence;
use wardkeep_policy::workspace::{MANIFEST_FILE, POLICY_FILE};

use super::md::Place;
use super::md::sign::request;
use super::snapshot::{ChangeRow, find, rows, show_changes};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Puts the files of a workspace back to what a snapshot holds
///
/// Shows what it would change, asks, keeps what it replaces as a snapshot of its own, restores each
/// file whole, removes what was added since, and looks at all of it once more. Only files that the
/// snapshot covers are touched; the signed files of the state directory never are. If it is
/// interrupted, the next `wardkeep rollback` finishes it. Refuses without a terminal unless --yes is
/// given, and always inside `wardkeep run`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The snapshot: its id, or at least the first 4 digits of it; without one, an interrupted
    /// rollback is finished
    #[arg(conflicts_with = "undo")]
    id: Option<String>,
    /// Undo the newest rollback in the workspace: put back what it replaced
    #[arg(long)]
    undo: bool,
    /// Put back exactly the files that this record, and what came from it, changed
    #[arg(long, value_name = "RECORD", conflicts_with_all = ["id", "undo", "only"])]
    contaminated: Option<String>,
    /// With --contaminated: also files that were changed since without a record
    #[arg(long, requires = "contaminated")]
    even_if_changed: bool,
    /// Only this file or folder of the workspace; can be given again
    #[arg(long, value_name = "PATH")]
    only: Vec<PathBuf>,
    #[command(flatten)]
    place: Place,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Roll back without asking
    #[arg(long)]
    yes: bool,
}

#[derive(Serialize)]
struct Answer {
    snapshot: Option<String>,
    dry_run: bool,
    changes: Vec<ChangeRow>,
    restored: Vec<RelativePath>,
    removed: Vec<RelativePath>,
    left: Vec<LeftRow>,
    kept: Option<String>,
    record: Option<String>,
    /// An interrupted rollback that was finished first: where it led.
    finished: Option<String>,
}

#[derive(Serialize)]
struct LeftRow {
    path: String,
    why: String,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    if let Some(record) = &args.contaminated {
        return contaminated::run(context, &args, record);
    }
    let only = only(&args.only)?;
    let reader = context.open_reader()?;
    let interrupted = unfinished(reader.path());
    let listed = match (&args.id, args.undo) {
        (Some(id), _) => Some(find(&reader, id)?),
        (None, true) => {
            let workspace = args.place.open(context)?;
            Some(Catalogue::read(&reader)?.undo(workspace.path())?.clone())
        }
        (None, false) if interrupted.is_some() => None,
        (None, false) => {
            return Err(CliError::refused(
                "no snapshot is named, and no rollback was interrupted",
                "name one of `wardkeep snapshot list`, or give --undo",
            ));
        }
    };
    if let Some(snapshot) = interrupted {
        context.ui.note(&format!("a rollback to {snapshot} was interrupted: it is finished first"));
    }
    let mut changes = Vec::new();
    if let Some(listed) = &listed {
        let opened = Opened::open(reader.path(), listed)?;
        changes = preview(&opened, only.as_deref(), &Limits::default())?;
        review(context, &opened, &changes)?;
    }
    if args.dry_run {
        return Ok(context.done(&planned(listed.as_ref(), &changes)));
    }
    if changes.is_empty() && interrupted.is_none() {
        context.ui.answer("Nothing to do: the files are as in the snapshot.");
        return Ok(context.done(&planned(listed.as_ref(), &changes).for_real()));
    }
    ask(context, args.yes)?;
    let store = context.open_store()?;
    let snapshots = Snapshots::new(&store);
    let finished = snapshots.resume()?;
    let done = match &listed {
        Some(listed) => Some(snapshots.restore(listed, only.as_deref(), By::owner())?),
        None => None,
    };
    Ok(answer(context, &changes, finished, done))
}

/// Refuses where no person may be behind it, and asks where one is.
fn ask(context: &mut Context, yes: bool) -> Result<(), CliError> {
    let request = request(context, yes)?;
    if request.confined {
        return Err(CliError::refused(
            "a rollback is refused inside `wardkeep run`",
            "roll back in a terminal of your own",
        ));
    }
    match request.presence {
        Presence::Yes => Ok(()),
        Presence::Terminal if context.confirm("Roll back?")? => Ok(()),
        Presence::Terminal => Err(CliError::refused("not rolled back", "nothing was changed")),
        Presence::None => Err(CliError::refused(
            "a rollback needs a person",
            "run it in a terminal, or give --yes if you have seen what changes",
        )),
    }
}

fn only(paths: &[PathBuf]) -> Result<Option<Vec<RelativePath>>, CliError> {
    let relative = |path: &PathBuf| {
        RelativePath::new(path).ok_or_else(|| {
            let message = format!("`{}` is no path inside the workspace", path.display());
            CliError::refused(message, "give it relative to the workspace, without `..`")
        })
    };
    let paths: Vec<RelativePath> = paths.iter().map(relative).collect::<Result<_, _>>()?;
    Ok(Some(paths).filter(|paths| !paths.is_empty()))
}

fn review(context: &mut Context, opened: &Opened, changes: &[Change]) -> Result<(), CliError> {
    let workspace = opened.manifest().workspace.display().to_string();
    let (id, taken) = (opened.listed().id, &opened.manifest().taken);
    if changes.is_empty() {
        return Ok(());
    }
    context.ui.say(format!("Since the snapshot {id} of {taken}, in {workspace}:"));
    show_changes(context, opened, changes, true)?;
    let guarding = [POLICY_FILE, MANIFEST_FILE, CONFIG_FILE].map(RelativePath::parse);
    for change in changes.iter().filter(|change| change.difference == Difference::Added) {
        if guarding.contains(&Some(change.path.clone())) {
            context.ui.note(&format!(
                "`{}` was added since and would be removed, with the protection it stands for: if it is yours, \
                 name what to roll back with --only",
                change.path
            ));
        }
    }
    for change in opened.state_diff()? {
        context.ui.note(&format!(
            "`{}` in the state directory changed too: it is signed, so change it with `wardkeep config edit`",
            change.path
        ));
    }
    Ok(())
}

fn planned(listed: Option<&Listed>, changes: &[Change]) -> Answer {
    let paths = |removed: bool| {
        let meant = |change: &&Change| (change.difference == Difference::Added) == removed;
        changes.iter().filter(meant).map(|change| change.path.clone()).collect()
    };
    Answer {
        snapshot: listed.map(|listed| listed.id.to_string()),
        dry_run: true,
        changes: rows(changes),
        restored: paths(false),
        removed: paths(true),
        left: Vec::new(),
        kept: None,
        record: None,
        finished: None,
    }
}

impl Answer {
    fn for_real(self) -> Self {
        Self { dry_run: false, ..self }
    }
}

fn answer(
    context: &mut Context,
    changes: &[Change],
    finished: Option<RolledBack>,
    done: Option<RolledBack>,
) -> Exit {
    for (done, what) in [(&finished, "Finished the rollback"), (&done, "Rolled back")] {
        let Some(done) = done else { continue };
        context.ui.answer(format!(
            "✓ {what} to {}: {} restored, {} removed",
            done.snapshot,
            done.restored.len(),
            done.removed.len()
        ));
        for left in &done.left {
            context.ui.fault(format!("`{}` {}: it is as it was", left.path, left.why));
        }
        let policy = [POLICY_FILE, MANIFEST_FILE].map(RelativePath::parse);
        if done.restored.iter().any(|path| policy.contains(&Some(path.clone()))) {
            context.ui.note(
                "the policy was restored: if you signed a newer one since, sign it again with `wardkeep md sign`",
            );
        }
        if let Some(kept) = done.kept {
            context.ui.say(format!("What was replaced is in {kept}: `wardkeep rollback {kept}`"));
        }
    }
    let last = done.as_ref().or(finished.as_ref());
    let list = |paths: fn(&RolledBack) -> &Vec<RelativePath>| {
        last.map(|done| paths(done).clone()).unwrap_or_default()
    };
    let left = finished.iter().chain(&done).flat_map(|done| &done.left);
    let left: Vec<LeftRow> = left
        .map(|left| LeftRow { path: left.path.to_string(), why: left.why.to_string() })
        .collect();
    let exit = if left.is_empty() { Exit::Success } else { Exit::Failed };
    let result = Answer {
        snapshot: last.map(|done| done.snapshot.to_string()),
        dry_run: false,
        changes: rows(changes),
        restored: list(|done| &done.restored),
        removed: list(|done| &done.removed),
        left,
        kept: last.and_then(|done| done.kept).map(|kept| kept.to_string()),
        record: last.and_then(|done| done.record).map(|record| record.to_string()),
        finished: finished.as_ref().map(|done| done.snapshot.to_string()),
    };
    context.finish(exit, exit == Exit::Success, &result)
}
