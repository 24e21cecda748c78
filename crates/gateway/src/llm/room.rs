//! Memory for bodies that are read whole, counted over all exchanges.

use std::sync::Arc;

use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes that are counted at a time.
const BLOCK: usize = 4096;

/// Room for bodies.
#[derive(Debug)]
pub(super) struct Room(Arc<Semaphore>);

/// Room that one body takes; it is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Held {
    room: Arc<Semaphore>,
    blocks: Option<OwnedSemaphorePermit>,
}

/// Why a body was not read.
#[derive(Debug)]
pub(super) enum Unread {
    /// It is longer than one may be.
    TooLong,
    /// All that are read at this moment are too long together.
    NoRoom,
    /// It broke off.
    Broken(hyper::Error),
}

impl Room {
    /// Room for so many bytes.
    pub(super) fn new(bytes: usize) -> Self {
        let blocks = (bytes / BLOCK).clamp(1, Semaphore::MAX_PERMITS);
        Self(Arc::new(Semaphore::new(blocks)))
    }

    pub(super) fn none(&self) -> Held {
        Held { room: Arc::clone(&self.0), blocks: None }
    }
}

impl Held {
    /// Has room for so many bytes in all, or not. Nobody waits here for another: all might.
    pub(super) fn reach(&mut self, bytes: usize) -> Result<(), Unread> {
        let have = self.blocks.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let more = bytes.div_ceil(BLOCK).saturating_sub(have);
        let more = u32::try_from(more).map_err(|_| Unread::NoRoom)?;
        if more == 0 {
            return Ok(());
        }
        let taken = Arc::clone(&self.room).try_acquire_many_owned(more);
        let taken = taken.map_err(|_| Unread::NoRoom)?;
        match &mut self.blocks {
            Some(blocks) => blocks.merge(taken),
            None => self.blocks = Some(taken),
        }
        Ok(())
    }

    /// Reads a body of at most `most` bytes.
    pub(super) async fn gather(
        &mut self,
        mut body: Incoming,
        most: usize,
    ) -> Result<Vec<u8>, Unread> {
        let told = body.size_hint();
        if told.lower() > most as u64 {
            return Err(Unread::TooLong);
        }
        // What a peer says of its length is believed only as far as it costs little.
        let mut bytes = Vec::with_capacity(usize::try_from(told.lower()).unwrap_or(0).min(1 << 20));
        let (mut length, mut fits) = (0, true);
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(Unread::Broken)?.into_data() else { continue };
            length += data.len();
            if length > most {
                return Err(Unread::TooLong);
            }
            if fits && self.reach(length).is_err() {
                // The rest is read and thrown away: whoever still writes would not hear the answer.
                (fits, bytes, self.blocks) = (false, Vec::new(), None);
            }
            if fits {
                bytes.extend_from_slice(&data);
            }
        }
        if fits { Ok(bytes) } else { Err(Unread::NoRoom) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_take_together_is_bounded_and_given_back() {
        let room = Room::new(10 * BLOCK);
        let (mut one, mut other) = (room.none(), room.none());
        one.reach(6 * BLOCK).unwrap();
        one.reach(BLOCK).unwrap();
        other.reach(4 * BLOCK - 1).unwrap();
        assert!(matches!(other.reach(4 * BLOCK + 1), Err(Unread::NoRoom)));
        drop(one);
        other.reach(10 * BLOCK).unwrap();
        assert!(matches!(room.none().reach(1), Err(Unread::NoRoom)));
        drop(other);
        room.none().reach(10 * BLOCK).unwrap();
    }
}
