//! Files that someone else may have replaced by a link, a pipe or something endless: opened below
//! an open folder, without following or waiting, and read once up to a limit.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, statat};
use rustix::io::Errno;
use wardkeep_evidence::source::{SourceError, open_regular_at};

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unread {
    /// There is none.
    #[error("does not exist")]
    Missing,
    /// It is a symbolic link, or one stands on the way to it.
    #[error("is a link: put a plain file in its place")]
    Link,
    /// It is a folder, a pipe, a socket or a device.
    #[error("is not a regular file: put a plain file in its place")]
    NotRegular,
    /// It has too many bytes.
    #[error("is larger than {limit} bytes: shorten it")]
    TooLarge {
        /// Most bytes that are read.
        limit: u64,
    },
    /// The file system refused.
    #[error("cannot be read ({0}): fix its owner or mode")]
    Io(io::Error),
}

impl Unread {
    /// A stable word for logs.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Link => "link",
            Self::NotRegular => "not-regular",
            Self::TooLarge { .. } => "too-large",
            Self::Io(_) => "unreadable",
        }
    }
}

/// Opens a folder that the owner named: links on the way are the owner's and are followed.
pub(crate) fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

/// Opens a plain file directly below a folder.
pub(crate) fn open_below(folder: BorrowedFd<'_>, name: &str) -> Result<File, Unread> {
    match open_regular_at(folder, name) {
        Ok((file, _)) => Ok(file),
        Err(SourceError::NotRegular(_)) => Err(kind_of(folder, name)),
        Err(SourceError::Io { error, .. }) if error.kind() == io::ErrorKind::NotFound => {
            Err(Unread::Missing)
        }
        Err(SourceError::Io { error, .. }) => Err(Unread::Io(error)),
        Err(other) => Err(Unread::Io(io::Error::other(other.to_string()))),
    }
}

/// Reads a plain file below a folder, at most `limit` bytes. Of a name like `profiles/a.toml` no
/// part may be a link.
pub(crate) fn read_below(folder: impl AsFd, name: &str, limit: u64) -> Result<Vec<u8>, Unread> {
    let mut parts = name.split('/');
    let last = parts.next_back().unwrap_or_default();
    let mut inner: Option<OwnedFd> = None;
    for part in parts {
        let outer = inner.as_ref().map_or(folder.as_fd(), AsFd::as_fd);
        inner = Some(step_into(outer, part)?);
    }
    let file = open_below(inner.as_ref().map_or(folder.as_fd(), AsFd::as_fd), last)?;
    read_whole(file, limit)
}

/// Reads what is left of an open file, at most `limit` bytes.
pub(crate) fn read_whole(file: File, limit: u64) -> Result<Vec<u8>, Unread> {
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(Unread::Io)?;
    if bytes.len() as u64 > limit {
        return Err(Unread::TooLarge { limit });
    }
    Ok(bytes)
}

/// Reads a plain file of the state directory.
pub(crate) fn read_plain(path: &Path, limit: u64) -> Result<Vec<u8>, Unread> {
    let (folder, name) = split(path).ok_or(Unread::Missing)?;
    let folder = open_folder(folder).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Unread::Missing,
        _ => Unread::Io(error),
    })?;
    read_below(folder, name, limit)
}

/// The folder and the name of a path.
pub(crate) fn split(path: &Path) -> Option<(&Path, &str)> {
    let name = path.file_name()?.to_str()?;
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    Some((folder.unwrap_or(Path::new(".")), name))
}

/// How long a lock is waited for that another process holds: whoever can read a file can hold its
/// lock for ever.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(2);

/// Locks a file against other processes; `false` if another one did not let go of it.
pub(crate) fn lock(file: &File, patience: Duration) -> io::Result<bool> {
    let mut waited = Duration::ZERO;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(std::fs::TryLockError::WouldBlock) if waited < patience => {
                std::thread::sleep(PAUSE);
                waited += PAUSE;
            }
            Err(std::fs::TryLockError::WouldBlock) => return Ok(false),
            Err(std::fs::TryLockError::Error(error)) => return Err(error),
        }
    }
}

fn step_into(folder: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, Unread> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(folder, name, flags, Mode::empty()).map_err(|errno| match errno {
        Errno::NOENT => Unread::Missing,
        Errno::NOTDIR | Errno::LOOP => kind_of(folder, name),
        other => Unread::Io(other.into()),
    })
}

/// What stands in the place of a plain file.
fn kind_of(folder: BorrowedFd<'_>, name: &str) -> Unread {
    match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink => Unread::Link,
        _ => Unread::NotRegular,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_plain_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        fs::write(at.join("plain"), "abc").unwrap();
        fs::create_dir(at.join("sub")).unwrap();
        fs::write(at.join("sub/inner"), "def").unwrap();
        symlink(at.join("plain"), at.join("link")).unwrap();
        symlink(at.join("sub"), at.join("way")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            at.join("pipe"),
            FileType::Fifo,
            Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        let open = open_folder(at).unwrap();
        let read = |name: &str| read_below(&open, name, 3).map_err(|error| error.word());
        assert_eq!(read("plain").unwrap(), b"abc");
        assert_eq!(read("sub/inner").unwrap(), b"def");
        assert_eq!(read("none"), Err("missing"));
        assert_eq!(read("link"), Err("link"));
        assert_eq!(read("way/inner"), Err("link"));
        assert_eq!(read("pipe"), Err("not-regular"));
        assert_eq!(read("sub"), Err("not-regular"));
        fs::write(at.join("plain"), "abcd").unwrap();
        assert_eq!(read("plain"), Err("too-large"));
        assert_eq!(read_plain(&at.join("sub/inner"), 9).unwrap(), b"def");
    }
}
