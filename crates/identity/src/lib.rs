//! The files that define an agent: which are protected, what was approved, what is proposed.
//!
//! A [`workspace::Workspace`] is a folder and what the owner approved of it, kept in a folder of the
//! state directory that the agent cannot write. Everything below the workspace is hostile input: it is
//! opened by descriptor, without following links, and read once. Nothing here asks the time, the
//! environment or the home directory, prints, or writes evidence: each operation returns what happened.

pub mod apply;
pub mod baseline;
mod bench;
pub mod changes;
pub mod commit;
pub mod concern;
pub mod config;
pub mod error;
mod folders;
pub mod history;
pub mod level;
pub mod lock;
pub mod name;
mod parallel;
pub mod quarantine;
pub mod restore;
pub mod setup;
pub mod show;
mod slot;
pub mod stage;
pub mod staging;
pub mod state;
pub mod steps;
mod store;
pub mod sync;
pub mod system;
pub mod tiering;
pub mod tree;
pub mod version;
pub mod workspace;
