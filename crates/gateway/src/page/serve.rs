//! The page itself: accepts, serves, ends.

use std::io;
use std::net::TcpListener as StdListener;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::door::Config;
use super::live;
use super::office::Office;
use super::routes::{self, Desk};
use super::stall::Impatient;
use crate::threads::Running;

/// Connections at a time.
const CONNECTIONS: usize = 64;
/// How long the head of a request may take.
const HEAD: Duration = Duration::from_secs(10);
/// How long answers may take to end when the page is to end.
const FAREWELL: Duration = Duration::from_secs(5);
/// How long it waits when no connection can be accepted.
const PAUSE: Duration = Duration::from_millis(20);
/// Threads for requests; what takes long has threads of its own.
const THREADS: usize = 1;

/// Serves the page on threads of its own; it ends when what is given back is dropped. Answers that were
/// asked for get their time to end, views that tell of news end at once.
///
/// # Errors
/// When the listener or a thread cannot be used.
pub fn start(
    listener: StdListener,
    config: Config,
    office: Arc<dyn Office>,
    random: impl Fn() -> io::Result<String> + Send + Sync + 'static,
) -> io::Result<Running> {
    listener.set_nonblocking(true)?;
    Running::start("page", THREADS, move |stop| async move {
        let listener = TcpListener::from_std(listener)?;
        let (news, _) = watch::channel(0);
        let (ending, ended) = watch::channel(false);
        let own = Arc::clone(&office);
        let desk = Arc::new(Desk::new(config, own, news.clone(), ended, Box::new(random)));
        let looking = tokio::spawn(live::look(office, news));
        let served = serve(listener, desk, &ending, stop).await;
        looking.abort();
        served
    })
}

async fn serve(
    listener: TcpListener,
    desk: Arc<Desk>,
    ending: &watch::Sender<bool>,
    stop: tokio::sync::oneshot::Receiver<()>,
) -> io::Result<()> {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    tokio::pin!(stop);
    loop {
        let accepted = async {
            let place = Arc::clone(&room).acquire_owned().await.map_err(io::Error::other)?;
            listener.accept().await.map(|(stream, _)| (place, stream))
        };
        tokio::select! {
            _ = &mut stop => break,
            accepted = accepted => match accepted {
                Ok((place, stream)) => {
                    let desk = Arc::clone(&desk);
                    connections.spawn(async move {
                        let _place = place;
                        connection(stream, desk).await;
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
    if tokio::time::timeout(FAREWELL, all).await.is_err() {
        connections.shutdown().await;
    }
    Ok(())
}

async fn connection(stream: TcpStream, desk: Arc<Desk>) {
    let _ = stream.set_nodelay(true);
    let mut ended = desk.ended();
    let service = TowerToHyperService::new(routes::router(desk));
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(64 << 10)
        .serve_connection(TokioIo::new(Impatient::new(stream)), service);
    tokio::pin!(served);
    // Whoever went away is not told.
    tokio::select! {
        _ = &mut served => return,
        _ = ended.wait_for(|ended| *ended) => served.as_mut().graceful_shutdown(),
    }
    let _ = served.await;
}
