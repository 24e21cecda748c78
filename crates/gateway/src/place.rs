//! Where the monitor is, and how it is asked from asynchronous code.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use wardkeep_monitor::daemon::{Starter, ensure_running};
use wardkeep_monitor::monitor::{AskError, Monitor};
use wardkeep_monitor::wire::{Client, WireError};

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
    Daemon { state: PathBuf, starter: Starter, idle: Mutex<Vec<Client>> },
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
        let at = Arc::clone(&self.at);
        let answered = tokio::task::spawn_blocking(move || {
            let _slot = slot;
            match &*at {
                At::Here(monitor) => method(monitor, &asked).map_err(|error| error.to_string()),
                At::Daemon { state, starter, idle } => {
                    let idle = || idle.lock().unwrap_or_else(PoisonError::into_inner);
                    let mut kept = idle().pop();
                    loop {
                        let reused = kept.is_some();
                        let mut client = match kept.take() {
                            Some(client) => client,
                            None => connect(state, starter)?,
                        };
                        let answer =
                            client.call(operation, &asked).and_then(|answer| answer.read());
                        match answer {
                            Ok(answer) => {
                                idle().push(client);
                                return Ok(answer);
                            }
                            // The daemon closes connections that were quiet for long.
                            Err(WireError::Closed) if reused => {}
                            Err(error) => return Err(error.to_string()),
                        }
                    }
                }
            }
        });
        answered.await.map_err(|error| error.to_string())?
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
