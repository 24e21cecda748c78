//! Whether a folder tells names apart that differ in the case of letters only.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{Mode, OFlags, fstatfs, ioctl_getflags, openat};

/// The flag of a folder in which names are folded (`FS_CASEFOLD_FL`).
const FOLDS: u32 = 0x4000_0000;

/// File systems that fold names in a folder that has the flag, or nowhere: ext4, btrfs, f2fs, tmpfs, overlay (which takes
/// no layers that fold in another way). XFS and ZFS may have been made to fold everywhere and do not say so here;
/// FAT, exFAT, NTFS, HFS+, APFS, CIFS, 9P and FUSE fold, or lead to something that may.
const KNOWN: [u32; 5] = [0xEF53, 0x9123_683E, 0xF2F5_2010, 0x0102_1994, 0x794C_7630];

/// Whether a folder is known to tell cases apart. What cannot be told is taken to fold.
pub(crate) fn tells_apart(folder: BorrowedFd<'_>) -> bool {
    // What is held open may be a place only, which does not answer this.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(folder) = openat(folder, c".", flags, Mode::empty()) else { return false };
    let kind = fstatfs(folder.as_fd()).ok().and_then(|found| u32::try_from(found.f_type).ok());
    let flags = ioctl_getflags(folder.as_fd()).ok().map(|flags| flags.bits());
    decide(kind, flags)
}

/// By what the file system says of its kind and of the folder.
fn decide(kind: Option<u32>, flags: Option<u32>) -> bool {
    kind.is_some_and(|kind| KNOWN.contains(&kind)) && flags.is_some_and(|flags| flags & FOLDS == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_to_tell_cases_apart_folds() {
        let ext4 = Some(0xEF53);
        assert!(decide(ext4, Some(0)) && decide(ext4, Some(0x0008_1000)));
        assert!(!decide(ext4, Some(FOLDS)) && !decide(ext4, Some(FOLDS | 0x0008_0000)));
        assert!(!decide(ext4, None) && !decide(None, Some(0)) && !decide(None, None));
        for (name, kind) in [
            ("vfat", 0x4d44),
            ("exfat", 0x2011_BAB0),
            ("ntfs", 0x5346_544E),
            ("ntfs3", 0x7366_746E),
            ("cifs", 0xFF53_4D42),
            ("smb2", 0xFE53_4D42),
            ("9p", 0x0102_1997),
            ("fuse", 0x6573_5546),
            ("nfs", 0x6969),
            ("hfs+", 0x482b),
            ("apfs", 0x4253_584E),
            ("xfs", 0x5846_5342),
            ("zfs", 0x2FC1_2FC1),
            ("something new", 0x1234_5678),
        ] {
            assert!(!decide(Some(kind), Some(0)), "{name}");
        }
    }

    #[test]
    fn a_folder_that_answers_is_believed() {
        let lab = tempfile::tempdir().unwrap();
        std::fs::write(lab.path().join("A"), "x").unwrap();
        let apart = !lab.path().join("a").exists();
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let folder = rustix::fs::open(lab.path(), flags, Mode::empty()).unwrap();
        // It may not know, but it must not say that a folder tells apart what it folds.
        assert!(apart || !tells_apart(folder.as_fd()));
        let proc = rustix::fs::open("/proc", flags, Mode::empty()).unwrap();
        assert!(!tells_apart(proc.as_fd()));
    }
}
