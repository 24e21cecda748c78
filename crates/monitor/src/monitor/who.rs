//! Who acts, and what is answered.

use std::path::{Path, PathBuf};

use wardkeep_evidence::hash::RecordId;
use wardkeep_evidence::record::Principal;
use wardkeep_guard::alert::{Category, Severity};
use wardkeep_guard::taint::Taint;
use wardkeep_guard::verdict::Verdict;

use crate::daemon::Root;
use crate::index::IndexError;
use crate::resolve::ResolveError;
use crate::store::StoreError;

/// Who acts, and in which session.
#[derive(Debug, Clone, Copy)]
pub struct Who<'a> {
    /// The agent.
    pub agent: &'a str,
    /// The session: the agent's name, a colon, and the agent's own id for it.
    pub session: &'a str,
    /// The workspace; relative paths start here.
    pub workspace: &'a Path,
    /// On whose behalf. What the agent does by itself is done on behalf of `USER`.
    pub principal: Principal,
    /// Taint that the caller knows of. It is added; none is ever taken away.
    pub taint: Taint,
    /// Records that this follows from more closely than from the session as a whole. They add
    /// edges and take none away.
    pub parents: &'a [RecordId],
    /// What the caller sees of the files, where that is not what is seen here: of the rest only names
    /// count.
    pub view: Option<&'a Root>,
}

impl<'a> Who<'a> {
    /// Without taint or parents of its own.
    #[must_use]
    pub fn new(
        agent: &'a str,
        session: &'a str,
        workspace: &'a Path,
        principal: Principal,
    ) -> Self {
        Self { agent, session, workspace, principal, taint: Taint::NONE, parents: &[], view: None }
    }

    /// On behalf of someone else.
    #[must_use]
    pub fn on_behalf_of(self, principal: Principal) -> Self {
        Self { principal, ..self }
    }

    /// With taint that the caller knows of.
    #[must_use]
    pub fn tainted(self, taint: Taint) -> Self {
        Self { taint: self.taint | taint, ..self }
    }

    /// Where the caller sees other files.
    #[must_use]
    pub fn seeing(self, view: Option<&'a Root>) -> Self {
        Self { view, ..self }
    }

    /// With closer parents.
    #[must_use]
    pub fn after(self, parents: &'a [RecordId]) -> Self {
        Self { parents, ..self }
    }
}

/// What is answered. The record is on disk when this is returned.
#[derive(Debug, Clone)]
#[must_use = "what was not allowed must not happen"]
pub struct Outcome {
    /// The record of it; in a flood of denials, the newest one that sums them up.
    pub record: RecordId,
    /// What may happen.
    pub verdict: Verdict,
    /// The rule that decided, or that let it pass.
    pub rule: String,
    /// Why, in words for the owner and the agent.
    pub reason: String,
    /// What to do next, where there is something.
    pub suggestion: Option<String>,
    /// The taint of what happens.
    pub taint: Taint,
    /// How bad it is.
    pub severity: Severity,
    /// What it concerns, if it is worth telling.
    pub category: Option<Category>,
    /// The text without what was found, where the verdict is [`Verdict::Redact`].
    pub text: Option<String>,
    /// Where it may be written instead, where the verdict is [`Verdict::Stage`].
    pub staged: Option<PathBuf>,
    /// Alerts that this raised.
    pub alerts: Vec<Alert>,
}

impl Outcome {
    /// Whether it may happen as it was asked.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        self.verdict == Verdict::Allow
    }
}

/// An alert that was raised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alert {
    /// Its record; `None` where it could not be written and the reason stands in the message.
    pub record: Option<RecordId>,
    /// Its name, such as `RollbackRecommended`.
    pub name: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What the agent must tell its user.
    pub message: String,
}

/// Why there is no answer. Whoever asked must treat it as a denial.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MonitorError {
    /// The journal cannot be used: what cannot be recorded may not happen.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The index cannot be used.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// What the owner approved cannot be read.
    #[error(transparent)]
    Approvals(#[from] crate::approvals::ApprovalsError),
    /// There is no snapshot to go back to, and none can be taken.
    #[error("no snapshot could be taken before the change ({0}), so that it may not be made")]
    Snapshot(#[from] crate::snapshot::SnapshotError),
    /// Workspace or state directory cannot be resolved.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// The workspace cannot be opened.
    #[error(transparent)]
    Workspace(#[from] wardkeep_policy::workspace::WorkspaceError),
    /// Another monitor works on the same state directory.
    #[error(
        "another wardkeep works on `{}`: ask it through its socket, or stop it with `wardkeep daemon stop`",
        .0.display()
    )]
    Busy(PathBuf),
    /// An agent has told of more prompts than one session is watched for.
    #[error(
        "replies of this session are watched for all the prompts and names that it may have: tell of fewer, or in \
         another session"
    )]
    Prompts,
    /// A session has a name that cannot be one.
    #[error("`{0}` is no name of a session: give 1 to 256 printable characters")]
    Session(String),
}
