//! What an event of an agent means.

use std::path::PathBuf;

use serde_json::Value;
use wardkeep_evidence::record::Principal;
use wardkeep_monitor::monitor::{EventBody, Hook, Part, WhoBody};

use crate::agent::Agent;

/// What kind of event it is: what can be answered to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A tool is to be called.
    ToolCall,
    /// A tool gave something back that the model is to see.
    ToolResult,
    /// The user says something.
    Prompt,
    /// A session begins.
    SessionStart,
    /// A session ends.
    SessionEnd,
    /// The agent's settings have changed.
    ConfigChange,
    /// A message is to be sent to somebody.
    Sending,
    /// Something happened that no answer changes.
    Observed,
}

/// An event.
#[derive(Debug, Clone)]
pub struct Event {
    /// Whose it is.
    pub agent: Agent,
    /// The session: the agent's name, a colon, and the agent's own id for it.
    pub session: String,
    /// What kind of event.
    pub kind: Kind,
    /// What the agent calls it.
    pub name: String,
    /// Where the agent is.
    pub directory: PathBuf,
    /// The tool.
    pub tool: Option<String>,
    /// What the tool is given.
    pub input: Option<Value>,
    /// What the tool gave.
    pub result: Option<Value>,
    /// All that would cross to or from the agent.
    pub crossings: Vec<Crossing>,
    /// On whose behalf what comes in is said.
    pub origin: Principal,
}

/// Something that would cross.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Crossing {
    /// A shell runs a text.
    Command {
        /// The text.
        text: String,
        /// Where it starts.
        directory: PathBuf,
    },
    /// A file is read, or a folder looked through.
    Read {
        /// As it is written, below where the agent is.
        path: PathBuf,
    },
    /// A file is written.
    Write {
        /// As it is written, below where the agent is.
        path: PathBuf,
        /// What is put into it, as far as it is known.
        content: String,
        /// The member of the input that says where, if all of the file is written: then it may be
        /// written somewhere else.
        redirect: Option<String>,
    },
    /// A file is removed.
    Delete {
        /// As it is written, below where the agent is.
        path: PathBuf,
    },
    /// A file gets another name.
    Rename {
        /// The one it has.
        from: PathBuf,
        /// The other.
        to: PathBuf,
    },
    /// A request leaves.
    Request {
        /// Where to.
        url: String,
        /// How.
        method: &'static str,
        /// What is sent.
        body: Option<String>,
    },
    /// What steers the agent is changed.
    Change {
        /// What.
        key: String,
        /// To what.
        detail: String,
    },
    /// A skill or plugin joins the agent.
    Install {
        /// Its name.
        name: String,
        /// What it says of itself.
        text: String,
        /// The folder it lies in, where the agent says it.
        folder: Option<PathBuf>,
    },
    /// The model is told something by somebody.
    Message {
        /// What.
        text: String,
    },
    /// The model's words leave.
    Reply {
        /// What.
        text: String,
    },
    /// A tool gave something.
    Result {
        /// All texts of it.
        text: String,
    },
    /// A session begins.
    Start {
        /// Where from.
        channel: String,
        /// The session that it descends from.
        parent: Option<String>,
    },
    /// A session ends.
    End {
        /// Why.
        reason: String,
    },
    /// Something was said that nobody can stop any more.
    Said {
        /// What.
        text: String,
    },
}

impl Event {
    /// The question to the monitor; nothing, where there is nothing to ask.
    #[must_use]
    pub fn question(&self) -> Option<EventBody> {
        let parts: Vec<Part> = self.parts().into_iter().map(|(part, _)| part).collect();
        if parts.is_empty() {
            return None;
        }
        let who = WhoBody {
            agent: self.agent.name().to_owned(),
            session: self.session.clone(),
            workspace: self.directory.clone(),
            principal: None,
            taint: Vec::new(),
            parents: Vec::new(),
        };
        Some(EventBody { who, parts })
    }

    /// The parts of the question, each with the crossing that it asks for.
    pub(crate) fn parts(&self) -> Vec<(Part, Option<&Crossing>)> {
        let tool = self.tool.as_deref().unwrap_or("unknown");
        let arguments = || self.input.as_ref().map(ToString::to_string).unwrap_or_default();
        let mut parts = Vec::new();
        let runs =
            self.crossings.iter().any(|crossing| matches!(crossing, Crossing::Command { .. }));
        if self.kind == Kind::ToolCall && !runs {
            let what = Hook::ToolCall { tool: tool.to_owned(), arguments: arguments() };
            parts.push((Part { principal: None, what }, None));
        }
        for crossing in &self.crossings {
            let foreign = matches!(
                crossing,
                Crossing::Message { .. } | Crossing::Result { .. } | Crossing::Said { .. }
            );
            let principal = foreign.then(|| self.origin.as_str().to_owned());
            let what = match crossing.clone() {
                Crossing::Command { text, directory } => Hook::Command {
                    tool: tool.to_owned(),
                    arguments: arguments(),
                    command: text,
                    directory,
                },
                Crossing::Read { path } => Hook::FileRead { path },
                Crossing::Write { path, content, .. } => Hook::FileWrite { path, content },
                Crossing::Delete { path } => Hook::FileDelete { path },
                Crossing::Rename { from, to } => Hook::FileRename { from, to },
                Crossing::Request { url, method, body } => {
                    Hook::OutboundRequest { url, method: method.to_owned(), size: 0, content: body }
                }
                Crossing::Change { key, detail } => Hook::ControlPlaneChange { key, detail },
                Crossing::Install { name, text, folder } => {
                    Hook::SkillInstall { name, text, folder }
                }
                Crossing::Message { text } => Hook::MessageInput { text },
                Crossing::Reply { text } => Hook::MessageOutput { text },
                Crossing::Result { text } => {
                    let arguments = self.input.as_ref().map(ToString::to_string);
                    Hook::ToolResult { tool: tool.to_owned(), call: None, arguments, text }
                }
                Crossing::Start { channel, parent } => Hook::SessionStart { channel, parent },
                Crossing::End { reason } => Hook::SessionEnd { reason },
                Crossing::Said { text } => Hook::SessionMessage { text },
            };
            parts.push((Part { principal, what }, Some(crossing)));
        }
        parts
    }
}
