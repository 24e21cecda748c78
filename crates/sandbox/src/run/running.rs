//! A program that runs: relayed, waited for, ended.

use std::net::TcpListener;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use rustix::process::{Signal, WaitIdOptions};

use super::relay::{self, Relay};
use super::{Ended, TIMED_OUT, start};
use crate::child::{self, Set};
use crate::error::{SandboxError, Step};
use crate::spec::Applied;
use crate::sys::{self, Mask};

/// Most refusals and repositories that are remembered.
const MOST: usize = 1000;

/// A confined program.
pub struct Running {
    process: OwnedFd,
    life: OwnedFd,
    signals: OwnedFd,
    mask: Mask,
    relay: Option<Relay>,
    listener: Option<OwnedFd>,
    until: Option<Instant>,
    applied: Applied,
    refused: Vec<String>,
    repositories: Vec<(String, String)>,
    scratch: Option<start::PrivateFolder>,
}

impl std::fmt::Debug for Running {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Running").field("process", &self.process).finish_non_exhaustive()
    }
}

/// What the confined side has told.
enum Told {
    Status(i32, bool),
    Refused(String),
    Made(String, String),
    Nothing,
    Gone,
}

impl Running {
    pub(super) fn new(
        started: start::Started,
        set: &Set,
        timeout: Option<Duration>,
        applied: Applied,
        scratch: Option<start::PrivateFolder>,
    ) -> Result<Self, SandboxError> {
        let start::Started { process, life, signals, mask } = started;
        let mut running = Self {
            process,
            life,
            signals,
            mask,
            relay: None,
            listener: None,
            until: timeout.and_then(|timeout| Instant::now().checked_add(timeout)),
            applied,
            refused: Vec::new(),
            repositories: Vec::new(),
            scratch,
        };
        // They were sent before the program was started.
        let wanted = usize::from(set.terminals.contains(&true)) + usize::from(set.proxy.is_some());
        for _ in 0..wanted {
            match relay::receive(running.life.as_fd()) {
                Some((child::TERMINAL, fd)) => {
                    running.relay = Some(Relay::new(fd, set.terminals));
                }
                Some((child::LISTENER, fd)) => running.listener = Some(fd),
                _ => return Err(SandboxError::Ended),
            }
        }
        Ok(running)
    }

    /// What is in force.
    #[must_use]
    pub fn applied(&self) -> &Applied {
        &self.applied
    }

    /// The socket that listens inside for the proxy, where there is to be one.
    #[must_use]
    pub fn take_listener(&mut self) -> Option<TcpListener> {
        self.listener.take().map(TcpListener::from)
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
    pub fn wait_for_program(mut self) -> Result<(Ended, Remains), SandboxError> {
        self.listener = None;
        let ended = self.watch();
        let remains = Remains { process: self.process, life: self.life, _scratch: self.scratch };
        if !matches!(ended, Ok((_, true))) {
            // Whatever happened: nothing inside is left.
            remains.end();
        }
        if let Some(relay) = &mut self.relay {
            relay.finish();
        }
        sys::unblock(&self.mask);
        let (ended, _) = ended?;
        Ok((Ended { refused: self.refused, repositories: self.repositories, ..ended }, remains))
    }

    /// How it ended, and whether nothing else was left inside.
    fn watch(&mut self) -> Result<(Ended, bool), SandboxError> {
        loop {
            let left = self.until.map(|until| until.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                let ended = Ended { code: TIMED_OUT, timed_out: true, ..Ended::default() };
                return Ok((ended, false));
            }
            self.pause(left)?;
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
                match self.told() {
                    Told::Status(status, alone) => return Ok((ended(status), alone)),
                    Told::Refused(what) => {
                        if self.refused.len() < MOST && !self.refused.contains(&what) {
                            self.refused.push(what);
                        }
                    }
                    Told::Made(path, executes) => {
                        self.repositories.retain(|(known, _)| *known != path);
                        if self.repositories.len() < MOST {
                            self.repositories.push((path, executes));
                        }
                    }
                    Told::Nothing => break,
                    Told::Gone => return Ok((ended(libc::SIGKILL), false)),
                }
            }
        }
    }

    /// Until something happens.
    fn pause(&self, left: Option<Duration>) -> Result<(), SandboxError> {
        let left = left.map(|left| Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        });
        let mut fds =
            vec![PollFd::new(&self.life, PollFlags::IN), PollFd::new(&self.signals, PollFlags::IN)];
        if let Some(relay) = &self.relay {
            relay.wants(&mut fds);
        }
        match rustix::event::poll(&mut fds, left.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
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
        let mut message = [0; 4096];
        match rustix::net::recv(&self.life, &mut message[..], RecvFlags::DONTWAIT) {
            Ok((_, 0)) => Told::Gone,
            Ok((_, length)) => {
                let (kind, rest) = (message[0], &message[1..length.min(message.len())]);
                let text = String::from_utf8_lossy(rest);
                match kind {
                    child::ENDED if rest.len() == 5 => {
                        let status = i32::from_ne_bytes([rest[0], rest[1], rest[2], rest[3]]);
                        Told::Status(status, rest[4] == 1)
                    }
                    child::REFUSED => Told::Refused(text.into_owned()),
                    child::MADE => {
                        let (path, executes) = text.split_once('\0').unwrap_or((&text, ""));
                        Told::Made(path.to_owned(), executes.to_owned())
                    }
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
    // Removed when this goes away.
    _scratch: Option<start::PrivateFolder>,
}

impl Remains {
    /// Ends everything inside, and waits until it is gone.
    fn end(&self) {
        // The confined side's first process ends when this closes, and all others with it.
        let _ = rustix::net::shutdown(&self.life, rustix::net::Shutdown::Both);
        let patience = Timespec { tv_sec: 2, tv_nsec: 0 };
        let mut fds = [PollFd::new(&self.process, PollFlags::IN)];
        let ended = rustix::event::poll(&mut fds, Some(&patience));
        if !matches!(ended, Ok(1..)) {
            let _ = rustix::process::pidfd_send_signal(&self.process, Signal::KILL);
        }
        let process = || rustix::process::WaitId::PidFd(self.process.as_fd());
        while let Err(Errno::INTR) = rustix::process::waitid(process(), WaitIdOptions::EXITED) {}
    }
}

impl Drop for Remains {
    fn drop(&mut self) {
        self.end();
    }
}

fn ended(status: i32) -> Ended {
    let signal = status & 0x7F;
    if signal == 0 {
        Ended { code: (status >> 8) & 0xFF, ..Ended::default() }
    } else {
        Ended { code: 128 + signal, signal: Some(signal), ..Ended::default() }
    }
}
