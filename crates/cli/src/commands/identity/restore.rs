//! `wardkeep restore`

use std::path::{Path, PathBuf};

use serde::Serialize;
use wardkeep_evidence::hash::BlobHash;
use wardkeep_identity::history::{History, Revision};
use wardkeep_identity::name::Name;
use wardkeep_monitor::identity::Told;

use super::apply::install;
use super::diff::{proposal, rendered};
use super::{Meant, names, only_owner, owned};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Brings an earlier version of a protected file back
///
/// FILE@REV, where REV is the beginning of a version's id as `wardkeep history` shows it, `-1` for the
/// version before this one, or `~2` for the state two versions of the workspace ago. Shows the change and
/// asks; with --stage, it is only proposed.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The file and the version, as `SOUL.md@-1`
    #[arg(value_name = "FILE@REV")]
    what: String,
    /// The workspace [default: the current folder]
    #[arg(long, short)]
    workspace: Option<PathBuf>,
    /// Put it into staging, to be looked at and approved later
    #[arg(long)]
    stage: bool,
    /// Do it without asking
    #[arg(long, short, conflicts_with = "stage")]
    yes: bool,
}

#[derive(Serialize)]
struct Answer {
    workspace: String,
    name: String,
    commit: String,
    record: Option<String>,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let (file, revision) = args.what.rsplit_once('@').ok_or_else(|| {
        CliError::refused(
            format!("`{}` names no version", args.what),
            "write FILE@REV, as `SOUL.md@-1`; `wardkeep history FILE` lists them",
        )
    })?;
    only_owner(context, args.yes || args.stage)?;
    let meant = owned(context, args.workspace.as_deref())?;
    meant.place.usable()?;
    let mut found = names(meant.place.path(), &[Path::new(file).to_owned()])?;
    let Some(name) = found.pop() else { return Ok(Exit::Refused) };
    let revision: Revision = revision.parse()?;
    let version = History::open_or_create(&meant.place.history())?.read(&name, &revision)?;
    let workspace = meant.place.path().display().to_string();
    let commit = version.commit.to_string();
    let store = meant.open_store(context)?;
    let desk = meant.desk(&store);
    if args.stage {
        let told = || Told::default().with_files([&name]).with("commit", commit.clone());
        let done = desk.run(
            "stage-version",
            told(),
            |workspace| workspace.stage_version(&name, &version.bytes, version.is_executable),
            |()| told(),
        )?;
        context.ui.answer(format!("Staged {name} as of {}", &commit[..commit.len().min(12)]));
        let record = Some(done.record.to_string());
        return Ok(context.done(&Answer { workspace, name: name.to_string(), commit, record }));
    }
    let changes =
        meant.place.workspace().version_change(&name, &version.bytes, version.is_executable)?;
    if changes.is_empty() {
        context.ui.answer(format!("{name} is that version already"));
        let answer = Answer { workspace, name: name.to_string(), commit, record: None };
        return Ok(context.done(&answer));
    }
    let proposal = proposal(&meant, changes)?;
    let width = context.ui.width();
    for shown in &proposal.shown {
        rendered(shown, width).into_iter().for_each(|line| context.ui.say(line));
    }
    if !args.yes && !context.confirm(&format!("Restore {name}?"))? {
        return Err(CliError::refused("nothing was changed", "run it again if you want it"));
    }
    proposal.check_rules()?;
    drop(store);
    let hash = proposal.changes.hash();
    let replaced = proposal.changes.changes.first().and_then(|change| change.old);
    let exit = install(context, &meant, &proposal, &hash)?;
    follow(context, &meant, &name, replaced)?;
    Ok(exit)
}

/// The copy in staging that nobody has changed follows: otherwise it would propose what was just taken back.
fn follow(
    context: &mut Context,
    meant: &Meant,
    name: &Name,
    replaced: Option<BlobHash>,
) -> Result<(), CliError> {
    let only = [name.clone()];
    let proposed = meant.place.workspace().changes(&|_| {})?.only(&only);
    let Some(change) = proposed.changes.first() else { return Ok(()) };
    if change.new != replaced {
        context.ui.hint(&format!("something else is proposed for {name}: see `wardkeep diff`"));
        return Ok(());
    }
    let store = meant.open_store(context)?;
    meant.desk(&store).run(
        "reset",
        Told::default().with_files([name]),
        |workspace| workspace.reset(Some(&only)),
        |reset| Told::default().with_files(&reset.reset),
    )?;
    Ok(())
}
