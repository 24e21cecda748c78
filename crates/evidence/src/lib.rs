//! Evidence that can be proven: canonical JSON, records under the hash of their content, an audit
//! chain, an RFC 6962 tree over it, signed and witnessed seals, bundles, and `verify`.
//!
//! The crate knows no clock, no environment and no network; time, randomness and keys are passed
//! in. Start with [`bundle`] to write a bundle, [`source::open`] and [`verify::verify`] to check
//! one, [`record::NewRecord`] to make a record.

pub mod bundle;
pub mod canonical;
pub mod check;
pub mod checkpoint;
pub mod entry;
pub mod hash;
pub mod json;
pub mod manifest;
pub mod merkle;
pub mod note;
pub mod proof;
pub mod record;
pub mod schema;
pub mod seal;
pub mod source;
pub mod time;
pub mod verify;
