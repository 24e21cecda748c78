//! The file anchor: seals appended to a file that belongs to another user.
//!
//! It is worth as much as the file is out of our reach, so every receipt says whose the file is and
//! whether it can only grow. Nothing in the file is believed that the log's key did not sign.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use wardkeep_evidence::checkpoint::Checkpoint;
use wardkeep_evidence::note::Note;
use wardkeep_evidence::seal::{Frame, LogPublic, frame, split_frames};

use super::storage::{self, Lock};
use super::{Anchor, AnchorError, MAX_SEAL_BYTES, Receipt, Submission};

/// How much of the file's end is compared with a new seal, in bytes.
pub const MAX_TAIL_BYTES: u64 = 32 * 1024 * 1024;

// Each costs about 50 µs, and anybody who may append can add more of them.
const MAX_FORGED_HEADS: usize = 10_000;

/// A file of another user.
#[derive(Debug, Clone)]
pub struct FileAnchor {
    name: String,
    path: PathBuf,
}

impl FileAnchor {
    /// An anchor in the file at an absolute path.
    pub fn new(name: &str, path: &Path) -> Result<Self, AnchorError> {
        if path.is_absolute() {
            return Ok(Self { name: name.to_owned(), path: path.to_owned() });
        }
        Err(AnchorError::refused(name, format!("{} must be an absolute path", quoted(path))))
    }

    /// Makes the file, which then belongs to this user and is a weak anchor until it is given away.
    pub fn create(&self) -> Result<(), AnchorError> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        rustix::fs::open(&self.path, flags, Mode::RUSR | Mode::WUSR)
            .map(drop)
            .map_err(|error| self.open_error(error))
    }

    /// Opens the file for reading and appending, if it is one that can be an anchor.
    fn open(&self) -> Result<File, AnchorError> {
        // Looked at before it is opened, since opening a device or a FIFO can have effects.
        let found = rustix::fs::statat(rustix::fs::CWD, &self.path, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|error| self.open_error(error))?;
        self.check_type(FileType::from_raw_mode(found.st_mode))?;
        let flags = OFlags::RDWR
            | OFlags::APPEND
            | OFlags::NOFOLLOW
            | OFlags::NONBLOCK
            | OFlags::NOCTTY
            | OFlags::CLOEXEC;
        let file = rustix::fs::open(&self.path, flags, Mode::empty()).map(File::from);
        let file = file.map_err(|error| self.open_error(error))?;
        let opened = rustix::fs::fstat(&file).map_err(|error| self.open_error(error))?;
        self.check_type(FileType::from_raw_mode(opened.st_mode))?;
        if opened.st_nlink != 1 {
            let reason = format!("{} has more than one name; give one of its own", self.quoted());
            return Err(AnchorError::refused(&self.name, reason));
        }
        Ok(file)
    }

    fn check_type(&self, file_type: FileType) -> Result<(), AnchorError> {
        let what = match file_type {
            FileType::RegularFile => return Ok(()),
            FileType::Symlink => "a symbolic link",
            FileType::Directory => "a folder",
            _ => "not a regular file",
        };
        let reason = format!("{} is {what}; give the path of a plain file", self.quoted());
        Err(AnchorError::refused(&self.name, reason))
    }

    fn open_error(&self, error: rustix::io::Errno) -> AnchorError {
        use rustix::io::Errno;
        let advice = match error {
            Errno::NOENT | Errno::NOTDIR => "does not exist; let its owner make it",
            Errno::LOOP => "is a symbolic link; give the path of a plain file",
            Errno::EXIST => "exists already; add it without making it",
            Errno::ACCESS | Errno::PERM => {
                "may not be read and appended to; let its owner allow both to this user"
            }
            _ => {
                let reason = format!("{}: {}", self.quoted(), io::Error::from(error));
                return AnchorError::unreachable(&self.name, reason);
            }
        };
        AnchorError::refused(&self.name, format!("{} {advice}", self.quoted()))
    }

    fn io_error(&self, error: &io::Error) -> AnchorError {
        AnchorError::unreachable(&self.name, format!("{}: {error}", self.quoted()))
    }

    fn quoted(&self) -> String {
        quoted(&self.path)
    }

    /// Reads the end of the file, and says whether that was all of it.
    fn tail(&self, file: &File) -> Result<(Vec<u8>, bool), AnchorError> {
        let length = file.metadata().map_err(|error| self.io_error(&error))?.len();
        let begin = length.saturating_sub(MAX_TAIL_BYTES);
        let wanted = usize::try_from(length - begin).unwrap_or_default();
        let mut bytes = vec![0; wanted];
        file.read_exact_at(&mut bytes, begin).map_err(|error| self.io_error(&error))?;
        Ok((bytes, begin == 0))
    }

    /// The heads of the largest size the log's key signed; several only when the log forked.
    fn largest_heads(&self, tail: &[u8], log: &LogPublic) -> Result<Vec<Checkpoint>, AnchorError> {
        let origin = log.origin();
        let mut seen = HashSet::new();
        let mut candidates = Vec::new();
        for text in notes(tail).filter(|text| seen.insert(*text)) {
            let Ok(note) = Note::parse(text) else { continue };
            match Checkpoint::parse(&note.text) {
                Ok(checkpoint) if checkpoint.origin == origin => {
                    candidates.push((checkpoint, note))
                }
                _ => {}
            }
        }
        candidates.sort_by_key(|(checkpoint, _)| std::cmp::Reverse(checkpoint.size));
        let key = log.log_key();
        let mut forged = 0;
        let mut heads: Vec<Checkpoint> = Vec::new();
        for (checkpoint, note) in candidates {
            if heads.first().is_some_and(|head| head.size > checkpoint.size) {
                break;
            }
            if heads.iter().any(|head| head.root == checkpoint.root) {
                continue;
            }
            if key.verify(&note).is_ok() {
                heads.push(checkpoint);
                continue;
            }
            forged += 1;
            if forged > MAX_FORGED_HEADS {
                let reason = format!(
                    "{} is full of heads the log did not sign; look at who writes to it",
                    self.quoted()
                );
                return Err(AnchorError::format(&self.name, reason));
            }
        }
        Ok(heads)
    }

    /// How far the file can be trusted.
    fn describe(&self, file: &File, whole: bool) -> Result<String, AnchorError> {
        let metadata = file.metadata().map_err(|error| self.io_error(&error))?;
        let own = rustix::process::geteuid();
        let append_only = is_append_only(file);
        let growth = match append_only {
            Some(true) => "append-only",
            Some(false) => "not append-only",
            None => "append-only unknown",
        };
        let mut detail = format!("owned by uid {}, {growth}", metadata.uid());
        if metadata.uid() == own.as_raw() {
            detail.push_str("; weak: owned by the same user");
        } else if own.is_root() {
            detail.push_str("; weak: this process is root and could change it");
        } else if append_only != Some(true) {
            detail.push_str("; weak: this user can cut it off, let its owner set `chattr +a`");
        }
        if !whole {
            detail.push_str("; only its last 32 MiB were compared, start a new file");
        }
        Ok(detail)
    }
}

impl Anchor for FileAnchor {
    fn name(&self) -> &str {
        &self.name
    }

    fn kind(&self) -> &'static str {
        "file"
    }

    fn put(&mut self, submission: &Submission<'_>, now: u64) -> Result<Receipt, AnchorError> {
        submission.check(&self.name)?;
        let lock = Lock::attempt(self.open()?).map_err(|error| self.io_error(&error))?;
        let mut lock = lock.ok_or_else(|| {
            let reason = format!("{} is locked by another process", self.quoted());
            AnchorError::unreachable(&self.name, reason)
        })?;
        let file = lock.file();
        let (tail, whole) = self.tail(file)?;
        for head in self.largest_heads(&tail, submission.log)? {
            submission.compare(&self.name, &head)?;
        }
        let text = submission.note.to_string();
        if !notes(&tail).any(|held| held == text) {
            storage::write_frame(file, &frame(submission.note))
                .map_err(|error| self.io_error(&error))?;
        }
        Ok(Receipt {
            anchor: self.name.clone(),
            size: submission.checkpoint.size,
            at: now,
            cosigned: None,
            detail: self.describe(file, whole)?,
        })
    }

    fn latest(&mut self, log: &LogPublic) -> Result<Option<u64>, AnchorError> {
        let (tail, _) = self.tail(&self.open()?)?;
        Ok(self.largest_heads(&tail, log)?.first().map(|head| head.size))
    }
}

/// The texts of the framed notes of a size we would write ourselves.
fn notes(tail: &[u8]) -> impl Iterator<Item = &str> {
    split_frames(tail).into_iter().filter_map(|frame| match frame {
        Frame::Note { text, .. } => Some(text).filter(|text| text.len() <= MAX_SEAL_BYTES),
        Frame::Damaged { .. } => None,
    })
}

/// Whether the file can only grow; `None` where the file system does not say.
#[cfg(target_os = "linux")]
fn is_append_only(file: &File) -> Option<bool> {
    use rustix::fs::{StatxAttributes, StatxFlags};
    let found = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS).ok()?;
    let known = found.stx_attributes_mask.contains(StatxAttributes::APPEND);
    known.then(|| found.stx_attributes.contains(StatxAttributes::APPEND))
}

#[cfg(not(target_os = "linux"))]
fn is_append_only(_file: &File) -> Option<bool> {
    None
}

fn quoted(path: &Path) -> String {
    format!("`{}`", super::shown(&path.to_string_lossy()))
}
