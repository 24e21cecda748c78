//! The hooks of real agents: what an event means, and what is answered in exactly that agent's form.
//!
//! Pure: bytes in, bytes and an exit code out. An [`Event`] is read from what an agent says on
//! standard input, becomes a question for the monitor ([`Event::question`]), and the monitor's
//! answer becomes an [`Answer`] that the agent's adapter writes. Whatever cannot be read is
//! answered with that agent's denial: leave is only ever given to an event that was understood and
//! judged, which the type [`Leave`] stands for.

mod agent;
mod answer;
mod common;
mod event;
mod input;
pub mod install;
pub mod model;
mod output;
mod result;
mod tools;

mod claude_code;
mod cline;
mod codex;
mod copilot_cli;
mod cursor;
mod gemini_cli;
mod openclaw;
mod opencode;
mod plugin;
mod qwen_code;
mod windsurf;

pub use agent::{Agent, UnknownAgent};
pub use answer::{Answer, Leave};
pub use event::{Crossing, Event, Kind};
pub use input::{MAX_BYTES, Malformed};
pub use output::{ANSWERED, DENIED, Output};
