//! Notices that wait for their way, so that nobody waits for it.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::{Notice, Retry, Way};

/// Notices that wait at most; more are lost, and counted.
const WAITING: usize = 64;
/// Longest that a way may ask us to wait.
const MAX_WAIT: Duration = Duration::from_secs(120);
/// Between two looks whether to end.
const LOOK: Duration = Duration::from_millis(50);

/// How a way did so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Notices that were delivered.
    pub sent: u64,
    /// Notices that were not, and will not be.
    pub lost: u64,
    /// Why the last one that failed did.
    pub why: Option<String>,
}

/// A way with its own thread.
#[derive(Debug)]
pub struct Queue {
    name: &'static str,
    sender: SyncSender<Notice>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    waiting: AtomicUsize,
    ends: AtomicBool,
    outcome: Mutex<Outcome>,
}

impl Shared {
    fn note(&self, change: impl FnOnce(&mut Outcome)) {
        change(&mut self.outcome.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Sleeps, unless it ends; says whether it goes on.
    fn sleep(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        loop {
            if self.ends.load(Ordering::Relaxed) {
                return false;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            thread::sleep(left.min(LOOK));
        }
    }
}

impl Queue {
    /// A way that tries each notice again after each of some pauses.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(way: impl Way + 'static, pauses: &[Duration]) -> io::Result<Self> {
        let (sender, receiver) = sync_channel(WAITING);
        let shared = Arc::new(Shared::default());
        let (own, pauses, name) = (Arc::clone(&shared), pauses.to_vec(), way.name());
        thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || deliver(way, &receiver, &own, &pauses))?;
        Ok(Self { name, sender, shared })
    }

    /// What the way is called.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Takes a notice, at once; says whether there was room for it.
    pub fn push(&self, notice: Notice) -> bool {
        self.shared.waiting.fetch_add(1, Ordering::Relaxed);
        let taken = self.sender.try_send(notice).is_ok();
        if !taken {
            self.shared.waiting.fetch_sub(1, Ordering::Relaxed);
            self.shared.note(|outcome| {
                outcome.lost += 1;
                outcome.why = Some("too many wait already".to_owned());
            });
        }
        taken
    }

    /// How it did so far.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        self.shared.outcome.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until nothing waits any more, at most so long.
    pub fn settle(&self, patience: Duration) {
        let until = Instant::now() + patience;
        while self.shared.waiting.load(Ordering::Relaxed) > 0 && Instant::now() < until {
            thread::sleep(LOOK.min(patience));
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // A try that goes on is not waited for.
        self.shared.ends.store(true, Ordering::Relaxed);
    }
}

fn deliver(mut way: impl Way, notices: &Receiver<Notice>, shared: &Shared, pauses: &[Duration]) {
    while let Ok(notice) = notices.recv() {
        let mut pauses = pauses.iter();
        let lost = loop {
            if shared.ends.load(Ordering::Relaxed) {
                return;
            }
            let Err(failed) = way.send(&notice) else { break None };
            let pause = match failed.retry {
                Retry::Never => None,
                Retry::Soon => pauses.next().copied(),
                Retry::After(wait) if wait <= MAX_WAIT => {
                    pauses.next().map(|pause| wait.max(*pause))
                }
                Retry::After(_) => None,
            };
            match pause {
                Some(pause) if shared.sleep(pause) => {}
                _ => break Some(failed.why),
            }
        };
        shared.note(|outcome| match lost {
            None => outcome.sent += 1,
            Some(why) => {
                outcome.lost += 1;
                outcome.why = Some(why);
            }
        });
        shared.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}
