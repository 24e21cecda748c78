//! `witness key`

use serde::Serialize;

use super::identity::IdentityArgs;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Prints the key that others must know to trust this witness, making it if there is none
///
/// The line is public. Whoever adds this witness as an anchor gives it with --key; whoever verifies
/// a log or a bundle gives it with --witness.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    identity: IdentityArgs,
}

#[derive(Serialize)]
struct Answer {
    name: String,
    key: String,
    directory: String,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let identity = args.identity.open(context)?;
    let key = identity.key()?.verifier().to_string();
    context.ui.answer(&key);
    let directory = identity.directory.display().to_string();
    Ok(context.done(&Answer { name: identity.name, key, directory }))
}
