//! `.security_audit.jsonl`: one JSON object a line, each naming the hash of the line before it.
//!
//! The log is there to be looked at; it never decides whether a policy is used. Bytes are its
//! unit: a damaged line is shown in its place and costs nothing else.

mod append;
mod entry;
mod read;

use std::io;
use std::path::PathBuf;

pub use append::{Appended, Locked, Prepared, Recovery, append};
pub use entry::{Action, Entry, Event, Source, parse_entry};
pub use read::{
    Chain, Follower, Line, Link, Reconciled, Report, Row, Segment, Summary, read, reconcile, scan,
};

/// The log, in the state directory.
pub const AUDIT_FILE: &str = ".security_audit.jsonl";
/// Exit code where the chain is broken.
pub const EXIT_BROKEN: u8 = 15;

/// Longest line that is parsed. Ours are below 8 KiB; what is longer is damaged.
pub(crate) const MAX_LINE: usize = 64 << 10;

/// Why the log cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuditError {
    /// It is a link, a folder, a pipe or the like.
    #[error("the audit log `{0}` is not a regular file: move it away, a new one is then started")]
    NotPlain(PathBuf),
    /// Another process holds its lock.
    #[error("the audit log `{0}` is locked by another process: find and end that process")]
    Locked(PathBuf),
    /// It was replaced again and again while it was opened.
    #[error("the audit log `{0}` is being replaced: find out by which process")]
    Replaced(PathBuf),
    /// The file system refused.
    #[error(
        "cannot {action} the audit log `{path}` ({error}): fix its owner, its mode or the disk"
    )]
    Io {
        /// What was tried.
        action: &'static str,
        /// The log.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}
