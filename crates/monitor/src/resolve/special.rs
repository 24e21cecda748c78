//! Paths that mean something else to the agent's process than to this one.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;

/// Whether the walk is inside the agent's own part of `/proc`.
#[derive(Debug, Default)]
pub(super) struct Process {
    /// How many names lead there.
    own: Option<usize>,
}

/// What a name means there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Special {
    /// The agent's own directory in `/proc`.
    Own,
    /// The root directory.
    Root,
    /// The directory that the agent is in.
    Directory,
    /// One of its open files.
    Descriptor(u32),
    /// Something that cannot be known from here.
    Unknown,
}

impl Process {
    pub(super) fn enter(&mut self, depth: usize) {
        self.own = Some(depth);
    }

    pub(super) fn leave(&mut self) {
        self.own = None;
    }

    /// The walk went up to here.
    pub(super) fn depth(&mut self, depth: usize) {
        self.own = self.own.filter(|own| depth >= *own);
    }

    /// What a name in this directory means to the agent, if not what it means here.
    pub(super) fn special(
        &self,
        directory: &OwnedFd,
        names: &[OsString],
        name: &OsStr,
    ) -> Option<Special> {
        let text = name.to_str()?;
        let parent = names.last().and_then(|parent| parent.to_str());
        let number = || text.parse::<u32>().ok();
        if names.len() == 2 && names[0] == "dev" && names[1] == "fd" {
            return number().map(Special::Descriptor);
        }
        if self.own.is_none() {
            let own = matches!(text, "self" | "thread-self") && is_proc_root(directory);
            return own.then_some(Special::Own);
        }
        match text {
            "root" => Some(Special::Root),
            "cwd" => Some(Special::Directory),
            "exe" => Some(Special::Unknown),
            _ if matches!(parent, Some("fd" | "fdinfo")) => number().map(Special::Descriptor),
            _ if parent == Some("map_files") => Some(Special::Unknown),
            _ => None,
        }
    }

    /// Whether the kernel makes this link to a file that is open, whatever its text says.
    pub(super) fn is_magic(&self, directory: &OwnedFd, names: &[OsString], name: &OsStr) -> bool {
        let parent = names.last().and_then(|parent| parent.to_str());
        let magic = matches!(name.to_str(), Some("root" | "cwd" | "exe"))
            || matches!(parent, Some("fd" | "map_files" | "ns"));
        magic && is_proc(directory)
    }
}

#[cfg(target_os = "linux")]
fn is_proc(directory: &OwnedFd) -> bool {
    rustix::fs::fstatfs(directory).is_ok_and(|system| system.f_type == rustix::fs::PROC_SUPER_MAGIC)
}

#[cfg(not(target_os = "linux"))]
fn is_proc(_: &OwnedFd) -> bool {
    false
}

/// The root of a proc file system always has this number.
fn is_proc_root(directory: &OwnedFd) -> bool {
    is_proc(directory) && rustix::fs::fstat(directory).is_ok_and(|stat| stat.st_ino == 1)
}
