//! Files that are not shown, in a run that asks. Whether there is one, and whether it may be read, is said outside: this
//! side only finds out that nothing is there inside, tells the path, and passes on the descriptor that comes back.
//!
//! Every open for reading is told in such a run, and nearly all go on by the kernel (`Continue`), which reads the path from the
//! caller's memory once more. By then it may be another. That grants nothing: the flags lie in registers, so that it is
//! an open for reading still, and in a run that does not ask such opens are not even told: mounts and Landlock hold
//! them. What was read from memory decides only whether somebody outside is asked, and what they are asked about;
//! the caller then gets what they have opened, and never what its memory says by then.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::{Mode, OFlags, ResolveFlags, fcntl_getfl, fcntl_setfl, openat2, readlinkat};
use rustix::io::Errno;

use super::abi::{self, Call};
use super::caller::Caller;
use super::place::{is_proc, path_buf, real_path};
use super::supervisor::{Done, MOST_ASKING, Stop, Supervisor};
use crate::view::Shows;

/// Numbers of files that are asked for have this bit, those of other questions have not.
pub(crate) const OF_READS: u32 = 1 << 31;
/// Links on the way, and parts of a path with all of theirs.
const LINKS: usize = 40;
/// Paths that are remembered.
const MOST_KNOWN: usize = 1 << 16;
const PARTS: usize = 4096;

/// A file that a caller wants to read and that is not there inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// By which it is answered.
    pub(crate) number: u32,
    /// Where it would be; links inside are followed as far as they go.
    pub(crate) path: PathBuf,
    /// Whether a link as its last part is not followed.
    pub(crate) no_follow: bool,
    /// What the thread calls itself.
    pub(crate) program: String,
}

impl Wanted {
    /// A message for the other side: what is of unknown length comes last.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        use std::os::unix::ffi::OsStrExt as _;
        let mut bytes = self.number.to_ne_bytes().to_vec();
        bytes.push(self.no_follow.into());
        bytes.extend(self.program.bytes().filter(|byte| *byte != 0));
        bytes.push(0);
        bytes.extend(self.path.as_os_str().as_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (number, rest) = bytes.split_first_chunk()?;
        let (no_follow, rest) = rest.split_first()?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        Some(Self {
            number: u32::from_ne_bytes(*number),
            path: path_buf(&rest[end + 1..]),
            no_follow: *no_follow != 0,
            program: String::from_utf8_lossy(&rest[..end]).into_owned(),
        })
    }
}

/// Puts what is wanted; `false` where it cannot be put. A number alone: nobody waits for it any more.
type Put = Box<dyn FnMut(u32, Option<&Wanted>) -> bool + Send>;

/// Callers that wait for a file.
pub(super) struct Reads {
    shows: Arc<Shows>,
    put: Put,
    waiting: Vec<Waiting>,
    /// Paths by which files can be read until the run ends: these may also be looked at.
    session: BTreeSet<PathBuf>,
    /// Numbers that were given.
    given: u32,
}

struct Waiting {
    number: u32,
    call: Call,
    path: PathBuf,
    want: Want,
}

/// What is done with a file from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Want {
    /// It is opened, with these flags.
    Open(OFlags),
    /// It is looked at: where that is written to, for `statx` also what is wanted, and whether a link is followed.
    Stat(u64, Option<u32>, OFlags),
    /// It is asked whether it can be used so.
    Access(u32, OFlags),
}

impl Want {
    /// Flags of an open that follows links in the same way.
    fn flags(self) -> OFlags {
        match self {
            Self::Open(flags) | Self::Stat(_, _, flags) | Self::Access(_, flags) => flags,
        }
    }
}

impl Reads {
    /// Whether somebody waits.
    pub(super) fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Forgets callers that have gone.
    pub(super) fn forget(&mut self, is_there: impl Fn(u64) -> bool) {
        let all = std::mem::take(&mut self.waiting);
        for one in all {
            if is_there(one.call.id) {
                self.waiting.push(one);
            } else {
                (self.put)(one.number, None);
            }
        }
    }
}

impl Supervisor {
    /// Asks by `put` for files that are to be read and are neither there nor below something that is shown; the
    /// caller waits for [`Self::fetched`], and nobody else does.
    #[must_use]
    pub(crate) fn that_reads(
        mut self,
        shows: Arc<Shows>,
        put: impl FnMut(u32, Option<&Wanted>) -> bool + Send + 'static,
    ) -> Self {
        let put = Box::new(put);
        let (waiting, session) = (Vec::new(), BTreeSet::new());
        self.reads = Some(Reads { shows, put, waiting, session, given: 0 });
        self
    }

    /// A file that was asked for, or none; and whether it can be had again until the run ends.
    pub(crate) fn fetched(&mut self, number: u32, file: Option<OwnedFd>, session: bool) {
        let Some(reads) = &mut self.reads else { return };
        let Some(at) = reads.waiting.iter().position(|one| one.number == number) else { return };
        let Waiting { call, path, want, .. } = reads.waiting.swap_remove(at);
        if session && file.is_some() && reads.session.len() < MOST_KNOWN {
            reads.session.insert(path);
        }
        // What is written to memory is written to this caller's.
        if abi::is_valid(self.listener.as_fd(), call.id) {
            let done = match (file, want) {
                (None, _) => Err(Errno::NOENT.into()),
                (Some(file), Want::Open(flags)) => opened(file, flags),
                (Some(file), Want::Stat(to, mask, _)) => looked_at(&call, &file, to, mask),
                (Some(_), Want::Access(mode, _)) => can_be_used(mode),
            };
            self.conclude(&call, done);
        }
    }

    /// An open that neither makes nor changes anything.
    pub(super) fn read(
        &mut self,
        caller: &Caller<'_>,
        directory: u32,
        path: usize,
        flags: OFlags,
    ) -> Result<Done, Stop> {
        if self.learns {
            self.look_at(caller, directory, path, "open")?;
        }
        let wanted = || {
            let (anchor, path) = caller.start(directory, caller.text(path)?)?;
            caller.is_there()?;
            Ok::<_, Stop>(self.not_shown(&anchor, &path, flags))
        };
        // Whatever is wrong with it, the kernel says so.
        Ok(match wanted() {
            Ok(Some(path)) => Done::Outside(path, Want::Open(flags)),
            _ => Done::Continue,
        })
    }

    /// A look at a file: at one that the owner lets be read until the run ends, as if it were there. Everything else is
    /// for the kernel to say.
    pub(super) fn stat(
        &self,
        caller: &Caller<'_>,
        number: libc::c_long,
        directory: u32,
        path: usize,
    ) -> Result<Done, Stop> {
        let Some(reads) = self.reads.as_ref().filter(|reads| !reads.session.is_empty()) else {
            return Ok(Done::Continue);
        };
        let follow = |at: usize| match caller.number(at) & libc::AT_SYMLINK_NOFOLLOW as u32 {
            0 => OFlags::empty(),
            _ => OFlags::NOFOLLOW,
        };
        let want = match number {
            libc::SYS_newfstatat => Want::Stat(caller.argument(2), None, follow(3)),
            libc::SYS_statx => Want::Stat(caller.argument(4), Some(caller.number(3)), follow(2)),
            libc::SYS_faccessat => Want::Access(caller.number(2), OFlags::empty()),
            libc::SYS_faccessat2 => Want::Access(caller.number(2), follow(3)),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_stat => Want::Stat(caller.argument(1), None, OFlags::empty()),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_lstat => Want::Stat(caller.argument(1), None, OFlags::NOFOLLOW),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_access => Want::Access(caller.number(1), OFlags::empty()),
            _ => return Ok(Done::Continue),
        };
        let wanted = || {
            let (anchor, path) = caller.start(directory, caller.text(path)?)?;
            caller.is_there()?;
            Ok::<_, Stop>(self.not_shown(&anchor, &path, want.flags()))
        };
        Ok(match wanted() {
            Ok(Some(path)) if reads.session.contains(&path) => Done::Outside(path, want),
            _ => Done::Continue,
        })
    }

    /// Where a file would be that is not there inside and may be there outside.
    pub(super) fn not_shown(
        &self,
        anchor: &OwnedFd,
        path: &CString,
        flags: OFlags,
    ) -> Option<PathBuf> {
        let reads = self.reads.as_ref()?;
        if flags.intersects(OFlags::PATH | OFlags::DIRECTORY) || path.as_bytes().ends_with(b"/") {
            return None;
        }
        let names = OFlags::PATH | OFlags::CLOEXEC | (flags & OFlags::NOFOLLOW);
        match openat2(anchor, path, names, Mode::empty(), ResolveFlags::NO_MAGICLINKS) {
            Err(Errno::NOENT) => {}
            _ => return None,
        }
        self.missing_from(anchor, path).filter(|path| !reads.shows.covers(path))
    }

    /// Follows a path to the first part that is not there; that, and what comes behind it, is put behind the real path of
    /// the folder.
    fn missing_from(&self, anchor: &OwnedFd, path: &CString) -> Option<PathBuf> {
        let names = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let enter = |folder: &OwnedFd, name: &[u8]| {
            openat2(folder, name, names, Mode::empty(), ResolveFlags::NO_MAGICLINKS).ok()
        };
        let start = |text: &[u8]| match text.first() {
            Some(b'/') => enter(&self.home, b".").map(Some),
            Some(_) => Some(None),
            None => None,
        };
        let mut folder = match start(path.as_bytes())? {
            Some(root) => root,
            None => enter(anchor, b".")?,
        };
        let mut left: Vec<Vec<u8>> = parts(path.as_bytes());
        let (mut links, mut steps) = (0, 0);
        while let Some(part) = left.pop() {
            steps += 1;
            if steps > PARTS || is_proc(&folder).ok()? {
                return None;
            }
            if part == b".." {
                folder = enter(&folder, b"..")?;
                continue;
            }
            match readlinkat(&folder, part.as_slice(), Vec::new()) {
                Ok(target) => {
                    links += 1;
                    if links > LINKS || left.len() > PARTS {
                        return None;
                    }
                    if let Some(root) = start(target.as_bytes())? {
                        folder = root;
                    }
                    left.extend(parts(target.as_bytes()));
                }
                Err(Errno::INVAL) if !left.is_empty() => folder = enter(&folder, &part)?,
                Err(Errno::NOENT) => {
                    let mut whole = real_path(self.own.as_fd(), &folder).ok()?;
                    for part in std::iter::once(&part).chain(left.iter().rev()) {
                        if whole.last() != Some(&b'/') {
                            whole.push(b'/');
                        }
                        whole.extend_from_slice(part);
                    }
                    return Some(path_buf(&whole));
                }
                // It is there by now, or cannot be reached.
                Err(_) => return None,
            }
        }
        None
    }

    /// Has a caller wait for a file from outside; an error where nobody can be asked.
    pub(super) fn ask_outside(
        &mut self,
        call: &Call,
        path: PathBuf,
        want: Want,
    ) -> Result<(), Stop> {
        let program = self.caller(call).comm();
        let reads = self.reads.as_mut().filter(|reads| reads.waiting.len() < MOST_ASKING);
        let reads = reads.ok_or(Errno::NOENT)?;
        reads.given = reads.given.wrapping_add(1);
        let number = reads.given | OF_READS;
        let no_follow = want.flags().contains(OFlags::NOFOLLOW);
        let wanted = Wanted { number, path, no_follow, program };
        if !(reads.put)(number, Some(&wanted)) {
            return Err(Errno::NOENT.into());
        }
        reads.waiting.push(Waiting { number, call: *call, path: wanted.path, want });
        Ok(())
    }
}

/// A descriptor from outside as the caller wants it.
fn opened(file: OwnedFd, flags: OFlags) -> Result<Done, Stop> {
    if !flags.contains(OFlags::NONBLOCK) {
        fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    }
    Ok(Done::File(file, flags.contains(OFlags::CLOEXEC)))
}

/// Tells a caller what a file is like.
fn looked_at(call: &Call, file: &OwnedFd, to: u64, mask: Option<u32>) -> Result<Done, Stop> {
    let failed = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    let bytes = abi::stat_bytes(file.as_fd(), mask).map_err(failed)?;
    abi::write_memory(call.pid, to, &bytes).map_err(|_| Errno::FAULT)?;
    Ok(Done::Value(0))
}

/// It is there and can be read, and nothing else.
fn can_be_used(mode: u32) -> Result<Done, Stop> {
    let known = (libc::R_OK | libc::W_OK | libc::X_OK).cast_unsigned();
    match mode {
        _ if mode & !known != 0 => Err(Errno::INVAL.into()),
        _ if mode & libc::W_OK.cast_unsigned() != 0 => Err(Errno::ROFS.into()),
        _ if mode & libc::X_OK.cast_unsigned() != 0 => Err(Errno::ACCESS.into()),
        _ => Ok(Done::Value(0)),
    }
}

/// The parts of a path, the last one first; those that say nothing are left out.
fn parts(path: &[u8]) -> Vec<Vec<u8>> {
    let parts = path.split(|byte| *byte == b'/').rev();
    parts.filter(|part| !matches!(*part, b"" | b".")).map(<[u8]>::to_vec).collect()
}
