//! The daemon: the monitor as a process of its own, asked over a socket in the state directory.
//!
//! It uses threads and nothing else: one that accepts at each [`Door`](crate::wire::Door), one for
//! each connection up to a limit, and one for periodic work. Who asks is told by the kernel
//! (`SO_PEERCRED`), and what they may ask is decided here, before a [`Handler`] sees the question.
//!
//! A handler must not panic. Where panics unwind, one becomes a refusal, which is a denial for
//! whoever asked; release builds abort on a panic, so that there it ends the daemon: the caller's
//! connection closes, which is a denial as well, and the next caller starts another daemon.

mod doors;
mod keeper;
mod office;
mod peer;
mod run;
mod serve;
mod start;
mod stop;
mod view;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::wire::{Code, Refusal};

pub use doors::{Doors, DoorsError};
pub use keeper::Keeper;
pub use office::{About, ApprovalBody, Hello, Office, Status, WhichBody};
pub use peer::{Peer, PeerPolicy, Role};
pub use run::{Options, run};
pub use serve::{Limits, Service, Tally};
pub use start::{StartError, Starter, ensure_running};
pub use stop::Stop;
pub use view::{Reach, Root, Sight, View};

/// A question that its asker may ask.
#[derive(Debug)]
pub struct Request {
    /// The operation.
    pub op: String,
    /// What belongs to it: JSON that nobody has looked into yet.
    pub body: Box<RawValue>,
}

impl Request {
    /// What the body says.
    ///
    /// # Errors
    /// A refusal, when it says something else.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Refusal> {
        serde_json::from_str(self.body.get()).map_err(|error| {
            let why = wardkeep_evidence::check::printable(&error.to_string());
            Refusal::new(Code::Malformed, format!("the body of `{}`: {why}", self.op))
        })
    }
}

/// What is said to a question.
#[derive(Debug)]
pub enum Response {
    /// The answer, as JSON.
    Answer(Box<RawValue>),
    /// A refusal.
    Refusal(Refusal),
}

impl Response {
    /// An answer.
    #[must_use]
    pub fn of(body: &impl Serialize) -> Self {
        match serde_json::value::to_raw_value(body) {
            Ok(body) => Self::Answer(body),
            Err(error) => Self::refuse(Code::Failed, format!("the answer: {error}")),
        }
    }

    /// A refusal.
    #[must_use]
    pub fn refuse(code: Code, message: impl Into<String>) -> Self {
        Self::Refusal(Refusal::new(code, message))
    }

    /// That an operation is not known.
    #[must_use]
    pub fn unknown(request: &Request) -> Self {
        let message = format!(
            "the operation `{}` is not known here: see that both sides are of the same version",
            request.op
        );
        Self::refuse(Code::UnknownOp, message)
    }
}

impl<T: Serialize> From<Result<T, Refusal>> for Response {
    fn from(result: Result<T, Refusal>) -> Self {
        match result {
            Ok(body) => Self::of(&body),
            Err(refusal) => Self::Refusal(refusal),
        }
    }
}

/// Answers questions; several threads ask at a time.
pub trait Handler: Sync {
    /// Answers one question. `peer` may ask it: see [`Role::may`].
    fn handle(&self, peer: &Peer, request: Request) -> Response;

    /// Somebody has gone after so many answers: what those left to be done can be done now, before the next one
    /// would have to wait for it.
    fn gone(&self, answers: u64) {
        let _ = answers;
    }
}

/// Knows no operation.
#[derive(Debug, Clone, Copy)]
pub struct Nothing;

impl Handler for Nothing {
    fn handle(&self, _peer: &Peer, request: Request) -> Response {
        Response::unknown(&request)
    }
}
