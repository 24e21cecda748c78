//! `[sandbox]` of the owner's configuration.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use wardkeep_policy::config::Config;
use wardkeep_policy::signed_set::SetState;
use wardkeep_policy::store::{CONFIG_FILE, PolicyStore};
use wardkeep_sandbox::profile::{Profile, Profiles};

use crate::error::CliError;
use crate::exit::Exit;

/// What the owner says of every run.
pub(super) struct Settings {
    /// The profile where none is given.
    pub(super) profile: Option<String>,
    /// What holds for every run.
    pub(super) shared: Profile,
    pub(super) profiles: Profiles,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Section {
    profile: Option<String>,
    read: Vec<String>,
    write: Vec<String>,
    masked: Vec<String>,
    env: Vec<String>,
    profiles: BTreeMap<String, Profile>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Parts {
    sandbox: Section,
}

impl Settings {
    /// Reads it. What is not signed is not used: it could open what the owner wants shut.
    pub(super) fn load(state: &Path) -> Result<Self, CliError> {
        let owner = rustix::process::geteuid().as_raw();
        let set = PolicyStore::new(state, owner).settings().set;
        let section = match set.files.get(CONFIG_FILE).map(|bytes| Config::parse(bytes)) {
            None => Section::default(),
            Some(Err(error)) => return Err(malformed(&error.to_string())),
            Some(Ok(config)) => {
                let parts: Result<Parts, _> = toml::Value::Table(config.rest).try_into();
                parts.map_err(|error| malformed(&error.to_string()))?.sandbox
            }
        };
        let mut shared = Profile {
            read: section.read,
            write: section.write,
            masked: section.masked,
            env: section.env,
            ..Profile::default()
        };
        if set.state == SetState::Valid {
            let profiles = Profiles::new(section.profiles);
            return Ok(Self { profile: section.profile, shared, profiles });
        }
        // Masks only tighten.
        shared = Profile { masked: shared.masked, ..Profile::default() };
        Ok(Self { profile: None, shared, profiles: Profiles::default() })
    }
}

fn malformed(why: &str) -> CliError {
    CliError::new(
        Exit::Unreadable,
        format!("the `[sandbox]` part of config.toml cannot be used: {why}"),
        "mend it with `wardkeep config edit`",
    )
}
