//! The proxy itself: accepts, serves, ends.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

use super::admit::{Shared, Told};
use super::config::{Config, SharedDecider};
use super::connection;
use super::stream::Stream;
use crate::threads::Running;

/// Where connections come in: only from this machine.
#[derive(Debug)]
pub enum Listener {
    /// By TCP, at a loopback address.
    Tcp(std::net::TcpListener),
    /// By a socket of this machine.
    Unix(std::os::unix::net::UnixListener),
}

impl Listener {
    /// Listens at a loopback address.
    ///
    /// # Errors
    /// When it is none, or cannot be listened at.
    pub fn tcp(address: SocketAddr) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind(address)?;
        Ok(Self::Tcp(listener))
    }

    fn open(self) -> io::Result<Open> {
        match self {
            Self::Tcp(listener) => {
                if !listener.local_addr()?.ip().is_loopback() {
                    let why = "the proxy listens only where other machines cannot connect";
                    return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
                }
                listener.set_nonblocking(true)?;
                TcpListener::from_std(listener).map(Open::Tcp)
            }
            Self::Unix(listener) => {
                listener.set_nonblocking(true)?;
                UnixListener::from_std(listener).map(Open::Unix)
            }
        }
    }
}

enum Open {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Open {
    async fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Tcp(listener) => listener.accept().await.map(|(stream, _)| stream.into()),
            Self::Unix(listener) => listener.accept().await.map(|(stream, _)| stream.into()),
        }
    }
}

/// How long it waits when no connection can be accepted.
const PAUSE: Duration = Duration::from_millis(20);
/// How long the last outcomes may take to be recorded.
const LAST_RECORDS: Duration = Duration::from_secs(10);
/// Outcomes that are recorded at a time.
const RECORDERS: usize = 64;

/// Serves until `shutdown` is there; then every connection is cut, and recorded as such.
///
/// # Errors
/// When the listener cannot be used.
pub async fn serve(
    listener: Listener,
    config: Config,
    decider: SharedDecider,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let listener = listener.open()?;
    let (outcomes, told) = mpsc::unbounded_channel();
    let recorder = tokio::spawn(record(Arc::clone(&decider), told));
    let room = Arc::new(Semaphore::new(config.limits.connections.max(1)));
    let shared = Arc::new(Shared::new(config, decider, outcomes));
    let mut connections = JoinSet::new();
    tokio::pin!(shutdown);
    loop {
        let accepted = async {
            // Whoever comes when all places are taken waits in the listener's own queue.
            let place = Arc::clone(&room).acquire_owned().await.map_err(io::Error::other)?;
            listener.accept().await.map(|stream| (place, stream))
        };
        tokio::select! {
            () = &mut shutdown => break,
            accepted = accepted => match accepted {
                Ok((place, stream)) => {
                    let shared = Arc::clone(&shared);
                    connections.spawn(async move {
                        let _place = place;
                        connection::serve(shared, stream).await;
                    });
                }
                // Too many files are open, or the one who came is gone again.
                Err(_) => tokio::time::sleep(PAUSE).await,
            },
        }
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    connections.shutdown().await;
    drop(shared);
    let _ = tokio::time::timeout(LAST_RECORDS, recorder).await;
    Ok(())
}

/// Has outcomes recorded, several at a time.
async fn record(decider: SharedDecider, mut told: mpsc::UnboundedReceiver<Told>) {
    let room = Arc::new(Semaphore::new(RECORDERS));
    let mut recorders = JoinSet::new();
    while let Some(Told { request, record, outcome }) = told.recv().await {
        let Ok(place) = Arc::clone(&room).acquire_owned().await else { break };
        let decider = Arc::clone(&decider);
        recorders.spawn(async move {
            let _place = place;
            decider.outcome(&request, record.as_deref(), &outcome).await;
        });
        while recorders.try_join_next().is_some() {}
    }
    while recorders.join_next().await.is_some() {}
}

/// Serves on threads of its own, for programs that are not asynchronous; one is enough for most. Stopped,
/// it cuts every connection and has that recorded.
///
/// # Errors
/// When no thread or runtime can be started.
pub fn start(
    listener: Listener,
    config: Config,
    decider: SharedDecider,
    threads: usize,
) -> io::Result<Running> {
    Running::start("egress", threads, |stopped| {
        serve(listener, config, decider, async {
            let _ = stopped.await;
        })
    })
}
