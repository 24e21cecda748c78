//! The place of a file: the folder it lies in, held open, and its name there.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, fstat, fsync, openat, renameat_with, statat};
use rustix::io::Errno;

use crate::bench::{Bench, FOLDER, Made, Open};
use crate::config::Tiers;
use crate::error::{IdentityError, Result};
use crate::level::{Holder, Level};
use crate::lock::{self, Hold, Place};
use crate::name::Name;
use crate::quarantine::Quarantine;
use crate::store::unguessable;
use crate::tree::{Kind, Look, Root};
use crate::workspace::Workspace;

/// How often something that another process changes is tried again.
const TRIES: usize = 16;

/// A place.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) name: Name,
    folder: OwnedFd,
    leaf: OsString,
}

/// What is done about folders on the way that are missing or none.
pub(crate) enum Way<'a> {
    /// They stay as they are.
    Keep,
    /// They are made; for which tiers.
    Make(&'a Tiers),
    /// They are made, and what stands in their place is moved away.
    Mend(&'a Tiers, &'a Quarantine<'a>),
    /// As [`Self::Mend`], in staging: all folders are the agent's.
    Stage(&'a Quarantine<'a>),
}

impl Workspace<'_> {
    /// The place of a name below a root; `None` where the way there is missing and not made.
    pub(crate) fn slot(
        &self,
        root: &Root,
        bench: &Bench,
        name: &Name,
        way: &Way<'_>,
    ) -> Result<Option<Slot>> {
        let failed = |error: io::Error| IdentityError::io("open the folder of", name, error);
        let parent = name.parent();
        let leaf = name.leaf().to_owned();
        let slot = |folder| Ok(Some(Slot { name: name.clone(), folder, leaf }));
        match root.folder(parent.as_ref()) {
            Ok(folder) => return slot(folder),
            Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => {}
            Err(errno) => return Err(failed(errno.into())),
        }
        if matches!(way, Way::Keep) {
            return Ok(None);
        }
        let mut at = root.folder(None).map_err(|errno| failed(errno.into()))?;
        let mut here: Option<Name> = None;
        for component in parent.iter().flat_map(Name::components) {
            here = Name::child(here.as_ref(), component);
            let Some(here) = &here else { return Ok(None) };
            at = self.step_into(&at, bench, here, way)?;
        }
        slot(at)
    }

    /// One folder further, made where it is missing.
    fn step_into(
        &self,
        at: &OwnedFd,
        bench: &Bench,
        here: &Name,
        way: &Way<'_>,
    ) -> Result<OwnedFd> {
        let failed = |error: io::Error| IdentityError::io("make the folder", here, error);
        let leaf = here.leaf();
        for _ in 0..TRIES {
            match openat(at, leaf, FOLDER, Mode::empty()) {
                Ok(folder) => {
                    let same = (fstat(at), fstat(&folder));
                    return match same {
                        (Ok(outer), Ok(inner)) if outer.st_dev == inner.st_dev => Ok(folder),
                        _ => Err(failed(io::Error::other("it is on another file system"))),
                    };
                }
                Err(Errno::NOENT) => {
                    self.steps.step("make a folder");
                    let open = self.unlocked(at.as_fd()).map_err(failed)?;
                    let made = self.make_folder(at, bench, here, way).map_err(failed)?;
                    open.relock().map_err(failed)?;
                    if let Some(folder) = made {
                        return Ok(folder);
                    }
                }
                Err(Errno::LOOP | Errno::NOTDIR) => {
                    let quarantine = match way {
                        Way::Mend(_, quarantine) | Way::Stage(quarantine) => quarantine,
                        _ => return Err(IdentityError::Drifted { name: here.clone() }),
                    };
                    let open = self.unlocked(at.as_fd()).map_err(failed)?;
                    let out = unguessable().map_err(failed)?;
                    let to = (bench.handle(), out.as_str());
                    match renameat_with(at, leaf, to.0, to.1, RenameFlags::NOREPLACE) {
                        Ok(()) => quarantine.take(bench, &out, here, &[])?,
                        Err(Errno::NOENT) => {}
                        Err(errno) => return Err(failed(errno.into())),
                    }
                    open.relock().map_err(failed)?;
                }
                Err(errno) => return Err(failed(errno.into())),
            }
        }
        Err(IdentityError::Raced { name: here.clone() })
    }

    /// Makes a folder on the bench and gives it its name; `None` if another one has it by now.
    fn make_folder(
        &self,
        at: &OwnedFd,
        bench: &Bench,
        here: &Name,
        way: &Way<'_>,
    ) -> io::Result<Option<OwnedFd>> {
        let tiers = match way {
            Way::Make(tiers) | Way::Mend(tiers, _) => Some(tiers),
            Way::Keep | Way::Stage(_) => None,
        };
        let hold = tiers.map(|tiers| self.folder_hold(tiers, here));
        let (owner, mode) = match (&self.level, hold) {
            (Level::User, _) => (None, 0o755),
            (level, None) => (level.owner(Holder::Staging), 0o755),
            (level, Some(Hold::Closed | Hold::Immutable)) => (level.owner(Holder::Protect), 0o555),
            (level, Some(Hold::Open)) => (level.owner(Holder::Free), 0o755),
            (Level::Owned { agent_group, .. }, Some(Hold::Sticky)) => {
                (Some((rustix::fs::Uid::ROOT, *agent_group)), lock::STICKY_MODE)
            }
        };
        let (made, folder) = bench.make_folder(owner, mode)?;
        match renameat_with(bench.handle(), &made, at, here.leaf(), RenameFlags::NOREPLACE) {
            Ok(()) => {
                fsync(at)?;
                Ok(Some(folder))
            }
            Err(Errno::EXIST) => {
                bench.drop_leaf(&made);
                Ok(None)
            }
            Err(errno) => {
                bench.drop_leaf(&made);
                Err(errno.into())
            }
        }
    }

    /// How a folder with protected files in it is held.
    pub(crate) fn folder_hold(&self, tiers: &Tiers, name: &Name) -> Hold {
        let place = if tiers.protects_folder(name) { Place::Whole } else { Place::Shared };
        if self.level.is_owned() { self.level.lock().hold(place) } else { Hold::Open }
    }

    /// Puts what was made in a place. What stood there lies on the bench under the name that comes
    /// back; `None` if nothing stood there.
    pub(crate) fn exchange(
        &self,
        bench: &Bench,
        made: &str,
        slot: &Slot,
    ) -> Result<Option<String>> {
        let failed = |error: io::Error| IdentityError::io("replace", &slot.name, error);
        let open = self.unlocked(slot.folder.as_fd()).map_err(failed)?;
        let (at, leaf) = (bench.handle(), slot.leaf.as_os_str());
        for _ in 0..TRIES {
            // Dropped, it is locked again.
            let there = self.unlock_there(slot).map_err(failed)?;
            match renameat_with(at, made, &slot.folder, leaf, RenameFlags::EXCHANGE) {
                Ok(()) => {
                    there.leave_open();
                    open.relock().map_err(failed)?;
                    return Ok(Some(made.to_owned()));
                }
                // Taken off its lock, it may have got another one.
                Err(Errno::PERM) if self.level.is_owned() => {}
                Err(Errno::NOENT) => {
                    match renameat_with(at, made, &slot.folder, leaf, RenameFlags::NOREPLACE) {
                        Ok(()) => {
                            open.relock().map_err(failed)?;
                            return Ok(None);
                        }
                        Err(Errno::EXIST) => {}
                        Err(errno) => return Err(failed(errno.into())),
                    }
                }
                // A file system that cannot exchange: one after the other.
                Err(Errno::INVAL | Errno::NOSYS) => {
                    let out = unguessable().map_err(failed)?;
                    match renameat_with(&slot.folder, leaf, at, &out, RenameFlags::NOREPLACE) {
                        Ok(()) => there.leave_open(),
                        Err(Errno::NOENT) => continue,
                        Err(errno) => return Err(failed(errno.into())),
                    }
                    let placed =
                        renameat_with(at, made, &slot.folder, leaf, RenameFlags::NOREPLACE);
                    open.relock().map_err(failed)?;
                    return match placed {
                        Ok(()) => Ok(Some(out)),
                        Err(errno) => Err(failed(errno.into())),
                    };
                }
                Err(errno) => return Err(failed(errno.into())),
            }
        }
        Err(IdentityError::Raced { name: slot.name.clone() })
    }

    /// Takes what stands in a place to the bench.
    pub(crate) fn take_out(&self, bench: &Bench, slot: &Slot) -> Result<Option<String>> {
        let failed = |error: io::Error| IdentityError::io("remove", &slot.name, error);
        let open = self.unlocked(slot.folder.as_fd()).map_err(failed)?;
        let there = self.unlock_there(slot).map_err(failed)?;
        let out = unguessable().map_err(failed)?;
        let leaf = slot.leaf.as_os_str();
        let moved = renameat_with(&slot.folder, leaf, bench.handle(), &out, RenameFlags::NOREPLACE);
        open.relock().map_err(failed)?;
        match moved {
            Ok(()) => {
                there.leave_open();
                Ok(Some(out))
            }
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(failed(errno.into())),
        }
    }

    /// Whether what was made stands in its place, and stays there where there is a lock.
    pub(crate) fn settle_in(
        &self,
        root: &Root,
        slot: &Slot,
        made: &Made,
        held: bool,
    ) -> Result<()> {
        let raced = || IdentityError::Raced { name: slot.name.clone() };
        let failed = |error: io::Error| IdentityError::io("lock", &slot.name, error);
        if held && self.level.is_owned() && self.level.lock().is_immutable() {
            match lock::lock_in_place(slot.folder.as_fd(), &slot.leaf, &made.file) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::StaleNetworkFileHandle => {
                    return Err(raced());
                }
                Err(error) => return Err(failed(error)),
            }
        }
        if slot.look().map(|look| look.id) != Some(made.id) {
            return Err(raced());
        }
        // The folder itself may have been moved.
        let parent = slot.name.parent();
        let there = root.folder(parent.as_ref()).and_then(|folder| fstat(&folder));
        let here = fstat(&slot.folder);
        match (there, here) {
            (Ok(there), Ok(here)) if Look::of(&there).id == Look::of(&here).id => Ok(()),
            _ => Err(raced()),
        }
    }

    /// Takes the lock off what stands in a place, until the value is dropped.
    fn unlock_there(&self, slot: &Slot) -> io::Result<Open> {
        match self.open_there(slot) {
            Some(file) => self.unlocked(file.as_fd()),
            None => Ok(Open::nothing()),
        }
    }

    fn open_there(&self, slot: &Slot) -> Option<OwnedFd> {
        let lockable = |look: Look| matches!(look.kind, Kind::File | Kind::Folder);
        if !self.level.is_owned() || !slot.look().is_some_and(lockable) {
            return None;
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        openat(&slot.folder, &slot.leaf, flags, Mode::empty()).ok()
    }
}

impl Slot {
    /// What stands there.
    pub(crate) fn look(&self) -> Option<Look> {
        let stat = statat(&self.folder, &self.leaf, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(Look::of(&stat))
    }

    /// Makes names durable.
    pub(crate) fn flush(&self) -> io::Result<()> {
        Ok(fsync(&self.folder)?)
    }

    pub(crate) fn folder(&self) -> &OwnedFd {
        &self.folder
    }
}
