//! `signed.json`: one signature over config, rules, profiles and pins, with a counter of its own.
//!
//! What was verified is what is used: the bytes that were hashed are handed out.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use rustix::fs::Dir;
use serde::{Deserialize, Serialize};
use wardkeep_evidence::bundle::BundleError;

use crate::config::{Config, ConfigError};
use crate::files::{Unread, open_folder, read_below, read_plain};
use crate::hash::ContentHash;
use crate::key::DeviceKey;
use crate::sealed::{self, SealedError};
use crate::sign::{Request, SignError, permitted};
use crate::store::CONFIG_FILE;

/// The signature over config, rules, profiles and pins, in the state directory.
pub const SIGNED_FILE: &str = "signed.json";
/// What is remembered of it, in the state directory.
const MEMORY_FILE: &str = "signed-memory.json";
/// Files that belong to the set where they exist.
const FILES: [&str; 3] = ["config.toml", "rules.cedar", "pins.json"];
/// Folders of which every file belongs to the set.
const FOLDERS: [&str; 3] = ["rules", "profiles", "pins"];
/// Most files of the set.
const MAX_FILES: usize = 1000;
/// Largest file of the set.
const MAX_BYTES: u64 = 4 << 20;
const MAX_SIGNED: u64 = 1 << 20;
const DOMAIN: &str = "signed set v1";
const MEMORY_DOMAIN: &str = "signed set memory v1";
const VERSION: u32 = 1;

/// What is remembered of the set, so that an older or missing one is noticed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetMemory {
    /// Counter of the newest set that was accepted; 0 if none was.
    pub last_counter: u64,
    /// Whether `strict_policy` was on in it.
    pub strict_policy: bool,
    /// Whether this could not be read back as it was written.
    #[serde(skip)]
    pub damaged: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    version: u32,
    counter: u64,
    signed_at: String,
    files: BTreeMap<String, ContentHash>,
}

/// How a file differs from what was signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It has other bytes.
    Modified,
    /// It is gone.
    Removed,
    /// It is new.
    Added,
    /// It cannot be read, or is no plain file.
    Unreadable,
}

/// A file that differs from what was signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Its name below the state directory.
    pub name: String,
    /// How it differs.
    pub kind: Kind,
}

/// What the set is found to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetState {
    /// Signed and unchanged.
    Valid,
    /// Never signed.
    Unsigned,
    /// Files differ from what was signed.
    Changed(Vec<Change>),
    /// It was signed before, and the signature is gone.
    Vanished,
    /// An older signature than the last one.
    Rollback {
        /// Its counter.
        found: u64,
        /// The newest counter that was accepted.
        last: u64,
    },
    /// The signature cannot be read or was not made with this key.
    Corrupted(String),
    /// There is no key to check with.
    NoKey(String),
}

impl SetState {
    /// A stable word for output that programs read.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Unsigned => "unsigned",
            Self::Changed(_) => "changed",
            Self::Vanished => "signature_missing",
            Self::Rollback { .. } => "rollback",
            Self::Corrupted(_) => "corrupted",
            Self::NoKey(_) => "no_key",
        }
    }
}

/// The outcome of a verification.
#[derive(Debug, Clone)]
pub struct SetVerification {
    /// The state.
    pub state: SetState,
    /// When it was signed; believed only where the state is `Valid`.
    pub signed_at: Option<String>,
    /// Its counter; believed only where the state is `Valid`.
    pub counter: Option<u64>,
    /// What is to be remembered from now on.
    pub memory: SetMemory,
    /// Whether that is more than before.
    pub advanced: bool,
    /// The files as they were read, signed or not.
    pub files: BTreeMap<String, Vec<u8>>,
}

impl SetVerification {
    /// A file's bytes, if all of the set is valid.
    #[must_use]
    pub fn signed(&self, name: &str) -> Option<&[u8]> {
        match self.state {
            SetState::Valid => self.files.get(name).map(Vec::as_slice),
            _ => None,
        }
    }
}

/// Why the set cannot be signed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetError {
    /// The moment is not right.
    #[error(transparent)]
    Sign(#[from] SignError),
    /// A file cannot be read.
    #[error("`{name}` {unread}")]
    Unread {
        /// Its name below the state directory.
        name: String,
        /// Why.
        unread: Unread,
    },
    /// The state directory cannot be read.
    #[error("cannot read `{path}` ({error}): fix its owner or mode")]
    Io {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// A name is not text.
    #[error("the name `{0}` is not UTF-8 text: rename the file")]
    Name(String),
    /// There are too many files.
    #[error("there are more than {MAX_FILES} files to sign: remove those that are not in use")]
    TooMany,
    /// The config cannot be read.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A file was changed after it was shown.
    #[error("`{0}` was changed since it was shown: look at it again, then sign")]
    ChangedSince(String),
    /// The signature could not be written.
    #[error(transparent)]
    Write(#[from] BundleError),
}

/// The files of the set as they are now, to be shown and then signed.
#[derive(Debug, Clone, Default)]
pub struct SetDraft {
    files: BTreeMap<String, Vec<u8>>,
}

impl SetDraft {
    /// Reads every file of the set below `state`.
    ///
    /// # Errors
    /// When one cannot be read or is no plain file, or there are too many.
    pub fn read(state: &Path) -> Result<Self, SetError> {
        let failed = |error| SetError::Io { path: state.to_owned(), error };
        let folder = open_folder(state).map_err(failed)?;
        let mut files = BTreeMap::new();
        for name in names(state)? {
            match read_below(&folder, &name, MAX_BYTES) {
                Ok(bytes) => {
                    files.insert(name, bytes);
                }
                Err(Unread::Missing) => {}
                Err(unread) => return Err(SetError::Unread { name, unread }),
            }
        }
        Ok(Self { files })
    }

    /// The files, by their names.
    #[must_use]
    pub fn files(&self) -> &BTreeMap<String, Vec<u8>> {
        &self.files
    }
}

/// Signs a draft, if the files still have the bytes that were shown.
///
/// # Errors
/// When no person is there, the process is confined, the config cannot be read, a file was changed,
/// or the signature cannot be written.
pub fn sign(
    state: &Path,
    key: &DeviceKey,
    draft: &SetDraft,
    request: &Request,
) -> Result<SetMemory, SetError> {
    permitted(request)?;
    let config = draft.files.get(CONFIG_FILE).map(|bytes| Config::parse(bytes)).transpose()?;
    let strict_policy = config.is_some_and(|config| config.security.strict_policy);
    let present = SetDraft::read(state)?;
    let differing = draft.files.keys().chain(present.files.keys());
    if let Some(name) =
        differing.into_iter().find(|name| draft.files.get(*name) != present.files.get(*name))
    {
        return Err(SetError::ChangedSince(name.clone()));
    }
    let memory = memory(state, key);
    let there = load(state, key).map_or(0, |body| body.counter);
    // Where the memory is lost, the time is above every counter that was ever given.
    let floor = match memory.damaged {
        Some(_) => u64::try_from(request.now.unix()).unwrap_or(0),
        None => memory.last_counter,
    };
    let counter = floor.max(there).checked_add(1).ok_or(SignError::Counter)?;
    let body = Body {
        version: VERSION,
        counter,
        signed_at: request.now.to_string(),
        files: draft
            .files
            .iter()
            .map(|(name, bytes)| (name.clone(), ContentHash::of(bytes)))
            .collect(),
    };
    sealed::store(key, DOMAIN, &state.join(SIGNED_FILE), &body)?;
    let memory = SetMemory { last_counter: counter, strict_policy, damaged: None };
    remember(state, key, &memory)?;
    Ok(memory)
}

/// Verifies the set below `state`; the caller writes [`SetVerification::memory`] with
/// [`remember`] if it changed.
#[must_use]
pub fn verify<E: std::fmt::Display>(state: &Path, key: Result<&DeviceKey, &E>) -> SetVerification {
    let mut found = SetVerification {
        state: SetState::Unsigned,
        signed_at: None,
        counter: None,
        memory: SetMemory::default(),
        advanced: false,
        files: BTreeMap::new(),
    };
    let changes = read_files(state, &mut found.files);
    let key = match key {
        Ok(key) => key,
        Err(error) => {
            found.memory = unchecked_memory(state);
            found.state = SetState::NoKey(error.to_string());
            return found;
        }
    };
    found.memory = memory(state, key);
    found.state = judge(state, key, changes, &mut found);
    if found.state == SetState::Valid
        && let Some(counter) = found.counter
        && counter > found.memory.last_counter
    {
        // A crash came between the signature and the memory of it.
        found.advanced = true;
        let config = found.files.get(CONFIG_FILE).and_then(|bytes| Config::parse(bytes).ok());
        found.memory.strict_policy = config.is_some_and(|config| config.security.strict_policy);
        found.memory.last_counter = counter;
    }
    found
}

/// Writes what is to be remembered of the set.
///
/// # Errors
/// When it cannot be written.
pub fn remember(state: &Path, key: &DeviceKey, memory: &SetMemory) -> Result<(), BundleError> {
    sealed::store(key, MEMORY_DOMAIN, &state.join(MEMORY_FILE), memory)
}

fn judge(
    state: &Path,
    key: &DeviceKey,
    mut changes: Vec<Change>,
    found: &mut SetVerification,
) -> SetState {
    let body = match load(state, key) {
        Ok(body) => body,
        Err(error) if error.is_missing() => {
            let ever = found.memory.last_counter > 0 || found.memory.damaged.is_some();
            return if ever { SetState::Vanished } else { SetState::Unsigned };
        }
        Err(error) => return SetState::Corrupted(error.to_string()),
    };
    found.counter = Some(body.counter);
    found.signed_at = Some(body.signed_at.clone());
    if let Some(why) = &found.memory.damaged {
        return SetState::Corrupted(format!("what was remembered of it is gone or changed: {why}"));
    }
    let last = found.memory.last_counter;
    if body.counter < last {
        return SetState::Rollback { found: body.counter, last };
    }
    changes.retain(|change| change.kind == Kind::Unreadable);
    for (name, bytes) in &found.files {
        match body.files.get(name) {
            Some(hash) if hash.same(&ContentHash::of(bytes)) => {}
            Some(_) => changes.push(Change { name: name.clone(), kind: Kind::Modified }),
            None => changes.push(Change { name: name.clone(), kind: Kind::Added }),
        }
    }
    for name in body.files.keys() {
        let told = changes.iter().any(|change| change.name == *name);
        if !found.files.contains_key(name) && !told {
            changes.push(Change { name: name.clone(), kind: Kind::Removed });
        }
    }
    if changes.is_empty() { SetState::Valid } else { SetState::Changed(changes) }
}

/// Reads what can be read; what cannot is a change.
fn read_files(state: &Path, files: &mut BTreeMap<String, Vec<u8>>) -> Vec<Change> {
    let unreadable = |name: &str| Change { name: name.to_owned(), kind: Kind::Unreadable };
    let (Ok(folder), Ok(names)) = (open_folder(state), names(state)) else {
        return vec![unreadable(".")];
    };
    let mut changes = Vec::new();
    for name in names {
        match read_below(&folder, &name, MAX_BYTES) {
            Ok(bytes) => {
                files.insert(name, bytes);
            }
            Err(Unread::Missing) => {}
            Err(_) => changes.push(unreadable(&name)),
        }
    }
    changes
}

/// Names of the files that belong to the set, whether they can be read or not.
fn names(state: &Path) -> Result<Vec<String>, SetError> {
    let mut names: Vec<String> = FILES.iter().map(|name| (*name).to_owned()).collect();
    let failed = |error| SetError::Io { path: state.to_owned(), error };
    let folder = open_folder(state).map_err(failed)?;
    for inner in FOLDERS {
        let flags = rustix::fs::OFlags::RDONLY
            | rustix::fs::OFlags::DIRECTORY
            | rustix::fs::OFlags::NOFOLLOW
            | rustix::fs::OFlags::CLOEXEC;
        let opened =
            match rustix::fs::openat(folder.as_fd(), inner, flags, rustix::fs::Mode::empty()) {
                Ok(opened) => opened,
                Err(rustix::io::Errno::NOENT) => continue,
                // Something else stands there: it is named, and reading it fails.
                Err(_) => {
                    names.push(inner.to_owned());
                    continue;
                }
            };
        for entry in Dir::read_from(&opened).map_err(|errno| failed(errno.into()))? {
            let entry = entry.map_err(|errno| failed(errno.into()))?;
            match entry.file_name().to_str() {
                Ok("." | "..") => {}
                Ok(name) => names.push(format!("{inner}/{name}")),
                Err(_) => {
                    let name = entry.file_name().to_bytes().escape_ascii();
                    return Err(SetError::Name(format!("{inner}/{name}")));
                }
            }
            if names.len() > MAX_FILES {
                return Err(SetError::TooMany);
            }
        }
    }
    names.sort();
    Ok(names)
}

fn load(state: &Path, key: &DeviceKey) -> Result<Body, SealedError> {
    let body: Body = sealed::load(key, DOMAIN, &state.join(SIGNED_FILE), MAX_SIGNED)?;
    if body.version != VERSION {
        return Err(SealedError::Malformed(format!("version {} is not known", body.version)));
    }
    Ok(body)
}

fn memory(state: &Path, key: &DeviceKey) -> SetMemory {
    match sealed::load::<SetMemory>(key, MEMORY_DOMAIN, &state.join(MEMORY_FILE), MAX_SIGNED) {
        Ok(memory) => memory,
        // Without a signature either, nothing was ever signed.
        Err(error) if error.is_missing() && !state.join(SIGNED_FILE).exists() => {
            SetMemory::default()
        }
        Err(error) => SetMemory { damaged: Some(error.to_string()), ..SetMemory::default() },
    }
}

/// Without a key nothing can be believed; that strictness was wanted is taken as said.
fn unchecked_memory(state: &Path) -> SetMemory {
    read_plain(&state.join(MEMORY_FILE), MAX_SIGNED)
        .ok()
        .and_then(|bytes| sealed::peek(&bytes).ok())
        .unwrap_or_default()
}
