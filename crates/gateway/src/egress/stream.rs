//! A connection, read and written by several at once.

use std::cell::RefCell;
use std::io;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{RecvFlags, Shutdown};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

/// A connection.
#[derive(Debug)]
pub(super) enum Stream {
    /// By TCP.
    Tcp(TcpStream),
    /// By a socket of this machine.
    Unix(UnixStream),
}

impl From<TcpStream> for Stream {
    fn from(stream: TcpStream) -> Self {
        // Only slower without it.
        let _ = stream.set_nodelay(true);
        Self::Tcp(stream)
    }
}

impl From<UnixStream> for Stream {
    fn from(stream: UnixStream) -> Self {
        Self::Unix(stream)
    }
}

/// Bytes read at once.
const PIECE: usize = 64 << 10;

thread_local! {
    // One for a thread, not one for a connection: idle connections need no memory.
    static PIECES: RefCell<Vec<u8>> = RefCell::new(vec![0; PIECE]);
}

impl Stream {
    async fn readable(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.readable().await,
            Self::Unix(stream) => stream.readable().await,
        }
    }

    async fn writable(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.writable().await,
            Self::Unix(stream) => stream.writable().await,
        }
    }

    fn try_read(&self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.try_read(bytes),
            Self::Unix(stream) => stream.try_read(bytes),
        }
    }

    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.try_write(bytes),
            Self::Unix(stream) => stream.try_write(bytes),
        }
    }

    /// Reads what is there and hands it to `take`; an empty piece is the end.
    pub(super) async fn read_with<T>(&self, mut take: impl FnMut(&[u8]) -> T) -> io::Result<T> {
        loop {
            self.readable().await?;
            let taken = PIECES.with_borrow_mut(|piece| match self.try_read(piece) {
                Ok(count) => Ok(Some(take(&piece[..count]))),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
                Err(error) => Err(error),
            })?;
            if let Some(taken) = taken {
                return Ok(taken);
            }
        }
    }

    /// Reads what is there, up to `most`, onto the end of `bytes`; `false` is the end.
    pub(super) async fn read_onto(&self, bytes: &mut Vec<u8>, most: usize) -> io::Result<bool> {
        let most = most.min(PIECE);
        loop {
            self.readable().await?;
            let read = PIECES.with_borrow_mut(|piece| match self.try_read(&mut piece[..most]) {
                Ok(count) => {
                    bytes.extend_from_slice(&piece[..count]);
                    Ok(Some(count > 0))
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
                Err(error) => Err(error),
            })?;
            if let Some(read) = read {
                return Ok(read);
            }
        }
    }

    /// Writes as much as can be written at once.
    pub(super) fn write_some(&self, bytes: &[u8]) -> io::Result<usize> {
        match self.try_write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            written => written,
        }
    }

    /// Writes all.
    pub(super) async fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        self.write_counted(bytes, |_| {}).await
    }

    /// Writes all, and tells of each part when it has gone: whoever waits here may be broken off.
    pub(super) async fn write_counted(
        &self,
        bytes: &[u8],
        moved: impl Fn(usize),
    ) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let written = self.write_some(rest)?;
            rest = &rest[written..];
            if written == 0 {
                self.writable().await?;
            } else {
                moved(written);
            }
        }
        Ok(())
    }

    /// From now on, what is sent has to be acknowledged within this time.
    pub(super) fn give_up_after(&self, time: Duration) {
        if let Self::Tcp(stream) = self {
            let millis = u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
            // Without it, it only takes longer.
            let _ = rustix::net::sockopt::set_tcp_user_timeout(stream, millis);
        }
    }

    /// Whether the other side neither says anything nor has gone.
    pub(super) fn is_quiet(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let mut byte = [0_u8];
        let heard = match self {
            Self::Tcp(stream) => rustix::net::recv(stream, &mut byte[..], flags),
            Self::Unix(stream) => rustix::net::recv(stream, &mut byte[..], flags),
        };
        matches!(heard, Err(Errno::AGAIN))
    }

    /// Says that nothing more will be written.
    pub(super) fn close_writing(&self) {
        // A connection that is gone already is closed.
        let _ = match self {
            Self::Tcp(stream) => rustix::net::shutdown(stream, Shutdown::Write),
            Self::Unix(stream) => rustix::net::shutdown(stream, Shutdown::Write),
        };
    }

    /// Writes a last answer and takes what is still coming for a moment, so that the answer is not
    /// lost with bytes that nobody read.
    pub(super) async fn finish_with(&self, bytes: &[u8], patience: Duration) {
        let last = async {
            self.write_all(bytes).await?;
            self.close_writing();
            let mut left = 1usize << 20;
            while left > 0 {
                let count = self.read_with(<[u8]>::len).await?;
                if count == 0 {
                    break;
                }
                left = left.saturating_sub(count);
            }
            io::Result::Ok(())
        };
        let _ = timeout(patience, last).await;
    }
}
