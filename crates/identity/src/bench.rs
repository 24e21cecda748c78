//! Where files are made before they get their name: a folder in the workspace's own file system into
//! which the agent cannot reach. A file is made there, exchanged with what stands in its place, and
//! what comes out lies here to be judged. So nothing is ever written, owned or removed in a folder
//! that the agent can change at the same time.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{
    AtFlags, Dir, Gid, Mode, OFlags, RenameFlags, Uid, fchmod, fchown, fstat, fsync, mkdirat,
    openat, renameat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::config::OWN_FOLDER;
use crate::error::{IdentityError, Result};
use crate::level::{Holder, Level};
use crate::lock::{self, Hold, Place};
use crate::steps::Steps;
use crate::store::unguessable;
use crate::tree::{Kind, Look};
use crate::workspace::Workspace;

pub(crate) const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC);
const NEW: OFlags = OFlags::RDWR
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
/// What was replaced and cannot be copied away.
pub(crate) const REPLACED: &str = "replaced";
pub(crate) const WORK: &str = "work";
/// A file whose bytes are not all written yet; nothing of the workspace has such a name here.
const UNFINISHED: &str = "new.";

/// The folder, and the one around it.
#[derive(Debug)]
pub(crate) struct Bench {
    own: OwnedFd,
    folder: OwnedFd,
}

/// A file that was made and has no name in the workspace yet.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) leaf: String,
    pub(crate) file: File,
    pub(crate) id: (u64, u64),
}

impl Workspace<'_> {
    /// The folder to work in, made where it is missing; one that the agent made is moved aside.
    pub(crate) fn bench(&self) -> Result<Bench> {
        let failed = |error: io::Error| IdentityError::io("prepare", OWN_FOLDER, error);
        let own = self.own_folder().map_err(failed)?;
        let folder = self.inner_folder(own.as_fd(), WORK).map_err(failed)?;
        Ok(Bench { own, folder })
    }

    fn own_folder(&self) -> io::Result<OwnedFd> {
        let root = self.root.handle();
        for _ in 0..8 {
            match openat(root, OWN_FOLDER, FOLDER, Mode::empty()) {
                Ok(own) if self.is_ours(&own, 0o022)? => {
                    self.hold_own(own.as_fd())?;
                    return Ok(own);
                }
                Err(Errno::NOENT) => {
                    // Empty, so nothing is lost if it is another one by then.
                    match mkdirat(root, OWN_FOLDER, Mode::from_raw_mode(0o755)) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(errno) => return Err(errno.into()),
                    }
                    let own = openat(root, OWN_FOLDER, FOLDER, Mode::empty())?;
                    let look = Look::of(&fstat(&own)?);
                    if look.uid == geteuid().as_raw() && look.mode & 0o022 == 0 {
                        if let Some((uid, gid)) = self.level.owner(Holder::Protect) {
                            fchown(&own, Some(uid), Some(gid))?;
                        }
                        fchmod(&own, Mode::from_raw_mode(0o755))?;
                        fsync(root)?;
                    }
                }
                Ok(_) | Err(Errno::LOOP | Errno::NOTDIR) => {
                    let aside = format!("{OWN_FOLDER}-{REPLACED}-{}", unguessable()?);
                    renameat_with(root, OWN_FOLDER, root, &aside, RenameFlags::NOREPLACE)?;
                }
                Err(errno) => return Err(errno.into()),
            }
        }
        Err(io::Error::other("another process changes it all the time"))
    }

    /// Puts the lock on our own folder that the level asks for.
    fn hold_own(&self, own: BorrowedFd<'_>) -> io::Result<()> {
        if self.level.is_owned() && self.level.lock().hold(Place::Own) == Hold::Immutable {
            lock::lock(own)?;
        }
        Ok(())
    }

    /// Whether a folder is one that the agent could not have made or written to.
    fn is_ours(&self, folder: &OwnedFd, writable: u32) -> io::Result<bool> {
        let look = Look::of(&fstat(folder)?);
        let owner = match self.level {
            Level::User => look.uid == geteuid().as_raw(),
            Level::Owned { guardian, .. } => look.uid == guardian.as_raw() || look.uid == 0,
        };
        Ok(owner && (!self.level.is_owned() || look.mode & writable == 0))
    }

    /// A folder in our own one that nobody else can look into.
    pub(crate) fn inner_folder(&self, own: BorrowedFd<'_>, name: &str) -> io::Result<OwnedFd> {
        match openat(own, name, FOLDER, Mode::empty()) {
            Ok(folder) if self.is_ours(&folder, 0o077)? => return Ok(folder),
            Ok(_) | Err(Errno::LOOP | Errno::NOTDIR) => {
                let open = self.unlocked(own)?;
                let aside = format!("{name}-{REPLACED}-{}", unguessable()?);
                renameat_with(own, name, own, &aside, RenameFlags::NOREPLACE)?;
                open.relock()?;
            }
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno.into()),
        }
        let open = self.unlocked(own)?;
        mkdirat(own, name, Mode::from_raw_mode(0o700))?;
        fsync(own)?;
        open.relock()?;
        Ok(openat(own, name, FOLDER, Mode::empty())?)
    }

    /// Takes a lock off for a while; at user level there are none.
    pub(crate) fn unlocked(&self, file: BorrowedFd<'_>) -> io::Result<Open> {
        Ok(Open(if self.level.is_owned() { Some(lock::unlock(file)?) } else { None }))
    }
}

/// A lock that is off for a while, if there was one.
#[derive(Debug)]
pub(crate) struct Open(Option<lock::Unlocked>);

impl Open {
    pub(crate) fn nothing() -> Self {
        Self(None)
    }

    pub(crate) fn relock(self) -> io::Result<()> {
        self.0.map_or(Ok(()), lock::Unlocked::relock)
    }

    pub(crate) fn leave_open(self) {
        if let Some(open) = self.0 {
            open.leave_open();
        }
    }
}

impl Bench {
    pub(crate) fn own(&self) -> BorrowedFd<'_> {
        self.own.as_fd()
    }

    pub(crate) fn handle(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }

    /// Makes a file. It is not flushed yet.
    pub(crate) fn make(
        &self,
        bytes: &[u8],
        owner: Option<(Uid, Gid)>,
        mode: u32,
        steps: &dyn Steps,
    ) -> io::Result<Made> {
        steps.step("make a file");
        let random = unguessable()?;
        let (new, leaf) = (format!("{UNFINISHED}{random}"), format!("put.{random}"));
        let mut file = File::from(openat(&self.folder, &new, NEW, Mode::from_raw_mode(0o600))?);
        let filled = (|| {
            // Two writes, so that a process can end between them.
            let (first, rest) = bytes.split_at(bytes.len() / 2);
            file.write_all(first)?;
            steps.step("write the rest of the file");
            file.write_all(rest)?;
            if let Some((uid, gid)) = owner {
                fchown(&file, Some(uid), Some(gid))?;
            }
            fchmod(&file, Mode::from_raw_mode(mode))?;
            renameat(&self.folder, &new, &self.folder, &leaf)?;
            Ok(Look::of(&fstat(&file)?).id)
        })();
        match filled {
            Ok(id) => Ok(Made { leaf, file, id }),
            Err(error) => {
                self.drop_leaf(&new);
                Err(error)
            }
        }
    }

    /// Makes a folder, empty.
    pub(crate) fn make_folder(
        &self,
        owner: Option<(Uid, Gid)>,
        mode: u32,
    ) -> io::Result<(String, OwnedFd)> {
        let leaf = unguessable()?;
        mkdirat(&self.folder, &leaf, Mode::from_raw_mode(0o700))?;
        let folder = openat(&self.folder, &leaf, FOLDER, Mode::empty())?;
        if let Some((uid, gid)) = owner {
            fchown(&folder, Some(uid), Some(gid))?;
        }
        fchmod(&folder, Mode::from_raw_mode(mode))?;
        Ok((leaf, folder))
    }

    /// More files than these are flushed with all of their file system, which is faster.
    pub(crate) const MANY: usize = 16;

    /// Makes what was made durable; more than [`Self::MANY`] stand for all that there are.
    pub(crate) fn flush(&self, made: &[Made], steps: &dyn Steps) -> io::Result<()> {
        steps.step("flush the files");
        if made.len() > Self::MANY {
            return Ok(rustix::fs::syncfs(&self.folder)?);
        }
        made.iter().try_for_each(|made| made.file.sync_all())
    }

    /// Opens again what was made.
    pub(crate) fn reopen(&self, leaf: String, id: (u64, u64)) -> io::Result<Made> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(openat(&self.folder, &leaf, flags, Mode::empty())?);
        if Look::of(&fstat(&file)?).id != id {
            return Err(io::Error::other("another file lies in its place"));
        }
        Ok(Made { leaf, file, id })
    }

    /// What lies here under a name.
    pub(crate) fn look(&self, leaf: &str) -> io::Result<Option<Look>> {
        match statat(&self.folder, leaf, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(Look::of(&stat))),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// The names of what lies here.
    pub(crate) fn leaves(&self) -> Result<Vec<String>> {
        let failed = |errno: Errno| IdentityError::io("read", "the work folder", errno);
        let mut leaves = Vec::new();
        for entry in Dir::read_from(&self.folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            match entry.file_name().to_str() {
                Ok("." | "..") => {}
                Ok(leaf) => leaves.push(leaf.to_owned()),
                // All names here are our own.
                Err(_) => {}
            }
        }
        Ok(leaves)
    }

    /// Whether a file was being made when its maker ended.
    pub(crate) fn is_unfinished(leaf: &str) -> bool {
        leaf.starts_with(UNFINISHED)
    }

    /// Removes a file or an empty folder; anything else stays.
    pub(crate) fn drop_leaf(&self, leaf: &str) {
        let is_folder = matches!(self.look(leaf), Ok(Some(Look { kind: Kind::Folder, .. })));
        let flags = if is_folder { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        let _ = unlinkat(&self.folder, leaf, flags);
    }
}
