//! Where the monitor is, and how it is asked from asynchronous code.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::sync::Semaphore;
use wardkeep_monitor::daemon::{Starter, ensure_running};
use wardkeep_monitor::monitor::{AskError, Monitor};
use wardkeep_monitor::wire::{Answer, Client, MAX_FRAME_BYTES, WireError, answer_to, question};

/// Questions at a time: each takes a thread, and with a daemon a connection.
const SLOTS: usize = 24;
/// How long the daemon may take for an answer.
const ANSWER: Duration = Duration::from_secs(5);
/// How long a daemon may take to come up.
const START: Duration = Duration::from_secs(5);

/// Where the monitor is.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    at: Arc<At>,
    slots: Arc<Semaphore>,
}

#[derive(Debug)]
enum At {
    Here(Arc<Monitor>),
    Daemon { state: PathBuf, starter: Starter, idle: Mutex<Vec<Line>> },
}

/// A connection to the daemon that nobody waits on in a thread.
#[derive(Debug)]
struct Line {
    stream: UnixStream,
    next: u64,
}

impl Line {
    /// Asks, and waits for the answer. After an error that is no refusal it is of no use.
    async fn call(&mut self, operation: &str, asked: &impl Serialize) -> Result<Answer, WireError> {
        let id = self.next;
        self.next += 1;
        let question = question(id, operation, asked)?;
        // Who refuses early may close before all is sent; the answer says why.
        let _ = self.stream.write_all(&question).await;
        let closed = |_| WireError::Closed;
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).await.map_err(closed)?;
        let length = u32::from_le_bytes(length) as usize;
        if length > MAX_FRAME_BYTES {
            return Err(WireError::Malformed(format!("a frame of {length} bytes")));
        }
        let mut bytes = Vec::new();
        let mut part = (&mut self.stream).take(length as u64);
        part.read_to_end(&mut bytes).await.map_err(closed)?;
        if bytes.len() < length {
            return Err(WireError::Closed);
        }
        answer_to(id, &bytes)
    }
}

impl Place {
    /// In this process.
    pub(crate) fn here(monitor: Arc<Monitor>) -> Self {
        Self::new(At::Here(monitor))
    }

    /// In the daemon of a state directory, which is started where it does not run.
    pub(crate) fn daemon(state: &Path, starter: Starter) -> Self {
        Self::new(At::Daemon { state: state.to_owned(), starter, idle: Mutex::default() })
    }

    fn new(at: At) -> Self {
        Self { at: Arc::new(at), slots: Arc::new(Semaphore::new(SLOTS)) }
    }

    /// Asks by an operation, or by the method that answers it. Whatever goes wrong is an error, and an
    /// error is a denial.
    pub(crate) async fn ask<Q, A>(
        &self,
        operation: &'static str,
        asked: Q,
        method: fn(&Monitor, &Q) -> Result<A, AskError>,
    ) -> Result<A, String>
    where
        Q: serde::Serialize + Send + 'static,
        A: serde::de::DeserializeOwned + Send + 'static,
    {
        let slot = Arc::clone(&self.slots).acquire_owned().await;
        let slot = slot.map_err(|error| error.to_string())?;
        if let At::Here(monitor) = &*self.at {
            let monitor = Arc::clone(monitor);
            let answered = tokio::task::spawn_blocking(move || {
                let _slot = slot;
                method(&monitor, &asked).map_err(|error| error.to_string())
            });
            return answered.await.map_err(|error| error.to_string())?;
        }
        let mut kept = self.idle();
        loop {
            let reused = kept.is_some();
            let mut line = match kept.take() {
                Some(line) => line,
                None => self.connected().await?,
            };
            let called = tokio::time::timeout(ANSWER, line.call(operation, &asked)).await;
            let called = called.unwrap_or(Err(WireError::Deadline(ANSWER)));
            match called.and_then(|answer| answer.read()) {
                Ok(answer) => {
                    self.keep(line);
                    return Ok(answer);
                }
                // The daemon closes connections that were quiet for long.
                Err(WireError::Closed) if reused => {}
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    fn idle(&self) -> Option<Line> {
        match &*self.at {
            At::Here(_) => None,
            At::Daemon { idle, .. } => idle.lock().unwrap_or_else(PoisonError::into_inner).pop(),
        }
    }

    fn keep(&self, line: Line) {
        if let At::Daemon { idle, .. } = &*self.at {
            idle.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        }
    }

    /// A new connection; making it may have to wait for a daemon to come up.
    async fn connected(&self) -> Result<Line, String> {
        let at = Arc::clone(&self.at);
        let made = tokio::task::spawn_blocking(move || match &*at {
            At::Here(_) => Err("there is no daemon to ask".to_owned()),
            At::Daemon { state, starter, .. } => connect(state, starter),
        });
        let stream = made.await.map_err(|error| error.to_string())??.into_stream();
        stream.set_nonblocking(true).map_err(|error| error.to_string())?;
        let stream = UnixStream::from_std(stream).map_err(|error| error.to_string())?;
        Ok(Line { stream, next: 1 })
    }
}

fn connect(state: &Path, starter: &Starter) -> Result<Client, String> {
    match Client::connect(state, ANSWER) {
        // A daemon ends when nobody has asked for long.
        Err(error) if error.is_absent() => {
            let started = ensure_running(state, starter, START).map_err(|e| e.to_string())?;
            Ok(started.0)
        }
        connected => connected.map_err(|error| error.to_string()),
    }
}
