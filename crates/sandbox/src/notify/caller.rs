//! Who calls: what is read of them, and from where their paths start.

use std::ffi::CString;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags, openat, statx};
use rustix::io::{Errno, read};

use super::abi::{self, Call};
use super::supervisor::Stop;

/// Longest path, with the zero at its end.
const PATH_MAX: usize = 4096;
const PAGE: u64 = 4096;
/// How much of a text is read at a time.
const FIRST: usize = 512;

/// A thread whose call waits. What is read of it counts only after [`Caller::is_there`].
#[derive(Debug, Clone)]
pub(super) struct Caller<'a> {
    pub(super) call: &'a Call,
    pub(super) listener: Arc<OwnedFd>,
    /// `/proc`.
    pub(super) proc: Arc<OwnedFd>,
    /// `/`.
    pub(super) home: Arc<OwnedFd>,
    /// The root directory that it must have: device, inode and mount. None where it can have no other.
    pub(super) root: Option<(u32, u32, u64, u64)>,
}

/// What `/proc` says of a thread.
#[derive(Debug, Clone, Copy)]
pub(super) struct Status {
    pub(super) umask: Mode,
    pub(super) group: u32,
}

impl Caller<'_> {
    /// An error, unless the call still waits: then all that was read was read of this caller.
    pub(super) fn is_there(&self) -> Result<(), Stop> {
        if abi::is_valid(self.listener.as_fd(), self.call.id) { Ok(()) } else { Err(Stop::Gone) }
    }

    pub(super) fn argument(&self, at: usize) -> u64 {
        self.call.arguments[at]
    }

    /// An argument that is a number of 32 bits, or a descriptor.
    #[expect(clippy::cast_possible_truncation, reason = "as the kernel takes it")]
    pub(super) fn number(&self, at: usize) -> u32 {
        self.call.arguments[at] as u32
    }

    /// The text that an argument points to, read once.
    pub(super) fn text(&self, at: usize) -> Result<CString, Stop> {
        let mut text = Vec::new();
        let mut address = self.argument(at);
        while text.len() < PATH_MAX {
            // Not over the end of a page: the next one may not be there.
            let room = usize::try_from(PAGE - address % PAGE).map_err(|_| Errno::FAULT)?;
            // Most paths are short.
            let mut some = [0; FIRST];
            let some = &mut some[..room.min(FIRST).min(PATH_MAX - text.len())];
            let count = abi::read_memory(self.call.pid, address, some).map_err(|_| Errno::FAULT)?;
            if count == 0 {
                return Err(Errno::FAULT.into());
            }
            if let Some(end) = some[..count].iter().position(|byte| *byte == 0) {
                text.extend_from_slice(&some[..end]);
                return Ok(CString::new(text).map_err(|_| Errno::INVAL)?);
            }
            text.extend_from_slice(&some[..count]);
            address = address.checked_add(count as u64).ok_or(Errno::FAULT)?;
        }
        Err(Errno::NAMETOOLONG.into())
    }

    /// Bytes that an argument points to.
    pub(super) fn bytes(&self, at: usize, into: &mut [u8]) -> Result<(), Stop> {
        let read = abi::read_memory(self.call.pid, self.argument(at), into);
        match read {
            Ok(count) if count == into.len() => Ok(()),
            _ => Err(Errno::FAULT.into()),
        }
    }

    /// Where a path starts from, and what is left of it: a path by way of an own descriptor (`/proc/self/fd/7/name`,
    /// for programs that cannot call `openat`) is one from that descriptor.
    pub(super) fn start(
        &self,
        descriptor: u32,
        path: CString,
    ) -> Result<(Arc<OwnedFd>, CString), Stop> {
        let (descriptor, path) = through_descriptor(&path).unwrap_or((descriptor, path));
        Ok((self.anchor(descriptor, &path)?, path))
    }

    /// The directory that a path starts from. A path from the root starts from ours, which must be the
    /// caller's own.
    pub(super) fn anchor(&self, descriptor: u32, path: &CString) -> Result<Arc<OwnedFd>, Stop> {
        self.has_our_root()?;
        let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::DIRECTORY;
        let pid = self.call.pid;
        if path.as_bytes().first() == Some(&b'/') {
            return Ok(Arc::clone(&self.home));
        }
        let place = if descriptor.cast_signed() == libc::AT_FDCWD {
            format!("{pid}/cwd")
        } else {
            format!("{pid}/fd/{descriptor}")
        };
        openat(&*self.proc, place, flags, Mode::empty()).map(Arc::new).map_err(
            |error| match error {
                Errno::NOENT if descriptor.cast_signed() != libc::AT_FDCWD => Errno::BADF.into(),
                error => error.into(),
            },
        )
    }

    fn has_our_root(&self) -> Result<(), Stop> {
        let Some(ours) = self.root else { return Ok(()) };
        let root = format!("{}/root", self.call.pid);
        if root_of(self.proc.as_fd(), &root)? == ours { Ok(()) } else { Err(Errno::PERM.into()) }
    }

    pub(super) fn status(&self) -> Result<Status, Stop> {
        let mut room = [0; 1024];
        let count = self.file("status", &mut room)?;
        let text = String::from_utf8_lossy(&room[..count]);
        // The name of a process comes first, with its line ends written as `\n`.
        let field = |name: &str| {
            text.lines().skip(1).find_map(|line| Some(line.strip_prefix(name)?.trim()))
        };
        let umask = field("Umask:").and_then(|mask| u32::from_str_radix(mask, 8).ok());
        let group = field("Tgid:").and_then(|group| group.parse().ok());
        match (umask, group) {
            (Some(umask), Some(group)) => Ok(Status { umask: Mode::from_raw_mode(umask), group }),
            _ => Err(Errno::PERM.into()),
        }
    }

    /// The number of its terminal, as the kernel packs it; 0 if it has none.
    pub(super) fn terminal(&self) -> Result<u32, Stop> {
        let mut room = [0; 1024];
        let count = self.file("stat", &mut room)?;
        let text = String::from_utf8_lossy(&room[..count]);
        // The name may hold anything, but ends with the last parenthesis.
        let rest = text.rsplit_once(')').map_or("", |(_, rest)| rest);
        let number = rest.split_whitespace().nth(4).and_then(|field| field.parse::<i32>().ok());
        Ok(number.ok_or(Errno::NXIO)?.cast_unsigned())
    }

    /// What the thread calls itself.
    pub(super) fn comm(&self) -> String {
        let mut room = [0; 64];
        let count = self.file("comm", &mut room).unwrap_or(0);
        String::from_utf8_lossy(&room[..count]).trim_end().to_owned()
    }

    fn file(&self, name: &str, room: &mut [u8]) -> Result<usize, Stop> {
        let path = format!("{}/{name}", self.call.pid);
        let file = openat(&*self.proc, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(read(&file, room)?)
    }
}

/// The own descriptor that a path leads through, and the rest of it. Only by the caller's own words: what `self` is
/// behind a link depends on who follows it.
fn through_descriptor(path: &CString) -> Option<(u32, CString)> {
    let bytes = path.as_bytes();
    let folders: [&[u8]; 3] = [b"/proc/self/fd/", b"/proc/thread-self/fd/", b"/dev/fd/"];
    let rest = folders.into_iter().find_map(|folder| bytes.strip_prefix(folder))?;
    let end = rest.iter().position(|byte| *byte == b'/')?;
    let (number, rest) = rest.split_at(end);
    let is_plain =
        number.iter().all(u8::is_ascii_digit) && (number == b"0" || number.first() != Some(&b'0'));
    let number: i32 = std::str::from_utf8(number).ok().filter(|_| is_plain)?.parse().ok()?;
    let rest = &rest[rest.iter().position(|byte| *byte != b'/')?..];
    Some((number.cast_unsigned(), CString::new(rest).ok()?))
}

/// Device, inode and mount of a directory.
pub(super) fn root_of(at: BorrowedFd<'_>, path: &str) -> Result<(u32, u32, u64, u64), Errno> {
    let wanted = StatxFlags::INO | StatxFlags::MNT_ID;
    let found = statx(at, path, AtFlags::empty(), wanted)?;
    Ok((found.stx_dev_major, found.stx_dev_minor, found.stx_ino, found.stx_mnt_id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_descriptors_are_a_way() {
        let through = |path: &str| {
            through_descriptor(&CString::new(path).unwrap())
                .map(|(number, rest)| (number, rest.into_string().unwrap()))
        };
        for (path, number, rest) in [
            ("/proc/self/fd/7/a", 7, "a"),
            ("/proc/thread-self/fd/0//a/../b/", 0, "a/../b/"),
            ("/dev/fd/12/.", 12, "."),
        ] {
            assert_eq!(through(path), Some((number, rest.to_owned())), "{path}");
        }
        for path in [
            "/proc/self/fd/7",
            "/proc/self/fd/7/",
            "/proc/self/fd/-100/a",
            "/proc/self/fd/+7/a",
            "/proc/self/fd/07/a",
            "/proc/self/fd//a",
            "/proc/self/fd/4294967196/a",
            "/proc/1/fd/7/a",
            "proc/self/fd/7/a",
            "/proc/self/../self/fd/7/a",
            "/proc/self/fdinfo/7/a",
            "",
        ] {
            assert_eq!(through(path), None, "{path}");
        }
    }
}
