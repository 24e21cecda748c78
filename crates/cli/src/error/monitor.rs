//! What the reference monitor's errors become.

use wardkeep_monitor::monitor::MonitorError;

use super::CliError;
use crate::exit::Exit;

impl From<MonitorError> for CliError {
    fn from(error: MonitorError) -> Self {
        match error {
            MonitorError::Store(error) => error.into(),
            MonitorError::Index(error) => error.into(),
            MonitorError::Resolve(error) => error.into(),
            MonitorError::Approvals(error) => error.into(),
            MonitorError::Snapshot(error) => error.into(),
            MonitorError::Busy(state) => Self::new(
                Exit::Unreadable,
                format!("another wardkeep works on `{}`", state.display()),
                "ask it through its socket, or stop it with `wardkeep daemon stop`",
            ),
            other => Self::refused(other.to_string(), "see `wardkeep --help`"),
        }
    }
}
