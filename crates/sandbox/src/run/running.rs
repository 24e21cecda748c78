//! A program that runs: relayed, waited for, ended.

use std::cell::Cell;
use std::collections::HashSet;
use std::fs::File;
use std::net::TcpListener;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use rustix::process::{Signal, WaitIdOptions};

use super::group::Group;
use super::outside::{Found, Outside};
use super::reading::{Heard, Reading};
use super::relay::{self, Relay};
use super::{Ended, Repository, TIMED_OUT, links, start};
use crate::child::{self, Set};
use crate::denial::{self, Denial, DenialKind};
use crate::error::{SandboxError, Step};
use crate::notify::{Answer, OF_READS, Wanted};
use crate::spec::Applied;
use crate::sys::{self, Mask};
use crate::view::NewSettings;
use crate::walk::{Listings, Seen, number_of};

/// Most refusals and repositories that are remembered.
const MOST: usize = 1000;

/// How long it may take to tell what is there, when the time is up.
const LATE: Duration = Duration::from_secs(3);

/// What takes a socket over that listens.
type Serve = Box<dyn FnOnce(TcpListener)>;

/// A confined program.
pub struct Running {
    process: OwnedFd,
    life: OwnedFd,
    signals: OwnedFd,
    mask: Mask,
    relay: Option<Relay>,
    listener: Option<OwnedFd>,
    models: Option<OwnedFd>,
    /// All files of the machine, and what is handed in of them.
    outside: Option<OwnedFd>,
    reading: Option<Arc<Reading>>,
    until: Option<Instant>,
    /// Whether the time is up, and only what is left to be told is waited for.
    is_late: bool,
    applied: Applied,
    denials: Vec<Denial>,
    /// Questions that were put, and what tells that one was taken back.
    questions: Vec<(u32, Arc<AtomicBool>)>,
    repositories: Vec<(Vec<u8>, Repository)>,
    /// Folders that were there at the start.
    folders: Vec<(PathBuf, HashSet<u64>)>,
    left: Left,
    /// Where somebody inside may connect, and what is done with it then.
    called: Option<(TcpListener, Serve)>,
    /// What was known of folders, and what was seen.
    seen: Option<(Arc<Listings>, Seen)>,
    /// Copies of the machine's settings that are mounted, or are to be kept.
    settings: (Option<File>, Option<NewSettings>),
}

/// What goes away with a run.
#[derive(Debug)]
pub(super) struct Left {
    pub(super) scratch: Option<start::PrivateFolder>,
    pub(super) group: Option<Group>,
}

impl std::fmt::Debug for Running {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Running").field("process", &self.process).finish_non_exhaustive()
    }
}

/// A program waits because it wants to make a protected name ([`DenialKind::Name`]), or to read a file that is not shown
/// ([`DenialKind::Unshown`]).
#[derive(Debug, Clone)]
pub struct Question {
    pub(super) number: u32,
    /// What it wants, and what speaks against it.
    pub denial: Denial,
    pub(super) withdrawn: Arc<AtomicBool>,
    /// The file that it wants to read.
    pub(super) found: Option<Arc<Found>>,
}

impl Question {
    /// Whether nobody waits for the answer any more.
    #[must_use]
    pub fn is_withdrawn(&self) -> bool {
        self.withdrawn.load(Ordering::Relaxed)
    }

    /// Whether this is that question, of the same run.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

/// Gives answers to questions, from any thread.
#[derive(Debug)]
pub struct Answers {
    life: OwnedFd,
    reading: Option<Arc<Reading>>,
}

impl Answers {
    /// Gives one. Where the program has ended meanwhile, nobody hears it.
    pub fn give(&self, question: &Question, answer: Answer) {
        if let (Some(reading), Some(found)) = (&self.reading, &question.found) {
            return reading.answered(question, found, answer);
        }
        let word = match answer {
            Answer::No => b'n',
            Answer::Once => b'o',
            Answer::Session => b's',
        };
        let message = child::answer(question.number, word);
        let _ = rustix::net::send(&self.life, &message, SendFlags::NOSIGNAL);
    }
}

/// What the confined side has told.
enum Told {
    Asked(u32, Denial),
    Wanted(Wanted),
    Withdrawn(u32),
    Status(i32, bool),
    Denied(Denial),
    /// With its path as it is in the file system: two may look the same.
    Made(Vec<u8>, Repository),
    Unmade(Vec<u8>),
    All,
    Stuck,
    Nothing,
    Gone,
}

impl Running {
    pub(super) fn new(
        started: start::Started,
        set: &Set,
        timeout: Option<Duration>,
        applied: Applied,
        left: Left,
        seen: Option<(Arc<Listings>, Seen)>,
    ) -> Result<Self, SandboxError> {
        let start::Started { process, life, signals, mask } = started;
        let mut running = Self {
            process,
            life,
            signals,
            mask,
            relay: None,
            listener: None,
            models: None,
            outside: None,
            reading: None,
            until: timeout.and_then(|timeout| Instant::now().checked_add(timeout)),
            is_late: false,
            applied,
            denials: Vec::new(),
            questions: Vec::new(),
            repositories: Vec::new(),
            folders: Vec::new(),
            left,
            called: None,
            seen,
            settings: (None, None),
        };
        // They were sent before the program was started.
        let wanted = [
            set.terminals.contains(&true),
            set.proxy.is_some(),
            set.models.is_some(),
            set.reads.is_some(),
        ];
        for _ in wanted.iter().filter(|wanted| **wanted) {
            match relay::receive(running.life.as_fd()) {
                Some((child::TERMINAL, Some(fd))) => {
                    running.relay = Some(Relay::new(fd, set.terminals));
                }
                Some((child::LISTENER, Some(fd))) => running.listener = Some(fd),
                Some((child::MODELS, Some(fd))) => running.models = Some(fd),
                Some((child::OUTSIDE, fd)) => running.outside = fd,
                _ => return Err(SandboxError::Ended),
            }
        }
        Ok(running)
    }

    /// With the folders that were there at the start, by numbers of their paths below each that may be written.
    pub(super) fn that_knows(mut self, folders: Vec<(PathBuf, HashSet<u64>)>) -> Self {
        self.folders = folders;
        self
    }

    /// With copies of the machine's settings that are mounted, or are to be kept.
    pub(super) fn that_has(mut self, settings: (Option<File>, Option<NewSettings>)) -> Self {
        self.settings = settings;
        self
    }

    /// Whether there was a folder of this path at the start.
    fn was_there(&self, path: &str) -> bool {
        let is = |(root, known): &(PathBuf, HashSet<u64>)| {
            let below = Path::new(path).strip_prefix(root).ok();
            below.is_some_and(|path| known.contains(&number_of(path.as_os_str().as_bytes())))
        };
        self.folders.iter().any(is)
    }

    pub(super) fn take_outside(&mut self) -> Option<OwnedFd> {
        self.outside.take()
    }

    /// Hands in files that are not shown, where the owner says so.
    pub(super) fn look_outside(&mut self, outside: Outside) -> Result<(), SandboxError> {
        let failed = |errno| SandboxError::Step { step: Step::Wait, subject: None, errno };
        let life = rustix::io::fcntl_dupfd_cloexec(&self.life, 0).map_err(failed)?;
        self.reading = Some(Reading::new(outside, life).map_err(failed)?);
        Ok(())
    }

    /// What is in force.
    #[must_use]
    pub fn applied(&self) -> &Applied {
        &self.applied
    }

    /// What was known of folders that may be written ([`crate::Spec::listings`]), and what was seen of them at the start.
    pub fn take_seen(&mut self) -> Option<(Arc<Listings>, Seen)> {
        self.seen.take()
    }

    /// Copies of the machine's settings that the next run need not make, if somebody keeps them
    /// ([`crate::Spec::settings`]).
    #[must_use]
    pub fn take_settings(&mut self) -> Option<NewSettings> {
        self.settings.1.take()
    }

    /// The socket that listens inside for the proxy, where there is to be one.
    #[must_use]
    pub fn take_listener(&mut self) -> Option<TcpListener> {
        self.listener.take().map(TcpListener::from)
    }

    /// The socket that listens inside for the proxy of model APIs, where there is to be one.
    #[must_use]
    pub fn take_models(&mut self) -> Option<TcpListener> {
        self.models.take().map(TcpListener::from)
    }

    /// What gives answers to questions ([`Self::wait_asking`]).
    ///
    /// # Errors
    /// When there are too many descriptors.
    pub fn answers(&self) -> std::io::Result<Answers> {
        Ok(Answers { life: self.life.try_clone()?, reading: self.reading.clone() })
    }

    /// Has `serve` take over a socket that listens when the first connection is there, while the end is waited for.
    pub fn when_called(
        &mut self,
        listener: TcpListener,
        serve: impl FnOnce(TcpListener) + 'static,
    ) {
        self.called = Some((listener, Box::new(serve)));
    }

    /// Waits for the end. Signals that reach this thread meanwhile reach the program, and where there is
    /// a terminal, it is relayed.
    ///
    /// # Errors
    /// When it cannot be waited for; the program is ended then.
    pub fn wait(self) -> Result<Ended, SandboxError> {
        self.wait_for_program().map(|(ended, _)| ended)
    }

    /// As [`Self::wait`]. The program and all that it has started are gone then; what is left of the
    /// confinement goes away while whoever calls does something else, at the latest when the second value
    /// is dropped.
    ///
    /// # Errors
    /// As [`Self::wait`].
    pub fn wait_for_program(self) -> Result<(Ended, Remains), SandboxError> {
        self.wait_telling(|_| {})
    }

    /// As [`Self::wait_for_program`]. Each denial is told while the program runs, the same one once; the
    /// program does not wait for it.
    ///
    /// # Errors
    /// As [`Self::wait`].
    pub fn wait_telling(self, tell: impl FnMut(&Denial)) -> Result<(Ended, Remains), SandboxError> {
        let answers = self.answers().ok();
        self.wait_asking(tell, |question| {
            // Nobody is there who could say yes.
            answers.iter().for_each(|answers| answers.give(&question, Answer::No));
        })
    }

    /// As [`Self::wait_telling`]. Where protected names are asked about, `ask` gets each question; it must
    /// not wait for the answer, which is given by [`Self::answers`]. Whoever wants the name waits until then.
    ///
    /// # Errors
    /// As [`Self::wait`].
    pub fn wait_asking(
        mut self,
        mut tell: impl FnMut(&Denial),
        mut ask: impl FnMut(Question),
    ) -> Result<(Ended, Remains), SandboxError> {
        (self.listener, self.models) = (None, None);
        let ended = self.watch(&mut tell, &mut ask);
        let remains = Remains {
            process: self.process,
            life: self.life,
            left: self.left,
            is_done: Cell::new(false),
        };
        if !matches!(ended, Ok((_, true))) {
            // Whatever happened: nothing inside is left.
            remains.end();
        }
        if let Some(relay) = &mut self.relay {
            relay.finish();
        }
        sys::unblock(&self.mask);
        let (ended, _) = ended?;
        let links = links::take(&mut self.denials, Path::new(&self.applied.workspace));
        let names = self.denials.iter().filter(|one| one.kind == DenialKind::Name);
        let refused = names.map(ToString::to_string).collect();
        let repositories =
            self.repositories.into_iter().map(|(_, repository)| repository).collect();
        let denials = self.denials;
        Ok((Ended { refused, denials, repositories, links, ..ended }, remains))
    }

    /// How it ended, and whether nothing else was left inside.
    fn watch(
        &mut self,
        tell: &mut dyn FnMut(&Denial),
        ask: &mut dyn FnMut(Question),
    ) -> Result<(Ended, bool), SandboxError> {
        loop {
            let left = self.until.map(|until| until.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                if self.is_late || !self.asks_for_all() {
                    return Ok((timed_out(), false));
                }
                self.is_late = true;
                self.until = Instant::now().checked_add(LATE);
                continue;
            }
            if self.pause(left)?
                && let Some((listener, serve)) = self.called.take()
            {
                serve(listener);
            }
            while let Some(signal) = sys::next_signal(self.signals.as_fd()) {
                self.pass_on(signal);
            }
            if let Some(relay) = &mut self.relay
                && relay.turn()
            {
                // The terminal outside is gone.
                self.pass_on(libc::SIGHUP);
            }
            loop {
                self.hear(tell, ask);
                match self.told() {
                    Told::Status(..) | Told::All if self.is_late => {
                        return Ok((timed_out(), false));
                    }
                    Told::All => {}
                    Told::Status(status, alone) => {
                        self.hear(tell, ask);
                        return Ok((ended(status), alone));
                    }
                    Told::Denied(denial) => self.note(&denial, tell),
                    Told::Asked(number, denial) => {
                        let withdrawn = Arc::new(AtomicBool::new(false));
                        self.questions.push((number, Arc::clone(&withdrawn)));
                        ask(Question { number, denial, withdrawn, found: None });
                    }
                    Told::Wanted(wanted) => match &self.reading {
                        Some(reading) => reading.want(wanted),
                        None => Reading::refuse(self.life.as_fd(), wanted.number),
                    },
                    Told::Withdrawn(number) if number & OF_READS != 0 => {
                        self.reading.iter().for_each(|reading| reading.withdraw(number));
                    }
                    Told::Withdrawn(number) => {
                        let known = self.questions.iter().find(|(known, _)| *known == number);
                        known.iter().for_each(|(_, flag)| flag.store(true, Ordering::Relaxed));
                        self.questions.retain(|(known, _)| *known != number);
                    }
                    Told::Made(path, repository) => {
                        self.repositories.retain(|known| known.0 != path);
                        if self.repositories.len() < MOST {
                            self.repositories.push((path, repository));
                        }
                    }
                    Told::Unmade(path) => self.repositories.retain(|known| known.0 != path),
                    Told::Stuck => {
                        let ended = Ended { code: TIMED_OUT, stuck: true, ..Ended::default() };
                        return Ok((ended, false));
                    }
                    Told::Nothing => break,
                    // It tells how the program ended, unless something ends it first.
                    Told::Gone => {
                        return Ok((Ended { untold: true, ..ended(libc::SIGKILL) }, false));
                    }
                }
            }
        }
    }

    /// Asks for what is to be told of new repositories; `false` where nobody listens.
    fn asks_for_all(&self) -> bool {
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        rustix::net::send(&self.life, &[child::TELL], flags).is_ok()
    }

    /// What was found out about files that are not shown.
    fn hear(&mut self, tell: &mut dyn FnMut(&Denial), ask: &mut dyn FnMut(Question)) {
        let Some(reading) = self.reading.clone() else { return };
        for heard in reading.heard() {
            match heard {
                Heard::Ask(question) => ask(question),
                Heard::Denied(denial) => self.note(&denial, tell),
                Heard::Again(wanted) => reading.want(wanted),
            }
        }
    }

    /// Notes a denial, and tells of one that is new.
    fn note(&mut self, denial: &Denial, tell: &mut dyn FnMut(&Denial)) {
        // What is not there outside either was not kept from anybody.
        let there = || Path::new(&denial.path).symlink_metadata().is_ok();
        if denial.kind == DenialKind::Unseen && !there() {
            return;
        }
        if denial::add(&mut self.denials, denial, MOST) && denial.kind != DenialKind::Link {
            tell(denial);
        }
    }

    /// Until something happens. Says whether somebody inside has connected.
    fn pause(&self, left: Option<Duration>) -> Result<bool, SandboxError> {
        let left = left.map(|left| Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        });
        let mut fds =
            vec![PollFd::new(&self.life, PollFlags::IN), PollFd::new(&self.signals, PollFlags::IN)];
        if let Some((listener, _)) = &self.called {
            fds.push(PollFd::new(listener, PollFlags::IN));
        }
        let bell = self.reading.as_ref().map(|reading| reading.bell());
        fds.extend(bell.map(|bell| PollFd::from_borrowed_fd(bell, PollFlags::IN)));
        if let Some(relay) = &self.relay {
            relay.wants(&mut fds);
        }
        match rustix::event::poll(&mut fds, left.as_ref()) {
            Ok(_) => {
                Ok(self.called.is_some() && fds.get(2).is_some_and(|fd| !fd.revents().is_empty()))
            }
            Err(Errno::INTR) => Ok(false),
            Err(errno) => Err(SandboxError::Step { step: Step::Wait, subject: None, errno }),
        }
    }

    fn pass_on(&mut self, signal: i32) {
        if signal == libc::SIGWINCH {
            if let Some(relay) = &self.relay {
                relay.fit();
            }
            return;
        }
        if let Ok(number) = u8::try_from(signal) {
            let message = [child::SIGNAL, number];
            let _ = rustix::net::send(&self.life, &message, SendFlags::NOSIGNAL);
        }
    }

    fn told(&self) -> Told {
        let mut message = [0; child::LONGEST_MESSAGE];
        match rustix::net::recv(&self.life, &mut message[..], RecvFlags::DONTWAIT) {
            Ok((_, 0)) => Told::Gone,
            Ok((_, length)) => {
                let (kind, rest) = (message[0], &message[1..length.min(message.len())]);
                match kind {
                    child::ENDED if rest.len() == 5 => {
                        let status = i32::from_ne_bytes([rest[0], rest[1], rest[2], rest[3]]);
                        Told::Status(status, rest[4] == 1)
                    }
                    child::STUCK => Told::Stuck,
                    child::ALL_TOLD => Told::All,
                    child::REFUSED => Denial::from_bytes(rest).map_or(Told::Nothing, Told::Denied),
                    child::ASKED => {
                        let asked = rest.split_first_chunk().and_then(|(number, rest)| {
                            let denial = Denial::from_bytes(rest)?;
                            Some(Told::Asked(u32::from_ne_bytes(*number), denial))
                        });
                        asked.unwrap_or(Told::Nothing)
                    }
                    child::WANTED => Wanted::from_bytes(rest).map_or(Told::Nothing, Told::Wanted),
                    child::WITHDRAWN => rest.first_chunk().map_or(Told::Nothing, |number| {
                        Told::Withdrawn(u32::from_ne_bytes(*number))
                    }),
                    child::MADE => {
                        let mut parts = rest.splitn(4, |byte| *byte == 0);
                        let mut next = || parts.next().unwrap_or_default();
                        let (bytes, executes, holds, new) = (next(), next(), next(), next());
                        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
                        let (path, executes, holds) = (text(bytes), text(executes), text(holds));
                        let replaces = new == child::NEW.as_bytes() && self.was_there(&path);
                        let made = Repository { path, executes, holds, replaces };
                        Told::Made(bytes.to_owned(), made)
                    }
                    child::UNMADE => Told::Unmade(rest.to_owned()),
                    _ => Told::Nothing,
                }
            }
            Err(Errno::AGAIN) => Told::Nothing,
            Err(Errno::INTR) => Told::Nothing,
            Err(_) => Told::Gone,
        }
    }
}

/// What is left of a confinement whose program has ended. It is gone when this is dropped.
#[derive(Debug)]
pub struct Remains {
    process: OwnedFd,
    life: OwnedFd,
    left: Left,
    /// Whether all was done already that can be.
    is_done: Cell<bool>,
}

impl Remains {
    /// Ends everything inside, and waits until it is gone.
    fn end(&self) {
        if self.is_done.replace(true) {
            return;
        }
        // The confined side's first process ends when this closes, and all others with it.
        let _ = rustix::net::shutdown(&self.life, rustix::net::Shutdown::Both);
        if !self.has_ended(2) {
            let _ = rustix::process::pidfd_send_signal(&self.process, Signal::KILL);
            // What a file system that does not answer holds in the kernel is killed, and goes when it
            // answers; nobody waits for that.
            if !self.has_ended(5) {
                return;
            }
        }
        let process = || rustix::process::WaitId::PidFd(self.process.as_fd());
        while let Err(Errno::INTR) = rustix::process::waitid(process(), WaitIdOptions::EXITED) {}
    }

    /// Whether the first process inside ends within some seconds.
    fn has_ended(&self, seconds: i64) -> bool {
        let patience = Timespec { tv_sec: seconds, tv_nsec: 0 };
        let mut fds = [PollFd::new(&self.process, PollFlags::IN)];
        matches!(rustix::event::poll(&mut fds, Some(&patience)), Ok(1..))
    }
}

impl Drop for Remains {
    fn drop(&mut self) {
        self.end();
        self.left.group = None;
        self.left.scratch = None;
    }
}

fn timed_out() -> Ended {
    Ended { code: TIMED_OUT, timed_out: true, ..Ended::default() }
}

fn ended(status: i32) -> Ended {
    let signal = status & 0x7F;
    if signal == 0 {
        Ended { code: (status >> 8) & 0xFF, ..Ended::default() }
    } else {
        Ended { code: 128 + signal, signal: Some(signal), ..Ended::default() }
    }
}
