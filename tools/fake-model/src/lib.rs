//! A model server for tests of real agents, on loopback.
//!
//! It speaks the wires that agents speak, plays a script (one tool call a turn, then a last text) and
//! logs every request, so that a test sees what a model would have been told. It is no model: it
//! reads nothing but the tools on offer and the number of results already in the conversation.

mod ends;
mod http;
mod log;
mod script;
mod server;
mod story;
pub mod strict;
mod tools;
mod wire;

pub use ends::ends;
pub use log::Log;
pub use script::{Script, Step};
pub use server::Server;
pub use story::{shortened, story};
