//! The body of an `add-checkpoint` request (C2SP tlog-witness).

use thiserror::Error;
use wardkeep_evidence::checkpoint::{Checkpoint, CheckpointError};
use wardkeep_evidence::merkle::{HashFormatError, TreeHash};
use wardkeep_evidence::note::{Note, NoteError};

use super::parse_decimal;

/// Where a checkpoint is sent, below the witness's prefix.
pub(super) const ADD_CHECKPOINT: &str = "/add-checkpoint";

/// Where the last cosigned checkpoint of a log is found, below the witness's prefix.
pub(super) const LATEST: &str = "/latest";

/// The header by which a log introduces itself: the text form of its public keys.
pub(super) const LOG_HEADER: &str = "Wardkeep-Log";

/// The type of a conflict's body: the size the witness holds.
pub(super) const SIZE_TYPE: &str = "text/x.tlog.size";

/// The most hashes in a consistency proof.
pub(super) const MAX_PROOF_LINES: usize = 63;

/// What a log asks a witness to cosign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AddCheckpoint {
    /// The size the log believes the witness holds.
    pub(super) old: u64,
    /// The proof from that size to the checkpoint's.
    pub(super) proof: Vec<TreeHash>,
    /// The signed checkpoint.
    pub(super) note: Note,
    /// What the note states.
    pub(super) checkpoint: Checkpoint,
}

impl AddCheckpoint {
    /// Reads a request's body.
    pub(super) fn parse(body: &[u8]) -> Result<Self, RequestError> {
        let text = str::from_utf8(body).map_err(|_| RequestError::NotText)?;
        let (first, mut rest) = text.split_once('\n').ok_or(RequestError::OldSize)?;
        let old =
            first.strip_prefix("old ").and_then(parse_decimal).ok_or(RequestError::OldSize)?;
        let mut proof = Vec::new();
        loop {
            let (line, after) = rest.split_once('\n').ok_or(RequestError::NoCheckpoint)?;
            rest = after;
            if line.is_empty() {
                break;
            }
            if proof.len() == MAX_PROOF_LINES {
                return Err(RequestError::ProofTooLong);
            }
            proof.push(TreeHash::from_base64(line)?);
        }
        let note = Note::parse(rest)?;
        let checkpoint = Checkpoint::parse(&note.text)?;
        Ok(Self { old, proof, note, checkpoint })
    }
}

/// Writes a request's body.
pub(super) fn body(old: u64, proof: &[TreeHash], note: &Note) -> String {
    let lines: String = proof.iter().map(|hash| format!("{hash}\n")).collect();
    format!("old {old}\n{lines}\n{note}")
}

/// Why a body is not an `add-checkpoint` request.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(super) enum RequestError {
    #[error("the request is not text")]
    NotText,
    #[error("the first line is not `old` and a decimal without leading zeros")]
    OldSize,
    #[error("the proof has more than {MAX_PROOF_LINES} lines")]
    ProofTooLong,
    #[error("the proof is malformed: {0}")]
    Proof(#[from] HashFormatError),
    #[error("no checkpoint follows the proof and an empty line")]
    NoCheckpoint,
    #[error("the checkpoint is malformed: {0}")]
    Note(#[from] NoteError),
    #[error("the checkpoint is malformed: {0}")]
    Checkpoint(#[from] CheckpointError),
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wardkeep_evidence::merkle::leaf_hash;

    use super::*;

    const NOTE: &str = "a\n1\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n\n— a AAAAAAEC\n";

    #[test]
    fn bodies_round_trip_and_malformed_ones_are_refused() {
        let note = Note::parse(NOTE).unwrap();
        for count in [0, 1, MAX_PROOF_LINES] {
            let proof = vec![leaf_hash(b"x"); count];
            let read = AddCheckpoint::parse(body(7, &proof, &note).as_bytes()).unwrap();
            assert_eq!((read.old, read.proof, &read.note), (7, proof, &note));
        }
        let hash = leaf_hash(b"x");
        let too_long = body(7, &[hash; MAX_PROOF_LINES + 1], &note);
        assert_eq!(AddCheckpoint::parse(too_long.as_bytes()), Err(RequestError::ProofTooLong));
        for old in [
            "",
            "old",
            "old ",
            "old 01",
            "old +1",
            "old -1",
            "old 1 ",
            "Old 1",
            "old 99999999999999999999",
        ] {
            let text = format!("{old}\n\n{NOTE}");
            assert_eq!(AddCheckpoint::parse(text.as_bytes()), Err(RequestError::OldSize), "{old}");
        }
        for text in
            ["old 1\n", "old 1\n\n", "old 1\nx\n\n", "old 1\r\n\r\n", &format!("old 1\n{NOTE}")]
        {
            assert!(AddCheckpoint::parse(text.as_bytes()).is_err(), "{text}");
        }
        assert_eq!(AddCheckpoint::parse(b"old 1\n\xff"), Err(RequestError::NotText));
    }

    proptest! {
        #[test]
        fn any_body_is_survived(parts in prop::collection::vec(prop_oneof![
            Just("old 1\n".to_owned()), Just("\n".to_owned()), Just(NOTE.to_owned()),
            Just(format!("{}\n", leaf_hash(b"x"))), any::<String>(),
        ], 0..6)) {
            let _ = AddCheckpoint::parse(parts.concat().as_bytes());
        }
    }
}
