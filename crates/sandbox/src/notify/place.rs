//! From a path to a directory and a name in it.

use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use rustix::fs::{
    AtFlags, Mode, OFlags, ResolveFlags, fstat, fstatfs, openat, openat2, readlinkat, statat,
};
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
        let open = |resolve| openat2(anchor, above, flags, Mode::empty(), resolve);
        let plain = plain(above).map(|plain| (plain, open(ResolveFlags::NO_SYMLINKS)));
        let (parent, path) = match plain {
            // No link was followed: the path is the real one.
            Some((plain, Ok(parent))) => (parent, Some(plain.to_vec())),
            Some((_, Err(Errno::LOOP))) | None => (open(ResolveFlags::NO_MAGICLINKS)?, None),
            Some((_, Err(error))) => return Err(error.into()),
        };
        let is_proc = is_proc(&parent)?;
        let path = path.map_or_else(|| real_path_of_folder(own, &parent), Ok)?;
        let name = CString::new(name).map_err(|_| Errno::INVAL)?;
        Ok(Self { parent, path, name, slash, is_proc })
    }

    /// Where a file lies that is open, by the name that the kernel tells of it. It must have that name still.
    pub(super) fn of_file(own: BorrowedFd<'_>, file: &OwnedFd) -> Result<Self, Stop> {
        let path = real_path(own, file)?;
        let at = path.iter().rposition(|byte| *byte == b'/').ok_or(Errno::ACCESS)?;
        let above = if at > 0 { &path[..at] } else { b"/" };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let parent = openat(rustix::fs::CWD, above, flags, Mode::empty())?;
        let name = CString::new(&path[at + 1..]).map_err(|_| Errno::INVAL)?;
        let (named, open) = (statat(&parent, &name, AtFlags::SYMLINK_NOFOLLOW)?, fstat(file)?);
        if (named.st_dev, named.st_ino) != (open.st_dev, open.st_ino) {
            return Err(Errno::ACCESS.into());
        }
        Ok(Self { parent, path: above.to_vec(), name, slash: false, is_proc: false })
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

/// A path of a folder that is written as the kernel would write it, if no part of it is a link: from the root on,
/// and nothing in it that leads elsewhere than down.
fn plain(path: &[u8]) -> Option<&[u8]> {
    let rest = path.strip_prefix(b"/")?;
    let Some(rest) = rest.strip_suffix(b"/") else {
        return (rest.is_empty()).then_some(path);
    };
    let is_plain = |part: &[u8]| !matches!(part, b"" | b"." | b"..");
    rest.split(|byte| *byte == b'/').all(is_plain).then(|| &path[..=rest.len()])
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_kernel_would_write_is_plain() {
        for (path, is) in [
            ("/", Some("/")),
            ("/a/", Some("/a")),
            ("/a/b c/.d/", Some("/a/b c/.d")),
            ("/.../", Some("/...")),
            ("//", None),
            ("//a/", None),
            ("/a//", None),
            ("/a//b/", None),
            ("/a/./", None),
            ("/a/../b/", None),
            ("/..", None),
            ("a/", None),
            (".", None),
            ("", None),
        ] {
            let found = plain(path.as_bytes()).map(|path| std::str::from_utf8(path).unwrap());
            assert_eq!(found, is, "{path}");
        }
    }

    /// Whichever way a folder is found, its path is the one that the kernel tells.
    #[test]
    fn both_ways_tell_the_same_path() {
        let told = || {
            // The thread's directory is changed on the way.
            super::super::abi::own_directory().unwrap();
            let folder = tempfile::tempdir().unwrap();
            let real = folder.path().canonicalize().unwrap();
            std::fs::create_dir_all(real.join("a/b")).unwrap();
            std::os::unix::fs::symlink(real.join("a"), real.join("l")).unwrap();
            let root = OwnedFd::from(std::fs::File::open("/").unwrap());
            let own = std::fs::File::open("/proc/thread-self/fd").unwrap();
            let place = |below: &str| {
                let path = CString::new(real.join(below).as_os_str().as_bytes()).unwrap();
                Place::of(own.as_fd(), &root, &path)
            };
            for (below, is) in [
                ("a/b/x", "a/b"),
                ("l/b/x", "a/b"),
                ("a/./b/x", "a/b"),
                ("a/../l/b/x/", "a/b"),
                ("a//b/x", "a/b"),
                ("l/x", "a"),
            ] {
                assert_eq!(path_buf(&place(below).unwrap().path), real.join(is), "{below}");
            }
            assert!(matches!(place("n/x"), Err(Stop::Error(Errno::NOENT))));
        };
        std::thread::spawn(told).join().unwrap();
    }
}
