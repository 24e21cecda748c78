//! Modes, owners and times of files: Landlock has no right for them, so that without a mount that cannot be written to
//! nothing else keeps them from all that belongs to the user.

use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, ResolveFlags, Timespec, Timestamps, Uid, chmodat,
    chownat, fstat, openat, openat2, utimensat,
};
use rustix::io::Errno;

use super::born::Born;
use super::caller::Caller;
use super::names::{bytes, is_below};
use super::open::LINKED;
use super::place::{Place, path_buf, real_path};
use super::supervisor::{Done, Stop, Supervisor};
use super::{bare, git};

const HERE: u32 = libc::AT_FDCWD.cast_unsigned();
/// What speaks against changing a file that lies elsewhere.
const BEYOND: &str = "it does not lie where the program may write";

/// Which file a call is about.
#[derive(Debug, Clone, Copy)]
enum Which {
    /// What a descriptor of the caller's is.
    Open(u32),
    /// What an argument names, from a descriptor on.
    Named { from: u32, path: usize, flags: AtFlags },
}

impl Which {
    fn named(from: u32, path: usize) -> Self {
        Self::Named { from, path, flags: AtFlags::empty() }
    }

    /// As a call with flags names it.
    fn flagged(from: u32, path: usize, flags: u32) -> Result<Self, Stop> {
        let flags = AtFlags::from_bits_retain(flags);
        if !(flags - (AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH)).is_empty() {
            return Err(Errno::INVAL.into());
        }
        Ok(Self::Named { from, path, flags })
    }
}

/// What is to become of it.
enum Change {
    Mode(Mode),
    Owner(Option<Uid>, Option<Gid>),
    Times(Timestamps),
}

impl Change {
    fn mode(raw: u32) -> Self {
        Self::Mode(Mode::from_raw_mode(raw & 0o7777))
    }

    fn owner(user: u32, group: u32) -> Self {
        let given = |number: u32| (number != u32::MAX).then_some(number);
        Self::Owner(given(user).map(Uid::from_raw), given(group).map(Gid::from_raw))
    }

    /// Times in memory, each of two numbers, of which the second counts so many to a nanosecond. Without any it is now.
    fn times(caller: &Caller<'_>, at: usize, each: i64) -> Result<Self, Stop> {
        if caller.argument(at) == 0 {
            let now = Timespec { tv_sec: 0, tv_nsec: libc::UTIME_NOW };
            return Ok(Self::Times(Timestamps { last_access: now, last_modification: now }));
        }
        let [a, b, c, d] = numbers(caller, at)?;
        let time = |seconds, part: i64| match each {
            1 => Ok(Timespec { tv_sec: seconds, tv_nsec: part }),
            _ if !(0..1_000_000).contains(&part) => Err(Errno::INVAL),
            _ => Ok(Timespec { tv_sec: seconds, tv_nsec: part * each }),
        };
        let (last_access, last_modification) = (time(a, b)?, time(c, d)?);
        Ok(Self::Times(Timestamps { last_access, last_modification }))
    }

    /// Times in whole seconds.
    #[cfg(target_arch = "x86_64")]
    fn seconds(caller: &Caller<'_>, at: usize) -> Result<Self, Stop> {
        if caller.argument(at) == 0 {
            return Self::times(caller, at, 1);
        }
        let [a, b] = numbers(caller, at)?;
        let time = |seconds| Timespec { tv_sec: seconds, tv_nsec: 0 };
        Ok(Self::Times(Timestamps { last_access: time(a), last_modification: time(b) }))
    }
}

/// Numbers of the caller's memory, all read at once.
fn numbers<const N: usize>(caller: &Caller<'_>, at: usize) -> Result<[i64; N], Stop> {
    let mut room = [[0; 8]; N];
    caller.bytes(at, room.as_flattened_mut())?;
    Ok(room.map(i64::from_ne_bytes))
}

/// What a call asks for.
fn asked(caller: &Caller<'_>) -> Result<(Which, Change), Stop> {
    let number = |at: usize| caller.number(at);
    let (mode, owner) =
        (|at| Change::mode(number(at)), |at| Change::owner(number(at), number(at + 1)));
    Ok(match caller.call.number {
        libc::SYS_fchmod => (Which::Open(number(0)), mode(1)),
        libc::SYS_fchmodat => (Which::named(number(0), 1), mode(2)),
        libc::SYS_fchmodat2 => (Which::flagged(number(0), 1, number(3))?, mode(2)),
        libc::SYS_fchown => (Which::Open(number(0)), owner(1)),
        libc::SYS_fchownat => (Which::flagged(number(0), 1, number(4))?, owner(2)),
        libc::SYS_utimensat if caller.argument(1) == 0 => {
            (Which::Open(number(0)), Change::times(caller, 2, 1)?)
        }
        libc::SYS_utimensat => {
            (Which::flagged(number(0), 1, number(3))?, Change::times(caller, 2, 1)?)
        }
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chmod => (Which::named(HERE, 0), mode(1)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chown => (Which::named(HERE, 0), owner(1)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_lchown => {
            (Which::Named { from: HERE, path: 0, flags: AtFlags::SYMLINK_NOFOLLOW }, owner(1))
        }
        #[cfg(target_arch = "x86_64")]
        libc::SYS_utime => (Which::named(HERE, 0), Change::seconds(caller, 1)?),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_utimes => (Which::named(HERE, 0), Change::times(caller, 1, 1000)?),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_futimesat if caller.argument(1) == 0 => {
            (Which::Open(number(0)), Change::times(caller, 2, 1000)?)
        }
        #[cfg(target_arch = "x86_64")]
        libc::SYS_futimesat => (Which::named(number(0), 1), Change::times(caller, 2, 1000)?),
        _ => return Err(Errno::NOSYS.into()),
    })
}

impl Supervisor {
    /// Has modes, owners and times changed only at and below these real paths.
    #[must_use]
    pub(crate) fn that_changes(mut self, written: Vec<PathBuf>) -> Self {
        self.written = written;
        self
    }

    /// Changes what a file is like. What is changed is the one that was looked at, which is held open.
    pub(super) fn change(&mut self, caller: &Caller<'_>) -> Result<Done, Stop> {
        let (which, change) = asked(caller)?;
        let file = match which {
            Which::Open(number) => opened(self, caller, number)?,
            Which::Named { from, path, flags } => self.found(caller, from, path, flags)?,
        };
        caller.is_there()?;
        let kind = FileType::from_raw_mode(fstat(&file)?.st_mode);
        self.check_change(&file, kind)?;
        match change {
            Change::Mode(_) if kind == FileType::Symlink => return Err(Errno::OPNOTSUPP.into()),
            // By its number: older kernels change no mode of a descriptor that is held so.
            Change::Mode(mode) => {
                chmodat(&self.own, file.as_raw_fd().to_string(), mode, AtFlags::empty())?;
            }
            Change::Owner(user, group) => chownat(&file, c"", user, group, AtFlags::EMPTY_PATH)?,
            Change::Times(times) => utimensat(&file, c"", &times, AtFlags::EMPTY_PATH)?,
        }
        Ok(Done::Value(0))
    }

    /// What a path of the caller's leads to, held open.
    fn found(
        &self,
        caller: &Caller<'_>,
        from: u32,
        path: usize,
        flags: AtFlags,
    ) -> Result<OwnedFd, Stop> {
        let path = caller.text(path)?;
        if path.is_empty() && flags.contains(AtFlags::EMPTY_PATH) {
            return opened(self, caller, from);
        }
        let (anchor, path) = caller.start(from, path)?;
        caller.is_there()?;
        let place = Place::of(self.own.as_fd(), &anchor, &path)?;
        if place.is_proc {
            return self.own_descriptor(caller, &place);
        }
        let last = if flags.contains(AtFlags::SYMLINK_NOFOLLOW) {
            OFlags::NOFOLLOW
        } else {
            OFlags::empty()
        };
        let flags = OFlags::PATH | OFlags::CLOEXEC | last;
        Ok(openat2(&anchor, &path, flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS)?)
    }

    /// Whether an open file may be changed: it lies where the program may write, and its name is not protected.
    fn check_change(&mut self, file: &OwnedFd, kind: FileType) -> Result<(), Stop> {
        let found = fstat(file)?;
        // Nobody finds it by a name: a temporary file, or one in memory.
        if found.st_nlink == 0 && kind == FileType::RegularFile {
            return Ok(());
        }
        let path = real_path(self.own.as_fd(), file)?;
        let refuse = |rule: &str| Err(Stop::Refused(path_buf(&path), rule.to_owned()));
        if !self.written.iter().any(|above| is_below(&path, bytes(above))) {
            return refuse(BEYOND);
        }
        // What was given itself to be written to.
        if self.written.iter().any(|one| bytes(one) == path) {
            return Ok(());
        }
        if self.is_linked(&found) {
            return refuse(LINKED);
        }
        let place = Place::of_file(self.own.as_fd(), file)?;
        self.check_kept(&place, kind)?;
        if self.names.is_free(&path) || !bare::is_obeyed(&place)? {
            return Ok(());
        }
        let name = place.name.as_bytes();
        let is_settings = !place.path.ends_with(b"/hooks");
        if is_settings && self.is_new(Born::of(&place.parent, c"")?.0) {
            return Ok(());
        }
        if is_settings || git::is_live_hook(name) {
            return refuse("git's hooks and settings stay as they are");
        }
        Ok(())
    }
}

/// A descriptor of the caller's, held open.
fn opened(to: &Supervisor, caller: &Caller<'_>, number: u32) -> Result<OwnedFd, Stop> {
    let path = if number == HERE {
        format!("{}/cwd", caller.call.pid)
    } else {
        format!("{}/fd/{number}", caller.call.pid)
    };
    openat(&*to.proc, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(|error| {
        match error {
            Errno::NOENT => Errno::BADF.into(),
            error => error.into(),
        }
    })
}
