//! Calls that take something away.

use rustix::fs::{AtFlags, FileType, OFlags, ftruncate, statat, unlinkat};
use rustix::io::Errno;

use super::caller::Caller;
use super::supervisor::{Done, Stop, Supervisor};

impl Supervisor {
    /// Removes a name, unless it is protected.
    pub(super) fn remove(
        &mut self,
        caller: &Caller<'_>,
        descriptor: u32,
        path: usize,
        flags: u32,
    ) -> Result<Done, Stop> {
        let flags = AtFlags::from_bits_retain(flags);
        if !(flags - AtFlags::REMOVEDIR).is_empty() {
            return Err(Errno::INVAL.into());
        }
        let place = self.place(caller, descriptor, path)?;
        let place = place.named(if flags.is_empty() { Errno::ISDIR } else { Errno::BUSY })?;
        let found = statat(&place.parent, &place.name, AtFlags::SYMLINK_NOFOLLOW)?;
        let kind = FileType::from_raw_mode(found.st_mode);
        if place.slash && flags.is_empty() {
            let error = if kind == FileType::Directory { Errno::ISDIR } else { Errno::NOTDIR };
            return Err(error.into());
        }
        self.check_source(&place, kind)?;
        unlinkat(&place.parent, &place.name, flags)?;
        Ok(Done::Value(0))
    }

    /// Cuts a file by its path, as one who may write to it.
    pub(super) fn truncate(&mut self, caller: &Caller<'_>) -> Result<Done, Stop> {
        let length = i64::from_ne_bytes(caller.argument(1).to_ne_bytes());
        let length = u64::try_from(length).map_err(|_| Errno::INVAL)?;
        let here = libc::AT_FDCWD.cast_unsigned();
        match self.open(caller, here, 0, OFlags::WRONLY | OFlags::NONBLOCK, 0)? {
            Done::File(file, _) => Ok(ftruncate(&file, length).map(|()| Done::Value(0))?),
            _ => Err(Errno::INVAL.into()),
        }
    }
}
