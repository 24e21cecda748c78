//! Which workspace has which id: by path, device and inode, never by anything inside of it.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::workspace::{Workspace, WorkspaceId};

pub(super) const DOMAIN: &str = "workspace registry v1";
pub(super) const MAX_BYTES: u64 = 20 << 20;
/// So many fit into [`MAX_BYTES`] whatever their paths are.
const MOST: usize = 1000;

/// How a workspace was recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// By path, device and inode.
    Known,
    /// By its path: another folder stands there now. What was remembered still holds.
    Replaced,
    /// By device and inode: the folder was moved here.
    Moved,
    /// By two names that belong to different workspaces: a link was put where one of them was.
    Confused,
}

/// A workspace that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Located {
    /// Its id.
    pub id: WorkspaceId,
    /// How it was recognised.
    pub how: How,
}

/// Where a folder is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Place {
    /// Bytes that are not printable ASCII are escaped.
    path: String,
    device: u64,
    inode: u64,
    /// The path that it was named by, if a link on the way makes that another one.
    #[serde(skip)]
    named: Option<String>,
}

impl Place {
    pub(super) fn of(workspace: &Workspace) -> Self {
        let text = |path: &Path| path.as_os_str().as_bytes().escape_ascii().to_string();
        let named = (workspace.named() != workspace.path()).then(|| text(workspace.named()));
        Self {
            path: text(workspace.path()),
            device: workspace.device(),
            inode: workspace.inode(),
            named,
        }
    }

    fn same_folder(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

/// A path as it was before [`slice::escape_ascii`].
fn plain_path(text: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let (byte, used) = match (first, behind) {
            (b'\\', [b'x', high, low, ..]) => {
                let digit = |byte: &u8| char::from(*byte).to_digit(16).unwrap_or(0);
                (u8::try_from(digit(high) * 16 + digit(low)).unwrap_or(0), 4)
            }
            (b'\\', [b'n', ..]) => (b'\n', 2),
            (b'\\', [b't', ..]) => (b'\t', 2),
            (b'\\', [b'r', ..]) => (b'\r', 2),
            (b'\\', [other, ..]) => (*other, 2),
            (other, _) => (*other, 1),
        };
        bytes.push(byte);
        rest = rest.get(used..).unwrap_or_default();
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Known {
    id: WorkspaceId,
    place: Place,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Registry {
    version: u32,
    workspaces: Vec<Known>,
}

impl Default for Registry {
    fn default() -> Self {
        Self { version: 1, workspaces: Vec::new() }
    }
}

impl Registry {
    /// The path decides before the inode: a folder that is moved over another one is then held
    /// against what is expected there. So is one that a link stands for: where a workspace was
    /// known by the name that is used now, that one is expected.
    pub(super) fn find(&self, place: &Place) -> Option<Located> {
        let real = self.find_real(place);
        let named = place.named.as_deref().and_then(|named| self.at(named));
        match (named, real) {
            (Some(named), Some(real)) if named.id == real.id => Some(real),
            (Some(named), Some(_)) => Some(Located { id: named.id, how: How::Confused }),
            (Some(named), None) => Some(Located { id: named.id, how: How::Replaced }),
            (None, real) => real,
        }
    }

    /// Where they are.
    pub(super) fn paths(&self) -> impl Iterator<Item = PathBuf> {
        self.workspaces.iter().map(|known| plain_path(&known.place.path))
    }

    fn find_real(&self, place: &Place) -> Option<Located> {
        if let Some(known) = self.at(&place.path) {
            let how = if known.place.same_folder(place) { How::Known } else { How::Replaced };
            return Some(Located { id: known.id, how });
        }
        let moved = self.workspaces.iter().find(|known| known.place.same_folder(place))?;
        Some(Located { id: moved.id, how: How::Moved })
    }

    fn at(&self, path: &str) -> Option<&Known> {
        self.workspaces.iter().find(|known| known.place.path == path)
    }

    /// Notes a place; says whether anything changed. An id that is there stays unless `anew`.
    pub(super) fn add(&mut self, place: Place, id: WorkspaceId, anew: bool) -> bool {
        let place = Place { named: None, ..place };
        if let Some(known) = self.workspaces.iter_mut().find(|known| known.place.path == place.path)
        {
            let same = known.place == place && known.id == id;
            if known.id == id || anew {
                *known = Known { id, place };
            }
            return !same;
        }
        self.workspaces.push(Known { id, place });
        true
    }

    /// Forgets where else a workspace was: it was moved, and its owner signed it where it is now.
    /// A name that the owner used to sign it stays, and stands for it from now on.
    pub(super) fn forget_elsewhere(&mut self, place: &Place, id: WorkspaceId) {
        let named = place.named.as_ref();
        for known in &mut self.workspaces {
            if Some(&known.place.path) == named {
                known.id = id;
            }
        }
        self.workspaces.retain(|known| {
            known.id != id || known.place.path == place.path || Some(&known.place.path) == named
        });
    }

    pub(super) fn is_known_version(&self) -> bool {
        self.version == 1
    }

    pub(super) fn is_full(&self) -> bool {
        self.workspaces.len() > MOST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_comes_back_from_its_escapes() {
        for bytes in [&b"/plain"[..], b"/a b/\\x41", "/übung/日本".as_bytes(), b"/\n\t\r'\"\xff\\"]
        {
            let text = bytes.escape_ascii().to_string();
            assert_eq!(plain_path(&text).as_os_str().as_bytes(), bytes, "{text}");
        }
    }
}
