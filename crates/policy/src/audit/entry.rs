//! One entry: what happened, to which content, by whom.

use std::borrow::Cow;
use std::fmt;

use wardkeep_evidence::json::{Value, parse};
use wardkeep_evidence::time::Timestamp;

use crate::hash::{ContentHash, LineHash};

/// Most bytes of a detail.
const MAX_DETAIL: usize = 2048;
/// Most characters of a tool's name.
const MAX_TOOL: usize = 64;

macro_rules! actions {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// What happened.
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Action {
            $($(#[$doc])* $name,)*
            /// Something that another program wrote.
            Other(String),
        }

        impl Action {
            /// Every action that ours writes.
            pub const ALL: [Self; 11] = [$(Self::$name),*];

            /// As it stands in the log.
            #[must_use]
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$name => $text,)*
                    Self::Other(name) => name,
                }
            }

            /// Reads a name; one that is not known is [`Action::Other`].
            #[must_use]
            pub fn from_name(name: &str) -> Self {
                match name {
                    $($text => Self::$name,)*
                    other => Self::Other(other.to_owned()),
                }
            }
        }
    };
}

actions! {
    /// The template was written.
    Created = "created",
    /// The owner signed.
    Signed = "signed",
    /// Session start: the signature holds.
    Verified = "verified",
    /// Session start: the signature does not hold.
    TamperDetected = "tamper_detected",
    /// Session start: there is no policy.
    Missing = "missing",
    /// Session start: there is a policy but no manifest.
    Unsigned = "unsigned",
    /// Session start: the manifest cannot be read.
    ManifestCorrupted = "manifest_corrupted",
    /// Session start: the policy says what no policy should.
    SuspiciousContent = "suspicious_content",
    /// The policy, its manifest or the config changed while a session ran.
    FileChanged = "file_changed",
    /// A tool tried to write a protected file.
    WriteBlocked = "write_blocked",
    /// The line before was damaged; a new segment of the chain starts.
    ChainRecovery = "chain_recovery",
}

impl fmt::Display for Action {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// What caused an entry.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Source {
    /// A command of the owner.
    Cli,
    /// A window of the owner.
    Gui,
    /// The start of a session.
    SessionStart,
    /// The watcher of files.
    FileWatcher,
    /// A tool of the agent.
    Tool(String),
    /// A session that no person started.
    Heartbeat,
    /// The log itself.
    AuditSystem,
    /// Something that another program wrote.
    Other(String),
}

impl Source {
    /// A tool, by the name that the agent gives it: only plain characters of it are kept.
    #[must_use]
    pub fn tool(name: &str) -> Self {
        let plain = |c: char| if c.is_ascii_alphanumeric() || "_-.:".contains(c) { c } else { '_' };
        Self::Tool(name.chars().take(MAX_TOOL).map(plain).collect())
    }

    /// As it stands in the log.
    #[must_use]
    pub fn name(&self) -> Cow<'_, str> {
        Cow::Borrowed(match self {
            Self::Cli => "cli",
            Self::Gui => "gui",
            Self::SessionStart => "session_start",
            Self::FileWatcher => "file_watcher",
            Self::Tool(name) => return Cow::Owned(format!("tool:{name}")),
            Self::Heartbeat => "heartbeat",
            Self::AuditSystem => "audit_system",
            Self::Other(name) => name,
        })
    }

    /// Reads a name; one that is not known is [`Source::Other`].
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        match name {
            "cli" => Self::Cli,
            "gui" => Self::Gui,
            "session_start" => Self::SessionStart,
            "file_watcher" => Self::FileWatcher,
            "heartbeat" => Self::Heartbeat,
            "audit_system" => Self::AuditSystem,
            other => match other.strip_prefix("tool:") {
                Some(tool) => Self::Tool(tool.to_owned()),
                None => Self::Other(other.to_owned()),
            },
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.name())
    }
}

/// What is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub action: Action,
    /// The policy at that time, raw bytes.
    pub content: Option<ContentHash>,
    /// What caused it.
    pub source: Source,
    /// More, for people.
    pub detail: Option<String>,
}

impl Event {
    /// Without content and detail.
    #[must_use]
    pub fn new(action: Action, source: Source) -> Self {
        Self { action, content: None, source, detail: None }
    }

    /// With the content that it is about.
    #[must_use]
    pub fn content(mut self, content: Option<ContentHash>) -> Self {
        self.content = content;
        self
    }

    /// With a detail, cut to a length that keeps lines short.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        let mut detail = detail.into();
        if detail.len() > MAX_DETAIL {
            detail.truncate(detail.floor_char_boundary(MAX_DETAIL));
            detail.push('…');
        }
        self.detail = Some(detail);
        self
    }

    /// A tool's attempt to write a protected file.
    #[must_use]
    pub fn write_blocked(tool: &str, path: &str) -> Self {
        Self::new(Action::WriteBlocked, Source::tool(tool))
            .detail(format!("Agent attempted write to {path}"))
    }

    /// The line, without its newline.
    pub(super) fn line(&self, now: Timestamp, previous: LineHash) -> String {
        let text = |text: &str| serde_json::Value::from(text).to_string();
        let or_null = |value: Option<String>| value.unwrap_or_else(|| "null".to_owned());
        format!(
            "{{\"ts\":\"{now}\",\"action\":{},\"content_sha256\":{},\"prev_entry_sha256\":\"{previous}\",\"source\":{},\"detail\":{}}}",
            text(self.action.name()),
            or_null(self.content.map(|content| format!("\"{content}\""))),
            text(&self.source.name()),
            or_null(self.detail.as_deref().map(text)),
        )
    }
}

/// An entry as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// When, as written there.
    pub ts: String,
    /// What happened.
    pub action: Action,
    /// The content, as written there; `None` where nothing stood.
    pub content: Option<String>,
    /// Hash of the line before, as written there.
    pub previous: String,
    /// What caused it.
    pub source: Source,
    /// More, for people.
    pub detail: Option<String>,
}

/// Reads a line without its newline; an error says in a few words why it is none of the log.
///
/// # Errors
/// When it is not a JSON object with the members of an entry.
pub fn parse_entry(line: &[u8]) -> Result<Entry, &'static str> {
    let value = parse(line).map_err(|_| match std::str::from_utf8(line) {
        Ok(_) => "not valid JSON",
        Err(_) => "not valid UTF-8",
    })?;
    let object = value.as_object().ok_or("not a JSON object")?;
    if value.duplicate_key().is_some() {
        return Err("a member stands twice");
    }
    let string = |name: &str| match object.get(name) {
        Some(Value::String(text)) => Ok(Some(text.clone().into_owned())),
        Some(Value::Null) | None => Ok(None),
        Some(_) => Err("a member has the wrong type"),
    };
    let full = |text: &String| !text.is_empty();
    Ok(Entry {
        ts: string("ts")?.ok_or("no `ts`")?,
        action: Action::from_name(&string("action")?.filter(full).ok_or("no `action`")?),
        content: string("content_sha256")?.filter(full),
        previous: string("prev_entry_sha256")?.ok_or("no `prev_entry_sha256`")?,
        source: Source::from_name(&string("source")?.ok_or("no `source`")?),
        detail: string("detail")?.filter(full),
    })
}
