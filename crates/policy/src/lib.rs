//! The owner's signed policy: device key, manifest, verification, signing, sanitising, audit log.
//!
//! The crate reads and writes the files it is given paths for and knows nothing else of its
//! surroundings: time, randomness, owner and paths are passed in. Functions return what happened;
//! the audit log is written by whoever calls, with [`audit::append`].
//!
//! Start with [`store::PolicyStore`] to verify and sign, with [`assemble::ContextAssembler`] to build
//! a model call that ends with the policy.

pub mod assemble;
pub mod audit;
pub mod block;
pub mod budget;
pub mod config;
pub mod files;
pub mod hash;
pub mod key;
pub mod manifest;
pub mod memory;
pub mod protect;
pub mod sanitise;
mod sealed;
pub mod sign;
pub mod signed_set;
pub mod store;
pub mod template;
pub mod verify;
pub mod workspace;
pub mod wrap;
