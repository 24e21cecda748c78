//! `wardkeep md start`

use serde::Serialize;
use wardkeep_monitor::policy::{About, Desk};
use wardkeep_policy::audit::Source;
use wardkeep_policy::verify::Start;

use super::{Place, next_step};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Starts a session: verifies the policy, writes it down, and prints the block for the model
///
/// For agents that cannot use the library: run it once at the start of a session and put what it
/// prints last into every call of the model. Whatever is wrong with the policy, the block still ends
/// with the built-in reminder; the exit code says what was found (see `wardkeep md verify`). With
/// `strict_policy` in the signed config nothing is printed unless the policy is valid.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    place: Place,
    /// The session starts without a person, on a timer
    #[arg(long)]
    heartbeat: bool,
    /// The agent that starts, for the record
    #[arg(long, default_value = "")]
    agent: String,
    /// The session's id, for the record
    #[arg(long, default_value = "")]
    session: String,
}

#[derive(Serialize)]
struct Answer {
    state: &'static str,
    reason: Option<&'static str>,
    injected: bool,
    aborted: bool,
    block: Option<String>,
    warnings: Vec<String>,
    record: String,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let workspace = args.place.open(context)?;
    let source = if args.heartbeat { Source::Heartbeat } else { Source::SessionStart };
    let about = About { agent: &args.agent, session: &args.session };
    let open = context.open_store()?;
    let desk = Desk::new(&open, rustix::process::getuid().as_raw());
    let started = desk.start(&workspace, source, about, context.random()?)?;
    let verification = &started.checked.verification;
    let mut warnings = verification.warnings(context.tool);
    warnings.extend(started.settings.switches.warnings(context.tool));
    warnings.extend(started.checked.trouble.iter().map(ToString::to_string));
    warnings.extend(
        started.written.iter().filter_map(|one| one.trouble.as_ref()).map(ToString::to_string),
    );
    warnings.iter().for_each(|warning| context.ui.fault(warning.as_str()));
    let start = started.start();
    let block = started.block(false);
    // What was verified was made harmless for the model, not for a terminal.
    block.iter().flat_map(|block| block.lines()).for_each(|line| context.ui.answer(line));
    if let Some(next) = next_step(verification.state, context.tool) {
        context.ui.hint(&next);
    }
    if start == Start::Abort {
        context.ui.hint("strict_policy is on: mend the policy and sign it, then start again");
    }
    let exit = Exit::from(verification.state);
    let answer = Answer {
        state: verification.state.name(),
        reason: verification.reason.as_ref().map(wardkeep_policy::verify::Reason::word),
        injected: matches!(start, Start::Inject(_)),
        aborted: start == Start::Abort,
        block,
        warnings,
        record: started.written[0].record.to_string(),
    };
    Ok(context.finish(exit, exit == Exit::Success, &answer))
}
