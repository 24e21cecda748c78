//! A connection with an end in time.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

/// Reads and writes until a moment, however slowly the other side does its part.
#[derive(Debug)]
pub(crate) struct Timed<'s> {
    stream: &'s UnixStream,
    until: Instant,
}

impl<'s> Timed<'s> {
    pub(crate) fn new(stream: &'s UnixStream, until: Instant) -> Self {
        Self { stream, until }
    }

    /// The time left, which is never zero.
    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "it took too long"));
        }
        Ok(Some(left))
    }
}

impl Read for Timed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // Most of it is there already; then no time has to be set.
        match rustix::net::recv(self.stream, &mut *buffer, RecvFlags::DONTWAIT) {
            Ok((count, _)) => return Ok(count),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        self.stream.set_read_timeout(self.left()?)?;
        let mut stream = self.stream;
        stream.read(buffer)
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match rustix::net::send(self.stream, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Ok(count) => return Ok(count),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        self.stream.set_write_timeout(self.left()?)?;
        let mut stream = self.stream;
        stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
