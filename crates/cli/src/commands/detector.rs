//! The detector as the owner's signed configuration has it.

use serde::Deserialize;
use wardkeep_detect::allow::Allowed;
use wardkeep_detect::finding::Finding;
use wardkeep_detect::rules::OwnRule;
use wardkeep_detect::scan::Detector;
use wardkeep_policy::config::Config;
use wardkeep_policy::signed_set::SetState;

use super::md::policy_store;
use crate::context::Context;
use crate::error::CliError;

/// The `[detect]` part of the config.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    rule: Vec<OwnRule>,
    allow: Vec<String>,
}

/// A detector, and what knows the fingerprints of findings where there is a key.
pub(crate) struct Judge {
    pub(crate) detector: Detector,
    pub(crate) allowed: Option<Allowed>,
}

impl Judge {
    /// What a finding is known by in the list of allowed ones.
    pub(crate) fn fingerprint(&self, text: &str, finding: &Finding) -> Option<String> {
        self.allowed.as_ref().map(|allowed| allowed.fingerprint(text, finding))
    }
}

/// With the owner's rules and allowed findings, where the config is signed. An unsigned one adds
/// nothing and is said to.
pub(crate) fn judge(context: &mut Context) -> Result<Judge, CliError> {
    let plain = Judge { detector: Detector::new(), allowed: None };
    // Scanning needs no state at all.
    let Ok(store) = policy_store(context) else { return Ok(plain) };
    let Ok(key) = store.key() else { return Ok(plain) };
    let set = store.settings().set;
    let settings = match (set.signed("config.toml"), set.files.get("config.toml")) {
        (Some(config), _) => read(config)?,
        (None, Some(config)) => {
            let there = read(config).unwrap_or_default();
            if set.state != SetState::Valid && !(there.rule.is_empty() && there.allow.is_empty()) {
                context.ui.note(
                    "[detect] in config.toml does not hold: sign it with `wardkeep config sign`",
                );
            }
            Settings::default()
        }
        (None, None) => Settings::default(),
    };
    let allowed =
        Allowed::new(key.derive("allowed findings"), settings.allow.iter().map(String::as_str))
            .map_err(|error| refused(&error.to_string()))?;
    let mut detector = Detector::new().with_allowed(allowed.clone());
    if !settings.rule.is_empty() {
        detector =
            detector.with_rules(&settings.rule).map_err(|error| refused(&error.to_string()))?;
    }
    Ok(Judge { detector, allowed: Some(allowed) })
}

/// Whether the `[detect]` part of a config can be used.
pub(crate) fn check(config: &[u8]) -> Result<(), CliError> {
    let settings = read(config)?;
    Allowed::new([0; 32], settings.allow.iter().map(String::as_str))
        .map_err(|error| refused(&error.to_string()))?;
    Detector::new().with_rules(&settings.rule).map_err(|error| refused(&error.to_string()))?;
    Ok(())
}

fn read(config: &[u8]) -> Result<Settings, CliError> {
    let config = Config::parse(config).map_err(|error| refused(&error.to_string()))?;
    match config.rest.get("detect") {
        Some(table) => {
            table.clone().try_into().map_err(|error: toml::de::Error| refused(error.message()))
        }
        None => Ok(Settings::default()),
    }
}

fn refused(message: &str) -> CliError {
    CliError::refused(
        format!("[detect] in config.toml: {message}"),
        "mend it with `wardkeep config edit`; `wardkeep scan --rules` lists the rules that ship",
    )
}
