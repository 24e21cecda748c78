//! How a workspace is enforced: by whom files are owned, and with which modes.

use rustix::fs::{Gid, Uid};

use crate::config::Tier;
use crate::lock::Lock;

/// Who holds what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Owner and agent are one user: drift is detected, and prevented only where the agent is confined.
    User,
    /// Protected files belong to a user of their own, so that the system denies the agent.
    Owned {
        /// Owns protected files.
        guardian: Uid,
        /// Group of tracked files.
        group: Gid,
        /// Owns watched files and staging.
        agent: Uid,
        /// Group of what is in no tier.
        agent_group: Gid,
        /// What holds a file against renaming and replacing.
        lock: Lock,
    },
}

/// In whose hands a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Holder {
    Protect,
    Watch,
    /// In no tier.
    Free,
    /// A staging copy.
    Staging,
}

impl From<Tier> for Holder {
    fn from(tier: Tier) -> Self {
        match tier {
            Tier::Protect => Self::Protect,
            Tier::Watch => Self::Watch,
        }
    }
}

/// Bits that make a file executable.
const EXECUTE: u32 = 0o111;

/// The mode of a file of which only the executable bit is known.
#[must_use]
pub(crate) fn plain_mode(executable: bool) -> u32 {
    if executable { 0o755 } else { 0o644 }
}

/// Whether a mode lets its owner execute.
#[must_use]
pub(crate) fn is_executable(mode: u32) -> bool {
    mode & 0o100 != 0
}

impl Level {
    /// Owner and group of a file; `None` where everything belongs to whoever asks.
    pub(crate) fn owner(&self, holder: Holder) -> Option<(Uid, Gid)> {
        match *self {
            Self::User => None,
            Self::Owned { guardian, group, agent, agent_group, .. } => Some(match holder {
                Holder::Protect => (guardian, group),
                Holder::Watch | Holder::Staging => (agent, group),
                Holder::Free => (agent, agent_group),
            }),
        }
    }

    /// The mode of a file that was approved with this one. Bits that lend rights never stay.
    pub(crate) fn file_mode(&self, holder: Holder, approved: u32) -> u32 {
        let approved = approved & 0o777;
        let execute = if is_executable(approved) { EXECUTE } else { 0 };
        match (self, holder) {
            (Self::User, Holder::Protect) => approved & 0o555,
            (Self::User, Holder::Watch | Holder::Free) => approved,
            (Self::Owned { .. }, Holder::Protect) => 0o444 | execute,
            (Self::Owned { .. }, Holder::Watch | Holder::Free) | (_, Holder::Staging) => {
                0o644 | execute
            }
        }
    }

    /// The mode of a folder in which everything is protected.
    pub(crate) fn folder_mode(&self) -> Option<u32> {
        match self {
            Self::User => None,
            Self::Owned { .. } => Some(0o555),
        }
    }

    /// Whether a user is the agent or the guardian.
    pub(crate) fn is_ours(&self, uid: u32) -> bool {
        match self {
            Self::User => true,
            Self::Owned { guardian, agent, .. } => {
                uid == agent.as_raw() || uid == guardian.as_raw()
            }
        }
    }

    pub(crate) fn lock(&self) -> Lock {
        match self {
            Self::User => Lock::None,
            Self::Owned { lock, .. } => *lock,
        }
    }

    /// Whether the agent cannot write what is protected, so that the times of a file tell the truth.
    pub(crate) fn is_owned(&self) -> bool {
        matches!(self, Self::Owned { .. })
    }
}
