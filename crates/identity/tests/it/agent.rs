//! A hostile agent: a real process of another user, in a place that is cleaned up whatever happens.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rustix::fs::{Gid, Uid};
use tempfile::TempDir;
use wardkeep_identity::lock::{Agent, unlock};

pub(crate) use crate::lab::skip;

/// A number that no account here has.
pub(crate) const AGENT: u32 = 61_789;
/// Another one, for the guardian.
pub(crate) const GUARDIAN: u32 = 61_790;

/// Whether this process may act as other users; says so where not.
pub(crate) fn is_root(test: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        skip("root", test);
    }
    is_root
}

pub(crate) fn agent() -> Agent {
    Agent { uid: Uid::from_raw(AGENT), groups: vec![Gid::from_raw(AGENT)] }
}

/// A folder of root's with a workspace of the agent's in it.
pub(crate) struct Ground {
    folder: Option<TempDir>,
}

impl Ground {
    /// On the usual file system of temporary files.
    pub(crate) fn new() -> Self {
        Self::below(&std::env::temp_dir())
    }

    /// On each file system that is at hand here.
    pub(crate) fn each() -> Vec<Self> {
        let mut places = vec![Self::new()];
        if Path::new("/dev/shm").is_dir() {
            places.push(Self::below(Path::new("/dev/shm")));
        }
        places
    }

    fn below(path: &Path) -> Self {
        let folder = TempDir::with_prefix_in("wardkeep-identity-", path).unwrap();
        let ground = Self { folder: Some(folder) };
        set_mode(&ground.path(""), 0o755);
        std::fs::create_dir(ground.path("ws")).unwrap();
        chown(ground.path("ws"), Some(AGENT), Some(AGENT)).unwrap();
        set_mode(&ground.path("ws"), 0o755);
        ground
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.folder.as_ref().unwrap().path().join(below)
    }

    /// A file with an owner and a mode.
    pub(crate) fn file(&self, name: &str, text: &str, owner: u32, mode: u32) -> File {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        chown(&path, Some(owner), Some(owner)).unwrap();
        set_mode(&path, mode);
        File::open(path).unwrap()
    }

    /// A folder with an owner and a mode.
    pub(crate) fn folder(&self, name: &str, owner: u32, mode: u32) -> File {
        let path = self.path(name);
        std::fs::create_dir(&path).unwrap();
        chown(&path, Some(owner), Some(owner)).unwrap();
        set_mode(&path, mode);
        File::open(path).unwrap()
    }

    /// Runs a line of shell as the agent, in the folder.
    pub(crate) fn try_as_agent(&self, line: &str) -> Output {
        Command::new("/bin/sh")
            .args(["-c", line])
            .env_clear()
            .env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin")
            .current_dir(self.path(""))
            .uid(AGENT)
            .gid(AGENT)
            .output()
            .unwrap()
    }

    /// Every line must fail, and leave the file as it was.
    pub(crate) fn refuses(&self, file: &str, text: &str, lines: &[&str]) {
        for line in lines {
            let output = self.try_as_agent(line);
            assert!(!output.status.success(), "{line}: {output:?}");
            let now = std::fs::read_to_string(self.path(file));
            assert_eq!(now.ok().as_deref(), Some(text), "{line}");
        }
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        if let Some(folder) = self.folder.take() {
            release(folder.path());
        }
    }
}

/// Takes every lock off, so that the folder can be removed.
fn release(path: &Path) {
    let Ok(metadata) = path.symlink_metadata() else { return };
    if (metadata.is_dir() || metadata.is_file())
        && let Ok(file) = File::open(path)
        && let Ok(open) = unlock(file.as_fd())
    {
        open.leave_open();
    }
    if metadata.is_dir() {
        for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
            release(&entry.path());
        }
    }
}

pub(crate) fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}
