//! How a session of an agent begins and ends: the policy is verified once, the owner's warnings are
//! told, and under `strict_policy` a session without a valid policy does nothing.

use std::path::{Path, PathBuf};

use wardkeep_evidence::hash::RecordId;
use wardkeep_evidence::json::Value;
use wardkeep_evidence::record::Principal;
use wardkeep_guard::alert::{Category, Severity};
use wardkeep_guard::taint::Taint;
use wardkeep_guard::verdict::Verdict;
use wardkeep_policy::audit::Source;
use wardkeep_policy::verify::Start;
use wardkeep_policy::workspace::Workspace;

use super::content::{name_or, quoted};
use super::{Alert, Monitor, MonitorError, Outcome, Result, Surroundings, Who, held};
use crate::index::Asked;
use crate::notices::{self, Notice};
use crate::policy::{About, Desk, Kept, watched_files};
use crate::resolve::ResolveError;
use crate::store::StoreReader;

/// Notifications that a session is told of at its beginning.
const TOLD: usize = 5;
/// How proxies of wardkeep's own say that they begin.
pub(super) const PROXIES: [&str; 2] = ["egress", "model-proxy"];
/// Notifications that those are picked from.
const LOOKED_AT: u32 = 64;
/// `write_blocked` entries of one session; what follows is in the journal alone.
const BLOCKED: u32 = 50;
/// Things that are wrong with agents' hooks that one session is told of.
const UNPROTECTED: usize = 16;
/// Folders above the one that an agent starts in that may be a workspace.
const ABOVE: usize = 16;

/// A session that has begun.
#[derive(Debug)]
pub struct Begun {
    /// The record of it.
    pub outcome: Outcome,
    /// Whether it must not go on: `strict_policy` is on and the policy is not valid.
    pub aborted: bool,
    /// Why it has not begun: a rule of the owner's denies it, or waits for the owner.
    pub refused: Option<String>,
    /// What the owner must be told.
    pub warnings: Vec<String>,
    /// What ends each model call of the session, where there may be a session.
    pub block: Option<String>,
}

impl Monitor {
    /// A session begins in a door: the policy of its workspace is verified, once, and both are
    /// written down, with what confines the agent. `source` is [`Source::SessionStart`] or
    /// [`Source::Heartbeat`].
    ///
    /// # Errors
    /// When it cannot be told or recorded: it must not begin then.
    pub fn begin(
        &self,
        who: &Who<'_>,
        channel: &str,
        parent: Option<&str>,
        source: Source,
        whose: Surroundings,
    ) -> Result<Begun> {
        let workspace = Workspace::open(who.workspace).map_err(MonitorError::from)?;
        // A link that was put there since it was looked at leads to what the caller does not see.
        if who.view.is_some() && workspace.path() != who.workspace {
            let path = who.workspace.to_owned();
            return Err(ResolveError::Changed { path }.into());
        }
        let mut random = [0; 16];
        random.copy_from_slice(&super::random()?[..16]);
        let desk = Desk::new(&self.store, self.config.owner);
        let about = About { agent: who.agent, session: who.session };
        let files = PolicyFiles::of(&desk, &workspace);
        let started = desk.start(&workspace, source, about, random)?;
        let verification = &started.checked.verification;
        let aborted = started.start() == Start::Abort;
        let mut warnings = verification.warnings("wardkeep");
        warnings.extend(started.settings.switches.warnings("wardkeep"));
        warnings.extend(started.checked.trouble.iter().map(ToString::to_string));
        let written = started.written.iter().filter_map(|one| one.trouble.as_ref());
        warnings.extend(written.map(ToString::to_string));
        if aborted {
            warnings.push(
                "strict_policy is on: nothing is done until the owner has mended and signed the \
                 policy (`wardkeep md status`) and started a new session"
                    .to_owned(),
            );
        }
        let mut more = vec![
            ("policy", Value::from(verification.state.name())),
            ("aborted", Value::from(aborted)),
        ];
        let mut sandbox = (None, false);
        // A proxy of wardkeep's own is no agent that something has to confine.
        let confines = !PROXIES.contains(&channel);
        if let Some(around) = self.look_around(who.agent, whose).filter(|_| confines) {
            sandbox = (Some(around.compliance), around.told);
            more.push(("audit", around.value));
        }
        let block = started.block(false);
        let outcome = self.start_with(who, channel, parent, sandbox, more)?;
        let session = self.session(who.session)?;
        let mut session = held(&session);
        // Until one of its events may begin it, none is answered.
        let refused = refusal(&outcome);
        session.begun = refused.is_none().then_some(aborted);
        session.policy = Some(files);
        session.told = held(&self.raised).next;
        drop(session);
        // Whoever starts a proxy has the notifications at hand; an agent's user has not.
        let told = if confines { usize::MAX } else { 1 };
        warnings.extend(self.unseen().into_iter().take(told));
        let block = block.filter(|_| refused.is_none());
        Ok(Begun { outcome, aborted, refused, warnings, block })
    }

    /// What ends each model call from now on, where the owner has signed another policy since it was last
    /// verified for this session; nothing where all is as it was. A policy that is not valid takes nothing
    /// away: whoever can write the file cannot have the session forget what was signed.
    ///
    /// # Errors
    /// When it cannot be recorded.
    pub(super) fn signed_anew(&self, who: &Who<'_>) -> Result<Option<String>> {
        let Ok(workspace) = Workspace::open(who.workspace) else { return Ok(None) };
        let desk = Desk::new(&self.store, self.config.owner);
        let files = PolicyFiles::of(&desk, &workspace);
        {
            let session = self.session(who.session)?;
            let mut session = held(&session);
            if session.policy.replace(files.clone()) == Some(files) {
                return Ok(None);
            }
        }
        if desk.policy().inspect(&workspace).policy().is_none() {
            return Ok(None);
        }
        let mut random = [0; 16];
        random.copy_from_slice(&super::random()?[..16]);
        let about = About { agent: who.agent, session: who.session };
        let started = desk.start(&workspace, Source::SessionStart, about, random)?;
        let valid = started.checked.verification.policy().is_some();
        Ok(started.block(false).filter(|_| valid))
    }

    /// A session ends.
    ///
    /// # Errors
    /// When it cannot be recorded.
    pub fn on_session_end(&self, who: &Who<'_>, reason: &str) -> Result<Outcome> {
        let content = Value::from([
            ("kind", Value::from("session-end")),
            ("v", Value::from(1u64)),
            ("reason", Value::from(super::content::shortened(reason))),
        ]);
        let record = self.note(who, Principal::Sys, content)?;
        held(&*self.session(who.session)?).ended = true;
        Ok(observed(record, "The session ended."))
    }

    /// An event of an agent was denied because it could not be read: someone should know.
    ///
    /// # Errors
    /// When it cannot be recorded.
    pub fn on_unread(&self, who: &Who<'_>, event: &str, reason: &str) -> Result<Outcome> {
        let session = self.session(who.session)?;
        let many = {
            let mut session = held(&session);
            session.blocked = session.blocked.saturating_add(1);
            session.blocked > BLOCKED
        };
        if many {
            return Ok(observed(RecordId::ZERO, "It was told often enough."));
        }
        let message = format!(
            "an event of {} was denied; its name is {}, and why: {}",
            name_or(who.agent, "an agent"),
            quoted(event),
            quoted(reason)
        );
        let kind = (Category::Cpi, Severity::Medium);
        let next = Some("run `wardkeep doctor`".to_owned());
        let alert = self.alert(who, "HookFailed", kind, message, next, None)?;
        let record = alert.record.unwrap_or(RecordId::ZERO);
        Ok(observed(record, "It was denied."))
    }

    /// An agent that wardkeep was installed into does not ask, or not for everything: the owner should
    /// know. Told once a session for each thing that is wrong.
    ///
    /// # Errors
    /// When it cannot be recorded.
    pub fn on_unprotected(
        &self,
        who: &Who<'_>,
        agent: &str,
        what: &str,
        mend: &str,
    ) -> Result<Outcome> {
        let agent = name_or(agent, "an agent");
        let message = format!("{agent} is not protected: {}", one_line(what));
        let known = {
            let session = self.session(who.session)?;
            let mut session = held(&session);
            let known = session.unprotected.contains(&message);
            if !known && session.unprotected.len() < UNPROTECTED {
                session.unprotected.push(message.clone());
                false
            } else {
                true
            }
        };
        if known {
            return Ok(observed(RecordId::ZERO, "It was told already."));
        }
        let kind = (Category::Cpi, Severity::High);
        let alert = self.alert(who, "NotProtected", kind, message, Some(mended(mend)), None)?;
        Ok(observed(alert.record.unwrap_or(RecordId::ZERO), "It was told."))
    }

    /// The workspace of a session: the nearest one above `directory` that the owner has signed a
    /// policy in, else `directory` itself. It stays that of the session's first question, so that
    /// changing the directory changes nothing.
    ///
    /// # Errors
    /// When the session cannot be read.
    pub fn workspace_of(&self, session: &str, directory: &Path) -> Result<PathBuf> {
        let session = self.session(session)?;
        if let Some(workspace) = &held(&session).workspace {
            return Ok(workspace.clone());
        }
        let workspace = self.workspace_above(directory);
        held(&session).workspace = Some(workspace.clone());
        Ok(workspace)
    }

    /// The nearest folder from one upwards that the owner has signed a policy in, else that one itself.
    pub(super) fn workspace_above(&self, directory: &Path) -> PathBuf {
        let known = self.policy.key().ok().and_then(|key| {
            directory.ancestors().take(ABOVE).find(|folder| {
                Workspace::open(folder)
                    .ok()
                    .and_then(|workspace| self.policy.find(&key, &workspace).ok().flatten())
                    .is_some()
            })
        });
        known.unwrap_or(directory).to_owned()
    }

    /// Whether a session has begun; if so, whether it was to do nothing.
    pub(super) fn begun(&self, session: &str) -> Result<Option<bool>> {
        Ok(held(&*self.session(session)?).begun)
    }

    /// Writes down in the audit log, too, that a protected file was not written.
    pub(super) fn write_blocked(
        &self,
        who: &Who<'_>,
        tool: &str,
        what: &str,
        kept: Kept,
    ) -> Result<()> {
        {
            let session = self.session(who.session)?;
            let mut session = held(&session);
            session.blocked = session.blocked.saturating_add(1);
            if session.blocked > BLOCKED {
                return Ok(());
            }
        }
        let workspace = Workspace::open(who.workspace).map_err(MonitorError::from)?;
        let about = About { agent: who.agent, session: who.session };
        let desk = Desk::new(&self.store, self.config.owner);
        desk.blocked(&workspace, tool, what, kept, about)?;
        Ok(())
    }

    /// Alerts that were raised since a session was last told of any: its own in words, of those of
    /// others only that they are there. Their words may be another agent's.
    pub(super) fn news(&self, name: &str) -> Result<Vec<String>> {
        let session = self.session(name)?;
        let mut session = held(&session);
        let raised = held(&self.raised);
        let fresh = raised.alerts.iter().filter(|(number, ..)| *number >= session.told);
        let (own, others): (Vec<_>, Vec<_>) = fresh.partition(|(_, whose, _)| whose == name);
        let mut told: Vec<String> = own.iter().map(|(.., alert)| alert.message.clone()).collect();
        told.extend(counted(others.iter().map(|(.., alert)| alert)));
        session.told = raised.next;
        Ok(told)
    }

    /// What of earlier sessions nobody has acknowledged yet; where that cannot be told, nothing.
    fn unseen(&self) -> Vec<String> {
        let asked = Asked { severity: Some(Severity::High), ..Asked::default() };
        let Ok(reader) = StoreReader::open(self.store.path()) else { return Vec::new() };
        let mut index = held(&self.index);
        if index.catch_up(self.store.journal().folder(), &mut |_| {}).is_err() {
            return Vec::new();
        }
        let Ok(mut found) = notices::list(&reader, &index, &asked, false, LOOKED_AT) else {
            return Vec::new();
        };
        // How it is confined is the owner's to know and to mend; an agent can do nothing about it.
        found.notices.retain(|notice| notice.category != Some(Category::Sandbox));
        found.more += found.notices.len().saturating_sub(TOLD) as u64;
        found.notices.truncate(TOLD);
        let mut lines: Vec<String> = found
            .notices
            .iter()
            .map(|notice| {
                // What happened may be told in an agent's words: those are for the owner to read.
                let what = notice.category.map_or(notice.source.as_str(), Category::as_str);
                let Notice { severity, time, record, .. } = notice;
                format!("{severity} {time}: {what}, record {:.12}", record.to_string())
            })
            .collect();
        if !lines.is_empty() {
            let count = found.more + lines.len() as u64;
            lines.insert(0, format!("{count} notifications wait: see `wardkeep notifications`"));
        }
        lines
    }
}

/// The files that a policy is verified from, told by what the file system says of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PolicyFiles(Vec<Option<Told>>);

/// Device, number, size and time of change of a file.
type Told = (u64, u64, u64, i64, i64);

impl PolicyFiles {
    fn of(desk: &Desk<'_>, workspace: &Workspace) -> Self {
        use std::os::unix::fs::MetadataExt as _;
        let files = watched_files(desk.policy(), workspace);
        let told = |file: PathBuf| {
            let told = std::fs::symlink_metadata(file).ok()?;
            Some((told.dev(), told.ino(), told.size(), told.ctime(), told.ctime_nsec()))
        };
        Self(files.into_iter().map(told).collect())
    }
}

/// Why a session may not begin, if it may not.
fn refusal(outcome: &Outcome) -> Option<String> {
    let reason = outcome.reason.trim_end_matches('.');
    match outcome.verdict {
        Verdict::Allow => None,
        Verdict::Ask => Some(format!(
            "this session may not begin before the owner approves it: {reason} (rule {}; \
             `wardkeep approvals approve {:.12}`)",
            outcome.rule,
            outcome.record.to_string()
        )),
        _ => Some(format!(
            "this session may not begin, so that nothing is done in it: {reason} (rule {})",
            outcome.rule
        )),
    }
}

/// What has happened, and asks for nothing.
fn observed(record: RecordId, reason: &str) -> Outcome {
    Outcome {
        record,
        verdict: Verdict::Allow,
        rule: "session-observed".to_owned(),
        reason: reason.to_owned(),
        suggestion: None,
        taint: Taint::NONE,
        severity: Severity::Info,
        category: None,
        text: None,
        staged: None,
        alerts: Vec::new(),
    }
}

/// Alerts of other sessions by their names: how many, how bad, and the newest.
fn counted<'a>(alerts: impl Iterator<Item = &'a Alert>) -> Vec<String> {
    let mut kinds: Vec<(usize, Severity, &Alert)> = Vec::new();
    for alert in alerts {
        match kinds.iter_mut().find(|(.., newest)| newest.name == alert.name) {
            Some((count, worst, newest)) => {
                (*count, *worst, *newest) = (*count + 1, alert.severity.max(*worst), alert);
            }
            None => kinds.push((1, alert.severity, alert)),
        }
    }
    let line = |(count, worst, newest): (usize, Severity, &Alert)| {
        let record = newest.record.unwrap_or(RecordId::ZERO).to_string();
        format!(
            "{count} new in other sessions: {} ({worst}), the newest is record {record:.12}: see \
             `wardkeep notifications`",
            newest.name
        )
    };
    kinds.into_iter().map(line).collect()
}

/// What is wrong, in one line of bearable length.
fn one_line(text: &str) -> String {
    const LONGEST: usize = 400;
    let plain = |sign: char| if sign.is_control() || sign.is_whitespace() { ' ' } else { sign };
    text.chars().take(LONGEST).map(plain).collect()
}

/// How agents' hooks are mended, as `wardkeep doctor` says it.
const MENDS: [&str; 6] = [
    "take it out",
    "take it out; or install for the whole machine, as root",
    "take it out unless you have set it yourself",
    "start `wardkeep proxy`",
    "start `codex`, type `/hooks`, and switch those of wardkeep on",
    "run `wardkeep install codex`; or start `codex`, type `/hooks`, and trust those of wardkeep",
];

/// What is to be done, as far as it is one of our own words: whoever reads it may do it.
fn mended(mend: &str) -> String {
    let again = mend.strip_prefix("run `wardkeep install ").and_then(|text| text.strip_suffix('`'));
    let again = again.is_some_and(|agent| name_or(agent, "") == agent);
    if again || MENDS.contains(&mend) {
        mend.to_owned()
    } else {
        "run `wardkeep doctor`".to_owned()
    }
}

/// Alerts of this process, the newest last.
#[derive(Debug, Default)]
pub(super) struct Raised {
    next: u64,
    // The number, the session, and what was said.
    alerts: std::collections::VecDeque<(u64, String, Alert)>,
}

/// Alerts that are kept for sessions that have not heard of them.
const MOST_RAISED: usize = 32;

impl Raised {
    pub(super) fn add(&mut self, session: &str, alert: Alert) {
        if self.alerts.len() >= MOST_RAISED {
            self.alerts.pop_front();
        }
        self.alerts.push_back((self.next, session.to_owned(), alert));
        self.next += 1;
    }
}
