//! `config.toml`: its `[security]` part, typed; the rest is kept for those who know it.

use toml::Table;

use crate::sanitise::position;
use crate::signed_set::{SetState, SetVerification};
use crate::store::CONFIG_FILE;

/// A config that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "config.toml, line {line}, column {column}: {message}: mend it with `wardkeep config edit`"
)]
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
    pub fn parse(bytes: &[u8]) -> Result<Self, ConfigError> {
        #[derive(serde::Deserialize)]
        struct Known {
            #[serde(default)]
            security: Security,
        }
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let head = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
            let (line, column) = position(&head, head.len());
            ConfigError { line, column, message: "not UTF-8 text".to_owned() }
        })?;
        let place = |error: toml::de::Error| {
            let (line, column) = position(text, error.span().map_or(0, |span| span.start));
            ConfigError { line, column, message: error.message().trim().to_owned() }
        };
        let known: Known = toml::from_str(text).map_err(place)?;
        let mut rest: Table = toml::from_str(text).map_err(place)?;
        rest.remove("security");
        Ok(Self { security: known.security, rest })
    }
}

/// The switches as they are in force.
///
/// What loosens is taken from a signed config only. What tightens holds wherever it stands, and
/// once it was signed it holds until a signed config says otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Switches {
    /// No session unless the policy is valid.
    pub strict_policy: bool,
    /// Sessions run without the policy.
    pub disable_policy: bool,
    /// Model calls go out without the suffix.
    pub disable_suffix: bool,
    /// Switches that the config sets and that do not hold, because it is not signed.
    pub ignored: Vec<&'static str>,
    /// Why the config could not be read; the defaults hold then.
    pub error: Option<ConfigError>,
}

impl Switches {
    /// From the config of a signed set.
    #[must_use]
    pub fn resolve(set: &SetVerification) -> Self {
        let mut switches = Self { strict_policy: set.memory.strict_policy, ..Self::default() };
        let valid = set.state == SetState::Valid;
        // Who cannot be checked any more may have been strict.
        if set.memory.damaged.is_some() {
            switches.strict_policy = true;
        }
        let Some(bytes) = set.files.get(CONFIG_FILE) else {
            if valid {
                switches.strict_policy = false;
            }
            return switches;
        };
        let security = match Config::parse(bytes) {
            Ok(config) => config.security,
            Err(error) => {
                switches.error = Some(error);
                return switches;
            }
        };
        if valid {
            switches.strict_policy = security.strict_policy;
            switches.disable_policy = security.disable_policy;
            switches.disable_suffix = security.disable_suffix;
            return switches;
        }
        switches.strict_policy |= security.strict_policy;
        for (set, name) in [
            (security.disable_policy, "disable_policy"),
            (security.disable_suffix, "disable_suffix"),
        ] {
            if set {
                switches.ignored.push(name);
            }
        }
        switches
    }

    /// What is told to the owner at each start.
    #[must_use]
    pub fn warnings(&self, command: &str) -> Vec<String> {
        let mut lines = Vec::new();
        if self.disable_policy {
            lines.push("⚠ disable_policy is on: LocalGPT.md is not used.".to_owned());
        }
        if self.disable_suffix {
            lines.push("⚠ disable_suffix is on: the security reminder is not sent.".to_owned());
        }
        for name in &self.ignored {
            lines
                .push(format!("⚠ {name} in config.toml does not hold: run {command} config sign."));
        }
        if let Some(error) = &self.error {
            lines.push(format!("⚠ {error}"));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_line_and_column() {
        for (text, line, column) in [
            ("[security]\nstrict_policy = 1\n", 2, 17),
            ("[security]\nstrict = true\n", 2, 1),
            ("a = \n", 1, 5),
            ("[security]\n[security]\n", 2, 2),
            ("security = 3", 1, 12),
        ] {
            let error = Config::parse(text.as_bytes()).unwrap_err();
            assert_eq!((error.line, error.column), (line, column), "{text}: {error}");
        }
        let error = Config::parse(b"a = 1\n\xff").unwrap_err();
        assert_eq!((error.line, error.column), (2, 1));
    }

    #[test]
    fn other_sections_are_kept() {
        let config = Config::parse(
            b"[security]\nstrict_policy = true\n[egress]\nallowed_domains = [\"a\"]\n",
        )
        .unwrap();
        assert!(config.security.strict_policy && !config.security.disable_policy);
        assert_eq!(config.rest.len(), 1);
        assert!(config.rest["egress"]["allowed_domains"].is_array());
        assert_eq!(Config::parse(b"").unwrap(), Config::default());
    }
}
