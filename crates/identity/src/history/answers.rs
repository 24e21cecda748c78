//! What the history is given and what it answers.

use std::fmt;

use gix_hash::ObjectId;
use serde::Serialize;

use crate::name::Name;

/// What is wrong with a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "what", content = "id")]
pub enum Damage {
    /// The reference names no commit.
    Reference,
    /// An object is missing.
    Missing(String),
    /// An object is cut off, larger than allowed, of another kind, or not what its name says.
    Object(String),
}

impl fmt::Display for Damage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reference => formatter.write_str("its reference names no commit"),
            Self::Missing(id) => write!(formatter, "object {id} is missing"),
            Self::Object(id) => write!(formatter, "object {id} is not what its name says"),
        }
    }
}

/// The name of a commit.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CommitId(pub(super) ObjectId);

impl fmt::Display for CommitId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.to_hex().fmt(formatter)
    }
}

impl fmt::Debug for CommitId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "CommitId({self})")
    }
}

impl Serialize for CommitId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A file as it is from now on.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    /// Which one.
    pub name: &'a Name,
    /// Its content; `None` where it was removed.
    pub content: Option<Content<'a>>,
}

/// The content of a file.
#[derive(Debug, Clone, Copy)]
pub struct Content<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Whether it can be run.
    pub is_executable: bool,
}

/// What became of a commit.
#[derive(Debug, Serialize)]
pub struct Committed {
    /// The commit; `None` where nothing differs from the one before.
    pub commit: Option<CommitId>,
    /// Files that are not kept, with the reason.
    pub left_out: Vec<(Name, LeftOut)>,
    /// What could not be read of the commits before. Files of a folder that could not be read are
    /// missing from this commit until they are given again; without a readable commit before it, this
    /// is a first one.
    pub damage: Vec<Damage>,
}

/// Why a file is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeftOut {
    /// A part of its path is one that git reserves for itself.
    Reserved,
    /// It lies too deep.
    TooDeep,
    /// It is larger than [`MAX_FILE`](super::MAX_FILE).
    TooLarge,
    /// The bytes that were kept of it are missing or damaged.
    Unreadable,
}

/// Commits, newest first.
#[derive(Debug, Default, Serialize)]
pub struct Log {
    /// The commits.
    pub entries: Vec<LogEntry>,
    /// Whether there are more.
    pub more: bool,
    /// What ended the list before its time.
    pub damage: Option<Damage>,
}

/// One commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogEntry {
    /// Its name.
    pub commit: CommitId,
    /// When it was made, in seconds of the epoch.
    pub time: i64,
    /// What it says. Text as it was given: make it visible before it is shown.
    pub message: String,
    /// Where one file was asked for: its version then.
    pub file: Option<FileVersion>,
}

/// A version of a file, by the name of its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum FileVersion {
    /// It was there.
    There {
        /// The name that git gives its content.
        blob: String,
        /// Whether it could be run.
        is_executable: bool,
    },
    /// It was removed by this commit.
    Removed,
}

/// A file as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// The commit that it was read from.
    pub commit: CommitId,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Whether it could be run.
    pub is_executable: bool,
}
