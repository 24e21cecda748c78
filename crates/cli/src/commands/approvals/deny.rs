//! `wardkeep approvals deny`

use serde::Serialize;

use super::open;
use crate::commands::md::sign::request;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Denies a request, or takes back an approval that is in force
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The request or approval: its id, or at least the first 8 digits of it
    request: String,
}

#[derive(Serialize)]
struct Answer {
    request: String,
    record: String,
    withdrawn: bool,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let who = request(context, false)?;
    let approvals = open(context)?;
    context.open_reader()?;
    let store = context.open_store()?;
    let denied = approvals.deny(&store, &args.request, &who)?;
    let what = if denied.withdrawn { "Taken back" } else { "Denied" };
    context.ui.answer(format!("✓ {what}: request {:.10}", denied.request));
    Ok(context.done(&Answer {
        request: denied.request.to_string(),
        record: denied.record.to_string(),
        withdrawn: denied.withdrawn,
    }))
}
