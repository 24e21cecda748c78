//! Writing: under a lock, in one write, flushed; a damaged last line is closed off first.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;
use sha2::{Digest as _, Sha256};
use wardkeep_evidence::time::Timestamp;

use super::entry::{Action, Event, Source, parse_entry};
use super::{AuditError, MAX_LINE};
use crate::files::{PATIENCE, lock, split};
use crate::hash::LineHash;

/// How often the log may be replaced between opening and locking it.
const REOPENS: u32 = 16;
/// How far back the start of a damaged last line is looked for.
const MAX_DAMAGED: u64 = 16 << 20;

/// A damaged last line that was closed off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recovery {
    /// Its bytes.
    pub bytes: u64,
    /// Hash over them.
    pub hash: LineHash,
}

/// Lines that are ready to be written. The journal may record [`Prepared::hash`] before they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prepared {
    bytes: Vec<u8>,
    line: String,
    hash: LineHash,
    recovery: Option<Recovery>,
}

impl Prepared {
    /// The event's own line, without its newline.
    #[must_use]
    pub fn line(&self) -> &str {
        &self.line
    }

    /// Hash of that line.
    #[must_use]
    pub fn hash(&self) -> LineHash {
        self.hash
    }

    /// The damaged line that is closed off first.
    #[must_use]
    pub fn recovery(&self) -> Option<Recovery> {
        self.recovery
    }
}

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// Hash of the event's own line.
    pub hash: LineHash,
    /// The damaged line that was closed off first.
    pub recovery: Option<Recovery>,
}

/// Appends an event to the log at `path`, which is made if it is not there.
///
/// # Errors
/// When it is no plain file, is locked for too long, or cannot be written.
pub fn append(path: &Path, event: &Event, now: Timestamp) -> Result<Appended, AuditError> {
    let mut log = Locked::open(path)?;
    let prepared = log.prepare(event, now)?;
    log.commit(&prepared)
}

/// The log, locked against other processes until it is dropped.
#[derive(Debug)]
pub struct Locked {
    path: PathBuf,
    file: File,
    created: bool,
}

impl Locked {
    /// Opens and locks the log at `path`, which is made if it is not there.
    ///
    /// # Errors
    /// When it is no plain file, is locked for too long, or cannot be opened.
    pub fn open(path: &Path) -> Result<Self, AuditError> {
        Self::open_within(path, PATIENCE)
    }

    /// As [`Self::open`], waiting no longer than this for another process.
    ///
    /// # Errors
    /// As those of [`Self::open`].
    pub fn open_within(path: &Path, patience: Duration) -> Result<Self, AuditError> {
        for _ in 0..REOPENS {
            let (file, created) = open_file(path)?;
            match lock(&file, patience) {
                Ok(true) => {}
                Ok(false) => return Err(AuditError::Locked(path.to_owned())),
                Err(error) => return Err(io_error("lock", path, error)),
            }
            let held = file.metadata().map_err(|error| io_error("read", path, error))?;
            let named = path.symlink_metadata();
            if named.is_ok_and(|named| (named.dev(), named.ino()) == (held.dev(), held.ino())) {
                return Ok(Self { path: path.to_owned(), file, created });
            }
        }
        Err(AuditError::Replaced(path.to_owned()))
    }

    /// What [`Self::commit`] will write for an event.
    ///
    /// # Errors
    /// When the end of the log cannot be read.
    pub fn prepare(&self, event: &Event, now: Timestamp) -> Result<Prepared, AuditError> {
        let tail = self.tail().map_err(|error| io_error("read", &self.path, error))?;
        let mut bytes = Vec::new();
        if tail.torn {
            bytes.push(b'\n');
        }
        let mut previous = tail.hash;
        if let Some(recovery) = tail.damaged {
            let detail =
                format!("Previous entry corrupted ({} bytes), new chain segment", recovery.bytes);
            let line = Event::new(Action::ChainRecovery, Source::AuditSystem)
                .detail(detail)
                .line(now, previous);
            previous = LineHash::of(line.as_bytes());
            bytes.extend_from_slice(line.as_bytes());
            bytes.push(b'\n');
        }
        let line = event.line(now, previous);
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
        let hash = LineHash::of(line.as_bytes());
        Ok(Prepared { bytes, line, hash, recovery: tail.damaged })
    }

    /// Writes prepared lines in one piece and flushes them to disk.
    ///
    /// # Errors
    /// When they cannot be written or flushed.
    pub fn commit(&mut self, prepared: &Prepared) -> Result<Appended, AuditError> {
        let failed = |error| io_error("write", &self.path, error);
        (&self.file).write_all(&prepared.bytes).map_err(failed)?;
        self.file.sync_data().map_err(failed)?;
        if self.created {
            let folder = split(&self.path).map_or(Path::new("."), |(folder, _)| folder);
            File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)?;
            self.created = false;
        }
        Ok(Appended { hash: prepared.hash, recovery: prepared.recovery })
    }

    /// Writes a line that was prepared before and whose writing a crash cut short: the whole of it
    /// where the log ends with the line that it names, the rest of it where the log ends with its
    /// beginning. Says whether something was written; any other end is left as it is.
    ///
    /// # Errors
    /// When the end of the log cannot be read, or nothing be written.
    pub fn restore(&mut self, line: &str) -> Result<bool, AuditError> {
        let Ok(entry) = parse_entry(line.as_bytes()) else { return Ok(false) };
        let read = |error| io_error("read", &self.path, error);
        let tail = self.tail().map_err(read)?;
        let rest = if tail.torn {
            let length = self.file.metadata().map_err(read)?.len();
            let start = self.line_start(length).map_err(read)?;
            let Ok(size) = usize::try_from(length - start) else { return Ok(false) };
            if size > line.len() {
                return Ok(false);
            }
            let mut begun = vec![0u8; size];
            self.file.read_exact_at(&mut begun, start).map_err(read)?;
            match line.as_bytes().strip_prefix(begun.as_slice()) {
                Some(rest) => rest,
                None => return Ok(false),
            }
        } else if tail.damaged.is_none() && LineHash::from_hex(&entry.previous) == Some(tail.hash) {
            line.as_bytes()
        } else {
            return Ok(false);
        };
        let mut bytes = rest.to_vec();
        bytes.push(b'\n');
        let failed = |error| io_error("write", &self.path, error);
        (&self.file).write_all(&bytes).map_err(failed)?;
        self.file.sync_data().map_err(failed)?;
        Ok(true)
    }

    /// The last line, read from the end.
    fn tail(&self) -> io::Result<Tail> {
        let length = self.file.metadata()?.len();
        if length == 0 {
            return Ok(Tail { hash: LineHash::GENESIS, torn: false, damaged: None });
        }
        let mut last = [0u8; 1];
        self.file.read_exact_at(&mut last, length - 1)?;
        let torn = last != *b"\n";
        let end = if torn { length } else { length - 1 };
        let start = self.line_start(end)?;
        let bytes = end - start;
        let (hash, whole) = match usize::try_from(bytes) {
            Ok(size) if size <= MAX_LINE => {
                let mut line = vec![0u8; size];
                self.file.read_exact_at(&mut line, start)?;
                (LineHash::of(&line), parse_entry(&line).is_ok())
            }
            _ => (self.hash_range(start, end)?, false),
        };
        let damaged = (!whole).then_some(Recovery { bytes, hash });
        Ok(Tail { hash, torn, damaged })
    }

    /// Where the line that ends before `end` starts.
    fn line_start(&self, end: u64) -> io::Result<u64> {
        let mut block = vec![0u8; 8 << 10];
        let mut at = end;
        let last = end.saturating_sub(MAX_DAMAGED);
        while at > last {
            let from = at.saturating_sub(block.len() as u64).max(last);
            let size = usize::try_from(at - from).unwrap_or(block.len());
            self.file.read_exact_at(&mut block[..size], from)?;
            if let Some(newline) = memchr::memrchr(b'\n', &block[..size]) {
                return Ok(from + newline as u64 + 1);
            }
            at = from;
        }
        Ok(last)
    }

    fn hash_range(&self, start: u64, end: u64) -> io::Result<LineHash> {
        let mut hasher = Sha256::new();
        let mut block = vec![0u8; 64 << 10];
        let mut at = start;
        while at < end {
            let size = usize::try_from(end - at).map_or(block.len(), |left| left.min(block.len()));
            self.file.read_exact_at(&mut block[..size], at)?;
            hasher.update(&block[..size]);
            at += size as u64;
        }
        Ok(LineHash(hasher.finalize().into()))
    }
}

struct Tail {
    hash: LineHash,
    torn: bool,
    damaged: Option<Recovery>,
}

fn open_file(path: &Path) -> Result<(File, bool), AuditError> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    options.read(true).append(true).mode(0o600);
    options.custom_flags(i32::try_from(flags.bits()).unwrap_or(0));
    let (file, created) = match options.clone().create_new(true).open(path) {
        Ok(file) => (file, true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match options.open(path) {
            Ok(file) => (file, false),
            Err(error) => return Err(open_error(path, error)),
        },
        Err(error) => return Err(open_error(path, error)),
    };
    match file.metadata() {
        Ok(metadata) if metadata.is_file() => Ok((file, created)),
        Ok(_) => Err(AuditError::NotPlain(path.to_owned())),
        Err(error) => Err(io_error("open", path, error)),
    }
}

fn open_error(path: &Path, error: io::Error) -> AuditError {
    let plain = path.symlink_metadata().is_ok_and(|metadata| metadata.is_file());
    if !plain && error.kind() != io::ErrorKind::NotFound && path.symlink_metadata().is_ok() {
        return AuditError::NotPlain(path.to_owned());
    }
    io_error("open", path, error)
}

pub(super) fn io_error(action: &'static str, path: &Path, error: io::Error) -> AuditError {
    AuditError::Io { action, path: path.to_owned(), error }
}
