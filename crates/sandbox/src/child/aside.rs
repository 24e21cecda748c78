//! What is done by threads of their own while the new root is put together. They are gone before anything
//! is dropped or restricted, which counts for each thread by itself.

use std::ffi::CString;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::thread::JoinHandle;

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::error::{Failure, Step};
use crate::sys;

/// Enough for what is done here.
const STACK: usize = 256 << 10;
/// Largest file that is copied.
pub(crate) const LARGEST_COPY: usize = 64 << 10;

/// A network of its own, which takes the kernel as long as everything else.
pub(super) struct Network(JoinHandle<Result<OwnedFd, Errno>>);

impl Network {
    pub(super) fn begin() -> Result<Self, Failure> {
        let made = || {
            sys::leave_network()?;
            sys::loopback_up()?;
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            rustix::fs::open(c"/proc/thread-self/ns/net", flags, Mode::empty())
        };
        Ok(Self(spawn(made).map_err(Failure::at(Step::Network, 0))?))
    }

    /// From here on it is the only one of this process.
    pub(super) fn enter(self) -> Result<(), Failure> {
        let failed = Failure::at(Step::Network, 1);
        let made = self.0.join().unwrap_or(Err(Errno::IO)).map_err(&failed)?;
        let kind = Some(LinkNameSpaceType::Network);
        move_into_link_name_space(made.as_fd(), kind).map_err(&failed)
    }
}

/// Settings of the machine on their way into the new root.
pub(super) struct Copies(Option<JoinHandle<Result<(), Failure>>>);

impl Copies {
    /// Copies each file of the old root to its place in the new one.
    pub(super) fn begin(
        root: BorrowedFd<'_>,
        files: Vec<(CString, CString)>,
    ) -> Result<Self, Failure> {
        if files.is_empty() {
            return Ok(Self(None));
        }
        let root = rustix::io::fcntl_dupfd_cloexec(root, 0);
        let root = root.map_err(Failure::at(Step::Folder, usize::MAX))?;
        let copied = move || {
            let mut room = vec![0; LARGEST_COPY];
            for (source, target) in &files {
                copy(&root, source, target, &mut room)
                    .map_err(Failure::at(Step::Folder, usize::MAX))?;
            }
            Ok(())
        };
        Ok(Self(Some(spawn(copied).map_err(Failure::at(Step::Folder, usize::MAX))?)))
    }

    pub(super) fn finish(self) -> Result<(), Failure> {
        let broken = Failure::at(Step::Folder, usize::MAX)(Errno::IO);
        self.0.map_or(Ok(()), |copying| copying.join().unwrap_or(Err(broken)))
    }
}

fn copy(root: &OwnedFd, from: &CString, to: &CString, room: &mut [u8]) -> Result<(), Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(source) = rustix::fs::openat(CWD, from.as_c_str(), flags, Mode::empty()) else {
        // Gone since it was looked at: then it is not there inside either.
        return Ok(());
    };
    let mut filled = 0;
    while let Some(left) = room.get_mut(filled..).filter(|left| !left.is_empty()) {
        match rustix::io::read(&source, left) {
            // One that has just been cut short is no worse than one that will be.
            Ok(0) | Err(_) => break,
            Ok(count) => filled += count,
        }
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let target = rustix::fs::openat(root, to.as_c_str(), flags, Mode::from_raw_mode(0o444))?;
    let mut left = room.get(..filled).unwrap_or_default();
    while !left.is_empty() {
        let written = rustix::io::retry_on_intr(|| rustix::io::write(&target, left))?;
        left = left.get(written..).unwrap_or_default();
    }
    Ok(())
}

fn spawn<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, Errno> {
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(work);
    thread.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::AGAIN))
}
