//! The egress proxy: the only way out for whoever is confined.
//!
//! HTTP, `CONNECT` and SOCKS5 come in on one listener. Each request is held against [`Rules`], its
//! name looked up once, the addresses checked, and a [`Decider`] asked, who records it before
//! anything is dialled; then the checked address is dialled and what is sent is counted.
//!
//! Start with [`serve`], or [`start`] in a program that is not asynchronous.

mod admit;
mod again;
pub mod body;
mod budget;
mod config;
mod connection;
mod decider;
mod exchange;
pub mod head;
pub mod hello;
mod host;
mod http;
#[cfg(feature = "inspect")]
mod inspect;
mod lookers;
#[cfg(feature = "monitor")]
mod monitored;
mod owners;
mod passing;
mod resolve;
mod rooms;
mod rules;
mod screen;
mod serve;
pub mod socks;
mod stream;
#[cfg(feature = "monitor")]
mod together;
mod tunnel;
mod websocket;

pub use crate::threads::Running;
pub use budget::Limits;
pub use config::{Config, Credential};
pub use decider::{
    Ask, AskInThread, BoxFuture, Decider, Decision, Denial, Ended, Outcome, Reply, Request,
    Verdict, Way,
};
pub use host::{BadHost, Host, Target};
#[cfg(feature = "inspect")]
pub use inspect::{Inspection, InspectionError};
#[cfg(feature = "monitor")]
pub use monitored::Monitored;
pub use resolve::{Dial, Resolve, SystemDialer, SystemResolver};
pub use rules::{BadRule, Found, Rule, Rules, Unlisted};
pub use serve::{Listener, serve, start};
