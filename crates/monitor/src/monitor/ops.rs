//! The hooks as the socket knows them: one `hook.*` operation each, JSON in and out.

use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use wardkeep_evidence::hash::RecordId;
use wardkeep_evidence::record::Principal;
use wardkeep_guard::taint::Taint;
use wardkeep_policy::store::PolicyStore;

use super::commands::Command;
use super::egress::{EGRESS, EGRESS_SEVERAL, EgressBody, EgressSeveral};
use super::event::{EVENT, EventBody};
use super::model::{MODEL, ModelBody};
use super::seen::Seen;
use super::{Monitor, MonitorError, Outcome, Sent, Surroundings, Who};
use crate::daemon::{Handler, Peer, Request, Response, Role, Root};
use crate::skills;
use crate::wire::Code;

/// Who acts, in words.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct WhoBody {
    /// The agent.
    pub agent: String,
    /// The session.
    pub session: String,
    /// The workspace.
    pub workspace: PathBuf,
    /// On whose behalf; `USER` where it is not said.
    #[serde(default)]
    pub principal: Option<String>,
    /// Taint to add.
    #[serde(default)]
    pub taint: Vec<String>,
    /// Closer parents, by the ids of their records.
    #[serde(default)]
    pub parents: Vec<String>,
}

/// What a hook is told.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(tag = "hook", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Hook {
    /// A session begins.
    SessionStart {
        /// Where it was begun.
        channel: String,
        /// The session that it descends from.
        #[serde(default)]
        parent: Option<String>,
    },
    /// A session ends.
    SessionEnd {
        /// Why.
        reason: String,
    },
    /// An event was denied because it could not be read, or something went wrong with it.
    Unread {
        /// The agent's name for the event.
        event: String,
        /// Why.
        reason: String,
    },
    /// An agent does not ask, or not for everything.
    Unprotected {
        /// The agent, by its name.
        agent: String,
        /// What is wrong.
        what: String,
        /// How it is mended.
        mend: String,
    },
    /// Something was said that nobody can stop any more.
    SessionMessage {
        /// What was said.
        text: String,
    },
    /// The agent asks for a tool.
    ToolCall {
        /// Its name.
        tool: String,
        /// What it is given.
        arguments: String,
    },
    /// A tool is to run a shell command.
    Command {
        /// Its name.
        tool: String,
        /// What it is given.
        arguments: String,
        /// The text for the shell.
        command: String,
        /// Where it starts.
        directory: PathBuf,
    },
    /// A tool gives something back.
    ToolResult {
        /// Its name.
        tool: String,
        /// The record of the call.
        #[serde(default)]
        call: Option<String>,
        /// What the tool was given, by which its call is found where no record is named.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments: Option<String>,
        /// What it gave.
        text: String,
    },
    /// Someone wants to change what steers the agent.
    ControlPlaneChange {
        /// What is changed.
        key: String,
        /// What it becomes.
        detail: String,
    },
    /// A file is to be written.
    FileWrite {
        /// Its path.
        path: PathBuf,
        /// What it will hold.
        content: String,
    },
    /// A file is to be read.
    FileRead {
        /// Its path.
        path: PathBuf,
    },
    /// A file is to be removed.
    FileDelete {
        /// Its path.
        path: PathBuf,
    },
    /// A file is to get another name.
    FileRename {
        /// Its path.
        from: PathBuf,
        /// The other.
        to: PathBuf,
    },
    /// A request is to leave.
    OutboundRequest {
        /// Where to.
        url: String,
        /// How.
        method: String,
        /// Bytes that are sent.
        #[serde(default)]
        size: u64,
        /// Those bytes, as text, as far as they are at hand.
        #[serde(default)]
        content: Option<String>,
    },
    /// A message is to reach the model.
    MessageInput {
        /// The message.
        text: String,
    },
    /// The model's reply is to leave.
    MessageOutput {
        /// The reply.
        text: String,
    },
    /// The system prompt is known.
    SystemPrompt {
        /// The prompt.
        prompt: String,
    },
    /// Some names of the system prompt are known.
    PromptTokens {
        /// The names.
        tokens: Vec<String>,
    },
    /// A skill is to join the agent.
    SkillInstall {
        /// Its name.
        name: String,
        /// What it says of itself.
        #[serde(default)]
        text: String,
        /// The folder that it lies in: it is verified there.
        #[serde(default)]
        folder: Option<PathBuf>,
    },
    /// Proxies are to be trusted.
    ProxyTrust {
        /// Which ones.
        trusted: Vec<String>,
        /// By whom.
        gateway: String,
    },
}

/// A question to the monitor.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// Who acts.
    pub who: WhoBody,
    /// What is to happen.
    pub what: Hook,
}

/// What is answered.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
pub struct AnswerBody {
    /// `allow`, `redact`, `stage`, `ask` or `deny`.
    pub verdict: String,
    /// The record of it.
    pub record: String,
    /// The rule that decided.
    pub rule: String,
    /// Why.
    pub reason: String,
    /// What to do next.
    pub suggestion: Option<String>,
    /// The taint of what happens.
    pub taint: Vec<String>,
    /// How bad it is.
    pub severity: String,
    /// The text without what was found.
    pub text: Option<String>,
    /// Where it may be written instead.
    pub staged: Option<PathBuf>,
    /// What the agent must tell its user.
    pub messages: Vec<String>,
    /// Names of the prompt that replies are watched for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<usize>,
}

/// Why a question has no answer. Whoever asked must treat it as a denial.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// It says something that cannot be.
    #[error("the question cannot be read: {0}")]
    Malformed(String),
    /// The one who asks does not see the folder that it says it is in, or does not let itself be looked at.
    #[error(
        "whoever asks does not see the workspace that is named as it is seen outside: start the agent in its workspace"
    )]
    Unseen,
    /// The session belongs to processes that see other files.
    #[error(
        "the session is one of processes that see other files than whoever asks: begin another one, or this one \
         anew when it has ended or was left for ten minutes"
    )]
    Foreign,
    /// Too much was written down for processes of the same confinement.
    #[error(
        "more was to be written down for this confinement than is kept in so short a time: wait some minutes, and ask \
         less often"
    )]
    Spent,
    /// The monitor has no answer.
    #[error(transparent)]
    Monitor(#[from] MonitorError),
}

impl WhoBody {
    /// On whose behalf.
    ///
    /// # Errors
    /// When it is nobody's name.
    pub fn principal(&self) -> Result<Principal, AskError> {
        match &self.principal {
            None => Ok(Principal::User),
            Some(name) => name.parse().map_err(|error: wardkeep_evidence::record::UnknownName| {
                AskError::Malformed(error.to_string())
            }),
        }
    }
}

impl Monitor {
    /// Answers a question that came through a door.
    ///
    /// # Errors
    /// When there is no answer: that is a denial.
    pub fn ask(&self, question: &Question) -> Result<AnswerBody, AskError> {
        self.ask_seen(question, &Seen::Same)
    }

    /// As [`Monitor::ask`], for someone who sees the files in their own way.
    pub(super) fn ask_seen(
        &self,
        question: &Question,
        seen: &Seen,
    ) -> Result<AnswerBody, AskError> {
        let Question { who, what } = question;
        if matches!(what, Hook::Unread { .. })
            && let Some(who) = self.nowhere(who, what, seen)
        {
            return self.ask_for(&Question { who, what: what.clone() }, None, None);
        }
        let what = &*seen.believed(what);
        self.descends(what, seen)?;
        let Some(view) = seen.view()? else {
            let begins = matches!(what, Hook::SessionStart { .. }).then_some(&who.workspace);
            self.act_in(&who.session, begins, seen)?;
            let question = Question { who: who.clone(), what: what.clone() };
            return self.ask_for(&question, None, None);
        };
        let workspace = self.place_of(&who.session, &who.workspace, what, seen)?;
        let who = WhoBody { workspace, ..who.clone() };
        self.ask_for(&Question { who, what: what.clone() }, None, Some(view))
    }

    /// As [`Monitor::ask`], as a part of a call of a tool.
    pub(super) fn ask_for(
        &self,
        question: &Question,
        call: Option<RecordId>,
        view: Option<&Root>,
    ) -> Result<AnswerBody, AskError> {
        let body = &question.who;
        let malformed = |error: &dyn std::fmt::Display| AskError::Malformed(error.to_string());
        let principal = body.principal()?;
        let id = |text: &String| {
            RecordId::from_hex(text).ok_or_else(|| malformed(&format!("`{text}` is no record id")))
        };
        let parents = body.parents.iter().map(id).collect::<Result<Vec<_>, _>>()?;
        let who = Who::new(&body.agent, &body.session, &body.workspace, principal)
            .tainted(Taint::from_names(body.taint.iter().map(String::as_str)))
            .after(&parents)
            .seeing(view);
        let outcome = match &question.what {
            Hook::SystemPrompt { prompt } => {
                let (record, tokens) = self.prompt_told(&who, prompt)?;
                return Ok(registered(record, tokens));
            }
            Hook::PromptTokens { tokens } => {
                let (record, tokens) = self.tokens_told(&who, tokens)?;
                return Ok(registered(record, tokens));
            }
            Hook::SessionStart { channel, parent } => {
                self.on_session_start(&who, channel, parent.as_deref())?
            }
            Hook::SessionMessage { text } => self.on_session_message(&who, text)?,
            Hook::ToolCall { tool, arguments } => self.on_tool_call(&who, tool, arguments)?,
            Hook::Command { tool, arguments, command, directory } => {
                let command = Command { tool, arguments, text: command, directory };
                return strictest(self.on_command(&who, &command)?)
                    .ok_or_else(|| malformed(&"nothing was asked"));
            }
            Hook::SessionEnd { reason } => self.on_session_end(&who, reason)?,
            Hook::Unread { event, reason } => self.on_unread(&who, event, reason)?,
            Hook::Unprotected { agent, what, mend } => {
                self.on_unprotected(&who, agent, what, mend)?
            }
            Hook::ToolResult { tool, call, arguments, text } => {
                let call = call.as_ref().map(id).transpose()?;
                let given = arguments.as_deref().filter(|_| call.is_none());
                self.result_of(&who, tool, call, given, text)?
            }
            Hook::ControlPlaneChange { key, detail } => {
                self.on_control_plane_change(&who, key, detail)?
            }
            Hook::FileWrite { path, content } => {
                self.on_file_write(&who, path, content.as_bytes())?
            }
            Hook::FileRead { path } => self.on_file_read(&who, path)?,
            Hook::FileDelete { path } => self.on_file_delete(&who, path)?,
            Hook::FileRename { from, to } => self.on_file_rename(&who, from, to)?,
            Hook::OutboundRequest { url, method, size, content } => {
                let content = content.as_ref().map(String::as_bytes);
                self.request_for(&who, call, url, method, Sent { size: *size, content })?
            }
            Hook::MessageInput { text } => self.on_message_input(&who, text)?,
            Hook::MessageOutput { text } => self.on_message_output(&who, text, None)?,
            Hook::SkillInstall { name, text, folder: None } => {
                self.on_skill_install(&who, name, None, text)?
            }
            Hook::SkillInstall { name, text, folder: Some(folder) } => {
                let policy = PolicyStore::new(self.store.path(), self.config.owner);
                let (found, told) = skills::looked_into(&policy, folder, view, self.store.now());
                self.on_skill_install(&who, name, Some(found), &format!("{text}\n{told}"))?
            }
            Hook::ProxyTrust { trusted, gateway } => {
                let trusted: Vec<&str> = trusted.iter().map(String::as_str).collect();
                self.check_proxy_trust(&who, &trusted, gateway)?
            }
        };
        Ok(answer(outcome))
    }
}

/// The operation that a [`Question`] is asked with.
pub const ASK: &str = "hook.ask";

impl Handler for Monitor {
    fn handle(&self, peer: &Peer, request: Request) -> Response {
        let whose = u32::try_from(peer.pid).map_or(Surroundings::Unseen, Surroundings::Of);
        let seen = || Seen::by(peer);
        match request.op.as_str() {
            ASK => answered(&request, |question: &Question| {
                self.metered(&seen(), |seen| self.ask_seen(question, seen))
            }),
            EVENT => answered(&request, |event: &EventBody| match peer.role {
                Role::Owner => self.event_of(event, whose),
                Role::Agent => self.metered(&seen(), |seen| {
                    self.event_seen(&event.clone().of_agent(), whose, seen)
                }),
            }),
            EGRESS => answered(&request, |asked: &EgressBody| self.egress(asked)),
            EGRESS_SEVERAL => {
                answered(&request, |asked: &EgressSeveral| self.egress_several(asked))
            }
            MODEL => answered(&request, |asked: &ModelBody| self.model(asked, whose)),
            _ => Response::unknown(&request),
        }
    }
}

fn answered<Q: DeserializeOwned, A: Serialize>(
    request: &Request,
    ask: impl FnOnce(&Q) -> Result<A, AskError>,
) -> Response {
    let question: Q = match request.read() {
        Ok(question) => question,
        Err(refusal) => return Response::Refusal(refusal),
    };
    match ask(&question) {
        Ok(answer) => Response::of(&answer),
        Err(error @ AskError::Malformed(_)) => Response::refuse(Code::Malformed, error.to_string()),
        Err(error @ (AskError::Unseen | AskError::Foreign | AskError::Spent)) => {
            Response::refuse(Code::Refused, error.to_string())
        }
        Err(error) => Response::refuse(Code::Failed, error.to_string()),
    }
}

/// The strictest of several answers, with all that must be told.
fn strictest(outcomes: Vec<Outcome>) -> Option<AnswerBody> {
    let mut messages = Vec::new();
    let mut strictest: Option<Outcome> = None;
    for mut outcome in outcomes {
        messages.extend(outcome.alerts.drain(..).map(|alert| alert.message));
        if strictest.as_ref().is_none_or(|other| outcome.verdict > other.verdict) {
            strictest = Some(outcome);
        }
    }
    strictest.map(|outcome| AnswerBody { messages, ..answer(outcome) })
}

fn registered(record: RecordId, tokens: usize) -> AnswerBody {
    AnswerBody {
        verdict: "allow".to_owned(),
        record: record.to_string(),
        rule: "system-prompt-registered".to_owned(),
        reason: format!("Replies are watched for {tokens} names and the text of the prompt."),
        suggestion: None,
        taint: Vec::new(),
        severity: "info".to_owned(),
        text: None,
        staged: None,
        messages: Vec::new(),
        tokens: Some(tokens),
    }
}

pub(super) fn answer(outcome: Outcome) -> AnswerBody {
    AnswerBody {
        verdict: outcome.verdict.to_string(),
        record: outcome.record.to_string(),
        rule: outcome.rule,
        reason: outcome.reason,
        suggestion: outcome.suggestion,
        taint: outcome.taint.names().map(str::to_owned).collect(),
        severity: outcome.severity.to_string(),
        text: outcome.text,
        staged: outcome.staged,
        messages: outcome.alerts.into_iter().map(|alert| alert.message).collect(),
        tokens: None,
    }
}
