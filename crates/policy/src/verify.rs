//! Verification (RFC 4.4): one read of the policy, and one of six states.

use std::fmt;

use crate::audit::{Action, Event, Source};
use crate::config::Switches;
use crate::files::Unread;
use crate::hash::ContentHash;
use crate::key::{DeviceKey, KeyError};
use crate::manifest::{MAX_MANIFEST_BYTES, Manifest, ManifestError};
use crate::memory::Memory;
use crate::sanitise::{Filtered, Sanitised, sanitise};
use crate::workspace::{MANIFEST_FILE, Workspace, WorkspaceId};

/// What a policy is found to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// Signed, unchanged and fit to be used.
    Valid,
    /// There is a policy but no manifest.
    Unsigned,
    /// The signature does not hold, or cannot be checked.
    TamperDetected,
    /// There is no policy.
    Missing,
    /// The manifest cannot be read.
    ManifestCorrupted,
    /// The policy says what no policy should.
    SuspiciousContent,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 6] = [
        Self::Valid,
        Self::Unsigned,
        Self::TamperDetected,
        Self::Missing,
        Self::ManifestCorrupted,
        Self::SuspiciousContent,
    ];

    /// What `md verify` ends with.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Valid => 0,
            Self::Unsigned => 10,
            Self::TamperDetected => 11,
            Self::Missing => 12,
            Self::ManifestCorrupted => 13,
            Self::SuspiciousContent => 14,
        }
    }

    /// What the audit log calls it.
    #[must_use]
    pub fn action(self) -> Action {
        match self {
            Self::Valid => Action::Verified,
            Self::Unsigned => Action::Unsigned,
            Self::TamperDetected => Action::TamperDetected,
            Self::Missing => Action::Missing,
            Self::ManifestCorrupted => Action::ManifestCorrupted,
            Self::SuspiciousContent => Action::SuspiciousContent,
        }
    }

    /// A stable word for output that programs read.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Unsigned => "unsigned",
            Self::TamperDetected => "tamper_detected",
            Self::Missing => "missing",
            Self::ManifestCorrupted => "manifest_corrupted",
            Self::SuspiciousContent => "suspicious_content",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// Why a policy is in its state.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// The policy is not a plain file that can be read.
    #[error("LocalGPT.md {0}")]
    Policy(Unread),
    /// The policy was signed before and is gone.
    #[error("a signed LocalGPT.md was here before and is gone: restore it, or sign a new one")]
    Vanished,
    /// The manifest was there before and is gone.
    #[error("LocalGPT.md was signed before and its manifest is gone: compare it, then sign again")]
    Unmarked,
    /// The manifest cannot be read.
    #[error(transparent)]
    Manifest(ManifestError),
    /// There is no key to check with.
    #[error("{message}")]
    Key {
        /// A stable word for logs.
        word: &'static str,
        /// What the error said.
        message: String,
    },
    /// Someone other than the owner claims to have signed.
    #[error("the manifest says that `{0}` signed it, and only the owner may")]
    Signer(String),
    /// The policy has other bytes than were signed.
    #[error("LocalGPT.md was changed after it was signed")]
    Changed,
    /// The HMAC does not hold.
    #[error("the signature was not made with this device's key, or the manifest was changed")]
    Forged,
    /// The binding's HMAC does not hold.
    #[error("the manifest's date, signer, workspace or counter was changed")]
    Unbound,
    /// It was signed for another workspace.
    #[error("the policy was signed for another workspace ({0}): sign it here if it belongs here")]
    OtherWorkspace(WorkspaceId),
    /// An older policy than the last one.
    #[error(
        "rollback: the policy and its manifest are number {found}, and number {last} was used already"
    )]
    Rollback {
        /// Its counter.
        found: u64,
        /// The newest counter that was accepted.
        last: u64,
    },
    /// A manifest of an older kind than the last one.
    #[error("downgrade: the manifest has no counter, and an earlier one had number {last}")]
    Downgrade {
        /// The newest counter that was accepted.
        last: u64,
    },
    /// What was remembered of the workspace is lost or was changed.
    #[error(
        "what was remembered of this workspace is not to be trusted ({0}): check the policy, then sign again"
    )]
    MemoryDamaged(String),
    /// The policy is not text.
    #[error("LocalGPT.md is not UTF-8 text: save it as UTF-8 and sign again")]
    NotUtf8,
    /// Patterns that no policy should have.
    #[error("LocalGPT.md contains suspicious patterns: {}", .0.patterns())]
    Suspicious(Box<Sanitised>),
}

impl Reason {
    /// A stable word for logs.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Policy(unread) => unread.word(),
            Self::Vanished | Self::Unmarked => "was-signed-before",
            Self::Manifest(error) => error.word(),
            Self::Key { word, .. } => word,
            Self::Signer(_) => "signed-by",
            Self::Changed => "content-changed",
            Self::Forged => "hmac-mismatch",
            Self::Unbound => "binding-mismatch",
            Self::OtherWorkspace(_) => "other-workspace",
            Self::Rollback { .. } => "rollback",
            Self::Downgrade { .. } => "downgrade",
            Self::MemoryDamaged(_) => "memory-damaged",
            Self::NotUtf8 => "not-utf8",
            Self::Suspicious(_) => "suspicious-patterns",
        }
    }

    /// What the audit log gets as detail.
    fn detail(&self) -> String {
        match self {
            Self::Suspicious(sanitised) => sanitised.patterns(),
            other => format!("{}: {other}", other.word()),
        }
    }
}

/// A policy that was verified and sanitised: only verification makes one.
#[derive(Debug, Clone, PartialEq)]
pub struct VerifiedPolicy {
    content: ContentHash,
    sanitised: Sanitised,
}

impl VerifiedPolicy {
    /// What goes to the model, at most 4096 characters.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.sanitised.text
    }

    /// Hash of the file's bytes.
    #[must_use]
    pub fn content(&self) -> ContentHash {
        self.content
    }

    /// Characters that were cut off.
    #[must_use]
    pub fn truncated(&self) -> Option<usize> {
        self.sanitised.truncated
    }

    /// Markers that were replaced.
    #[must_use]
    pub fn filtered(&self) -> &[Filtered] {
        &self.sanitised.filtered
    }
}

/// The outcome of a verification.
#[derive(Debug)]
pub struct Verification {
    /// The state.
    pub state: State,
    /// Why, for every state but a plain `Valid`, `Missing` or `Unsigned`.
    pub reason: Option<Reason>,
    /// Hash of the bytes that were read.
    pub content: Option<ContentHash>,
    /// The manifest, if it could be read; believed only where the state is `Valid`.
    pub manifest: Option<Manifest>,
    /// What is to be remembered from now on.
    pub memory: Memory,
    /// The bytes that were read, to show a difference; never to be given to a model.
    pub bytes: Option<Vec<u8>>,
    policy: Option<VerifiedPolicy>,
}

/// What a session does with a verification.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Start<'a> {
    /// The policy goes before the suffix.
    Inject(&'a VerifiedPolicy),
    /// The suffix alone.
    SuffixOnly,
    /// No session: `strict_policy` is on.
    Abort,
}

impl Verification {
    /// The policy, if it is valid.
    #[must_use]
    pub fn policy(&self) -> Option<&VerifiedPolicy> {
        self.policy.as_ref()
    }

    /// What a session does now.
    #[must_use]
    pub fn start(&self, switches: &Switches) -> Start<'_> {
        let never = self.state == State::Missing && !self.memory.ever_signed;
        if switches.strict_policy && self.state != State::Valid && !never {
            return Start::Abort;
        }
        match &self.policy {
            Some(policy) if !switches.disable_policy => Start::Inject(policy),
            _ => Start::SuffixOnly,
        }
    }

    /// The entry that this verification leaves in the audit log.
    #[must_use]
    pub fn event(&self, source: Source) -> Event {
        let event = Event::new(self.state.action(), source).content(self.content);
        match &self.reason {
            Some(reason) => event.detail(reason.detail()),
            None => event,
        }
    }

    /// What is told to the owner, most important first; `command` is the name that the binary was
    /// called by.
    #[must_use]
    pub fn warnings(&self, command: &str) -> Vec<String> {
        let mut lines = Vec::new();
        match self.state {
            State::Valid => {}
            State::Missing if self.reason.is_none() => {}
            State::Missing => lines.push("⚠ LocalGPT.md is missing. Using defaults.".to_owned()),
            State::Unsigned => {
                lines.push(format!("LocalGPT.md not signed. Run {command} md sign."))
            }
            State::TamperDetected => {
                lines.push("⚠ LocalGPT.md tampered. Using defaults.".to_owned());
            }
            State::ManifestCorrupted => {
                lines.push("⚠ LocalGPT.md manifest corrupted. Using defaults.".to_owned());
            }
            State::SuspiciousContent => {
                lines.push("⚠ LocalGPT.md contains suspicious patterns.".to_owned());
            }
        }
        match &self.reason {
            Some(Reason::Suspicious(sanitised)) => {
                for suspicion in &sanitised.suspicions {
                    lines.push(format!(
                        "  line {}, column {}: {} ({})",
                        suspicion.line, suspicion.column, suspicion.reason, suspicion.rule
                    ));
                }
            }
            Some(reason) => lines.push(format!("  {reason}")),
            None => {}
        }
        if let Some(left_out) = self.policy.as_ref().and_then(VerifiedPolicy::truncated) {
            lines.push(format!(
                "⚠ LocalGPT.md is too long: {left_out} characters at its end are left out."
            ));
        }
        lines
    }
}

/// Verifies the policy of a workspace: reads it once, and gives the text of those very bytes.
#[must_use]
pub fn verify(
    workspace: &Workspace,
    key: Result<&DeviceKey, &KeyError>,
    memory: &Memory,
) -> Verification {
    let mut verification = Verification {
        state: State::TamperDetected,
        reason: None,
        content: None,
        manifest: None,
        memory: memory.clone(),
        bytes: None,
        policy: None,
    };
    match judge(workspace, key, &mut verification) {
        Ok(policy) => {
            verification.state = State::Valid;
            verification.policy = Some(policy);
        }
        Err((state, reason)) => {
            verification.state = state;
            verification.reason = reason;
        }
    }
    verification
}

type Fault = (State, Option<Reason>);

fn tampered(reason: Reason) -> Fault {
    (State::TamperDetected, Some(reason))
}

fn judge(
    workspace: &Workspace,
    key: Result<&DeviceKey, &KeyError>,
    found: &mut Verification,
) -> Result<VerifiedPolicy, Fault> {
    let expected = found.memory.ever_signed;
    let bytes = workspace.read_policy().map_err(|unread| match unread {
        Unread::Missing => (State::Missing, expected.then_some(Reason::Vanished)),
        other => tampered(Reason::Policy(other)),
    })?;
    let content = ContentHash::of(&bytes);
    found.content = Some(content);
    let bytes = &*found.bytes.insert(bytes);
    let corrupted = |error| (State::ManifestCorrupted, Some(Reason::Manifest(error)));
    let manifest = match workspace.read(MANIFEST_FILE, MAX_MANIFEST_BYTES) {
        Ok(manifest) => Manifest::parse(&manifest).map_err(corrupted)?,
        Err(Unread::Missing) => {
            return Err((State::Unsigned, expected.then_some(Reason::Unmarked)));
        }
        Err(unread) => return Err(corrupted(unread.into())),
    };
    let manifest = &*found.manifest.insert(manifest);
    let key = key.map_err(|error| {
        tampered(Reason::Key { word: error.word(), message: error.to_string() })
    })?;
    check_signature(manifest, key, bytes, &content).map_err(tampered)?;
    check_order(manifest, &found.memory).map_err(tampered)?;
    found.memory.ever_signed = true;
    found.memory.last_content = Some(content);
    if let Some(binding) = &manifest.binding {
        found.memory.last_counter = binding.counter;
    }
    let suspicious = |reason| (State::SuspiciousContent, Some(reason));
    let text = std::str::from_utf8(bytes).map_err(|_| suspicious(Reason::NotUtf8))?;
    let sanitised = sanitise(text);
    if !sanitised.suspicions.is_empty() {
        return Err(suspicious(Reason::Suspicious(Box::new(sanitised))));
    }
    Ok(VerifiedPolicy { content, sanitised })
}

fn check_signature(
    manifest: &Manifest,
    key: &DeviceKey,
    bytes: &[u8],
    content: &ContentHash,
) -> Result<(), Reason> {
    if !matches!(manifest.signed_by.as_str(), "cli" | "gui") {
        return Err(Reason::Signer(manifest.signed_by.chars().take(40).collect()));
    }
    if !content.same(&manifest.content) {
        return Err(Reason::Changed);
    }
    if !manifest.signs(key, bytes) {
        return Err(Reason::Forged);
    }
    if !manifest.is_bound(key) {
        return Err(Reason::Unbound);
    }
    Ok(())
}

fn check_order(manifest: &Manifest, memory: &Memory) -> Result<(), Reason> {
    if let Some(why) = &memory.damaged {
        return Err(Reason::MemoryDamaged(why.clone()));
    }
    let last = memory.last_counter;
    let Some(binding) = &manifest.binding else {
        return if last > 0 { Err(Reason::Downgrade { last }) } else { Ok(()) };
    };
    if binding.workspace_id != memory.workspace_id {
        return Err(Reason::OtherWorkspace(binding.workspace_id));
    }
    let other = binding.counter == last && memory.last_content != Some(manifest.content);
    if binding.counter < last || other {
        return Err(Reason::Rollback { found: binding.counter, last });
    }
    Ok(())
}
