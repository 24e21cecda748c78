//! A folder held open, and what is done below it: no step follows a link, waits for a pipe or leaves
//! the folder, whatever stands there.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, Dir, FileType, Gid, Mode, OFlags, Stat, Uid, fchmod, fchown, fstat, fsync, mkdirat,
    openat, readlinkat, renameat, statat, unlinkat,
};
use rustix::io::Errno;

use super::path::RelativePath;
use super::{Result, SnapshotError, Steps};

const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// What a restored file may have of its mode: no bits that lend rights.
const MODE: u32 = 0o777;
/// How deep empty folders are looked for in the place of a file.
const MAX_EMPTY: usize = 32;

/// What stands under a name.
#[derive(Debug)]
pub(crate) enum Seen {
    /// Nothing, or the way there is no folder.
    Missing,
    Folder,
    File {
        bytes: Vec<u8>,
        mode: u32,
    },
    /// Where it leads, unread.
    Link(Vec<u8>),
    /// A pipe, a socket or a device.
    Special,
    TooLarge,
    Unreadable,
}

/// A folder that the owner named, held open.
#[derive(Debug)]
pub(crate) struct Root {
    handle: OwnedFd,
    path: PathBuf,
}

impl Root {
    /// Opens a folder by its real path: one that leads over a link is not the one that was meant.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let failed = |error| SnapshotError::io("open", path, error);
        let real = path.canonicalize().map_err(failed)?;
        if real != path {
            return Err(SnapshotError::Moved { path: path.to_owned() });
        }
        let handle =
            rustix::fs::open(path, FOLDER, Mode::empty()).map_err(|errno| failed(errno.into()))?;
        Ok(Self { handle, path: real })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn handle(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }

    /// The folder in which a path lies; `None` where the way there is missing or no folder.
    pub(crate) fn folder_of(&self, path: &RelativePath) -> io::Result<Option<OwnedFd>> {
        let mut at = self.handle.try_clone()?;
        let Some(parent) = path.parent() else { return Ok(Some(at)) };
        for name in parent.names() {
            at = match step_into(at.as_fd(), name) {
                Ok(next) => next,
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
                Err(errno) => return Err(errno.into()),
            };
        }
        Ok(Some(at))
    }

    /// The folder in which a path lies; made, with those above it, where it is missing.
    pub(crate) fn make_folder_of(&self, path: &RelativePath) -> io::Result<OwnedFd> {
        let mut at = self.handle.try_clone()?;
        let Some(parent) = path.parent() else { return Ok(at) };
        for name in parent.names() {
            at = match step_into(at.as_fd(), name) {
                Err(Errno::NOENT) => {
                    match mkdirat(&at, name, Mode::from_raw_mode(0o755)) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(errno) => return Err(errno.into()),
                    }
                    let made = step_into(at.as_fd(), name)?;
                    inherit_owner(&made, &fstat(&at)?);
                    fsync(&at)?;
                    made
                }
                other => other?,
            };
        }
        Ok(at)
    }

    /// What stands at a path; a file is read up to `limit` bytes.
    pub(crate) fn look(&self, path: &RelativePath, limit: u64) -> Seen {
        match self.folder_of(path) {
            Ok(Some(folder)) => look(folder.as_fd(), path.name(), limit),
            Ok(None) => Seen::Missing,
            Err(_) => Seen::Unreadable,
        }
    }

    /// Device and inode of what stands at a path.
    pub(crate) fn identity(&self, path: &RelativePath) -> Option<(u64, u64)> {
        let folder = self.folder_of(path).ok()??;
        let stat = statat(&folder, path.name(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some((stat.st_dev, stat.st_ino))
    }
}

/// Opens a folder in a folder.
pub(crate) fn step_into(folder: BorrowedFd<'_>, name: &OsStr) -> rustix::io::Result<OwnedFd> {
    openat(folder, name, FOLDER, Mode::empty())
}

/// The names in a folder, in order, at most `limit`; and whether there are more.
pub(crate) fn names_in(folder: BorrowedFd<'_>, limit: usize) -> io::Result<(Vec<OsString>, bool)> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        if names.len() == limit {
            return Ok((names, true));
        }
        names.push(OsStr::from_bytes(name).to_owned());
    }
    names.sort_unstable();
    Ok((names, false))
}

/// What stands under a name; a file is read up to `limit` bytes.
pub(crate) fn look(folder: BorrowedFd<'_>, name: &OsStr, limit: u64) -> Seen {
    let stat = match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Seen::Missing,
        Err(_) => return Seen::Unreadable,
    };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => Seen::Folder,
        FileType::Symlink => match readlinkat(folder, name, Vec::new()) {
            Ok(target) => Seen::Link(target.into_bytes()),
            Err(_) => Seen::Unreadable,
        },
        FileType::RegularFile => read(folder, name, limit),
        _ => Seen::Special,
    }
}

fn read(folder: BorrowedFd<'_>, name: &OsStr, limit: u64) -> Seen {
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let Ok(file) = openat(folder, name, flags, Mode::empty()) else { return Seen::Unreadable };
    // It may be another one by now.
    let stat = match fstat(&file) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => stat,
        _ => return Seen::Unreadable,
    };
    let size = u64::try_from(stat.st_size).unwrap_or(u64::MAX);
    if size > limit {
        return Seen::TooLarge;
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size.saturating_add(1)).unwrap_or(0));
    match File::from(file).take(limit.saturating_add(1)).read_to_end(&mut bytes) {
        Ok(_) if bytes.len() as u64 > limit => Seen::TooLarge,
        Ok(_) => Seen::File { bytes, mode: stat.st_mode & MODE },
        Err(_) => Seen::Unreadable,
    }
}

/// A file, or where a link leads.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Put<'a> {
    File { bytes: &'a [u8], mode: u32 },
    Link(&'a [u8]),
}

/// Puts something under a name, whole or not at all: made under the name `temporary`, flushed, and
/// renamed. What stood under the name is replaced, not followed; the names of the folder are not
/// flushed yet.
pub(crate) fn place(
    folder: BorrowedFd<'_>,
    temporary: &OsStr,
    name: &OsStr,
    what: Put<'_>,
    steps: &dyn Steps,
) -> io::Result<()> {
    let mut unflushed = Unflushed::default();
    unflushed.add(prepare(folder, temporary, name, what, steps)?)?;
    unflushed.flush(steps)?;
    rename_over(folder, temporary, name, steps)
}

/// Makes what is to get a name, under another one. A file is not flushed yet.
pub(crate) fn prepare(
    folder: BorrowedFd<'_>,
    temporary: &OsStr,
    name: &OsStr,
    what: Put<'_>,
    steps: &dyn Steps,
) -> io::Result<Option<File>> {
    steps.step("make a temporary file");
    clear(folder, temporary)?;
    let (bytes, mode) = match what {
        Put::File { bytes, mode } => (bytes, mode),
        Put::Link(target) => {
            rustix::fs::symlinkat(OsStr::from_bytes(target), folder, temporary)?;
            return Ok(None);
        }
    };
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(folder, temporary, flags, Mode::from_raw_mode(0o600))?;
    steps.step("write it");
    let mut file = File::from(file);
    // Two writes, so that a process can end between them.
    let (first, rest) = bytes.split_at(bytes.len() / 2);
    file.write_all(first)?;
    steps.step("write the rest of it");
    file.write_all(rest)?;
    let before = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).or_else(|_| fstat(folder));
    inherit_owner(&file, &before?);
    fchmod(&file, Mode::from_raw_mode(mode & MODE))?;
    Ok(Some(file))
}

/// Gives what was made and flushed its name. Empty folders that stand there make room.
pub(crate) fn rename_over(
    folder: BorrowedFd<'_>,
    temporary: &OsStr,
    name: &OsStr,
    steps: &dyn Steps,
) -> io::Result<()> {
    steps.step("rename it");
    match renameat(folder, temporary, folder, name) {
        Err(Errno::ISDIR) => {
            remove_empty(folder, name, MAX_EMPTY)?;
            renameat(folder, temporary, folder, name)?;
        }
        renamed => renamed?,
    }
    steps.step("renamed");
    Ok(())
}

/// Files that were written and are not durable yet. A few are flushed one by one, many at once with
/// all of their file system, which is much faster.
#[derive(Debug, Default)]
pub(crate) struct Unflushed {
    by_device: BTreeMap<u64, Vec<File>>,
}

/// From so many files of a file system on, all of it is flushed.
const MANY: usize = 16;

impl Unflushed {
    pub(crate) fn add(&mut self, file: Option<File>) -> io::Result<()> {
        let Some(file) = file else { return Ok(()) };
        let files = self.by_device.entry(fstat(&file)?.st_dev).or_default();
        // The last one stands for all that are more.
        files.truncate(MANY - 1);
        files.push(file);
        Ok(())
    }

    pub(crate) fn flush(&mut self, steps: &dyn Steps) -> io::Result<()> {
        for files in std::mem::take(&mut self.by_device).into_values() {
            steps.step("flush it");
            match files.last() {
                Some(one) if files.len() >= MANY => rustix::fs::syncfs(one)?,
                _ => files.iter().try_for_each(File::sync_all)?,
            }
        }
        Ok(())
    }
}

/// Removes what is left of a temporary file; a folder is left alone.
pub(crate) fn clear(folder: BorrowedFd<'_>, temporary: &OsStr) -> io::Result<()> {
    match unlinkat(folder, temporary, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Removes a folder that holds nothing but such folders.
fn remove_empty(folder: BorrowedFd<'_>, name: &OsStr, depth: usize) -> io::Result<()> {
    if depth > 0 {
        let inner = step_into(folder, name)?;
        for name in names_in(inner.as_fd(), 1 << 16)?.0 {
            remove_empty(inner.as_fd(), &name, depth - 1)?;
        }
    }
    Ok(unlinkat(folder, name, AtFlags::REMOVEDIR)?)
}

/// What root writes belongs to whom it belonged to. For others this does nothing, or cannot.
fn inherit_owner(file: impl AsFd, before: &Stat) {
    let owner = Some(Uid::from_raw(before.st_uid));
    let group = Some(Gid::from_raw(before.st_gid));
    let own = rustix::process::geteuid().as_raw() == before.st_uid
        && rustix::process::getegid().as_raw() == before.st_gid;
    if !own {
        let _ = fchown(file, owner, group);
    }
}
