//! What anchors and witnesses say when they cannot do what was asked.

use wardkeep_monitor::anchor::AnchorError;
use wardkeep_monitor::anchor::outbox::{ConfigError, OutboxError};
use wardkeep_monitor::anchor::server::{LedgerError, ServerError};

use super::CliError;
use crate::exit::Exit;

impl From<AnchorError> for CliError {
    fn from(error: AnchorError) -> Self {
        let exit = match &error {
            AnchorError::Rollback { .. } | AnchorError::Fork { .. } => Exit::Failed,
            AnchorError::Local { .. } => Exit::Unreadable,
            _ => Exit::Refused,
        };
        told(exit, &error, "check how the anchor is set up")
    }
}

impl From<OutboxError> for CliError {
    fn from(error: OutboxError) -> Self {
        match error {
            OutboxError::File { path, source } => Self::io("use", &path, &source),
            OutboxError::Config(error) => error.into(),
            OutboxError::Anchor(error) => error.into(),
            OutboxError::Busy => told(Exit::Unreadable, &error, "run it again"),
        }
    }
}

impl From<ConfigError> for CliError {
    fn from(error: ConfigError) -> Self {
        let unknown = "see the anchors with `wardkeep evidence anchor list`";
        match &error {
            ConfigError::Unknown { name } => {
                Self::refused(format!("there is no anchor `{name}`"), unknown)
            }
            ConfigError::Format { .. } | ConfigError::Version { .. } => {
                told(Exit::Unreadable, &error, unknown)
            }
            _ => told(Exit::Refused, &error, unknown),
        }
    }
}

impl From<ServerError> for CliError {
    fn from(error: ServerError) -> Self {
        match error {
            ServerError::Ledger(LedgerError::Directory { path, source }) => {
                Self::io("use", &path, &source)
            }
            other => told(Exit::Unreadable, &other, "check the folder of the witness"),
        }
    }
}

/// These errors end with what to do next, behind the last semicolon, in words of their own.
fn told(exit: Exit, error: &dyn std::fmt::Display, otherwise: &str) -> CliError {
    let text = error.to_string();
    let (message, hint) = text.rsplit_once("; ").unwrap_or((&text, otherwise));
    CliError::new(exit, message, hint)
}
