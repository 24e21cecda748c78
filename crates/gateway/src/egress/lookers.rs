//! Long bodies looked through beside the threads that serve, so that nobody else waits.

use std::num::NonZero;
use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use super::decider::Denial;
use super::passing::Passing;
use super::rooms::Rooms;

/// Looks at bodies, so many at a time, each for a short turn.
#[derive(Debug)]
pub(super) struct Lookers {
    places: Arc<Semaphore>,
    rooms: Rooms,
}

impl Default for Lookers {
    /// Half of the processors: the others serve.
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        let places = Arc::new(Semaphore::new(processors.div_ceil(2)));
        Self { places, rooms: Rooms::default() }
    }
}

impl Lookers {
    /// Takes a piece of a body, and its end if it is the last; gives back what may be sent.
    pub(super) async fn take(
        &self,
        passing: &mut Passing,
        piece: Vec<u8>,
        last: bool,
    ) -> Result<Vec<u8>, Denial> {
        let quick = passing.is_quick(&piece);
        let all = move |passing: &mut Passing| {
            let mut out = passing.take(&piece)?;
            if last {
                out.extend(passing.finish()?);
            }
            Ok(out)
        };
        if quick {
            let out = all(passing)?;
            passing.weigh(&self.rooms)?;
            return Ok(out);
        }
        let mut out = self.turn(passing, all).await?;
        while let Some(more) = self.turn(passing, Passing::unpack).await? {
            out.extend(more);
        }
        passing.weigh(&self.rooms)?;
        Ok(out)
    }

    /// Where what is held back is counted.
    pub(super) fn rooms(&self) -> &Rooms {
        &self.rooms
    }

    /// One turn; whoever waits is first come, first served.
    async fn turn<T: Send + 'static>(
        &self,
        passing: &mut Passing,
        work: impl FnOnce(&mut Passing) -> Result<T, Denial> + Send + 'static,
    ) -> Result<T, Denial> {
        let failed = || Denial::new("egress-internal", "the body could not be looked at");
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(|_| failed())?;
        let mut taken = std::mem::take(passing);
        let looked = spawn_blocking(move || {
            // Given back at the end of the work, even when nobody waits for it any more.
            let _place = place;
            let done = work(&mut taken);
            (taken, done)
        });
        let (back, done) = looked.await.map_err(|_| failed())?;
        *passing = back;
        done
    }
}
