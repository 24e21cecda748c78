//! `openat2`, whose flags lie in the caller's memory: it is carried out for the caller whatever it asks for.

use std::ffi::CString;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2};
use rustix::io::Errno;

use super::caller::Caller;
use super::place::is_proc;
use super::reads::Want;
use super::supervisor::{Done, Stop, Supervisor};

/// Bytes of the oldest form of what is asked for, and most that the kernel takes.
const OLDEST: usize = 24;
const LONGEST: usize = 4096;
/// Files that run as whoever owns them.
const SET_ID: u64 = 0o6000;
/// What the kernel knows of how a path is to be followed.
const KNOWN: ResolveFlags = ResolveFlags::NO_XDEV
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::BENEATH)
    .union(ResolveFlags::IN_ROOT)
    .union(ResolveFlags::CACHED);
/// What keeps a path within a folder, or off links: the last part is then not followed either.
const CONTAINS: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::IN_ROOT).union(ResolveFlags::NO_SYMLINKS);

/// What keeps a path nowhere.
const UNBOUND: ResolveFlags = ResolveFlags::NO_MAGICLINKS.union(ResolveFlags::CACHED);

/// What was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct How {
    flags: OFlags,
    mode: u32,
    resolve: ResolveFlags,
}

impl How {
    /// As the kernel reads it; what follows the oldest form must be nothing.
    fn read(bytes: &[u8]) -> Result<Self, Errno> {
        let number = |at: usize| {
            let bytes = bytes.get(at..at + 8).and_then(|bytes| bytes.first_chunk::<8>());
            bytes.map(|bytes| u64::from_ne_bytes(*bytes)).ok_or(Errno::INVAL)
        };
        let (flags, mode, resolve) = (number(0)?, number(8)?, number(16)?);
        if bytes[OLDEST..].iter().any(|byte| *byte != 0) {
            return Err(Errno::TOOBIG);
        }
        let flags = u32::try_from(flags).map_err(|_| Errno::INVAL)?;
        let flags = OFlags::from_bits_retain(flags);
        let resolve = ResolveFlags::from_bits_retain(resolve);
        if !KNOWN.contains(resolve) {
            return Err(Errno::INVAL);
        }
        let makes = flags.intersects(OFlags::CREATE) || flags.contains(OFlags::TMPFILE);
        if mode > 0o7777 || (mode != 0 && !makes) {
            return Err(Errno::INVAL);
        }
        if mode & SET_ID != 0 {
            return Err(Errno::PERM);
        }
        Ok(Self { flags, mode: u32::try_from(mode).map_err(|_| Errno::INVAL)?, resolve })
    }

    /// Whether it makes or changes nothing.
    fn only_reads(self) -> bool {
        let changes =
            OFlags::CREATE | OFlags::TRUNC | OFlags::WRONLY | OFlags::RDWR | OFlags::APPEND;
        let tmpfile = self.flags.contains(OFlags::TMPFILE);
        self.flags.contains(OFlags::PATH) || !(self.flags.intersects(changes) || tmpfile)
    }
}

impl Supervisor {
    /// The descriptor, the path, what is asked for, and how long that is.
    pub(super) fn open2(&mut self, caller: &Caller<'_>) -> Result<Done, Stop> {
        let size = usize::try_from(caller.argument(3)).unwrap_or(usize::MAX);
        match size {
            0..OLDEST => return Err(Errno::INVAL.into()),
            OLDEST..=LONGEST => {}
            _ => return Err(Errno::TOOBIG.into()),
        }
        let mut bytes = vec![0; size];
        caller.bytes(2, &mut bytes)?;
        let how = How::read(&bytes)?;
        let (anchor, path) = caller.start(caller.number(0), caller.text(1)?)?;
        caller.is_there()?;
        // Within a root of its own, a path from the root is one from the descriptor.
        if how.resolve.contains(ResolveFlags::IN_ROOT) && path.as_bytes().first() == Some(&b'/') {
            return Err(Errno::XDEV.into());
        }
        if how.only_reads() {
            return match self.read_for(&anchor, &path, how) {
                // A path that must stay somewhere does not lead out of what is shown.
                Err(Stop::Error(Errno::NOENT)) if (how.resolve - UNBOUND).is_empty() => {
                    let path = self.not_shown(&anchor, &path, how.flags);
                    let done = path.map(|path| Done::Outside(path, Want::Open(how.flags)));
                    done.ok_or(Errno::NOENT.into())
                }
                done => done,
            };
        }
        let (above, name) = parted(&path)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = how.resolve | ResolveFlags::NO_MAGICLINKS;
        let parent = openat2(&anchor, above, flags, Mode::empty(), resolve)?;
        if is_proc(&parent)? {
            return Err(Errno::ACCESS.into());
        }
        let contained = how.resolve.intersects(CONTAINS);
        let flags = if contained { how.flags | OFlags::NOFOLLOW } else { how.flags };
        self.open_at(caller, parent, name, flags, how.mode)
    }

    /// Opens for reading. What is ours by another's name, as in `/proc`, is not given away; nothing is opened that could
    /// make us wait.
    fn read_for(&self, anchor: &OwnedFd, path: &CString, how: How) -> Result<Done, Stop> {
        let names = OFlags::PATH | OFlags::CLOEXEC | (how.flags & OFlags::NOFOLLOW);
        let resolve = how.resolve | ResolveFlags::NO_MAGICLINKS;
        let found = openat2(anchor, path, names, Mode::empty(), resolve)?;
        if is_proc(&found)? {
            return Err(Errno::ACCESS.into());
        }
        let close = how.flags.contains(OFlags::CLOEXEC);
        let kind = FileType::from_raw_mode(fstat(&found)?.st_mode);
        if how.flags.contains(OFlags::DIRECTORY) && kind != FileType::Directory {
            return Err(Errno::NOTDIR.into());
        }
        if how.flags.contains(OFlags::PATH) {
            return Ok(Done::File(found, close));
        }
        match kind {
            FileType::RegularFile | FileType::Directory => {}
            FileType::Symlink => return Err(Errno::LOOP.into()),
            // There is an older way to open these.
            _ => return Err(Errno::ACCESS.into()),
        }
        let kept = OFlags::DIRECTORY | OFlags::NONBLOCK | OFlags::NOATIME | OFlags::DIRECT;
        let flags = (how.flags & kept) | OFlags::CLOEXEC | OFlags::NOCTTY;
        let own = self.own.as_fd();
        let file = openat(own, found.as_raw_fd().to_string(), flags, Mode::empty())?;
        Ok(Done::File(file, close))
    }
}

/// What is above the last part of a path, and that part.
fn parted(path: &CString) -> Result<(CString, CString), Errno> {
    let bytes = path.as_bytes();
    let at = bytes.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    let (above, name) = bytes.split_at(at);
    if matches!(name, b"" | b"." | b"..") {
        return Err(if bytes.is_empty() { Errno::NOENT } else { Errno::ISDIR });
    }
    let above = if above.is_empty() { b"." } else { above };
    Ok((
        CString::new(above).map_err(|_| Errno::INVAL)?,
        CString::new(name).map_err(|_| Errno::INVAL)?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn how(flags: u64, mode: u64, resolve: u64, more: &[u8]) -> Result<How, Errno> {
        let mut bytes: Vec<u8> =
            [flags, mode, resolve].iter().flat_map(|number| number.to_ne_bytes()).collect();
        bytes.extend(more);
        How::read(&bytes)
    }

    #[test]
    fn it_is_read_as_the_kernel_reads_it() {
        let creates = u64::from((OFlags::CREATE | OFlags::WRONLY).bits());
        assert!(!how(creates, 0o600, 8, &[]).unwrap().only_reads());
        assert!(how(0, 0, 0, &[0; 8]).unwrap().only_reads());
        assert!(how(u64::from(OFlags::PATH.bits()) | creates, 0, 0, &[]).unwrap().only_reads());
        assert!(!how(u64::from(OFlags::TMPFILE.bits()), 0o600, 0, &[]).unwrap().only_reads());
        assert!(!how(u64::from(OFlags::RDWR.bits()), 0, 0, &[]).unwrap().only_reads());
        assert_eq!(how(0, 0, 0, &[1]), Err(Errno::TOOBIG));
        assert_eq!(how(0, 0o600, 0, &[]), Err(Errno::INVAL));
        assert_eq!(how(creates, 0o4755, 0, &[]), Err(Errno::PERM));
        assert_eq!(how(creates, 0o10_000, 0, &[]), Err(Errno::INVAL));
        assert_eq!(how(1 << 40, 0, 0, &[]), Err(Errno::INVAL));
        assert_eq!(how(0, 0, 1 << 20, &[]), Err(Errno::INVAL));
        assert_eq!(How::read(&[0; 23]), Err(Errno::INVAL));
    }

    #[test]
    fn a_path_is_parted_at_its_last_part() {
        let parts = |path: &str| {
            parted(&CString::new(path).unwrap())
                .map(|(above, name)| (above.into_string().unwrap(), name.into_string().unwrap()))
        };
        let both = |above: &str, name: &str| Ok((above.to_owned(), name.to_owned()));
        assert_eq!(parts("a"), both(".", "a"));
        assert_eq!(parts("a/b"), both("a/", "b"));
        assert_eq!(parts("/a"), both("/", "a"));
        for path in ["a/", "a/.", "..", "/"] {
            assert_eq!(parts(path), Err(Errno::ISDIR), "{path}");
        }
        assert_eq!(parts(""), Err(Errno::NOENT));
    }
}
