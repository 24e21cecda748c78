//! What was found in the workspace. It is looked for while the confined side sets everything else up, and
//! told to it before that which was found has to be held.

use std::ffi::{CString, OsStr};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use crate::view::{Guarded, Held};

/// More than any number of names that is held.
const LARGEST: usize = 64 << 20;

/// What is held by mounts, and what besides must not come into being.
#[derive(Default)]
pub(super) struct Found {
    pub(super) guarded: Vec<Guarded>,
    pub(super) held: Vec<PathBuf>,
}

/// Tells it all. Whoever does not listen any more has told why elsewhere.
pub(crate) fn tell_found<'a>(
    to: BorrowedFd<'_>,
    guarded: &[Guarded],
    held: impl Iterator<Item = &'a Path>,
) {
    let mut bytes = vec![0; 8];
    for one in guarded {
        put(&mut bytes, one.held as u8, one.path.to_bytes());
    }
    for path in held {
        put(&mut bytes, OF_HELD, path.as_os_str().as_bytes());
    }
    let length = (bytes.len() - 8) as u64;
    bytes[..8].copy_from_slice(&length.to_ne_bytes());
    let mut left = bytes.as_slice();
    while !left.is_empty() {
        match rustix::net::send(to, left, SendFlags::NOSIGNAL) {
            Ok(sent) => left = left.get(sent..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

/// Begins a path that must not come into being; the others begin with how they are held.
const OF_HELD: u8 = u8::MAX;

fn put(bytes: &mut Vec<u8>, kind: u8, path: &[u8]) {
    bytes.push(kind);
    bytes.extend_from_slice(path);
    // No path holds one.
    bytes.push(0);
}

impl Found {
    /// Waits for it. What is cut off is an error: something that was found might not be held.
    pub(super) fn receive(from: BorrowedFd<'_>) -> Result<Self, Errno> {
        let mut length = [0; 8];
        fill(from, &mut length)?;
        let length = usize::try_from(u64::from_ne_bytes(length)).unwrap_or(usize::MAX);
        if length > LARGEST {
            return Err(Errno::MSGSIZE);
        }
        let mut bytes = vec![0; length];
        fill(from, &mut bytes)?;
        let mut found = Self::default();
        let mut left = bytes.as_slice();
        while let Some((kind, rest)) = left.split_first() {
            let end = rest.iter().position(|byte| *byte == 0).ok_or(Errno::BADMSG)?;
            let path = &rest[..end];
            if *kind == OF_HELD {
                found.held.push(OsStr::from_bytes(path).into());
            } else {
                let held = Held::from_byte(*kind).ok_or(Errno::BADMSG)?;
                let path = CString::new(path).map_err(|_| Errno::BADMSG)?;
                found.guarded.push(Guarded { path, held });
            }
            left = rest.get(end + 1..).unwrap_or_default();
        }
        Ok(found)
    }
}

fn fill(from: BorrowedFd<'_>, mut room: &mut [u8]) -> Result<(), Errno> {
    while !room.is_empty() {
        match rustix::net::recv(from, &mut *room, RecvFlags::empty()) {
            Ok((_, 0)) => return Err(Errno::PIPE),
            Ok((_, count)) => room = room.get_mut(count..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd as _;
    use std::os::unix::net::UnixStream;

    #[test]
    fn what_is_told_is_what_is_heard_and_all_of_it() {
        let (near, far) = UnixStream::pair().unwrap();
        let kinds = [Held::Pinned, Held::Link, Held::ReadOnly, Held::EmptyFile, Held::EmptyFolder];
        let guarded = kinds.map(|held| Guarded { path: c"w/\xFF.env".to_owned(), held });
        tell_found(near.as_fd(), &guarded, [Path::new("/w/a\nb")].into_iter());
        let found = Found::receive(far.as_fd()).unwrap();
        assert!(found.guarded.iter().map(|one| one.held).eq(kinds));
        assert!(found.guarded.iter().all(|one| one.path.as_c_str() == c"w/\xFF.env"));
        assert_eq!(found.held, [PathBuf::from("/w/a\nb")]);
        rustix::io::write(&near, &100_u64.to_ne_bytes()).unwrap();
        drop(near);
        assert!(Found::receive(far.as_fd()).is_err());
        assert!(Found::receive(far.as_fd()).is_err());
    }
}
