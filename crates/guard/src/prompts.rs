//! The system prompts of sessions, as far as it takes to notice when one leaks.
//!
//! ```
//! use wardkeep_detect::finding::Verdict;
//! use wardkeep_guard::prompts::{Prompts, Tier};
//!
//! let mut prompts = Prompts::new();
//! let known = prompts.register_system_prompt("pi:1", "Answer QUIET_HARBOUR_ACK when idle.");
//! assert_eq!(known.tokens, 1);
//! let (guard, tier) = prompts.guard(None, "pi:1");
//! assert_eq!(tier, Tier::Session);
//! assert_ne!(guard.check("I am told to say QUIET_HARBOUR_ACK now.").verdict, Verdict::Clean);
//! let (_, tier) = prompts.guard(None, "pi:2");
//! assert_eq!(tier, Tier::Static);
//! ```

use std::sync::Arc;

use wardkeep_detect::leak::{OutputGuard, PromptProfile};
use wardkeep_evidence::hash::sha256;

use crate::recent::Recent;

/// Sessions whose prompts are held ready.
const SESSIONS: usize = 256;
/// Letters of all prompts that are held ready, some ten bytes each.
const LETTERS: usize = 8 << 20;
/// Names that one session may give.
const TOKENS: usize = 4096;
/// Bytes of a name.
const TOKEN: usize = 256;

/// How much of a prompt is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// All of it.
    Whole,
    /// Names that stand in it.
    Tokens,
}

impl Mode {
    /// The name in records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Tokens => "tokens",
        }
    }

    /// From the name in records.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Whole, Self::Tokens].into_iter().find(|mode| mode.as_str() == name)
    }
}

/// Where the guard of an answer comes from, the nearest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tier {
    /// Whoever asks brought it.
    Own,
    /// The session's prompt was registered.
    Session,
    /// Nothing is known of the prompt.
    Static,
}

/// What is known of a registered prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// SHA-256 of the prompt; of names only, that of all names, each with a line break after it.
    pub sha256: [u8; 32],
    /// Names that are watched for.
    pub tokens: usize,
    /// How much is known.
    pub mode: Mode,
}

/// A registration, to be recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct Registration {
    /// What is known now.
    pub known: Known,
    /// What it replaces.
    pub replaced: Option<Known>,
    /// What the guard is made from; kept, it survives a restart. It holds names out of the prompt
    /// and hashes that can be guessed, so it belongs where the prompt itself might lie.
    pub profile: PromptProfile,
}

impl std::ops::Deref for Registration {
    type Target = Known;

    fn deref(&self) -> &Known {
        &self.known
    }
}

#[derive(Debug)]
struct Ready {
    known: Known,
    guard: Arc<OutputGuard>,
    letters: usize,
}

/// The prompts of sessions. Each session has its own; a newer one replaces the older.
///
/// Those not used for longest are let go: whoever kept a [`Registration::profile`] gives it back
/// with [`Prompts::restore`] where [`Prompts::known`] has nothing.
#[derive(Debug)]
pub struct Prompts {
    sessions: Recent<Ready>,
    letters: usize,
    fallback: Arc<OutputGuard>,
}

impl Default for Prompts {
    fn default() -> Self {
        Self::new()
    }
}

impl Prompts {
    /// Knows no prompt.
    #[must_use]
    pub fn new() -> Self {
        Self::with_limit(SESSIONS)
    }

    /// Knows no prompt, and never those of more than so many sessions at once.
    #[must_use]
    pub fn with_limit(sessions: usize) -> Self {
        Self { sessions: Recent::new(sessions), letters: 0, fallback: Arc::new(OutputGuard::new()) }
    }

    /// Registers the whole prompt of a session.
    pub fn register_system_prompt(&mut self, session: &str, prompt: &str) -> Registration {
        let profile = PromptProfile::of(prompt);
        let tokens = profile.tokens().len();
        let known = Known { sha256: sha256(prompt.as_bytes()), tokens, mode: Mode::Whole };
        let replaced = self.restore(session, known, &profile);
        Registration { known, replaced, profile }
    }

    /// Registers names that stand in the prompt of a session, where the prompt itself is not to be
    /// had. Names of less than four letters or digits, or of more than 256 bytes, are passed over,
    /// and so is what follows after 4,096 of them.
    pub fn register_tokens_only<S: AsRef<str>>(
        &mut self,
        session: &str,
        tokens: impl IntoIterator<Item = S>,
    ) -> Registration {
        let mut all = Vec::new();
        let mut kept = Vec::new();
        for token in tokens {
            let token = token.as_ref();
            all.extend_from_slice(token.as_bytes());
            all.push(b'\n');
            let letters = token.chars().filter(|c| c.is_alphanumeric()).take(4).count();
            if letters == 4 && token.len() <= TOKEN && kept.len() < TOKENS {
                kept.push(token.to_owned());
            }
        }
        let known = Known { sha256: sha256(&all), tokens: kept.len(), mode: Mode::Tokens };
        let profile = PromptProfile::of_tokens(kept);
        let replaced = self.restore(session, known, &profile);
        Registration { known, replaced, profile }
    }

    /// Takes in what was registered before, and gives what it replaces.
    pub fn restore(
        &mut self,
        session: &str,
        known: Known,
        profile: &PromptProfile,
    ) -> Option<Known> {
        let letters = profile.letters();
        let ready = Ready { known, guard: Arc::new(OutputGuard::for_prompt(profile)), letters };
        let before = self.sessions.len();
        let old = self.sessions.set(session, ready);
        self.letters += letters;
        if let Some(old) = &old {
            self.letters -= old.letters;
        } else if self.sessions.len() == before {
            // One had to go for it.
            self.letters = self.sessions.values().map(|ready| ready.letters).sum();
        }
        while self.letters > LETTERS && self.sessions.len() > 1 {
            self.letters -= self.sessions.drop_oldest().map_or(0, |ready| ready.letters);
        }
        old.map(|old| old.known)
    }

    /// What is known of a session's prompt.
    #[must_use]
    pub fn known(&self, session: &str) -> Option<Known> {
        self.sessions.peek(session).map(|ready| ready.known)
    }

    /// The guard for an answer: the caller's own, else the session's, else one that knows no prompt.
    pub fn guard(
        &mut self,
        own: Option<&Arc<OutputGuard>>,
        session: &str,
    ) -> (Arc<OutputGuard>, Tier) {
        if let Some(own) = own {
            return (Arc::clone(own), Tier::Own);
        }
        match self.sessions.get(session) {
            Some(ready) => (Arc::clone(&ready.guard), Tier::Session),
            None => (Arc::clone(&self.fallback), Tier::Static),
        }
    }

    /// Forgets a session's prompt.
    pub fn clear(&mut self, session: &str) -> Option<Known> {
        let old = self.sessions.remove(session)?;
        self.letters -= old.letters;
        Some(old.known)
    }

    /// Sessions whose prompts are held ready.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
