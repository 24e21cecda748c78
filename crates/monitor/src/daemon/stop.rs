//! One word for all threads: it is over.

use std::io::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Says when to stop. It can be waited for together with a socket, and set by a signal: whoever
/// writes a byte to [`Stop::waker`] sets it.
#[derive(Debug)]
pub struct Stop {
    // A byte that nobody takes out wakes everybody.
    read: UnixStream,
    write: UnixStream,
}

/// What was waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Woken {
    /// There is something to read.
    Ready,
    /// It is over.
    Stop,
    /// The time is up.
    Late,
}

impl Stop {
    /// A stop that is not set.
    ///
    /// # Errors
    /// When there are no more descriptors.
    pub fn new() -> io::Result<Self> {
        let (read, write) = UnixStream::pair()?;
        read.set_nonblocking(true)?;
        write.set_nonblocking(true)?;
        Ok(Self { read, write })
    }

    /// Sets it.
    pub fn set(&self) {
        // A full pipe is one that was written to.
        let _ = (&self.write).write(&[1]);
    }

    /// A stream that sets it when a byte is written to it.
    ///
    /// # Errors
    /// When there are no more descriptors.
    pub fn waker(&self) -> io::Result<UnixStream> {
        self.write.try_clone()
    }

    /// Whether it is set.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.wait(Duration::ZERO)
    }

    /// Waits until it is set, at most `patience`; says whether it is.
    #[must_use]
    pub fn wait(&self, patience: Duration) -> bool {
        wait_for(&mut [self.read.as_fd()], Some(patience)) != Woken::Late
    }

    /// Waits until there is something to read, or it is set. What there is to read comes first.
    pub(super) fn wait_with(&self, socket: &impl AsFd, patience: Option<Duration>) -> Woken {
        wait_for(&mut [socket.as_fd(), self.read.as_fd()], patience)
    }
}

/// Waits for the first of some; the first of them is the socket.
fn wait_for(fds: &mut [BorrowedFd<'_>], patience: Option<Duration>) -> Woken {
    let mut polled: Vec<PollFd<'_>> =
        fds.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    let timeout = patience.and_then(|patience| Timespec::try_from(patience).ok());
    match poll(&mut polled, timeout.as_ref()) {
        Ok(0) => Woken::Late,
        Ok(_) => match polled.first() {
            Some(first) if !first.revents().is_empty() => Woken::Ready,
            _ => Woken::Stop,
        },
        // Whoever asked looks again.
        Err(rustix::io::Errno::INTR) => Woken::Late,
        Err(_) => Woken::Stop,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stays_set_and_wakes_everybody() {
        let stop = Stop::new().unwrap();
        let (socket, mut other) = UnixStream::pair().unwrap();
        assert!(!stop.is_set());
        assert_eq!(stop.wait_with(&socket, Some(Duration::ZERO)), Woken::Late);
        stop.waker().unwrap().write_all(&[7]).unwrap();
        for _ in 0..3 {
            assert!(stop.is_set() && stop.wait(Duration::from_secs(60)));
            assert_eq!(stop.wait_with(&socket, None), Woken::Stop);
        }
        other.write_all(&[1]).unwrap();
        assert_eq!(stop.wait_with(&socket, None), Woken::Ready);
        (0..100_000).for_each(|_| stop.set());
        assert!(stop.is_set());
    }
}
