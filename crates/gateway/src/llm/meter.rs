//! What went through since the start, counted.

use std::sync::{Arc, Mutex, PoisonError};

use super::judge::{Ended, Seen};
use super::reply::Ruling;

/// Counts of what went through since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Turns that were read and judged.
    pub requests: u64,
    /// Of them, denied: the model was not asked.
    pub denied: u64,
    /// Pieces of requests that were replaced; on each call that repeats one, it is replaced again.
    pub withheld: u64,
    /// Tool calls of replies that were judged.
    pub calls: u64,
    /// Of them, denied.
    pub calls_denied: u64,
    /// Places of replies that were withheld.
    pub redacted: u64,
    /// Requests that passed unread, because they are no turns.
    pub unread: u64,
    /// Requests that were refused before anything was judged: who may not ask, what cannot be read.
    pub refused: u64,
    /// Turns that failed: no reply, one that broke or was cut off, or an error of the model's server.
    pub failed: u64,
    /// Exchanges that are open now.
    pub open: u64,
}

/// Counts what goes through.
#[derive(Debug, Default)]
pub struct Meter(Mutex<Traffic>);

impl Meter {
    /// The counts of now.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, count: impl FnOnce(&mut Traffic)) {
        count(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// An exchange begins; it is open as long as what is given is kept.
    pub(super) fn opened(self: Arc<Self>) -> Open {
        self.count(|traffic| traffic.open += 1);
        Open(self)
    }

    pub(super) fn unread(&self) {
        self.count(|traffic| traffic.unread += 1);
    }

    pub(super) fn seen(&self, seen: &Seen<'_>) {
        self.count(|traffic| match seen {
            Seen::Request { withheld, .. } => {
                traffic.requests += 1;
                traffic.withheld += withheld.len() as u64;
            }
            Seen::Denied { .. } => {
                traffic.requests += 1;
                traffic.denied += 1;
            }
            Seen::Call { ruling, .. } => {
                traffic.calls += 1;
                traffic.calls_denied += u64::from(matches!(ruling, Ruling::Deny(_)));
            }
            Seen::Reply { outcome, .. } => {
                traffic.redacted += outcome.report.withheld as u64;
                let broke = matches!(outcome.ended, Ended::Cut(_) | Ended::Failed(_));
                let error = outcome.status.is_some_and(|status| status >= 400);
                traffic.failed += u64::from(broke || error);
            }
            Seen::Refused { .. } => traffic.refused += 1,
        });
    }
}

/// An exchange that is open.
#[derive(Debug)]
pub(super) struct Open(Arc<Meter>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.count(|traffic| traffic.open = traffic.open.saturating_sub(1));
    }
}
