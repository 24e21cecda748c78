//! `wardkeep apply`

use std::path::PathBuf;

use serde::Serialize;
use wardkeep_identity::apply::Applied;
use wardkeep_identity::changes::{ApprovalHash, Change, Changes};
use wardkeep_monitor::identity::files_of;

use super::concerns::{rules, show_concerns};
use super::diff::{Proposal, count, proposal, propose, rendered};
use super::history::{Kept, keep};
use super::{Meant, names, only_owner, owned};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::Line;

/// Approves what is staged, and installs exactly that
///
/// With --hash, the hash that `wardkeep diff` printed: anything changed since makes it another one, and
/// nothing is installed. Without it, shows each file and asks. All of it is installed or nothing is;
/// the bytes that were shown are the bytes that are installed. Where the new content looks like an
/// attack on the agent, one of your rules asks about it, or it cannot be shown whole, that has to be
/// acknowledged; what one of your rules forbids is not installed.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The workspace [default: the current folder]
    workspace: Option<PathBuf>,
    /// Only these files, or all in these folders
    files: Vec<PathBuf>,
    /// The hash that `wardkeep diff` printed, for the same files
    #[arg(long, value_name = "HASH", conflicts_with = "yes")]
    hash: Option<String>,
    /// Approve all that is staged now, without looking at it
    #[arg(long, short)]
    yes: bool,
    /// I have seen what was found in the new content
    #[arg(long)]
    acknowledge: bool,
}

#[derive(Serialize)]
struct Answer<'a> {
    workspace: String,
    #[serde(flatten)]
    applied: Option<&'a Applied>,
    record: Option<String>,
    history: Option<Kept>,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let approved = args.hash.as_deref().map(read_hash).transpose()?;
    only_owner(context, approved.is_some() || args.yes)?;
    let meant = owned(context, args.workspace.as_deref())?;
    meant.place.usable()?;
    let only = names(meant.place.path(), &args.files)?;
    let progress = context.ui.progress("Looking");
    let found = propose(&meant, &only, Some(progress))?;
    for refused in &found.changes.refused {
        context.ui.note(&format!("left alone: {}: {}", refused.name, refused.why));
    }
    if found.changes.is_empty() && approved.is_none() {
        return Ok(nothing(context, &meant));
    }
    let chosen = match (&approved, args.yes) {
        (Some(_), _) | (None, true) => found,
        (None, false) => {
            let chosen = review(context, found)?;
            if chosen.is_empty() {
                return Ok(nothing(context, &meant));
            }
            proposal(&meant, chosen)?
        }
    };
    let hash = approved.unwrap_or_else(|| chosen.changes.hash());
    acknowledged(context, &chosen, &args)?;
    install(context, &meant, &chosen, &hash)
}

fn read_hash(text: &str) -> Result<ApprovalHash, CliError> {
    text.parse().map_err(|_| {
        CliError::refused(
            format!("`{text}` is no hash of 64 hexadecimal digits"),
            "copy the line `Apply hash` of `wardkeep diff`",
        )
    })
}

/// Makes sure that what was found in the new content was seen.
fn acknowledged(context: &mut Context, proposal: &Proposal, args: &Args) -> Result<(), CliError> {
    proposal.check_rules()?;
    if args.acknowledge || !proposal.needs_acknowledgement() {
        return Ok(());
    }
    if args.hash.is_none() && !args.yes {
        // It was shown with the files.
        if context.confirm("Something was found in it, or not all could be shown. Go on?")? {
            return Ok(());
        }
    } else {
        show_concerns(&proposal.concerns).into_iter().for_each(|line| context.ui.fault(line));
        proposal.objections.iter().for_each(|one| context.ui.fault(one.line()));
    }
    Err(CliError::refused(
        "the new content looks like an attack on the agent, or could not be shown whole",
        "nothing was changed: look at it, and if it is meant, run it again with --acknowledge",
    ))
}

/// Shows file by file, and asks.
fn review(context: &mut Context, proposal: Proposal) -> Result<Changes, CliError> {
    let width = context.ui.width();
    let mut chosen: Vec<Change> = Vec::new();
    for (change, shown) in proposal.changes.changes.iter().zip(&proposal.shown) {
        rendered(shown, width).into_iter().for_each(|line| context.ui.answer(line));
        let about: Vec<_> =
            proposal.concerns.iter().filter(|one| one.name == change.name).cloned().collect();
        show_concerns(&about).into_iter().for_each(|line| context.ui.answer(line));
        let own = proposal.objections.iter().filter(|one| one.is_about(&change.name.to_string()));
        own.for_each(|one| context.ui.answer(one.line()));
        if context.confirm(&format!("Approve {}?", change.name))? {
            chosen.push(change.clone());
        }
    }
    let names: Vec<_> = chosen.into_iter().map(|change| change.name).collect();
    if names.is_empty() {
        return Ok(Changes::default());
    }
    let changes = proposal.changes.only(&names);
    // A folder that was approved must not bring a file that was not.
    let exact = changes.changes.iter().all(|change| names.contains(&change.name));
    if exact { Ok(changes) } else { Ok(Changes::default()) }
}

fn nothing(context: &mut Context, meant: &Meant) -> Exit {
    context.ui.answer("Nothing was changed");
    let workspace = meant.place.path().display().to_string();
    context.done(&Answer { workspace, applied: None, record: None, history: None })
}

/// Installs what was approved, and records it.
pub(super) fn install(
    context: &mut Context,
    meant: &Meant,
    proposal: &Proposal,
    hash: &ApprovalHash,
) -> Result<Exit, CliError> {
    let store = meant.open_store(context)?;
    let desk = meant.desk(&store);
    let mut asked = files_of(&proposal.changes).with("approved", hash.to_string());
    let mut found = rules(&proposal.concerns);
    for one in &proposal.objections {
        found.push_str(&format!(" {}", one.rule()));
    }
    if !found.is_empty() {
        asked = asked.with("acknowledged", found);
    }
    let done = desk.run(
        "apply",
        asked,
        |workspace| workspace.apply(&proposal.changes, hash),
        |applied| files_of(&proposal.changes).with("approved", applied.hash.to_string()),
    )?;
    let applied = done.outcome;
    for file in &applied.files {
        context.ui.say(Line::default().good("applied: ").plain(file.name.to_string()));
    }
    for name in &applied.released {
        context.ui.note(&format!("{name} is not protected any more"));
    }
    for left in &applied.left {
        context.ui.note(&format!("{}: {}", left.name, left.why));
    }
    let history = keep(context, meant, &desk, &applied.versions, "apply", done.record);
    context.ui.answer(count(applied.files.len()));
    let answer = Answer {
        workspace: meant.place.path().display().to_string(),
        applied: Some(&applied),
        record: Some(done.record.to_string()),
        history,
    };
    Ok(context.done(&answer))
}
