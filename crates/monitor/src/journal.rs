//! The journal: one line an append, durable before it is acknowledged, never rewritten.
//!
//! A line holds an audit entry and its record together, so that no crash can leave one without
//! the other. Writers of many processes take turns by a lock on the folder; threads of one
//! process share one flush. What a crash or a hand leaves behind is never cut away: the next
//! writer goes on behind it and says in a recovery record what it found.

mod commit;
mod folder;
mod line;
mod recovery;
mod scan;
mod tail;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) use commit::nonce;
pub use commit::{Journal, Waiting};
pub use folder::{Folder, SegmentNumber};
pub use line::{JournalLine, entry_of, parse_line};
pub(crate) use line::{is_index, parse as parse_value, split as split_line};
pub use recovery::{Found, Region, recovery_regions};
pub use scan::{Position, scan};
use wardkeep_evidence::hash::{EntryHash, RecordId};
use wardkeep_evidence::record::NewRecordError;
use wardkeep_evidence::time::Timestamp;

/// Tells the time; passed in so that tests can set it.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// A clock that asks `now`.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Clock")
    }
}

/// How a journal is kept.
#[derive(Debug, Clone)]
pub struct Config {
    /// Tells the time of each entry.
    pub clock: Clock,
    /// A segment longer than this is followed by a new one.
    pub segment_bytes: u64,
    /// Whether segments get the append-only attribute, which needs privilege; where the file
    /// system has no such thing, they go without.
    pub append_only: bool,
}

impl Config {
    /// Segments of 64 MiB without the append-only attribute.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self { clock, segment_bytes: 64 << 20, append_only: false }
    }
}

/// Longest record line that can be appended; larger content belongs into a blob.
pub const MAX_RECORD_BYTES: usize = 4 << 20;

/// An acknowledged append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// Id of the record.
    pub id: RecordId,
    /// Position in the log.
    pub index: u64,
    /// Hash of its entry.
    pub entry: EntryHash,
    /// Where its line is.
    pub location: Location,
}

/// Where a line is in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    /// Number of the segment.
    pub segment: SegmentNumber,
    /// Offset of the line's first byte.
    pub offset: u64,
    /// Length without the newline.
    pub length: u64,
}

/// Why the journal cannot be used. Nothing that was acknowledged is lost by any of these.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The file system refused.
    #[error("cannot {action} `{path}`: {error}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        error: Arc<io::Error>,
    },
    /// The disk is full.
    #[error(
        "no space left to append to `{path}`: nothing acknowledged is lost; free some space and try again"
    )]
    Full {
        /// The segment.
        path: PathBuf,
    },
    /// Another process holds the lock.
    #[error(
        "the journal `{path}` is locked by another process for over {seconds} s: see who holds it with `fuser`"
    )]
    Busy {
        /// The folder.
        path: PathBuf,
        /// How long was waited.
        seconds: u64,
    },
    /// Not a folder that only its owner can reach.
    #[error("`{path}` {what}: choose another state directory or mend it by hand")]
    Unsafe {
        /// The folder or file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The record cannot be made.
    #[error(transparent)]
    Record(#[from] NewRecordError),
    /// The record is too long.
    #[error(
        "the record is {size} bytes, over the limit of {MAX_RECORD_BYTES}: put its content into a blob"
    )]
    TooLong {
        /// Its length.
        size: usize,
    },
    /// The record would speak for the journal.
    #[error("a recovery record is written by the journal alone: leave out `\"kind\":\"recovery\"`")]
    Reserved,
    /// No randomness for a nonce.
    #[error("the system gives no random bytes: {0}")]
    Random(String),
    /// The thread that wrote for this one ended without an answer.
    #[error("the append was given up inside the journal: try again")]
    Abandoned,
}

impl JournalError {
    pub(crate) fn io(action: &'static str, path: &Path, error: impl Into<io::Error>) -> Self {
        let error = error.into();
        if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
            return Self::Full { path: path.to_owned() };
        }
        Self::Io { action, path: path.to_owned(), error: Arc::new(error) }
    }
}

pub(crate) type Result<T> = std::result::Result<T, JournalError>;
