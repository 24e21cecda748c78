//! The agents.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::answer::Answer;
use crate::event::{Event, Kind};
use crate::input::Malformed;
use crate::output::Output;
use crate::{
    claude_code, cline, codex, copilot_cli, cursor, gemini_cli, openclaw, opencode, qwen_code,
    windsurf,
};

/// What is known of an agent's hooks.
pub(crate) trait Adapter: Sync {
    /// The kind of an event, by the agent's name for it.
    fn kind(&self, name: &str) -> Option<Kind>;

    /// Reads an event. `hint` is the event's name as the hook was installed for it.
    fn read(
        &self,
        hint: Option<&str>,
        bytes: &[u8],
        home: Option<&Path>,
    ) -> Result<Event, Malformed>;

    /// Writes an answer to an event of this kind and name.
    fn write(&self, asked: &Asked<'_>, answer: &Answer) -> Output;
}

/// What is answered to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    /// The kind; none, where not even that is known.
    pub(crate) kind: Option<Kind>,
    /// The agent's name for it.
    pub(crate) name: &'a str,
    /// What the tool gave.
    pub(crate) result: Option<&'a serde_json::Value>,
}

macro_rules! agents {
    ($($(#[doc = $doc:literal])* $variant:ident = $name:literal, $adapter:expr, $runs:literal, $rewrites:literal;)*) => {
        /// An agent that wardkeep knows the hooks of.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Agent {
            $($(#[doc = $doc])* $variant,)*
        }

        impl Agent {
            /// Every agent.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name on the command line, in records and in front of sessions.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Whether its contract was seen at work, not only read about.
            #[must_use]
            pub const fn was_run(self) -> bool {
                match self { $(Self::$variant => $runs,)* }
            }

            /// Whether a call can be answered with another input.
            #[must_use]
            pub const fn rewrites_input(self) -> bool {
                match self { $(Self::$variant => $rewrites,)* }
            }

            fn adapter(self) -> &'static dyn Adapter {
                match self { $(Self::$variant => $adapter,)* }
            }
        }
    };
}

agents! {
    /// Claude Code.
    ClaudeCode = "claude-code", &claude_code::ClaudeCode, true, true;
    /// OpenAI Codex.
    Codex = "codex", &codex::Codex, true, false;
    /// Gemini CLI.
    GeminiCli = "gemini-cli", &gemini_cli::GeminiCli, true, true;
    /// GitHub Copilot CLI.
    CopilotCli = "copilot-cli", &copilot_cli::CopilotCli, true, true;
    /// OpenClaw, through the plugin.
    OpenClaw = "openclaw", &openclaw::OpenClaw, true, true;
    /// OpenCode, through the plugin.
    OpenCode = "opencode", &opencode::OpenCode, true, true;
    /// Qwen Code.
    QwenCode = "qwen-code", &qwen_code::QwenCode, false, false;
    /// Cline.
    Cline = "cline", &cline::Cline, false, false;
    /// Cursor: from its documentation, never run with it.
    Cursor = "cursor", &cursor::Cursor, false, false;
    /// Windsurf: from its documentation, never run with it.
    Windsurf = "windsurf", &windsurf::Windsurf, false, false;
}

impl Agent {
    /// Reads an event. `hint` is the event's name as the hook was installed for it; where both say
    /// one, they must say the same.
    ///
    /// # Errors
    /// When it is not understood: [`Agent::refuse`] is the answer then.
    pub fn read(
        self,
        hint: Option<&str>,
        bytes: &[u8],
        home: Option<&Path>,
    ) -> Result<Event, Malformed> {
        self.adapter().read(hint, bytes, home)
    }

    /// Whether an event is one line. Our plugins end it so: an agent that is busy may close what it
    /// writes to only much later.
    #[must_use]
    pub fn asks_in_lines(self, hint: Option<&str>) -> bool {
        matches!(self, Self::OpenClaw | Self::OpenCode) && hint != Some(openclaw::INSTALL_POLICY)
    }

    /// The answer in this agent's form.
    #[must_use]
    pub fn write(self, event: &Event, answer: &Answer) -> Output {
        let asked =
            Asked { kind: Some(event.kind), name: &event.name, result: event.result.as_ref() };
        self.adapter().write(&asked, answer)
    }

    /// A call that waits for the owner, where the agent itself can wait: it stops without a denial, and
    /// asks again when the session is resumed. None, where it cannot.
    #[must_use]
    pub fn defer(self, event: &Event, answer: &Answer) -> Option<Output> {
        match (self, event.kind, answer) {
            (Self::ClaudeCode, Kind::ToolCall, Answer::Pending { reason, .. }) => {
                Some(claude_code::defer(&event.name, reason))
            }
            _ => None,
        }
    }

    /// The denial of an event that was not understood, or that something went wrong with.
    #[must_use]
    pub fn refuse(self, hint: Option<&str>, reason: &str) -> Output {
        let kind = hint.and_then(|name| self.adapter().kind(name));
        let asked = Asked { kind, name: hint.unwrap_or_default(), result: None };
        self.adapter().write(&asked, &Answer::deny(format!("denied by wardkeep: {reason}")))
    }
}

impl Agent {
    /// An answer as it is best given where a guard keeps anything else from being taken for a yes.
    #[must_use]
    pub fn guarded(self, event: Option<&str>, output: Output) -> Output {
        match (self, event) {
            (Self::ClaudeCode, Some(event)) => claude_code::without_command(event, output),
            _ => output,
        }
    }
}

impl fmt::Display for Agent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// Not the name of an agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no agent `{name}` is known: give one of {known}", name = .0, known = names())]
pub struct UnknownAgent(String);

fn names() -> String {
    Agent::ALL.iter().map(|agent| agent.name()).collect::<Vec<_>>().join(", ")
}

impl FromStr for Agent {
    type Err = UnknownAgent;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.iter().find(|agent| agent.name() == text);
        found.copied().ok_or_else(|| UnknownAgent(wardkeep_evidence::check::printable(text)))
    }
}
