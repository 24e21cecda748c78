//! Seals in motion: keys that move on, one seal an epoch, the same bytes after a crash.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::ops::ControlFlow;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{IFlags, OFlags, ioctl_getflags, ioctl_setflags};
use serde::{Deserialize, Serialize};
use wardkeep_evidence::bundle::{BundleError, StagedFile};
use wardkeep_evidence::checkpoint::Checkpoint;
use wardkeep_evidence::hash::{decode_hex, encode_hex};
use wardkeep_evidence::merkle::{Frontier, TreeHash};
use wardkeep_evidence::note::Note;
use wardkeep_evidence::seal::{
    EpochKey, Frame, LogPublic, Seal, SealSigningError, ends_within_line, frame, is_due,
    next_slots, sign_seal, slot_of, split_frames,
};
use zeroize::Zeroizing;

use crate::journal::{Journal, JournalError, Position, entry_of, scan};

/// Secret of the log key, in the state directory.
const LOG_KEY: &str = "log_key";
/// Secret of the present epoch, and how far it is, in the state directory.
const EPOCH_KEY: &str = "epoch_key";
/// The log's public keys, in the state directory.
pub const LOG_PUBLIC: &str = "log.pub";
/// The seals, in the state directory.
pub const CHECKPOINTS: &str = "checkpoints";
/// Seals with cosignatures, in the state directory.
pub const COSIGNED: &str = "cosigned";
/// Cache of the tree's leaves, in the state directory.
pub(crate) const LEAVES: &str = "leaves";

/// Why no seal can be made. The journal goes on without.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SealerError {
    /// The file system refused.
    #[error("cannot {action} `{path}`: {error}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// A key is gone or damaged.
    #[error(
        "`{path}` {what}: restore it from a backup, or start a new log in another state directory"
    )]
    Key {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The journal has fewer entries than the last seal covers.
    #[error(
        "the journal has {found} entries, and {sealed} were sealed: entries are lost; see `wardkeep evidence verify`"
    )]
    Truncated {
        /// Entries under the last seal.
        sealed: u64,
        /// Entries in the journal.
        found: u64,
    },
    /// The journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] BundleError),
    /// The seal could not be signed.
    #[error(transparent)]
    Sign(#[from] SealSigningError),
    /// No randomness for a key.
    #[error("the system gives no random bytes: {0}")]
    Random(String),
}

type Result<T> = std::result::Result<T, SealerError>;

/// What the epoch file holds.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EpochState {
    v: u32,
    epoch: u64,
    seed: Zeroizing<String>,
    epoch0: String,
    /// Last time slot that is sealed.
    slot: Option<u64>,
    /// Entries under the tree so far.
    size: u64,
    /// Nodes of the tree's frontier.
    nodes: Vec<String>,
    /// Where the entries after these begin.
    position: Position,
    /// A seal that was decided on and perhaps not written.
    pending: Option<Pending>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pending {
    from: u64,
    to: u64,
}

/// Makes the seals of one log.
pub struct Sealer {
    folder: PathBuf,
    public: LogPublic,
    log_seed: Zeroizing<[u8; 32]>,
    epoch: EpochKey,
    slot: Option<u64>,
    frontier: Frontier,
    position: Position,
    pending: Option<Pending>,
    append_only: bool,
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Sealer")
            .field("folder", &self.folder)
            .field("origin", &self.public.origin())
            .field("epoch", &self.epoch.epoch())
            .finish_non_exhaustive()
    }
}

impl Sealer {
    /// Opens the keys in the state directory `folder`, making new ones if there are none at all.
    /// The journal's lock is held, so that two processes do not make two pairs.
    ///
    /// # Errors
    /// When a key is missing or damaged, or cannot be written.
    pub(crate) fn open(folder: &Path, append_only: bool) -> Result<Self> {
        let (log_path, epoch_path) = (folder.join(LOG_KEY), folder.join(EPOCH_KEY));
        // A log key alone is what a crash while making the keys leaves: nothing is sealed yet.
        if !exists(&epoch_path)? && !exists(&folder.join(CHECKPOINTS))? {
            create_keys(folder)?;
        }
        let log_text = read_secret(&log_path)?;
        let log_seed = decode_hex(log_text.trim_end().as_bytes())
            .map(Zeroizing::new)
            .ok_or_else(|| damaged(&log_path, "is not a key"))?;
        let state_text = read_secret(&epoch_path)?;
        let state: EpochState = serde_json::from_str(&state_text)
            .map_err(|error| damaged(&epoch_path, &format!("is damaged ({error})")))?;
        let sealer = Self::restore(folder, &epoch_path, log_seed, &state, append_only)?;
        let public_path = folder.join(LOG_PUBLIC);
        let text = format!("{}\n", sealer.public);
        if std::fs::read_to_string(&public_path).ok().as_deref() != Some(&text) {
            StagedFile::replace(&public_path, 0o644, text.as_bytes())?;
        }
        Ok(sealer)
    }

    /// The log's public keys.
    #[must_use]
    pub fn public(&self) -> &LogPublic {
        &self.public
    }

    /// Whether a seal is due at `now` (seconds since 1970).
    #[must_use]
    pub fn is_due(&self, now: u64) -> bool {
        self.pending.is_some() || is_due(self.slot, slot_of(now))
    }

    /// When the next seal is due, in seconds since 1970.
    #[must_use]
    pub fn next_due(&self) -> u64 {
        self.slot.map_or(0, |slot| (slot + 1) * wardkeep_evidence::seal::SLOT_SECONDS)
    }

    /// Entries under the last seal.
    #[must_use]
    pub fn sealed(&self) -> u64 {
        self.frontier.size()
    }

    /// Makes the seal that is due at `now`, if one is; other processes are kept out by the
    /// journal's lock, so that an epoch has exactly one.
    ///
    /// # Errors
    /// When the journal lacks sealed entries, or a file cannot be written.
    pub fn seal(&mut self, journal: &Journal, now: u64) -> Result<Option<Seal>> {
        let sealed = journal.while_locked(|entries, _| self.seal_locked(journal, now, entries))?;
        if let Err(SealerError::Truncated { sealed, found }) = &sealed {
            journal.report_lost(*sealed, *found)?;
        }
        sealed
    }

    fn seal_locked(&mut self, journal: &Journal, now: u64, entries: u64) -> Result<Option<Seal>> {
        // Another process may have sealed since this one looked.
        let reread = Self::open(&self.folder, self.append_only)?;
        *self = reread;
        if !self.is_due(now) {
            return Ok(None);
        }
        if entries < self.frontier.size() {
            return Err(SealerError::Truncated { sealed: self.frontier.size(), found: entries });
        }
        if self.pending.is_none() {
            self.take_in(journal)?;
            let (from, to) = next_slots(self.slot, slot_of(now));
            self.pending = Some(Pending { from, to });
            self.store()?;
        }
        self.finish_pending().map(Some)
    }

    /// Reads the entries since the last seal into the tree.
    fn take_in(&mut self, journal: &Journal) -> Result<()> {
        let mut leaves = Vec::new();
        self.position = scan(journal.folder(), self.position, |_, line| {
            if let Some(entry) = entry_of(line) {
                let leaf = entry.leaf();
                leaves.extend_from_slice(&leaf.0);
                self.frontier.push(leaf);
            }
            ControlFlow::Continue(())
        })?;
        self.cache_leaves(&leaves);
        Ok(())
    }

    /// Keeps the leaves for proofs; a failure costs only the cache.
    fn cache_leaves(&self, leaves: &[u8]) {
        let before = self.frontier.size() * 32 - leaves.len() as u64;
        let write = || -> io::Result<()> {
            let mut file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .custom_flags(no_follow())
                .open(self.folder.join(LEAVES))?;
            if file.metadata()?.len() < before {
                return file.set_len(0);
            }
            file.set_len(before)?;
            file.seek(SeekFrom::End(0))?;
            file.write_all(leaves)
        };
        let _ = write();
    }

    /// Writes the pending seal unless it stands there already, then moves the key on.
    fn finish_pending(&mut self) -> Result<Seal> {
        let pending = self.pending.take().unwrap_or(Pending { from: 0, to: 0 });
        let log_key = self.public.signing_key(&self.log_seed)?;
        let (size, root) = (self.frontier.size(), self.frontier.root());
        let slots = (pending.from, pending.to);
        let note = sign_seal(&self.public, &log_key, &self.epoch, slots, size, root)?;
        let path = self.folder.join(CHECKPOINTS);
        let written = last_seal(&path)?.is_some_and(|(_, seal)| seal.epoch == self.epoch.epoch());
        if !written {
            self.append_note(&path, &note)?;
        }
        let (key, next) = (self.epoch.public(), self.epoch.next());
        let seal = Seal { epoch: self.epoch.epoch(), slots, size, root, key, next: next.public() };
        self.epoch = next;
        self.slot = Some(pending.to);
        self.store()?;
        Ok(seal)
    }

    fn append_note(&self, path: &Path, note: &Note) -> Result<()> {
        let failed = |error| SealerError::Io { action: "append to", path: path.to_owned(), error };
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(no_follow())
            .open(path)
            .map_err(failed)?;
        if self.append_only {
            let _ = ioctl_getflags(&file)
                .and_then(|flags| ioctl_setflags(&file, flags | IFlags::APPEND));
        }
        let mut text = frame(note);
        if ends_within_line(&read_tail(&mut file, 1).map_err(failed)?) {
            text.insert(0, '\n');
        }
        file.write_all(text.as_bytes()).and_then(|()| file.sync_data()).map_err(failed)
    }

    fn restore(
        folder: &Path,
        path: &Path,
        log_seed: Zeroizing<[u8; 32]>,
        state: &EpochState,
        append_only: bool,
    ) -> Result<Self> {
        let bad = || damaged(path, "is damaged");
        if state.v != 1 {
            return Err(damaged(path, "was written by another version"));
        }
        let seed = decode_hex(state.seed.as_bytes()).map(Zeroizing::new).ok_or_else(bad)?;
        let epoch0 = decode_hex(state.epoch0.as_bytes()).ok_or_else(bad)?;
        let nodes: Option<Vec<TreeHash>> =
            state.nodes.iter().map(|node| TreeHash::from_base64(node).ok()).collect();
        let frontier =
            nodes.and_then(|nodes| Frontier::from_parts(state.size, nodes)).ok_or_else(bad)?;
        Ok(Self {
            folder: folder.to_owned(),
            public: LogPublic { log: public_of(&log_seed), epoch0 },
            log_seed,
            epoch: EpochKey::restore(state.epoch, &seed),
            slot: state.slot,
            frontier,
            position: state.position,
            pending: state.pending,
            append_only,
        })
    }

    /// Replaces the epoch file and, as far as a file system lets one, erases the old seed.
    fn store(&self) -> Result<()> {
        let path = self.folder.join(EPOCH_KEY);
        let old = OpenOptions::new().write(true).custom_flags(no_follow()).open(&path).ok();
        write_epoch(&path, &self.epoch, &self.public.epoch0, self)?;
        if let Some(mut old) = old {
            let erase = |file: &mut File| -> io::Result<()> {
                let length = usize::try_from(file.metadata()?.len()).unwrap_or(0).min(1 << 20);
                file.write_all(&vec![0; length])?;
                file.sync_data()
            };
            let _ = erase(&mut old);
        }
        Ok(())
    }
}

fn write_epoch(path: &Path, epoch: &EpochKey, epoch0: &[u8; 32], sealer: &Sealer) -> Result<()> {
    let state = EpochState {
        v: 1,
        epoch: epoch.epoch(),
        seed: Zeroizing::new(encode_hex(epoch.seed())),
        epoch0: encode_hex(epoch0),
        slot: sealer.slot,
        size: sealer.frontier.size(),
        nodes: sealer.frontier.nodes().iter().map(TreeHash::to_base64).collect(),
        position: sealer.position,
        pending: sealer.pending,
    };
    let text = Zeroizing::new(serde_json::to_vec(&state).unwrap_or_default());
    StagedFile::replace(path, 0o600, &text)?;
    Ok(())
}

/// Makes both keys. The epoch file is written last: only with it the log exists.
fn create_keys(folder: &Path) -> Result<()> {
    let mut log_seed = Zeroizing::new([0u8; 32]);
    let mut epoch_seed = Zeroizing::new([0u8; 32]);
    for seed in [&mut log_seed, &mut epoch_seed] {
        getrandom::fill(&mut seed[..]).map_err(|error| SealerError::Random(error.to_string()))?;
    }
    let text = Zeroizing::new(format!("{}\n", encode_hex(&log_seed[..])));
    StagedFile::replace(&folder.join(LOG_KEY), 0o600, text.as_bytes())?;
    let epoch = EpochKey::first(&epoch_seed);
    let sealer = Sealer {
        folder: folder.to_owned(),
        public: LogPublic { log: public_of(&log_seed), epoch0: epoch.public() },
        log_seed,
        epoch,
        slot: None,
        frontier: Frontier::new(),
        position: Position::START,
        pending: None,
        append_only: false,
    };
    sealer.store()
}

/// Public key of an Ed25519 seed.
fn public_of(seed: &[u8; 32]) -> [u8; 32] {
    // An epoch key is an Ed25519 key like any other; only its seed moves on.
    EpochKey::first(seed).public()
}

/// The newest seal in a `checkpoints` file, as a note and as what it says.
///
/// # Errors
/// When the file cannot be read.
pub fn last_seal(path: &Path) -> Result<Option<(Note, Seal)>> {
    let failed = |error| SealerError::Io { action: "read", path: path.to_owned(), error };
    let mut options = OpenOptions::new();
    let mut file = match options.read(true).custom_flags(no_follow()).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    // A seal is under 1 KiB; behind the last one there can be a torn one.
    let tail = read_tail(&mut file, 1 << 16).map_err(failed)?;
    let newest = split_frames(&tail).into_iter().rev().find_map(|frame| {
        let Frame::Note { text, .. } = frame else { return None };
        let note = Note::parse(text).ok()?;
        let seal = Seal::from_checkpoint(&Checkpoint::parse(&note.text).ok()?).ok()?;
        Some((note, seal))
    });
    Ok(newest)
}

fn read_tail(file: &mut File, window: u64) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(window)))?;
    let mut bytes = Vec::new();
    file.take(window).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn exists(path: &Path) -> Result<bool> {
    path.try_exists().map_err(|error| SealerError::Io {
        action: "look for",
        path: path.to_owned(),
        error,
    })
}

fn damaged(path: &Path, what: &str) -> SealerError {
    SealerError::Key { path: path.to_owned(), what: what.to_owned() }
}

/// Reads a secret file: no link, ours, and nobody else may read it.
fn read_secret(path: &Path) -> Result<Zeroizing<String>> {
    use std::os::unix::fs::MetadataExt as _;
    let failed = |error: io::Error| {
        if error.kind() == io::ErrorKind::NotFound {
            damaged(path, "is missing")
        } else {
            SealerError::Io { action: "read", path: path.to_owned(), error }
        }
    };
    let file =
        OpenOptions::new().read(true).custom_flags(no_follow()).open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() || metadata.mode() & 0o077 != 0 {
        return Err(damaged(path, "can be read by other users or is no plain file"));
    }
    let mut text = Zeroizing::new(String::new());
    file.take(1 << 20).read_to_string(&mut text).map_err(failed)?;
    Ok(text)
}

fn no_follow() -> i32 {
    i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or(0)
}
