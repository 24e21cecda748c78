//! A daemon from its start to its end.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use super::{Doors, Handler, Limits, PeerPolicy, Service, Stop, Tally};

/// How a daemon runs.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Who may connect.
    pub peers: PeerPolicy,
    /// What each door bears.
    pub limits: Limits,
    /// It ends after nobody was connected for so long.
    pub idle_exit: Option<Duration>,
    /// How often the periodic work is done.
    pub tick: Duration,
}

impl Options {
    /// For the owner alone, without an end, with work every ten seconds.
    #[must_use]
    pub fn new(owner: u32) -> Self {
        Self {
            peers: PeerPolicy::new(owner),
            limits: Limits::default(),
            idle_exit: None,
            tick: Duration::from_secs(10),
        }
    }
}

/// Serves at all doors until `stop` is set or nobody has come for long, and does `chores` now and
/// then, the first time at once. Each door has its own connections, so that a flood of hooks does
/// not keep the owner out.
///
/// # Errors
/// When a listener cannot be used.
pub fn run(
    doors: &Doors,
    handler: &dyn Handler,
    chores: &mut dyn FnMut(),
    options: &Options,
    tally: &Tally,
    stop: &Stop,
) -> io::Result<()> {
    let Options { peers, limits, idle_exit, tick } = *options;
    thread::scope(|scope| {
        let mut serving = Vec::new();
        for (door, listener) in doors.listeners() {
            let service = Service { handler, peers, door, limits, tally };
            let serve = move || {
                let served = service.serve(listener, stop);
                // One door without the other is no daemon.
                stop.set();
                served
            };
            match thread::Builder::new().spawn_scoped(scope, serve) {
                Ok(thread) => serving.push(thread),
                Err(error) => {
                    stop.set();
                    return Err(error);
                }
            }
        }
        let mut next = Instant::now();
        loop {
            if Instant::now() >= next {
                chores();
                next = Instant::now() + tick;
            }
            let mut patience = next.saturating_duration_since(Instant::now());
            if let Some(limit) = idle_exit {
                let idle = tally.idle();
                if idle >= limit {
                    // First, so that whoever comes later finds no door and starts another daemon.
                    doors.hide();
                    stop.set();
                }
                // While someone is connected, that is looked at again soon enough.
                let look = if idle.is_zero() { limit } else { limit - idle.min(limit) };
                patience = patience.min(look.max(Duration::from_millis(10)));
            }
            if stop.wait(patience) {
                break;
            }
        }
        // Whoever comes from now on finds no door.
        doors.hide();
        let ended = serving.into_iter().map(|thread| {
            thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread that serves is gone")))
        });
        ended.fold(Ok(()), Result::and)
    })
}
