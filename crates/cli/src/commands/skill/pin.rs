//! `wardkeep skill pin`

use std::path::PathBuf;

use serde::Serialize;
use wardkeep_guard::skill::Verdict;
use wardkeep_monitor::skills::Skills;

use super::{PinJson, candidate, owner};
use crate::commands::md::sign::request;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Fixes a skill's name to what the skill is now, so that a change is noticed
///
/// Says nothing of whether it is good: the verdict stays as it was found, and `install` takes it for no
/// approval. For skills that are in their place already. A name that is pinned to something else is
/// changed only by `approve`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The skill's folder
    #[arg(required_unless_present = "remove")]
    folder: Option<PathBuf>,
    /// Take out the pin of this name, and with it the approval
    #[arg(long, value_name = "NAME", conflicts_with = "folder")]
    remove: Option<String>,
    /// Pin without a terminal
    #[arg(long)]
    yes: bool,
}

#[derive(Serialize)]
struct Removed<'a> {
    name: &'a str,
}

pub(super) fn run(context: &mut Context, args: &Args) -> Result<Exit, CliError> {
    let who = request(context, args.yes)?;
    wardkeep_policy::sign::permitted(&who)?;
    let (options, pins) = owner(context)?;
    let own = rustix::process::getuid().as_raw();
    if let Some(name) = &args.remove {
        Skills::new(&context.open_store()?, own).unpin(name, &who)?;
        context.ui.answer(format!("✓ `{name}` is not pinned any more"));
        return Ok(context.done(&Removed { name }));
    }
    let folder = args.folder.clone().unwrap_or_default();
    let candidate = candidate(&folder, &options)?;
    if pins.named(&candidate.name).is_some_and(|pin| pin.tree != candidate.hash) {
        return Err(CliError::refused(
            format!("`{}` is pinned to something else", candidate.name),
            format!(
                "see `wardkeep skill diff {0}`; `wardkeep skill approve {0}` takes the change",
                folder.display()
            ),
        ));
    }
    let place = folder.canonicalize().map_err(|error| CliError::io("find", &folder, &error))?;
    let store = context.open_store()?;
    let pin = Skills::new(&store, own).pin(&candidate, Some(&place), false, &who)?;
    context.ui.answer(format!("✓ Pinned `{}` (tree {:.16}…)", pin.name, pin.tree.to_string()));
    if candidate.report.verdict > Verdict::Allow && !pin.approved {
        context.ui.note(&format!(
            "the verdict is {}, and pinning changes nothing about it: see `wardkeep skill verify`",
            candidate.report.verdict
        ));
    }
    Ok(context.done(&PinJson::of(&pin)))
}
