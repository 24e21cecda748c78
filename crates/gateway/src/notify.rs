//! Notices to the owner: on the desktop, to a webhook, in a chat; and answers that come back.
//!
//! A sender knows nothing of the monitor. What a notice tells may have been written by an agent: every
//! text is made harmless and cut before it leaves.

mod answers;
mod desktop;
mod http;
mod queue;
mod telegram;
mod text;
mod webhook;

use std::time::Duration;

pub use answers::{Listener, Read, Said, read};
pub use desktop::Desktop;
pub use http::{Address, BadAddress};
pub use queue::{Outcome, Queue};
pub use telegram::{BadToken, Telegram, Token};
pub use text::{MAX_FACT, harmless};
pub use webhook::Webhook;

/// Digits of the code that an answer names a request by.
pub const CODE_DIGITS: usize = 12;

/// What a notice is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Something waits for the owner's answer.
    Approval,
    /// Something happened that the owner should hear of.
    Alert,
}

impl Kind {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Approval => "approval",
            Self::Alert => "alert",
        }
    }
}

/// One notice. The facts may hold anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// What it is about.
    pub kind: Kind,
    /// What happened, in a few words of our own.
    pub title: String,
    /// What is known: a name of our own, and a text.
    pub facts: Vec<(&'static str, String)>,
    /// What an answer names it by, where it can be answered from afar.
    pub code: Option<String>,
    /// How grave it is.
    pub severity: String,
    /// What to do next, in words of our own.
    pub next: String,
}

/// Why a notice was not delivered. Neither a token nor a path of an address is in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Failed {
    /// What went wrong.
    pub why: String,
    /// Whether it may work later.
    pub retry: Retry,
}

/// Whether something may work later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// It will not.
    Never,
    /// After a while.
    Soon,
    /// Not before so long.
    After(Duration),
}

impl Failed {
    pub(crate) fn new(why: impl AsRef<str>, retry: Retry) -> Self {
        Self { why: text::line(why.as_ref(), 200), retry }
    }
}

/// A way to the owner. Each call ends in bounded time.
pub trait Way: Send {
    /// What it is called.
    fn name(&self) -> &'static str;

    /// Delivers a notice.
    ///
    /// # Errors
    /// When it was not delivered, as far as can be told.
    fn send(&mut self, notice: &Notice) -> Result<(), Failed>;
}

impl Way for Box<dyn Way> {
    fn name(&self) -> &'static str {
        (**self).name()
    }

    fn send(&mut self, notice: &Notice) -> Result<(), Failed> {
        (**self).send(notice)
    }
}
