//! How much may leave: by request, by host, in all.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::decider::Denial;

/// Limits of one proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes that one request or tunnel may carry out.
    pub upload: u64,
    /// Bytes that may go to one host; hosts of one rule share them.
    pub upload_per_host: u64,
    /// Bytes that may leave in all.
    pub upload_total: u64,
    /// Bytes of URLs that look like encoded data, for each host.
    pub encoded_urls: u64,
    /// Connections at a time; others wait.
    pub connections: usize,
    /// How long a head, a greeting or the first message of TLS may take.
    pub head: Duration,
    /// How long looking a name up may take.
    pub lookup: Duration,
    /// How long a connection may take to be made.
    pub dial: Duration,
    /// How long a connection between two requests is kept.
    pub keep_alive: Duration,
    /// How long a request or tunnel may stand still.
    pub idle: Duration,
    /// How long a tunnel stays when one side is done.
    pub half_closed: Duration,
    /// How long a request or tunnel may last.
    pub lifetime: Duration,
    /// How long the owner may take for an answer; as long for each question before.
    pub ask: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            upload: 64 << 20,
            upload_per_host: 256 << 20,
            upload_total: 1 << 30,
            encoded_urls: 2 << 10,
            connections: 16 << 10,
            head: Duration::from_secs(15),
            lookup: Duration::from_secs(10),
            dial: Duration::from_secs(10),
            keep_alive: Duration::from_secs(60),
            idle: Duration::from_secs(600),
            half_closed: Duration::from_secs(60),
            lifetime: Duration::from_secs(24 * 3600),
            ask: Duration::from_secs(60),
        }
    }
}

/// What has left until now.
#[derive(Debug, Default)]
pub(super) struct Budgets {
    total: Arc<AtomicU64>,
    hosts: Mutex<HashMap<String, Arc<Used>>>,
}

/// What one host has got.
#[derive(Debug, Default)]
pub(super) struct Used {
    bytes: AtomicU64,
    encoded: AtomicU64,
}

/// Hosts that are counted apart; all beyond share one count.
const HOSTS: usize = 16 << 10;

impl Budgets {
    /// What the host of a key has got.
    pub(super) fn of(&self, key: &str) -> Arc<Used> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        let key = if hosts.len() < HOSTS || hosts.contains_key(key) { key } else { "" };
        match hosts.get(key) {
            Some(used) => Arc::clone(used),
            None => Arc::clone(hosts.entry(key.to_owned()).or_default()),
        }
    }

    /// Counts what one request sends.
    pub(super) fn meter(&self, used: Arc<Used>, limits: &Limits, upload: Option<u64>) -> Meter {
        Meter {
            total: Arc::clone(&self.total),
            host: used,
            sent: 0,
            limit: limits.upload,
            carried: 0,
            payload: upload.unwrap_or(u64::MAX),
            per_host: limits.upload_per_host,
            in_all: limits.upload_total,
        }
    }
}

impl Used {
    /// Counts bytes of a URL that look like data.
    pub(super) fn encoded(&self, bytes: u64, limit: u64) -> Result<(), Denial> {
        take(&self.encoded, bytes, limit).ok_or_else(|| {
            let reason = "the addresses asked for carry more encoded data to this host than is \
                          allowed";
            Denial::new("egress-encoded-urls", reason)
        })
    }
}

/// Counts what one request sends, and says when it is too much.
#[derive(Debug)]
pub(super) struct Meter {
    total: Arc<AtomicU64>,
    host: Arc<Used>,
    sent: u64,
    limit: u64,
    /// What was sent without what is around it, and how much that may be.
    carried: u64,
    payload: u64,
    per_host: u64,
    in_all: u64,
}

impl Meter {
    /// Counts bytes before they are sent; what is too much must not be.
    pub(super) fn charge(&mut self, bytes: usize) -> Result<(), Denial> {
        let carried = self.carried.saturating_add(bytes as u64);
        if carried > self.payload {
            let reason = format!(
                "it sends more than {} bytes; if so much is meant, set `max_payload_size` under `[egress]` in \
                 config.toml and sign it (`wardkeep config sign`)",
                self.payload
            );
            return Err(Denial::new("egress-upload", reason));
        }
        self.charge_around(bytes)?;
        self.carried = carried;
        Ok(())
    }

    /// Counts what is around that: a head, the sizes of chunks.
    pub(super) fn charge_around(&mut self, bytes: usize) -> Result<(), Denial> {
        let bytes = bytes as u64;
        let sent = self.sent.saturating_add(bytes);
        if sent > self.limit {
            let reason = format!("it sends more than {} bytes", self.limit);
            return Err(Denial::new("egress-upload", reason));
        }
        let rest = || {
            let reason = format!("more than {} bytes went to this host", self.per_host);
            Denial::new("egress-host-budget", reason)
        };
        take(&self.host.bytes, bytes, self.per_host).ok_or_else(rest)?;
        let rest = || {
            let reason = format!("more than {} bytes went out in all", self.in_all);
            Denial::new("egress-total-budget", reason)
        };
        take(&self.total, bytes, self.in_all).ok_or_else(rest)?;
        self.sent = sent;
        Ok(())
    }
}

/// Takes from a budget, or leaves it as it is.
fn take(used: &AtomicU64, bytes: u64, limit: u64) -> Option<()> {
    used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
        used.checked_add(bytes).filter(|sum| *sum <= limit)
    })
    .ok()
    .map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_shared_and_never_exceeded() {
        let limits =
            Limits { upload: 10, upload_per_host: 15, upload_total: 25, ..Limits::default() };
        let budgets = Budgets::default();
        let meter = |key| budgets.meter(budgets.of(key), &limits, None);
        let mut first = meter("a");
        assert!(first.charge(10).is_ok());
        assert_eq!(first.charge(1).unwrap_err().rule, "egress-upload");
        let mut second = meter("a");
        assert!(second.charge(5).is_ok());
        assert_eq!(second.charge(1).unwrap_err().rule, "egress-host-budget");
        let mut third = meter("b");
        assert!(third.charge(10).is_ok());
        let mut fourth = meter("c");
        assert_eq!(fourth.charge(1).unwrap_err().rule, "egress-total-budget");
        assert!(budgets.meter(budgets.of("d"), &limits, Some(3)).charge(4).is_err());
        let mut fifth = Budgets::default().meter(budgets.of("d"), &limits, Some(3));
        assert!(fifth.charge_around(4).is_ok() && fifth.charge(3).is_ok());
        assert!(fifth.charge(1).unwrap_err().reason.contains("`max_payload_size`"));
    }
}
