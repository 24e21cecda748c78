//! What the owner's configuration says to the verifier: `[skill]` and the list of `[egress]`.

use serde::Deserialize;
use wardkeep_evidence::hash::decode_hex;
use wardkeep_evidence::time::Timestamp;
use wardkeep_guard::network::EgressConfig;
use wardkeep_guard::skill::names::Names;
use wardkeep_guard::skill::{Options, Suppression, rule};
use wardkeep_policy::config::Config;
use wardkeep_policy::signed_set::SetState;
use wardkeep_policy::store::{CONFIG_FILE, PolicyStore};

/// Most suppressions.
const MOST: usize = 1000;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Parts {
    skill: Skill,
    egress: Option<EgressConfig>,
}

/// The `[skill]` part of the config.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Skill {
    /// Well-known names, in place of those that ship.
    names: Vec<String>,
    suppress: Vec<Written>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    rule: String,
    path: String,
    sha256: String,
    reason: String,
    expires: String,
}

/// The options, and what the owner should hear about them.
#[derive(Debug, Default)]
pub struct FromConfig {
    /// For the verifier.
    pub options: Options,
    /// What does not hold, and why.
    pub notes: Vec<String>,
}

/// Reads what the owner says. Suppressions and names count only where the config is signed; a list of
/// hosts only ever adds findings, and holds as it stands.
#[must_use]
pub fn options(policy: &PolicyStore, now: Timestamp) -> FromConfig {
    let set = policy.settings().set;
    let mut out = FromConfig::default();
    let Some(bytes) = set.files.get(CONFIG_FILE) else { return out };
    let parts = match read(bytes) {
        Ok(parts) => parts,
        Err(why) => {
            out.notes.push(why);
            return out;
        }
    };
    if let Some(egress) = parts.egress {
        out.options.allowed_hosts = egress.allowed_domains;
    }
    if set.state != SetState::Valid {
        if !parts.skill.suppress.is_empty() || !parts.skill.names.is_empty() {
            let note = "[skill] in config.toml does not hold: sign it with `wardkeep config sign`";
            out.notes.push(note.to_owned());
        }
        return out;
    }
    if !parts.skill.names.is_empty() {
        out.options.names = Names::read(&parts.skill.names.join("\n"));
    }
    for one in parts.skill.suppress {
        match one.suppression() {
            Err(why) => out.notes.push(why),
            Ok((_, expires)) if expires <= now => out.notes.push(format!(
                "the suppression of {} in `{}` ended at {expires}: look again, and renew or remove it",
                one.rule, one.path
            )),
            Ok((suppression, _)) => out.options.suppressions.push(suppression),
        }
    }
    out
}

/// Whether the `[skill]` part of a config can be used.
///
/// # Errors
/// When it cannot, in words.
pub fn check(config: &[u8]) -> Result<(), String> {
    read(config)?.skill.suppress.iter().try_for_each(|one| one.suppression().map(drop))
}

fn read(bytes: &[u8]) -> Result<Parts, String> {
    let config = Config::parse(bytes).map_err(|error| error.to_string())?;
    let parts: Parts = toml::Value::Table(config.rest)
        .try_into()
        .map_err(|error: toml::de::Error| format!("config.toml: {}", error.message()))?;
    if parts.skill.suppress.len() > MOST {
        return Err(format!("[[skill.suppress]] in config.toml: there are more than {MOST}"));
    }
    Ok(parts)
}

impl Written {
    fn suppression(&self) -> Result<(Suppression, Timestamp), String> {
        let wrong = |what: &str| format!("[[skill.suppress]] in config.toml: {what}");
        if rule(&self.rule).is_none() {
            return Err(wrong(&format!("`{}` is no rule", self.rule)));
        }
        if self.reason.trim().len() < 4 {
            return Err(wrong(&format!("the one for {} needs a reason", self.rule)));
        }
        let sha256 = decode_hex(self.sha256.as_bytes())
            .ok_or_else(|| wrong(&format!("`{}` is no SHA-256", self.sha256)))?;
        let day = format!("{}T00:00:00Z", self.expires);
        let expires = self
            .expires
            .parse::<Timestamp>()
            .or_else(|_| day.parse())
            .map_err(|_| wrong(&format!("`{}` is no day such as 2027-01-31", self.expires)))?;
        let suppression = Suppression {
            rule: self.rule.clone(),
            path: self.path.clone(),
            sha256,
            reason: self.reason.clone(),
        };
        Ok((suppression, expires))
    }
}
