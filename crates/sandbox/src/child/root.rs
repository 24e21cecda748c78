//! The new root, put together from mounts.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags,
    OpenTreeFlags, UnmountFlags,
};

use super::Set;
use super::aside::Copies;
use super::found::Found;
use crate::error::{Failure, Step};
use crate::sys::{self, NO_DEV, NO_EXEC, NO_SUID, READ_ONLY};
use crate::view::{EMPTY_FILES, Guarded, Held, Plan, Source};

/// A folder that every system has, to put the new root on for a moment.
const FOR_A_MOMENT: &CStr = c"/usr";
/// Most files in the new root, temporary ones included.
const MOST_FILES: &CStr = c"1000000";
const EMPTY_FILE: &CStr = c"run/wardkeep/confined";
const EMPTY_FOLDER: &CStr = c"run/wardkeep/nothing";

/// Replaces the root of this process, for good.
pub(super) fn change(set: &mut Set, found: BorrowedFd<'_>) -> Result<(), Failure> {
    let Some(plan) = &set.plan else { return Ok(()) };
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change(c"/", private).map_err(Failure::at(Step::Private, 0))?;
    // Before the new root hides something of the old.
    for (index, mount) in plan.mounts.iter().enumerate() {
        if let Source::Old(path) = &mount.source {
            let tree = clone_tree(CWD, path).map_err(Failure::at(Step::Source, index))?;
            set.sources.push(tree);
        }
    }
    if set.reads.is_some() {
        // Where this cannot be had, nobody is asked.
        set.outside = everything().ok();
    }
    let root = new_root(&set.size).map_err(Failure::at(Step::Root, 0))?;
    let root = root.as_fd();
    furnish(root, plan)?;
    let copies = Copies::begin(root, plan.copies.clone())?;
    let mut sources = set.sources.iter();
    for (index, mount) in plan.mounts.iter().enumerate() {
        let failed = Failure::at(Step::Mount, index);
        let made = match &mount.source {
            Source::Old(_) => None,
            Source::Own => Some(clone_tree(root, &mount.target)),
            Source::EmptyFile(place) | Source::Folder(place) => Some(clone_tree(root, place)),
            Source::EmptyFolder => Some(clone_tree(root, EMPTY_FOLDER)),
        };
        let made = made.transpose().map_err(&failed)?;
        let tree = made.as_ref().or_else(|| sources.next()).ok_or(Errno::BADF).map_err(&failed)?;
        // What is the new root's own may lie below something that was made read-only.
        let own = matches!(mount.source, Source::Own);
        let clear = if own { (READ_ONLY | NO_EXEC) & !mount.attributes } else { 0 };
        sys::change_mount(tree.as_fd(), mount.attributes, clear, true).map_err(&failed)?;
        let target = find(root, &mount.target).map_err(&failed)?;
        attach(tree, target.as_fd()).map_err(&failed)?;
    }
    set.sources.clear();
    special(set, root)?;
    let found = Found::receive(found).map_err(Failure::at(Step::Names, usize::MAX))?;
    if let Some((_, names)) = &mut set.watch {
        names.hold_all(found.held);
    }
    let Some(plan) = &mut set.plan else { return Ok(()) };
    set.linked = guard(root, &found.guarded, &mut plan.masked)?;
    copies.finish()?;
    enter(root).map_err(Failure::at(Step::Pivot, 0))
}

fn clone_tree(at: BorrowedFd<'_>, path: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW
        | OpenTreeFlags::AT_EMPTY_PATH;
    rustix::mount::open_tree(at, path, flags)
}

/// Everything, for whoever is asked to hand in a file of it: whatever is opened there can be neither changed nor executed,
/// nor have its mode, times or attributes changed.
fn everything() -> Result<OwnedFd, Errno> {
    let tree = clone_tree(CWD, c"/")?;
    sys::set_mount(tree.as_fd(), READ_ONLY | NO_SUID | NO_DEV | NO_EXEC, true)?;
    Ok(tree)
}

fn attach(tree: &OwnedFd, target: BorrowedFd<'_>) -> Result<(), Errno> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    rustix::mount::move_mount(tree, c"", target, c"", flags)
}

/// Opens something in the new root. What lies in the workspace is the agent's: no link is followed.
fn find(root: BorrowedFd<'_>, path: &CStr) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    rustix::fs::openat2(root, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve)
}

fn new_root(size: &CStr) -> Result<OwnedFd, Errno> {
    let fs = rustix::mount::fsopen(c"tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_set_string(&fs, c"mode", c"0755")?;
    rustix::mount::fsconfig_set_string(&fs, c"size", size)?;
    rustix::mount::fsconfig_set_string(&fs, c"nr_inodes", MOST_FILES)?;
    rustix::mount::fsconfig_create(&fs)?;
    let flags = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let root = rustix::mount::fsmount(&fs, FsMountFlags::FSMOUNT_CLOEXEC, flags)?;
    let moved = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    rustix::mount::move_mount(&root, c"", CWD, FOR_A_MOMENT, moved)?;
    Ok(root)
}

/// Makes folders, files and links while the root is still empty and nobody else's.
fn furnish(root: BorrowedFd<'_>, plan: &Plan) -> Result<(), Failure> {
    for (index, (path, mode)) in plan.folders.iter().enumerate() {
        let made = rustix::fs::mkdirat(root, path, Mode::from_raw_mode(*mode));
        // The umask would take bits away from folders for everybody.
        let made = match made {
            Ok(()) if *mode & 0o1000 != 0 => rustix::fs::chmodat(
                root,
                path,
                Mode::from_raw_mode(*mode),
                rustix::fs::AtFlags::empty(),
            ),
            Err(Errno::EXIST) => Ok(()),
            made => made,
        };
        made.map_err(Failure::at(Step::Folder, index))?;
    }
    for (index, path) in plan.files.iter().enumerate() {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let failed = Failure::at(Step::Folder, plan.folders.len() + index);
        rustix::fs::openat(root, path, flags, Mode::from_raw_mode(0o444)).map_err(&failed)?;
    }
    for (target, path) in &plan.links {
        match rustix::fs::symlinkat(target, root, path) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(Failure::at(Step::Folder, usize::MAX)(errno)),
        }
    }
    Ok(())
}

/// `/proc` of the own processes and `/dev/pts` of the own terminals.
fn special(set: &Set, root: BorrowedFd<'_>) -> Result<(), Failure> {
    let proc = || {
        let fs = rustix::mount::fsopen(c"proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
        rustix::mount::fsconfig_create(&fs)?;
        let flags = MountAttrFlags::MOUNT_ATTR_NOSUID
            | MountAttrFlags::MOUNT_ATTR_NODEV
            | MountAttrFlags::MOUNT_ATTR_NOEXEC
            | MountAttrFlags::MOUNT_ATTR_RDONLY;
        let mount = rustix::mount::fsmount(&fs, FsMountFlags::FSMOUNT_CLOEXEC, flags)?;
        attach(&mount, find(root, c"proc")?.as_fd())
    };
    match proc() {
        Err(errno) if !set.without_proc => return Err(Failure::at(Step::Proc, 0)(errno)),
        Err(_) => {}
        Ok(()) => mask_proc(root).map_err(Failure::at(Step::Proc, 1))?,
    }
    let terminals = || {
        let fs = rustix::mount::fsopen(c"devpts", FsOpenFlags::FSOPEN_CLOEXEC)?;
        rustix::mount::fsconfig_set_string(&fs, c"ptmxmode", c"0666")?;
        rustix::mount::fsconfig_set_string(&fs, c"mode", c"0620")?;
        rustix::mount::fsconfig_create(&fs)?;
        let flags = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        let mount = rustix::mount::fsmount(&fs, FsMountFlags::FSMOUNT_CLOEXEC, flags)?;
        attach(&mount, find(root, c"dev/pts")?.as_fd())
    };
    terminals().map_err(Failure::at(Step::Terminals, 0))
}

/// Files of `/proc` that tell of the kernel and not of the own processes, where root could read them.
fn mask_proc(root: BorrowedFd<'_>) -> Result<(), Errno> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    for path in [
        c"proc/kcore",
        c"proc/keys",
        c"proc/kallsyms",
        c"proc/kmsg",
        c"proc/kpagecount",
        c"proc/kpageflags",
        c"proc/kpagecgroup",
        c"proc/sched_debug",
        c"proc/slabinfo",
        c"proc/sysrq-trigger",
        c"proc/timer_list",
        c"proc/vmallocinfo",
    ] {
        let target = match find(root, path) {
            Ok(target) => target,
            Err(Errno::NOENT) => continue,
            Err(errno) => return Err(errno),
        };
        let empty = clone_tree(root, EMPTY_FILE)?;
        sys::set_mount(empty.as_fd(), READ_ONLY, false)?;
        attach(&empty, target.as_fd())?;
    }
    Ok(())
}

/// Holds names in the workspace. Each is opened once, and what was opened is what is held.
/// Files that are shown empty are added to those that are `masked`; which files have other names besides is
/// given back, by device and inode.
fn guard(
    root: BorrowedFd<'_>,
    all: &[Guarded],
    masked: &mut Vec<(CString, String)>,
) -> Result<Vec<(u64, u64)>, Failure> {
    let mut linked = Vec::new();
    for (index, guarded) in all.iter().enumerate() {
        let failed = Failure::at(Step::Names, index);
        if guarded.held == Held::Link {
            // Where it cannot be pinned, nothing else can be put in its place all the same.
            let _ = pin(root, &guarded.path);
            continue;
        }
        let target = find(root, &guarded.path).map_err(&failed)?;
        let data = rustix::fs::fstat(&target).map_err(&failed)?;
        let regular = FileType::from_raw_mode(data.st_mode) == FileType::RegularFile;
        if regular && data.st_nlink > 1 && guarded.held != Held::Pinned {
            linked.push((data.st_dev, data.st_ino));
        }
        let tree = match guarded.held {
            Held::Pinned | Held::ReadOnly | Held::Link => clone_tree(target.as_fd(), c""),
            Held::EmptyFile => empty_file(root, &guarded.path, masked),
            Held::EmptyFolder => clone_tree(root, EMPTY_FOLDER),
        };
        let tree = tree.map_err(&failed)?;
        let attributes = if guarded.held == Held::Pinned { 0 } else { READ_ONLY };
        sys::set_mount(tree.as_fd(), attributes | NO_SUID | NO_DEV, true).map_err(&failed)?;
        attach(&tree, target.as_fd()).map_err(&failed)?;
    }
    Ok(linked)
}

/// One more empty file, for what is to be shown so.
fn empty_file(
    root: BorrowedFd<'_>,
    path: &CStr,
    masked: &mut Vec<(CString, String)>,
) -> Result<OwnedFd, Errno> {
    let inside = CString::new(format!("{EMPTY_FILES}/{}", masked.len()));
    let inside = inside.map_err(|_| Errno::INVAL)?;
    let from_root = inside.to_bytes_with_nul().get(1..);
    let from_root = from_root.and_then(|text| CStr::from_bytes_with_nul(text).ok());
    let from_root = from_root.ok_or(Errno::INVAL)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    rustix::fs::openat(root, from_root, flags, Mode::from_raw_mode(0o444))?;
    let tree = clone_tree(root, from_root)?;
    masked.push((inside, format!("/{}", path.to_string_lossy())));
    Ok(tree)
}

/// Holds a link in its place, by mounting it on itself.
fn pin(root: BorrowedFd<'_>, path: &CStr) -> Result<(), Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let link = rustix::fs::openat2(root, path, flags, Mode::empty(), resolve)?;
    let tree = clone_tree(link.as_fd(), c"")?;
    sys::set_mount(tree.as_fd(), READ_ONLY | NO_SUID | NO_DEV, false)?;
    attach(&tree, link.as_fd())
}

/// Makes the new root the only one.
fn enter(root: BorrowedFd<'_>) -> Result<(), Errno> {
    sys::set_mount(root, READ_ONLY | NO_SUID | NO_DEV, false)?;
    rustix::process::fchdir(root)?;
    rustix::process::pivot_root(c".", c".")?;
    rustix::mount::unmount(c".", UnmountFlags::DETACH)?;
    rustix::process::chdir(c"/")
}
