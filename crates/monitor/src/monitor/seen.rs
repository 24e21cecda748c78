//! What whoever asks sees, and in which sessions they may act for that.
//!
//! A session belongs to those who see the files as the one did who began it: to whoever sees what the
//! daemon sees, or to the processes of one confinement. Its name alone gives nobody else a say in it.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use super::content::name_or;
use super::{AskError, Hook, Monitor, WhoBody, held};
use crate::daemon::{Peer, Reach, Role, Root, Sight};

/// Seconds without a question after which a session may be begun anew by someone who sees other files.
const IDLE: u64 = 600;

/// What of the files whoever asks may be told of.
#[derive(Debug)]
pub(super) enum Seen {
    /// All, as it is seen here.
    Same,
    /// All, by one who is held by more than the daemon is, or is another user's.
    All(&'static str),
    /// What is below this root as well.
    Below(Root),
    /// None.
    Nothing,
}

/// Who acts in a session, by what they see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Bound {
    /// Whoever sees what the daemon sees.
    Same,
    /// Others, by their mounts.
    Other(Box<str>),
}

impl Bound {
    pub(super) fn as_str(&self) -> &str {
        match self {
            Self::Same => SAME,
            Self::Other(mounts) => mounts,
        }
    }

    /// From a record.
    pub(super) fn from_record(text: &str) -> Self {
        match text {
            SAME => Self::Same,
            mounts => Self::Other(mounts.into()),
        }
    }
}

const SAME: &str = "same";
const USER: &str = "user";

/// Whether a name is the same for all of an agent's workspaces, or one of wardkeep's own: whoever takes it first
/// would speak for others.
fn is_shared(session: &str) -> bool {
    let of_ours = ["run:", "egress:", "quota:", "unread:"];
    [":installs", ":unread"].iter().any(|end| session.ends_with(end))
        || of_ours.iter().any(|begin| session.starts_with(begin))
}

impl Seen {
    pub(super) fn by(peer: &Peer) -> Self {
        if peer.role == Role::Owner {
            return Self::Same;
        }
        match peer.view.sight() {
            Sight::Same => Self::Same,
            Sight::Held => Self::All("held"),
            Sight::Other(root) => Self::Below(root),
            // An agent of another user, whom only root could look at: that user stands between them.
            Sight::Unknown if peer.uid != rustix::process::geteuid().as_raw() => Self::All(USER),
            Sight::Unknown => Self::Nothing,
        }
    }

    /// The root that counts, where it is not the one here.
    pub(super) fn view(&self) -> Result<Option<&Root>, AskError> {
        match self {
            Self::Same | Self::All(_) => Ok(None),
            Self::Below(root) => Ok(Some(root)),
            Self::Nothing => Err(AskError::Unseen),
        }
    }

    /// By what those are told apart who do not see what the daemon sees.
    pub(super) fn other(&self) -> Option<&str> {
        match self {
            Self::Same => None,
            Self::All(how) => Some(how),
            Self::Below(root) => Some(root.mounts()),
            Self::Nothing => Some("hidden"),
        }
    }

    /// Whether they may write to a workspace that they see.
    fn writes(&self, workspace: &Path) -> bool {
        match self {
            Self::Same => true,
            // That user stands between them and others. Of one who is held it cannot be told.
            Self::All(how) => *how == USER,
            Self::Below(root) => root.reach(workspace) == Reach::Write,
            Self::Nothing => false,
        }
    }

    /// What they say, without their words where those would be told as wardkeep's: of the hooks of agents
    /// only whoever sees what the daemon sees can tell.
    pub(super) fn believed<'a>(&self, what: &'a Hook) -> Cow<'a, Hook> {
        match what {
            Hook::Unprotected { agent, .. } if self.other().is_some() => {
                Cow::Owned(Hook::Unprotected {
                    agent: agent.clone(),
                    what: "a process that sees other files than the daemon says so".to_owned(),
                    mend: String::new(),
                })
            }
            _ => Cow::Borrowed(what),
        }
    }

    fn bound(&self) -> Bound {
        self.other().map_or(Bound::Same, |other| Bound::Other(other.into()))
    }
}

impl Monitor {
    /// The workspace of a session for someone who is about to act in it.
    ///
    /// # Errors
    /// When they do not see it, or the session belongs to others.
    pub(super) fn place_of(
        &self,
        session: &str,
        directory: &Path,
        what: &Hook,
        seen: &Seen,
    ) -> Result<PathBuf, AskError> {
        let workspace = match seen.view()? {
            Some(view) => self.workspace_seen(session, directory, view)?,
            None => self.workspace_of(session, directory)?,
        };
        let begins = matches!(what, Hook::SessionStart { .. });
        self.act_in(session, begins.then_some(&workspace), seen)?;
        Ok(workspace)
    }

    /// Looks whether someone may act in a session, which is theirs from now on if it was nobody's.
    /// `begins` is the workspace that it begins in, where it does.
    ///
    /// # Errors
    /// When it belongs to others.
    pub(super) fn act_in(
        &self,
        session: &str,
        begins: Option<&PathBuf>,
        seen: &Seen,
    ) -> Result<(), AskError> {
        if seen.other().is_some() && is_shared(session) {
            return Err(AskError::Foreign);
        }
        let session = self.session(session)?;
        let mut session = held(&session);
        let left = session.ended || self.store.now().unix().abs_diff(session.used) >= IDLE;
        let own = seen.bound();
        let becomes_theirs = match &session.bound {
            None => true,
            Some(bound) if *bound == own => false,
            // Whoever sees everything may act for all; what begins outside belongs there.
            Some(_) if own == Bound::Same => begins.is_some(),
            // One that was left may go on in another confinement of its workspace, and one of an earlier
            // confinement at once.
            Some(bound) => match begins {
                Some(place) if (left || *bound != Bound::Same) && seen.writes(place) => true,
                _ => return Err(AskError::Foreign),
            },
        };
        session.ended &= begins.is_none();
        if becomes_theirs {
            session.bound = Some(own);
        }
        Ok(())
    }

    /// Who says that an event could not be read, where that is told by someone who sees other files and may
    /// not act in the session that they name: then neither it nor the workspace is believed.
    pub(super) fn nowhere(&self, who: &WhoBody, what: &Hook, seen: &Seen) -> Option<WhoBody> {
        let other = seen.other()?;
        if self.place_of(&who.session, &who.workspace, what, seen).is_ok() {
            return None;
        }
        Some(WhoBody {
            agent: name_or(&who.agent, "unknown").to_owned(),
            session: format!("unread:{other}"),
            workspace: PathBuf::from("/"),
            principal: None,
            taint: Vec::new(),
            parents: Vec::new(),
        })
    }

    /// Looks whether a session may descend from another: what that one has seen is told by it.
    ///
    /// # Errors
    /// When the other belongs to others.
    pub(super) fn descends(&self, what: &Hook, seen: &Seen) -> Result<(), AskError> {
        let Hook::SessionStart { parent: Some(parent), .. } = what else { return Ok(()) };
        if seen.other().is_none() {
            return Ok(());
        }
        let shared = is_shared(parent);
        let parent = self.session(parent)?;
        let mut parent = held(&parent);
        let new = parent.bound.is_none() && parent.workspace.is_none();
        if shared || !new && parent.bound != Some(seen.bound()) {
            return Err(AskError::Foreign);
        }
        // What it hears of its descendants it hears from them.
        parent.bound = Some(seen.bound());
        Ok(())
    }
}

#[cfg(test)]
mod tests;
