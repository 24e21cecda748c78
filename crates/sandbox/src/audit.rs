//! An audit of the surroundings: what confines a process, and whether that is what a profile demands.
//!
//! What `/proc` says is read from [`Roots`]; what only the kernel can say is in [`Probes`]. Where both
//! speak of the same thing, the worse answer counts. What cannot be told counts as missing.

mod judge;
mod probe;
mod read;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use self::probe::{Probes, UserNamespaces};
use self::read::Reading;

/// Where the file systems of the kernel lie, and whose surroundings are looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roots {
    /// `/proc`, or what stands for it.
    pub proc: PathBuf,
    /// `/sys`, or what stands for it.
    pub sys: PathBuf,
    /// The root directory of the process.
    pub root: PathBuf,
    /// The process: a number, or `self`.
    pub process: String,
}

impl Roots {
    /// Of this process.
    #[must_use]
    pub fn here() -> Self {
        Self {
            proc: "/proc".into(),
            sys: "/sys".into(),
            root: "/".into(),
            process: "self".to_owned(),
        }
    }

    /// Of another process, by its number here.
    #[must_use]
    pub fn of_process(pid: u32) -> Self {
        let root = Path::new("/proc").join(pid.to_string()).join("root");
        Self { root, process: pid.to_string(), ..Self::here() }
    }
}

/// What a confinement must have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Profile {
    /// Process and mount namespaces of its own.
    pub require_container: bool,
    /// A seccomp filter.
    pub require_seccomp: bool,
    /// A root that cannot be written to.
    pub require_readonly_root: bool,
    /// The only calls that may be possible, of those that an audit tries.
    pub allowed_syscalls: Option<Vec<String>>,
    /// Most processes.
    pub max_processes: Option<u32>,
    /// Most open files of a process.
    pub max_open_files: Option<u32>,
    /// A network of its own.
    pub network_namespace: bool,
}

impl Default for Profile {
    fn default() -> Self {
        Self {
            require_container: true,
            require_seccomp: true,
            require_readonly_root: false,
            allowed_syscalls: None,
            max_processes: None,
            max_open_files: None,
            network_namespace: false,
        }
    }
}

/// What was made of the confinement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compliance {
    /// All that the profile demands.
    Full,
    /// Something confines the process, and something that is demanded is missing.
    Partial,
    /// Something is demanded, and nothing confines the process.
    None,
}

impl Compliance {
    /// The word that is shown.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Partial => "partial",
            Self::None => "none",
        }
    }
}

/// How one check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It is there.
    Held,
    /// It is not there.
    Missing,
    /// It could not be told.
    Unknown,
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Its name; it stays the same.
    pub id: String,
    /// How it ended.
    pub state: State,
    /// Whether the profile demands it.
    pub required: bool,
    /// What was found, in plain words.
    pub message: String,
    /// How to get it, where it is not there.
    pub fix: Option<String>,
}

/// What an audit found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Whether the process sits in a container: process and mount namespaces of its own.
    pub in_container: bool,
    /// What the surroundings say of the container, as far as they do. Marks alone prove nothing.
    pub container_marks: Vec<String>,
    /// Whether a seccomp filter is active.
    pub seccomp_active: bool,
    /// `disabled`, `strict` or `filter`.
    pub seccomp_mode: Option<String>,
    /// Namespaces that are not those of the machine's first process.
    pub namespaces: Vec<String>,
    /// Namespaces of which that could not be told.
    pub unknown_namespaces: Vec<String>,
    /// Whether the root cannot be written to.
    pub readonly_root: bool,
    /// Limits by name; the hard ones, since the others can be raised.
    pub resource_limits: BTreeMap<String, String>,
    /// Capabilities that are in effect.
    pub capabilities: Option<Vec<String>>,
    /// Whether no program can gain privileges.
    pub no_new_privs: Option<bool>,
    /// What the kernel has of Landlock: 0 is nothing.
    pub landlock_abi: Option<u32>,
    /// Whether new user namespaces can be made and used.
    pub user_namespaces: Option<UserNamespaces>,
    /// How much confines the process, of 100; it does not depend on the profile.
    pub score: u8,
    /// What the profile makes of it.
    pub compliance: Compliance,
    /// Each check.
    pub findings: Vec<Finding>,
}

impl Report {
    /// The findings that the profile demands and that are not there.
    pub fn lacking(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|one| one.required && one.state != State::Held)
    }

    /// A finding by its name.
    #[must_use]
    pub fn finding(&self, id: &str) -> Option<&Finding> {
        self.findings.iter().find(|one| one.id == id)
    }
}

/// Looks at the surroundings of a process and judges them by a profile.
#[must_use]
pub fn audit(roots: &Roots, probes: &Probes, profile: &Profile) -> Report {
    judge::judge(&Reading::of(roots), probes, profile)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_has_the_keys_of_the_design() {
        let profile: Profile = serde_json::from_str(
            r#"{"require_container":true,"require_seccomp":true,"require_readonly_root":true,
                "allowed_syscalls":["read"],"max_processes":64,"max_open_files":256,
                "network_namespace":true}"#,
        )
        .unwrap();
        assert_eq!(profile.max_processes, Some(64));
        assert!(serde_json::from_str::<Profile>(r#"{"require_secomp":true}"#).is_err());
        assert_eq!(serde_json::from_str::<Profile>("{}").unwrap(), Profile::default());
    }
}
