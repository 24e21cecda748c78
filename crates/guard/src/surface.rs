//! Where an agent touches what matters, and who is behind it.

use std::fmt;

use wardkeep_evidence::record::Principal;

/// Where an action crosses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Surface {
    /// What steers the agent: settings, tools, schedules, the policy.
    ControlPlane,
    /// What the agent remembers from one session to the next.
    DurableMemory,
    /// Messages that reach the model, and what it answers.
    ConversationIO,
    /// Every other file.
    FileSystem,
    /// What leaves the machine.
    NetworkIO,
    /// The confinement that the agent runs in.
    SandboxCompliance,
    /// Skills, plugins and servers that join the agent.
    SkillInstall,
}

impl Surface {
    /// Every surface.
    pub const ALL: [Self; 7] = [
        Self::ControlPlane,
        Self::DurableMemory,
        Self::ConversationIO,
        Self::FileSystem,
        Self::NetworkIO,
        Self::SandboxCompliance,
        Self::SkillInstall,
    ];

    /// The name in records and rules.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ControlPlane => "ControlPlane",
            Self::DurableMemory => "DurableMemory",
            Self::ConversationIO => "ConversationIO",
            Self::FileSystem => "FileSystem",
            Self::NetworkIO => "NetworkIO",
            Self::SandboxCompliance => "SandboxCompliance",
            Self::SkillInstall => "SkillInstall",
        }
    }
}

impl fmt::Display for Surface {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Act {
    /// A session begins.
    Start,
    /// A message reaches the model.
    Receive,
    /// The model answers.
    Reply,
    /// The agent asks for a tool.
    Call,
    /// A tool gives something back.
    Return,
    /// A file is read.
    Read,
    /// A file is written or created.
    Write,
    /// A file is removed.
    Delete,
    /// A file gets another name.
    Rename,
    /// A request leaves.
    Send,
    /// What steers the agent is changed.
    Change,
    /// A skill joins.
    Install,
    /// A proxy is trusted.
    Trust,
}

impl Act {
    /// Every act.
    pub const ALL: [Self; 13] = [
        Self::Start,
        Self::Receive,
        Self::Reply,
        Self::Call,
        Self::Return,
        Self::Read,
        Self::Write,
        Self::Delete,
        Self::Rename,
        Self::Send,
        Self::Change,
        Self::Install,
        Self::Trust,
    ];

    /// The name in records and rules.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Receive => "receive",
            Self::Reply => "reply",
            Self::Call => "call",
            Self::Return => "return",
            Self::Read => "read",
            Self::Write => "write",
            Self::Delete => "delete",
            Self::Rename => "rename",
            Self::Send => "send",
            Self::Change => "change",
            Self::Install => "install",
            Self::Trust => "trust",
        }
    }

    /// Whether it changes a file.
    #[must_use]
    pub const fn changes_file(self) -> bool {
        matches!(self, Self::Write | Self::Delete | Self::Rename)
    }
}

impl fmt::Display for Act {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

/// Whether it is the owner or the system itself.
#[must_use]
pub const fn is_owner(principal: Principal) -> bool {
    matches!(principal, Principal::Sys | Principal::User)
}

/// Whether nothing that it says may be taken as an instruction.
#[must_use]
pub const fn is_untrusted(principal: Principal) -> bool {
    matches!(
        principal,
        Principal::Skill | Principal::Web | Principal::Channel | Principal::External
    )
}
