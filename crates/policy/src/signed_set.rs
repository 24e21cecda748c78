//! `signed.json`.

/// The signature over config, rules, profiles and pins, in the state directory.
pub const SIGNED_FILE: &str = "signed.json";
