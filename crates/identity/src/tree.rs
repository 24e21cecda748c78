//! A workspace held open, and what is read below it: no step follows a link, waits for a pipe, leaves
//! the folder or crosses into another file system, whatever stands there.

mod walk;

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat, StatxAttributes, StatxFlags, fstat,
    openat2, statat, statx,
};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};
use wardkeep_evidence::hash::BlobHash;

pub(crate) use self::walk::{Found, Hold, walk};
use crate::error::{IdentityError, Result};
use crate::name::Name;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(SAFE);
const SAFE: OFlags =
    OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);
const BENEATH: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_XDEV);

/// How much is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one file.
    pub file: u64,
    /// Bytes of all files that one operation holds in memory.
    pub total: u64,
    /// Files that are tracked.
    pub files: usize,
    /// Entries of folders that are looked at.
    pub entries: usize,
    /// Folders in one another.
    pub depth: usize,
    /// Threads that look.
    pub threads: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            file: 16 << 20,
            total: 256 << 20,
            files: 1 << 20,
            entries: 1 << 22,
            depth: 128,
            threads: 4,
        }
    }
}

/// What something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A named pipe.
    Pipe,
    /// A socket.
    Socket,
    /// A device.
    Device,
}

impl Kind {
    /// For a sentence.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Folder => "folder",
            Self::Link => "link",
            Self::Pipe => "pipe",
            Self::Socket => "socket",
            Self::Device => "device",
        }
    }

    pub(crate) fn of(mode: u32) -> Self {
        match FileType::from_raw_mode(mode) {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Folder,
            FileType::Symlink => Self::Link,
            FileType::Fifo => Self::Pipe,
            FileType::Socket => Self::Socket,
            _ => Self::Device,
        }
    }
}

/// What the system says of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// What it is.
    pub kind: Kind,
    /// Device and inode.
    pub id: (u64, u64),
    /// In bytes.
    pub size: u64,
    /// Permission bits, with those that lend rights.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// How many names it has.
    pub links: u64,
    /// Last change of the content, in nanoseconds.
    pub mtime: i64,
    /// Last change of anything, in nanoseconds; nobody can set it.
    pub ctime: i64,
}

impl Look {
    pub(crate) fn of(stat: &Stat) -> Self {
        let time = |seconds: i64, nanos: u64| {
            let nanos = i64::try_from(nanos).unwrap_or(0);
            seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
        };
        Self {
            kind: Kind::of(stat.st_mode),
            id: (stat.st_dev, stat.st_ino),
            size: u64::try_from(stat.st_size).unwrap_or(u64::MAX),
            mode: stat.st_mode & 0o7777,
            uid: stat.st_uid,
            gid: stat.st_gid,
            links: stat.st_nlink,
            mtime: time(stat.st_mtime, stat.st_mtime_nsec),
            ctime: time(stat.st_ctime, stat.st_ctime_nsec),
        }
    }
}

/// Why a file was not read.
#[derive(Debug)]
pub enum Unread {
    /// There is none.
    Missing,
    /// A folder on the way is a link, a file, or on another file system.
    Way,
    /// It is no regular file.
    Kind(Kind),
    /// It has more than one name.
    Links(u64),
    /// It is larger than the limit.
    TooLarge(u64),
    /// It changed while it was read.
    Changing,
    /// The system refused.
    Io(io::Error),
}

impl std::fmt::Display for Unread {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Missing => formatter.write_str("there is no such file"),
            Self::Way => formatter.write_str("a folder on the way is a link or no folder"),
            Self::Kind(kind) => write!(formatter, "it is a {}, not a regular file", kind.word()),
            Self::Links(links) => write!(formatter, "the file has {links} names"),
            Self::TooLarge(size) => write!(formatter, "{size} bytes are too large"),
            Self::Changing => formatter.write_str("it changes while it is read"),
            Self::Io(error) => error.fmt(formatter),
        }
    }
}

impl From<Errno> for Unread {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOENT => Self::Missing,
            Errno::LOOP | Errno::NOTDIR | Errno::XDEV => Self::Way,
            other => Self::Io(other.into()),
        }
    }
}

/// A folder held open: the workspace, or its staging folder.
#[derive(Debug)]
pub struct Root {
    handle: OwnedFd,
    id: (u64, u64),
    path: PathBuf,
}

impl Root {
    /// Opens a folder. That it is no link is checked for its last component only.
    ///
    /// # Errors
    /// If it is none.
    pub fn open(path: &Path) -> Result<Self> {
        let failed = |errno: Errno| IdentityError::io("open", path.display(), errno);
        let handle = rustix::fs::open(path, FOLDER, Mode::empty()).map_err(failed)?;
        let id = Look::of(&fstat(&handle).map_err(failed)?).id;
        Ok(Self { handle, id, path: path.to_owned() })
    }

    /// A folder below, with the same rules.
    pub(crate) fn below(&self, name: &Name) -> std::result::Result<Self, Unread> {
        let handle = self.folder(Some(name))?;
        let id = Look::of(&fstat(&handle)?).id;
        Ok(Self { handle, id, path: self.path.join(name.as_path()) })
    }

    /// Where it was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Device and inode.
    #[must_use]
    pub fn id(&self) -> (u64, u64) {
        self.id
    }

    pub(crate) fn handle(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }

    /// Whether its path still leads to it.
    #[must_use]
    pub fn is_in_place(&self) -> bool {
        rustix::fs::open(&self.path, FOLDER, Mode::empty())
            .and_then(fstat_owned)
            .is_ok_and(|look| look.id == self.id)
    }

    /// A folder below, or this one.
    pub(crate) fn folder(&self, name: Option<&Name>) -> rustix::io::Result<OwnedFd> {
        match name {
            Some(name) => openat2(&self.handle, name.as_path(), FOLDER, Mode::empty(), BENEATH),
            None => openat2(&self.handle, ".", FOLDER, Mode::empty(), BENEATH),
        }
    }

    /// What stands at a name.
    pub(crate) fn look(&self, name: &Name) -> std::result::Result<Look, Unread> {
        let parent = name.parent();
        let look = |folder: BorrowedFd<'_>| {
            statat(folder, name.leaf(), AtFlags::SYMLINK_NOFOLLOW).map(|stat| Look::of(&stat))
        };
        Ok(match &parent {
            Some(parent) => look(self.folder(Some(parent))?.as_fd())?,
            None => look(self.handle.as_fd())?,
        })
    }

    /// Whether a file is immutable; what cannot be told is not.
    pub(crate) fn is_immutable(&self, name: &Name) -> bool {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat2(&self.handle, name.as_path(), flags, Mode::empty(), BENEATH);
        let Ok(file) = file else { return false };
        let told = statx(&file, "", AtFlags::EMPTY_PATH, StatxFlags::empty());
        match told {
            Ok(told) if told.stx_attributes_mask.contains(StatxAttributes::IMMUTABLE) => {
                told.stx_attributes.contains(StatxAttributes::IMMUTABLE)
            }
            _ => self
                .open_file(name, u64::MAX)
                .is_ok_and(|(file, _)| crate::lock::is_immutable(&file).unwrap_or(false)),
        }
    }

    /// Opens a regular file to read.
    pub(crate) fn open_file(
        &self,
        name: &Name,
        limit: u64,
    ) -> std::result::Result<(File, Look), Unread> {
        let file = match openat2(
            &self.handle,
            name.as_path(),
            OFlags::RDONLY | SAFE,
            Mode::empty(),
            BENEATH,
        ) {
            Ok(file) => file,
            // A link in the last place, a socket, or somewhere on the way.
            Err(errno @ (Errno::LOOP | Errno::NXIO | Errno::NODEV | Errno::NOTDIR)) => {
                return Err(match self.look(name) {
                    Ok(look) if look.kind != Kind::File => Unread::Kind(look.kind),
                    Ok(_) => errno.into(),
                    Err(unread) => unread,
                });
            }
            Err(errno) => return Err(errno.into()),
        };
        let look = Look::of(&fstat(&file)?);
        if look.kind != Kind::File {
            return Err(Unread::Kind(look.kind));
        }
        if look.size > limit {
            return Err(Unread::TooLarge(look.size));
        }
        Ok((File::from(file), look))
    }

    /// Reads a regular file, once and whole.
    pub(crate) fn read(
        &self,
        name: &Name,
        limit: u64,
    ) -> std::result::Result<(Vec<u8>, Look), Unread> {
        let (file, look) = self.open_file(name, limit)?;
        Ok((read_whole(file, limit, look.size)?, look))
    }

    /// The hash of a regular file that held still, and what the system says of it.
    pub(crate) fn hash(
        &self,
        name: &Name,
        limit: u64,
        buffer: &mut Vec<u8>,
    ) -> std::result::Result<(BlobHash, Look), Unread> {
        let (file, look) = self.open_file(name, limit)?;
        buffer.resize(1 << 16, 0);
        let mut hasher = Sha256::new();
        let mut at = 0u64;
        loop {
            match file.read_at(buffer, at) {
                Ok(0) => break,
                Ok(count) => {
                    hasher.update(&buffer[..count]);
                    at += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Unread::Io(error)),
            }
            if at > limit {
                return Err(Unread::TooLarge(at));
            }
        }
        let after = Look::of(&fstat(&file)?);
        if (after.ctime, after.size) != (look.ctime, look.size) || at != look.size {
            return Err(Unread::Changing);
        }
        Ok((BlobHash(hasher.finalize().into()), after))
    }
}

fn fstat_owned(file: OwnedFd) -> rustix::io::Result<Look> {
    Ok(Look::of(&fstat(&file)?))
}

/// Reads what is left of an open file, at most `limit` bytes.
pub(crate) fn read_whole(
    file: File,
    limit: u64,
    size: u64,
) -> std::result::Result<Vec<u8>, Unread> {
    let mut bytes = Vec::with_capacity(usize::try_from(size.min(limit) + 1).unwrap_or(0));
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(Unread::Io)?;
    if bytes.len() as u64 > limit {
        return Err(Unread::TooLarge(bytes.len() as u64));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
