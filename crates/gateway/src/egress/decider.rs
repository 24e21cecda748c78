//! Who decides, who is asked, and what is told to them.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use super::host::Target;

/// A future of a trait object.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Why something is not allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// The rule, as a stable word.
    pub rule: Cow<'static, str>,
    /// Why, in a sentence that says what to do next where something can be done.
    pub reason: String,
}

impl Denial {
    /// A denial of this proxy.
    #[must_use]
    pub fn new(rule: &'static str, reason: impl Into<String>) -> Self {
        Self { rule: Cow::Borrowed(rule), reason: reason.into() }
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.rule, self.reason)
    }
}

/// How a request came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// As a request that the proxy can read.
    Http,
    /// As a request inside of TLS that the proxy looks into.
    Inspected,
    /// As a tunnel by `CONNECT`.
    Connect,
    /// As a tunnel by SOCKS5.
    Socks,
}

impl Way {
    /// In a word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Inspected => "inspected",
            Self::Connect => "connect",
            Self::Socks => "socks5",
        }
    }
}

/// A request that wants to leave.
#[derive(Debug, Clone)]
pub struct Request {
    /// How it came in.
    pub way: Way,
    /// The method; `CONNECT` for a tunnel.
    pub method: String,
    /// Where it goes, as a URL; empty where that cannot be told.
    pub url: String,
    /// Host and port.
    pub target: Option<Target>,
    /// The addresses that it will be sent to, checked.
    pub addresses: Vec<IpAddr>,
    /// Bytes of the body, where they are known; of a tunnel or WebSocket they are not.
    pub size: Option<u64>,
    /// The beginning of the body, where there is one and it can be read.
    pub content: Option<Vec<u8>>,
    /// Why this proxy refuses it, if it does: then it is told only to be recorded.
    pub refused: Option<Denial>,
}

/// What is decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It may leave; with how many bytes at most, if that is said.
    Allow {
        /// Bytes that its body or its tunnel may carry.
        upload: Option<u64>,
    },
    /// It may not.
    Deny(Denial),
}

/// A decision, with the record of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What is decided.
    pub verdict: Verdict,
    /// The record, where there is one.
    pub record: Option<String>,
}

/// How a request ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// Both sides were done.
    Done,
    /// It was cut off by this proxy.
    Cut(Denial),
    /// The connection could not be made, or broke.
    Failed(String),
}

/// What became of a request that was allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Bytes sent out, heads included.
    pub sent: u64,
    /// Bytes that came back.
    pub received: u64,
    /// The status of the answer, where it can be read.
    pub status: Option<u16>,
    /// The address that it was sent to.
    pub address: Option<IpAddr>,
    /// How it ended.
    pub ended: Ended,
    /// How long it took.
    pub took: Duration,
}

/// Decides about requests, and records them. Whatever goes wrong inside is a denial.
pub trait Decider: Send + Sync + 'static {
    /// Decides, and records that durably before it answers. Where [`Request::refused`] is set, the
    /// answer is not used.
    fn decide<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Decision>;

    /// Records what became of a request that was allowed.
    fn outcome<'a>(
        &'a self,
        request: &'a Request,
        record: Option<&'a str>,
        outcome: &'a Outcome,
    ) -> BoxFuture<'a, ()>;

    /// Whether a name that no rule of the proxy allows may be looked up: a lookup leaves the machine,
    /// too. Asked only under [`super::Unlisted::Decider`]; records nothing.
    fn screen<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Option<Denial>> {
        let _ = request;
        Box::pin(async { None })
    }
}

/// What the owner answers about a host that no rule names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// This request only.
    Once,
    /// This host and port, as long as the proxy runs.
    Session,
    /// From now on; whoever asks keeps it.
    Always,
    /// No.
    No,
    /// The owner was not asked, or has not answered: it is denied, and the next request asks again.
    Unanswered,
}

/// Asks the owner.
pub trait Ask: Send + Sync + 'static {
    /// Asks about a request; one at a time for each host and port.
    fn ask<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Reply>;
}

/// Asks in a thread of its own, for whoever waits for a person.
pub struct AskInThread<F>(Arc<F>);

impl<F> fmt::Debug for AskInThread<F> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_tuple("AskInThread").finish()
    }
}

impl<F> AskInThread<F>
where
    F: Fn(&Request, &dyn Fn() -> bool) -> Reply + Send + Sync + 'static,
{
    /// `ask` may wait, and gives up by itself at some time; it is told by its second argument when nobody waits for the
    /// answer any more.
    #[must_use]
    pub fn new(ask: F) -> Self {
        Self(Arc::new(ask))
    }
}

impl<F> Ask for AskInThread<F>
where
    F: Fn(&Request, &dyn Fn() -> bool) -> Reply + Send + Sync + 'static,
{
    fn ask<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Reply> {
        let (ask, request, waits) = (Arc::clone(&self.0), request.clone(), Arc::new(()));
        let waiting = Arc::downgrade(&waits);
        Box::pin(async move {
            // As long as this future lives, somebody waits.
            let _waits = waits;
            let gone = move || waiting.strong_count() == 0;
            // A thread that broke has not said yes.
            tokio::task::spawn_blocking(move || ask(&request, &gone))
                .await
                .unwrap_or(Reply::Unanswered)
        })
    }
}
