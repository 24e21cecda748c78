//! `wardkeep md verify`

use serde::Serialize;

use super::{Place, next_step, policy_store};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Verifies the signature of LocalGPT.md without starting a session
///
/// Exit 0: valid; 10: not signed; 11: tampered with; 12: missing; 13: the manifest is corrupted;
/// 14: it contains suspicious patterns. Writes nothing.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    place: Place,
}

#[derive(Serialize)]
pub(super) struct Answer {
    pub(super) state: &'static str,
    pub(super) reason: Option<&'static str>,
    pub(super) content_sha256: Option<String>,
    pub(super) signed_at: Option<String>,
    pub(super) warnings: Vec<String>,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let workspace = args.place.open(context)?;
    let verification = policy_store(context)?.inspect(&workspace);
    let signed_at = verification.manifest.as_ref().map(|manifest| manifest.signed_at.clone());
    let exit = Exit::from(verification.state);
    let warnings = verification.warnings(context.tool);
    match &signed_at {
        Some(at) if exit == Exit::Success => {
            context.ui.answer(format!("✓ LocalGPT.md signature valid (signed {})", minutes(at)));
        }
        _ if verification.state == wardkeep_policy::verify::State::Missing
            && warnings.is_empty() =>
        {
            context.ui.answer("No LocalGPT.md here.");
        }
        _ => {}
    }
    warnings.iter().for_each(|warning| context.ui.fault(warning.as_str()));
    if let Some(next) = next_step(verification.state, context.tool) {
        context.ui.hint(&next);
    }
    let answer = Answer {
        state: verification.state.name(),
        reason: verification.reason.as_ref().map(wardkeep_policy::verify::Reason::word),
        content_sha256: verification.content.map(|hash| hash.to_string()),
        signed_at,
        warnings,
    };
    Ok(context.finish(exit, exit == Exit::Success, &answer))
}

/// A time as the RFC shows it: `2026-02-09 14:30 UTC`.
pub(super) fn minutes(text: &str) -> String {
    match (text.get(..10), text.get(11..16)) {
        (Some(day), Some(minute)) => format!("{day} {minute} UTC"),
        _ => text.to_owned(),
    }
}
