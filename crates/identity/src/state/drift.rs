//! In what a file differs from what was approved.

use std::fmt;

use serde::Serializer;
use wardkeep_evidence::hash::BlobHash;

use crate::name::Name;
use crate::tree::Kind;

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Drift {
    /// Other bytes.
    Content {
        /// What was approved.
        expected: BlobHash,
        /// What is there.
        found: BlobHash,
    },
    /// Another owner.
    Owner {
        /// By number.
        expected: u32,
        /// By number.
        found: u32,
    },
    /// Another group.
    Group {
        /// By number.
        expected: u32,
        /// By number.
        found: u32,
    },
    /// Other permission bits.
    Mode {
        /// As it should be.
        #[serde(serialize_with = "octal")]
        expected: u32,
        /// As it is.
        #[serde(serialize_with = "octal")]
        found: u32,
    },
    /// No regular file.
    Kind {
        /// What it is.
        found: Kind,
    },
    /// More than one name.
    Links {
        /// How many.
        found: u64,
    },
    /// A folder on the way is none.
    Folder {
        /// Which one.
        at: Name,
        /// What it is.
        found: Kind,
    },
    /// Too large to be looked at.
    TooLarge {
        /// In bytes.
        size: u64,
        /// The most that is read.
        limit: u64,
    },
    /// Nothing holds it in its place any more.
    Unlocked,
    /// It could not be read.
    Unreadable {
        /// Why.
        why: String,
    },
}

impl fmt::Display for Drift {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Content { .. } => formatter.write_str("content is not what was approved"),
            Self::Owner { expected, found } => {
                write!(formatter, "owner is {found}, expected {expected}")
            }
            Self::Group { expected, found } => {
                write!(formatter, "group is {found}, expected {expected}")
            }
            Self::Mode { expected, found } => {
                write!(formatter, "mode is {found:o}, expected {expected:o}")
            }
            Self::Kind { found } => write!(formatter, "it is a {}, expected a file", found.word()),
            Self::Links { found } => write!(formatter, "it has {found} names, expected one"),
            Self::Folder { at, found } => {
                write!(formatter, "`{at}` is a {}, expected a folder", found.word())
            }
            Self::TooLarge { size, limit } => {
                write!(formatter, "it has {size} bytes, of which {limit} are read")
            }
            Self::Unlocked => formatter.write_str("it is not immutable any more"),
            Self::Unreadable { why } => write!(formatter, "it cannot be read: {why}"),
        }
    }
}

fn octal<S: Serializer>(mode: &u32, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{mode:o}"))
}
