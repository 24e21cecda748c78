//! The signed policy at work: what the policy crate finds is written down, in the journal first,
//! then in the audit log, and the two are held against each other.

mod audit;
mod check;

use std::path::{Path, PathBuf};

use wardkeep_evidence::hash::RecordId;
use wardkeep_evidence::json::{Object, Value};
use wardkeep_evidence::record::{Principal, RecordType};
use wardkeep_policy::audit::{Action, AuditError, Event as AuditEvent, Locked, Recovery, Source};
use wardkeep_policy::block::build_block;
use wardkeep_policy::sign::{Draft, Request};
use wardkeep_policy::signed_set::SetDraft;
use wardkeep_policy::store::{Checked, PolicyStore, SetStampError, Settings, StampError, Stamped};
use wardkeep_policy::verify::Start;
use wardkeep_policy::workspace::{POLICY_FILE, Workspace};

use crate::store::{Event, Store, StoreError};
use crate::watch::{Change, Content};

pub use audit::{CompareError, Compared, compare};
pub use check::{Ask, CheckError, Checked as Answered, Kept};

/// Kind of the records that stand for a line of the audit log.
pub(crate) const KIND: &str = "audit";

/// Whose doing is written down.
#[derive(Debug, Clone, Copy, Default)]
pub struct About<'a> {
    /// The agent.
    pub agent: &'a str,
    /// The session.
    pub session: &'a str,
}

/// An entry that was written.
#[derive(Debug)]
pub struct Written {
    /// Its record in the journal.
    pub record: RecordId,
    /// A damaged last line of the audit log that was closed off.
    pub recovery: Option<Recovery>,
    /// Whether a line came first that a crash had kept from the audit log.
    pub repaired: bool,
    /// Why the line is not in the audit log, if it is not. The record has it all the same.
    pub trouble: Option<AuditError>,
}

/// The policy part of an open store.
#[derive(Debug)]
pub struct Desk<'s> {
    store: &'s Store,
    policy: PolicyStore,
}

/// A session that was started.
#[derive(Debug)]
pub struct Started {
    /// What was found, and what could not be remembered of it.
    pub checked: Checked,
    /// The signed settings, and the switches in force.
    pub settings: Settings,
    /// What was written down of it: the state, and each switch that takes something away.
    pub written: Vec<Written>,
}

impl Started {
    /// What the session does.
    #[must_use]
    pub fn start(&self) -> Start<'_> {
        self.checked.verification.start(&self.settings.switches)
    }

    /// The block that ends each model call of the session; `None` where there may be no session.
    /// `threat` says that the turn saw suspicious content.
    #[must_use]
    pub fn block(&self, threat: bool) -> Option<String> {
        let policy = match self.start() {
            Start::Inject(policy) => Some(policy.text()),
            Start::SuffixOnly => None,
            Start::Abort => return None,
        };
        Some(build_block(policy, threat, self.settings.suffix()))
    }
}

impl<'s> Desk<'s> {
    /// Of an open store and the user who owns it.
    #[must_use]
    pub fn new(store: &'s Store, owner: u32) -> Self {
        Self { store, policy: PolicyStore::new(store.path(), owner) }
    }

    /// The policy's part of the state directory.
    #[must_use]
    pub fn policy(&self) -> &PolicyStore {
        &self.policy
    }

    /// Starts a session: verifies the policy of its workspace, once, and writes down what came out.
    /// `source` is [`Source::SessionStart`] or [`Source::Heartbeat`].
    ///
    /// # Errors
    /// When the journal cannot be written. The audit log never stops a session.
    pub fn start(
        &self,
        workspace: &Workspace,
        source: Source,
        about: About<'_>,
        random: [u8; 16],
    ) -> Result<Started, StoreError> {
        let settings = self.policy.settings();
        let switches = &settings.switches;
        let checked = self.policy.verify(workspace, random);
        let event = checked.verification.event(source);
        let mut written = vec![self.write(&event, Some(workspace.path()), about)?];
        // None of the audit log's actions says this: the journal alone does.
        for (on, name) in [
            (switches.disable_policy, "disable_policy"),
            (switches.disable_suffix, "disable_suffix"),
        ] {
            if on {
                let mut content = kind("switch");
                content.push("switch", Value::from(name));
                let record = self.append(content, Principal::Sys, Some(workspace.path()), about)?;
                written.push(Written { record, recovery: None, repaired: false, trouble: None });
            }
        }
        Ok(Started { checked, settings, written })
    }

    /// Signs a draft and writes it down.
    ///
    /// # Errors
    /// When it may not be signed, or the signature not written down.
    pub fn sign(
        &self,
        workspace: &Workspace,
        draft: &Draft,
        request: &Request,
        random: [u8; 16],
    ) -> Result<(Stamped, Written), DeskError> {
        let stamped = self.policy.sign(workspace, draft, request, random)?;
        let event = stamped.signed.event();
        let written = self.write(&event, Some(workspace.path()), About::default())?;
        Ok((stamped, written))
    }

    /// Signs config, rules, profiles and pins, and writes that down in the journal.
    ///
    /// # Errors
    /// When they may not be signed, or the signature not written down.
    pub fn sign_set(&self, draft: &SetDraft, request: &Request) -> Result<RecordId, DeskError> {
        self.policy.sign_set(draft, request)?;
        let mut content = kind("configuration");
        let mut files = Object::default();
        for (name, bytes) in draft.files() {
            let hash = wardkeep_policy::hash::ContentHash::of(bytes);
            files.push(name.clone(), Value::from(hash.to_string()));
        }
        content.push("files", Value::Object(files));
        Ok(self.append(content, Principal::User, None, About::default())?)
    }

    /// Writes down that the template was put into a workspace.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn created(&self, workspace: &Workspace) -> Result<Written, StoreError> {
        let event = wardkeep_policy::template::created_event();
        self.write(&event, Some(workspace.path()), About::default())
    }

    /// Writes down a change that the watch saw while a session ran.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn file_changed(
        &self,
        workspace: &Workspace,
        change: &Change,
        about: About<'_>,
    ) -> Result<Written, StoreError> {
        let name = change.path.file_name().map_or_else(
            || change.path.display().to_string(),
            |name| name.to_string_lossy().into_owned(),
        );
        let is_policy = change.path.file_name().is_some_and(|name| name == POLICY_FILE);
        let (content, what) = match &change.after {
            Content::Bytes(hash) => {
                let hash = wardkeep_policy::hash::ContentHash(*hash);
                (Some(hash), format!("{name} changed"))
            }
            Content::Missing => (None, format!("{name} was removed")),
            Content::Unreadable(why) => (None, format!("{name} cannot be read: {why}")),
        };
        // The log's hash is that of the policy; another file's stands in the detail.
        let (content, detail) = match (content, is_policy) {
            (Some(hash), false) => (None, format!("{what} (sha256 {hash})")),
            (content, _) => (content, what),
        };
        let event = AuditEvent::new(Action::FileChanged, Source::FileWatcher)
            .content(content)
            .detail(format!("{detail}; the session keeps what it verified"));
        self.write(&event, Some(workspace.path()), about)
    }

    /// Writes down that a tool was kept from writing a protected file.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn write_blocked(
        &self,
        workspace: &Workspace,
        tool: &str,
        what: &str,
        about: About<'_>,
    ) -> Result<Written, StoreError> {
        self.write_kept(workspace, tool, what, Kept::Denied, about)
    }

    fn write_kept(
        &self,
        workspace: &Workspace,
        tool: &str,
        what: &str,
        kept: Kept,
        about: About<'_>,
    ) -> Result<Written, StoreError> {
        let event = AuditEvent::new(Action::WriteBlocked, Source::tool(tool))
            .detail(format!("Agent attempted write to {what}"));
        let mut content = kind(KIND);
        if kept == Kept::Staged {
            content.push("staged", Value::from(true));
        }
        self.write_with(content, &event, Some(workspace.path()), about)
    }

    /// Writes an entry: the record in the journal, durable, then the line.
    ///
    /// # Errors
    /// When the journal cannot be written. A line that cannot be written is no error: the record
    /// says what it would have been.
    pub fn write(
        &self,
        event: &AuditEvent,
        workspace: Option<&Path>,
        about: About<'_>,
    ) -> Result<Written, StoreError> {
        self.write_with(kind(KIND), event, workspace, about)
    }

    /// As [`Desk::write`], with what the record holds beside the entry.
    fn write_with(
        &self,
        mut content: Object<'static>,
        event: &AuditEvent,
        workspace: Option<&Path>,
        about: About<'_>,
    ) -> Result<Written, StoreError> {
        let path = self.policy.audit_path();
        let mut repaired = false;
        let prepared = Locked::open(&path).and_then(|mut log| {
            repaired = audit::repair(self.store.journal().folder(), &mut log);
            let prepared = log.prepare(event, self.store.now())?;
            Ok((log, prepared))
        });
        content.push("action", Value::from(event.action.name().to_owned()));
        match &prepared {
            Ok((_, prepared)) => {
                content.push("line", Value::from(prepared.line().to_owned()));
                content.push("sha256", Value::from(prepared.hash().to_string()));
            }
            Err(error) => {
                content.push("detail", event.detail.clone().map_or(Value::Null, Value::from));
                content.push("unwritten", Value::from(error.to_string()));
            }
        }
        let principal = match event.source {
            Source::Cli | Source::Gui => Principal::User,
            Source::Tool(_) => Principal::Tool,
            _ => Principal::Sys,
        };
        let record = self.append(content, principal, workspace, about)?;
        let (recovery, trouble) = match prepared {
            Ok((mut log, prepared)) => match log.commit(&prepared) {
                Ok(appended) => (appended.recovery, None),
                Err(error) => (None, Some(error)),
            },
            Err(error) => (None, Some(error)),
        };
        Ok(Written { record, recovery, repaired, trouble })
    }

    fn append(
        &self,
        content: Object<'static>,
        principal: Principal,
        workspace: Option<&Path>,
        about: About<'_>,
    ) -> Result<RecordId, StoreError> {
        let workspace = workspace.map(|path| path.to_string_lossy().into_owned());
        let mut event = Event::new(RecordType::GuardDecision, principal, Value::Object(content));
        event.agent = about.agent;
        event.session = about.session;
        event.workspace = workspace.as_deref().unwrap_or_default();
        Ok(self.store.append(event)?.id)
    }
}

/// Why a policy was not signed, or its signature not written down.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeskError {
    /// It may not be signed.
    #[error(transparent)]
    Stamp(#[from] StampError),
    /// The config may not be signed.
    #[error(transparent)]
    Set(#[from] SetStampError),
    /// The journal cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The files whose change concerns a running session.
#[must_use]
pub fn watched_files(policy: &PolicyStore, workspace: &Workspace) -> Vec<PathBuf> {
    vec![
        workspace.policy_path(),
        workspace.manifest_path(),
        policy.config_path(),
        policy.signed_path(),
        policy.state().join("rules.cedar"),
    ]
}

/// Content of a record of a kind that the twelve types lack.
fn kind(name: &'static str) -> Object<'static> {
    let mut content = Object::default();
    content.push("kind", Value::from(name));
    content.push("v", Value::from(1u64));
    content
}
