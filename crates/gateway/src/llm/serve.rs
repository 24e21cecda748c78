//! The proxy itself: accepts, serves, ends.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::config::Config;
use super::door::Door;
use super::judge::Judge;
use crate::threads::Running;

/// How long it waits when no connection can be accepted.
const PAUSE: Duration = Duration::from_millis(20);
/// Streams of one connection at a time.
const STREAMS: u32 = 256;
/// What a connection by HTTP/2 begins with.
const PREFACE: &[u8] = b"PRI";

/// Serves until `shutdown` is there; then nothing new is taken, and open replies get their time to
/// end.
///
/// # Errors
/// When the listener or the certificates of this system cannot be used.
pub async fn serve(
    listener: std::net::TcpListener,
    config: Config,
    judge: Arc<dyn Judge>,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    through(listener, Door::new(config, judge)?, shutdown).await
}

async fn through(
    listener: std::net::TcpListener,
    door: Door,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let (limits, door) = (door.limits(), Arc::new(door));
    let room = Arc::new(Semaphore::new(limits.connections.max(1)));
    let (ending, ended) = watch::channel(false);
    let mut connections = JoinSet::new();
    tokio::pin!(shutdown);
    loop {
        let accepted = async {
            // Whoever comes when all places are taken waits in the listener's own queue.
            let place = Arc::clone(&room).acquire_owned().await.map_err(io::Error::other)?;
            listener.accept().await.map(|(stream, _)| (place, stream))
        };
        tokio::select! {
            () = &mut shutdown => break,
            accepted = accepted => match accepted {
                Ok((place, stream)) => {
                    let (door, ended) = (Arc::clone(&door), ended.clone());
                    connections.spawn(async move {
                        let _place = place;
                        connection(stream, door, ended).await;
                    });
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            },
        }
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    let _ = ending.send(true);
    let all = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(limits.farewell, all).await.is_err() {
        connections.shutdown().await;
    }
    door.settled().await;
    Ok(())
}

async fn connection(stream: TcpStream, door: Arc<Door>, mut ended: watch::Receiver<bool>) {
    let _ = stream.set_nodelay(true);
    let limits = door.limits();
    let Ok(Some(second)) = tokio::time::timeout(limits.head, is_second(&stream)).await else {
        return;
    };
    let service = service_fn(move |request| {
        let door = Arc::clone(&door);
        async move { Ok::<_, std::convert::Infallible>(door.answer(request).await) }
    });
    let io = TokioIo::new(stream);
    // Whoever goes away ends the connection; there is nobody left to tell.
    if second {
        let mut server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        server
            .timer(TokioTimer::new())
            .max_concurrent_streams(STREAMS)
            .max_header_list_size(64 << 10)
            .keep_alive_interval(Some(Duration::from_secs(30)));
        let served = server.serve_connection(io, service);
        tokio::pin!(served);
        tokio::select! {
            _ = &mut served => return,
            _ = ended.wait_for(|ended| *ended) => served.as_mut().graceful_shutdown(),
        }
        let _ = served.await;
    } else {
        let mut server = hyper::server::conn::http1::Builder::new();
        server.timer(TokioTimer::new()).header_read_timeout(limits.head).max_buf_size(256 << 10);
        let served = server.serve_connection(io, service);
        tokio::pin!(served);
        tokio::select! {
            _ = &mut served => return,
            _ = ended.wait_for(|ended| *ended) => served.as_mut().graceful_shutdown(),
        }
        let _ = served.await;
    }
}

/// Whether a connection begins as HTTP/2 does; nothing where it ends before that can be told.
async fn is_second(stream: &TcpStream) -> Option<bool> {
    let mut begin = [0; PREFACE.len()];
    loop {
        let count = stream.peek(&mut begin).await.ok()?;
        if count == 0 {
            return None;
        }
        if !PREFACE.starts_with(&begin[..count]) {
            return Some(false);
        }
        if count == PREFACE.len() {
            return Some(true);
        }
        // What is there stays there, so there is nothing to wait for.
        tokio::time::sleep(PAUSE).await;
    }
}

/// Serves on threads of its own, for programs that are not asynchronous. Stopped, it lets open replies end.
///
/// # Errors
/// When the certificates of this system cannot be used, or no thread or runtime can be started.
pub fn start(
    listener: std::net::TcpListener,
    config: Config,
    judge: Arc<dyn Judge>,
    threads: usize,
) -> io::Result<Running> {
    // Before there is a thread: whoever starts it is told what is wrong.
    let door = Door::new(config, judge)?;
    Running::start("model-proxy", threads, |stopped| {
        through(listener, door, async {
            let _ = stopped.await;
        })
    })
}
