//! Which workspace has which id: by path, device and inode, never by anything inside of it.

use std::os::unix::ffi::OsStrExt as _;

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
}

impl Place {
    pub(super) fn of(workspace: &Workspace) -> Self {
        Self {
            path: workspace.path().as_os_str().as_bytes().escape_ascii().to_string(),
            device: workspace.device(),
            inode: workspace.inode(),
        }
    }

    fn same_folder(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
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
    /// against what is expected there.
    pub(super) fn find(&self, place: &Place) -> Option<Located> {
        let by_path = self.workspaces.iter().find(|known| known.place.path == place.path);
        if let Some(known) = by_path {
            let how = if known.place.same_folder(place) { How::Known } else { How::Replaced };
            return Some(Located { id: known.id, how });
        }
        let moved = self.workspaces.iter().find(|known| known.place.same_folder(place))?;
        Some(Located { id: moved.id, how: How::Moved })
    }

    /// Notes a place; says whether anything changed. An id that is there stays unless `anew`.
    pub(super) fn add(&mut self, place: Place, id: WorkspaceId, anew: bool) -> bool {
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
    pub(super) fn forget_elsewhere(&mut self, place: &Place, id: WorkspaceId) {
        self.workspaces.retain(|known| known.id != id || known.place.path == place.path);
    }

    pub(super) fn is_known_version(&self) -> bool {
        self.version == 1
    }

    pub(super) fn is_full(&self) -> bool {
        self.workspaces.len() > MOST
    }
}
