//! Where a bundle is read from: a directory or a zip, both hostile.

mod directory;
mod zipped;

use std::io::{self, Read};
use std::path::Path;

pub use directory::{DirectorySource, open_regular_at};
pub use zipped::ZipSource;

use crate::hash::BlobHash;

/// Most entries that a zip may have.
pub const MAX_ENTRIES: usize = 100_000;
/// Most bytes that one file of a bundle may have.
pub const MAX_FILE_BYTES: u64 = 1 << 30;
/// Most bytes that a zip may unpack to.
pub const MAX_TOTAL_BYTES: u64 = 10 << 30;
/// Most bytes that a zip entry over 1 MiB may unpack to for each packed byte: deflate of the
/// most repetitive log stays below this, bombs do not.
pub const MAX_RATIO: u64 = 1000;

/// Name of the manifest in a bundle.
pub const MANIFEST: &str = "manifest.json";
/// Name of the records in a bundle.
pub const RECORDS: &str = "records.jsonl";
/// Name of the audit log in a bundle.
pub const AUDIT_LOG: &str = "audit-log.jsonl";
/// Folder of the blobs in a bundle.
pub const BLOBS: &str = "blobs";
/// Folder of the seals in a bundle.
pub const SEALS: &str = "seals";
/// Placeholder that keeps an empty `blobs/` alive; not a blob.
pub const KEEP: &str = ".keep";

/// Why a bundle cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The file system refused.
    #[error("cannot read `{name}`: {error}")]
    Io {
        /// What was to be read.
        name: String,
        /// What the system said.
        error: io::Error,
    },
    /// A link, a device, a pipe, or a folder where a file should be.
    #[error("`{0}` is not a regular file: links, devices and pipes are not followed")]
    NotRegular(String),
    /// Larger than any file of a bundle may be.
    #[error("`{name}` is {size} bytes, over the limit of {limit}: it was not read")]
    TooLarge {
        /// What was to be read.
        name: String,
        /// Its size.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// Neither a directory nor a zip.
    #[error("`{0}` is neither a bundle directory nor a zip: give the path of one")]
    NotABundle(String),
    /// The archive is damaged or built to harm.
    #[error("the archive is refused: {0}")]
    Archive(String),
}

impl SourceError {
    pub(crate) fn io(name: impl Into<String>, error: io::Error) -> Self {
        Self::Io { name: name.into(), error }
    }

    /// Whether the file is simply not there.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Io { error, .. } if error.kind() == io::ErrorKind::NotFound)
    }
}

/// A file found in a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Path inside the bundle, with `/`.
    pub name: String,
    /// Length in bytes.
    pub size: u64,
    /// Whether it is a regular file.
    pub regular: bool,
}

/// A blob by its name and size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlobMember {
    /// Its name, which should be the hash of its bytes.
    pub hash: BlobHash,
    /// Length in bytes.
    pub size: u64,
}

/// A bundle that can be read.
pub trait Source: std::fmt::Debug {
    /// Every file, at most one folder deep, in byte order of the names.
    ///
    /// # Errors
    /// When the bundle cannot be listed.
    fn members(&mut self) -> Result<Vec<Member>, SourceError>;

    /// Opens a file for reading from its start.
    ///
    /// # Errors
    /// When it is missing, not a regular file, or over the limit.
    fn open(&mut self, name: &str) -> Result<Box<dyn Read + '_>, SourceError>;
}

/// Opens the bundle at `path`, a directory or a zip.
///
/// # Errors
/// When it is neither, or cannot be read.
pub fn open(path: &Path) -> Result<Box<dyn Source>, SourceError> {
    let shown = path.display().to_string();
    let metadata = std::fs::metadata(path).map_err(|error| SourceError::io(&shown, error))?;
    if metadata.is_dir() {
        Ok(Box::new(DirectorySource::open(path)?))
    } else if metadata.is_file() {
        Ok(Box::new(ZipSource::open(path)?))
    } else {
        Err(SourceError::NotABundle(shown))
    }
}

/// Whether `name` may stand in a bundle: relative, no `.` or `..`, no backslash, no control
/// character, at most one folder deep.
pub(crate) fn is_safe_name(name: &str) -> bool {
    let mut parts = 0;
    for part in name.split('/') {
        parts += 1;
        if part.is_empty() || part == "." || part == ".." || part.len() > 255 {
            return false;
        }
    }
    parts <= 2
        && !name.contains(['\\', ':', '\u{fffd}'])
        && !name.chars().any(|character| character.is_control())
}
