//! What is remembered of a workspace outside of it, so that an older or missing policy is noticed.

use serde::{Deserialize, Serialize};

use crate::hash::ContentHash;
use crate::workspace::WorkspaceId;

/// What is remembered of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// Counter of the newest manifest that was accepted; 0 if none had one.
    pub last_counter: u64,
    /// Whether a policy was ever signed here.
    pub ever_signed: bool,
    /// The policy that was signed or accepted last.
    pub last_content: Option<ContentHash>,
    /// Whether this could not be read back as it was written, so that nothing is known for sure.
    #[serde(skip)]
    pub damaged: Option<String>,
}

impl Memory {
    /// Of a workspace of which nothing is known.
    #[must_use]
    pub fn fresh(workspace_id: WorkspaceId) -> Self {
        Self {
            workspace_id,
            last_counter: 0,
            ever_signed: false,
            last_content: None,
            damaged: None,
        }
    }

    /// Of a workspace whose memory is lost: a policy is expected, none is accepted until the
    /// owner signs again.
    #[must_use]
    pub fn lost(workspace_id: WorkspaceId, why: String) -> Self {
        Self { ever_signed: true, damaged: Some(why), ..Self::fresh(workspace_id) }
    }
}
