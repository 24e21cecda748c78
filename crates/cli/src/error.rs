//! What a command ends with when it cannot do what was asked, and what to do next.

mod anchor;
mod daemon;
mod identity;
mod monitor;
mod policy;
mod sandbox;
mod snapshot;

use std::io;
use std::path::Path;

use wardkeep_evidence::bundle::BundleError;
use wardkeep_evidence::record::{NewRecordError, UnknownName};
use wardkeep_evidence::source::{MANIFEST, SourceError};
use wardkeep_monitor::export::ExportError;
use wardkeep_monitor::index::{IndexError, LookError};
use wardkeep_monitor::journal::{JournalError, MAX_RECORD_BYTES};
use wardkeep_monitor::proof::ProveError;
use wardkeep_monitor::prove::ReportError;
use wardkeep_monitor::sealer::SealerError;
use wardkeep_monitor::store::StoreError;

use crate::exit::Exit;

/// A failure for the person at the terminal. The texts may hold anything: [`crate::ui::Ui`] makes
/// them harmless when it prints them.
#[derive(Debug)]
pub(crate) struct CliError {
    pub(crate) exit: Exit,
    /// One line, lower case, what came from outside in backticks.
    pub(crate) message: String,
    /// What to do next.
    pub(crate) hint: String,
}

impl CliError {
    pub(crate) fn new(exit: Exit, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { exit, message: message.into(), hint: hint.into() }
    }

    /// A value on the command line that cannot be used.
    pub(crate) fn refused(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(Exit::Refused, message, hint)
    }

    /// The file system said no to `action` on `path`.
    pub(crate) fn io(action: &str, path: &Path, error: &io::Error) -> Self {
        io_error(action, &path.display().to_string(), error)
    }
}

impl From<SourceError> for CliError {
    fn from(error: SourceError) -> Self {
        let unreadable = |message, hint: &str| Self::new(Exit::Unreadable, message, hint);
        match error {
            SourceError::Io { name, error }
                if name == MANIFEST && error.kind() == io::ErrorKind::NotFound =>
            {
                unreadable(
                    format!("not a bundle: it has no `{MANIFEST}`"),
                    "give the path of a bundle, or make one with `wardkeep aegx init`",
                )
            }
            SourceError::Io { name, error } => io_error("read", &name, &error),
            SourceError::NotRegular(name) => unreadable(
                format!("`{name}` is not a regular file"),
                "give a regular file: links inside a bundle, devices and pipes are not read",
            ),
            SourceError::TooLarge { name, size, limit } => unreadable(
                format!("`{name}` has {size} bytes, over the limit of {limit}"),
                "keep large content outside the bundle, and its hash and place in a record",
            ),
            SourceError::NotABundle(path) => unreadable(
                format!("`{path}` is neither a bundle directory nor a zip"),
                "give the path of a bundle",
            ),
            SourceError::Archive(why) => unreadable(
                format!("the archive is refused: {why}"),
                "get it again from where it came from, and do not unpack it with other tools",
            ),
            other => unreadable(other.to_string(), "check the bundle and run it again"),
        }
    }
}

impl From<BundleError> for CliError {
    fn from(error: BundleError) -> Self {
        let unreadable = |message, hint: &str| Self::new(Exit::Unreadable, message, hint);
        match error {
            BundleError::Io { action, path, error } => io_error(action, &path, &error),
            BundleError::Exists(path) => Self::refused(
                format!("`{path}` exists already"),
                "choose another path, or remove it first",
            ),
            BundleError::Locked(path) => unreadable(
                format!("`{path}` is in use by another process"),
                "run it again when that process is done",
            ),
            BundleError::Damaged(what) => unreadable(
                format!("the bundle is damaged: {what}"),
                "see what is wrong with `wardkeep aegx verify`, and start a new bundle",
            ),
            BundleError::Record(error) => error.into(),
            BundleError::ParentUnknown(id) => {
                Self::refused(format!("the parent {id} is not in the bundle"), "add it first")
            }
            BundleError::BlobUnknown(hash) => Self::refused(
                format!("the blob {hash} is not in the bundle"),
                "add it first with `wardkeep aegx add-blob`",
            ),
            BundleError::BlobSize { hash, actual, given } => Self::refused(
                format!("the blob {hash} has {actual} bytes, not {given}"),
                format!("give `--size {actual}`"),
            ),
            BundleError::Duplicate(id) => Self::refused(
                format!("an equal record {id} is in the bundle"),
                "make this one differ, for example by a `nonce` in --meta",
            ),
            BundleError::Source(error) => error.into(),
            BundleError::Zip(why) => unreadable(
                format!("cannot write the zip: {why}"),
                "check the bundle with `wardkeep aegx verify`, and that the disk has room",
            ),
            other => unreadable(other.to_string(), "check the bundle and run it again"),
        }
    }
}

impl From<JournalError> for CliError {
    fn from(error: JournalError) -> Self {
        let unreadable = |message, hint: &str| Self::new(Exit::Unreadable, message, hint);
        match error {
            JournalError::Io { action, path, error } => Self::io(action, &path, &error),
            JournalError::Full { path } => unreadable(
                format!("no space left to append to `{}`", path.display()),
                "free some space and run it again; nothing that was recorded is lost",
            ),
            JournalError::Busy { path, seconds } => unreadable(
                format!("`{}` is locked by another process for over {seconds} s", path.display()),
                "see who holds the lock with `fuser`, and end that process if it hangs",
            ),
            JournalError::Unsafe { path, what } => unreadable(
                format!("`{}` {what}", path.display()),
                "choose another state directory, or mend it by hand",
            ),
            JournalError::Record(error) => error.into(),
            JournalError::Reserved => Self::refused(
                "a recovery record is written by the journal alone",
                "leave `kind` out, or give another",
            ),
            JournalError::TooLong { size } => Self::refused(
                format!("the record is {size} bytes, over the limit of {MAX_RECORD_BYTES}"),
                "put its content into a file and give it with --file",
            ),
            other => unreadable(other.to_string(), "run it again"),
        }
    }
}

impl From<SealerError> for CliError {
    fn from(error: SealerError) -> Self {
        let unreadable = |message, hint: &str| Self::new(Exit::Unreadable, message, hint);
        match error {
            SealerError::Io { action, path, error } => Self::io(action, &path, &error),
            SealerError::Key { path, what } => unreadable(
                format!("`{}` {what}", path.display()),
                "restore it from a backup, or begin a new log in another state directory",
            ),
            SealerError::Truncated { sealed, found } => Self::new(
                Exit::Failed,
                format!("the journal has {found} records, and {sealed} were sealed"),
                "records are lost: see `wardkeep evidence verify`, and compare with a backup",
            ),
            SealerError::Journal(error) => error.into(),
            SealerError::Write(error) => error.into(),
            other => unreadable(other.to_string(), "run it again"),
        }
    }
}

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Journal(error) => error.into(),
            StoreError::Seal(error) => error.into(),
            StoreError::Write(error) => error.into(),
            StoreError::Absent(path) => Self::new(
                Exit::Unreadable,
                format!("there is no evidence in `{}`", path.display()),
                "protect an agent with `wardkeep install`, or name another --state-dir",
            ),
            StoreError::Newer { path, found } => Self::new(
                Exit::Unreadable,
                format!(
                    "`{}` has state version {found}, which is newer than this program",
                    path.display()
                ),
                "use a newer wardkeep",
            ),
            other => Self::new(Exit::Unreadable, other.to_string(), "run it again"),
        }
    }
}

impl From<ProveError> for CliError {
    fn from(error: ProveError) -> Self {
        match error {
            ProveError::Unknown(id) => Self::refused(
                format!("the record {id} is not in the journal"),
                "see the ids with `wardkeep log`",
            ),
            ProveError::Unsealed { id, sealed } => Self::refused(
                format!("the record {id} is not sealed yet, {sealed} records are"),
                "there is one seal in 15 minutes: see `wardkeep evidence seal` when the next is due",
            ),
            ProveError::RootDiffers => Self::new(
                Exit::Failed,
                "the journal does not have the root that was sealed",
                "see what was changed with `wardkeep evidence verify`",
            ),
            ProveError::Store(error) => error.into(),
            other => Self::new(
                Exit::Failed,
                other.to_string(),
                "see what is wrong with `wardkeep evidence verify`",
            ),
        }
    }
}

impl From<ExportError> for CliError {
    fn from(error: ExportError) -> Self {
        match error {
            ExportError::Store(error) => error.into(),
            ExportError::Bundle(error) => error.into(),
            ExportError::Unknown(id) => ProveError::Unknown(id).into(),
            ExportError::RootDiffers => ProveError::RootDiffers.into(),
            other => Self::new(Exit::Unreadable, other.to_string(), "run it again"),
        }
    }
}

impl From<IndexError> for CliError {
    fn from(error: IndexError) -> Self {
        match error {
            IndexError::Journal(error) => error.into(),
            other => Self::new(
                Exit::Unreadable,
                other.to_string(),
                "make the index anew with `wardkeep evidence reindex`",
            ),
        }
    }
}

impl From<LookError> for CliError {
    fn from(error: LookError) -> Self {
        match error {
            LookError::Index(error) => error.into(),
            LookError::Unknown(id) => ProveError::Unknown(id).into(),
            other => Self::new(
                Exit::Unreadable,
                other.to_string(),
                "see whether the journal holds with `wardkeep evidence verify`",
            ),
        }
    }
}

impl From<ReportError> for CliError {
    fn from(error: ReportError) -> Self {
        match error {
            ReportError::Store(error) => error.into(),
            ReportError::Look(error) => error.into(),
            other => Self::new(Exit::Unreadable, other.to_string(), "run it again"),
        }
    }
}

impl From<NewRecordError> for CliError {
    fn from(error: NewRecordError) -> Self {
        match error {
            NewRecordError::Timestamp => Self::refused(
                "the meta of a record needs an RFC 3339 timestamp `ts`",
                r#"add one like "ts":"2026-01-31T12:00:00Z" to --meta"#,
            ),
            other => Self::refused(other.to_string(), "change the record and run it again"),
        }
    }
}

impl From<UnknownName> for CliError {
    fn from(error: UnknownName) -> Self {
        let text = error.to_string();
        // The names behind the last colon are the format's own, so hostile text cannot move it.
        let (message, hint) = text.rsplit_once(": ").unwrap_or((&text, "see --help"));
        Self::refused(message, hint)
    }
}

fn io_error(action: &str, path: &str, error: &io::Error) -> CliError {
    let hint = match error.kind() {
        io::ErrorKind::NotFound => "check that the path is right",
        io::ErrorKind::PermissionDenied => "run it as the owner, or change the mode",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "make room on the disk and run it again; what was there before is unchanged"
        }
        io::ErrorKind::ReadOnlyFilesystem => "choose a path that can be written",
        io::ErrorKind::NotADirectory => "give a directory there",
        io::ErrorKind::IsADirectory => "give a file there",
        _ => "check the path and the disk, and run it again",
    };
    CliError::new(Exit::Unreadable, format!("cannot {action} `{path}`: {}", reason(error)), hint)
}

/// What the system said, as a part of a sentence.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    let mut characters = text.chars();
    characters
        .next()
        .map_or_else(String::new, |first| first.to_lowercase().chain(characters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use wardkeep_evidence::record::RecordType;

    #[test]
    fn hostile_names_do_not_move_the_hint() {
        let error = CliError::from("x`: give one of nothing".parse::<RecordType>().unwrap_err());
        assert_eq!(error.message, "unknown record type `x`: give one of nothing`");
        assert!(error.hint.starts_with("give one of SessionStart, "));
    }

    #[test]
    fn system_errors_read_as_part_of_a_sentence() {
        let error = io::Error::from_raw_os_error(2);
        assert_eq!(reason(&error), "no such file or directory");
    }
}
