//! The daemon is kept as long as a run lasts: the socket that hooks have inside is that of this one, and no other that
//! is started later.

use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use wardkeep_monitor::wire::Client;

/// Sooner than a connection that asks nothing is closed.
const AGAIN: Duration = Duration::from_secs(20);
/// How long the daemon may take.
const ANSWER: Duration = Duration::from_secs(5);

/// A daemon that does not end, since somebody is connected; until this is dropped.
pub(super) struct Daemon {
    _end: Sender<()>,
}

impl Daemon {
    /// Holds it by a connection, and by others after that.
    pub(super) fn hold(client: Option<Client>, state: &Path) -> Self {
        let (end, ended) = channel();
        let state = state.to_owned();
        // Where there is no thread for it, it may end after a while, and hooks inside deny.
        let _ = std::thread::Builder::new().stack_size(64 << 10).spawn(move || {
            let mut held = client;
            while ended.recv_timeout(AGAIN) == Err(RecvTimeoutError::Timeout) {
                if let Ok(next) = Client::connect(&state, ANSWER) {
                    held = Some(next);
                }
            }
            drop(held);
        });
        Self { _end: end }
    }
}
