//! What the snapshot commands end with.

use wardkeep_monitor::snapshot::SnapshotError;

use super::CliError;
use crate::exit::Exit;

impl From<SnapshotError> for CliError {
    fn from(error: SnapshotError) -> Self {
        let exit = match error {
            SnapshotError::Io { action, path, error } => return Self::io(action, &path, &error),
            SnapshotError::Store(error) => return error.into(),
            SnapshotError::Moved { .. }
            | SnapshotError::Unknown { .. }
            | SnapshotError::NoRollback
            | SnapshotError::NoId { .. }
            | SnapshotError::ChangedSince { .. }
            | SnapshotError::Ambiguous { .. } => Exit::Refused,
            SnapshotError::Doubled { .. }
            | SnapshotError::ManifestSwapped { .. }
            | SnapshotError::BlobSwapped { .. }
            | SnapshotError::BlobMissing { .. }
            | SnapshotError::Abandoned { .. }
            | SnapshotError::Plan { .. } => Exit::Failed,
            _ => Exit::Unreadable,
        };
        // They say what to do behind the last colon.
        let text = error.to_string();
        match text.rsplit_once(": ") {
            Some((message, hint)) => Self::new(exit, message, hint),
            None => Self::new(exit, text, "see `wardkeep snapshot list`"),
        }
    }
}
