//! Errors of the confinement.

use rustix::io::Errno;
use wardkeep_sandbox::SandboxError;

use super::CliError;
use crate::exit::Exit;

impl From<SandboxError> for CliError {
    fn from(error: SandboxError) -> Self {
        match error {
            SandboxError::Unavailable { layer, why, how } => Self::new(
                Exit::Refused,
                format!("nothing was started: the layer `{layer}` is not available: {why}"),
                how,
            ),
            SandboxError::Path { .. } => {
                Self::refused(error.to_string(), "nothing was started; see `wardkeep run --help`")
            }
            SandboxError::Program { errno: Errno::NOENT, .. } => Self::refused(
                error.to_string(),
                "is it installed? If it lies in a folder that is not shown, name that with --read",
            ),
            SandboxError::Program { .. } => Self::refused(
                error.to_string(),
                "if it lies in a folder that is not shown, name that with --read",
            ),
            other => Self::refused(
                format!("nothing was started: {other}"),
                "run it again; if it goes on, see `wardkeep run --dry-run`",
            ),
        }
    }
}
