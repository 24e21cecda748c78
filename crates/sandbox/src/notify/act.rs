//! The calls that make names, other than opening.

use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RenameFlags, ResolveFlags, fstat, linkat, mkdirat, mknodat,
    openat2, readlinkat, renameat_with, statat, symlinkat,
};
use rustix::io::Errno;
use rustix::process::{PidfdGetfdFlags, fchdir, pidfd_getfd, umask};

use super::abi;
use super::bare;
use super::born::Born;
use super::caller::Caller;
use super::check::Deed;
use super::git::{self, Part};
use super::place::{Place, path_buf};
use super::supervisor::{Done, Stop, Supervisor};
use crate::denial::DenialKind;

/// `AF_UNIX`
const UNIX: u16 = 1;
/// Longest address of a socket.
const ADDRESS: usize = 128;

/// Whether there is something at a path; where that cannot be told, there is not.
fn is_anything(anchor: &OwnedFd, path: &CString) -> bool {
    let bytes = path.as_bytes();
    let end = bytes.iter().rposition(|byte| *byte != b'/').map_or(bytes.len(), |last| last + 1);
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat2(anchor, &bytes[..end], flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS).is_ok()
}

impl Supervisor {
    pub(super) fn place(
        &self,
        caller: &Caller<'_>,
        descriptor: u32,
        path: usize,
    ) -> Result<Place, Stop> {
        let (anchor, path) = caller.start(descriptor, caller.text(path)?)?;
        caller.is_there()?;
        Place::of(self.own.as_fd(), &anchor, &path)
    }

    /// Whether a name is taken; then nothing is made, whatever it is called.
    fn is_taken(place: &Place) -> Result<(), Stop> {
        match statat(&place.parent, &place.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Err(Errno::EXIST.into()),
            Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn make_directory(
        &mut self,
        caller: &Caller<'_>,
        descriptor: u32,
        path: usize,
        mode: u32,
    ) -> Result<Done, Stop> {
        let (anchor, path) = caller.start(descriptor, caller.text(path)?)?;
        // Programs that make all of a path ask for what is there again and again. Nothing is done then, so
        // that it does not matter whether somebody else has the caller's number by now.
        if is_anything(&anchor, &path) {
            return Err(Errno::EXIST.into());
        }
        caller.is_there()?;
        let place = Place::of(self.own.as_fd(), &anchor, &path)?.named(Errno::EXIST)?;
        Self::is_taken(&place)?;
        self.check(&place, Deed::Directory)?;
        let mask = self.umask(caller)?;
        caller.is_there()?;
        let _ = umask(mask);
        mkdirat(&place.parent, &place.name, Mode::from_raw_mode(mode & 0o7777))?;
        let (made, kind) = Born::of(&place.parent, place.name.as_c_str())?;
        if kind == FileType::Directory {
            self.remember(made);
            if place.name.as_bytes() == b".git" {
                self.remember_repository(&place, made);
            }
        }
        Ok(Done::Value(0))
    }

    pub(super) fn make_node(
        &mut self,
        caller: &Caller<'_>,
        descriptor: u32,
        path: usize,
        mode: u32,
        device: u64,
    ) -> Result<Done, Stop> {
        let place = self.place(caller, descriptor, path)?;
        let mask = self.umask(caller)?;
        caller.is_there()?;
        let place = place.named(Errno::EXIST)?;
        Self::is_taken(&place)?;
        if place.slash {
            return Err(Errno::NOENT.into());
        }
        self.check(&place, Deed::Other)?;
        // No type at all is a plain file.
        let kind = match mode & libc::S_IFMT {
            0 => FileType::RegularFile,
            _ => FileType::from_raw_mode(mode),
        };
        match kind {
            FileType::Directory => return Err(Errno::PERM.into()),
            FileType::Unknown | FileType::Symlink => return Err(Errno::INVAL.into()),
            _ => {}
        }
        let _ = umask(mask);
        mknodat(&place.parent, &place.name, kind, Mode::from_raw_mode(mode & 0o7777), device)?;
        Ok(Done::Value(0))
    }

    pub(super) fn make_symlink(
        &mut self,
        caller: &Caller<'_>,
        target: usize,
        descriptor: u32,
        path: usize,
    ) -> Result<Done, Stop> {
        let target = caller.text(target)?;
        let place = self.place(caller, descriptor, path)?.named(Errno::EXIST)?;
        Self::is_taken(&place)?;
        if place.slash {
            return Err(Errno::NOENT.into());
        }
        self.check(&place, Deed::Link)?;
        self.check_target(&place.path, place.name.as_bytes(), target.as_bytes())?;
        symlinkat(&target, &place.parent, &place.name)?;
        if self.leads_out(&place.path, target.as_bytes()) {
            let path = path_buf(&[place.path.as_slice(), b"/", place.name.as_bytes()].concat());
            let rule = "a link that leads out".to_owned();
            self.tell(caller.call, DenialKind::Link, "symlink", path, rule);
        }
        Ok(Done::Value(0))
    }

    /// `from` and `to` are each a descriptor and the argument with the path.
    pub(super) fn make_link(
        &mut self,
        caller: &Caller<'_>,
        from: (u32, usize),
        to: (u32, usize),
        flags: u32,
    ) -> Result<Done, Stop> {
        let flags = AtFlags::from_bits_retain(flags);
        if !(flags - (AtFlags::SYMLINK_FOLLOW | AtFlags::EMPTY_PATH)).is_empty() {
            return Err(Errno::INVAL.into());
        }
        let path = caller.text(from.1)?;
        let open = OFlags::PATH | OFlags::CLOEXEC;
        let file = if flags.contains(AtFlags::EMPTY_PATH) && path.as_bytes().is_empty() {
            // The kernel wants a capability or the caller's own descriptor for this.
            return Err(Errno::NOENT.into());
        } else {
            let (anchor, path) = caller.start(from.0, path)?;
            caller.is_there()?;
            let source = Place::of(self.own.as_fd(), &anchor, &path)?;
            if source.is_proc && flags.contains(AtFlags::SYMLINK_FOLLOW) {
                self.own_descriptor(caller, &source)?
            } else if source.is_proc {
                return Err(Errno::XDEV.into());
            } else {
                let source = source.named(Errno::PERM)?;
                let link = if flags.contains(AtFlags::SYMLINK_FOLLOW) {
                    OFlags::empty()
                } else {
                    OFlags::NOFOLLOW
                };
                let no_magic = rustix::fs::ResolveFlags::NO_MAGICLINKS;
                openat2(&source.parent, &source.name, open | link, Mode::empty(), no_magic)?
            }
        };
        let found = fstat(&file)?;
        if super::place::is_proc(&file)? {
            return Err(Errno::ACCESS.into());
        }
        if FileType::from_raw_mode(found.st_mode) == FileType::Directory {
            return Err(Errno::PERM.into());
        }
        if found.st_nlink > 0 {
            // One more name for a protected file would be a way to write to it.
            let source = Place::of_file(self.own.as_fd(), &file)?;
            self.check_source(&source, FileType::from_raw_mode(found.st_mode))?;
            self.check_linked(&source)?;
        }
        let place = self.place(caller, to.0, to.1)?.named(Errno::EXIST)?;
        Self::is_taken(&place)?;
        if place.slash {
            return Err(Errno::NOENT.into());
        }
        let is_link = FileType::from_raw_mode(found.st_mode) == FileType::Symlink;
        self.check(&place, if is_link { Deed::Link } else { Deed::Other })?;
        if is_link {
            let says = readlinkat(&file, c"", Vec::new())?;
            self.check_target(&place.path, place.name.as_bytes(), says.as_bytes())?;
        }
        let name = file.as_raw_fd().to_string();
        linkat(&self.own, name, &place.parent, &place.name, AtFlags::SYMLINK_FOLLOW)?;
        Ok(Done::Value(0))
    }

    pub(super) fn rename(
        &mut self,
        caller: &Caller<'_>,
        from: (u32, usize),
        to: (u32, usize),
        flags: u32,
    ) -> Result<Done, Stop> {
        let flags = RenameFlags::from_bits_retain(flags);
        // One that leaves a device in the place of what was moved is for file systems that lie over others.
        if !(flags - (RenameFlags::NOREPLACE | RenameFlags::EXCHANGE)).is_empty() {
            return Err(Errno::INVAL.into());
        }
        let source = self.place(caller, from.0, from.1)?.named(Errno::BUSY)?;
        let target = self.place(caller, to.0, to.1)?.named(Errno::BUSY)?;
        let kind_of = |place: &Place| {
            statat(&place.parent, &place.name, AtFlags::SYMLINK_NOFOLLOW)
                .map(|found| FileType::from_raw_mode(found.st_mode))
        };
        let kind = kind_of(&source)?;
        self.check_source(&source, kind)?;
        let exchange = flags.contains(RenameFlags::EXCHANGE);
        if exchange {
            let other = kind_of(&target)?;
            self.check_source(&target, other)?;
            self.check_moved(&target, &source, other)?;
        }
        let copied = self.check_moved(&source, &target, kind)?;
        if let Some(text) = copied {
            if !flags.is_empty() {
                return Err(Errno::INVAL.into());
            }
            let (from, to) = (source.name.as_bytes(), target.name.as_bytes());
            self.replace(&source.parent, from, &target.parent, to, &text)?;
            return Ok(Done::Value(0));
        }
        let slashes = |place: &Place| if place.slash { "/" } else { "" };
        if source.slash || target.slash {
            // The kernel wants to see that a directory was meant.
            let named = |place: &Place| [place.name.as_bytes(), slashes(place).as_bytes()].concat();
            renameat_with(&source.parent, named(&source), &target.parent, named(&target), flags)?;
        } else {
            renameat_with(&source.parent, &source.name, &target.parent, &target.name, flags)?;
        }
        self.has_moved(&source.full(), &target.full(), exchange);
        Ok(Done::Value(0))
    }

    /// Whether something may be moved to a place. Where it becomes something that git obeys: what it
    /// says, which was looked at and is to be written anew.
    fn check_moved(
        &mut self,
        source: &Place,
        target: &Place,
        kind: FileType,
    ) -> Result<Option<Vec<u8>>, Stop> {
        let deed = Deed::of_moved(kind);
        self.check(target, deed)?;
        match deed {
            Deed::Moved => {
                self.check_children(source, target)?;
                return Ok(None);
            }
            Deed::Link => {
                let says = readlinkat(&source.parent, &source.name, Vec::new())?;
                self.check_target(&target.path, target.name.as_bytes(), says.as_bytes())?;
                return Ok(None);
            }
            Deed::File => {}
            _ => return Ok(None),
        }
        let path = target.full();
        if self.names.is_free(&path) {
            return Ok(None);
        }
        // By another name it could be written to later.
        let found = statat(&source.parent, &source.name, AtFlags::SYMLINK_NOFOLLOW)?;
        if found.st_nlink > 1 && self.is_granted(&path) {
            let rule = "the name is protected, and the file has another one".to_owned();
            return Err(Stop::Refused(path_buf(&path), rule));
        }
        let name = target.name.as_bytes();
        let is_settings = ["config", "config.worktree"]
            .iter()
            .any(|one| name.eq_ignore_ascii_case(one.as_bytes()));
        let part = git::part(self.names.counted(&path).parts()).0;
        let refuse = |rule: String| Err(Stop::Refused(path_buf(&path), rule));
        match part {
            Part::Todo => {
                let text = bare::read(&source.parent, source.name.as_bytes())?;
                match git::todo_executes(&text) {
                    Ok(false) => Ok(Some(text)),
                    Ok(true) => refuse("the rebase would execute something".into()),
                    Err(why) => refuse(format!("what the rebase does cannot be read: {why}")),
                }
            }
            Part::Config => {
                let text = bare::read(&source.parent, source.name.as_bytes())?;
                bare::executing_rule(&text).map_or(Ok(Some(text)), refuse)
            }
            Part::Outside if is_settings && bare::is_repository(&target.parent) => {
                let text = bare::read(&source.parent, source.name.as_bytes())?;
                bare::executing_rule(&text).map_or(Ok(Some(text)), refuse)
            }
            _ => Ok(None),
        }
    }

    pub(super) fn bind(&mut self, caller: &Caller<'_>) -> Result<Done, Stop> {
        let length = usize::try_from(caller.number(2)).unwrap_or(usize::MAX);
        if !(2..=ADDRESS).contains(&length) {
            return Err(Errno::INVAL.into());
        }
        let mut address = vec![0; length];
        caller.bytes(1, &mut address)?;
        let status = caller.status()?;
        let socket = match abi::open_thread(caller.call.pid) {
            Ok(thread) => {
                pidfd_getfd(&thread, caller.number(0).cast_signed(), PidfdGetfdFlags::empty())?
            }
            // Older kernels know whole processes only, whose descriptors nearly always are the thread's.
            Err(_) if status.group == caller.call.pid => {
                let pid = rustix::process::Pid::from_raw(caller.call.pid.cast_signed())
                    .ok_or(Errno::SRCH)?;
                let process =
                    rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty())?;
                pidfd_getfd(&process, caller.number(0).cast_signed(), PidfdGetfdFlags::empty())?
            }
            Err(_) => return Err(Errno::PERM.into()),
        };
        let family = u16::from_ne_bytes([address[0], address[1]]);
        let is_path = family == UNIX && address.get(2).is_some_and(|first| *first != 0);
        let failed = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
        if !is_path {
            caller.is_there()?;
            abi::bind(socket.as_fd(), &address).map_err(failed)?;
            return Ok(Done::Value(0));
        }
        let path: Vec<u8> = address[2..].iter().copied().take_while(|byte| *byte != 0).collect();
        let path = std::ffi::CString::new(path).map_err(|_| Errno::INVAL)?;
        let (anchor, path) = caller.start(libc::AT_FDCWD.cast_unsigned(), path)?;
        caller.is_there()?;
        let place = Place::of(self.own.as_fd(), &anchor, &path)?.named(Errno::ADDRINUSE)?;
        self.check(&place, Deed::Other)?;
        let mut short = UNIX.to_ne_bytes().to_vec();
        short.extend_from_slice(place.name.as_bytes());
        short.push(0);
        if short.len() > 110 {
            return Err(Errno::NAMETOOLONG.into());
        }
        // The name in its directory: this thread has a directory of its own.
        let _ = umask(status.umask);
        fchdir(&place.parent)?;
        let bound = abi::bind(socket.as_fd(), &short).map_err(failed);
        fchdir(&*self.home)?;
        bound?;
        Ok(Done::Value(0))
    }
}
