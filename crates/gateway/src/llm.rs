//! The model API door: a reverse proxy in front of model APIs.
//!
//! A request is read where it stands ([`Asked`]): tool results become marked data, the owner's verified
//! policy stands last, all else keeps its bytes. A reply ([`Reply`]) passes with its tool calls judged
//! and its text held against secrets and the system prompt. Both are pure; the proxy around them asks a
//! [`Judge`], who decides and records.

mod ask;
mod config;
mod door;
mod exchange;
mod frames;
mod inflate;
mod json;
mod judge;
mod meter;
#[cfg(feature = "monitor")]
mod monitored;
mod otlp;
mod reply;
mod room;
mod serve;
mod session;
mod sse;
mod upstream;
mod wire;

pub use ask::{Asked, Role, Withheld};
pub use config::{BadUpstream, Config, Features, Limits, Upstream};
pub use json::BadJson;
pub use judge::{
    Admission, Bodies, BoxFuture, Denial, Ended, Exchange, Fresh, Judge, Outcome, Request, Seen,
    Source, Watch,
};
pub use meter::{Meter, Traffic};
#[cfg(feature = "monitor")]
pub use monitored::Monitored;
pub use otlp::Otlp;
pub use reply::{Reply, Report, Ruling, Step, ToolCall, Whole};
pub use serve::{serve, start};

pub use crate::threads::Running;
pub use sse::BadStream;
pub use wire::{Call, Wire};
