//! A terminal shown inside of another: the program gets one of its own, and never the one outside.

mod questions;

use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::OFlags;
use rustix::io::{Errno, IoSliceMut};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use rustix::termios::{OptionalActions, Termios};

use crate::child::Set;

use self::questions::Questions;

/// Most bytes that wait for one side.
const MOST: usize = 16 << 10;
/// Most bytes that are still shown after the program has ended.
const LAST: usize = 4 << 20;
/// How long a terminal may take to answer what it was asked, over a network too.
const ANSWERED: Duration = Duration::from_millis(400);

/// Both sides, and what waits for them.
pub(super) struct Relay {
    /// The side of the terminal inside that faces outward.
    near: OwnedFd,
    /// Where what it shows goes.
    out: BorrowedFd<'static>,
    /// Whether what is typed outside goes in.
    typed: bool,
    /// How the terminal outside was set.
    before: Option<Termios>,
    inward: Vec<u8>,
    outward: Vec<u8>,
    near_open: bool,
    questions: Questions,
    /// When the program last asked the terminal outside for something.
    asked: Option<Instant>,
}

/// Notes how the terminal outside is set, for the one inside.
pub(super) fn look(set: &mut Set) {
    let fds = [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()];
    let terminal = fds.into_iter().zip(set.terminals).find(|(_, is)| *is).map(|(fd, _)| fd);
    if let Some(terminal) = terminal {
        set.window = rustix::termios::tcgetwinsize(terminal).ok();
        set.settings = rustix::termios::tcgetattr(terminal).ok();
    }
}

/// What the other side says first, and the descriptor that it hands over with it.
pub(super) fn receive(life: BorrowedFd<'_>) -> Option<(u8, Option<OwnedFd>)> {
    let mut kind = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut text = [IoSliceMut::new(&mut kind)];
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    rustix::net::recvmsg(life, &mut text, &mut control, flags).ok()?;
    let fd = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    Some((kind[0], fd))
}

impl Relay {
    pub(super) fn new(near: OwnedFd, terminals: [bool; 3]) -> Self {
        let [stdin, stdout, _] = terminals;
        let out = if stdout { rustix::stdio::stdout() } else { rustix::stdio::stderr() };
        let out =
            if stdin && !terminals[1] && !terminals[2] { rustix::stdio::stdin() } else { out };
        let mut relay = Self {
            near,
            out,
            typed: stdin && in_foreground(),
            before: None,
            inward: Vec::new(),
            outward: Vec::new(),
            near_open: true,
            questions: Questions::default(),
            asked: None,
        };
        let _ = rustix::fs::fcntl_setfl(&relay.near, OFlags::RDWR | OFlags::NONBLOCK);
        if relay.typed
            && let Ok(before) = rustix::termios::tcgetattr(rustix::stdio::stdin())
        {
            let mut raw = before.clone();
            raw.make_raw();
            // The terminal inside does all of it, signals included.
            let set =
                rustix::termios::tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &raw);
            relay.before = set.is_ok().then_some(before);
        }
        relay
    }

    /// Gives the terminal inside the size of the one outside.
    pub(super) fn fit(&self) {
        if let Ok(size) = rustix::termios::tcgetwinsize(self.out) {
            let _ = rustix::termios::tcsetwinsize(&self.near, size);
        }
    }

    /// What to wait for.
    pub(super) fn wants<'a>(&'a self, fds: &mut Vec<PollFd<'a>>) {
        if self.typed && self.inward.len() < MOST {
            fds.push(PollFd::from_borrowed_fd(rustix::stdio::stdin(), PollFlags::IN));
        }
        let mut near = PollFlags::empty();
        if self.outward.len() < MOST {
            near |= PollFlags::IN;
        }
        if !self.inward.is_empty() {
            near |= PollFlags::OUT;
        }
        if self.near_open && !near.is_empty() {
            fds.push(PollFd::new(&self.near, near));
        }
        if !self.outward.is_empty() {
            fds.push(PollFd::from_borrowed_fd(self.out, PollFlags::OUT));
        }
    }

    /// Moves what can be moved; says whether the terminal outside has just gone.
    pub(super) fn turn(&mut self) -> bool {
        let mut gone = false;
        if self.typed && self.inward.len() < MOST && is_ready(rustix::stdio::stdin(), PollFlags::IN)
        {
            let mut buffer = [0; 4096];
            match rustix::io::read(rustix::stdio::stdin(), &mut buffer) {
                Ok(0) => gone = true,
                Ok(read) => self.inward.extend_from_slice(&buffer[..read]),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(_) => gone = true,
            }
            self.typed &= !gone;
        }
        if !self.inward.is_empty() {
            match rustix::io::write(&self.near, &self.inward) {
                Ok(written) => drop(self.inward.drain(..written)),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(_) => self.inward.clear(),
            }
        }
        self.take_shown();
        if !self.outward.is_empty() && is_ready(self.out, PollFlags::OUT) {
            match rustix::io::write(self.out, &self.outward) {
                Ok(written) => drop(self.outward.drain(..written)),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(_) => self.outward.clear(),
            }
        }
        gone
    }

    /// Reads what is shown inside; says whether there was something.
    fn take_shown(&mut self) -> bool {
        if !self.near_open || self.outward.len() >= MOST {
            return false;
        }
        let mut buffer = [0; 8192];
        match rustix::io::read(&self.near, &mut buffer) {
            Ok(read) if read > 0 => {
                if self.questions.are_in(&buffer[..read]) {
                    self.asked = Some(Instant::now());
                }
                self.outward.extend_from_slice(&buffer[..read]);
                true
            }
            Err(Errno::INTR | Errno::AGAIN) => false,
            // Nobody has the other side open, which also is so before anybody has opened it.
            _ => {
                self.near_open = false;
                false
            }
        }
    }

    /// Shows the rest, and puts the terminal outside back.
    pub(super) fn finish(&mut self) {
        let mut shown = 0;
        self.near_open = true;
        loop {
            while !self.outward.is_empty() {
                match rustix::io::write(self.out, &self.outward) {
                    Ok(written) => {
                        shown += written;
                        self.outward.drain(..written);
                    }
                    Err(Errno::INTR) => {}
                    Err(_) => self.outward.clear(),
                }
            }
            if shown > LAST || !self.take_shown() {
                break;
            }
        }
        self.restore();
    }

    fn restore(&mut self) {
        if let Some(before) = self.before.take() {
            self.take_answers();
            let stdin = rustix::stdio::stdin();
            let _ = rustix::termios::tcsetattr(stdin, OptionalActions::Flush, &before);
        }
    }
}

impl Relay {
    /// What the terminal answers is not for the owner's shell, which would take it for typed.
    fn take_answers(&self) {
        let Some(asked) = self.asked else { return };
        let stdin = rustix::stdio::stdin();
        let mut buffer = [0; 1024];
        while let Some(left) = ANSWERED.checked_sub(asked.elapsed()) {
            let left = rustix::event::Timespec { tv_sec: 0, tv_nsec: left.subsec_nanos().into() };
            let mut fds = [PollFd::from_borrowed_fd(stdin, PollFlags::IN)];
            match rustix::event::poll(&mut fds, Some(&left)) {
                Ok(1..) if matches!(rustix::io::read(stdin, &mut buffer), Ok(1..)) => {}
                Err(Errno::INTR) => {}
                _ => return,
            }
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.restore();
    }
}

fn is_ready(fd: BorrowedFd<'_>, wanted: PollFlags) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(fd, wanted)];
    let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(rustix::event::poll(&mut fds, Some(&now)), Ok(1..))
}

/// Whether this process may read what is typed.
fn in_foreground() -> bool {
    let group = rustix::termios::tcgetpgrp(rustix::stdio::stdin());
    group.is_ok_and(|group| group == rustix::process::getpgrp())
}
