//! Opening a file for a caller.

use std::ffi::CString;
use std::io::Write as _;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::sync::Arc;

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, ResolveFlags, fcntl_setfl, fstat, openat, openat2, readlinkat,
    statat, unlinkat,
};
use rustix::io::Errno;

use super::born::Born;
use super::caller::Caller;
use super::check::Deed;
use super::git::{self, Part};
use super::place::{Place, is_proc, path_buf};
use super::supervisor::{Done, Stop, Supervisor, Waiting};

/// What speaks against writing to a file by another of its names.
pub(super) const LINKED: &str = "it is a further name of a protected file";
/// Links that are followed, as the kernel does, and rounds that a race may cost.
const LINKS: usize = 40;
/// Flags that the kernel takes; the others mean nothing to it.
const KNOWN: OFlags = OFlags::from_bits_retain(
    (libc::O_ACCMODE
        | libc::O_CREAT
        | libc::O_EXCL
        | libc::O_NOCTTY
        | libc::O_TRUNC
        | libc::O_APPEND
        | libc::O_NONBLOCK
        | libc::O_SYNC
        | libc::O_ASYNC
        | libc::O_DIRECT
        | libc::O_LARGEFILE
        | libc::O_DIRECTORY
        | libc::O_NOFOLLOW
        | libc::O_NOATIME
        | libc::O_CLOEXEC) as u32,
);
/// `/dev/tty`: whichever terminal the caller has.
const OWN_TERMINAL: (u32, u32) = (5, 0);

/// What was asked for.
#[derive(Debug, Clone, Copy)]
struct Asked {
    flags: OFlags,
    mode: Mode,
    umask: Mode,
}

impl Asked {
    fn makes(self) -> bool {
        self.flags.contains(OFlags::CREATE)
    }

    fn only_makes(self) -> bool {
        self.flags.contains(OFlags::CREATE | OFlags::EXCL)
    }

    /// Whether what is there can be changed by it.
    fn changes(self) -> bool {
        self.flags.intersects(OFlags::WRONLY | OFlags::RDWR | OFlags::TRUNC)
    }

    /// Flags to open what is there with: nothing waits, and no terminal becomes ours.
    fn existing(self) -> OFlags {
        let without = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        ((self.flags & KNOWN) - without) | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC
    }

    fn done(self, file: OwnedFd) -> Result<Done, Stop> {
        if !self.flags.contains(OFlags::NONBLOCK) {
            fcntl_setfl(&file, (self.flags & KNOWN) - OFlags::NONBLOCK)?;
        }
        Ok(Done::File(file, self.flags.contains(OFlags::CLOEXEC)))
    }
}

impl Supervisor {
    /// `openat` and its older kin: the descriptor, the path, the flags and the mode.
    pub(super) fn open(
        &mut self,
        caller: &Caller<'_>,
        descriptor: u32,
        path: usize,
        flags: OFlags,
        mode: u32,
    ) -> Result<Done, Stop> {
        let (anchor, path) = caller.start(descriptor, caller.text(path)?)?;
        self.open_from(caller, anchor, path, flags, mode)
    }

    /// A name in a folder that is held open.
    pub(super) fn open_at(
        &mut self,
        caller: &Caller<'_>,
        folder: OwnedFd,
        name: CString,
        flags: OFlags,
        mode: u32,
    ) -> Result<Done, Stop> {
        self.open_from(caller, Arc::new(folder), name, flags, mode)
    }

    fn open_from(
        &mut self,
        caller: &Caller<'_>,
        mut anchor: Arc<OwnedFd>,
        mut path: CString,
        flags: OFlags,
        mode: u32,
    ) -> Result<Done, Stop> {
        let makes = flags.intersects(OFlags::CREATE | OFlags::TMPFILE);
        let umask = if makes { self.umask(caller)? } else { Mode::empty() };
        caller.is_there()?;
        let asked = Asked { flags, mode: Mode::from_raw_mode(mode & 0o7777), umask };
        if flags.contains(OFlags::TMPFILE) {
            return self.open_unnamed(&anchor, &path, asked);
        }
        if flags.contains(OFlags::CREATE | OFlags::DIRECTORY) {
            return Err(Errno::INVAL.into());
        }
        for _ in 0..LINKS {
            let place = Place::of(self.own.as_fd(), &anchor, &path)?;
            if place.is_proc {
                return self.open_in_proc(caller, &place, asked);
            }
            if place.name.is_empty() || (place.slash && asked.makes()) {
                return Err(Errno::ISDIR.into());
            }
            // Most files that are to be made are not there.
            let mut checked = false;
            if asked.makes() && self.check(&place, Deed::Write).is_ok() {
                match self.make_checked(&place, asked) {
                    Err(Stop::Error(Errno::EXIST)) if asked.only_makes() => {
                        return Err(Errno::EXIST.into());
                    }
                    Err(Stop::Error(Errno::EXIST | Errno::LOOP)) => checked = true,
                    made => return made,
                }
            }
            let found = match statat(&place.parent, &place.name, AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) if asked.makes() => match self.make(&place, asked) {
                    // Someone else was faster.
                    Err(Stop::Error(Errno::EXIST)) if !asked.only_makes() => continue,
                    made => return made,
                },
                found => found?,
            };
            let kind = FileType::from_raw_mode(found.st_mode);
            if asked.only_makes() {
                return Err(Errno::EXIST.into());
            }
            match kind {
                FileType::Symlink if flags.contains(OFlags::NOFOLLOW) => {
                    return Err(Errno::LOOP.into());
                }
                FileType::Symlink => {
                    let next = readlinkat(&place.parent, &place.name, Vec::new())?;
                    let mut next = next.into_bytes();
                    if place.slash {
                        next.push(b'/');
                    }
                    path = CString::new(next).map_err(|_| Errno::INVAL)?;
                    if path.as_bytes().is_empty() {
                        return Err(Errno::NOENT.into());
                    }
                    anchor = Arc::new(place.parent);
                    continue;
                }
                FileType::Directory => return Err(Errno::ISDIR.into()),
                _ if place.slash => return Err(Errno::NOTDIR.into()),
                _ => {}
            }
            if asked.changes() && !checked {
                self.check(&place, Deed::Write)?;
            }
            if asked.changes() && self.is_linked(&found) {
                return Err(Stop::Refused(path_buf(&place.full()), LINKED.to_owned()));
            }
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            if kind != FileType::RegularFile {
                let file = openat(&place.parent, &place.name, flags, Mode::empty())?;
                return self.open_again(caller, file, asked);
            }
            let file = match openat2(
                &place.parent,
                &place.name,
                asked.existing(),
                Mode::empty(),
                ResolveFlags::NO_SYMLINKS,
            ) {
                // It has become a link, or has gone, since.
                Err(Errno::LOOP | Errno::NOENT) if asked.makes() => continue,
                file => file?,
            };
            if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::RegularFile {
                continue;
            }
            return asked.done(file);
        }
        Err(Errno::LOOP.into())
    }

    /// Makes a file that is not there.
    fn make(&mut self, place: &Place, asked: Asked) -> Result<Done, Stop> {
        self.check(place, Deed::Write)?;
        self.make_checked(place, asked)
    }

    /// Makes a file that may be made.
    fn make_checked(&mut self, place: &Place, asked: Asked) -> Result<Done, Stop> {
        if place.name.as_bytes().eq_ignore_ascii_case(b"commondir") {
            let path = place.full();
            let part = git::part(self.names.counted(&path).parts()).0;
            if part == Part::Worktree && !self.names.is_free(&path) {
                return Self::make_common(place, asked);
            }
        }
        // A new file never makes anybody wait.
        let flags = asked.existing() - (OFlags::NONBLOCK - asked.flags);
        let flags = flags | OFlags::CREATE | OFlags::EXCL;
        let _ = rustix::process::umask(asked.umask);
        let no_links = ResolveFlags::NO_SYMLINKS;
        let file = openat2(&place.parent, &place.name, flags, asked.mode, no_links)?;
        if place.name.as_bytes() == b".git" {
            self.remember_repository(place, Born::of(&file, c"")?.0);
        }
        Ok(Done::File(file, asked.flags.contains(OFlags::CLOEXEC)))
    }

    /// Makes the file by which a worktree finds its repository. What git writes there is known, and nothing else may
    /// ever be in it: the caller gets a file that keeps nothing.
    fn make_common(place: &Place, asked: Asked) -> Result<Done, Stop> {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let nothing = openat(rustix::fs::CWD, c"/dev/null", flags, Mode::empty())?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let _ = rustix::process::umask(asked.umask);
        let no_links = ResolveFlags::NO_SYMLINKS;
        let file = openat2(&place.parent, &place.name, flags, asked.mode, no_links)?;
        if std::fs::File::from(file).write_all(git::COMMON).is_err() {
            unlinkat(&place.parent, &place.name, AtFlags::empty())?;
            return Err(Errno::IO.into());
        }
        Ok(Done::File(nothing, asked.flags.contains(OFlags::CLOEXEC)))
    }

    /// A file without a name; it may get one by a call that is looked at.
    fn open_unnamed(&self, anchor: &OwnedFd, path: &CString, asked: Asked) -> Result<Done, Stop> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = openat2(anchor, path, flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS)?;
        let _ = rustix::process::umask(asked.umask);
        let file = openat(&folder, c".", asked.flags | OFlags::CLOEXEC, asked.mode)?;
        Ok(Done::File(file, asked.flags.contains(OFlags::CLOEXEC)))
    }

    /// In `/proc` only the caller's own descriptors can be opened so: `/dev/stdout` leads there.
    fn open_in_proc(
        &mut self,
        caller: &Caller<'_>,
        place: &Place,
        asked: Asked,
    ) -> Result<Done, Stop> {
        let file = self.own_descriptor(caller, place)?;
        if asked.only_makes() {
            return Err(Errno::EXIST.into());
        }
        self.open_again(caller, file, asked)
    }

    /// What `/proc/self/fd/N` of a caller is.
    pub(super) fn own_descriptor(
        &self,
        caller: &Caller<'_>,
        place: &Place,
    ) -> Result<OwnedFd, Stop> {
        let group = caller.status()?.group;
        caller.is_there()?;
        let text = String::from_utf8_lossy(&place.path);
        let parts: Vec<&str> = text.split('/').skip(2).collect();
        // `self` and `thread-self` were ours while the path was followed.
        let own = std::process::id().to_string();
        let (caller_group, caller_thread) = (group.to_string(), caller.call.pid.to_string());
        let is_callers = match parts.as_slice() {
            [process, "fd"] => {
                [&own, &caller_group, &caller_thread].iter().any(|one| one == process)
            }
            [process, "task", _, "fd"] => [&own, &caller_group].iter().any(|one| one == process),
            _ => false,
        };
        let number: u32 = match place.name.to_str().map(str::parse) {
            Ok(Ok(number)) if is_callers && !place.slash => number,
            _ => return Err(Errno::ACCESS.into()),
        };
        let path = format!("{}/fd/{number}", caller.call.pid);
        let file = openat(&*self.proc, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        caller.is_there()?;
        if is_proc(&file)? {
            return Err(Errno::ACCESS.into());
        }
        Ok(file)
    }

    /// Opens what a descriptor names, with what was asked for.
    fn open_again(
        &mut self,
        caller: &Caller<'_>,
        file: OwnedFd,
        asked: Asked,
    ) -> Result<Done, Stop> {
        let found = fstat(&file)?;
        let kind = FileType::from_raw_mode(found.st_mode);
        match kind {
            FileType::Directory => return Err(Errno::ISDIR.into()),
            FileType::Symlink => return Err(Errno::LOOP.into()),
            FileType::RegularFile if asked.changes() && found.st_nlink > 0 => {
                let place = Place::of_file(self.own.as_fd(), &file)?;
                if self.is_linked(&found) {
                    return Err(Stop::Refused(path_buf(&place.full()), LINKED.to_owned()));
                }
                self.check(&place, Deed::Write)?;
            }
            FileType::CharacterDevice => {
                let device = (rustix::fs::major(found.st_rdev), rustix::fs::minor(found.st_rdev));
                if device == OWN_TERMINAL {
                    return open_terminal(caller, asked);
                }
            }
            _ => {}
        }
        match openat(&self.own, file.as_raw_fd().to_string(), asked.existing(), Mode::empty()) {
            Err(Errno::NXIO)
                if kind == FileType::Fifo && !asked.flags.contains(OFlags::NONBLOCK) =>
            {
                // Nobody reads from the pipe yet: the caller waits, and nobody else.
                Ok(Done::Later(Waiting {
                    id: caller.call.id,
                    pipe: file,
                    flags: asked.existing(),
                    close_on_exec: asked.flags.contains(OFlags::CLOEXEC),
                }))
            }
            file => asked.done(file?),
        }
    }
}

/// The caller's own terminal, which is not ours.
fn open_terminal(caller: &Caller<'_>, asked: Asked) -> Result<Done, Stop> {
    let packed = caller.terminal()?;
    caller.is_there()?;
    let (major, minor) = (packed >> 8 & 0xFFF, packed & 0xFF | packed >> 12 & 0xFFF00);
    // Only those of `/dev/pts`.
    let number = match major {
        136..=143 => minor + (major - 136) * 256,
        _ => return Err(Errno::NXIO.into()),
    };
    let path = format!("/dev/pts/{number}");
    let flags = asked.existing() | OFlags::NOFOLLOW;
    asked.done(openat(rustix::fs::CWD, path, flags, Mode::empty())?)
}
