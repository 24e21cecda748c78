//! Pure decisions: who may do what, given where it came from.
//!
//! An [`action::Action`] is what an agent is about to do; [`facts::Facts`] are what rules see of it;
//! a [`verdict::Decision`] is what comes out. Nothing here opens a file, asks the time or remembers
//! anything: whoever calls has resolved paths and looked up taint, and passes that in.

pub mod action;
pub mod alert;
pub mod assess;
pub mod conversation;
pub mod decide;
pub mod facts;
pub mod files;
pub mod memory;
pub mod network;
pub mod overlap;
#[cfg(test)]
mod processor;
pub mod prompts;
pub mod proxy;
mod recent;
pub mod rules;
pub mod steering;
pub mod surface;
pub mod taint;
pub mod verdict;

/// Skills judged before they enter an agent; a crate of its own, so that it can be built and fuzzed alone.
pub use wardkeep_skill as skill;
