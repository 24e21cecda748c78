//! What the commands on an agent's identity end with.

use wardkeep_identity::error::IdentityError;
use wardkeep_identity::history::HistoryError;
use wardkeep_identity::system::SystemError;
use wardkeep_monitor::identity::DeskError;

use super::CliError;
use crate::exit::Exit;

/// They say what to do behind the last colon, where they say it.
fn split(exit: Exit, text: &str, otherwise: &str) -> CliError {
    match text.rsplit_once(": ") {
        Some((message, hint)) if hint.contains('`') || hint.ends_with("again") => {
            CliError::new(exit, message, hint)
        }
        _ => CliError::new(exit, text, otherwise),
    }
}

impl From<IdentityError> for CliError {
    fn from(error: IdentityError) -> Self {
        let exit = match &error {
            IdentityError::Io { .. }
            | IdentityError::Damaged { .. }
            | IdentityError::Object { .. }
            | IdentityError::HalfDone { .. } => Exit::Unreadable,
            _ => Exit::Refused,
        };
        split(exit, &error.to_string(), "see `wardkeep status`")
    }
}

impl From<HistoryError> for CliError {
    fn from(error: HistoryError) -> Self {
        split(Exit::Refused, &error.to_string(), "see `wardkeep history`")
    }
}

impl From<SystemError> for CliError {
    fn from(error: SystemError) -> Self {
        split(Exit::Unreadable, &error.to_string(), "mend that, and run it again")
    }
}

impl From<DeskError> for CliError {
    fn from(error: DeskError) -> Self {
        match error {
            DeskError::Identity(error) => error.into(),
            DeskError::Store(error) => error.into(),
            DeskError::Policy(error) => error.into(),
            DeskError::Key(error) => error.into(),
            DeskError::Replaced(_) | DeskError::Moved(_) => Self::refused(
                error.to_string(),
                "put the folder back where it was, or look what stands there",
            ),
            error => split(Exit::Refused, &error.to_string(), "see `wardkeep status`"),
        }
    }
}
