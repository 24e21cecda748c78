//! What the commands of the daemon and of approvals end with.

use wardkeep_monitor::approvals::ApprovalsError;
use wardkeep_monitor::daemon::{DoorsError, StartError};
use wardkeep_monitor::wire::WireError;

use super::CliError;
use crate::exit::Exit;

/// These errors say what to do behind the last colon; here it is the hint.
fn split(exit: Exit, text: &str) -> CliError {
    match text.rsplit_once(": ") {
        Some((message, hint)) => CliError::new(exit, message, hint),
        None => CliError::new(exit, text, "see `wardkeep daemon status`"),
    }
}

impl From<WireError> for CliError {
    fn from(error: WireError) -> Self {
        let exit = match &error {
            WireError::Refused(_) | WireError::Absent(_) => Exit::Refused,
            _ => Exit::Unreadable,
        };
        split(exit, &error.to_string())
    }
}

impl From<StartError> for CliError {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Wire(error) => error.into(),
            StartError::Confined => split(Exit::Refused, &error.to_string()),
            other => split(Exit::Unreadable, &other.to_string()),
        }
    }
}

impl From<DoorsError> for CliError {
    fn from(error: DoorsError) -> Self {
        let exit = match &error {
            DoorsError::Running { .. } => Exit::Refused,
            _ => Exit::Unreadable,
        };
        split(exit, &error.to_string())
    }
}

impl From<ApprovalsError> for CliError {
    fn from(error: ApprovalsError) -> Self {
        match error {
            ApprovalsError::Journal(error) => error.into(),
            ApprovalsError::Store(error) => error.into(),
            ApprovalsError::Write(error) => error.into(),
            ApprovalsError::Io { action, path, error } => Self::io(action, &path, &error),
            ApprovalsError::Key(_) | ApprovalsError::Random(_) => {
                split(Exit::Unreadable, &error.to_string())
            }
            other => split(Exit::Refused, &other.to_string()),
        }
    }
}
