//! From a path to a directory and a name in it.

use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use rustix::fs::{Mode, OFlags, ResolveFlags, fstatfs, openat2, readlinkat};
use rustix::io::Errno;

use super::supervisor::Stop;

/// A directory that is held open, and a name in it that may or may not exist.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) parent: OwnedFd,
    /// The real path of the directory.
    pub(super) path: Vec<u8>,
    /// One part; empty where the path names a directory by itself: `/`, `.`, `..`.
    pub(super) name: CString,
    /// Whether the path says that the name is a directory.
    pub(super) slash: bool,
    /// Whether the directory is one of `/proc`.
    pub(super) is_proc: bool,
}

impl Place {
    /// Resolves all of a path but its last part, which is not looked at.
    pub(super) fn of(own: BorrowedFd<'_>, anchor: &OwnedFd, path: &CString) -> Result<Self, Stop> {
        let bytes = path.as_bytes();
        if bytes.is_empty() {
            return Err(Errno::NOENT.into());
        }
        let end = bytes.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
        let slash = end < bytes.len();
        let start = bytes[..end].iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
        let (above, mut name) = (&bytes[..start], &bytes[start..end]);
        let mut above = if above.is_empty() && end > 0 { b"." } else { above };
        if name.is_empty() || name == b"." || name == b".." {
            (above, name) = (bytes, b"");
        }
        if name.len() > 255 {
            return Err(Errno::NAMETOOLONG.into());
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        // Links of `/proc` into other processes are never a part of a path.
        let parent = openat2(anchor, above, flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS)?;
        let is_proc = is_proc(&parent)?;
        let path = real_path_of_folder(own, &parent)?;
        let name = CString::new(name).map_err(|_| Errno::INVAL)?;
        Ok(Self { parent, path, name, slash, is_proc })
    }

    /// The real path of the name.
    pub(super) fn full(&self) -> Vec<u8> {
        let mut path = self.path.clone();
        if path.last() != Some(&b'/') {
            path.push(b'/');
        }
        path.extend_from_slice(self.name.as_bytes());
        path
    }

    /// The place, unless it is in `/proc`, or names a directory by itself.
    pub(super) fn named(self, otherwise: Errno) -> Result<Self, Stop> {
        if self.is_proc {
            return Err(Errno::ACCESS.into());
        }
        if self.name.is_empty() { Err(otherwise.into()) } else { Ok(self) }
    }
}

/// Whether something lies in `/proc`.
pub(super) fn is_proc(file: impl AsFd) -> Result<bool, Errno> {
    Ok(fstatfs(file)?.f_type == rustix::fs::PROC_SUPER_MAGIC)
}

/// The path of an open file, as the kernel tells. `own` is this process's folder of descriptors.
pub(super) fn real_path(own: BorrowedFd<'_>, file: impl AsFd) -> Result<Vec<u8>, Stop> {
    let number = file.as_fd().as_raw_fd().to_string();
    let path = readlinkat(own, number, Vec::new())?.into_bytes();
    if path.first() == Some(&b'/') { Ok(path) } else { Err(Errno::ACCESS.into()) }
}

/// As [`real_path`], for a folder: to go there and ask is quicker. The thread has a directory of its own, which
/// means nothing to it.
fn real_path_of_folder(own: BorrowedFd<'_>, folder: &OwnedFd) -> Result<Vec<u8>, Stop> {
    if rustix::process::fchdir(folder).is_err() {
        return real_path(own, folder);
    }
    let path = rustix::process::getcwd(Vec::new())?.into_bytes();
    if path.first() == Some(&b'/') { Ok(path) } else { Err(Errno::ACCESS.into()) }
}

pub(super) fn path_buf(path: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(path))
}
