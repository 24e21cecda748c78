//! Anchors: places that remember how far the log had come and that its writer cannot rewind.
//!
//! A seal shows that the log was not changed up to it, but whoever can restore an older state
//! directory restores older seals with it. An [`Anchor`] keeps the newest seal elsewhere: in a file
//! of another user ([`mod@file`]), in a git remote ([`git`]) or with a witness that cosigns it
//! ([`witness`], served by [`server`]). The [`outbox`] tries them in turn and remembers what each
//! of them said.
//!
//! What an anchor holds is believed only when the log's own key signed it, and what a witness says
//! only when the witness's key signed it. The one exception is a refusal (a size in a conflict, a
//! proof not accepted): it is not signed, so it raises an alarm and never lowers one.

pub mod file;
pub mod git;
pub mod heads;
mod http;
pub mod outbox;
mod process;
mod request;
pub mod server;
mod storage;
pub mod witness;

use std::ffi::OsString;
use std::fmt;
use std::time::Duration;

use thiserror::Error;
use wardkeep_evidence::checkpoint::Checkpoint;
use wardkeep_evidence::merkle::{TreeHash, verify_consistency};
use wardkeep_evidence::note::Note;
use wardkeep_evidence::seal::LogPublic;

/// The largest seal an anchor is given, in bytes with its signatures.
pub const MAX_SEAL_BYTES: usize = 32 * 1024;

const SHOWN_CHARACTERS: usize = 200;

/// A place that keeps seals where the writer of the log cannot take them back.
pub trait Anchor {
    /// The name the owner gave it.
    fn name(&self) -> &str;

    /// What it is: `file`, `git` or `witness`.
    fn kind(&self) -> &'static str;

    /// Leaves the seal there, after comparing it with what the place already holds; `now` is the
    /// Unix time.
    fn put(&mut self, submission: &Submission<'_>, now: u64) -> Result<Receipt, AnchorError>;

    /// The largest size of the log the place can show; `None` when it never saw the log.
    fn latest(&mut self, log: &LogPublic) -> Result<Option<u64>, AnchorError>;
}

/// The newest seal of a log, and the means to show what came before it.
#[derive(Clone, Copy)]
pub struct Submission<'a> {
    /// The keys the log is pinned by.
    pub log: &'a LogPublic,
    /// The seal as the log signed it.
    pub note: &'a Note,
    /// What the seal states.
    pub checkpoint: &'a Checkpoint,
    /// The consistency proof from an earlier size to the size of the seal; `None` when the log
    /// cannot give one.
    pub consistency: &'a dyn Fn(u64) -> Option<Vec<TreeHash>>,
}

impl Submission<'_> {
    /// Refuses a seal that no anchor could hold against anybody.
    fn check(&self, anchor: &str) -> Result<(), AnchorError> {
        let refuse = |reason: &str| Err(AnchorError::format(anchor, reason));
        if self.note.to_string().len() > MAX_SEAL_BYTES {
            return refuse("the seal is larger than an anchor takes; check what signed it");
        }
        if self.checkpoint.to_text() != self.note.text {
            return refuse("the seal and its checkpoint differ; seal the log again");
        }
        if self.checkpoint.origin != self.log.origin() {
            return refuse("the seal is of another log; use the keys made with this log");
        }
        match self.log.log_key().verify(self.note) {
            Ok(_) => Ok(()),
            Err(error) => refuse(&format!("{error}; seal the log again")),
        }
    }

    /// Compares the seal with a head the anchor holds that the log's key signed.
    fn compare(&self, anchor: &str, held: &Checkpoint) -> Result<(), AnchorError> {
        let ours = self.checkpoint.size;
        if held.size > ours {
            return Err(AnchorError::Rollback {
                anchor: anchor.to_owned(),
                theirs: held.size,
                ours,
            });
        }
        let proof = (self.consistency)(held.size).ok_or_else(|| {
            let reason = format!("the log gives no proof from size {}; verify the log", held.size);
            AnchorError::format(anchor, &reason)
        })?;
        verify_consistency(held.size, &held.root, ours, &self.checkpoint.root, &proof)
            .map_err(|_| AnchorError::Fork { anchor: anchor.to_owned(), size: held.size })
    }
}

impl fmt::Debug for Submission<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Submission")
            .field("checkpoint", self.checkpoint)
            .finish_non_exhaustive()
    }
}

/// What an anchor gave for a seal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// The name of the anchor.
    pub anchor: String,
    /// The size it holds now.
    pub size: u64,
    /// When, in Unix seconds: the witness's own time where there is one, else ours.
    pub at: u64,
    /// The seal with the cosignature of a witness.
    pub cosigned: Option<Note>,
    /// How far the anchor can be trusted, in one line.
    pub detail: String,
}

/// Why a seal was not left with an anchor.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AnchorError {
    /// No answer, or one that asks for patience.
    #[error("anchor `{anchor}` cannot be reached: {reason}; it is tried again later")]
    Unreachable {
        /// The name of the anchor.
        anchor: String,
        /// What happened.
        reason: String,
    },
    /// The anchor is set up wrongly, or does not want this log.
    #[error("anchor `{anchor}` cannot be used: {reason}")]
    Refused {
        /// The name of the anchor.
        anchor: String,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// The anchor saw a larger log than there is: ours was rolled back or cut off.
    #[error(
        "anchor `{anchor}` has seen {theirs} entries and the log has {ours}: it was rolled back or cut off; restore the newer copy"
    )]
    Rollback {
        /// The name of the anchor.
        anchor: String,
        /// The size it saw.
        theirs: u64,
        /// The size there is.
        ours: u64,
    },
    /// The anchor holds another history: ours was rewritten.
    #[error(
        "anchor `{anchor}` holds another history of the first {size} entries: the log was rewritten; keep both and compare their heads"
    )]
    Fork {
        /// The name of the anchor.
        anchor: String,
        /// The size it holds another root for, or that ours does not continue.
        size: u64,
    },
    /// What was sent or came back is not what the protocol says.
    #[error("anchor `{anchor}`: {reason}")]
    Format {
        /// The name of the anchor.
        anchor: String,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// This machine could not do its own part.
    #[error("anchor `{anchor}`: {reason}")]
    Local {
        /// The name of the anchor.
        anchor: String,
        /// What failed, and what to do.
        reason: String,
    },
}

impl AnchorError {
    /// The stable name of the kind of error.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Unreachable { .. } => "unreachable",
            Self::Refused { .. } => "refused",
            Self::Rollback { .. } => "rollback",
            Self::Fork { .. } => "fork",
            Self::Format { .. } => "format",
            Self::Local { .. } => "local",
        }
    }

    fn unreachable(anchor: &str, reason: impl fmt::Display) -> Self {
        Self::Unreachable { anchor: anchor.to_owned(), reason: shown(&reason.to_string()) }
    }

    fn refused(anchor: &str, reason: impl fmt::Display) -> Self {
        Self::Refused { anchor: anchor.to_owned(), reason: reason.to_string() }
    }

    fn format(anchor: &str, reason: impl fmt::Display) -> Self {
        Self::Format { anchor: anchor.to_owned(), reason: reason.to_string() }
    }

    fn local(anchor: &str, reason: impl fmt::Display) -> Self {
        Self::Local { anchor: anchor.to_owned(), reason: reason.to_string() }
    }
}

/// What anchors need from the machine and must not find out for themselves.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// Where programs are looked for, as in `PATH`; relative folders in it are ignored.
    pub search_path: OsString,
    /// Variables for the git process, only of the kinds [`git::VARIABLES`] lists.
    pub variables: Vec<(OsString, OsString)>,
    /// How long one anchor may take in all for one step that leaves the machine.
    pub deadline: Duration,
}

impl Surroundings {
    /// Surroundings with this search path, no variables, and 30 seconds.
    pub fn new(search_path: OsString) -> Self {
        Self { search_path, variables: Vec::new(), deadline: Duration::from_secs(30) }
    }
}

/// The checkpoint in the text of a note, when it is of this log and the log's key signed it.
fn signed_head(text: &str, log: &LogPublic) -> Option<Checkpoint> {
    let note = Note::parse(text).ok()?;
    let checkpoint = Checkpoint::parse(&note.text).ok()?;
    let signed = checkpoint.origin == log.origin() && log.log_key().verify(&note).is_ok();
    signed.then_some(checkpoint)
}

/// Reads an ASCII decimal without sign and without leading zeros.
fn parse_decimal(text: &str) -> Option<u64> {
    let leading_zero = text.len() > 1 && text.starts_with('0');
    let only_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if only_digits && !leading_zero { text.parse().ok() } else { None }
}

/// The beginning of a text from outside, on one line and safe to show.
fn shown(text: &str) -> String {
    let line = text.trim().chars().take(SHOWN_CHARACTERS);
    line.flat_map(|character| match character {
        '\'' | '"' => character.to_string().chars().collect::<Vec<_>>(),
        _ => character.escape_debug().collect(),
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact() {
        let cases = [
            ("0", Some(0)),
            ("10", Some(10)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("", None),
            ("00", None),
            ("01", None),
            ("+1", None),
            ("-1", None),
            (" 1", None),
            ("1 ", None),
            ("١", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_decimal(text), expected, "{text:?}");
        }
    }

    #[test]
    fn foreign_text_is_shown_on_one_short_line() {
        assert_eq!(shown(" it's\n\u{1b}[31m \"red\" "), "it's\\n\\u{1b}[31m \"red\"");
        assert_eq!(shown(&"x".repeat(1000)).len(), SHOWN_CHARACTERS);
    }
}
