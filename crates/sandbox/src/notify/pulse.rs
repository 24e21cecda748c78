//! Whether a supervisor is stuck in a call.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Since when a supervisor is at a call. Another thread may look at it.
#[derive(Debug)]
pub(crate) struct Pulse {
    start: Instant,
    /// Milliseconds after the start, and one; none is nothing.
    since: AtomicU64,
}

impl Pulse {
    pub(super) fn new() -> Self {
        Self { start: Instant::now(), since: AtomicU64::new(0) }
    }

    pub(super) fn begin(&self) {
        let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX - 1);
        self.since.store(now + 1, Ordering::Relaxed);
    }

    pub(super) fn end(&self) {
        self.since.store(0, Ordering::Relaxed);
    }

    /// How long it has been at the same call.
    pub(crate) fn busy_for(&self) -> Duration {
        match self.since.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            since => self.start.elapsed().saturating_sub(Duration::from_millis(since - 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_call_that_has_begun_takes_time() {
        let pulse = Pulse::new();
        assert_eq!(pulse.busy_for(), Duration::ZERO);
        pulse.begin();
        std::thread::sleep(Duration::from_millis(3));
        assert!(pulse.busy_for() >= Duration::from_millis(2));
        pulse.end();
        assert_eq!(pulse.busy_for(), Duration::ZERO);
    }
}
