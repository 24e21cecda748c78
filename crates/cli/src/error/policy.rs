//! What the policy commands end with.

use wardkeep_monitor::policy::{CheckError, CompareError, DeskError};
use wardkeep_monitor::resolve::ResolveError;
use wardkeep_policy::audit::AuditError;
use wardkeep_policy::key::KeyError;
use wardkeep_policy::sign::SignError;
use wardkeep_policy::signed_set::SetError;
use wardkeep_policy::store::{SetStampError, StampError, StoreError};

use super::CliError;
use crate::exit::Exit;

/// The errors of the policy crate say what to do behind the last colon; here it is the hint.
fn split(exit: Exit, text: &str) -> CliError {
    match text.rsplit_once(": ") {
        Some((message, hint)) => CliError::new(exit, message, hint),
        None => CliError::new(exit, text, "see `wardkeep md status`"),
    }
}

impl From<SignError> for CliError {
    fn from(error: SignError) -> Self {
        match &error {
            SignError::Problems(problems) => Self::new(
                Exit::Suspicious,
                match problems.as_slice() {
                    [only] => only.to_string(),
                    [first, rest @ ..] => format!("{first} (and {} more)", rest.len()),
                    [] => "the policy cannot be signed".to_owned(),
                },
                "change the policy and sign it again; nothing was signed",
            ),
            SignError::Missing(_) => split(Exit::Missing, &error.to_string()),
            SignError::NoPerson | SignError::Confined | SignError::ChangedSince => {
                split(Exit::Refused, &error.to_string())
            }
            _ => split(Exit::Unreadable, &error.to_string()),
        }
    }
}

impl From<KeyError> for CliError {
    fn from(error: KeyError) -> Self {
        split(Exit::Unreadable, &error.to_string())
    }
}

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> Self {
        split(Exit::Unreadable, &error.to_string())
    }
}

impl From<AuditError> for CliError {
    fn from(error: AuditError) -> Self {
        split(Exit::Unreadable, &error.to_string())
    }
}

impl From<StampError> for CliError {
    fn from(error: StampError) -> Self {
        match error {
            StampError::Key(error) => error.into(),
            StampError::Sign(error) => error.into(),
            StampError::Store(error) => error.into(),
            other => split(Exit::Unreadable, &other.to_string()),
        }
    }
}

impl From<DeskError> for CliError {
    fn from(error: DeskError) -> Self {
        match error {
            DeskError::Stamp(error) => error.into(),
            DeskError::Set(error) => error.into(),
            DeskError::Store(error) => error.into(),
            other => split(Exit::Unreadable, &other.to_string()),
        }
    }
}

impl From<CompareError> for CliError {
    fn from(error: CompareError) -> Self {
        match error {
            CompareError::Store(error) => error.into(),
            CompareError::Audit(error) => error.into(),
            other => split(Exit::Unreadable, &other.to_string()),
        }
    }
}

impl From<SetError> for CliError {
    fn from(error: SetError) -> Self {
        match error {
            SetError::Sign(error) => error.into(),
            other => split(Exit::Refused, &other.to_string()),
        }
    }
}

impl From<SetStampError> for CliError {
    fn from(error: SetStampError) -> Self {
        match error {
            SetStampError::Key(error) => error.into(),
            SetStampError::Set(error) => error.into(),
            SetStampError::Store(error) => error.into(),
            other => split(Exit::Unreadable, &other.to_string()),
        }
    }
}

impl From<CheckError> for CliError {
    fn from(error: CheckError) -> Self {
        match error {
            CheckError::Store(error) => error.into(),
            CheckError::Resolve(error) => error.into(),
            other => split(Exit::Refused, &other.to_string()),
        }
    }
}

impl From<ResolveError> for CliError {
    fn from(error: ResolveError) -> Self {
        Self::refused(error.to_string(), "check that workspace and state directory are right")
    }
}
