//! The policy's part of the state directory: key, ids of workspaces, what is remembered of each.
//!
//! `policy/workspaces.json` holds the ids, `policy/<id>.json` the memory of one workspace,
//! `policy/<id>.md` the bytes that were signed there last, to show a difference. The first two
//! carry an HMAC of the device key.

mod registry;

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use wardkeep_evidence::bundle::{BundleError, StagedFile};

use crate::audit::AUDIT_FILE;
use crate::block::Suffix;
use crate::config::Switches;
use crate::files::{PATIENCE, lock, read_plain};
use crate::hash::ContentHash;
use crate::key::{DeviceKey, KEY_FILE, KeyError};
use crate::memory::Memory;
use crate::sealed;
use crate::sign::{Draft, Request, SignError, Signed, sign};
use crate::signed_set::{self, SIGNED_FILE, SetDraft, SetError, SetState, SetVerification};
use crate::verify::{Verification, verify};
use crate::workspace::{MAX_POLICY_BYTES, Workspace, WorkspaceId};

pub use registry::{How, Located};
use registry::{Place, Registry};

/// The config, in the state directory.
pub const CONFIG_FILE: &str = "config.toml";
const FOLDER: &str = "policy";
const REGISTRY: &str = "workspaces.json";
const LOCK: &str = "lock";
const MEMORY_DOMAIN: &str = "policy memory v1";
const MAX_MEMORY: u64 = 4 << 10;

/// Why the state directory cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The file system refused.
    #[error("cannot {action} `{path}` ({error}): fix the state directory's owner or mode")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] BundleError),
    /// Another process holds the lock.
    #[error("`{0}` is locked by another process: find and end that process")]
    Locked(PathBuf),
    /// The ids of workspaces cannot be read back.
    #[error("`{path}` is not to be trusted ({why}): sign the policy again, which starts a new one")]
    Registry {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// There are too many workspaces.
    #[error("`{0}` is full: remove it and sign the policies in use again")]
    Full(PathBuf),
}

/// The outcome of a verification, and of remembering it.
#[derive(Debug)]
pub struct Checked {
    /// The verification.
    pub verification: Verification,
    /// Where the workspace was found among those known; `None` if it is not among them.
    pub located: Option<Located>,
    /// What could not be remembered. The policy is used all the same.
    pub trouble: Vec<StoreError>,
}

/// A signature, and what of it could not be remembered.
#[derive(Debug)]
pub struct Stamped {
    /// The signature.
    pub signed: Signed,
    /// What could not be kept for a later comparison.
    pub trouble: Vec<StoreError>,
}

/// Why a policy could not be signed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StampError {
    /// There is no usable key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The policy or the moment is not right.
    #[error(transparent)]
    Sign(#[from] SignError),
    /// The state directory cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The signed set, and which switches hold.
#[derive(Debug)]
pub struct Settings {
    /// The set.
    pub set: SetVerification,
    /// The switches.
    pub switches: Switches,
    /// What could not be remembered.
    pub trouble: Option<StoreError>,
}

impl Settings {
    /// Whether model calls end with the suffix.
    #[must_use]
    pub fn suffix(&self) -> Suffix {
        if self.set.state == SetState::Valid && self.switches.disable_suffix {
            Suffix::disabled_by_signed_configuration()
        } else {
            Suffix::KEPT
        }
    }
}

/// Why the signed set could not be signed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetStampError {
    /// There is no usable key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The files or the moment are not right.
    #[error(transparent)]
    Set(#[from] SetError),
    /// The state directory cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a workspace is written down.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Claim {
    /// A valid policy was found in it.
    Seen,
    /// Its owner signed in it: it is where it belongs.
    Signed,
}

/// The policy's part of a state directory.
#[derive(Debug, Clone)]
pub struct PolicyStore {
    state: PathBuf,
    owner: u32,
}

impl PolicyStore {
    /// Of the state directory `state` of the user `owner`.
    #[must_use]
    pub fn new(state: &Path, owner: u32) -> Self {
        Self { state: state.to_owned(), owner }
    }

    /// The state directory.
    #[must_use]
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// The device key's path.
    #[must_use]
    pub fn key_path(&self) -> PathBuf {
        self.state.join(KEY_FILE)
    }

    /// The audit log's path.
    #[must_use]
    pub fn audit_path(&self) -> PathBuf {
        self.state.join(AUDIT_FILE)
    }

    /// The config's path.
    #[must_use]
    pub fn config_path(&self) -> PathBuf {
        self.state.join(CONFIG_FILE)
    }

    /// The path of the signature over config, rules, profiles and pins.
    #[must_use]
    pub fn signed_path(&self) -> PathBuf {
        self.state.join(SIGNED_FILE)
    }

    /// Reads the device key.
    ///
    /// # Errors
    /// When there is none that may be used.
    pub fn key(&self) -> Result<DeviceKey, KeyError> {
        DeviceKey::load(&self.key_path(), self.owner)
    }

    /// Makes the device key.
    ///
    /// # Errors
    /// When there is something already, or it cannot be written.
    pub fn create_key(&self, random: [u8; 32]) -> Result<DeviceKey, KeyError> {
        DeviceKey::create(&self.key_path(), random)
    }

    /// Looks a workspace up.
    ///
    /// # Errors
    /// When the ids of workspaces are not to be trusted.
    pub fn find(
        &self,
        key: &DeviceKey,
        workspace: &Workspace,
    ) -> Result<Option<Located>, StoreError> {
        Ok(self.registry(key)?.find(&Place::of(workspace)))
    }

    /// What is remembered of a workspace that was found. What is lost or was changed gives a
    /// memory that is [`Memory::damaged`].
    #[must_use]
    pub fn memory(&self, key: &DeviceKey, id: WorkspaceId) -> Memory {
        match sealed::load::<Memory>(key, MEMORY_DOMAIN, &self.memory_path(id), MAX_MEMORY) {
            Ok(memory) if memory.workspace_id == id => memory,
            Ok(_) => Memory::lost(id, "it is that of another workspace".to_owned()),
            Err(error) => Memory::lost(id, error.to_string()),
        }
    }

    /// Writes what is to be remembered, unless something newer was remembered meanwhile.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn remember(
        &self,
        key: &DeviceKey,
        workspace: &Workspace,
        memory: &Memory,
    ) -> Result<(), StoreError> {
        let _lock = self.lock()?;
        let id = memory.workspace_id;
        let present = self.memory(key, id);
        if present.damaged.is_none()
            && (present == *memory || present.last_counter > memory.last_counter)
        {
            return Ok(());
        }
        // First, so that a known workspace always has a memory.
        sealed::store(key, MEMORY_DOMAIN, &self.memory_path(id), memory)?;
        self.register(key, workspace, id, Claim::Seen)
    }

    /// The bytes that were signed last, if they still are those.
    #[must_use]
    pub fn signed_text(&self, memory: &Memory) -> Option<Vec<u8>> {
        let bytes = read_plain(&self.text_path(memory.workspace_id), MAX_POLICY_BYTES).ok()?;
        (memory.last_content == Some(ContentHash::of(&bytes))).then_some(bytes)
    }

    /// Verifies the policy of a workspace, with what is remembered of it, and remembers what came
    /// out. `random` becomes the id of a workspace that has none.
    #[must_use]
    pub fn verify(&self, workspace: &Workspace, random: [u8; 16]) -> Checked {
        let fresh = WorkspaceId::from_random(random);
        let key = self.key();
        let mut trouble = Vec::new();
        let (located, memory) = match self.recall(workspace, &key, fresh) {
            Ok(recalled) => recalled,
            Err(error) => {
                let lost = Memory::lost(fresh, error.to_string());
                trouble.push(error);
                (None, lost)
            }
        };
        let verification = verify(workspace, key.as_ref(), &memory);
        if let Ok(key) = &key
            && verification.memory != memory
            && let Err(error) = self.remember(key, workspace, &verification.memory)
        {
            trouble.push(error);
        }
        Checked { verification, located, trouble }
    }

    /// Verifies the policy of a workspace and writes nothing, not even what would be remembered.
    #[must_use]
    pub fn inspect(&self, workspace: &Workspace) -> Verification {
        // An id that no signature has: a workspace that is not known has none that binds it.
        let fresh = WorkspaceId::from_random([0; 16]);
        let key = self.key();
        let memory = match self.recall(workspace, &key, fresh) {
            Ok((_, memory)) => memory,
            Err(error) => Memory::lost(fresh, error.to_string()),
        };
        verify(workspace, key.as_ref(), &memory)
    }

    /// What is remembered of a workspace, and where it was found.
    fn recall(
        &self,
        workspace: &Workspace,
        key: &Result<DeviceKey, KeyError>,
        fresh: WorkspaceId,
    ) -> Result<(Option<Located>, Memory), StoreError> {
        let Ok(key) = key else { return Ok(self.unchecked(workspace, fresh)) };
        Ok(match self.find(key, workspace)? {
            Some(located) => (Some(located), self.expected(key, located)),
            None => (None, Memory::fresh(fresh)),
        })
    }

    /// What is remembered of a workspace; nothing can be, where a link makes it two.
    fn expected(&self, key: &DeviceKey, located: Located) -> Memory {
        match located.how {
            How::Confused => {
                let why = "another workspace was known by this name, and a link stands there now";
                Memory::lost(located.id, why.to_owned())
            }
            _ => self.memory(key, located.id),
        }
    }

    /// Signs a draft, and remembers it. Where what is remembered is lost or was changed, the
    /// workspace gets the id `random`, so that no older signature can come back.
    ///
    /// # Errors
    /// When there is no key, the policy or the moment is not right, or nothing can be written.
    pub fn sign(
        &self,
        workspace: &Workspace,
        draft: &Draft,
        request: &Request,
        random: [u8; 16],
    ) -> Result<Stamped, StampError> {
        crate::sign::permitted(request)?;
        let key = self.key()?;
        let _lock = self.lock()?;
        let fresh = WorkspaceId::from_random(random);
        let memory = match self.find(&key, workspace) {
            Ok(Some(located)) => {
                let memory = self.expected(&key, located);
                if memory.damaged.is_some() { Memory::fresh(fresh) } else { memory }
            }
            Ok(None) => Memory::fresh(fresh),
            Err(StoreError::Registry { path, .. }) => {
                let aside = path.with_extension("json.damaged");
                std::fs::rename(&path, &aside).map_err(|error| StoreError::Io {
                    action: "move away",
                    path,
                    error,
                })?;
                Memory::fresh(fresh)
            }
            Err(error) => return Err(error.into()),
        };
        let signed = sign(workspace, &key, &memory, draft, request)?;
        let id = memory.workspace_id;
        sealed::store(&key, MEMORY_DOMAIN, &self.memory_path(id), &signed.memory)
            .map_err(StoreError::from)?;
        self.register(&key, workspace, id, Claim::Signed)?;
        let mut trouble = Vec::new();
        if let Err(error) = StagedFile::replace(&self.text_path(id), 0o600, draft.text().as_bytes())
        {
            trouble.push(error.into());
        }
        Ok(Stamped { signed, trouble })
    }

    /// Verifies the signed set and says which switches hold.
    #[must_use]
    pub fn settings(&self) -> Settings {
        let key = self.key();
        let set = signed_set::verify(&self.state, key.as_ref());
        let switches = Switches::resolve(&set);
        let mut trouble = None;
        if let Ok(key) = &key
            && set.advanced
        {
            trouble = signed_set::remember(&self.state, key, &set.memory).err();
        }
        Settings { set, switches, trouble: trouble.map(StoreError::from) }
    }

    /// Signs config, rules, profiles and pins.
    ///
    /// # Errors
    /// When there is no key, the moment is not right, or a file was changed since it was shown.
    pub fn sign_set(&self, draft: &SetDraft, request: &Request) -> Result<(), SetStampError> {
        crate::sign::permitted(request).map_err(SetError::from)?;
        let key = self.key()?;
        let _lock = self.lock()?;
        signed_set::sign(&self.state, &key, draft, request)?;
        Ok(())
    }

    /// The workspaces that a policy was signed for, by their paths. Unchecked: whoever protects what
    /// lies in one of them protects more by each.
    #[must_use]
    pub fn workspaces(&self) -> Vec<PathBuf> {
        let registry = read_plain(&self.registry_path(), registry::MAX_BYTES).ok();
        let registry = registry.and_then(|bytes| sealed::peek::<Registry>(&bytes).ok());
        registry.iter().flat_map(Registry::paths).collect()
    }

    /// Without a key nothing can be believed; that a policy was signed is taken as said.
    fn unchecked(&self, workspace: &Workspace, fresh: WorkspaceId) -> (Option<Located>, Memory) {
        let registry = read_plain(&self.registry_path(), registry::MAX_BYTES).ok();
        let registry = registry.and_then(|bytes| sealed::peek::<Registry>(&bytes).ok());
        let located = registry.and_then(|registry| registry.find(&Place::of(workspace)));
        let memory = located.and_then(|located| {
            let bytes = read_plain(&self.memory_path(located.id), MAX_MEMORY).ok()?;
            sealed::peek::<Memory>(&bytes).ok()
        });
        (located, memory.unwrap_or_else(|| Memory::fresh(fresh)))
    }

    fn registry(&self, key: &DeviceKey) -> Result<Registry, StoreError> {
        let path = self.registry_path();
        match sealed::load::<Registry>(key, registry::DOMAIN, &path, registry::MAX_BYTES) {
            Ok(registry) if registry.is_known_version() => Ok(registry),
            Ok(_) => Err(StoreError::Registry { path, why: "of a later version".to_owned() }),
            Err(error) if error.is_missing() => Ok(Registry::default()),
            Err(error) => Err(StoreError::Registry { path, why: error.to_string() }),
        }
    }

    /// Writes down under which id a workspace is known; the lock is held.
    fn register(
        &self,
        key: &DeviceKey,
        workspace: &Workspace,
        id: WorkspaceId,
        claim: Claim,
    ) -> Result<(), StoreError> {
        let mut registry = self.registry(key)?;
        let place = Place::of(workspace);
        if claim == Claim::Signed {
            registry.forget_elsewhere(&place, id);
        }
        let changed = registry.add(place, id, claim == Claim::Signed);
        if !changed && claim != Claim::Signed {
            return Ok(());
        }
        let path = self.registry_path();
        if registry.is_full() {
            return Err(StoreError::Full(path));
        }
        Ok(sealed::store(key, registry::DOMAIN, &path, &registry)?)
    }

    fn lock(&self) -> Result<File, StoreError> {
        let folder = self.state.join(FOLDER);
        let failed =
            |action, path: &Path, error| StoreError::Io { action, path: path.to_owned(), error };
        match DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(failed("make", &folder, error));
            }
            _ => {}
        }
        let path = folder.join(LOCK);
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(i32::try_from(flags.bits()).unwrap_or(0))
            .open(&path)
            .map_err(|error| failed("open", &path, error))?;
        match lock(&file, PATIENCE) {
            Ok(true) => Ok(file),
            Ok(false) => Err(StoreError::Locked(path)),
            Err(error) => Err(failed("lock", &path, error)),
        }
    }

    fn registry_path(&self) -> PathBuf {
        self.state.join(FOLDER).join(REGISTRY)
    }

    fn memory_path(&self, id: WorkspaceId) -> PathBuf {
        self.state.join(FOLDER).join(format!("{id}.json"))
    }

    fn text_path(&self, id: WorkspaceId) -> PathBuf {
        self.state.join(FOLDER).join(format!("{id}.md"))
    }
}
