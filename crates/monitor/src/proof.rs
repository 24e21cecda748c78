//! A proof of one record that can be checked offline, without the log.

use std::ops::ControlFlow;

use wardkeep_evidence::check::printable;
use wardkeep_evidence::checkpoint::Checkpoint;
use wardkeep_evidence::entry::Entry;
use wardkeep_evidence::hash::RecordId;
use wardkeep_evidence::json::{self, Value};
use wardkeep_evidence::merkle::{Tree, TreeHash};
use wardkeep_evidence::note::{Algorithm, Note, NoteError};
use wardkeep_evidence::proof::TlogProof;
use wardkeep_evidence::record::Record;
use wardkeep_evidence::seal::LogPublic;
use wardkeep_evidence::verify::{Trust, WitnessReach};

use crate::files::{MAX_SEALS_BYTES, read_if_there};
use crate::index::Index;
use crate::journal::{JournalError, JournalLine, Position, parse_line, scan};
use crate::sealer::{
    CHECKPOINTS, COSIGNED, SealerError, is_signed, newest_seal, notes_from_the_last,
};
use crate::store::{StoreError, StoreReader};
use crate::tree::sealed_tree;

/// Why a proof cannot be made or does not hold.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProveError {
    /// No such record.
    #[error("the record {0} is not in the journal: check the id with `wardkeep log`")]
    Unknown(RecordId),
    /// No seal covers the record yet.
    #[error(
        "the record {id} is not sealed yet ({sealed} entries are): try again after the next seal"
    )]
    Unsealed {
        /// The record.
        id: RecordId,
        /// Entries under the last seal.
        sealed: u64,
    },
    /// The journal is not what was sealed.
    #[error("the journal does not have the root that was sealed: run `wardkeep evidence verify`")]
    RootDiffers,
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The proof does not hold.
    #[error("the proof does not hold: {0}")]
    Refused(String),
}

impl From<JournalError> for ProveError {
    fn from(error: JournalError) -> Self {
        Self::Store(error.into())
    }
}

impl From<SealerError> for ProveError {
    fn from(error: SealerError) -> Self {
        Self::Store(error.into())
    }
}

/// What a proof shows.
#[derive(Debug, Clone)]
pub struct Proven {
    /// The record.
    pub record: Record<'static>,
    /// Its entry.
    pub entry: Entry,
    /// Name of the log.
    pub origin: String,
    /// Whether the caller named the log; otherwise its keys came with the proof.
    pub pinned: bool,
    /// Entries under the checkpoint.
    pub size: u64,
    /// Trusted witnesses that cosigned the checkpoint.
    pub witnesses: Vec<WitnessReach>,
}

/// Makes the proof of a record: a C2SP tlog-proof whose `extra` holds the record, its entry and
/// the log's public keys.
///
/// # Errors
/// When the record is unknown, not sealed yet, or the journal is not what was sealed.
pub fn prove(store: &StoreReader, id: RecordId) -> Result<TlogProof, ProveError> {
    let (bytes, index) = find(store, id)?;
    let public = store
        .public()
        .ok_or_else(|| ProveError::Refused("the log has no public keys beside it".to_owned()))?;
    let Some(note) = best_note(store, &public, index)? else {
        let newest = newest_seal(&store.path().join(CHECKPOINTS), &public)?;
        let sealed = newest.map_or(0, |(_, seal)| seal.size);
        return Err(ProveError::Unsealed { id, sealed });
    };
    let checkpoint =
        Checkpoint::parse(&note.text).map_err(|error| ProveError::Refused(error.to_string()))?;
    let tree = sealed_tree(store.path(), store.folder(), checkpoint.size, &checkpoint.root)?
        .ok_or(ProveError::RootDiffers)?;
    let hashes = tree.inclusion(index, checkpoint.size).ok_or(ProveError::RootDiffers)?;
    let mut extra = format!("{{\"log\":\"{public}\",\"line\":").into_bytes();
    extra.extend_from_slice(&bytes);
    extra.push(b'}');
    let proof = TlogProof { extra: Some(extra), index, hashes, note };
    // Nothing is handed out that would not be accepted.
    check(&proof, &Trust::default())?;
    Ok(proof)
}

/// Checks a proof. The log's signature is checked by the keys that the caller trusts or, without
/// those, by the keys in the proof, which the log's name is a hash of. Whether the epoch's key was
/// the right one cannot be told from one seal.
///
/// # Errors
/// When anything about it does not hold.
pub fn check(proof: &TlogProof, trust: &Trust) -> Result<Proven, ProveError> {
    let refuse = |why: &str| ProveError::Refused(why.to_owned());
    let extra = proof.extra.as_deref().ok_or_else(|| refuse("it holds no record"))?;
    let value = json::parse(extra).map_err(|error| refuse(&error.to_string()))?;
    let object = value.as_object().ok_or_else(|| refuse("its extra data is no object"))?;
    let log = object.get("log").and_then(Value::as_str).ok_or_else(|| refuse("it names no log"))?;
    let public: LogPublic = log.parse().map_err(|_| refuse("its log keys are malformed"))?;
    let mut text = Vec::new();
    let line = object.get("line").ok_or_else(|| refuse("it holds no record"))?;
    wardkeep_evidence::canonical::write_compact(line, &mut text);
    let JournalLine { entry, record } =
        parse_line(&text).ok_or_else(|| refuse("its record and entry do not hold together"))?;
    if entry.index != proof.index {
        return Err(refuse("it proves another entry than it holds"));
    }
    let checkpoint = proof.verify(&entry.leaf()).map_err(|error| refuse(&error.to_string()))?;
    if checkpoint.origin != public.origin() {
        let found = printable(&checkpoint.origin);
        return Err(refuse(&format!("its checkpoint is of `{found}`, not of the log it names")));
    }
    if let Some(trusted) = trust.log.filter(|trusted| *trusted != public) {
        let (expected, found) = (trusted.origin(), public.origin());
        return Err(refuse(&format!("it is of the log `{found}`, not of `{expected}`")));
    }
    public.log_key().verify(&proof.note).map_err(|error| refuse(&error.to_string()))?;
    let mut witnesses = Vec::new();
    for key in trust.witnesses.iter().filter(|key| key.algorithm() == Algorithm::CosignatureV1) {
        match key.verify(&proof.note) {
            Ok(verified) => witnesses.push(WitnessReach {
                name: key.name().to_owned(),
                to: checkpoint.size,
                at: verified.timestamp.unwrap_or(0),
            }),
            Err(NoteError::NotSigned { .. }) => {}
            Err(error) => return Err(refuse(&error.to_string())),
        }
    }
    Ok(Proven {
        record: record.into_owned(),
        entry,
        origin: checkpoint.origin,
        pinned: trust.log.is_some(),
        size: checkpoint.size,
        witnesses,
    })
}

/// The newest seal of a log with the tree under it: what an anchor is shown.
#[derive(Debug)]
pub struct NewestSeal {
    /// The log's public keys.
    pub log: LogPublic,
    /// The seal as the log signed it.
    pub note: Note,
    /// What it states.
    pub checkpoint: Checkpoint,
    tree: Tree,
}

impl NewestSeal {
    /// Reads it; `None` if nothing is sealed yet.
    ///
    /// # Errors
    /// When the store cannot be read, or the journal is not what was sealed.
    pub fn load(store: &StoreReader) -> Result<Option<Self>, ProveError> {
        let path = store.path().join(CHECKPOINTS);
        if !path.exists() {
            return Ok(None);
        }
        let log = store.public().ok_or_else(|| {
            ProveError::Refused("the log has no public keys beside it".to_owned())
        })?;
        let Some((note, seal)) = newest_seal(&path, &log)? else {
            return Ok(None);
        };
        let checkpoint = Checkpoint::parse(&note.text)
            .map_err(|error| ProveError::Refused(error.to_string()))?;
        let tree = sealed_tree(store.path(), store.folder(), seal.size, &seal.root)?
            .ok_or(ProveError::RootDiffers)?;
        Ok(Some(Self { log, note, checkpoint, tree }))
    }

    /// The consistency proof from an earlier size to this seal's.
    #[must_use]
    pub fn consistency(&self, old_size: u64) -> Option<Vec<TreeHash>> {
        self.tree.consistency(old_size, self.checkpoint.size)
    }
}

/// The line of a record, found by the index or, where that is missing or wrong, by reading on.
fn find(store: &StoreReader, id: RecordId) -> Result<(Vec<u8>, u64), ProveError> {
    let indexed = Index::open_existing(store.path())
        .and_then(|index| index.location(id).ok().flatten())
        .and_then(|location| store.folder().read_line(location).ok());
    if let Some(bytes) = indexed
        && let Some(line) = parse_line(&bytes).filter(|line| line.record.id == id)
    {
        let index = line.entry.index;
        return Ok((bytes, index));
    }
    let mut found = None;
    scan(store.folder(), Position::START, |_, text| {
        match parse_line(text).filter(|line| line.record.id == id) {
            Some(line) => {
                found = Some((text.to_vec(), line.entry.index));
                ControlFlow::Break(())
            }
            None => ControlFlow::Continue(()),
        }
    })?;
    found.ok_or(ProveError::Unknown(id))
}

/// The newest cosigned seal over more than `index` entries, or the newest seal.
fn best_note(store: &StoreReader, log: &LogPublic, index: u64) -> Result<Option<Note>, ProveError> {
    let path = store.path().join(COSIGNED);
    let bytes = read_if_there(&path, MAX_SEALS_BYTES)
        .map_err(|error| JournalError::io("read", &path, error))?;
    let cosigned = notes_from_the_last(&bytes).find_map(|text| {
        let note = Note::parse(text).ok()?;
        let covers = Checkpoint::parse(&note.text).is_ok_and(|head| head.size > index);
        (covers && is_signed(&note, log)).then_some(note)
    });
    if cosigned.is_some() {
        return Ok(cosigned);
    }
    let newest = newest_seal(&store.path().join(CHECKPOINTS), log)?;
    Ok(newest.filter(|(_, seal)| seal.size > index).map(|(note, _)| note))
}
