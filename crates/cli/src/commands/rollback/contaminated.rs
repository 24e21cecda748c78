//! `wardkeep rollback --contaminated`

use std::path::Path;

use wardkeep_evidence::hash::BlobHash;
use wardkeep_monitor::provenance::{Closure, Direction, RestorePlan, Walk, restore_plan};
use wardkeep_monitor::snapshot::{By, RelativePath, Snapshots};

use super::{Answer, Args, LeftRow, answer, ask};
use crate::commands::evidence::resolve::resolve_record;
use crate::commands::look::with_index;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Files of the workspace, and what they held before.
type Files = Vec<(RelativePath, Option<BlobHash>)>;

pub(super) fn run(context: &mut Context, args: &Args, record: &str) -> Result<Exit, CliError> {
    let workspace = args.place.open(context)?;
    let reader = context.open_reader()?;
    let source = resolve_record(&reader, record)?;
    let walk = Walk { direction: Direction::Forward, direct: false };
    let (plan, _) = with_index(context, &reader, false, |index| {
        let closure = Closure::of(&reader, index, source, walk)?;
        restore_plan(&reader, index, &closure)
    })?;
    let (files, left) = split(&plan, workspace.path(), args.even_if_changed);
    let meant = |path: &str| !left.iter().any(|row| row.path == path);
    for row in plan.restore.iter().filter(|row| meant(&row.path)) {
        if row.unchanged {
            context.ui.say(format!("as it was  {}", row.path));
            continue;
        }
        let what = if row.before.is_some() { "put back" } else { "remove" };
        context.ui.say(format!("{what}  {}", row.path));
        if let Some(later) = row.later {
            context.ui.note(&format!(
                "`{}` was changed later by record {later:.10}, which did not come from it: that is \
                 undone as well",
                row.path
            ));
        }
    }
    for row in &left {
        context.ui.note(&format!("`{}` {}", row.path, row.why));
    }
    if args.dry_run || files.is_empty() {
        if files.is_empty() {
            context.ui.answer("Nothing to do: no file of the workspace can be put back.");
        }
        let paths = |there: bool| {
            let meant = files.iter().filter(|(_, before)| before.is_some() == there);
            meant.map(|(path, _)| path.clone()).collect()
        };
        return Ok(context.done(&Answer {
            snapshot: None,
            dry_run: args.dry_run,
            changes: Vec::new(),
            restored: if args.dry_run { paths(true) } else { Vec::new() },
            removed: if args.dry_run { paths(false) } else { Vec::new() },
            left,
            kept: None,
            record: None,
            finished: None,
        }));
    }
    ask(context, args.yes)?;
    let store = context.open_store()?;
    let reason = format!("what record {source:.10} reached");
    let done =
        Snapshots::new(&store).restore_files(workspace.path(), &files, &reason, By::owner())?;
    Ok(answer(context, &[], None, Some(done)))
}

/// Those in the workspace that can be put back, and the rest with the reason.
fn split(plan: &RestorePlan, workspace: &Path, even_if_changed: bool) -> (Files, Vec<LeftRow>) {
    let (mut files, mut left) = (Vec::new(), Vec::new());
    for row in &plan.restore {
        let inside = Path::new(&row.path).strip_prefix(workspace).ok();
        match inside.and_then(RelativePath::new) {
            Some(_) if row.unchanged => {}
            Some(_) if row.unexplained && !even_if_changed => left.push(LeftRow {
                path: row.path.clone(),
                why: "was changed since by someone the journal does not know, and is left as it is: look \
                      at it, then give --even-if-changed"
                    .to_owned(),
            }),
            Some(path) => files.push((path, row.before)),
            None => left.push(LeftRow {
                path: row.path.clone(),
                why: "is outside of this workspace: name its own with --workspace".to_owned(),
            }),
        }
    }
    left.extend(plan.impossible.iter().map(|row| LeftRow {
        path: row.path.clone(),
        why: format!("cannot be put back: {}", row.why),
    }));
    (files, left)
}
