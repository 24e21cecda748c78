//! The owner's approvals.
//!
//! A decision to ask never waits: its record *is* the request, and the caller is denied for now. The
//! owner answers with a record of their own, which holds a [`Grant`] signed with a key that is derived
//! from the device key; a retry of the same action then finds it by [`Approvals::lookup`]. Whatever
//! is not answered in time is denied.
//!
//! Everything is in the journal, so that it survives restarts. What is in memory is brought up to
//! date before each look, because other processes append too. A record that asks is believed only as
//! far as its action can be computed again from what it shows; an approval, only by its signature.

mod action;
mod answer;
mod book;
mod claims;
mod grant;
mod kept;
mod shown;
mod standing;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wardkeep_evidence::bundle::BundleError;
use wardkeep_evidence::hash::RecordId;
use wardkeep_evidence::time::Timestamp;
use wardkeep_policy::signed_set::SetVerification;
use wardkeep_policy::store::PolicyStore;

use crate::journal::{Folder, JournalError};
use crate::store::StoreError;

pub use action::{ActionHash, ActionKey, action_hash};
pub use answer::{Approved, Refused, Wish};
use book::Book;
pub use book::{Answered, Asked};
use claims::Claims;
pub use grant::{Grant, GrantId, GrantKey, Scope, UnknownScope};
pub use shown::{Content, Parent, Shown, Status};
pub use standing::Standing;
pub(crate) use standing::sign_along;

/// How long a request waits for its answer, in seconds.
pub const REQUEST_SECONDS: i64 = 10 * 60;
/// How long a refusal holds for the same action of the same session.
const REFUSED_SECONDS: u64 = 10 * 60;
/// How long a grant for one time is good, unless told otherwise.
pub const ONCE_SECONDS: i64 = 10 * 60;
/// How long a grant for a session is good, unless told otherwise.
pub const SESSION_SECONDS: i64 = 12 * 3600;
/// The longest that a grant is good which is not for always.
pub const MAX_SECONDS: i64 = 30 * 86_400;
/// Fewest digits that are taken for the beginning of a request's id.
pub const SHORTEST_PREFIX: usize = 8;
/// After so many bytes of the journal the book is written down.
const KEEP_AFTER_BYTES: u64 = 1 << 20;

/// Why something cannot be approved or looked up. Whoever asked for leave does not have it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApprovalsError {
    /// The journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The answer cannot be recorded.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file cannot be written.
    #[error(transparent)]
    Write(#[from] BundleError),
    /// The file system refused.
    #[error("cannot {action} `{path}` ({error}): fix the state directory's owner or mode")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// There is no key to sign with.
    #[error("nothing can be approved without the device key ({0}): see `wardkeep init`")]
    Key(String),
    /// The id is none.
    #[error(
        "`{0}` is no request: give at least the first {SHORTEST_PREFIX} digits of an id that `wardkeep approvals list` shows"
    )]
    NotAnId(String),
    /// There is no such request.
    #[error("no request begins with `{0}`: see `wardkeep approvals list`")]
    Unknown(String),
    /// There are several.
    #[error("several requests begin with `{0}`: give more digits")]
    Ambiguous(String),
    /// It has waited for too long.
    #[error("the request {id:.10} ended at {at}: let the agent try again, then answer the new one")]
    Expired {
        /// The request.
        id: RecordId,
        /// When.
        at: Timestamp,
    },
    /// It was answered.
    #[error("the request {id:.10} was {} before: let the agent try again for a new one", if *.approved { "approved" } else { "denied" })]
    Answered {
        /// The request.
        id: RecordId,
        /// Whether it was approved.
        approved: bool,
    },
    /// What it shows is not what it asks for.
    #[error(
        "the request {0:.10} asks for something else than it shows, so it is not approved: see `wardkeep evidence verify`"
    )]
    Mismatch(RecordId),
    /// Nobody is there to have read it.
    #[error("approving needs a person: run it in a terminal, or give --yes if you have read it")]
    NoPerson,
    /// The process is confined, so that an agent may have started it.
    #[error("answering is refused inside `wardkeep run`: do it in a terminal of your own")]
    Confined,
    /// The time is in the past or too far.
    #[error("an approval cannot last until {0}: give a time from now to 30 days")]
    Until(Timestamp),
    /// Taint that the request does not have.
    #[error("the request does not have the taint {0}: see `wardkeep approvals show`")]
    Taint(String),
    /// No randomness.
    #[error("the system gives no random bytes: {0}")]
    Random(String),
    /// The signed set is not as the owner signed it.
    #[error(
        "config, rules and pins are not as they were signed ({0}), and are not signed along with an approval: see `wardkeep config show`, then `wardkeep config sign`"
    )]
    Set(&'static str),
    /// The signed set could not be signed again.
    #[error("the standing approval could not be signed ({0}): see `wardkeep config show`")]
    Sign(String),
    /// There are too many standing approvals.
    #[error(
        "there are {0} standing approvals already: take some back with `wardkeep approvals deny`"
    )]
    Full(usize),
}

type Result<T> = std::result::Result<T, ApprovalsError>;

/// Whether a person may be behind an approval.
pub(crate) fn permitted(who: &wardkeep_policy::sign::Request) -> Result<()> {
    answer::permitted(who, true)
}

/// Requests, answers and grants of a state directory.
#[derive(Debug)]
pub struct Approvals {
    state: PathBuf,
    owner: u32,
    claims: Claims,
    inner: Mutex<Inner>,
}

/// Inode, size, and times of change of some files; `None` where one is not there.
type Stamps = [Option<(u64, i64, (i64, u64), (i64, u64))>; 4];

#[derive(Debug)]
struct Inner {
    // Looked for again as long as there is none.
    key: std::result::Result<Arc<GrantKey>, String>,
    book: Book,
    // Opened as soon as there is a journal.
    folder: Option<Folder>,
    standing: Vec<Standing>,
    // How the files looked that the standing grants depend on, when they were read.
    stamps: Option<Stamps>,
    // Bytes of the journal that were read since the book was written down.
    unkept: u64,
}

impl Inner {
    fn read(state: &Path, owner: u32) -> Self {
        let policy = PolicyStore::new(state, owner);
        let key = policy.key().map(|key| Arc::new(GrantKey::new(&key)));
        let key = key.map_err(|error| error.to_string());
        let kept = key.as_ref().ok().and_then(|key| kept::load(state, key));
        Self {
            key,
            book: kept.unwrap_or_default(),
            folder: None,
            standing: Vec::new(),
            stamps: None,
            unkept: 0,
        }
    }
}

impl Approvals {
    /// Opens what the state directory `state` of the user `owner` has; makes nothing.
    ///
    /// # Errors
    /// When there is a journal that cannot be read.
    pub fn open(state: &Path, owner: u32) -> Result<Self> {
        let approvals = Self {
            state: state.to_owned(),
            owner,
            claims: Claims::new(state),
            inner: Mutex::new(Inner::read(state, owner)),
        };
        drop(approvals.current()?);
        Ok(approvals)
    }

    /// Takes the grants for always from a signed set that was just verified. Each look does so by
    /// itself when the signature, the config or the file of the grants is another one; whoever
    /// verifies the set now and then tells of the rest.
    pub fn refresh_standing(&self, set: &SetVerification) {
        let mut inner = self.inner();
        let standing = inner.key.as_ref().map(|key| standing::load(set, key));
        inner.standing = standing.unwrap_or_default();
    }

    /// The requests that wait at `now`, newest first, each action of a session once.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn pending(&self, now: Timestamp) -> Result<Vec<Asked>> {
        let inner = self.current()?;
        let mut pending: Vec<Asked> = Vec::new();
        let waiting = inner.book.requests.iter().filter(|asked| now < deadline(asked));
        for asked in waiting.rev() {
            let same = |other: &&mut Asked| {
                (other.action, &other.session) == (asked.action, &asked.session)
            };
            match pending.iter_mut().find(same) {
                Some(newer) => newer.count += 1,
                None => pending.push(asked.clone()),
            }
        }
        Ok(pending)
    }

    /// The grant that allows an action of a session at `now`, if there is one. A grant for one time
    /// that was used is none; of several the one that reaches furthest is given, so that none for
    /// one time is used up in vain.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn lookup(
        &self,
        action: ActionHash,
        session: &str,
        now: Timestamp,
    ) -> Result<Option<Grant>> {
        let inner = self.current()?;
        let standing = inner.standing.iter().map(|one| &one.grant);
        let given = inner.book.grants.get(&action).into_iter().flatten();
        let fits = |grant: &&Grant| {
            grant.covers(action, session, now)
                && !(grant.scope == Scope::Once && self.claims.is_claimed(grant.id()))
        };
        Ok(standing.chain(given).filter(fits).max_by_key(|grant| grant.scope).cloned())
    }

    /// Claims a grant for the one time that it is good for; says whether it may be used. To be
    /// called before the decision that uses it is recorded, with the id of the approval in that
    /// record (`approval`). Of several processes, only one is told yes.
    ///
    /// # Errors
    /// When the claim cannot be written.
    pub fn claim(&self, grant: &Grant) -> Result<bool> {
        if grant.scope != Scope::Once {
            return Ok(true);
        }
        let id = grant.id();
        let claimed = !self.inner().book.spent.contains_key(&id) && self.claims.claim(id)?;
        self.inner().book.spend(|other| other.id() == id);
        Ok(claimed)
    }

    /// [`Self::lookup`] and [`Self::claim`] in one.
    ///
    /// # Errors
    /// As those.
    pub fn take(&self, action: ActionHash, session: &str, now: Timestamp) -> Result<Option<Grant>> {
        // Whoever was faster has used the one that was found; there may be another.
        while let Some(grant) = self.lookup(action, session, now)? {
            if self.claim(&grant)? {
                return Ok(Some(grant));
            }
        }
        Ok(None)
    }

    /// The record by which the owner refused an action of a session a while ago, so that asking again
    /// and again wears nobody out.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn refused(
        &self,
        action: ActionHash,
        session: &str,
        now: Timestamp,
    ) -> Result<Option<RecordId>> {
        let inner = self.current()?;
        let holds = |at: Timestamp| now.unix().abs_diff(at.unix()) < REFUSED_SECONDS;
        let same = inner
            .book
            .refused
            .iter()
            .rev()
            .find(|one| one.action == action && one.session == session && holds(one.at));
        Ok(same.map(|one| one.by))
    }

    /// The grants in force at `now`: those for a time, then those for always.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn in_force(&self, now: Timestamp) -> Result<(Vec<Grant>, Vec<Standing>)> {
        let inner = self.current()?;
        let unused = |grant: &&Grant| {
            grant.is_current(now)
                && !(grant.scope == Scope::Once && self.claims.is_claimed(grant.id()))
        };
        let mut given: Vec<Grant> =
            inner.book.grants.values().flatten().filter(unused).cloned().collect();
        given.sort_by_key(|grant| (grant.expires, grant.record));
        let standing = inner.standing.iter().filter(|one| one.grant.is_current(now));
        Ok((given, standing.cloned().collect()))
    }

    /// Approvals in the journal that this machine's key did not sign, so that they count for
    /// nothing; the newest of them.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn forged(&self) -> Result<Vec<RecordId>> {
        Ok(self.current()?.book.forged.iter().copied().collect())
    }

    /// Forgets what has ended, and writes down how far the journal was read.
    ///
    /// # Errors
    /// When the journal cannot be read or nothing be written.
    pub fn tidy(&self, now: Timestamp) -> Result<()> {
        let mut inner = self.current()?;
        inner.book.forget(now, earlier(now, REQUEST_SECONDS));
        self.claims.tidy(earlier(now, MAX_SECONDS + 86_400));
        if inner.unkept > 0 {
            self.keep(&mut inner)?;
        }
        Ok(())
    }

    /// The book, brought up to date.
    fn current(&self) -> Result<MutexGuard<'_, Inner>> {
        let mut guard = self.inner();
        let inner = &mut *guard;
        if inner.key.is_err() {
            // What was read without a key counted for nothing.
            let read = Inner::read(&self.state, self.owner);
            if read.key.is_ok() {
                *inner = read;
            }
        }
        let stamps = self.stamps();
        if inner.stamps != Some(stamps) {
            let set = PolicyStore::new(&self.state, self.owner).settings().set;
            let key = inner.key.as_ref();
            inner.standing = key.map(|key| standing::load(&set, key)).unwrap_or_default();
            inner.stamps = Some(stamps);
        }
        if inner.folder.is_none() {
            let path = self.state.join("journal");
            if !path.exists() {
                return Ok(guard);
            }
            inner.folder = Some(Folder::open(&path)?);
        }
        if let Some(folder) = &inner.folder {
            inner.unkept += inner.book.catch_up(folder, inner.key.as_deref().ok())?;
        }
        if inner.unkept >= KEEP_AFTER_BYTES {
            // It only saves time.
            let _ = self.keep(inner);
        }
        Ok(guard)
    }

    /// The key that answers are signed with.
    fn key(&self) -> Result<Arc<GrantKey>> {
        self.current()?.key.clone().map_err(ApprovalsError::Key)
    }

    fn stamps(&self) -> Stamps {
        ["signed.json", "signed-memory.json", "config.toml", standing::FILE].map(|name| {
            let stat = rustix::fs::lstat(self.state.join(name)).ok()?;
            let modified = (stat.st_mtime, stat.st_mtime_nsec);
            Some((stat.st_ino, stat.st_size, modified, (stat.st_ctime, stat.st_ctime_nsec)))
        })
    }

    fn keep(&self, inner: &mut Inner) -> Result<()> {
        inner.unkept = 0;
        if let Ok(key) = &inner.key {
            kept::store(&self.state, key, &inner.book)?;
        }
        Ok(())
    }

    // The book changes a line at a time; no panic leaves a line half taken in.
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When a request ends.
fn deadline(asked: &Asked) -> Timestamp {
    later(asked.at, REQUEST_SECONDS)
}

fn later(time: Timestamp, seconds: i64) -> Timestamp {
    Timestamp::from_unix(time.unix().saturating_add(seconds)).unwrap_or(Timestamp::MAX)
}

fn earlier(time: Timestamp, seconds: i64) -> Timestamp {
    Timestamp::from_unix(time.unix().saturating_sub(seconds)).unwrap_or(time)
}
