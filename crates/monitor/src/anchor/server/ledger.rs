//! What a witness remembers: for each log the last checkpoint it cosigned, one file each.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use thiserror::Error;
use wardkeep_evidence::checkpoint::Checkpoint;
use wardkeep_evidence::merkle::{TreeHash, empty_root, verify_consistency};
use wardkeep_evidence::note::{Algorithm, Note, NoteError, Signature, SigningKey, VerifierKey};
use wardkeep_evidence::seal::{LogPublic, Seal};

use crate::anchor::request::AddCheckpoint;
use crate::anchor::shown;
use crate::anchor::storage::{self, Lock};

const LOCK: &str = "lock";
const VERSION: u32 = 1;
const MAX_FILE_BYTES: u64 = 2 * 1024 * 1024;
const NAME_LENGTH: usize = 64;

// Bounds what strangers can make us remember; a log takes about 2 KiB.
const MAX_LOGS: usize = 10_000;

/// A log a witness works for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownLog {
    /// The origin of its checkpoints.
    pub origin: String,
    /// The key that signs them.
    pub key: VerifierKey,
}

impl From<LogPublic> for KnownLog {
    fn from(log: LogPublic) -> Self {
        Self { origin: log.origin(), key: log.log_key() }
    }
}

/// What becomes of a request.
#[derive(Debug)]
pub(super) enum Verdict {
    Cosigned(Signature),
    UnknownLog,
    NotSigned,
    OldAboveNew,
    Conflict { held: u64 },
    BadProof,
    Full,
}

/// The memory of a witness.
#[derive(Debug)]
pub(super) struct Ledger {
    directory: PathBuf,
    logs: BTreeMap<String, Entry>,
    // Held as long as the ledger lives: two witnesses on one memory would undo each other.
    _lock: Lock,
}

#[derive(Debug, Clone, Default)]
struct Entry {
    // Missing for a log that is remembered, but no longer served.
    key: Option<VerifierKey>,
    // For a log that introduced itself.
    introduced: Option<LogPublic>,
    head: Option<Head>,
}

#[derive(Debug, Clone)]
struct Head {
    size: u64,
    root: TreeHash,
    note: Note,
}

/// The file of one log.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    version: u32,
    origin: String,
    introduced: Option<String>,
    note: String,
}

impl Ledger {
    /// Reads what was remembered. A file that cannot be read stops the witness, since it would
    /// otherwise accept an older state of that log.
    pub(super) fn open(directory: &Path, known: Vec<KnownLog>) -> Result<Self, LedgerError> {
        let fault = |source| LedgerError::Directory { path: directory.to_owned(), source };
        storage::private_directory(directory).map_err(fault)?;
        let lock = storage::lock_file(directory, LOCK).and_then(Lock::attempt).map_err(fault)?;
        let lock = lock.ok_or_else(|| LedgerError::InUse { path: directory.to_owned() })?;
        let mut logs = BTreeMap::new();
        for found in fs::read_dir(directory).map_err(fault)? {
            let name = found.map_err(fault)?.file_name();
            let Some(name) = name.to_str().filter(|name| is_log_file(name)) else { continue };
            let (origin, entry) = read_entry(&directory.join(name), name)?;
            logs.insert(origin, entry);
        }
        let mut ledger = Self { directory: directory.to_owned(), logs, _lock: lock };
        for log in known {
            ledger.logs.entry(log.origin).or_default().key = Some(log.key);
        }
        Ok(ledger)
    }

    /// The last checkpoint cosigned for a log.
    pub(super) fn head(&self, origin: &str) -> Option<&Note> {
        self.logs.get(origin)?.head.as_ref().map(|head| &head.note)
    }

    /// Judges a request by the rules of tlog-witness, in their order, and remembers the new
    /// checkpoint on disk before its signature is given out.
    pub(super) fn add(
        &mut self,
        request: &AddCheckpoint,
        introduced: Option<LogPublic>,
        key: &SigningKey,
        now: u64,
    ) -> Result<Verdict, LedgerError> {
        let AddCheckpoint { old, proof, note, checkpoint } = request;
        let mut entry = self.logs.get(&checkpoint.origin).cloned().unwrap_or_default();
        if entry.key.is_none()
            && let Some(log) = introduced
        {
            entry.key = Some(log.log_key());
            entry.introduced = Some(log);
        }
        let Some(log_key) = &entry.key else { return Ok(Verdict::UnknownLog) };
        if log_key.verify(note).is_err() {
            return Ok(Verdict::NotSigned);
        }
        if *old > checkpoint.size {
            return Ok(Verdict::OldAboveNew);
        }
        let held = entry.head.as_ref().map_or((0, empty_root()), |head| (head.size, head.root));
        let (held_size, held_root) = held;
        let same_size_other_root = checkpoint.size == held_size && checkpoint.root != held_root;
        if *old != held_size || same_size_other_root {
            return Ok(Verdict::Conflict { held: held_size });
        }
        let continues =
            verify_consistency(*old, &held_root, checkpoint.size, &checkpoint.root, proof);
        if continues.is_err() {
            return Ok(Verdict::BadProof);
        }
        if !self.logs.contains_key(&checkpoint.origin) && self.logs.len() >= MAX_LOGS {
            return Ok(Verdict::Full);
        }
        let signature = key.cosign(&note.text, now)?;
        entry.head = Some(cosigned_head(note, log_key, checkpoint, &signature)?);
        self.remember(&checkpoint.origin, entry)?;
        Ok(Verdict::Cosigned(signature))
    }

    fn remember(&mut self, origin: &str, entry: Entry) -> Result<(), LedgerError> {
        let stored = Stored {
            version: VERSION,
            origin: origin.to_owned(),
            introduced: entry.introduced.map(|log| log.to_string()),
            note: entry.head.as_ref().map(|head| head.note.to_string()).unwrap_or_default(),
        };
        let mut bytes = serde_json::to_vec(&stored).map_err(io::Error::from)?;
        bytes.push(b'\n');
        storage::replace(&self.directory, &file_name(origin), &bytes)?;
        self.logs.insert(origin.to_owned(), entry);
        Ok(())
    }
}

/// The head to remember: the signatures of the log that hold and ours, and none a stranger added.
fn cosigned_head(
    note: &Note,
    log_key: &VerifierKey,
    checkpoint: &Checkpoint,
    signature: &Signature,
) -> Result<Head, NoteError> {
    let epoch_key = Seal::from_checkpoint(checkpoint).ok().and_then(|seal| {
        let name = format!("{}/epoch", checkpoint.origin);
        VerifierKey::new(&name, Algorithm::Ed25519, seal.key).ok()
    });
    let mut kept = Note::new(note.text.clone())?;
    for key in std::iter::once(log_key).chain(&epoch_key) {
        let holds = |line: &&Signature| {
            let alone = Note { text: note.text.clone(), signatures: vec![(*line).clone()] };
            key.verify(&alone).is_ok()
        };
        if let Some(line) = note.signatures.iter().find(holds) {
            kept.push(line.clone())?;
        }
    }
    kept.push(signature.clone())?;
    Ok(Head { size: checkpoint.size, root: checkpoint.root, note: kept })
}

fn read_entry(path: &Path, name: &str) -> Result<(String, Entry), LedgerError> {
    let damaged = |reason: &dyn std::fmt::Display| LedgerError::Damaged {
        path: path.to_owned(),
        reason: shown(&reason.to_string()),
    };
    let bytes = storage::read(path, MAX_FILE_BYTES).map_err(|error| damaged(&error))?;
    let stored: Stored =
        serde_json::from_slice(&bytes.unwrap_or_default()).map_err(|error| damaged(&error))?;
    if stored.version != VERSION {
        return Err(damaged(&format!("it is of version {}", stored.version)));
    }
    if file_name(&stored.origin) != name {
        return Err(damaged(&"its name is not that of its log"));
    }
    let introduced = stored.introduced.as_deref().map(str::parse::<LogPublic>).transpose();
    let introduced = introduced.map_err(|error| damaged(&error))?;
    if introduced.is_some_and(|log| log.origin() != stored.origin) {
        return Err(damaged(&"its keys are those of another log"));
    }
    let note = Note::parse(&stored.note).map_err(|error| damaged(&error))?;
    let checkpoint = Checkpoint::parse(&note.text).map_err(|error| damaged(&error))?;
    if checkpoint.origin != stored.origin {
        return Err(damaged(&"its checkpoint is that of another log"));
    }
    let head = Head { size: checkpoint.size, root: checkpoint.root, note };
    let key = introduced.map(|log| log.log_key());
    Ok((stored.origin, Entry { key, introduced, head: Some(head) }))
}

/// The file a log is remembered in; an origin may hold anything, its hash may not.
fn file_name(origin: &str) -> String {
    let digest: [u8; 32] = Sha256::digest(origin).into();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn is_log_file(name: &str) -> bool {
    name.len() == NAME_LENGTH && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Why a witness cannot remember.
#[derive(Debug, Error)]
pub enum LedgerError {
    /// The folder cannot be used.
    #[error("the witness cannot use `{}`: {source}; give it a folder of its own", path.display())]
    Directory {
        /// The folder.
        path: PathBuf,
        /// What happened.
        source: io::Error,
    },
    /// Another witness uses the folder.
    #[error("another witness uses `{}`; stop it first", path.display())]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// A file is damaged.
    #[error(
        "`{}` is damaged: {reason}; restore it, or the witness would accept an older log",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A checkpoint could not be written.
    #[error("the witness cannot write its memory; try again later")]
    Write(#[from] io::Error),
    /// A checkpoint could not be cosigned.
    #[error("the witness cannot sign; check its clock")]
    Sign(#[from] NoteError),
}
