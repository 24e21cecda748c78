//! What whoever asks sees, and in which sessions they may act for that.
//!
//! A session belongs to those who see the files as the one did who began it: to whoever sees what the
//! daemon sees, or to the processes of one confinement. Its name alone gives nobody else a say in it.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use super::content::name_or;
use super::session::Session;
use super::{AskError, Hook, Monitor, WhoBody, held};
use crate::daemon::{Peer, Reach, Role, Root, Sight};

/// Seconds without a question after which a session may be begun anew by someone who sees other files.
const IDLE: u64 = 600;

/// How often a session is looked at again that changes hands meanwhile.
const AGAIN: usize = 8;

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

/// Where a session is, and whose it is.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    workspace: Option<PathBuf>,
    bound: Option<Bound>,
}

impl Place {
    fn of(session: &Session) -> Self {
        Self { workspace: session.workspace.clone(), bound: session.bound.clone() }
    }
}

/// The workspace of a session, and what someone who acts in it calls that.
#[derive(Debug)]
struct Seat {
    workspace: PathBuf,
    path: PathBuf,
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
        self.may_be_named(session, seen)?;
        let begins = matches!(what, Hook::SessionStart { .. });
        let session = self.session(session)?;
        for _ in 0..AGAIN {
            let known = Place::of(&held(&session));
            // Looked up while nobody is held up; nothing is kept of it for someone who may not act here.
            let place = self.place_seen(known.workspace.as_deref(), directory, seen)?;
            let fresh = match &known.bound {
                Some(bound) if *bound != seen.bound() => {
                    self.place_seen(None, directory, seen).ok()
                }
                _ => None,
            };
            let mut session = held(&session);
            if Place::of(&session) != known {
                continue;
            }
            // A name that someone took elsewhere is not theirs any more when it is used here, begun or not.
            let elsewhere = fresh.as_ref().is_some_and(|fresh| fresh.workspace != place.workspace);
            let begins = begins || elsewhere && seen.other().is_none();
            let was_of_others = self.act(&mut session, begins.then_some(&place.path), seen)?;
            let place = fresh.filter(|_| was_of_others).unwrap_or(place);
            session.workspace.get_or_insert(place.workspace);
            return Ok(place.path);
        }
        Err(AskError::Foreign)
    }

    /// Where someone works who says that they are in a folder: in the workspace that is known, else in that
    /// of the folder. Who sees other files has to see it, or the folder in it.
    fn place_seen(
        &self,
        known: Option<&Path>,
        directory: &Path,
        seen: &Seen,
    ) -> Result<Seat, AskError> {
        let stays = |workspace: PathBuf| Seat { path: workspace.clone(), workspace };
        let Some(view) = seen.view()? else {
            let known = known.map(Path::to_owned);
            return Ok(stays(known.unwrap_or_else(|| self.workspace_above(directory))));
        };
        let real = view.real(directory);
        let workspace = match (known, &real) {
            (Some(known), _) => known.to_owned(),
            (None, Some(real)) => self.workspace_above(real),
            (None, None) => return Err(AskError::Unseen),
        };
        if real.is_some_and(|real| real.starts_with(&workspace)) {
            return Ok(stays(workspace));
        }
        let path = view.real(&workspace).ok_or(AskError::Unseen)?;
        Ok(Seat { path, workspace })
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
        self.may_be_named(session, seen)?;
        let session = self.session(session)?;
        self.act(&mut held(&session), begins, seen).map(drop)
    }

    fn may_be_named(&self, session: &str, seen: &Seen) -> Result<(), AskError> {
        if seen.other().is_some() && is_shared(session) {
            return Err(AskError::Foreign);
        }
        Ok(())
    }

    /// As [`Monitor::act_in`]; gives whether it was taken over from others.
    fn act(
        &self,
        session: &mut Session,
        begins: Option<&PathBuf>,
        seen: &Seen,
    ) -> Result<bool, AskError> {
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
        let was_of_others = becomes_theirs && session.bound.is_some();
        if was_of_others {
            session.changes_hands();
        }
        if becomes_theirs {
            session.bound = Some(own);
        }
        Ok(was_of_others)
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
