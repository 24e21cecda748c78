//! Folders in which protected files lie, at the owned level: who owns them, and what holds them.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::fs::{AtFlags, Mode, fchmod, fchown, fstat, unlinkat};

use crate::bench::Bench;
use crate::commit::Left;
use crate::config::Tiers;
use crate::error::Result;
use crate::level::{Holder, Level};
use crate::lock::{self, Hold, Place};
use crate::name::Name;
use crate::slot::Way;
use crate::tree::Look;
use crate::workspace::Workspace;

impl Workspace<'_> {
    /// Holds every folder on the way to some protected files, and the workspace itself, as the level
    /// asks. A folder of somebody else is left alone: the agent could have put it there.
    pub(crate) fn hold_folders<'b>(
        &self,
        names: impl Iterator<Item = &'b Name>,
        tiers: &Tiers,
    ) -> Vec<Left> {
        if !self.level.is_owned() {
            return Vec::new();
        }
        self.steps.step("hold the folders");
        let folders: BTreeSet<Name> = names.flat_map(Name::ancestors).collect();
        let mut left = Vec::new();
        for name in folders {
            let hold = self.folder_hold(tiers, &name);
            let held = match self.root.folder(Some(&name)) {
                Ok(folder) => self.hold_folder(&folder, hold),
                Err(errno) => Err(errno.into()),
            };
            if let Err(error) = held {
                left.push(Left { name, why: error.to_string() });
            }
        }
        left
    }

    /// Holds the workspace itself.
    pub(crate) fn hold_root(&self) -> io::Result<()> {
        if !self.level.is_owned() {
            return Ok(());
        }
        let folder = self.root.folder(None)?;
        self.hold_folder(&folder, self.level.lock().hold(Place::Root))
    }

    fn hold_folder(&self, folder: &OwnedFd, hold: Hold) -> io::Result<()> {
        let Level::Owned { guardian, group, agent, agent_group, .. } = self.level else {
            return Ok(());
        };
        let look = Look::of(&fstat(folder)?);
        let ours = [agent.as_raw(), guardian.as_raw()].contains(&look.uid);
        let foreign = || Err(io::Error::other(format!("it belongs to user {}", look.uid)));
        match hold {
            Hold::Open => Ok(()),
            Hold::Sticky if lock::is_sticky(folder, agent_group)? => Ok(()),
            Hold::Sticky if !ours => foreign(),
            Hold::Sticky => {
                self.unlocked(folder.as_fd())?.leave_open();
                lock::make_sticky(folder, agent_group)
            }
            Hold::Closed | Hold::Immutable if !ours => foreign(),
            Hold::Closed | Hold::Immutable => {
                let mode = self.level.folder_mode().unwrap_or(0o555);
                let right = look.mode == mode
                    && (look.uid, look.gid) == (guardian.as_raw(), group.as_raw());
                if !right {
                    self.unlocked(folder.as_fd())?.leave_open();
                    fchown(folder, Some(guardian), Some(group))?;
                    fchmod(folder, Mode::from_raw_mode(mode))?;
                }
                if hold == Hold::Immutable {
                    lock::lock(folder)?;
                }
                Ok(())
            }
        }
    }

    /// Gives folders back to the agent in which not everything is protected any more.
    pub(crate) fn free_folders(&self, folders: &BTreeSet<Name>) -> Vec<Left> {
        let Level::Owned { guardian, .. } = self.level else { return Vec::new() };
        let mut left = Vec::new();
        for name in folders {
            let freed = self.root.folder(Some(name)).map_err(io::Error::from).and_then(|folder| {
                if Look::of(&fstat(&folder)?).uid != guardian.as_raw() {
                    return Ok(());
                }
                self.unlocked(folder.as_fd())?.leave_open();
                if let Some((uid, gid)) = self.level.owner(Holder::Free) {
                    fchown(&folder, Some(uid), Some(gid))?;
                }
                Ok(fchmod(&folder, Mode::from_raw_mode(0o755))?)
            });
            if let Err(error) = freed {
                left.push(Left { name: name.clone(), why: error.to_string() });
            }
        }
        left
    }

    /// Removes folders that are empty now, the deepest first.
    pub(crate) fn remove_empty(&self, bench: &Bench, folders: &BTreeSet<Name>) -> Result<()> {
        for name in folders.iter().rev() {
            let Some(slot) = self.slot(&self.root, bench, name, &Way::Keep)? else { continue };
            let remove = || -> io::Result<()> {
                let open = self.unlocked(slot.folder().as_fd())?;
                let own = self.root.folder(Some(name))?;
                let inner = self.unlocked(own.as_fd())?;
                self.steps.step("remove an empty folder");
                match unlinkat(slot.folder(), name.leaf(), AtFlags::REMOVEDIR) {
                    Ok(()) => inner.leave_open(),
                    // Something is in it.
                    Err(_) => inner.relock()?,
                }
                open.relock()
            };
            // One that stays is no harm.
            let _ = remove();
        }
        Ok(())
    }
}
