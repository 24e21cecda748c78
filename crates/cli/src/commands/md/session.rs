//! What a session start and the commands that show its parts have in common.

use wardkeep_policy::config::Switches;

use crate::context::Context;
use crate::error::CliError;

pub(super) fn switches(_context: &Context) -> Result<(Switches, Vec<String>), CliError> {
    Ok((Switches::default(), Vec::new()))
}
