//! Umasks of callers, so that they need not be read for every file.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use rustix::fs::Mode;

/// Umasks that were read of threads. It is known when one changes; but not when a thread ends and another
/// gets its number, so that nothing is kept for longer than it takes to use up all numbers.
#[derive(Debug, Default)]
pub(super) struct Masks {
    known: HashMap<u32, Mode>,
    since: Option<Instant>,
    /// A change takes place a moment after it was told.
    changing: Option<Instant>,
}

impl Masks {
    const KEPT: Duration = Duration::from_millis(100);
    const MOST: usize = 1024;

    /// Somebody's umask is about to change.
    pub(super) fn change(&mut self) {
        self.known.clear();
        self.changing = Some(Instant::now());
    }

    /// What is known of a thread.
    pub(super) fn of(&mut self, pid: u32, now: Instant) -> Option<Mode> {
        let fresh = self.since.is_some_and(|since| now.duration_since(since) < Self::KEPT);
        if !fresh {
            self.known.clear();
            self.since = Some(now);
        }
        self.known.get(&pid).copied()
    }

    /// Keeps what was read of a thread.
    pub(super) fn remember(&mut self, pid: u32, mask: Mode, now: Instant) {
        let settled = self.changing.is_none_or(|when| now.duration_since(when) > Self::KEPT / 10);
        if settled && self.known.len() < Self::MOST {
            self.known.insert(pid, mask);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_kept_for_long_or_over_a_change() {
        let mut masks = Masks::default();
        let (start, mask) = (Instant::now(), Mode::from_raw_mode(0o27));
        assert_eq!(masks.of(7, start), None);
        masks.remember(7, mask, start);
        assert_eq!((masks.of(7, start), masks.of(8, start)), (Some(mask), None));
        assert_eq!(masks.of(7, start + Masks::KEPT), None);
        let now = start + Masks::KEPT;
        masks.remember(7, mask, now);
        masks.change();
        assert_eq!(masks.of(7, now), None);
        // What is read while a change takes place may be either.
        masks.remember(7, mask, masks.changing.unwrap());
        assert_eq!(masks.of(7, now), None);
    }
}
