//! Seals: checkpoints signed by a stable log key and by a key that changes with every epoch.
//!
//! Each seal names the public key of the next epoch, and the writer then erases its own seed. Who
//! steals both keys today can therefore continue the log, but cannot sign an earlier epoch again.
//! The log's origin is derived from the log key and the first epoch key, so neither can be swapped
//! under the same name.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};
use thiserror::Error;
use zeroize::Zeroizing;

use crate::checkpoint::{Checkpoint, CheckpointError, parse_decimal};
use crate::merkle::TreeHash;
use crate::note::{self, Algorithm, MAX_NOTE_BYTES, Note, NoteError, SigningKey, VerifierKey};

/// The length of a slot, in seconds; at most one seal is due in each.
pub const SLOT_SECONDS: u64 = 900;

const EPOCH_KEY_LABEL: &[u8] = b"wardkeep epoch key v1\0";
const ORIGIN_LABEL: &[u8] = b"wardkeep log v1\0";
const ORIGIN_PREFIX: &str = "wardkeep/";
const ORIGIN_BYTES: usize = 16;
const EPOCH_NAME_SUFFIX: &str = "/epoch";
const LOG_PUBLIC_PREFIX: &str = "wardkeep-log-v1+";
const FRAME_PREFIX: &str = "~ ";
// Keeps every successor of an epoch or a slot representable.
const MAX_NUMBER: u64 = i64::MAX as u64;

/// The slot a Unix time falls into.
pub fn slot_of(unix_seconds: u64) -> u64 {
    unix_seconds / SLOT_SECONDS
}

/// Whether a seal is due: none was made yet, the slot of the last one is over, or the clock was
/// set back by more than one slot since.
pub fn is_due(last_to: Option<u64>, slot_now: u64) -> bool {
    last_to.is_none_or(|last_to| slot_now > last_to || slot_now.saturating_add(1) < last_to)
}

/// The slots a seal that is due now covers, both included: all since the last seal, or only the
/// current one for the first seal and after the clock was set back.
pub fn next_slots(last_to: Option<u64>, slot_now: u64) -> (u64, u64) {
    match last_to {
        Some(last_to) if last_to < slot_now => (last_to + 1, slot_now),
        _ => (slot_now, slot_now),
    }
}

/// The secret key of one epoch; wiped when it is dropped.
pub struct EpochKey {
    epoch: u64,
    seed: Zeroizing<[u8; 32]>,
}

impl EpochKey {
    /// The key of epoch 0, from 32 random bytes.
    pub fn first(seed: &[u8; 32]) -> Self {
        Self::restore(0, seed)
    }

    /// The key of an epoch as stored by its number and [`EpochKey::seed`].
    pub fn restore(epoch: u64, seed: &[u8; 32]) -> Self {
        Self { epoch, seed: Zeroizing::new(*seed) }
    }

    /// The public half.
    pub fn public(&self) -> [u8; 32] {
        ed25519_dalek::SigningKey::from_bytes(&self.seed).verifying_key().to_bytes()
    }

    /// The key of the next epoch. There is no way back from it to this one.
    pub fn next(&self) -> Self {
        let hasher = Sha256::new().chain_update(EPOCH_KEY_LABEL).chain_update(self.seed());
        let seed = Zeroizing::new(hasher.finalize().into());
        Self { epoch: self.epoch.saturating_add(1), seed }
    }

    /// The number of the epoch.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The secret, to be stored; erase it once the next epoch's is stored.
    pub fn seed(&self) -> &[u8; 32] {
        &self.seed
    }
}

impl fmt::Debug for EpochKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("EpochKey").field("epoch", &self.epoch).finish_non_exhaustive()
    }
}

/// The two public keys a log is pinned by: enough to check all its seals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LogPublic {
    /// The stable Ed25519 public key of the log.
    pub log: [u8; 32],
    /// The Ed25519 public key of epoch 0.
    pub epoch0: [u8; 32],
}

impl LogPublic {
    /// The origin of the log's checkpoints, which pins both keys.
    pub fn origin(&self) -> String {
        let hasher = Sha256::new().chain_update(ORIGIN_LABEL).chain_update(self.log);
        let digest: [u8; 32] = hasher.chain_update(self.epoch0).finalize().into();
        let digits = digest.iter().take(ORIGIN_BYTES).map(|byte| format!("{byte:02x}"));
        ORIGIN_PREFIX.chars().chain(digits.collect::<String>().chars()).collect()
    }

    /// The key that checks the log's own signature; witnesses are told this one.
    pub fn log_key(&self) -> VerifierKey {
        VerifierKey::from_trusted_parts(self.origin(), Algorithm::Ed25519, self.log)
    }

    /// The log's signing key from its seed; refuses the seed of another log.
    pub fn signing_key(&self, log_seed: &[u8; 32]) -> Result<SigningKey, SealSigningError> {
        let key = SigningKey::from_seed(&self.origin(), Algorithm::Ed25519, log_seed)?;
        if key.verifier() == &self.log_key() { Ok(key) } else { Err(SealSigningError::OtherLog) }
    }
}

impl fmt::Display for LogPublic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{LOG_PUBLIC_PREFIX}{}+{}", TreeHash(self.log), TreeHash(self.epoch0))
    }
}

impl FromStr for LogPublic {
    type Err = LogPublicError;

    fn from_str(text: &str) -> Result<Self, LogPublicError> {
        let malformed = || LogPublicError { text: note::excerpt(text) };
        let rest = text.strip_prefix(LOG_PUBLIC_PREFIX).ok_or_else(malformed)?;
        // Base64 may hold a plus itself, so the middle one is found by its place.
        let (log, epoch0) = rest.split_at_checked(rest.len() / 2).ok_or_else(malformed)?;
        let epoch0 = epoch0.strip_prefix('+').ok_or_else(malformed)?;
        let read_key = |encoded| {
            let TreeHash(key) = TreeHash::from_base64(encoded).map_err(|_| malformed())?;
            note::check_public_key(&key).map_err(|_| malformed()).map(|()| key)
        };
        Ok(Self { log: read_key(log)?, epoch0: read_key(epoch0)? })
    }
}

/// A text that does not name a log.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{text}` is not a log's public keys; copy the whole line that begins `wardkeep-log-v1+`")]
pub struct LogPublicError {
    text: String,
}

/// What one seal states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seal {
    /// The number of the epoch, from 0 without gaps.
    pub epoch: u64,
    /// The first and the last slot covered.
    pub slots: (u64, u64),
    /// The number of entries in the log.
    pub size: u64,
    /// The root of the tree over them.
    pub root: TreeHash,
    /// The public key of this epoch.
    pub key: [u8; 32],
    /// The public key of the next epoch.
    pub next: [u8; 32],
}

impl Seal {
    /// Reads the seal from the three extension lines of a checkpoint.
    pub fn from_checkpoint(checkpoint: &Checkpoint) -> Result<Self, SealFormatError> {
        let [epoch, key, next] = checkpoint.extensions.as_slice() else {
            return Err(SealFormatError::ExtensionCount { count: checkpoint.extensions.len() });
        };
        let malformed = |line: &str| SealFormatError::Extension { line: note::excerpt(line) };
        let (number, slots) = parse_epoch_line(epoch).ok_or_else(|| malformed(epoch))?;
        let read_key = |line: &str, label: &str| {
            let encoded = line.strip_prefix(label).ok_or_else(|| malformed(line))?;
            TreeHash::from_base64(encoded).map(|key| key.0).map_err(|_| malformed(line))
        };
        Ok(Self {
            epoch: number,
            slots,
            size: checkpoint.size,
            root: checkpoint.root,
            key: read_key(key, "key ")?,
            next: read_key(next, "next ")?,
        })
    }

    /// The checkpoint that states the seal.
    pub fn to_checkpoint(&self, origin: &str) -> Checkpoint {
        let (from, to) = self.slots;
        Checkpoint {
            origin: origin.to_owned(),
            size: self.size,
            root: self.root,
            extensions: vec![
                format!("epoch {} {from}-{to}", self.epoch),
                format!("key {}", TreeHash(self.key)),
                format!("next {}", TreeHash(self.next)),
            ],
        }
    }
}

fn parse_epoch_line(line: &str) -> Option<(u64, (u64, u64))> {
    let number = |text| parse_decimal(text).filter(|number| *number <= MAX_NUMBER);
    let (epoch, slots) = line.strip_prefix("epoch ")?.split_once(' ')?;
    let (from, to) = slots.split_once('-')?;
    Some((number(epoch)?, (number(from)?, number(to)?)))
}

/// Why a checkpoint is not a seal.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SealFormatError {
    /// The text is not even a checkpoint.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// There are not exactly three extension lines.
    #[error("a seal has 3 extension lines, this checkpoint has {count}")]
    ExtensionCount {
        /// How many there are.
        count: usize,
    },
    /// An extension line is not of its exact form.
    #[error("`{line}` is not the line a seal has in this place")]
    Extension {
        /// The beginning of the line.
        line: String,
    },
}

/// Makes the seal of an epoch: signed by the log key, then by the epoch key.
///
/// The same arguments give the same bytes, so a seal may be made again after a crash.
pub fn sign_seal(
    log: &LogPublic,
    log_key: &SigningKey,
    epoch_key: &EpochKey,
    slots: (u64, u64),
    size: u64,
    root: TreeHash,
) -> Result<Note, SealSigningError> {
    if log_key.verifier() != &log.log_key() {
        return Err(SealSigningError::OtherLog);
    }
    let (from, to) = slots;
    let epoch = epoch_key.epoch();
    if from > to || to > MAX_NUMBER || epoch > MAX_NUMBER {
        return Err(SealSigningError::Numbers { epoch, from, to });
    }
    let (key, next) = (epoch_key.public(), epoch_key.next().public());
    let seal = Seal { epoch, slots, size, root, key, next };
    let origin = log.origin();
    let epoch_name = epoch_key_name(&origin);
    let epoch_signer = SigningKey::from_seed(&epoch_name, Algorithm::Ed25519, epoch_key.seed())?;
    let mut note = Note::new(seal.to_checkpoint(&origin).to_text())?;
    note.push(log_key.sign(&note.text)?)?;
    note.push(epoch_signer.sign(&note.text)?)?;
    Ok(note)
}

fn epoch_key_name(origin: &str) -> String {
    format!("{origin}{EPOCH_NAME_SUFFIX}")
}

/// Why a seal is not made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SealSigningError {
    /// The log key is not the one the log is pinned by.
    #[error("the log key does not belong to this log; restore the key made with the log")]
    OtherLog,
    /// The slots are reversed, or a number is beyond what a seal may state.
    #[error("epoch {epoch} cannot cover slots {from} to {to}; check the clock")]
    Numbers {
        /// The number of the epoch.
        epoch: u64,
        /// The first slot.
        from: u64,
        /// The last slot.
        to: u64,
    },
    /// The note could not be signed.
    #[error(transparent)]
    Note(#[from] NoteError),
}

/// Checks the seals of a log, fed one after the other from epoch 0.
///
/// It sees seals, not entries: the caller compares the root of each accepted seal with that of the
/// log's entries, and the time of the last one with its own clock.
///
/// What an error leaves behind:
///
/// - [`SealError::EpochDoubled`]: nothing changes; the same epoch is expected next.
/// - [`SealError::EpochMissing`]: when the seal is signed by the epoch key it names, the chain goes
///   on behind it, so one gap gives one error. What is accepted from there on hangs on the log key
///   alone, since nothing earlier announced the key behind the gap. Otherwise nothing changes.
/// - any other error: nothing changes; a sound seal of the following epoch then gives
///   [`SealError::EpochMissing`], and the chain goes on from there.
///
/// A log is sound only when no call gave an error.
#[derive(Debug, Clone)]
pub struct SealChain {
    origin: String,
    log_key: VerifierKey,
    expected_epoch: u64,
    expected_key: [u8; 32],
    last_size: u64,
    last_to: Option<u64>,
}

impl SealChain {
    /// A chain that expects epoch 0 of the log.
    pub fn new(log: LogPublic) -> Self {
        Self {
            origin: log.origin(),
            log_key: log.log_key(),
            expected_epoch: 0,
            expected_key: log.epoch0,
            last_size: 0,
            last_to: None,
        }
    }

    /// The number of the epoch expected next.
    pub fn expected_epoch(&self) -> u64 {
        self.expected_epoch
    }

    /// Checks the next seal.
    pub fn feed(&mut self, note: &Note) -> Result<AcceptedSeal, SealError> {
        let checkpoint = Checkpoint::parse(&note.text).map_err(SealFormatError::from)?;
        let seal = Seal::from_checkpoint(&checkpoint)?;
        if checkpoint.origin != self.origin {
            let found = note::excerpt(&checkpoint.origin);
            return Err(SealError::Origin { expected: self.origin.clone(), found });
        }
        self.log_key.verify(note).map_err(SealError::Signature)?;
        let (epoch, expected) = (seal.epoch, self.expected_epoch);
        if epoch < expected {
            return Err(SealError::EpochDoubled { expected, found: epoch });
        }
        let epoch_name = epoch_key_name(&self.origin);
        let epoch_key = VerifierKey::from_trusted_parts(epoch_name, Algorithm::Ed25519, seal.key);
        let epoch_signature = epoch_key.verify(note);
        if epoch > expected {
            if epoch_signature.is_ok() {
                self.advance(&seal);
            }
            return Err(SealError::EpochMissing { expected, found: epoch });
        }
        if seal.key != self.expected_key {
            return Err(SealError::EpochKey { epoch });
        }
        epoch_signature.map_err(|source| SealError::EpochSignature { epoch, source })?;
        if seal.size < self.last_size {
            let previous = self.last_size;
            return Err(SealError::Size { epoch, previous, found: seal.size });
        }
        let (from, to) = seal.slots;
        if from > to {
            return Err(SealError::Slots { epoch, from, to });
        }
        let clock_set_back = self.last_to.is_some_and(|last_to| from <= last_to);
        self.advance(&seal);
        Ok(AcceptedSeal { seal, clock_set_back })
    }

    fn advance(&mut self, seal: &Seal) {
        // INVARIANT: no parsed epoch is above MAX_NUMBER, so the successor exists.
        self.expected_epoch = seal.epoch + 1;
        self.expected_key = seal.next;
        // A seal behind a gap is not checked for its size, so it may not lower the mark.
        self.last_size = self.last_size.max(seal.size);
        self.last_to = Some(seal.slots.1);
    }
}

/// A seal that passed every check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcceptedSeal {
    /// What it states.
    pub seal: Seal,
    /// Whether it begins before the previous seal ended: the clock was set back between them.
    pub clock_set_back: bool,
}

/// Why a seal is refused; the variants stand in the order of the checks.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SealError {
    /// The note is not a seal.
    #[error("the note is not a seal: {0}")]
    Format(#[from] SealFormatError),
    /// The seal belongs to another log, or the log was made anew with other keys.
    #[error("the seal is of `{found}`, not of `{expected}`; check which log these keys belong to")]
    Origin {
        /// The origin the keys give.
        expected: String,
        /// The beginning of the origin found.
        found: String,
    },
    /// The log key did not sign the seal.
    #[error("the log key did not sign this seal: {0}")]
    Signature(#[source] NoteError),
    /// One or more epochs before this one have no seal.
    #[error("the seal of epoch {expected} is missing, epoch {found} follows; seals were removed")]
    EpochMissing {
        /// The epoch that should follow.
        expected: u64,
        /// The epoch that does follow.
        found: u64,
    },
    /// The epoch was sealed before.
    #[error("epoch {found} is sealed a second time, epoch {expected} should follow")]
    EpochDoubled {
        /// The epoch that should follow.
        expected: u64,
        /// The epoch that does follow.
        found: u64,
    },
    /// The seal names a key that the previous seal did not announce.
    #[error("the key of epoch {epoch} was not announced by the seal before it; the seal is forged")]
    EpochKey {
        /// The number of the epoch.
        epoch: u64,
    },
    /// The epoch's key did not sign the seal.
    #[error("the epoch key did not sign the seal of epoch {epoch}: {source}")]
    EpochSignature {
        /// The number of the epoch.
        epoch: u64,
        /// What the signature check said.
        source: NoteError,
    },
    /// The log had more entries before.
    #[error("the log shrank from {previous} to {found} entries in epoch {epoch}")]
    Size {
        /// The number of the epoch.
        epoch: u64,
        /// The most entries an earlier seal stated.
        previous: u64,
        /// The entries this seal states.
        found: u64,
    },
    /// The last slot covered is before the first one.
    #[error("epoch {epoch} ends in slot {to}, before it begins in slot {from}")]
    Slots {
        /// The number of the epoch.
        epoch: u64,
        /// The first slot.
        from: u64,
        /// The last slot.
        to: u64,
    },
}

impl SealError {
    /// The stable name of the check that failed.
    pub fn check_name(&self) -> &'static str {
        match self {
            Self::Format(_) => "seal-format",
            Self::Origin { .. } => "seal-origin",
            Self::Signature(_) => "seal-signature",
            Self::EpochMissing { .. } => "seal-epoch-missing",
            Self::EpochDoubled { .. } => "seal-epoch-doubled",
            Self::EpochKey { .. } => "seal-epoch-key",
            Self::EpochSignature { .. } => "seal-epoch-signature",
            Self::Size { .. } => "seal-size",
            Self::Slots { .. } => "seal-slots",
        }
    }
}

/// A note as the `checkpoints` file holds it: a line `~ <byte length>`, the note, an empty line.
///
/// No line of a seal begins with `~ `, so such a line always begins a frame. An append after a
/// write that was cut off within a line ([`ends_within_line`]) must begin with a newline.
pub fn frame(note: &Note) -> String {
    let text = note.to_string();
    format!("{FRAME_PREFIX}{}\n{text}\n", text.len())
}

/// Whether the file was cut off within a line; its last byte alone decides.
pub fn ends_within_line(file_end: &[u8]) -> bool {
    file_end.last().is_some_and(|byte| *byte != b'\n')
}

/// A piece of the `checkpoints` file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A whole frame.
    Note {
        /// Where the frame begins, in bytes from the start of the file.
        offset: usize,
        /// The note, not parsed yet.
        text: &'a str,
    },
    /// Bytes that belong to no whole frame.
    Damaged {
        /// Where they begin, in bytes from the start of the file.
        offset: usize,
        /// How many they are.
        len: usize,
    },
}

/// Splits the `checkpoints` file into its frames, in linear time.
///
/// Every line that begins with `~ ` begins a frame and ends the one before it, whatever length
/// that one claims, so a damaged frame hides no later one. The pieces cover the file without gaps.
pub fn split_frames(file: &[u8]) -> Vec<Frame<'_>> {
    frames(file).collect()
}

/// The same frames one by one: a hostile file has one for every few bytes.
pub fn frames(file: &[u8]) -> impl Iterator<Item = Frame<'_>> {
    let after_newline = memchr::memmem::find_iter(file, b"\n~ ").map(|newline| newline + 1);
    let starts = file.starts_with(FRAME_PREFIX.as_bytes()).then_some(0).into_iter();
    let mut begin = 0;
    starts.chain(after_newline).chain([file.len()]).flat_map(move |end| {
        let piece = file.get(begin..end).unwrap_or_default();
        let offset = std::mem::replace(&mut begin, end);
        split_piece(offset, piece).into_iter().flatten()
    })
}

/// Splits what stands between the beginnings of two frames into a frame and what is left over.
fn split_piece(offset: usize, piece: &[u8]) -> [Option<Frame<'_>>; 2] {
    let (note, used) = match read_frame(piece) {
        Some((text, length)) => (Some(Frame::Note { offset, text }), length),
        None => (None, 0),
    };
    let left = (used < piece.len())
        .then(|| Frame::Damaged { offset: offset + used, len: piece.len() - used });
    [note, left]
}

/// The note of the frame the piece begins with, and the frame's length.
fn read_frame(piece: &[u8]) -> Option<(&str, usize)> {
    let after_prefix = piece.strip_prefix(FRAME_PREFIX.as_bytes())?;
    let header_end = memchr::memchr(b'\n', after_prefix)?;
    let (length, rest) = after_prefix.split_at_checked(header_end)?;
    let length = parse_decimal(str::from_utf8(length).ok()?)?;
    let length = usize::try_from(length).ok().filter(|length| *length <= MAX_NOTE_BYTES)?;
    let (text, rest) = rest.strip_prefix(b"\n")?.split_at_checked(length)?;
    let rest = rest.strip_prefix(b"\n")?;
    Some((str::from_utf8(text).ok()?, piece.len() - rest.len()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::merkle::leaf_hash;

    const LOG_SEED: [u8; 32] = [1; 32];
    const EPOCH_SEED: [u8; 32] = [2; 32];

    fn public_of(log_seed: &[u8; 32], epoch_seed: &[u8; 32]) -> LogPublic {
        let log = ed25519_dalek::SigningKey::from_bytes(log_seed).verifying_key().to_bytes();
        LogPublic { log, epoch0: EpochKey::first(epoch_seed).public() }
    }

    fn public() -> LogPublic {
        public_of(&LOG_SEED, &EPOCH_SEED)
    }

    fn epoch_key(epoch: u64) -> EpochKey {
        (0..epoch).fold(EpochKey::first(&EPOCH_SEED), |key, _| key.next())
    }

    fn seal_with(key: &EpochKey, slots: (u64, u64), size: u64) -> Note {
        let (log, root) = (public(), leaf_hash(&size.to_be_bytes()));
        sign_seal(&log, &log.signing_key(&LOG_SEED).unwrap(), key, slots, size, root).unwrap()
    }

    fn seal(epoch: u64) -> Note {
        seal_with(&epoch_key(epoch), (100 + epoch, 100 + epoch), 10 * epoch)
    }

    /// Signs any text with today's log key, and with an epoch key where one is given.
    fn forge(text: &str, epoch_seed: Option<&[u8; 32]>) -> Note {
        let mut note = Note::new(text.to_owned()).unwrap();
        let log_key = public().signing_key(&LOG_SEED).unwrap();
        note.push(log_key.sign(text).unwrap()).unwrap();
        if let Some(seed) = epoch_seed {
            let name = epoch_key_name(&public().origin());
            let key = SigningKey::from_seed(&name, Algorithm::Ed25519, seed).unwrap();
            note.push(key.sign(text).unwrap()).unwrap();
        }
        note
    }

    fn fed(count: u64) -> SealChain {
        let mut chain = SealChain::new(public());
        (0..count).for_each(|epoch| assert!(chain.feed(&seal(epoch)).is_ok()));
        chain
    }

    fn refusal(chain: &mut SealChain, note: &Note) -> &'static str {
        chain.feed(note).unwrap_err().check_name()
    }

    #[test]
    fn slots_follow_the_clock() {
        assert_eq!((slot_of(899), slot_of(900)), (0, 1));
        let cases = [
            (None, 7, true, (7, 7)),
            (Some(7), 8, true, (8, 8)),
            (Some(7), 20, true, (8, 20)),
            (Some(7), 7, false, (7, 7)),
            (Some(7), 6, false, (6, 6)),
            (Some(7), 5, true, (5, 5)),
            (Some(u64::MAX), u64::MAX, false, (u64::MAX, u64::MAX)),
        ];
        for (last_to, now, due, slots) in cases {
            assert_eq!((is_due(last_to, now), next_slots(last_to, now)), (due, slots), "{now}");
        }
    }

    #[test]
    fn public_keys_round_trip_and_pin_the_origin() {
        let log = public();
        let text = log.to_string();
        assert_eq!(text.parse(), Ok(log));
        assert_eq!(log.origin().len(), ORIGIN_PREFIX.len() + 32);
        assert_ne!(public_of(&[9; 32], &EPOCH_SEED).origin(), log.origin());
        assert_ne!(public_of(&LOG_SEED, &[9; 32]).origin(), log.origin());
        let zero = LogPublic { log: [0; 32], ..log }.to_string();
        let odd = format!("{LOG_PUBLIC_PREFIX}{}", "é".repeat(45));
        for wrong in
            ["", LOG_PUBLIC_PREFIX, &text[1..], &text[..100], &format!("{text} "), &zero, &odd]
        {
            assert!(wrong.parse::<LogPublic>().is_err(), "{wrong}");
        }
        let plus = (0..=255).map(|byte| public_of(&[byte; 32], &[byte; 32]));
        plus.for_each(|log| assert_eq!(log.to_string().parse(), Ok(log)));
        assert_eq!(log.signing_key(&[9; 32]).unwrap_err(), SealSigningError::OtherLog);
    }

    #[test]
    fn secrets_stay_out_of_debug_and_seals_are_deterministic() {
        assert_eq!(format!("{:?}", epoch_key(3)), "EpochKey { epoch: 3, .. }");
        assert_eq!(seal(4).to_string(), seal(4).to_string());
        let restored = EpochKey::restore(3, epoch_key(3).seed());
        assert_eq!((restored.epoch(), restored.next().public()), (3, epoch_key(4).public()));
    }

    #[test]
    fn a_sound_chain_is_accepted() {
        let mut chain = fed(3);
        let accepted = chain.feed(&seal(3)).unwrap();
        assert_eq!(
            (accepted.seal.epoch, accepted.seal.slots, accepted.seal.size),
            (3, (103, 103), 30)
        );
        assert!(!accepted.clock_set_back);
        let mut read = fed(3);
        assert_eq!(read.feed(&Note::parse(&seal(3).to_string()).unwrap()), Ok(accepted));
        assert_eq!(read.expected_epoch(), 4);
    }

    #[test]
    fn malformed_seals_are_refused() {
        let good = seal(0).text;
        let replacements = [
            ("epoch 0 100-100", "epoch 00 100-100"),
            ("epoch 0 100-100", "epoch 0 100"),
            ("epoch 0 100-100", "epoch 0 100-100 "),
            ("epoch 0 100-100", "epoch 9223372036854775808 1-1"),
            ("epoch 0 100-100", "Epoch 0 100-100"),
            ("\nkey ", "\nkey  "),
            ("\nkey ", "\nextra\nkey "),
            ("\nnext ", "\nlast "),
            ("\nnext ", "\nnext A"),
        ];
        for (old, new) in replacements {
            let note = forge(&good.replacen(old, new, 1), Some(&EPOCH_SEED));
            assert_eq!(refusal(&mut fed(0), &note), "seal-format", "{new}");
        }
        assert_eq!(refusal(&mut fed(0), &forge("text\n", Some(&EPOCH_SEED))), "seal-format");
    }

    #[test]
    fn a_thief_of_today_cannot_sign_an_earlier_epoch() {
        // Epoch 5 is current: the seeds of the log and of epoch 5 are stolen, earlier ones gone.
        let stolen = epoch_key(5);
        let as_epoch_3 = EpochKey::restore(3, stolen.seed());
        let own_key = seal_with(&as_epoch_3, (103, 103), 30);
        assert_eq!(refusal(&mut fed(3), &own_key), "seal-epoch-key");
        let honest = seal(3).text.replace("\n30\n", "\n29\n");
        assert_eq!(
            refusal(&mut fed(3), &forge(&honest, Some(stolen.seed()))),
            "seal-epoch-signature"
        );
        assert_eq!(refusal(&mut fed(3), &forge(&honest, None)), "seal-epoch-signature");
        let kept_signature = Note {
            signatures: vec![
                forge(&honest, None).signatures[0].clone(),
                seal(3).signatures[1].clone(),
            ],
            text: honest,
        };
        assert_eq!(refusal(&mut fed(3), &kept_signature), "seal-epoch-signature");
        let own_first = seal_with(&EpochKey::first(stolen.seed()), (100, 100), 0);
        assert_eq!(refusal(&mut fed(0), &own_first), "seal-epoch-key");
    }

    #[test]
    fn new_keys_do_not_pass_for_the_old_log() {
        let other = public_of(&[9; 32], &[8; 32]);
        let (key, epoch) = (other.signing_key(&[9; 32]).unwrap(), EpochKey::first(&[8; 32]));
        let root = leaf_hash(b"");
        let rewritten = sign_seal(&other, &key, &epoch, (100, 100), 0, root).unwrap();
        assert_eq!(refusal(&mut fed(0), &rewritten), "seal-origin");
        let same_name = SigningKey::from_seed(&public().origin(), Algorithm::Ed25519, &[9; 32]);
        let mut renamed = Note::new(seal(0).text).unwrap();
        renamed.push(same_name.unwrap().sign(&renamed.text).unwrap()).unwrap();
        assert_eq!(refusal(&mut fed(0), &renamed), "seal-signature");
        let mut altered = seal(0);
        altered.text = altered.text.replace("\n0\n", "\n1\n");
        assert_eq!(refusal(&mut fed(0), &altered), "seal-signature");
        let refused = sign_seal(&public(), &key, &epoch, (1, 1), 0, root);
        assert_eq!(refused, Err(SealSigningError::OtherLog));
    }

    #[test]
    fn a_missing_epoch_is_one_error_and_a_doubled_one_changes_nothing() {
        let mut chain = fed(2);
        assert_eq!(refusal(&mut chain, &seal(3)), "seal-epoch-missing");
        assert!(chain.feed(&seal(4)).is_ok());
        for doubled in [4, 0] {
            assert_eq!(refusal(&mut chain, &seal(doubled)), "seal-epoch-doubled");
        }
        assert!(chain.feed(&seal(5)).is_ok());
        let unsigned = forge(&seal(9).text, None);
        assert_eq!(refusal(&mut chain, &unsigned), "seal-epoch-missing");
        assert!(chain.feed(&seal(6)).is_ok());
        let mut damaged = seal(7);
        damaged.signatures.truncate(1);
        assert_eq!(refusal(&mut chain, &damaged), "seal-epoch-signature");
        assert_eq!(refusal(&mut chain, &seal(8)), "seal-epoch-missing");
        assert!(chain.feed(&seal(9)).is_ok());
    }

    #[test]
    fn sizes_and_slots_are_checked() {
        let mut chain = fed(3);
        assert_eq!(refusal(&mut chain, &seal_with(&epoch_key(3), (103, 103), 19)), "seal-size");
        let reversed = seal(3).text.replace("103-103", "103-102");
        let reversed = forge(&reversed, Some(epoch_key(3).seed()));
        assert_eq!(refusal(&mut chain, &reversed), "seal-slots");
        let set_back = seal_with(&epoch_key(3), (50, 50), 20);
        assert!(chain.feed(&set_back).unwrap().clock_set_back);
        let onwards = seal_with(&epoch_key(4), (51, 60), 20);
        assert!(!chain.feed(&onwards).unwrap().clock_set_back);
        let gap = seal_with(&epoch_key(6), (61, 61), 1);
        assert_eq!(refusal(&mut chain, &gap), "seal-epoch-missing");
        assert_eq!(refusal(&mut chain, &seal_with(&epoch_key(7), (62, 62), 19)), "seal-size");
        let log = public();
        let key = log.signing_key(&LOG_SEED).unwrap();
        for slots in [(2, 1), (0, u64::MAX)] {
            let refused = sign_seal(&log, &key, &epoch_key(0), slots, 0, leaf_hash(b""));
            assert!(matches!(refused, Err(SealSigningError::Numbers { .. })));
        }
    }

    #[test]
    fn frames_split_and_resynchronise() {
        let notes: Vec<_> = (0..3).map(|epoch| seal(epoch).to_string()).collect();
        let frames: Vec<_> = (0..3).map(|epoch| frame(&seal(epoch))).collect();
        let (first, second, third) = (&frames[0], &frames[1], &frames[2]);
        let texts = |file: &str| -> Vec<String> {
            let notes = split_frames(file.as_bytes()).into_iter().filter_map(|frame| match frame {
                Frame::Note { offset, text } => {
                    assert!(file[offset..].starts_with(FRAME_PREFIX));
                    Some(text.to_owned())
                }
                Frame::Damaged { .. } => None,
            });
            notes.collect()
        };
        assert_eq!(texts(&frames.concat()), notes);
        let outer = [notes[0].clone(), notes[2].clone()];
        for end in (0..second.len()).filter(|end| second.is_char_boundary(*end)) {
            let torn = &second[..end];
            let repair = if ends_within_line(torn.as_bytes()) { "\n" } else { "" };
            let file = format!("{first}{torn}{repair}{third}");
            assert_eq!(texts(&file), outer, "{end}");
        }
        let swallowing = format!("~ {}\n", notes[1].len() + 1 + third.len());
        let header = format!("~ {}\n", notes[1].len());
        for wrong in [&swallowing, "~ 1\n", "~ x\n", "~ 99999999999999999999\n", "~\n", "\n"] {
            let file = format!("{first}{}{third}", second.replace(&header, wrong));
            assert_eq!(texts(&file), outer, "{wrong}");
        }
        assert_eq!(texts(&format!("junk\n{first}junk\n{third}")), outer);
        let mut bytes = frames.concat().into_bytes();
        bytes[first.len() + 20] = 0xff;
        let damaged = Frame::Damaged { offset: first.len(), len: second.len() };
        assert_eq!(split_frames(&bytes)[1], damaged);
        assert_eq!(split_frames(b""), []);
    }

    proptest! {
        #[test]
        fn frames_cover_any_file(pieces in prop::collection::vec(prop_oneof![
            Just(b"~ ".to_vec()), Just(b"\n".to_vec()), Just(b"3\n".to_vec()), Just(frame(&seal(0)).into_bytes()),
            prop::collection::vec(any::<u8>(), 0..5),
        ], 0..20)) {
            let file = pieces.concat();
            let mut position = 0;
            for frame in split_frames(&file) {
                let (offset, length) = match frame {
                    Frame::Damaged { offset, len } => (offset, len),
                    Frame::Note { offset, text } => (offset, format!("~ {}\n{text}\n", text.len()).len()),
                };
                prop_assert_eq!(offset, position);
                position += length;
            }
            prop_assert_eq!(position, file.len());
        }
    }
}
