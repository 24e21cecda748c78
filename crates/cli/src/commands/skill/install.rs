//! `wardkeep skill install`

use std::path::PathBuf;

use serde::Serialize;
use wardkeep_guard::skill::Verdict;
use wardkeep_monitor::skills::install::{InstallError, Place};
use wardkeep_monitor::skills::{Skills, hash_of};

use super::{candidate, diff, owner, show};
use crate::commands::md::sign::request;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Verifies a skill and puts it into its place, all of it or nothing
///
/// Installs what was allowed, or what the owner approved exactly as it is. What is read once is what is
/// judged, pinned, recorded and written; links on the way to the place are refused. What stands there is
/// replaced only where it is this skill as it was pinned. Exit 20: it has to be approved first. Exit 1: it was
/// found malicious. Refuses without a terminal unless --yes is given, and always inside `wardkeep run`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The skill's folder
    source: PathBuf,
    /// The folder that it will be, such as ~/.claude/skills/NAME
    destination: PathBuf,
    /// Install without a terminal
    #[arg(long)]
    yes: bool,
}

#[derive(Serialize)]
struct Answer<'a> {
    installed: bool,
    name: &'a str,
    tree: String,
    verdict: &'static str,
    approved: bool,
    reason: &'a str,
    place: String,
    record: String,
}

pub(super) fn run(context: &mut Context, args: &Args) -> Result<Exit, CliError> {
    let who = request(context, args.yes)?;
    wardkeep_policy::sign::permitted(&who)?;
    let (options, pins) = owner(context)?;
    let candidate = candidate(&args.source, &options)?;
    let place = Place::open(&args.destination)?;
    let store = context.open_store()?;
    let skills = Skills::new(&store, rustix::process::getuid().as_raw());
    let judged = skills.judge(&candidate, place.path())?;
    let path = args.source.display().to_string();
    show::report(context, &path, &candidate.report, false);
    let known = pins.named(&candidate.name).cloned();
    let approved = pins.approval(candidate.hash).is_some();
    let mut answer = Answer {
        installed: false,
        name: &candidate.name,
        tree: candidate.hash.to_string(),
        verdict: candidate.report.verdict.as_str(),
        approved,
        reason: &judged.reason,
        place: place.path().display().to_string(),
        record: judged.record.to_string(),
    };
    if judged.verdict > Verdict::Allow {
        if let Some(pin) = known.as_ref().filter(|pin| pin.tree != candidate.hash) {
            context.ui.say(format!("changed since it was pinned as `{}` at {}:", pin.name, pin.at));
            diff::since(context, pin, &candidate.tree)?;
        }
        context.ui.fault(format!("not installed: {}", judged.reason));
        let (exit, option) = match (judged.verdict, candidate.report.verdict) {
            (Verdict::Deny, Verdict::Deny) => (Exit::Refused, " --even-denied"),
            (Verdict::Deny, _) => (Exit::Refused, ""),
            (_, Verdict::Deny) => (Exit::ActionRequired, " --even-denied"),
            _ => (Exit::ActionRequired, ""),
        };
        let next = format!("to trust exactly this, run `wardkeep skill approve{option} {path}`");
        context.ui.hint(&next);
        return Ok(context.finish(exit, false, &answer));
    }
    // What was pinned may give way to what was approved, and nothing else.
    let there = hash_of(place.path(), &options);
    let replaces =
        there.is_some_and(|there| there == candidate.hash || pins.holds(&candidate.name, there));
    place.check(replaces)?;
    // Pinned first: what a crash leaves is then a pin without a skill, and never the other way.
    skills.pin(&candidate, Some(place.path()), false, &who)?;
    if let Err(error) = place.install(&candidate.tree, context.random()?, replaces) {
        skills.put_back(&candidate.name, known, &who)?;
        return Err(error.into());
    }
    skills.installed(&judged, place.path())?;
    answer.installed = true;
    context.ui.answer(format!("✓ Installed `{}` in {}", answer.name, answer.place));
    Ok(context.done(&answer))
}

impl From<InstallError> for CliError {
    fn from(error: InstallError) -> Self {
        let text = error.to_string();
        let exit = match error {
            InstallError::Io { .. } => Exit::Unreadable,
            _ => Exit::Refused,
        };
        match text.rsplit_once(": ") {
            Some((message, hint)) => Self::new(exit, message, hint),
            None => Self::new(exit, text, "choose another place"),
        }
    }
}
