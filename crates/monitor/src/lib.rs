//! The reference monitor's store: a journal that loses nothing, seals that show when it was
//! changed, an index that is never trusted, and anchors outside the machine's reach.
//!
//! Start with [`store::Store::open`]. There is no process-wide state: a store is a value opened
//! on a state directory, with its clock passed in.

pub mod anchor;
pub mod approvals;
pub mod bodies;
pub mod daemon;
pub mod export;
mod files;
pub mod grade;
pub mod identity;
pub mod index;
pub mod journal;
pub mod markup;
pub mod monitor;
pub mod notices;
pub mod policy;
pub mod proof;
pub mod prove;
pub mod provenance;
pub mod resolve;
pub mod rollback;
pub mod rules;
pub mod sealer;
pub mod search;
pub mod skills;
pub mod snapshot;
pub mod store;
pub mod tree;
pub mod undo;
pub mod verify;
pub mod watch;
pub mod wire;
