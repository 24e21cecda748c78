//! Seals in motion: keys that move on, one seal an epoch, the same bytes after a crash.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::ops::ControlFlow;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{IFlags, ioctl_getflags, ioctl_setflags};
use serde::{Deserialize, Serialize};
use wardkeep_evidence::bundle::{BundleError, StagedFile};
use wardkeep_evidence::checkpoint::Checkpoint;
use wardkeep_evidence::hash::{decode_hex, encode_hex};
use wardkeep_evidence::merkle::{Frontier, TreeHash, empty_root};
use wardkeep_evidence::note::Note;
use wardkeep_evidence::seal::{
    EpochKey, Frame, LogPublic, Seal, SealSigningError, ends_within_line, frame, frames, is_due,
    next_slots, sign_seal, slot_of,
};
use zeroize::Zeroizing;

use crate::files::{MAX_SEALS_BYTES, MAX_SMALL_BYTES, no_follow, open_plain, read_plain};
use crate::journal::{Found, Journal, JournalError, Position, entry_of, scan};

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
    /// Entries under the last seal.
    size: u64,
    /// Nodes of the frontier of the tree over these.
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
    /// Entries that it covers.
    size: Option<u64>,
}

impl Pending {
    fn is_possible(self) -> bool {
        self.from <= self.to && i64::try_from(self.to).is_ok()
    }
}

/// The journal's entries as leaves, read up to a position.
struct Taken {
    frontier: Frontier,
    position: Position,
    /// The leaves that were read, and how many stand before them.
    leaves: Vec<u8>,
    before: u64,
    /// The root that the tree had at the size that was asked for.
    base: Option<TreeHash>,
}

impl Taken {
    /// Reads on from a position, all or until there are `limit` entries.
    fn read(
        journal: &Journal,
        frontier: Frontier,
        position: Position,
        base: u64,
        limit: Option<u64>,
    ) -> Result<Self> {
        let before = frontier.size();
        let root = (before == base).then(|| frontier.root());
        let mut taken = Self { frontier, position, leaves: Vec::new(), before, base: root };
        if limit.is_some_and(|limit| limit <= before) {
            return Ok(taken);
        }
        taken.position = scan(journal.folder(), position, |_, line| {
            let Some(entry) = entry_of(line) else { return ControlFlow::Continue(()) };
            let leaf = entry.leaf();
            taken.leaves.extend_from_slice(&leaf.0);
            taken.frontier.push(leaf);
            if taken.frontier.size() == base {
                taken.base = Some(taken.frontier.root());
            }
            if limit == Some(taken.frontier.size()) {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        })?;
        Ok(taken)
    }
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
    // To be recorded once the journal is free.
    found: Option<Found>,
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
        erase_leftovers(folder);
        if Self::lacks_keys(folder) {
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
        let found = read_plain(&public_path, MAX_SMALL_BYTES).unwrap_or_default();
        if found != text.as_bytes() {
            let named = str::from_utf8(&found).ok().and_then(|text| text.trim_end().parse().ok());
            if named.is_some_and(|named: LogPublic| named != sealer.public) {
                return Err(damaged(&log_path, "is not the key that `log.pub` names"));
            }
            StagedFile::replace(&public_path, 0o644, text.as_bytes())?;
        }
        Ok(sealer)
    }

    /// Whether there is no trace of keys. A log key alone is what a crash while making the keys
    /// leaves: nothing is sealed yet.
    pub(crate) fn lacks_keys(folder: &Path) -> bool {
        [EPOCH_KEY, CHECKPOINTS, LOG_PUBLIC].iter().all(|name| {
            let found = fs::symlink_metadata(folder.join(name));
            found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
        })
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
        let seconds = wardkeep_evidence::seal::SLOT_SECONDS;
        self.slot.map_or(0, |slot| slot.saturating_add(1).saturating_mul(seconds))
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
        if let Some(found) = self.found.take() {
            journal.report(found)?;
        }
        match &sealed {
            Err(SealerError::Truncated { sealed, found }) => {
                journal.report_lost(*sealed, *found)?
            }
            Ok(Some(_)) => journal.sealing_goes_on()?,
            _ => {}
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
        let path = self.folder.join(CHECKPOINTS);
        let newest = newest_seal(&path, &self.public)?.map(|(_, seal)| seal);
        let (epoch, key_path) = (self.epoch.epoch(), self.folder.join(EPOCH_KEY));
        match newest {
            // Written already: only the key did not move on.
            Some(seal) if seal.epoch == epoch && self.pending.is_some() => {
                if seal.key != self.epoch.public() {
                    return Err(damaged(&key_path, "is not the key of the last seal"));
                }
                let taken = self.take_sealed(journal, &seal)?;
                return self.move_on(seal, taken).map(Some);
            }
            Some(seal) if seal.epoch >= epoch => {
                return Err(damaged(&key_path, "is older than the last seal"));
            }
            Some(seal) if seal.epoch + 1 == epoch && seal.next != self.epoch.public() => {
                return Err(damaged(&key_path, "is not the key that the last seal announces"));
            }
            _ => {}
        }
        let next = newest.map_or(0, |seal| seal.epoch + 1);
        let base = match newest {
            Some(seal) if next == epoch => (seal.size, seal.root),
            None if next == epoch => (0, empty_root()),
            // Seals are gone: what they covered is known from the epoch file alone.
            _ => {
                self.found = Some(Found::SealsMissing { first: next, next: epoch });
                (self.frontier.size(), self.frontier.root())
            }
        };
        let decided = self.pending.map(|pending| pending.size.unwrap_or(self.frontier.size()));
        let limit = decided.filter(|size| *size >= base.0);
        let taken = self.take_in(journal, base, entries, limit)?;
        let (size, root) = (taken.frontier.size(), taken.frontier.root());
        let pending = self.pending.unwrap_or_else(|| {
            let (from, to) = next_slots(self.slot, slot_of(now));
            Pending { from, to, size: Some(size) }
        });
        self.pending = Some(pending);
        self.store()?;
        let log_key = self.public.signing_key(&self.log_seed)?;
        let slots = (pending.from, pending.to);
        let note = sign_seal(&self.public, &log_key, &self.epoch, slots, size, root)?;
        self.append_note(&path, &note)?;
        let (key, next) = (self.epoch.public(), self.epoch.next().public());
        self.move_on(Seal { epoch, slots, size, root, key, next }, taken).map(Some)
    }

    /// Takes the next epoch's key: this one's seal is written.
    fn move_on(&mut self, seal: Seal, taken: Taken) -> Result<Seal> {
        self.cache_leaves(&taken);
        self.frontier = taken.frontier;
        self.position = taken.position;
        self.pending = None;
        self.slot = Some(seal.slots.1);
        self.epoch = self.epoch.next();
        self.store()?;
        Ok(seal)
    }

    /// Reads the entries since the last seal into the tree, all or up to `limit` in number. If the
    /// epoch file does not go on from `base` (size and root under the last seal), or not to as
    /// many entries as there are, everything is read anew.
    fn take_in(
        &self,
        journal: &Journal,
        base: (u64, TreeHash),
        entries: u64,
        limit: Option<u64>,
    ) -> Result<Taken> {
        let mut gone_on = None;
        if (self.frontier.size(), self.frontier.root()) == base {
            // A position that cannot be read is as wrong as one that leads astray.
            gone_on =
                Taken::read(journal, self.frontier.clone(), self.position, base.0, limit).ok();
            let expected = limit.unwrap_or(entries);
            if let Some(taken) = gone_on.take_if(|taken| taken.frontier.size() == expected) {
                return Ok(taken);
            }
        }
        let anew = Taken::read(journal, Frontier::new(), Position::START, base.0, limit)?;
        if anew.base == Some(base.1) {
            return Ok(anew);
        }
        // The journal is not what was sealed: the tree that was goes on, and `verify` tells.
        gone_on.ok_or_else(|| damaged(&self.folder.join(EPOCH_KEY), "does not fit the last seal"))
    }

    /// Reads what a seal covers that is written already.
    fn take_sealed(&self, journal: &Journal, seal: &Seal) -> Result<Taken> {
        let starts = [(self.frontier.clone(), self.position), (Frontier::new(), Position::START)];
        for (frontier, position) in starts {
            let taken = Taken::read(journal, frontier, position, seal.size, Some(seal.size));
            if let Some(taken) = taken.ok().filter(|taken| taken.base == Some(seal.root)) {
                return Ok(taken);
            }
        }
        Err(damaged(&self.folder.join(EPOCH_KEY), "does not fit the last seal"))
    }

    /// Keeps the leaves for proofs; a failure costs only the cache.
    fn cache_leaves(&self, taken: &Taken) {
        let write = || -> io::Result<()> {
            let mut file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .custom_flags(no_follow())
                .open(self.folder.join(LEAVES))?;
            let before = taken.before * 32;
            if file.metadata()?.len() < before {
                return file.set_len(0);
            }
            file.set_len(before)?;
            file.seek(SeekFrom::End(0))?;
            file.write_all(&taken.leaves)
        };
        let _ = write();
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
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(failed(io::Error::other("not a regular file")));
        }
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
            pending: state.pending.filter(|pending| pending.is_possible()),
            append_only,
            found: None,
        })
    }

    /// Replaces the epoch file and, as far as a file system lets one, erases the old seed.
    fn store(&self) -> Result<()> {
        let path = self.folder.join(EPOCH_KEY);
        let old = OpenOptions::new().write(true).custom_flags(no_follow()).open(&path).ok();
        write_epoch(&path, &self.epoch, &self.public.epoch0, self)?;
        if let Some(mut old) = old {
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
        found: None,
    };
    sealer.store()
}

/// Public key of an Ed25519 seed.
fn public_of(seed: &[u8; 32]) -> [u8; 32] {
    // An epoch key is an Ed25519 key like any other; only its seed moves on.
    EpochKey::first(seed).public()
}

/// The newest seal in a `checkpoints` file, as a note and as what it says; who signed it is not
/// looked at.
///
/// # Errors
/// When the file cannot be read.
pub fn last_seal(path: &Path) -> Result<Option<(Note, Seal)>> {
    last_seal_where(path, |_| true)
}

/// The newest seal in a `checkpoints` file that the log signed: anyone can append there.
pub(crate) fn newest_seal(path: &Path, log: &LogPublic) -> Result<Option<(Note, Seal)>> {
    last_seal_where(path, |note| is_signed(note, log))
}

/// Whether a note is a checkpoint of the log, signed by it.
pub(crate) fn is_signed(note: &Note, log: &LogPublic) -> bool {
    Checkpoint::parse(&note.text).is_ok_and(|checkpoint| checkpoint.origin == log.origin())
        && log.log_key().verify(note).is_ok()
}

fn last_seal_where(path: &Path, accept: impl Fn(&Note) -> bool) -> Result<Option<(Note, Seal)>> {
    let failed = |error| SealerError::Io { action: "read", path: path.to_owned(), error };
    let mut file = match open_plain(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let length = file.metadata().map_err(failed)?.len();
    // A seal is under 1 KiB; behind the last one there can be a torn one, or someone's junk.
    for window in [1 << 16, MAX_SEALS_BYTES] {
        let tail = read_tail(&mut file, window).map_err(failed)?;
        let newest = last_seal_in(&tail, &accept);
        if newest.is_some() || length <= window {
            return Ok(newest);
        }
    }
    Ok(None)
}

/// The last seal among frames that `accept` takes.
pub(crate) fn last_seal_in(bytes: &[u8], accept: impl Fn(&Note) -> bool) -> Option<(Note, Seal)> {
    notes_from_the_last(bytes).find_map(|text| {
        let note = Note::parse(text).ok().filter(&accept)?;
        let seal = Seal::from_checkpoint(&Checkpoint::parse(&note.text).ok()?).ok()?;
        Some((note, seal))
    })
}

/// The notes of a file of seals, from the last to the first. A hostile file has a frame for every
/// few bytes, so only what is long enough to be signed is kept.
pub(crate) fn notes_from_the_last(bytes: &[u8]) -> impl Iterator<Item = &str> {
    let notes: Vec<&str> = frames(bytes)
        .filter_map(|frame| match frame {
            Frame::Note { text, .. } if text.len() >= 100 => Some(text),
            _ => None,
        })
        .collect();
    notes.into_iter().rev()
}

fn read_tail(file: &mut File, window: u64) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(window)))?;
    let mut bytes = Vec::new();
    file.take(window).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Erases secrets that a crash left under a temporary name; nobody is writing one, since the
/// journal's lock is held.
fn erase_leftovers(folder: &Path) {
    let prefixes = [LOG_KEY, EPOCH_KEY].map(|name| format!(".{name}.partial-"));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if prefixes.iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
            let path = entry.path();
            let opened = OpenOptions::new().write(true).custom_flags(no_follow()).open(&path);
            let _ = opened.and_then(|mut file| erase(&mut file));
            let _ = fs::remove_file(&path);
        }
    }
}

/// Overwrites a secret as far as a file system lets one.
fn erase(file: &mut File) -> io::Result<()> {
    let length = usize::try_from(file.metadata()?.len()).unwrap_or(0).min(1 << 20);
    file.write_all(&vec![0; length])?;
    file.sync_data()
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
