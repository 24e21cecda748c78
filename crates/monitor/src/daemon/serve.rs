//! Connections: how many, how long, how much.

use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use super::stop::Woken;
use super::{Handler, Peer, PeerPolicy, Request, Response, Stop};
use crate::wire::{
    BadFrame, Code, Door, Frame, FrameError, MAX_FRAME_BYTES, Refusal, Timed, read_body,
    read_length, write_frame,
};

/// What a door bears.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections at a time, each with a thread.
    pub connections: usize,
    /// Bytes of long questions that are held at a time, over all connections.
    pub held_bytes: usize,
    /// How long a question may take to come, and an answer to go.
    pub frame: Duration,
    /// How long a connection may wait for its next question.
    pub idle: Duration,
    /// The same while more than half of the connections are taken.
    pub crowded: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 64,
            held_bytes: 64 << 20,
            frame: Duration::from_secs(5),
            idle: Duration::from_secs(60),
            crowded: Duration::from_secs(1),
        }
    }
}

/// Questions below this do not count as long.
const SHORT_BYTES: usize = 64 << 10;
/// More than a frame has around its body.
const ENVELOPE_BYTES: usize = 256;
/// How long a connection that was made just before the end may take to ask.
const LAST_CALL: Duration = Duration::from_millis(100);

/// What goes on, counted.
#[derive(Debug)]
pub struct Tally {
    open: AtomicUsize,
    held: AtomicUsize,
    answered: AtomicU64,
    refused: AtomicU64,
    last: Mutex<Instant>,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            open: AtomicUsize::new(0),
            held: AtomicUsize::new(0),
            answered: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            last: Mutex::new(Instant::now()),
        }
    }
}

impl Tally {
    /// Connections at the moment.
    #[must_use]
    pub fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    /// Questions that were answered.
    #[must_use]
    pub fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// Questions and connections that were refused.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// How long nobody has been connected.
    #[must_use]
    pub fn idle(&self) -> Duration {
        if self.open() > 0 {
            return Duration::ZERO;
        }
        self.last.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }

    fn touch(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}

/// A count that goes down again when dropped.
struct Taken<'t> {
    count: &'t AtomicUsize,
    amount: usize,
}

impl<'t> Taken<'t> {
    /// Takes `amount`, if no more than `limit` are taken then.
    fn take(count: &'t AtomicUsize, amount: usize, limit: usize) -> Option<Self> {
        let more = |taken: usize| taken.checked_add(amount).filter(|taken| *taken <= limit);
        count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).ok()?;
        Some(Self { count, amount })
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(self.amount, Ordering::SeqCst);
    }
}

/// What is served at a door.
#[derive(Clone, Copy)]
pub struct Service<'a> {
    /// Answers.
    pub handler: &'a dyn Handler,
    /// Who may connect.
    pub peers: PeerPolicy,
    /// The door.
    pub door: Door,
    /// What it bears.
    pub limits: Limits,
    /// Counts.
    pub tally: &'a Tally,
}

impl std::fmt::Debug for Service<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Service")
            .field("peers", &self.peers)
            .field("door", &self.door)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl Service<'_> {
    /// Serves until `stop` is set, then answers who is connected already, and returns.
    ///
    /// # Errors
    /// When the listener cannot be used.
    pub fn serve(&self, listener: &UnixListener, stop: &Stop) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        let open = AtomicUsize::new(0);
        thread::scope(|scope| {
            let mut ending: Option<Instant> = None;
            loop {
                let _ = stop.wait_with(listener, None);
                if stop.is_set() {
                    ending = ending.or_else(|| Some(Instant::now()));
                }
                // A flood of newcomers does not put the end off.
                if ending.is_some_and(|since| since.elapsed() > LAST_CALL) {
                    return;
                }
                match listener.accept() {
                    Ok((stream, _)) => self.admit(scope, stream, &open, stop),
                    // Everybody who came before the end is in.
                    Err(_) if ending.is_some() => return,
                    Err(error) => match error.kind() {
                        io::ErrorKind::WouldBlock
                        | io::ErrorKind::Interrupted
                        | io::ErrorKind::ConnectionAborted => {}
                        // Out of descriptors or memory: wait for some to come back.
                        _ => drop(stop.wait(Duration::from_millis(100))),
                    },
                }
            }
        });
        Ok(())
    }

    /// Lets someone in, or says why not.
    fn admit<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        stream: UnixStream,
        open: &'scope AtomicUsize,
        stop: &'scope Stop,
    ) {
        let peer = match self.peers.look(&stream, self.door) {
            Ok(peer) => peer,
            Err(_) => {
                let message = "this user may not ask: the socket is the owner's";
                return self.turn_away(&stream, Code::Forbidden, message);
            }
        };
        const BUSY: &str = "too many connections: try again in a moment";
        let Some(here) = Taken::take(open, 1, self.limits.connections) else {
            return self.turn_away(&stream, Code::Busy, BUSY);
        };
        // INVARIANT: a usize that counts connections does not overflow.
        let all = Taken::take(&self.tally.open, 1, usize::MAX);
        // Kept here for the case that there is no thread.
        let spare = stream.try_clone();
        let converse = move || {
            let answers = self.converse(&stream, &peer, here.count, stop);
            self.tally.touch();
            drop(stream);
            // Hooks are asked by whoever is confined, and hold nobody up by it.
            if self.door == Door::Monitor && !stop.is_set() {
                self.handler.gone(answers);
            }
            drop((here, all));
        };
        if thread::Builder::new().spawn_scoped(scope, converse).is_err()
            && let Ok(stream) = spare
        {
            self.turn_away(&stream, Code::Busy, BUSY);
        }
    }

    /// Refuses a connection as a whole, without waiting for its question.
    fn turn_away(&self, stream: &UnixStream, code: Code, message: &str) {
        self.tally.refused.fetch_add(1, Ordering::Relaxed);
        let frame = Frame::refusal(0, &Refusal::new(code, message));
        if let (Ok(()), Ok(bytes)) = (stream.set_nonblocking(true), frame.to_bytes()) {
            let mut stream = stream;
            let _ = io::Write::write(&mut stream, &bytes);
        }
    }

    /// Answers one question after the other; tells how many.
    fn converse(&self, stream: &UnixStream, peer: &Peer, open: &AtomicUsize, stop: &Stop) -> u64 {
        let mut answers = 0;
        loop {
            let woken = self.wait_for_question(stream, open, stop, answers == 0);
            if woken != Woken::Ready {
                return answers;
            }
            let Ok((frame, last)) = self.answer(stream, peer) else { return answers };
            answers += 1;
            let mut timed = Timed::new(stream, Instant::now() + self.limits.frame);
            if write_frame(&mut timed, &frame).is_err() || last {
                return answers;
            }
        }
    }

    fn wait_for_question(
        &self,
        stream: &UnixStream,
        open: &AtomicUsize,
        stop: &Stop,
        first: bool,
    ) -> Woken {
        let since = Instant::now();
        loop {
            if !first && stop.is_set() {
                return Woken::Stop;
            }
            let crowded = open.load(Ordering::SeqCst) * 2 > self.limits.connections;
            let limit = if crowded { self.limits.crowded } else { self.limits.idle };
            let left = limit.saturating_sub(since.elapsed());
            // Looks again now and then whether it has become crowded.
            match stop.wait_with(stream, Some(left.min(self.limits.crowded))) {
                Woken::Stop if first => {
                    let patience = LAST_CALL.saturating_sub(since.elapsed());
                    thread::park_timeout(patience.min(Duration::from_millis(5)));
                    if patience.is_zero() {
                        return Woken::Stop;
                    }
                }
                Woken::Late if since.elapsed() < limit => {}
                woken => return woken,
            }
        }
    }

    /// The answer to the next question, and whether it is the last one.
    fn answer(&self, stream: &UnixStream, peer: &Peer) -> Result<(Frame, bool), FrameError> {
        let refuse = |id: u64, code: Code, message: String| {
            self.tally.refused.fetch_add(1, Ordering::Relaxed);
            Frame::refusal(id, &Refusal::new(code, message))
        };
        let mut timed = Timed::new(stream, Instant::now() + self.limits.frame);
        let read = read_length(&mut timed).and_then(|length| {
            let long = if length > SHORT_BYTES { length } else { 0 };
            match Taken::take(&self.tally.held, long, self.limits.held_bytes) {
                Some(held) => read_body(&mut timed, length).map(|bytes| Some((bytes, held))),
                None => Ok(None),
            }
        });
        let (bytes, _held) = match read {
            Ok(Some(read)) => read,
            Ok(None) => {
                let message = "too many long questions at a time: try again in a moment";
                return Ok((refuse(0, Code::Busy, message.to_owned()), true));
            }
            Err(error) => {
                let code = match &error {
                    FrameError::TooLong { .. } => Code::TooLong,
                    FrameError::TooSlow => Code::TooSlow,
                    FrameError::Empty => Code::Malformed,
                    // Nobody is there to answer.
                    _ => return Err(error),
                };
                return Ok((refuse(0, code, error.to_string()), true));
            }
        };
        let frame = match Frame::parse(&bytes) {
            Ok(frame) => frame,
            Err(error) => {
                let (id, code) = match error {
                    BadFrame::Version { id, .. } => (id, Code::Version),
                    BadFrame::Malformed(_) => (0, Code::Malformed),
                };
                return Ok((refuse(id, code, error.to_string()), true));
            }
        };
        drop(bytes);
        let Frame { id, op, body, .. } = frame;
        if !peer.role.may(&op) {
            let alone = "is for the owner alone, from a terminal of their own";
            let message = match peer.held {
                None => format!("`{op}` {alone}"),
                Some(why) => format!(
                    "`{op}` {alone}, and this process is none: {why}; ask from where the daemon was started"
                ),
            };
            return Ok((refuse(id, Code::Forbidden, message), false));
        }
        let request = Request { op, body };
        let handled = catch_unwind(AssertUnwindSafe(|| self.handler.handle(peer, request)));
        let frame = match handled {
            Ok(Response::Answer(body)) => Frame::answer(id, body),
            Ok(Response::Refusal(refusal)) => {
                self.tally.refused.fetch_add(1, Ordering::Relaxed);
                return Ok((Frame::refusal(id, &refusal), false));
            }
            Err(_) => {
                let message = "something went wrong inside: it counts as a denial";
                return Ok((refuse(id, Code::Failed, message.to_owned()), false));
            }
        };
        if frame.body.get().len() + ENVELOPE_BYTES > MAX_FRAME_BYTES {
            let message = "the answer is too long: ask for less at a time";
            return Ok((refuse(id, Code::TooLong, message.to_owned()), false));
        }
        self.tally.answered.fetch_add(1, Ordering::Relaxed);
        Ok((frame, false))
    }
}
