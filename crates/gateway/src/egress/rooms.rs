//! How much of what clients send may be held back at once: they need not let go of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::decider::Denial;

/// Bytes of all bodies and messages together.
const MOST: usize = 256 << 20;
/// Bytes that each may hold in any case.
const SMALL: usize = 32 << 10;

/// What is held of all bodies and messages.
#[derive(Debug, Default, Clone)]
pub(super) struct Rooms(Arc<AtomicUsize>);

impl Rooms {
    /// For one more of them.
    pub(super) fn room(&self) -> Room {
        Room { all: self.clone(), own: 0 }
    }
}

/// What one of them holds.
#[derive(Debug)]
pub(super) struct Room {
    all: Rooms,
    own: usize,
}

impl Room {
    /// It holds so many bytes now.
    ///
    /// # Errors
    /// When all together hold too many.
    pub(super) fn take(&mut self, bytes: usize) -> Result<(), Denial> {
        let before = std::mem::replace(&mut self.own, bytes);
        if bytes <= before {
            self.all.0.fetch_sub(before - bytes, Ordering::Relaxed);
            return Ok(());
        }
        let more = bytes - before;
        let all = self.all.0.fetch_add(more, Ordering::Relaxed).saturating_add(more);
        if all > MOST && bytes > SMALL {
            let reason = "too much of other bodies is held back to be looked at; try again later";
            return Err(Denial::new("egress-crowded", reason));
        }
        Ok(())
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.all.0.fetch_sub(self.own, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_has_an_end_and_is_given_back() {
        let rooms = Rooms::default();
        let mut all: Vec<Room> = (0..64).map(|_| rooms.room()).collect();
        for room in &mut all {
            room.take(1 << 20).unwrap();
            room.take(4 << 20).unwrap();
        }
        let mut other = rooms.room();
        assert_eq!(other.take(64 << 10).unwrap_err().rule, "egress-crowded");
        // What is little, or less than before, is always taken.
        rooms.room().take(SMALL).unwrap();
        all[0].take(3 << 20).unwrap();
        other.take(128 << 10).unwrap();
        all.clear();
        drop(other);
        assert_eq!(rooms.0.load(Ordering::Relaxed), 0);
    }
}
