//! Workspaces: an open folder, and the id under which it is known.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags, fstat};
use serde::{Deserialize, Serialize};
use wardkeep_evidence::hash::encode_hex;

use crate::files::{Unread, read_below};

/// The policy, in the workspace.
pub const POLICY_FILE: &str = "LocalGPT.md";
/// Its manifest, in the workspace.
pub const MANIFEST_FILE: &str = ".localgpt_manifest.json";

/// Largest policy that is read. A policy has 4096 characters; what is larger is none.
pub const MAX_POLICY_BYTES: u64 = 1 << 20;

/// A workspace that cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot open the workspace `{path}` ({error}): give a folder that you can read")]
pub struct WorkspaceError {
    /// The path given.
    pub path: PathBuf,
    /// What the system said.
    pub error: io::Error,
}

/// A workspace, held open: what is read from it comes from one and the same folder.
#[derive(Debug)]
pub struct Workspace {
    path: PathBuf,
    named: PathBuf,
    folder: OwnedFd,
    device: u64,
    inode: u64,
}

impl Workspace {
    /// Opens the folder at `path`.
    ///
    /// # Errors
    /// When there is no folder there, or it cannot be read.
    pub fn open(path: &Path) -> Result<Self, WorkspaceError> {
        let failed = |error: io::Error| WorkspaceError { path: path.to_owned(), error };
        let named = without_dots(&std::path::absolute(path).map_err(failed)?);
        let path = path.canonicalize().map_err(failed)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder =
            rustix::fs::open(&path, flags, Mode::empty()).map_err(|errno| failed(errno.into()))?;
        let stat = fstat(&folder).map_err(|errno| failed(errno.into()))?;
        Ok(Self { path, named, folder, device: stat.st_dev, inode: stat.st_ino })
    }

    /// Its path, without links.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path that it was named by, absolute; a link on the way is still in it.
    #[must_use]
    pub fn named(&self) -> &Path {
        &self.named
    }

    /// The device that it is on.
    #[must_use]
    pub fn device(&self) -> u64 {
        self.device
    }

    /// Its number on that device.
    #[must_use]
    pub fn inode(&self) -> u64 {
        self.inode
    }

    /// Where the policy is.
    #[must_use]
    pub fn policy_path(&self) -> PathBuf {
        self.path.join(POLICY_FILE)
    }

    /// Where the manifest is.
    #[must_use]
    pub fn manifest_path(&self) -> PathBuf {
        self.path.join(MANIFEST_FILE)
    }

    /// Reads the policy, once.
    ///
    /// # Errors
    /// When it is missing, not a plain file, too large or unreadable.
    pub fn read_policy(&self) -> Result<Vec<u8>, Unread> {
        self.read(POLICY_FILE, MAX_POLICY_BYTES)
    }

    pub(crate) fn read(&self, name: &str, limit: u64) -> Result<Vec<u8>, Unread> {
        read_below(&self.folder, name, limit)
    }
}

/// A path with `.` and `x/..` taken out of its text.
fn without_dots(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                out.pop();
            }
            Component::CurDir => {}
            other => out.push(other),
        }
    }
    out
}

/// The id of a workspace: 128 random bits, kept outside of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkspaceId([u8; 16]);

impl WorkspaceId {
    /// Of random bytes.
    #[must_use]
    pub fn from_random(random: [u8; 16]) -> Self {
        Self(random)
    }

    /// Reads 32 lower-case hexadecimal digits.
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        };
        let mut id = [0u8; 16];
        if text.len() != 32 {
            return None;
        }
        for (byte, pair) in id.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Self(id))
    }

    pub(crate) fn bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for WorkspaceId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&encode_hex(&self.0))
    }
}

impl fmt::Debug for WorkspaceId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "WorkspaceId({self})")
    }
}

impl Serialize for WorkspaceId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_string())
    }
}

impl<'de> Deserialize<'de> for WorkspaceId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::from_hex(&text)
            .ok_or_else(|| serde::de::Error::custom("not 32 lower-case hexadecimal digits"))
    }
}
