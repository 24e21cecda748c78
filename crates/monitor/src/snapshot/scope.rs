//! What a snapshot covers.

use std::fmt;
use std::str::FromStr;

use wardkeep_policy::protect::{SETTINGS_IN_FOLDERS, fold_name};
use wardkeep_policy::workspace::{MANIFEST_FILE, POLICY_FILE};

use super::path::RelativePath;

/// What an agent remembers from one session to the next: files, and a folder with all below it.
pub const MEMORY: [&str; 8] = [
    "SOUL.md",
    "AGENTS.md",
    "TOOLS.md",
    "USER.md",
    "IDENTITY.md",
    "HEARTBEAT.md",
    "MEMORY.md",
    "memory",
];

/// Which files of a workspace a snapshot holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Control plane and memory.
    Full,
    /// The policy, its manifest, `soulguard.json` and the settings of agents.
    ControlPlane,
    /// What the agent remembers.
    Memory,
    /// Files that were named one by one; made by rollbacks.
    Files,
}

impl Scope {
    /// The name in manifests and records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::ControlPlane => "control-plane",
            Self::Memory => "memory",
            Self::Files => "files",
        }
    }

    /// Names in the workspace: each is a file, or a folder with all below it.
    pub(crate) fn covers(self) -> Vec<RelativePath> {
        let control = [POLICY_FILE, MANIFEST_FILE, "soulguard.json"];
        let control = || control.iter().chain(SETTINGS_IN_FOLDERS).copied();
        let names: Vec<&str> = match self {
            Self::Full => control().chain(MEMORY).collect(),
            Self::ControlPlane => control().collect(),
            Self::Memory => MEMORY.to_vec(),
            Self::Files => Vec::new(),
        };
        names.into_iter().filter_map(RelativePath::parse).collect()
    }

    /// Whether a snapshot of this scope also remembers the signed set of the state directory.
    pub(crate) const fn has_state(self) -> bool {
        matches!(self, Self::Full | Self::ControlPlane)
    }

    /// Whether names count that only differ in case or form.
    pub(crate) const fn folds(self) -> bool {
        !matches!(self, Self::Files)
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

/// No scope has this name.
#[derive(Debug, Clone, thiserror::Error)]
#[error("unknown scope: give one of full, control-plane, memory")]
pub struct UnknownScope;

impl FromStr for Scope {
    type Err = UnknownScope;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        [Self::Full, Self::ControlPlane, Self::Memory, Self::Files]
            .into_iter()
            .find(|scope| scope.as_str() == text)
            .ok_or(UnknownScope)
    }
}

/// The names of a path in the form in which file systems may compare them.
pub(crate) fn folded(path: &RelativePath) -> Vec<String> {
    path.names().map(|name| fold_name(&name.to_string_lossy())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_name_is_a_path() {
        assert_eq!(Scope::Memory.covers().len(), MEMORY.len());
        assert_eq!(Scope::ControlPlane.covers().len(), 3 + SETTINGS_IN_FOLDERS.len());
        assert_eq!(
            Scope::Full.covers().len(),
            Scope::Memory.covers().len() + Scope::ControlPlane.covers().len()
        );
        for scope in [Scope::Full, Scope::ControlPlane, Scope::Memory, Scope::Files] {
            assert_eq!(scope.as_str().parse::<Scope>().unwrap(), scope);
        }
    }
}
