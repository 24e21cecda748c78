//! Two heads of a log side by side: whether they can belong to one history.

use wardkeep_evidence::checkpoint::Checkpoint;
use wardkeep_evidence::note::{Note, VerifierKey};
use wardkeep_evidence::seal::Seal;

/// The keys whose word on a head counts.
#[derive(Debug, Clone, Copy)]
pub struct HeadKeys<'a> {
    /// The log's own key.
    pub log: &'a VerifierKey,
    /// The keys of the witnesses the owner trusts.
    pub witnesses: &'a [VerifierKey],
}

/// What two heads say about each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeadComparison {
    /// They are heads of two logs, or one is not of the log these keys belong to.
    OtherLog {
        /// The origin of the first.
        first: String,
        /// The origin of the second.
        second: String,
    },
    /// One of them is not a head, or no key given vouches for both.
    Unverified {
        /// What is missing.
        reason: String,
    },
    /// Same size and same root.
    Equal {
        /// The size of both.
        size: u64,
    },
    /// There are two histories under one name.
    ForkProven {
        /// What cannot be true of one history.
        proof: ForkProof,
        /// The names of the keys that vouch for both heads.
        signers: Vec<String>,
    },
    /// The sizes differ; only the log itself can show that one continues the other.
    Undecided {
        /// The smaller size.
        smaller: u64,
        /// The larger size.
        larger: u64,
    },
}

/// What two heads contradict each other in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForkProof {
    /// Two roots for one size.
    Root {
        /// The size of both.
        size: u64,
    },
    /// Two seals for one epoch.
    Epoch {
        /// The number of the epoch.
        epoch: u64,
    },
    /// The seal of a later epoch states fewer entries.
    Shrunk {
        /// The size in the earlier epoch.
        before: u64,
        /// The size in the later epoch.
        after: u64,
    },
}

/// Compares two heads; needs neither the log nor the network.
///
/// A fork is proven only when one and the same key vouches for both heads: the log's key, or that
/// of a witness. A bad signature of a given key on either head spoils that key's word.
pub fn compare_heads(first: &Note, second: &Note, keys: HeadKeys<'_>) -> HeadComparison {
    let (a, b) = match (Checkpoint::parse(&first.text), Checkpoint::parse(&second.text)) {
        (Ok(a), Ok(b)) => (a, b),
        (Err(error), _) | (_, Err(error)) => {
            return HeadComparison::Unverified { reason: error.to_string() };
        }
    };
    if a.origin != b.origin || a.origin != keys.log.name() {
        return HeadComparison::OtherLog { first: a.origin, second: b.origin };
    }
    let vouches = |key: &&VerifierKey| key.verify(first).is_ok() && key.verify(second).is_ok();
    let all_keys = std::iter::once(keys.log).chain(keys.witnesses);
    let signers: Vec<_> = all_keys.filter(vouches).map(|key| key.name().to_owned()).collect();
    if signers.is_empty() {
        let reason = "no key given signed both heads; give the key of the log or of a witness";
        return HeadComparison::Unverified { reason: reason.to_owned() };
    }
    match contradiction(&a, &b) {
        Some(proof) => HeadComparison::ForkProven { proof, signers },
        None if a.size == b.size => HeadComparison::Equal { size: a.size },
        None => {
            HeadComparison::Undecided { smaller: a.size.min(b.size), larger: a.size.max(b.size) }
        }
    }
}

fn contradiction(a: &Checkpoint, b: &Checkpoint) -> Option<ForkProof> {
    if a.size == b.size && a.root != b.root {
        return Some(ForkProof::Root { size: a.size });
    }
    let (a, b) = (Seal::from_checkpoint(a).ok()?, Seal::from_checkpoint(b).ok()?);
    let (earlier, later) = if a.epoch <= b.epoch { (a, b) } else { (b, a) };
    if earlier.epoch == later.epoch && earlier != later {
        return Some(ForkProof::Epoch { epoch: earlier.epoch });
    }
    let shrunk = ForkProof::Shrunk { before: earlier.size, after: later.size };
    (earlier.size > later.size).then_some(shrunk)
}
