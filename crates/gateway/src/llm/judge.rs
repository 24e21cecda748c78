//! Who decides about what goes through, and what is told to them.

use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;

use super::ask::Withheld;
use super::reply::{Report, Ruling, ToolCall};
use super::wire::Wire;

/// A future of a trait object.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Where something that a session has not seen before comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The user.
    User,
    /// A tool.
    Tool {
        /// The provider's id of the call.
        id: String,
        /// Its name, where it is known.
        name: Option<String>,
    },
}

/// Something that a session has not seen before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fresh {
    /// Where it comes from.
    pub source: Source,
    /// What it says.
    pub text: String,
    /// Whether it stands in the last message: then the model is to answer it.
    pub last: bool,
}

/// A request for a turn of the model.
#[derive(Debug, Clone)]
pub struct Request {
    /// The session that it belongs to.
    pub session: String,
    /// Whether the session begins with it.
    pub new: bool,
    /// The session that it goes on from under another history.
    pub parent: Option<String>,
    /// Whose API.
    pub wire: Wire,
    /// Where it goes.
    pub upstream: String,
    /// The model that it asks for.
    pub model: Option<String>,
    /// The system prompt, where the session has another one or none so far.
    pub system: Option<String>,
    /// What is new in it.
    pub fresh: Vec<Fresh>,
    /// How many messages it holds.
    pub messages: usize,
    /// Bytes of the body as it came.
    pub size: usize,
    /// SHA-256 of the body as it came.
    pub sha256: [u8; 32],
}

/// Why something is not allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// The rule, as a stable word.
    pub rule: String,
    /// Why, in a sentence that says what to do next where something can be done.
    pub reason: String,
}

impl fmt::Display for Denial {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({})", self.reason, self.rule)
    }
}

/// What becomes of a request.
#[derive(Debug, Clone, Default)]
pub struct Admission {
    /// Why it may not go out, if it may not.
    pub denied: Option<Denial>,
    /// What stands last in it.
    pub block: Option<String>,
    /// What stands in the place of fresh pieces, by their number.
    pub instead: Vec<(usize, String)>,
    /// The record of it.
    pub record: Option<String>,
}

/// An exchange that was admitted.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// Its number in this proxy.
    pub number: u64,
    /// The session.
    pub session: String,
    /// Whose API.
    pub wire: Wire,
    /// The model that was asked for.
    pub model: Option<String>,
    /// The record of the request.
    pub record: Option<String>,
    /// Where the client works, as it told the model. The agent's word: nothing is allowed because of it.
    pub directory: Option<PathBuf>,
}

/// How an exchange ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The reply was passed on to its end.
    Done,
    /// The reply was cut off by the proxy.
    Cut(String),
    /// The connection to the model failed, or broke.
    Failed(String),
    /// The agent went away.
    Gone,
}

/// What became of an exchange.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The status of the reply.
    pub status: Option<u16>,
    /// Bytes of the body as it went out.
    pub sent: usize,
    /// SHA-256 of it.
    pub sent_sha256: [u8; 32],
    /// Bytes of the reply as it came.
    pub received: u64,
    /// SHA-256 of the reply as the agent got it.
    pub shown_sha256: [u8; 32],
    /// Texts of tool results that were marked.
    pub marked: usize,
    /// What the reply was.
    pub report: Report,
    /// How it ended.
    pub ended: Ended,
    /// How long it took, from the request to the last of the reply.
    pub took: Duration,
    /// The bodies, where they are to be kept.
    pub bodies: Bodies,
}

/// Bodies of an exchange that are to be kept: as it went out, and as the agent got it. One that is too
/// long is not there.
#[derive(Debug, Clone, Default)]
pub struct Bodies {
    /// The request.
    pub request: Option<Bytes>,
    /// The reply.
    pub reply: Option<Bytes>,
}

/// Decides about what goes through, and records it. Whatever goes wrong inside is a denial.
pub trait Judge: Send + Sync + 'static {
    /// Decides about a request, and records that before it answers.
    fn admit<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Admission>;

    /// Decides about a tool call, and records that before it answers.
    fn call<'a>(&'a self, exchange: &'a Exchange, call: &'a ToolCall) -> BoxFuture<'a, Ruling>;

    /// Records what became of an exchange that was admitted.
    fn done<'a>(&'a self, exchange: &'a Exchange, outcome: &'a Outcome) -> BoxFuture<'a, ()>;
}

/// Is told what is changed, as it happens.
pub trait Watch: Send + Sync + 'static {
    /// Something went through.
    fn seen(&self, seen: &Seen<'_>);
}

/// Something that went through.
#[derive(Debug)]
#[non_exhaustive]
pub enum Seen<'a> {
    /// A request goes out.
    Request {
        /// The request.
        request: &'a Request,
        /// Bytes that go out.
        sent: usize,
        /// Texts of tool results that were marked.
        marked: usize,
        /// Pieces that were replaced.
        withheld: &'a [Withheld],
        /// What stands last.
        block: Option<&'a str>,
        /// Where it was put, from the first byte of what goes out; nothing where a proxy before this
        /// one has put it there.
        at: Option<usize>,
    },
    /// A request was denied.
    Denied {
        /// The request.
        request: &'a Request,
        /// Why.
        denial: &'a Denial,
    },
    /// A tool call was judged.
    Call {
        /// The exchange.
        exchange: &'a Exchange,
        /// The call.
        call: &'a ToolCall,
        /// What was said of it.
        ruling: &'a Ruling,
    },
    /// A request was refused before anything was judged, or could not be passed on.
    Refused {
        /// The status of the answer.
        status: u16,
        /// Why.
        why: &'a str,
    },
    /// A reply has ended.
    Reply {
        /// The exchange.
        exchange: &'a Exchange,
        /// What became of it.
        outcome: &'a Outcome,
    },
}
