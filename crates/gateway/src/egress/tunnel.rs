//! Bytes carried both ways, counted.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::budget::{Limits, Meter};
use super::decider::{Denial, Ended};
use super::stream::Stream;

/// Why a direction ended early.
#[derive(Debug)]
pub(super) enum Cut {
    /// It is not allowed any further.
    Denied(Denial),
    /// The connection broke.
    Broken(String),
}

impl From<io::Error> for Cut {
    fn from(error: io::Error) -> Self {
        Self::Broken(error.to_string())
    }
}

impl From<Denial> for Cut {
    fn from(denial: Denial) -> Self {
        Self::Denied(denial)
    }
}

impl From<Cut> for Ended {
    fn from(cut: Cut) -> Self {
        match cut {
            Cut::Denied(denial) => Self::Cut(denial),
            Cut::Broken(why) => Self::Failed(why),
        }
    }
}

/// When something last moved, and how much has: kept apart from what moves it, so that it can be told however that
/// ends.
#[derive(Debug)]
pub(super) struct Motion {
    begun: Instant,
    last: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
    /// The status of an answer that was passed on; zero before.
    status: AtomicU16,
    // One side is done.
    half: AtomicBool,
}

impl Motion {
    pub(super) fn new() -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            begun: Instant::now(),
            last: zero(),
            sent: zero(),
            received: zero(),
            status: AtomicU16::new(0),
            half: AtomicBool::new(false),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    pub(super) fn sent(&self, bytes: usize) {
        self.sent.fetch_add(bytes as u64, Ordering::Relaxed);
        self.last.store(self.now(), Ordering::Relaxed);
    }

    pub(super) fn received(&self, bytes: usize) {
        self.received.fetch_add(bytes as u64, Ordering::Relaxed);
        self.last.store(self.now(), Ordering::Relaxed);
    }

    /// From here on the one who asked has some of the answer.
    pub(super) fn answered(&self, status: u16) {
        self.status.store(status, Ordering::Relaxed);
    }

    /// The status of the answer, where some of it was passed on.
    pub(super) fn status(&self) -> Option<u16> {
        Some(self.status.load(Ordering::Relaxed)).filter(|status| *status > 0)
    }

    /// Bytes sent and received.
    pub(super) fn totals(&self) -> (u64, u64) {
        (self.sent.load(Ordering::Relaxed), self.received.load(Ordering::Relaxed))
    }

    /// Returns when nothing has moved for too long, or all took too long.
    pub(super) async fn stands_still(&self, limits: &Limits) -> Cut {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let (whole, half) = (millis(limits.idle), millis(limits.half_closed));
        let life = millis(limits.lifetime);
        loop {
            let now = self.now();
            let quiet = now.saturating_sub(self.last.load(Ordering::Relaxed));
            let idle = if self.half.load(Ordering::Relaxed) { half.min(whole) } else { whole };
            if quiet >= idle {
                return Cut::Denied(Denial::new("egress-idle", "nothing moved for too long"));
            }
            if now >= life {
                return Cut::Denied(Denial::new("egress-lifetime", "it lasted too long"));
            }
            let wait = (idle - quiet).min(life - now).min(half).max(1);
            tokio::time::sleep(Duration::from_millis(wait)).await;
        }
    }
}

/// Carries one direction to its end. `look` sees each piece before it is written; `moved` counts what was.
async fn carry(
    from: &Stream,
    to: &Stream,
    mut look: impl FnMut(&[u8]) -> Result<(), Denial>,
    moved: impl Fn(usize),
) -> Result<(), Cut> {
    let mut left: Vec<u8> = Vec::new();
    loop {
        let count = from
            .read_with(|piece| -> Result<usize, Cut> {
                if piece.is_empty() {
                    return Ok(0);
                }
                look(piece)?;
                let written = to.write_some(piece)?;
                moved(written);
                left.extend_from_slice(&piece[written..]);
                Ok(piece.len())
            })
            .await??;
        if count == 0 {
            to.close_writing();
            return Ok(());
        }
        if !left.is_empty() {
            to.write_counted(&left, &moved).await?;
            // Memory only as long as it is needed.
            left = Vec::new();
        }
    }
}

/// Carries both directions until both are done.
pub(super) async fn carry_both(
    client: &Stream,
    host: &Stream,
    meter: &mut Meter,
    motion: &Motion,
    limits: &Limits,
    mut look: impl FnMut(&[u8]) -> Result<(), Denial>,
) -> Ended {
    let up = carry(
        client,
        host,
        |piece| {
            look(piece)?;
            meter.charge(piece.len())
        },
        |count| motion.sent(count),
    );
    let down = carry(host, client, |_| Ok(()), |count| motion.received(count));
    tokio::pin!(up, down);
    let still = motion.stands_still(limits);
    tokio::pin!(still);
    let mut open = (true, true);
    loop {
        let cut = tokio::select! {
            done = &mut up, if open.0 => { open.0 = false; done.err() }
            done = &mut down, if open.1 => { open.1 = false; done.err() }
            cut = &mut still => Some(cut),
        };
        motion.half.store(true, Ordering::Relaxed);
        match cut {
            Some(cut) => return cut.into(),
            None if open == (false, false) => return Ended::Done,
            None => {}
        }
    }
}
