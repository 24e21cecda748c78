//! What a tool of the agent may do to files, asked and written down.

use std::path::Path;

use wardkeep_detect::effects::effects;
use wardkeep_evidence::hash::RecordId;
use wardkeep_evidence::json::Value;
use wardkeep_evidence::record::Principal;
use wardkeep_policy::protect::{
    Denial, Judgement, Level, Operation, ProtectedSet, Redirect, Surroundings, judge_command,
};
use wardkeep_policy::workspace::Workspace;

use super::{About, Desk, Written, audit, kind};
use crate::resolve::{ResolveError, Resolver, protect_lists, protected_set, resolve_for_command};
use crate::store::StoreError;

/// `write_blocked` entries of one session from which an alert is raised.
const ALERT: usize = 2;

/// How something was kept from a protected file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// It was denied.
    Denied,
    /// It was sent to the staging folder, where the owner looks at it: an agent that works as it should
    /// does just that.
    Staged,
}

/// What a tool wants to do.
#[derive(Debug, Clone, Copy)]
pub enum Ask<'a> {
    /// Something to a path, relative to the workspace.
    Path(Operation, &'a Path),
    /// Run a shell command in the workspace.
    Command(&'a str),
}

/// What is answered.
#[derive(Debug)]
pub struct Checked {
    /// Denied, worth a warning, or nothing found.
    pub level: Level,
    /// Why, the gravest first.
    pub denials: Vec<Denial>,
    /// The entry or record that the answer left; nothing is left where nothing was found.
    pub written: Option<Written>,
    /// The alert that was raised: the session has been blocked before.
    pub alert: Option<RecordId>,
}

/// Why there is no answer. It counts as a denial.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// Workspace or state directory cannot be resolved.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// The journal cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Desk<'_> {
    /// The files that are protected in a workspace; `home` is where agents keep their settings.
    ///
    /// # Errors
    /// When workspace or state directory cannot be resolved.
    pub fn protected(
        &self,
        workspace: &Workspace,
        home: Option<&Path>,
    ) -> Result<ProtectedSet, ResolveError> {
        protected_set(
            workspace.path(),
            self.policy.state(),
            &protect_lists(self.policy.state(), home),
        )
    }

    /// Asks whether a tool may do something, and writes a refusal down as `write_blocked`. A
    /// warning leaves a record in the journal alone.
    ///
    /// # Errors
    /// When it cannot be told, or not be written down: the tool must not go on then.
    pub fn check(
        &self,
        workspace: &Workspace,
        ask: Ask<'_>,
        tool: &str,
        about: About<'_>,
        home: Option<&Path>,
    ) -> Result<Checked, CheckError> {
        let set = self.protected(workspace, home)?;
        let (level, denials) = match ask {
            Ask::Path(operation, path) => judge_path(workspace, operation, path, &set),
            Ask::Command(command) => judge_shell(workspace, command, home, &set),
        };
        let mut checked = Checked { level, denials, written: None, alert: None };
        match level {
            Level::NoHit => {}
            Level::Warned => {
                let mut content = kind("warning");
                content.push("tool", Value::from(tool.to_owned()));
                let named: Vec<&str> =
                    checked.denials.iter().take(8).map(|one| one.what.as_str()).collect();
                content.push("named", Value::from(named.join(", ")));
                let record =
                    self.append(content, Principal::Tool, Some(workspace.path()), about)?;
                checked.written =
                    Some(Written { record, recovery: None, repaired: false, trouble: None });
            }
            Level::Denied => {
                let what = checked.denials.first().map_or("a protected file", |one| &one.what);
                let (written, alert) = self.blocked(workspace, tool, what, Kept::Denied, about)?;
                checked.written = Some(written);
                checked.alert = alert;
            }
        }
        Ok(checked)
    }

    /// Writes down as `write_blocked` that a protected file was not written, and raises an alert where it
    /// is not the session's first: a grave one only where it was denied more than once.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn blocked(
        &self,
        workspace: &Workspace,
        tool: &str,
        what: &str,
        kept: Kept,
        about: About<'_>,
    ) -> Result<(Written, Option<RecordId>), StoreError> {
        let written = self.write_kept(workspace, tool, what, kept, about)?;
        let alert = self.alert(workspace, kept, about)?;
        Ok((written, alert))
    }

    /// Raises an alert when a session is blocked again.
    fn alert(
        &self,
        workspace: &Workspace,
        kept: Kept,
        about: About<'_>,
    ) -> Result<Option<RecordId>, StoreError> {
        if about.session.is_empty() {
            return Ok(None);
        }
        let (denied, staged) = audit::blocked_in(self.store.journal().folder(), about.session);
        let (severity, message) = match kept {
            Kept::Denied if denied >= ALERT => {
                ("high", "a session tries again to write protected files: it may be injected")
            }
            // Once is enough.
            _ if denied + staged == ALERT => {
                ("info", "a session wants to change protected files again: see `wardkeep diff`")
            }
            _ => return Ok(None),
        };
        let mut content = kind("alert");
        content.push("severity", Value::from(severity));
        content.push("write_blocked", Value::from((denied + staged) as u64));
        content.push("message", Value::from(message));
        self.append(content, Principal::Sys, Some(workspace.path()), about).map(Some)
    }
}

fn judge_path(
    workspace: &Workspace,
    operation: Operation,
    path: &Path,
    set: &ProtectedSet,
) -> (Level, Vec<Denial>) {
    let readings = Resolver::new(workspace.path()).and_then(|resolver| {
        if operation.follows_link() { resolver.target(path) } else { resolver.entry(path) }
    });
    let denial = match readings {
        Ok(readings) => match set.judge(operation, &readings, Redirect::Impossible) {
            Judgement::Allowed => return (Level::NoHit, Vec::new()),
            Judgement::Denied(denial) | Judgement::Staged { denial, .. } => denial,
        },
        // What cannot be judged is denied.
        Err(error) => Denial::unresolved(&path.to_string_lossy(), &error.to_string()),
    };
    (Level::Denied, vec![denial])
}

fn judge_shell(
    workspace: &Workspace,
    command: &str,
    home: Option<&Path>,
    set: &ProtectedSet,
) -> (Level, Vec<Denial>) {
    let around = Surroundings { directory: workspace.path(), home };
    let judged = judge_command(&effects(command), &around, &mut resolve_for_command, set);
    (judged.level, judged.hits.into_iter().map(|hit| hit.denial).collect())
}
