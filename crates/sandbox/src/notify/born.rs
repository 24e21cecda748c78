//! Which file it is: numbers are given anew when a file has gone, times of birth are not.

use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType, StatxFlags, statat, statx};
use rustix::io::Errno;
use rustix::path::Arg;

/// A file, told apart from one that gets its number later. Where a file system does not know when a file was made,
/// its number is all there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Born {
    device: (u32, u32),
    number: u64,
    at: (i64, u32),
}

impl Born {
    /// What has a name in a folder, and its kind. An empty name is the folder itself, or another open file.
    pub(super) fn of<P: Arg + Copy>(folder: impl AsFd, name: P) -> Result<(Self, FileType), Errno> {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH;
        let wanted = StatxFlags::TYPE | StatxFlags::INO | StatxFlags::BTIME;
        match statx(&folder, name, flags, wanted) {
            Ok(found) => {
                let knows = found.stx_mask & StatxFlags::BTIME.bits() != 0;
                let at = (found.stx_btime.tv_sec, found.stx_btime.tv_nsec);
                let at = if knows { at } else { (0, 0) };
                let device = (found.stx_dev_major, found.stx_dev_minor);
                let kind = FileType::from_raw_mode(found.stx_mode.into());
                Ok((Self { device, number: found.stx_ino, at }, kind))
            }
            // Filters of old containers do not know the call.
            Err(Errno::NOSYS | Errno::PERM) => {
                let found = statat(&folder, name, flags)?;
                let device = (rustix::fs::major(found.st_dev), rustix::fs::minor(found.st_dev));
                let kind = FileType::from_raw_mode(found.st_mode);
                Ok((Self { device, number: found.st_ino, at: (0, 0) }, kind))
            }
            Err(error) => Err(error),
        }
    }
}
