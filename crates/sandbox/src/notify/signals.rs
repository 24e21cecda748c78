//! What one process does to another, where no namespace keeps it from others of the user: signals, which a newer Landlock
//! keeps from them as well, and turns.

use std::os::fd::AsFd as _;

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::{Errno, read};

use super::abi;
use super::caller::Caller;
use super::supervisor::{Done, Stop, Supervisor};

/// More steps up than from any process to this one.
const HIGHEST: usize = 4096;

/// Whose child a process is, and in which group.
struct Kin {
    parent: u32,
    group: u32,
}

impl Supervisor {
    /// Sends a signal to who was started by the program, at any remove, and to nobody else.
    pub(super) fn signal(&self, caller: &Caller<'_>) -> Result<Done, Stop> {
        let (target, signal) = (caller.number(0).cast_signed(), caller.number(1));
        let own = caller.status()?.group;
        caller.is_there()?;
        let group = match target {
            // The groups of the program's own sessions have nobody else in them.
            0 => return Ok(Done::Continue),
            -1 => return Err(Errno::PERM.into()),
            1.. => {
                let target = target.unsigned_abs();
                // Whoever signals itself must not be woken by it before the call has ended.
                if target == own {
                    return Ok(Done::Continue);
                }
                self.send(target, signal)?;
                return Ok(Done::Value(0));
            }
            group => group.unsigned_abs(),
        };
        let group_of = |process| self.kin(process).map(|kin| kin.group);
        if group_of(own) == Some(group) {
            return Ok(Done::Continue);
        }
        let all = std::fs::read_dir("/proc").map_err(|_| Errno::PERM)?;
        let all = all.filter_map(|one| one.ok()?.file_name().to_str()?.parse().ok());
        let mut done = Err(Errno::SRCH);
        for process in all.filter(|process| group_of(*process) == Some(group)) {
            done = done.or(self.send(process, signal));
        }
        done?;
        Ok(Done::Value(0))
    }

    /// Lets a call about a thread of the caller's own process through.
    pub(super) fn own_thread(&self, caller: &Caller<'_>, thread: u32) -> Result<Done, Stop> {
        let path = format!("{}/task/{thread}", caller.status()?.group);
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        match openat(&*self.proc, path, flags, Mode::empty()) {
            Ok(_) => Ok(Done::Continue),
            Err(_) => Err(Errno::PERM.into()),
        }
    }

    /// Lets a signal with words of the caller's through to the caller.
    pub(super) fn signal_itself(&self, caller: &Caller<'_>) -> Result<Done, Stop> {
        let is_own = caller.number(0) == caller.status()?.group;
        if is_own { Ok(Done::Continue) } else { Err(Errno::PERM.into()) }
    }

    /// Lets a caller say when its own threads have their turn, and nobody else.
    pub(super) fn turn(
        &self,
        caller: &Caller<'_>,
        thread: u32,
        several: bool,
    ) -> Result<Done, Stop> {
        match thread {
            _ if several => Err(Errno::PERM.into()),
            // Itself.
            0 => Ok(Done::Continue),
            thread => self.own_thread(caller, thread),
        }
    }

    fn send(&self, process: u32, signal: u32) -> Result<(), Errno> {
        let errno = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::PERM);
        // Held first: what is looked at is who gets it.
        let held = abi::open_process(process).map_err(errno)?;
        if !self.is_below(process) {
            return Err(Errno::PERM);
        }
        abi::send_signal(held.as_fd(), signal).map_err(errno)
    }

    /// Whether the program has started a process, at any remove: who loses its parent becomes a child of this process.
    fn is_below(&self, process: u32) -> bool {
        let own = std::process::id();
        let mut at = process;
        for _ in 0..HIGHEST {
            match self.kin(at) {
                Some(kin) if kin.parent == own => return true,
                Some(kin) if kin.parent > 1 => at = kin.parent,
                _ => return false,
            }
        }
        false
    }

    fn kin(&self, process: u32) -> Option<Kin> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = openat(&*self.proc, format!("{process}/stat"), flags, Mode::empty()).ok()?;
        let mut room = [0; 512];
        let count = read(&file, &mut room).ok()?;
        let text = String::from_utf8_lossy(&room[..count]);
        // The name may hold anything, but ends with the last parenthesis.
        let (_, rest) = text.rsplit_once(')')?;
        let mut fields = rest.split_whitespace().skip(1);
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        Some(Kin { parent, group })
    }
}
