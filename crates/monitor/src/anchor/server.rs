//! The witness server: cosigns the checkpoints of other logs as long as each continues the last.
//!
//! Every byte of a request is hostile. A connection costs one thread of a fixed pool, for a bounded
//! time and a bounded number of bytes, and is closed after one answer.

mod ledger;

use std::fmt;
use std::io::{self, Read, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use thiserror::Error;
use wardkeep_evidence::note::{Algorithm, SigningKey};
use wardkeep_evidence::seal::LogPublic;

pub use self::ledger::{KnownLog, LedgerError};
use self::ledger::{Ledger, Verdict};
use super::http::{self, DeadlineStream, HeadError, MAX_HEADERS};
use super::request::{ADD_CHECKPOINT, AddCheckpoint, LATEST, LOG_HEADER, SIZE_TYPE};

/// The largest body of a request, in bytes.
pub const MAX_BODY_BYTES: usize = 128 * 1024;

const TEXT: &str = "text/plain; charset=utf-8";
// How often a thread that waits for a connection looks whether it should stop.
const STOP_INTERVAL: Duration = Duration::from_millis(100);
const CLOSING_PATIENCE: Duration = Duration::from_secs(1);

/// How a witness serves.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// What the paths begin with: empty, or `/` and a name.
    pub prefix: String,
    /// How many connections are served at a time.
    pub threads: usize,
    /// How long one read or write may wait.
    pub step: Duration,
    /// How long a request may take from its first byte to its last.
    pub deadline: Duration,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            prefix: String::new(),
            threads: 8,
            step: Duration::from_secs(5),
            deadline: Duration::from_secs(10),
        }
    }
}

/// A witness with its key and its memory.
pub struct WitnessServer {
    key: SigningKey,
    accept_new: bool,
    options: ServerOptions,
    clock: Box<dyn Fn() -> u64 + Send + Sync>,
    observer: Box<dyn Fn(&Served<'_>) + Send + Sync>,
    // INVARIANT: held from the check of a request until what it changes is on disk, so that no
    // other request is checked against a state that is about to change.
    ledger: Mutex<Ledger>,
}

impl WitnessServer {
    /// Opens the memory in `state_dir`, which is made when it is missing and which one witness
    /// uses at a time.
    ///
    /// `key` must be a [`Algorithm::CosignatureV1`] key and `clock` gives the Unix time. With
    /// `accept_new`, logs whose origin is the hash of the keys they send are accepted unasked.
    pub fn open(
        state_dir: &Path,
        key: SigningKey,
        logs: Vec<KnownLog>,
        accept_new: bool,
        clock: impl Fn() -> u64 + Send + Sync + 'static,
    ) -> Result<Self, ServerError> {
        if key.verifier().algorithm() != Algorithm::CosignatureV1 {
            return Err(ServerError::Key);
        }
        let ledger = Mutex::new(Ledger::open(state_dir, logs)?);
        let options = ServerOptions::default();
        let observer = Box::new(|_: &Served<'_>| {});
        Ok(Self { key, accept_new, options, clock: Box::new(clock), observer, ledger })
    }

    /// Serves in another way than the default one.
    pub fn with_options(mut self, options: ServerOptions) -> Self {
        self.options = options;
        self
    }

    /// Tells `observer` of every connection that was answered, before the answer is sent; it is
    /// called by several threads at a time.
    pub fn with_observer(mut self, observer: impl Fn(&Served<'_>) + Send + Sync + 'static) -> Self {
        self.observer = Box::new(observer);
        self
    }

    /// Serves until `stop` is set, then waits for the connections at work.
    pub fn run(&self, listener: TcpListener, stop: &AtomicBool) -> Result<(), ServerError> {
        // A listener takes the timeout of a stream for `accept`; the standard library offers it
        // only for streams, and both are the same socket.
        let same_socket = TcpStream::from(OwnedFd::from(listener.try_clone()?));
        same_socket.set_read_timeout(Some(STOP_INTERVAL))?;
        listener.set_nonblocking(false)?;
        thread::scope(|scope| {
            for _ in 0..self.options.threads.max(1) {
                let worker = || self.serve(&listener, stop);
                if let Err(error) = thread::Builder::new().spawn_scoped(scope, worker) {
                    stop.store(true, Ordering::Relaxed);
                    return Err(error.into());
                }
            }
            Ok(())
        })
    }

    fn serve(&self, listener: &TcpListener, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            match listener.accept() {
                Ok((stream, peer)) => self.serve_connection(stream, peer),
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock
                    | io::ErrorKind::TimedOut
                    | io::ErrorKind::Interrupted
                    | io::ErrorKind::ConnectionAborted => {}
                    // Out of descriptors or memory: wait for some to come back.
                    _ => thread::park_timeout(STOP_INTERVAL),
                },
            }
        }
    }

    fn serve_connection(&self, stream: TcpStream, peer: SocketAddr) {
        let until = Instant::now() + self.options.deadline;
        let mut stream = DeadlineStream::new(stream, until, self.options.step);
        let request = read_request(&mut stream);
        let answer = match &request {
            Ok(request) => self.answer(request),
            Err(Unreadable::Refused(status, reason)) => Answer::text(*status, reason),
            // Gone or too slow: there is nobody to answer.
            Err(Unreadable::Connection) => return,
        };
        let (method, target) =
            request.as_ref().map_or(("", ""), |request| (&request.method, &request.target));
        (self.observer)(&Served { peer, method, target, status: answer.status });
        if stream.write_all(&answer.to_bytes()).is_ok() {
            stream.close(CLOSING_PATIENCE, 2 * MAX_BODY_BYTES);
        }
    }

    fn answer(&self, request: &Request) -> Answer {
        let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
        let below = path.strip_prefix(self.options.prefix.as_str());
        let get = match request.method.as_str() {
            "GET" => true,
            "POST" => false,
            _ => return Answer::text(405, "only GET and POST are served"),
        };
        match (get, below) {
            (false, Some(ADD_CHECKPOINT)) if query.is_empty() => {
                self.add_checkpoint(&request.body, request.log.as_deref())
            }
            (true, Some(LATEST)) => self.latest(query),
            (true, _) if path == "/" => self.introduction(),
            (true, Some(ADD_CHECKPOINT)) => Answer::text(405, "send checkpoints with POST"),
            _ => Answer::text(404, "there is nothing here"),
        }
    }

    /// Answers the body of an `add-checkpoint` request; `log` is the log's introduction of itself.
    ///
    /// When the status is 200, the new size is on disk before this returns.
    pub fn add_checkpoint(&self, body: &[u8], log: Option<&str>) -> Answer {
        let request = match AddCheckpoint::parse(body) {
            Ok(request) => request,
            Err(error) => return Answer::text(400, &error.to_string()),
        };
        let introduced = match self.introduced(&request.checkpoint.origin, log) {
            Ok(introduced) => introduced,
            Err(answer) => return answer,
        };
        let now = (self.clock)();
        match self.ledger().add(&request, introduced, &self.key, now) {
            Ok(Verdict::Cosigned(signature)) => Answer::text(200, &format!("{signature}\n")),
            Ok(Verdict::UnknownLog) => Answer::text(404, "this log is not registered here"),
            Ok(Verdict::NotSigned) => Answer::text(403, "the log's key did not sign this"),
            Ok(Verdict::OldAboveNew) => Answer::text(400, "the old size is above the new one"),
            Ok(Verdict::Conflict { held }) => {
                Answer { status: 409, content_type: SIZE_TYPE, body: format!("{held}\n") }
            }
            Ok(Verdict::BadProof) => Answer::text(422, "the proof does not hold"),
            Ok(Verdict::Full) => Answer::text(503, "no more logs are accepted"),
            Err(error) => Answer::text(503, &error.to_string()),
        }
    }

    /// The keys a log introduces itself with, when they are the ones its origin is made from.
    fn introduced(&self, origin: &str, log: Option<&str>) -> Result<Option<LogPublic>, Answer> {
        let Some(text) = log.filter(|_| self.accept_new) else { return Ok(None) };
        let log: LogPublic = text.parse().map_err(|_| Answer::text(400, "not a log's keys"))?;
        Ok(Some(log).filter(|log| log.origin() == origin))
    }

    fn latest(&self, query: &str) -> Answer {
        let origin = query.strip_prefix("origin=").and_then(http::percent_decode);
        let Some(origin) = origin else { return Answer::text(400, "ask for `?origin=`") };
        match self.ledger().head(&origin) {
            Some(note) => Answer::text(200, &note.to_string()),
            None => Answer::text(404, "nothing was cosigned for this log"),
        }
    }

    fn introduction(&self) -> Answer {
        let key = self.key.verifier();
        Answer::text(200, &format!("wardkeep witness {}\n{key}\n", key.name()))
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        // A ledger changes in memory in one step, after the disk; no panic leaves it halfway.
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for WitnessServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("WitnessServer")
            .field("key", self.key.verifier())
            .field("accept_new", &self.accept_new)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// A connection that was answered. Method and target are the other side's own words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Served<'a> {
    /// Who asked.
    pub peer: SocketAddr,
    /// The method; empty when the request was not understood.
    pub method: &'a str,
    /// Path and query; empty when the request was not understood.
    pub target: &'a str,
    /// The status of the answer.
    pub status: u16,
}

/// Why a witness does not serve.
#[derive(Debug, Error)]
pub enum ServerError {
    /// The key does not make cosignatures.
    #[error("the key is not a cosignature/v1 key; make one for the witness")]
    Key,
    /// The memory cannot be opened.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The listener or a thread failed.
    #[error("cannot serve: {0}; check the address and the limits of this process")]
    Listen(#[from] io::Error),
}

/// What a witness says to one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The type of the body.
    pub content_type: &'static str,
    /// The body.
    pub body: String,
}

impl Answer {
    fn text(status: u16, body: &str) -> Self {
        let newline = if body.ends_with('\n') { "" } else { "\n" };
        Self { status, content_type: TEXT, body: format!("{body}{newline}") }
    }

    fn to_bytes(&self) -> Vec<u8> {
        let Self { status, content_type, body } = self;
        let reason = match status {
            200 => "OK",
            403 => "Forbidden",
            404 => "Not Found",
            405 => "Method Not Allowed",
            408 => "Request Timeout",
            409 => "Conflict",
            411 => "Length Required",
            413 => "Content Too Large",
            422 => "Unprocessable Entity",
            431 => "Request Header Fields Too Large",
            501 => "Not Implemented",
            503 => "Service Unavailable",
            505 => "HTTP Version Not Supported",
            _ => "Bad Request",
        };
        let length = body.len();
        format!(
            "HTTP/1.1 {status} {reason}\r\nContent-Type: {content_type}\r\n\
             Content-Length: {length}\r\nConnection: close\r\n\
             X-Content-Type-Options: nosniff\r\n\r\n{body}"
        )
        .into_bytes()
    }
}

/// A request as far as it matters here.
#[derive(Debug)]
struct Request {
    method: String,
    target: String,
    log: Option<String>,
    body: Vec<u8>,
}

/// Why there is no request.
#[derive(Debug)]
enum Unreadable {
    Refused(u16, &'static str),
    Connection,
}

fn read_request(stream: &mut impl Read) -> Result<Request, Unreadable> {
    let (mut received, head_length) = http::read_head(stream).map_err(|error| match error {
        HeadError::TooLarge => Unreadable::Refused(431, "the headers are too large"),
        HeadError::Connection(error) => too_slow(&error),
    })?;
    let mut body = received.split_off(head_length);
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    let refuse = |status, reason| Err(Unreadable::Refused(status, reason));
    match parsed.parse(&received) {
        Ok(httparse::Status::Complete(_)) => {}
        Err(httparse::Error::TooManyHeaders) => return refuse(431, "too many headers"),
        Err(httparse::Error::Version) => return refuse(505, "only HTTP/1.0 and 1.1 are spoken"),
        _ => return refuse(400, "the headers are malformed"),
    }
    let method = parsed.method.unwrap_or_default().to_owned();
    let target = parsed.path.unwrap_or_default().to_owned();
    let headers = &*parsed.headers;
    let is_present = |name| !matches!(http::single_header(headers, name), Ok(None));
    if is_present("transfer-encoding") {
        return refuse(501, "send the body with a Content-Length");
    }
    let Ok(length) = http::content_length(headers) else {
        return refuse(400, "the Content-Length is malformed");
    };
    let length = match length {
        None if method == "POST" => return refuse(411, "send the body with a Content-Length"),
        None => 0,
        Some(length) => usize::try_from(length).unwrap_or(usize::MAX),
    };
    if length > MAX_BODY_BYTES {
        return refuse(413, "the body is too large");
    }
    let Ok(log) = http::single_header(headers, LOG_HEADER) else {
        return refuse(400, "the log introduces itself twice");
    };
    let log = log.map(|value| String::from_utf8_lossy(value).into_owned());
    if body.len() > length {
        return refuse(400, "more follows than the Content-Length says");
    }
    let missing = length - body.len();
    let mut rest = vec![0; missing];
    stream.read_exact(&mut rest).map_err(|error| too_slow(&error))?;
    body.extend(rest);
    Ok(Request { method, target, log, body })
}

fn too_slow(error: &io::Error) -> Unreadable {
    match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
            Unreadable::Refused(408, "the request took too long")
        }
        _ => Unreadable::Connection,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_request_is_survived(parts in prop::collection::vec(prop_oneof![
            Just(b"POST /add-checkpoint HTTP/1.1\r\n".to_vec()), Just(b"GET / HTTP/1.0\r\n".to_vec()),
            Just(b"Content-Length: 3\r\n".to_vec()), Just(b"\r\n".to_vec()), Just(b"\r\n\r\nabc".to_vec()),
            prop::collection::vec(any::<u8>(), 0..40),
        ], 0..8)) {
            let _ = read_request(&mut parts.concat().as_slice());
        }
    }
}
