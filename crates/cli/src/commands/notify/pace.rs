//! So many notices in a minute, and then a sum.

use std::time::{Duration, Instant};

const MINUTE: Duration = Duration::from_secs(60);

/// Counts notices of one kind.
#[derive(Debug)]
pub(super) struct Pace {
    most: u32,
    since: Instant,
    used: u32,
    held: u64,
}

impl Pace {
    pub(super) fn new(most: u32, now: Instant) -> Self {
        Self { most, since: now, used: 0, held: 0 }
    }

    /// Whether one more may go now; if not, it is counted.
    pub(super) fn may(&mut self, now: Instant) -> bool {
        if now.duration_since(self.since) >= MINUTE && self.held == 0 {
            (self.since, self.used) = (now, 0);
        }
        let may = self.used < self.most;
        self.used += u32::from(may);
        self.held += u64::from(!may);
        may
    }

    /// How many were held back, once the minute is over; it is told once.
    pub(super) fn sum(&mut self, now: Instant) -> Option<u64> {
        if self.held == 0 || now.duration_since(self.since) < MINUTE {
            return None;
        }
        // The sum is a notice too.
        (self.since, self.used) = (now, 1);
        Some(std::mem::take(&mut self.held))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_a_few_and_a_sum() {
        let start = Instant::now();
        let mut pace = Pace::new(3, start);
        assert_eq!((0..1000).filter(|_| pace.may(start)).count(), 3);
        assert_eq!(pace.sum(start + Duration::from_secs(59)), None);
        let later = start + MINUTE;
        assert_eq!((pace.sum(later), pace.sum(later)), (Some(997), None));
        assert_eq!((0..10).filter(|_| pace.may(later)).count(), 2);
        let quiet = later + 3 * MINUTE;
        assert_eq!(pace.sum(quiet), Some(8));
        assert!(pace.may(quiet + MINUTE));
    }
}
