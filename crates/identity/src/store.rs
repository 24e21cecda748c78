//! The folder of a workspace in the state directory, and files of it that are there whole or not.

use std::fs::{File, TryLockError};
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{AtFlags, Mode, OFlags, fsync, mkdirat, openat, renameat, unlinkat};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};
use wardkeep_evidence::hash::encode_hex;

use crate::error::{IdentityError, Result};
use crate::steps::Steps;
use crate::tree::{Kind, Look, read_whole};

const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const NEW: OFlags = OFlags::WRONLY
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
/// How long another process is waited for.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(2);

/// A folder for its owner alone.
#[derive(Debug)]
pub(crate) struct Store {
    folder: OwnedFd,
    path: PathBuf,
}

impl Store {
    /// Opens it, making it where it is missing.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        use std::os::unix::fs::DirBuilderExt as _;
        let failed = |error: io::Error| IdentityError::io("open", path.display(), error);
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
        let folder =
            rustix::fs::open(path, FOLDER, Mode::empty()).map_err(|errno| failed(errno.into()))?;
        let store = Self { folder, path: path.to_owned() };
        for name in ["objects", "quarantine"] {
            store.make_folder(name).map_err(failed)?;
        }
        Ok(store)
    }

    pub(crate) fn handle(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A folder in it, made where it is missing.
    pub(crate) fn make_folder(&self, name: &str) -> io::Result<OwnedFd> {
        make_folder(self.handle(), name)
    }

    /// A file of it; `None` where there is none.
    pub(crate) fn read(&self, name: &str, limit: u64) -> Result<Option<Vec<u8>>> {
        read_in(self.handle(), name, limit)
            .map_err(|error| IdentityError::io("read", self.path.join(name).display(), error))
    }

    /// Writes a file whole: under another name, flushed, renamed, the name flushed.
    pub(crate) fn write(&self, name: &str, bytes: &[u8], steps: &dyn Steps) -> Result<()> {
        write_in(self.handle(), name, bytes, steps)
            .map_err(|error| IdentityError::io("write", self.path.join(name).display(), error))
    }

    /// As [`Self::write`], without waiting for the disk: for what can be made again.
    pub(crate) fn write_cache(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let temporary = format!("{name}.{}", unguessable()?);
        let mut file =
            File::from(openat(&self.folder, &temporary, NEW, Mode::from_raw_mode(0o600))?);
        let written = file.write_all(bytes);
        let placed =
            written.and_then(|()| Ok(renameat(&self.folder, &temporary, &self.folder, name)?));
        if placed.is_err() {
            let _ = unlinkat(&self.folder, &temporary, AtFlags::empty());
        }
        placed
    }

    /// Removes a file, durably.
    pub(crate) fn remove(&self, name: &str) -> Result<()> {
        let failed =
            |errno: Errno| IdentityError::io("remove", self.path.join(name).display(), errno);
        match unlinkat(&self.folder, name, AtFlags::empty()) {
            Ok(()) => fsync(&self.folder).map_err(failed),
            Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(failed(errno)),
        }
    }

    /// Keeps other processes from changing the workspace until it is dropped.
    pub(crate) fn lock(&self) -> Result<File> {
        let failed =
            |error: io::Error| IdentityError::io("lock", self.path.join("lock").display(), error);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.folder, "lock", flags, Mode::from_raw_mode(0o600))
            .map_err(|errno| failed(errno.into()))?;
        let file = File::from(file);
        let mut waited = Duration::ZERO;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if waited < PATIENCE => {
                    std::thread::sleep(PAUSE);
                    waited += PAUSE;
                }
                Err(TryLockError::WouldBlock) => return Err(IdentityError::Busy),
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
    }
}

/// 128 random bits as a name.
pub(crate) fn unguessable() -> io::Result<String> {
    let mut bytes = [0u8; 16];
    let mut filled = 0;
    while filled < bytes.len() {
        filled += getrandom(&mut bytes[filled..], GetRandomFlags::empty())?;
    }
    Ok(encode_hex(&bytes))
}

pub(crate) fn make_folder(at: BorrowedFd<'_>, name: &str) -> io::Result<OwnedFd> {
    match mkdirat(at, name, Mode::from_raw_mode(0o700)) {
        Ok(()) => fsync(at)?,
        Err(Errno::EXIST) => {}
        Err(errno) => return Err(errno.into()),
    }
    Ok(openat(at, name, FOLDER, Mode::empty())?)
}

pub(crate) fn read_in(at: BorrowedFd<'_>, name: &str, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match openat(at, name, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    };
    let look = Look::of(&rustix::fs::fstat(&file)?);
    if look.kind != Kind::File {
        return Err(io::Error::other("it is no regular file"));
    }
    read_whole(File::from(file), limit, look.size)
        .map(Some)
        .map_err(|unread| io::Error::other(unread.to_string()))
}

pub(crate) fn write_in(
    at: BorrowedFd<'_>,
    name: &str,
    bytes: &[u8],
    steps: &dyn Steps,
) -> io::Result<()> {
    let temporary = format!("{name}.{}", unguessable()?);
    let placed = (|| {
        steps.step("make a file of the state");
        let file = openat(at, &temporary, NEW, Mode::from_raw_mode(0o600))?;
        let mut file = File::from(file);
        // Two writes, so that a process can end between them.
        let (first, rest) = bytes.split_at(bytes.len() / 2);
        file.write_all(first)?;
        steps.step("write the rest of it");
        file.write_all(rest)?;
        file.sync_all()?;
        steps.step("rename it");
        renameat(at, &temporary, at, name)?;
        steps.step("flush its folder");
        fsync(at)?;
        steps.step("flushed");
        Ok(())
    })();
    if placed.is_err() {
        let _ = unlinkat(at, &temporary, AtFlags::empty());
    }
    placed
}
