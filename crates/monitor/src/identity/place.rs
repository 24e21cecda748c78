//! Which workspace a path means, and how it is enforced.

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{Gid, Uid};
use serde::{Deserialize, Serialize};
use wardkeep_identity::level::Level;
use wardkeep_identity::lock::Lock;
use wardkeep_identity::workspace::Workspace;
use wardkeep_policy::memory::Memory;
use wardkeep_policy::store::{How, PolicyStore};
use wardkeep_policy::workspace::{Workspace as Folder, WorkspaceId};

use super::DeskError;
use crate::files::{MAX_SMALL_BYTES, read_plain};

/// The folder of the state directory in which workspaces have theirs.
pub const FOLDER: &str = "identity";
/// How a workspace is enforced, in its folder.
const SETUP: &str = "setup.json";
/// The versions of its files, in its folder.
const HISTORY: &str = "git";

/// How a workspace is enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "level", rename_all = "lowercase", deny_unknown_fields)]
pub enum Setup {
    /// Owner and agent are one user.
    User,
    /// Protected files belong to a user of their own.
    Owned {
        /// That user.
        guardian: u32,
        /// The group of tracked files.
        group: u32,
        /// The agent's user.
        agent: u32,
        /// Its group.
        agent_group: u32,
        /// What holds protected files in their places.
        lock: Lock,
    },
}

impl Setup {
    /// In a word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Owned { .. } => "owned",
        }
    }

    /// As the identity crate has it.
    #[must_use]
    pub fn level(self) -> Level {
        match self {
            Self::User => Level::User,
            Self::Owned { guardian, group, agent, agent_group, lock } => Level::Owned {
                guardian: Uid::from_raw(guardian),
                group: Gid::from_raw(group),
                agent: Uid::from_raw(agent),
                agent_group: Gid::from_raw(agent_group),
                lock,
            },
        }
    }
}

/// A workspace that was set up.
#[derive(Debug)]
pub struct Place {
    path: PathBuf,
    how: How,
    id: WorkspaceId,
    folder: PathBuf,
    setup: Setup,
    workspace: Workspace<'static>,
}

impl Place {
    /// Its path, without links.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> WorkspaceId {
        self.id
    }

    /// How it is enforced.
    #[must_use]
    pub fn setup(&self) -> Setup {
        self.setup
    }

    /// The folder and what was approved of it.
    #[must_use]
    pub fn workspace(&self) -> &Workspace<'static> {
        &self.workspace
    }

    /// Where versions of its files are kept.
    #[must_use]
    pub fn history(&self) -> PathBuf {
        self.folder.join(HISTORY)
    }

    /// That the folder is the one that was set up.
    ///
    /// # Errors
    /// When it is another one.
    pub fn usable(&self) -> Result<(), DeskError> {
        match self.how {
            How::Known => Ok(()),
            How::Replaced | How::Confused => Err(DeskError::Replaced(self.path.clone())),
            How::Moved => Err(DeskError::Moved(self.path.clone())),
        }
    }
}

/// Looks a workspace up in a state directory; `None` where it was not set up there.
///
/// # Errors
/// When the folder or what is kept of it cannot be used.
pub fn find(
    state: &Path,
    owner: u32,
    path: &Path,
    now: SystemTime,
) -> Result<Option<Place>, DeskError> {
    let folder = Folder::open(path)?;
    let policy = PolicyStore::new(state, owner);
    if policy.key_path().symlink_metadata().is_err() {
        return Ok(None);
    }
    let Some(located) = policy.find(&policy.key()?, &folder)? else {
        return Ok(None);
    };
    open(state, &folder, located.id, located.how, now)
}

fn open(
    state: &Path,
    folder: &Folder,
    id: WorkspaceId,
    how: How,
    now: SystemTime,
) -> Result<Option<Place>, DeskError> {
    let path = folder.path().to_owned();
    let kept = state.join(FOLDER).join(id.to_string());
    let setup = match read_plain(&kept.join(SETUP), MAX_SMALL_BYTES) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(DeskError::Damaged { path, why: error.to_string() }),
    };
    let setup: Setup = serde_json::from_slice(&setup)
        .map_err(|error| DeskError::Damaged { path: path.clone(), why: error.to_string() })?;
    let workspace = Workspace::open(&path, &kept, setup.level(), now)?;
    Ok(Some(Place { path, how, id, folder: kept, setup, workspace }))
}

/// Registers a workspace with a way of enforcing it, or finds it where it was registered before; the
/// way stays as it was then, unless `anew`.
///
/// # Errors
/// When the state directory cannot be written, or the folder is not the one that was registered.
pub fn register(
    state: &Path,
    owner: u32,
    path: &Path,
    (setup, anew): (Setup, bool),
    random: [u8; 16],
    now: SystemTime,
) -> Result<Place, DeskError> {
    let folder = Folder::open(path)?;
    let policy = PolicyStore::new(state, owner);
    let key = policy.key()?;
    let (id, how) = match policy.find(&key, &folder)? {
        Some(located) => (located.id, located.how),
        None => {
            let id = WorkspaceId::from_random(random);
            policy.remember(&key, &folder, &Memory::fresh(id))?;
            (id, How::Known)
        }
    };
    if !anew && let Some(place) = open(state, &folder, id, how, now)? {
        place.usable()?;
        return Ok(place);
    }
    let path = folder.path().to_owned();
    match how {
        How::Known => {}
        How::Moved => return Err(DeskError::Moved(path)),
        How::Replaced | How::Confused => return Err(DeskError::Replaced(path)),
    }
    let kept = state.join(FOLDER).join(id.to_string());
    // Makes the folder.
    let workspace = Workspace::open(&path, &kept, setup.level(), now)?;
    let written = serde_json::to_vec(&setup)
        .map_err(io::Error::other)
        .and_then(|text| write_whole(&kept, SETUP, &text));
    written.map_err(|error| DeskError::Damaged { path: path.clone(), why: error.to_string() })?;
    Ok(Place { path, how, id, folder: kept, setup, workspace })
}

/// Writes a file of the state directory whole.
fn write_whole(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let temporary = folder.join(format!("{name}.new"));
    let _ = std::fs::remove_file(&temporary);
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o600).open(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&temporary, folder.join(name))?;
    std::fs::File::open(folder)?.sync_all()
}
