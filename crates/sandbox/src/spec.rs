//! What is to run, and what it may see and do.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::names::{Names, PathPattern};
use crate::seccomp::{SeccompProfile, SeccompSource};
use crate::view::SettingsFolder;
use crate::walk::Listings;

/// How long a file system may take, where nothing else is said.
const PATIENCE: Duration = Duration::from_secs(30);

/// A program, and the confinement that it runs in.
#[derive(Debug, Clone)]
pub struct Spec {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Where it starts; in the workspace or another folder that it sees.
    pub directory: PathBuf,
    /// The folder that it works in: it may write there, except what `names` guards.
    pub workspace: PathBuf,
    /// The home of the user. It is shown empty, but for what is named here and the usual tools.
    pub home: Option<PathBuf>,
    /// Files and folders that it may read and execute, besides the system's own.
    pub read: Vec<PathBuf>,
    /// The same, but no harm if they are not there.
    pub read_if_there: Vec<PathBuf>,
    /// Files and folders that it may write.
    pub write: Vec<PathBuf>,
    /// The same, but no harm if they are not there.
    pub write_if_there: Vec<PathBuf>,
    /// Files that are shown as another one, which may be written: where each is seen, and what stands for it.
    pub private: Vec<(PathBuf, PathBuf)>,
    /// Files and folders that are shown empty wherever they would be seen.
    pub masked: Vec<PathBuf>,
    /// Folders that never may be seen, and never may lie in what is shown: the state of wardkeep.
    pub hidden: Vec<PathBuf>,
    /// Folders below `hidden` that may be read all the same, if they are there: what agents load of wardkeep's.
    pub bared: Vec<PathBuf>,
    /// Sockets that it may connect to, also below `hidden`.
    pub sockets: Vec<PathBuf>,
    /// Folders that are made anew, empty and writable, and gone afterwards.
    pub scratch: Vec<PathBuf>,
    /// An agent's own folders. What is written there is gone afterwards, but for what lies in `write` and its like.
    pub own: Vec<PathBuf>,
    /// What of those folders is kept, and is made where it is missing ([`Self::make_kept`]): each with whether it is a
    /// folder.
    pub kept: Vec<(PathBuf, bool)>,
    /// Folders that begin empty in each run although they lie in what may be written, and are gone afterwards.
    pub fresh: Vec<PathBuf>,
    /// Folders in which repositories may come into being whose working tree is a folder that may be written: an agent's
    /// own, in which nobody else works.
    pub snapshots: Vec<PathBuf>,
    /// Names that are guarded in the workspace and in what may be written.
    pub names: Names,
    /// More that is guarded there as `names` are: files and folders that an owner protects.
    pub protect: Vec<PathPattern>,
    /// What is remembered of folders that may be written, so that the look for guarded names takes less time; what
    /// was seen is given by [`crate::Running::take_seen`].
    pub listings: Option<Arc<Listings>>,
    /// Where copies of the machine's settings are kept between runs, so that they are not made for each; what is to be
    /// kept is given by [`crate::Running::take_settings`].
    pub settings: Option<SettingsFolder>,
    /// A file that every run has open which may write in the same places. Who looks at a name and then makes it, and who
    /// looks through the workspace and is not confined yet, has it locked: nothing that another run moves comes between.
    pub lock: Option<Arc<File>>,
    /// Whether everything that is looked for and not found is noticed. It makes the run slower.
    pub learn: bool,
    /// Whether protected names that the program wants to make, and files that it wants to read and that are not shown, are
    /// asked about ([`crate::Running::wait_asking`]). Opens for reading are slower then.
    pub ask: bool,
    /// Its environment, all of it.
    pub environment: Vec<(OsString, OsString)>,
    /// How much of the machine it may take.
    pub limits: Limits,
    /// Whom it may talk to.
    pub network: Network,
    /// The port on which a proxy of model APIs is found inside, on 127.0.0.1.
    pub models: Option<u16>,
    /// How long it may run.
    pub timeout: Option<Duration>,
    /// How long a file system may take to make a name; then the run is ended.
    pub patience: Duration,
    /// Layers that may be missing.
    pub allow_degraded: BTreeSet<Layer>,
    /// Whether files in memory may not be executed at all.
    pub strict_memory: bool,
    /// A filter of system calls beside ours, which can only take more away.
    pub seccomp: Option<SeccompProfile>,
    /// Whether a terminal is passed on by way of a new one.
    pub terminal: bool,
}

impl Spec {
    /// Confines `command` to a workspace: nothing of the network, nothing of the home, the usual limits.
    #[must_use]
    pub fn new(workspace: PathBuf, command: Vec<OsString>) -> Self {
        Self {
            command,
            directory: workspace.clone(),
            workspace,
            home: None,
            read: Vec::new(),
            read_if_there: Vec::new(),
            write: Vec::new(),
            write_if_there: Vec::new(),
            private: Vec::new(),
            masked: Vec::new(),
            hidden: Vec::new(),
            bared: Vec::new(),
            sockets: Vec::new(),
            scratch: Vec::new(),
            own: Vec::new(),
            kept: Vec::new(),
            fresh: Vec::new(),
            snapshots: Vec::new(),
            names: Names::standard(),
            protect: Vec::new(),
            listings: None,
            settings: None,
            lock: None,
            learn: false,
            ask: false,
            environment: Vec::new(),
            limits: Limits::default(),
            network: Network::None,
            models: None,
            timeout: None,
            patience: PATIENCE,
            allow_degraded: BTreeSet::new(),
            strict_memory: false,
            seccomp: None,
            terminal: true,
        }
    }

    /// Makes what is kept of an agent's own folders and is not there yet. Where that cannot be, it is gone afterwards.
    pub fn make_kept(&self) {
        for (path, folder) in &self.kept {
            if *folder {
                let _ = fs::DirBuilder::new().mode(0o700).create(path);
            } else {
                let mut options = fs::OpenOptions::new();
                let _ = options.write(true).create_new(true).mode(0o600).open(path);
            }
        }
    }
}

/// How much of the machine a confined program may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Most processes.
    pub processes: u64,
    /// Most bytes of memory that each of them fills; none is what the machine has.
    pub memory: Option<u64>,
    /// Most bytes of memory of all of them together, where a control group is delegated; none is nine tenths
    /// of what the machine has.
    pub total_memory: Option<u64>,
    /// Most of the processors for all of them together, where a control group is delegated; none is all there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<Cpus>,
    /// Largest file, in bytes.
    pub file_size: u64,
    /// Most files that each of them has open.
    pub open_files: u64,
    /// Most bytes in the temporary folders; none is 4 GiB, or half of the memory where that is less.
    pub scratch: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            processes: 4096,
            memory: None,
            total_memory: None,
            cpus: None,
            file_size: 16 << 30,
            open_files: 65_536,
            scratch: None,
        }
    }
}

/// A share of the processors, in thousandths of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cpus(u32);

impl Cpus {
    /// The least: the kernel gives a millisecond in a tenth of a second.
    const LEAST: u32 = 10;
    /// More than any machine has.
    const MOST: u32 = 8_192_000;

    /// So many thousandths; none where that is no share.
    #[must_use]
    pub fn from_thousandths(thousandths: u32) -> Option<Self> {
        (Self::LEAST..=Self::MOST).contains(&thousandths).then_some(Self(thousandths))
    }

    /// How much it is.
    #[must_use]
    pub fn thousandths(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Cpus {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 % 1000 {
            0 => write!(to, "{}", self.0 / 1000),
            rest => {
                let rest = format!("{rest:03}");
                write!(to, "{}.{}", self.0 / 1000, rest.trim_end_matches('0'))
            }
        }
    }
}

impl FromStr for Cpus {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
        let digits =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = || {
            let plain = digits(whole) && digits(part) && part.len() <= 3;
            let whole: u32 = whole.parse().ok().filter(|_| plain)?;
            let part: u32 = format!("{part:0<3}").parse().ok()?;
            whole.checked_mul(1000)?.checked_add(part)
        };
        number().and_then(Self::from_thousandths).ok_or_else(|| {
            "give a number of processors such as 2, 1.5 or 0.25; 0.01 is the least".to_owned()
        })
    }
}

impl Serialize for Cpus {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Cpus {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Written;
        impl serde::de::Visitor<'_> for Written {
            type Value = Cpus;

            fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str("a number of processors such as 2 or 1.5")
            }

            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Cpus, E> {
                self.visit_str(&number.to_string())
            }

            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Cpus, E> {
                self.visit_str(&number.to_string())
            }

            fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Cpus, E> {
                self.visit_str(&number.to_string())
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Cpus, E> {
                text.parse().map_err(E::custom)
            }
        }
        from.deserialize_any(Written)
    }
}

/// Whom a confined program may talk to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Network {
    /// Itself.
    None,
    /// Itself, and a proxy outside: whoever started it gets the socket that listens inside.
    Proxy {
        /// The port on which it is found inside, on 127.0.0.1.
        port: u16,
    },
}

/// A layer of the confinement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Layer {
    /// Namespaces: own processes, mounts, network.
    Namespaces,
    /// `/proc` of its own processes.
    Proc,
    /// Landlock.
    Landlock,
    /// The filter of system calls.
    Seccomp,
    /// A look at every name in the workspace.
    Names,
}

impl Layer {
    /// Every layer.
    pub const ALL: [Self; 5] =
        [Self::Namespaces, Self::Proc, Self::Landlock, Self::Seccomp, Self::Names];

    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::Proc => "proc",
            Self::Landlock => "landlock",
            Self::Seccomp => "seccomp",
            Self::Names => "names",
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.as_str())
    }
}

impl FromStr for Layer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|layer| layer.as_str() == text).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|layer| layer.as_str()).collect();
            format!("no layer has that name: give one of {}", names.join(", "))
        })
    }
}

/// What was put in force, for the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Applied {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The workspace.
    pub workspace: String,
    /// Layers in force.
    pub layers: Vec<Layer>,
    /// Layers that are missing, by leave of whoever started it.
    pub missing: Vec<Missing>,
    /// Version of Landlock.
    pub landlock_abi: i32,
    /// What can be read.
    pub read: Vec<String>,
    /// What can be written.
    pub write: Vec<String>,
    /// What is shown empty.
    pub masked: Vec<String>,
    /// What in the workspace can be read but not written.
    pub read_only: Vec<String>,
    /// Sockets that can be connected to.
    pub sockets: Vec<String>,
    /// Names of the variables in the environment; never their values.
    pub environment: Vec<String>,
    /// How much of the machine may be taken.
    pub limits: Limits,
    /// Whether a control group holds all processes together to one limit at least.
    pub control_group: bool,
    /// To which: `processes`, `memory`, `cpus`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub control_group_limits: Vec<&'static str>,
    /// The profile of system calls that holds besides ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seccomp_profile: Option<SeccompSource>,
    /// `none` or `proxy`.
    pub network: &'static str,
    /// How long it may run, in milliseconds.
    pub timeout_ms: Option<u64>,
}

/// A layer that is missing, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// The layer.
    pub layer: Layer,
    /// Why.
    pub why: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_processors_is_a_plain_number() {
        for (text, thousandths) in [
            ("1", 1000),
            ("1.5", 1500),
            ("0.01", 10),
            ("0.25", 250),
            ("2.125", 2125),
            ("64.0", 64_000),
        ] {
            let cpus: Cpus = text.parse().unwrap();
            assert_eq!(cpus.thousandths(), thousandths);
            assert_eq!(cpus.to_string().parse(), Ok(cpus));
        }
        for text in [
            "", "0", "0.009", "-1", "+1", "1e3", "NaN", "inf", ".5", "1.", "1.2345", "1,5", " 1",
            "4294968", "1.-1",
        ] {
            assert!(text.parse::<Cpus>().is_err(), "{text}");
        }
        let limits = |text: &str| toml::from_str::<Limits>(text).map(|limits| limits.cpus);
        assert_eq!(limits("cpus = 1.5").unwrap(), Cpus::from_thousandths(1500));
        assert_eq!(limits("cpus = 2").unwrap(), Cpus::from_thousandths(2000));
        for text in
            ["cpus = nan", "cpus = -1", "cpus = inf", "cpus = 0", "cpus = true", "cpus = []"]
        {
            assert!(limits(text).is_err(), "{text}");
        }
    }
}
