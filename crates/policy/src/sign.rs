//! Signing: the bytes that the owner was shown, and only by the owner.

use std::io;

use wardkeep_evidence::bundle::{BundleError, StagedFile};
use wardkeep_evidence::hash::encode_hex;
use wardkeep_evidence::time::Timestamp;

use crate::audit::{Action, Event, Source};
use crate::files::Unread;
use crate::hash::ContentHash;
use crate::key::DeviceKey;
use crate::manifest::{MAX_MANIFEST_BYTES, Manifest, Signer};
use crate::memory::Memory;
use crate::sanitise::{FILTERED, MAX_POLICY_CHARS, Sanitised, Suspicion, position, sanitise};
use crate::workspace::{MANIFEST_FILE, Workspace};

/// Why a policy is not signed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SignError {
    /// There is none.
    #[error("there is no LocalGPT.md in `{0}`: run `wardkeep init`, or write one")]
    Missing(String),
    /// It is not a plain file that can be read.
    #[error("LocalGPT.md {0}")]
    Unread(Unread),
    /// It is not text.
    #[error("LocalGPT.md is not UTF-8 text (byte {at}): save it as UTF-8")]
    NotUtf8 {
        /// The first byte that is not.
        at: usize,
    },
    /// Nobody is there to have read it.
    #[error(
        "signing needs a person: run it in a terminal, or give --yes if you have read the policy"
    )]
    NoPerson,
    /// The process is confined, so that an agent may have started it.
    #[error("signing is refused inside `wardkeep run`: sign in a terminal of your own")]
    Confined,
    /// It is too long or suspicious.
    #[error("{}", problems(.0))]
    Problems(Vec<Problem>),
    /// It was changed after it was shown.
    #[error("LocalGPT.md was changed since it was shown: look at it again, then sign")]
    ChangedSince,
    /// The manifest could not be written.
    #[error("cannot write the manifest ({0}): fix the workspace's owner or mode")]
    Write(String),
    /// The counter is used up, which only a forged memory can do.
    #[error(
        "the counter of this workspace is used up: remove its memory below `policy` in the state directory, then sign again"
    )]
    Counter,
}

/// Something that keeps a policy from being signed.
#[derive(Debug, Clone, PartialEq)]
pub enum Problem {
    /// More than 4096 characters.
    TooLong {
        /// Its characters, after sanitising.
        characters: usize,
        /// By how many it is too long.
        by: usize,
    },
    /// A pattern that no policy should have.
    Suspicious(Suspicion),
}

impl std::fmt::Display for Problem {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooLong { characters, by } => write!(
                formatter,
                "LocalGPT.md has {characters} characters, {by} more than the {MAX_POLICY_CHARS} that are used: shorten it"
            ),
            Self::Suspicious(one) => write!(
                formatter,
                "LocalGPT.md, line {}, column {}: {} ({}) Rephrase or remove it.",
                one.line, one.column, one.reason, one.rule
            ),
        }
    }
}

fn problems(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// Whether a person is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// A terminal. It is no proof: an agent can open one.
    Terminal,
    /// The owner said yes beforehand.
    Yes,
    /// Neither.
    None,
}

/// Who wants to sign, and when.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// Whether a person is there.
    pub presence: Presence,
    /// Whether the process is confined by `wardkeep run`.
    pub confined: bool,
    /// Through what.
    pub signer: Signer,
    /// The time.
    pub now: Timestamp,
}

/// A policy as it was read, to be shown and then signed.
#[derive(Debug, Clone)]
pub struct Draft {
    text: String,
    content: ContentHash,
    sanitised: Sanitised,
    problems: Vec<Problem>,
}

impl Draft {
    /// Reads the policy of a workspace, once.
    ///
    /// # Errors
    /// When there is none, it is not a plain file, or not text.
    pub fn read(workspace: &Workspace) -> Result<Self, SignError> {
        let bytes = workspace.read_policy().map_err(|unread| match unread {
            Unread::Missing => SignError::Missing(workspace.path().display().to_string()),
            other => SignError::Unread(other),
        })?;
        let text = String::from_utf8(bytes)
            .map_err(|error| SignError::NotUtf8 { at: error.utf8_error().valid_up_to() })?;
        Ok(Self::new(text))
    }

    /// Of a text.
    #[must_use]
    pub fn new(text: String) -> Self {
        let sanitised = sanitise(&text);
        let mut problems = Vec::new();
        if sanitised.characters > MAX_POLICY_CHARS {
            let characters = sanitised.characters;
            problems.push(Problem::TooLong { characters, by: characters - MAX_POLICY_CHARS });
        }
        problems.extend(sanitised.suspicions.iter().cloned().map(Problem::Suspicious));
        Self { content: ContentHash::of(text.as_bytes()), text, sanitised, problems }
    }

    /// The text to be shown.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Hash of its bytes.
    #[must_use]
    pub fn content(&self) -> ContentHash {
        self.content
    }

    /// What the model would get, and what was noticed on the way.
    #[must_use]
    pub fn sanitised(&self) -> &Sanitised {
        &self.sanitised
    }

    /// What the owner should know before signing, with line and column; it keeps from nothing.
    #[must_use]
    pub fn notices(&self) -> Vec<String> {
        let offset = self.text.len() - self.text.trim_start_matches('\u{feff}').len();
        let filtered = self.sanitised.filtered.iter().map(|one| {
            let (line, column) = position(&self.text, one.span.start + offset);
            format!(
                "line {line}, column {column}: a {} is replaced by {FILTERED} before the model sees it",
                one.marker
            )
        });
        let credentials = self.sanitised.credentials.iter().map(|one| {
            format!(
                "line {}, column {}: a credential ({}) would go out with every model call: remove it",
                one.line, one.column, one.rule
            )
        });
        filtered.chain(credentials).collect()
    }

    /// What keeps it from being signed; empty if it may be.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

/// A policy that was signed.
#[derive(Debug, Clone)]
pub struct Signed {
    /// What was written.
    pub manifest: Manifest,
    /// What is to be remembered from now on.
    pub memory: Memory,
}

impl Signed {
    /// The entry that it leaves in the audit log.
    #[must_use]
    pub fn event(&self) -> Event {
        let source = if self.manifest.signed_by == "gui" { Source::Gui } else { Source::Cli };
        Event::new(Action::Signed, source).content(Some(self.manifest.content))
    }

    /// What is told to the owner, as the RFC words it.
    #[must_use]
    pub fn message(&self) -> String {
        format!(
            "✓ Signed LocalGPT.md (sha256: {}... | hmac: {}...)",
            self.manifest.content.short(),
            encode_hex(&self.manifest.hmac[..3]),
        )
    }
}

/// Signs the bytes of a draft, if the file still has them.
///
/// # Errors
/// When no person is there, the process is confined, the policy is too long or suspicious, it
/// was changed since it was read, or the manifest cannot be written.
pub fn sign(
    workspace: &Workspace,
    key: &DeviceKey,
    memory: &Memory,
    draft: &Draft,
    request: &Request,
) -> Result<Signed, SignError> {
    permitted(request)?;
    if !draft.problems.is_empty() {
        return Err(SignError::Problems(draft.problems.clone()));
    }
    match workspace.read_policy() {
        Ok(bytes) if bytes == draft.text.as_bytes() => {}
        Ok(_) | Err(Unread::Missing) => return Err(SignError::ChangedSince),
        Err(unread) => return Err(SignError::Unread(unread)),
    }
    let counter = next_counter(workspace, key, memory).ok_or(SignError::Counter)?;
    let manifest = Manifest::sign(
        key,
        draft.text.as_bytes(),
        request.signer,
        request.now,
        memory.workspace_id,
        counter,
    );
    StagedFile::replace(&workspace.manifest_path(), 0o644, &manifest.to_bytes()).map_err(
        |error| match error {
            BundleError::Io { error, .. } if error.kind() == io::ErrorKind::IsADirectory => {
                SignError::Write(format!("`{MANIFEST_FILE}` is a folder, remove it"))
            }
            other => SignError::Write(other.to_string()),
        },
    )?;
    let memory = Memory {
        workspace_id: memory.workspace_id,
        last_counter: counter,
        ever_signed: true,
        last_content: Some(draft.content),
        damaged: None,
    };
    Ok(Signed { manifest, memory })
}

/// Whether a person may be behind a request.
///
/// # Errors
/// When the process is confined, or nobody said yes.
pub fn permitted(request: &Request) -> Result<(), SignError> {
    if request.confined {
        return Err(SignError::Confined);
    }
    match request.presence {
        Presence::Terminal | Presence::Yes => Ok(()),
        Presence::None => Err(SignError::NoPerson),
    }
}

/// Above both what is remembered and what the present manifest says, if that is ours: a crash may
/// have come between writing the one and the other.
fn next_counter(workspace: &Workspace, key: &DeviceKey, memory: &Memory) -> Option<u64> {
    let present = workspace.read(MANIFEST_FILE, MAX_MANIFEST_BYTES).ok();
    let present = present.and_then(|bytes| Manifest::parse(&bytes).ok());
    let present = present.filter(|manifest| manifest.is_bound(key));
    let binding = present.and_then(|manifest| manifest.binding);
    let there = binding.filter(|binding| binding.workspace_id == memory.workspace_id);
    there.map_or(0, |binding| binding.counter).max(memory.last_counter).checked_add(1)
}
