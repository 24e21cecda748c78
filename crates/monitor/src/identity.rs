//! The identity of agents at work: which workspace is meant, how it is enforced, and a record of every
//! operation: before it begins, and of what came of it.

mod place;
mod told;

use std::path::{Path, PathBuf};

use wardkeep_evidence::hash::RecordId;
use wardkeep_evidence::json::{Object, Value};
use wardkeep_evidence::record::{Principal, RecordType};
use wardkeep_identity::error::IdentityError;
use wardkeep_identity::history::{Committed, History, HistoryError};
use wardkeep_identity::name::Name;
use wardkeep_identity::version::Version;
use wardkeep_identity::workspace::Workspace;
use wardkeep_policy::key::KeyError;
use wardkeep_policy::store::StoreError as PolicyError;
use wardkeep_policy::workspace::WorkspaceError;

use crate::index::{Index, IndexError};
use crate::store::{Event, Store, StoreError};

pub use place::{FOLDER, Place, Setup, find, register};
pub use told::{Told, files_of};

/// Kind of the records of an operation.
pub const KIND: &str = "identity";

/// Why an operation on an agent's identity failed. Whoever asked treats it as a denial.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeskError {
    /// The folder cannot be opened.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// It was not set up.
    #[error("`{}` is not set up: run `wardkeep init` there first", .0.display())]
    Unknown(PathBuf),
    /// Another folder stands where the workspace was.
    #[error(
        "`{}` is not the folder that was set up: another one, or a link, was put in its place",
        .0.display()
    )]
    Replaced(PathBuf),
    /// The folder was moved.
    #[error("`{}` was set up at another place and moved here", .0.display())]
    Moved(PathBuf),
    /// What is kept of it cannot be used.
    #[error("what is kept of `{}` cannot be used ({why}): restore the state directory", path.display())]
    Damaged {
        /// The workspace.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The ids of workspaces cannot be used.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// There is no device key, or it cannot be used.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// What cannot be recorded does not happen.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The operation itself.
    #[error(transparent)]
    Identity(#[from] IdentityError),
}

/// On whose behalf something is done.
#[derive(Debug, Clone, Copy)]
pub struct Asker {
    /// `USER` for the owner, `TOOL` for an agent that asks through its door.
    pub principal: Principal,
    /// The user that asked, by number.
    pub uid: u32,
}

/// Records what is done with one workspace.
#[derive(Debug)]
pub struct Desk<'a> {
    store: &'a Store,
    place: &'a Place,
    asker: Asker,
}

/// An operation, and the records of it.
#[derive(Debug)]
pub struct Done<T> {
    /// What came of it.
    pub outcome: T,
    /// The record of that.
    pub record: RecordId,
}

impl<'a> Desk<'a> {
    /// Of an open store.
    #[must_use]
    pub fn new(store: &'a Store, place: &'a Place, asker: Asker) -> Self {
        Self { store, place, asker }
    }

    /// Does something, written down before and after: what cannot be recorded does not happen.
    ///
    /// # Errors
    /// When it fails, which is recorded too, or cannot be recorded.
    pub fn run<T>(
        &self,
        operation: &'static str,
        asked: Told,
        work: impl FnOnce(&Workspace<'static>) -> Result<T, IdentityError>,
        told: impl FnOnce(&T) -> Told,
    ) -> Result<Done<T>, DeskError> {
        self.place.usable()?;
        let begun = self.write(operation, "begun", asked, None)?;
        match work(self.place.workspace()) {
            Ok(outcome) => {
                let record = self.write(operation, "done", told(&outcome), Some(begun))?;
                Ok(Done { outcome, record })
            }
            Err(error) => {
                let failed = Told::default().with("error", error.to_string());
                self.write(operation, "failed", failed, Some(begun))?;
                Err(error.into())
            }
        }
    }

    /// Writes down something that was seen.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn note(&self, operation: &'static str, told: Told) -> Result<RecordId, DeskError> {
        self.write(operation, "seen", told, None)
    }

    fn write(
        &self,
        operation: &'static str,
        stage: &'static str,
        told: Told,
        parent: Option<RecordId>,
    ) -> Result<RecordId, DeskError> {
        let mut content = Object::from([
            ("kind", Value::from(KIND)),
            ("v", Value::from(1u64)),
            ("operation", Value::from(operation)),
            ("stage", Value::from(stage)),
            ("level", Value::from(self.place.setup().word())),
            ("uid", Value::from(u64::from(self.asker.uid))),
        ]);
        for (key, value) in told.into_members() {
            content.push(key, value);
        }
        let workspace = self.place.path().to_string_lossy();
        let kind = RecordType::GuardDecision;
        let mut event = Event::new(kind, self.asker.principal, Value::Object(content));
        event.workspace = &workspace;
        event.parents = parent.into_iter().collect();
        Ok(self.store.append(event)?.id)
    }

    /// Keeps versions of files in the history, with the record of the operation and those of what
    /// caused the changes, as far as they are known.
    ///
    /// # Errors
    /// When the store of versions cannot be used.
    pub fn keep(
        &self,
        versions: &[Version],
        title: &str,
        record: RecordId,
        causes: &[(String, RecordId)],
    ) -> Result<Committed, HistoryError> {
        let time = self.store.now().unix();
        let mut message = format!("{title}\n\nWardkeep-Record: {record}\n");
        for (name, cause) in causes {
            message.push_str(&format!("Wardkeep-Cause: {cause} {name}\n"));
        }
        let history = History::open_or_create(&self.place.history())?;
        history.commit_versions(self.place.workspace(), versions, &message, time)
    }

    /// The newest record of a change of a file, as far as the monitor saw one.
    ///
    /// # Errors
    /// When the index cannot be used.
    pub fn cause(&self, index: &Index, name: &Name) -> Result<Option<RecordId>, IndexError> {
        let path = self.place.path().join(name.as_path());
        let folder = self.store.journal().folder();
        let found = index.changes_of(&path.to_string_lossy(), 1)?;
        Ok(found.first().and_then(|(_, location)| {
            let line = folder.read_line(*location).ok()?;
            crate::journal::parse_line(&line).map(|line| line.record.id)
        }))
    }
}

/// Where everything of the owned level is kept: one folder a user.
pub const OWNED: &str = "/var/lib/wardkeep";

/// The state directory of the owned level for a user.
#[must_use]
pub fn owned_state(uid: u32) -> PathBuf {
    Path::new(OWNED).join(uid.to_string())
}
