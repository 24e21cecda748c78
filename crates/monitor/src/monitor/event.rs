//! What one event of an agent means, asked and answered as a whole.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use wardkeep_evidence::hash::RecordId;
use wardkeep_guard::verdict::Verdict;
use wardkeep_policy::audit::Source;

use super::begin::PROXIES;
use super::ops::answer;
use super::seen::Seen;
use super::{AnswerBody, AskError, Hook, Monitor, Question, Surroundings, Who, WhoBody, held};
use crate::daemon::Root;
use crate::policy::Kept;

/// The operation that an [`EventBody`] is asked with.
pub const EVENT: &str = "hook.event";
/// Most parts of one event.
const PARTS: usize = 256;

/// An event of an agent: all that it means, in the order in which it would happen.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct EventBody {
    /// Who acts. The workspace is where the agent says that it is; which one counts is the
    /// monitor's to tell.
    pub who: WhoBody,
    /// What is to happen.
    pub parts: Vec<Part>,
}

impl EventBody {
    /// The same as an agent may ask it: how a session begins is the agent's own word, and it is none of
    /// wardkeep's proxies, which nothing has to confine.
    #[must_use]
    pub fn of_agent(mut self) -> Self {
        for part in &mut self.parts {
            if let Hook::SessionStart { channel, .. } = &mut part.what
                && PROXIES.contains(&channel.as_str())
            {
                channel.insert_str(0, "agent-");
            }
        }
        self
    }
}

/// A part of an event.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// On whose behalf; as in [`EventBody::who`] where it is not said.
    #[serde(default)]
    pub principal: Option<String>,
    /// What is to happen.
    pub what: Hook,
}

/// What is answered to an event.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct EventAnswer {
    /// To each part. After a denial the parts behind it are not asked for: there are fewer.
    pub answers: Vec<AnswerBody>,
    /// Why nothing may happen in this session at all.
    pub stopped: Option<String>,
    /// What agent and user must be told.
    pub messages: Vec<String>,
    /// At the beginning of a session: what ends each model call.
    pub block: Option<String>,
}

impl Monitor {
    /// Answers an event. A session that no door has begun begins with it.
    ///
    /// # Errors
    /// When there is no answer: that is a denial.
    pub fn event(&self, body: &EventBody) -> Result<EventAnswer, AskError> {
        self.event_of(body, Surroundings::Unseen)
    }

    /// As [`Monitor::event`], and looks at what confines the agent where a session begins.
    ///
    /// # Errors
    /// When there is no answer: that is a denial.
    pub fn event_of(&self, body: &EventBody, whose: Surroundings) -> Result<EventAnswer, AskError> {
        self.event_seen(body, whose, &Seen::Same)
    }

    /// As [`Monitor::event_of`], for someone who sees the files in their own way.
    pub(super) fn event_seen(
        &self,
        body: &EventBody,
        whose: Surroundings,
        seen: &Seen,
    ) -> Result<EventAnswer, AskError> {
        if body.parts.is_empty() || body.parts.len() > PARTS {
            let message = format!("an event has 1 to {PARTS} parts, not {}", body.parts.len());
            return Err(AskError::Malformed(message));
        }
        let first = &body.parts[0].what;
        // That an event could not be read is told from anywhere.
        let unread = body.parts.iter().all(|part| matches!(part.what, Hook::Unread { .. }));
        let elsewhere = if unread { self.nowhere(&body.who, first, seen) } else { None };
        let (asking, seen) = match &elsewhere {
            Some(who) => (who, &Seen::Same),
            None => (&body.who, seen),
        };
        let view = seen.view()?;
        let WhoBody { session, workspace, .. } = asking;
        let workspace = self.place_of(session, workspace, first, seen)?;
        body.parts.iter().try_for_each(|part| self.descends(&part.what, seen))?;
        let who = WhoBody { workspace, ..asking.clone() };
        let mut said =
            EventAnswer { answers: Vec::new(), stopped: None, messages: Vec::new(), block: None };
        let starts = matches!(first, Hook::SessionStart { .. } | Hook::Unread { .. });
        // Two events of a new session may come at once: it begins with one of them.
        let beginning =
            (!starts && self.begun(&who.session)?.is_none()).then(|| held(&self.beginning));
        if beginning.is_some() && self.begun(&who.session)?.is_none() {
            let begins = Hook::SessionStart { channel: "first-event".to_owned(), parent: None };
            let part = Part { principal: None, what: begins };
            self.part(&who, &part, (whose, view), None, &mut said)?;
            said.answers.clear();
        }
        drop(beginning);
        if said.stopped.is_some() {
            return Ok(said);
        }
        for part in &body.parts {
            let call = said.answers.first().filter(|_| matches!(first, Hook::ToolCall { .. }));
            let call = call.and_then(|call| RecordId::from_hex(&call.record));
            let what = seen.believed(&part.what).into_owned();
            let part = Part { principal: part.principal.clone(), what };
            self.part(&who, &part, (whose, view), call, &mut said)?;
            let denied = said.answers.last().is_some_and(|one| one.verdict == "deny");
            if denied {
                break;
            }
        }
        self.keep_for_undo(&who, &body.parts, &said.answers, view)?;
        // The call of a tool is a question, and its parts are what happens.
        let parts = body.parts.iter().zip(&said.answers).map(|(part, one)| {
            let deed = !matches!(part.what, Hook::ToolCall { .. });
            let record = RecordId::from_hex(&one.record).unwrap_or(RecordId::ZERO);
            (deed && one.verdict == Verdict::Allow.as_str(), record)
        });
        // A file tool that is sent to the staging folder, or a result that is shortened, happens.
        let stopped = |one: &AnswerBody| {
            [Verdict::Deny, Verdict::Ask].iter().any(|verdict| one.verdict == verdict.as_str())
        };
        let acting = Who::new(&who.agent, &who.session, &who.workspace, who.principal()?);
        self.withheld(&acting, !said.answers.iter().any(stopped), parts)?;
        if self.begun(&who.session)? == Some(true) {
            said.stopped = Some(
                "the owner's policy is not valid and strict_policy is on: nothing is done in this \
                 session until it is mended and signed (`wardkeep md status`)"
                    .to_owned(),
            );
        }
        for message in self.news(&who.session)? {
            if !said.messages.contains(&message) {
                said.messages.push(message);
            }
        }
        Ok(said)
    }

    fn part(
        &self,
        who: &WhoBody,
        part: &Part,
        (whose, view): (Surroundings, Option<&Root>),
        call: Option<RecordId>,
        said: &mut EventAnswer,
    ) -> Result<(), AskError> {
        let mut who = who.clone();
        if part.principal.is_some() {
            who.principal.clone_from(&part.principal);
        }
        if let Hook::SessionStart { channel, parent } = &part.what {
            let principal = who.principal()?;
            let acting = Who::new(&who.agent, &who.session, &who.workspace, principal).seeing(view);
            let source = match channel.as_str() {
                "heartbeat" => Source::Heartbeat,
                _ => Source::SessionStart,
            };
            let begun = self.begin(&acting, channel, parent.as_deref(), source, whose)?;
            said.messages.extend(begun.warnings);
            said.block = begun.block;
            said.stopped = begun.refused;
            said.answers.push(answer(begun.outcome));
            return Ok(());
        }
        let question = Question { who, what: part.what.clone() };
        let answered = self.ask_for(&question, call, view)?;
        self.tell_of_writes(&question, &answered)?;
        said.messages.extend(answered.messages.iter().cloned());
        said.answers.push(answered);
        Ok(())
    }

    /// A write that was kept from a protected file stands in the audit log, too.
    fn tell_of_writes(&self, question: &Question, answered: &AnswerBody) -> Result<(), AskError> {
        let path: &Path = match &question.what {
            Hook::FileWrite { path, .. } | Hook::FileDelete { path } => path,
            Hook::FileRename { to, .. } => to,
            _ => return Ok(()),
        };
        let kept = match &answered.verdict {
            verdict if verdict == Verdict::Deny.as_str() => Kept::Denied,
            verdict if verdict == Verdict::Stage.as_str() => Kept::Staged,
            _ => return Ok(()),
        };
        if !(answered.rule == "cpi-deny-sealed" || answered.rule.ends_with("-protected")) {
            return Ok(());
        }
        let who = &question.who;
        let acting = Who::new(&who.agent, &who.session, &who.workspace, who.principal()?);
        let shown: PathBuf = path.strip_prefix(&who.workspace).unwrap_or(path).to_owned();
        Ok(self.write_blocked(&acting, "file", &shown.to_string_lossy(), kept)?)
    }
}
