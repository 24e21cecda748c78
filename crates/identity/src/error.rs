//! Why something could not be done.

use std::io;

use wardkeep_evidence::hash::BlobHash;

use crate::changes::ApprovalHash;
use crate::config::ConfigError;
use crate::name::Name;

/// Why an operation was refused or failed. Nothing was changed, unless the text says so.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// The file system refused.
    #[error("cannot {action} `{place}`: {error}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        place: String,
        /// What the system said.
        error: io::Error,
    },
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Nothing was approved here yet.
    #[error("this workspace is not set up: run `wardkeep init` first")]
    NotSetUp,
    /// It was set up before.
    #[error("this workspace is set up already: see `wardkeep status`")]
    SetUp,
    /// A file of the state directory is not what was written.
    #[error("the state of this workspace is damaged ({what}): restore the state directory")]
    Damaged {
        /// What is wrong.
        what: String,
    },
    /// There is no staging folder, which is not the same as one from which all was deleted.
    #[error(
        "there is no staging folder `.soulguard/staging`: run `wardkeep init` or `wardkeep reset --all` first"
    )]
    NoStaging,
    /// The workspace is not the folder that it was.
    #[error("`{place}` is not the folder that was opened: another one was put in its place")]
    Moved {
        /// Its path.
        place: String,
    },
    /// Another process is at work.
    #[error("another process changes this workspace: run it again")]
    Busy,
    /// Too much is asked.
    #[error("there are more than {limit} {what}: narrow the tiers in `soulguard.json`")]
    TooMuch {
        /// The limit.
        limit: u64,
        /// Of what.
        what: &'static str,
    },
    /// What was approved is not what is there.
    #[error("the changes have the hash {found}, not {approved}: run `wardkeep diff` again")]
    HashMismatch {
        /// What was approved.
        approved: ApprovalHash,
        /// What the changes have.
        found: ApprovalHash,
    },
    /// The baseline changed since the changes were shown.
    #[error("`{name}` was approved differently meanwhile: run `wardkeep diff` again")]
    Stale {
        /// The file.
        name: Name,
    },
    /// A file is not as it was approved.
    #[error("`{name}` is not as it was approved: run `wardkeep sync` first")]
    Drifted {
        /// The file.
        name: Name,
    },
    /// A file was changed by somebody else in this moment; all was put back.
    #[error(
        "`{name}` was changed by another process in this moment: nothing was changed, try again"
    )]
    Raced {
        /// The file.
        name: Name,
    },
    /// The configuration protects itself.
    #[error("self-protection: {what}")]
    SelfProtection {
        /// What is refused.
        what: String,
    },
    /// Only protected files are staged.
    #[error("`{name}` is not in the protect tier: see `wardkeep status`")]
    NotProtected {
        /// The file.
        name: Name,
    },
    /// It is in no tier.
    #[error("`{name}` is in no tier by an entry of its own: edit the entry in `soulguard.json`")]
    NotListed {
        /// The file.
        name: Name,
    },
    /// There is no such file.
    #[error("`{name}` does not exist")]
    Missing {
        /// The file.
        name: Name,
    },
    /// It cannot be taken as it is.
    #[error("`{name}` cannot be used: {why}")]
    Unfit {
        /// The file.
        name: Name,
        /// What is wrong with it.
        why: String,
    },
    /// Approved bytes are not what was kept.
    #[error("the kept content {hash} is damaged or gone: restore the state directory")]
    Object {
        /// Its hash.
        hash: BlobHash,
    },
    /// It failed, and putting back failed as well; the next start tries again.
    #[error("{first}; putting back failed as well ({then}): it is tried again at the next start")]
    HalfDone {
        /// Why it failed.
        first: Box<IdentityError>,
        /// Why putting back failed.
        then: Box<IdentityError>,
    },
}

/// The outcome of an operation.
pub type Result<T> = std::result::Result<T, IdentityError>;

impl IdentityError {
    pub(crate) fn io(
        action: &'static str,
        place: impl std::fmt::Display,
        error: impl Into<io::Error>,
    ) -> Self {
        Self::Io { action, place: place.to_string(), error: error.into() }
    }

    pub(crate) fn damaged(what: impl Into<String>) -> Self {
        Self::Damaged { what: what.into() }
    }
}
