//! `config.toml`: its `[security]` part, typed; the rest is kept for those who know it.

use toml::Table;

/// A config that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("config.toml, line {line}, column {column}: {message}")]
pub struct ConfigError {
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
}

/// The `[security]` part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Security {
    /// No session unless the policy is valid.
    pub strict_policy: bool,
    /// Sessions run without the policy.
    pub disable_policy: bool,
    /// Model calls go out without the suffix.
    pub disable_suffix: bool,
}

/// A config.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Config {
    /// The `[security]` part.
    pub security: Security,
    /// Every other part, as it stands.
    pub rest: Table,
}

impl Config {
    /// Reads a config.
    ///
    /// # Errors
    /// When it is not TOML, or `[security]` has an unknown key or a value of the wrong type.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        #[derive(serde::Deserialize)]
        struct Known {
            #[serde(default)]
            security: Security,
        }
        let place = |error: toml::de::Error| {
            let at = error.span().map_or(0, |span| span.start);
            let (line, column) = crate::sanitise::position(text, at);
            ConfigError { line, column, message: error.message().to_owned() }
        };
        let known: Known = toml::from_str(text).map_err(place)?;
        let mut rest: Table = toml::from_str(text).map_err(place)?;
        rest.remove("security");
        Ok(Self { security: known.security, rest })
    }
}

/// The switches as they are in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Switches {
    /// No session unless the policy is valid.
    pub strict_policy: bool,
    /// Sessions run without the policy.
    pub disable_policy: bool,
    /// Model calls go out without the suffix.
    pub disable_suffix: bool,
}
