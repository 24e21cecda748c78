//! `wardkeep skill approve`

use std::path::PathBuf;

use wardkeep_guard::skill::Verdict;
use wardkeep_monitor::skills::Skills;
use wardkeep_policy::sign::Presence;

use super::{PinJson, candidate, diff, owner, show};
use crate::commands::md::sign::request;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Trusts a skill exactly as it is now, after showing what was found and what changed
///
/// The approval is for these names, modes and contents, signed with the key of this machine, with the
/// hosts, variables and commands that were seen; any change asks again. It is kept in the state directory,
/// never with the skill. Refuses without a terminal unless --yes is given, and always inside `wardkeep run`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The skill's folder
    folder: PathBuf,
    /// Approve it although it was found malicious
    #[arg(long)]
    even_denied: bool,
    /// Approve without asking
    #[arg(long)]
    yes: bool,
}

pub(super) fn run(context: &mut Context, args: &Args) -> Result<Exit, CliError> {
    let who = request(context, args.yes)?;
    wardkeep_policy::sign::permitted(&who)?;
    let (options, pins) = owner(context)?;
    let candidate = candidate(&args.folder, &options)?;
    let path = args.folder.display().to_string();
    show::report(context, &path, &candidate.report, false);
    show::capabilities(context, &candidate.report.capabilities);
    if let Some(pin) = pins.named(&candidate.name).filter(|pin| pin.tree != candidate.hash) {
        context.ui.say(format!("changed since it was pinned as `{}` at {}:", pin.name, pin.at));
        diff::since(context, pin, &candidate.tree)?;
    }
    if candidate.report.verdict == Verdict::Deny && !args.even_denied {
        return Err(CliError::refused(
            "it was found malicious and is not approved",
            "read the findings; if you want it all the same, give --even-denied",
        ));
    }
    let name = &candidate.name;
    if who.presence == Presence::Terminal
        && !context.confirm(&format!("Approve `{}` as it is?", crate::ui::harmless(name)))?
    {
        return Err(CliError::refused("not approved", "it stays as it was"));
    }
    let store = context.open_store()?;
    let who = wardkeep_policy::sign::Request { now: context.now()?, ..who };
    let skills = Skills::new(&store, rustix::process::getuid().as_raw());
    let pin = skills.pin(&candidate, None, true, &who)?;
    context.ui.answer(format!("✓ Approved `{name}` (tree {:.16}…)", pin.tree.to_string()));
    Ok(context.done(&PinJson::of(&pin)))
}
