//! What keeps the agent's hands off a file beyond its mode: the immutable attribute, or directories
//! that belong to root and let nobody remove what is another's.
//!
//! Everything is done by descriptor, so a name that is swapped changes nothing. The immutable
//! attribute stops renaming, unlinking, linking, truncating and changing modes, for root too; on a
//! directory it stops all of that for its entries and for the directory itself.
//!
//! Neither owner, mode nor lock ends what is open: a file that the agent could write before must be
//! made anew, under its name, and only then be locked.

mod anchors;

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{
    AtFlags, Gid, IFlags, Mode, OFlags, Stat, Uid, fchmod, fchown, fstat, ioctl_getflags,
    ioctl_setflags, openat, statat,
};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

pub use self::anchors::{Agent, Anchor, Why, anchors};

/// The mode of a directory in which everybody of the agent's group makes entries and nobody removes
/// those of another.
pub const STICKY_MODE: u32 = 0o1775;

/// How the protected files of a workspace are held in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lock {
    /// By mode and owner alone: whoever owns the directory can put another file in the place.
    None,
    /// By the immutable attribute; the workspace itself stays the agent's.
    Immutable,
    /// By directories that are root's and sticky, the workspace itself among them.
    Sticky,
}

/// What a directory is to the files that are protected in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The workspace itself.
    Root,
    /// `.soulguard`, whose only entry is the staging folder.
    Own,
    /// Everything in it is protected.
    Whole,
    /// Some of what is in it is protected, now or at a deeper place; the agent works there too.
    Shared,
}

/// What is done to a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Hold {
    /// Nothing: it stays as it is.
    Open,
    /// Root's, with the agent's group, mode 1775.
    Sticky,
    /// The guardian's, not writable for the agent.
    Closed,
    /// [`Hold::Closed`], with the immutable attribute.
    Immutable,
}

impl Lock {
    /// Whether a protected file gets the immutable attribute.
    #[must_use]
    pub fn is_immutable(self) -> bool {
        self == Self::Immutable
    }

    /// How a directory is held.
    ///
    /// A [`Place::Shared`] directory in a workspace that stays the agent's is made sticky, so that
    /// what is protected in it stays; the agent can still rename the directory as a whole, which
    /// [`anchors`] says.
    #[must_use]
    pub fn hold(self, place: Place) -> Hold {
        match (self, place) {
            (Self::None, Place::Root | Place::Shared) | (Self::Immutable, Place::Root) => {
                Hold::Open
            }
            (Self::None | Self::Sticky, Place::Own | Place::Whole) => Hold::Closed,
            (Self::Immutable, Place::Own | Place::Whole) => Hold::Immutable,
            (Self::Immutable | Self::Sticky, Place::Shared) | (Self::Sticky, Place::Root) => {
                Hold::Sticky
            }
        }
    }
}

/// Whether the immutable attribute can be used in a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Support {
    /// It was set and taken away again on a file that has no name.
    Works,
    /// The file system does not keep it.
    FileSystem,
    /// This process may not set it: not root, or a container without the right.
    NotAllowed,
}

/// Tries the immutable attribute out in a directory, on a file without a name.
///
/// # Errors
///
/// The directory cannot be written for another reason.
pub fn supported(directory: BorrowedFd<'_>) -> io::Result<Support> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let probe = match openat(directory, c".", flags, Mode::from_raw_mode(0o600)) {
        Ok(probe) => probe,
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => return Ok(Support::FileSystem),
        Err(Errno::ACCESS | Errno::PERM | Errno::ROFS) => return Ok(Support::NotAllowed),
        Err(errno) => return Err(errno.into()),
    };
    match set(probe.as_fd(), true) {
        Ok(_) => {}
        Err(Errno::NOTTY | Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS) => {
            return Ok(Support::FileSystem);
        }
        Err(Errno::PERM | Errno::ACCESS) => return Ok(Support::NotAllowed),
        Err(errno) => return Err(errno.into()),
    }
    // Some file systems accept the call and keep nothing.
    let kept = ioctl_getflags(&probe)?.contains(IFlags::IMMUTABLE);
    set(probe.as_fd(), false)?;
    Ok(if kept { Support::Works } else { Support::FileSystem })
}

/// Whether an open file or directory is immutable; `false` where its file system knows no such thing.
///
/// # Errors
///
/// The attributes cannot be read.
pub fn is_immutable(file: impl AsFd) -> io::Result<bool> {
    match ioctl_getflags(file) {
        Ok(flags) => Ok(flags.contains(IFlags::IMMUTABLE)),
        Err(Errno::NOTTY | Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// Makes an open file or directory immutable; whether it was not before.
///
/// # Errors
///
/// The file system does not keep the attribute, or this process may not set it.
pub fn lock(file: impl AsFd) -> io::Result<bool> {
    Ok(set(file.as_fd(), true)?)
}

/// Takes the attribute off an open file or directory until the value that is returned is locked
/// again or dropped. What was not immutable stays so.
///
/// # Errors
///
/// This process may not change the attribute.
pub fn unlock(file: impl AsFd) -> io::Result<Unlocked> {
    let file = file.as_fd();
    let was_locked = is_immutable(file)? && set(file, false)?;
    let kept = if was_locked { Some(file.try_clone_to_owned()?) } else { None };
    Ok(Unlocked { file: kept })
}

/// A file or directory whose lock is off for a while.
#[derive(Debug)]
#[must_use = "it is locked again as soon as this is dropped"]
pub struct Unlocked {
    file: Option<OwnedFd>,
}

impl Unlocked {
    /// Whether there was a lock to take off.
    #[must_use]
    pub fn was_locked(&self) -> bool {
        self.file.is_some()
    }

    /// Puts the lock back.
    ///
    /// # Errors
    ///
    /// The attribute cannot be set.
    pub fn relock(mut self) -> io::Result<()> {
        match self.file.take() {
            Some(file) => lock(file).map(|_| ()),
            None => Ok(()),
        }
    }

    /// Leaves the lock off: the file was replaced, or is released.
    pub fn leave_open(mut self) {
        self.file = None;
    }
}

impl Drop for Unlocked {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            // An error has its own report; this is the second line.
            let _ = lock(file);
        }
    }
}

/// Locks a file that was just put under `name` in `directory`, and makes sure that it is still the
/// one under that name. Before the lock the agent may have moved it; after it nobody can.
///
/// # Errors
///
/// [`io::ErrorKind::StaleNetworkFileHandle`] where another file stands there by now, which is to be
/// put right by doing the whole step again; or the attribute cannot be set.
pub fn lock_in_place(directory: BorrowedFd<'_>, name: &OsStr, file: impl AsFd) -> io::Result<()> {
    let newly = lock(file.as_fd())?;
    let own = fstat(file.as_fd())?;
    let there = match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(there) => Some(there),
        Err(Errno::NOENT) => None,
        Err(errno) => return Err(errno.into()),
    };
    if there.is_some_and(|there| is_same(&own, &there)) {
        return Ok(());
    }
    if newly {
        set(file.as_fd(), false)?;
    }
    Err(io::Error::new(
        io::ErrorKind::StaleNetworkFileHandle,
        "another file was put in its place; do it again",
    ))
}

/// Makes an open directory root's and sticky, with the agent's group.
///
/// # Errors
///
/// This process may not.
pub fn make_sticky(directory: impl AsFd, agent_group: Gid) -> io::Result<()> {
    let directory = directory.as_fd();
    fchown(directory, Some(Uid::ROOT), Some(agent_group))?;
    Ok(fchmod(directory, Mode::from_raw_mode(STICKY_MODE))?)
}

/// Whether an open directory is root's and sticky, with the agent's group.
///
/// # Errors
///
/// It cannot be looked at.
pub fn is_sticky(directory: impl AsFd, agent_group: Gid) -> io::Result<bool> {
    let stat = fstat(directory)?;
    Ok(stat.st_uid == 0
        && stat.st_gid == agent_group.as_raw()
        && stat.st_mode & 0o7777 == STICKY_MODE)
}

/// Sets or clears the attribute; whether that changed anything.
fn set(file: BorrowedFd<'_>, immutable: bool) -> rustix::io::Result<bool> {
    let flags = ioctl_getflags(file)?;
    if flags.contains(IFlags::IMMUTABLE) == immutable {
        return Ok(false);
    }
    let mut wanted = flags;
    wanted.set(IFlags::IMMUTABLE, immutable);
    ioctl_setflags(file, wanted)?;
    Ok(true)
}

fn is_same(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_is_held_as_its_lock_says() {
        let places = [Place::Root, Place::Own, Place::Whole, Place::Shared];
        let holds = |lock: Lock| places.map(|place| lock.hold(place));
        assert_eq!(holds(Lock::None), [Hold::Open, Hold::Closed, Hold::Closed, Hold::Open]);
        let immutable = [Hold::Open, Hold::Immutable, Hold::Immutable, Hold::Sticky];
        assert_eq!(holds(Lock::Immutable), immutable);
        assert_eq!(holds(Lock::Sticky), [Hold::Sticky, Hold::Closed, Hold::Closed, Hold::Sticky]);
    }
}
