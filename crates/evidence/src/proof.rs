//! Offline proofs (C2SP tlog-proof v1): one leaf's place in a log, with the signed checkpoint.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use thiserror::Error;

use crate::checkpoint::{Checkpoint, CheckpointError, parse_decimal};
use crate::merkle::{self, HashFormatError, ProofError, TreeHash};
use crate::note::{Note, NoteError};

/// The most hashes a proof may have.
pub const MAX_PROOF_HASHES: usize = 63;

/// The most extra data a proof may carry, in bytes.
pub const MAX_EXTRA_BYTES: usize = 16 << 20;

const HEADER: &str = "c2sp.org/tlog-proof@v1";
const EXTRA_PREFIX: &str = "extra ";
const INDEX_PREFIX: &str = "index ";
const MAX_EXTRA_BASE64_LENGTH: usize = MAX_EXTRA_BYTES.div_ceil(3) * 4;

/// A proof that a leaf is in the log its checkpoint describes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlogProof {
    /// Data for the application; nothing vouches for it.
    pub extra: Option<Vec<u8>>,
    /// The number of the leaf, from zero.
    pub index: u64,
    /// The inclusion proof, from the leaf upwards.
    pub hashes: Vec<TreeHash>,
    /// The signed checkpoint.
    pub note: Note,
}

impl TlogProof {
    /// Reads a proof. Its `Display` writes exactly the bytes accepted here.
    pub fn parse(text: &str) -> Result<Self, TlogProofError> {
        let (header, rest) = split_line(text)?;
        if header != HEADER {
            return Err(TlogProofError::Header);
        }
        let (extra, rest) = match rest.strip_prefix(EXTRA_PREFIX) {
            Some(rest) => {
                let (encoded, rest) = split_line(rest)?;
                (Some(decode_extra(encoded)?), rest)
            }
            None => (None, rest),
        };
        let (line, mut rest) = split_line(rest)?;
        let index = line.strip_prefix(INDEX_PREFIX).and_then(parse_decimal);
        let index = index.ok_or(TlogProofError::Index)?;
        let mut hashes = Vec::new();
        loop {
            let (line, after) = split_line(rest)?;
            rest = after;
            if line.is_empty() {
                break;
            }
            if hashes.len() == MAX_PROOF_HASHES {
                return Err(TlogProofError::TooManyHashes);
            }
            hashes.push(TreeHash::from_base64(line)?);
        }
        Ok(Self { extra, index, hashes, note: Note::parse(rest)? })
    }

    /// Checks that `leaf` is in the tree of the checkpoint, and gives the checkpoint.
    ///
    /// This checks no signature. The caller must check the log's signature on [`TlogProof::note`],
    /// its origin, and the cosignatures it asks for; without that the result proves nothing.
    pub fn verify(&self, leaf: &TreeHash) -> Result<Checkpoint, TlogProofError> {
        let checkpoint = Checkpoint::parse(&self.note.text)?;
        let Checkpoint { size, root, .. } = &checkpoint;
        merkle::verify_inclusion(leaf, self.index, *size, &self.hashes, root)?;
        Ok(checkpoint)
    }
}

impl fmt::Display for TlogProof {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{HEADER}")?;
        if let Some(extra) = &self.extra {
            writeln!(formatter, "{EXTRA_PREFIX}{}", STANDARD.encode(extra))?;
        }
        writeln!(formatter, "{INDEX_PREFIX}{}", self.index)?;
        self.hashes.iter().try_for_each(|hash| writeln!(formatter, "{hash}"))?;
        write!(formatter, "\n{}", self.note)
    }
}

fn split_line(text: &str) -> Result<(&str, &str), TlogProofError> {
    text.split_once('\n').ok_or(TlogProofError::CutOff)
}

fn decode_extra(encoded: &str) -> Result<Vec<u8>, TlogProofError> {
    if encoded.len() > MAX_EXTRA_BASE64_LENGTH {
        return Err(TlogProofError::ExtraTooLarge);
    }
    let extra = STANDARD.decode(encoded).map_err(|_| TlogProofError::Extra)?;
    if extra.len() > MAX_EXTRA_BYTES { Err(TlogProofError::ExtraTooLarge) } else { Ok(extra) }
}

/// Why a proof is malformed or does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TlogProofError {
    /// The first line is another one.
    #[error("the file does not begin with `{HEADER}`; give a tlog-proof file of version 1")]
    Header,
    /// A line is missing.
    #[error("the proof is cut off before its checkpoint; fetch it again")]
    CutOff,
    /// The extra data is not base64.
    #[error("the extra line of the proof is not standard base64")]
    Extra,
    /// The extra data is above [`MAX_EXTRA_BYTES`].
    #[error("the proof carries more than {MAX_EXTRA_BYTES} bytes of extra data")]
    ExtraTooLarge,
    /// The index line is missing or not a plain decimal.
    #[error("the proof has no line `index <decimal>` where one is expected")]
    Index,
    /// There are more than [`MAX_PROOF_HASHES`] hash lines.
    #[error("the proof has more than {MAX_PROOF_HASHES} hashes")]
    TooManyHashes,
    /// A hash line is not the base64 form of a hash.
    #[error("a hash line of the proof is malformed: {0}")]
    Hash(#[from] HashFormatError),
    /// What follows the empty line is not a note.
    #[error("the checkpoint of the proof is malformed: {0}")]
    Note(#[from] NoteError),
    /// The note is not a checkpoint.
    #[error("the checkpoint of the proof is malformed: {0}")]
    Checkpoint(#[from] CheckpointError),
    /// The leaf is not where the proof says.
    #[error("the leaf is not proven: {0}")]
    Inclusion(#[from] ProofError),
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::merkle::{Tree, leaf_hash};
    use crate::note::{Algorithm, SigningKey};

    fn leaf(number: u64) -> TreeHash {
        leaf_hash(&number.to_be_bytes())
    }

    fn proof(index: u64, size: u64, extra: Option<Vec<u8>>) -> TlogProof {
        let mut tree = Tree::new();
        (0..size).for_each(|number| tree.push(leaf(number)));
        let root = tree.root_at(size).unwrap();
        let checkpoint = Checkpoint { origin: "log".to_owned(), size, root, extensions: vec![] };
        let key = SigningKey::from_seed("log", Algorithm::Ed25519, &[3; 32]).unwrap();
        let mut note = Note::new(checkpoint.to_text()).unwrap();
        note.push(key.sign(&note.text).unwrap()).unwrap();
        TlogProof { extra, index, hashes: tree.inclusion(index, size).unwrap(), note }
    }

    #[test]
    fn proofs_round_trip_and_verify() {
        for (index, size, extra) in [(0, 1, None), (4, 11, Some(vec![1, 2])), (6, 7, Some(vec![]))]
        {
            let made = proof(index, size, extra);
            let text = made.to_string();
            let read = TlogProof::parse(&text).unwrap();
            assert_eq!((&read, read.to_string()), (&made, text));
            assert_eq!(read.verify(&leaf(index)).unwrap().size, size);
            let other = read.verify(&leaf(index + 1));
            assert_eq!(other, Err(TlogProofError::Inclusion(ProofError::RootDiffers)));
        }
    }

    #[test]
    fn layout_is_that_of_the_specification() {
        let made = proof(1, 2, Some(b"hello".to_vec()));
        let sibling = leaf(0);
        let expected =
            format!("c2sp.org/tlog-proof@v1\nextra aGVsbG8=\nindex 1\n{sibling}\n\n{}", made.note);
        assert_eq!(made.to_string(), expected);
    }

    #[test]
    fn changed_proofs_do_not_verify() {
        let made = proof(4, 11, None);
        let verify = |proof: TlogProof| proof.verify(&leaf(4));
        assert!(verify(made.clone()).is_ok());
        assert!(verify(TlogProof { index: 5, ..made.clone() }).is_err());
        assert!(verify(TlogProof { index: u64::MAX, ..made.clone() }).is_err());
        assert!(verify(TlogProof { hashes: made.hashes[1..].to_vec(), ..made.clone() }).is_err());
        let hashes_in_note = made.to_string().replace("index 4\n", "index 4\n\n");
        let misread = TlogProof::parse(&hashes_in_note).unwrap();
        assert!(matches!(verify(misread), Err(TlogProofError::Checkpoint(_))));
        let note = Note { text: "not a checkpoint\n".to_owned(), ..made.note.clone() };
        assert!(matches!(verify(TlogProof { note, ..made }), Err(TlogProofError::Checkpoint(_))));
    }

    #[test]
    fn malformed_proofs_are_refused() {
        let good = proof(4, 11, Some(vec![1])).to_string();
        let hash_line = format!("{}\n", leaf(9));
        let index_and_more = format!("index 4\n{}", hash_line.repeat(MAX_PROOF_HASHES));
        let cases = [
            (String::new(), TlogProofError::CutOff),
            (good.replace("@v1", "@v2"), TlogProofError::Header),
            (format!("\n{good}"), TlogProofError::Header),
            (good.replace("extra AQ==", "extra AQ"), TlogProofError::Extra),
            (good.replace("extra AQ==", "extra AR=="), TlogProofError::Extra),
            (good.replace("extra AQ==", "index 4"), HashFormatError.into()),
            (good.replace("index 4\n", ""), TlogProofError::Index),
            (good.replace("index 4", "index 04"), TlogProofError::Index),
            (good.replace("index 4", "index  4"), TlogProofError::Index),
            (good.replace("index 4", "index 4\nx"), HashFormatError.into()),
            (good.replace("index 4\n", &index_and_more), TlogProofError::TooManyHashes),
            (format!("{good}x"), NoteError::NoFinalNewline.into()),
        ];
        for (text, expected) in cases {
            assert_eq!(TlogProof::parse(&text), Err(expected), "{text}");
        }
        for end in 0..good.len() {
            assert!(good.get(..end).is_none_or(|cut| TlogProof::parse(cut).is_err()), "{end}");
        }
    }

    #[test]
    fn extra_data_is_bounded() {
        let mut large = proof(0, 1, Some(vec![0; MAX_EXTRA_BYTES]));
        assert!(TlogProof::parse(&large.to_string()).is_ok());
        large.extra.as_mut().unwrap().push(0);
        assert_eq!(TlogProof::parse(&large.to_string()), Err(TlogProofError::ExtraTooLarge));
    }

    proptest! {
        #[test]
        fn hostile_input_never_panics(
            text in "c2sp.org/tlog-proof@v1\n(extra [A-Za-z=]{0,8}\n)?(index [0-9]{1,3}\n)?(?s:.){0,60}",
        ) {
            if let Ok(read) = TlogProof::parse(&text) {
                prop_assert_eq!(read.to_string(), text);
            }
        }
    }
}
