//! Ready sets of what a kind of program needs, by name; each may build on another.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use crate::names::PathPattern;
use crate::spec::{Cpus, Spec};

/// What a kind of program needs. Paths may begin with `~/`; what is not there is left out. The last part of what `write` and
/// `fresh` name in one of `own` may have `*` for any text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Profile {
    /// What it is for.
    pub about: String,
    /// The profile that it adds to.
    pub inherits: Option<String>,
    /// Names of programs that it is meant for.
    pub programs: Vec<String>,
    /// What may be read.
    pub read: Vec<String>,
    /// What may be written.
    pub write: Vec<String>,
    /// The program's own folders. What is in them can be read; what it writes there is gone afterwards, but for what
    /// `write` and `keep` name.
    pub own: Vec<String>,
    /// What may be written, and is made before the start where it is not there: a folder where it ends with `/`.
    pub keep: Vec<String>,
    /// What begins empty in each run and is gone afterwards: names in `own`, and folders in `write` and `keep`.
    pub fresh: Vec<String>,
    /// Folders in which the program may have repositories whose working tree is a folder that may be written, such as
    /// the workspace. Nobody works in them by hand: git writes to that tree for whoever does.
    pub snapshots: Vec<String>,
    /// Files that steer the program and that it writes all the same: it gets a copy of each, and whoever runs
    /// it keeps of that what does no harm.
    pub private: Vec<String>,
    /// What is shown empty.
    pub masked: Vec<String>,
    /// More names that are guarded, as patterns.
    pub protect: Vec<PathPattern>,
    /// Names that are guarded by default, and are not.
    pub release: Vec<String>,
    /// Variables that pass; a `*` at the end stands for any ending.
    pub env: Vec<String>,
    /// Hosts that the proxy lets it reach.
    pub hosts: Vec<String>,
    /// Whether the tools in the home are shown.
    pub home: Option<bool>,
    /// Whether files in memory may be executed.
    pub memory_files: Option<bool>,
    /// Most processes.
    pub processes: Option<u64>,
    /// Most bytes of memory.
    pub memory: Option<u64>,
    /// Most of the processors, for all processes together.
    pub cpus: Option<Cpus>,
    /// A seccomp profile in the OCI format that holds besides ours; whoever runs the program reads it.
    pub seccomp: Option<String>,
    /// Largest file, in bytes.
    pub file_size: Option<u64>,
    /// Most open files.
    pub open_files: Option<u64>,
    /// Most seconds.
    pub timeout: Option<u64>,
}

/// Why there is no such profile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// Nobody has made one of that name.
    #[error("no profile is named `{name}`: there are {known}")]
    Unknown {
        /// The name.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// It builds on itself, or on too many others.
    #[error("the profile `{0}` builds on itself or on too many others")]
    Endless(String),
    /// It cannot be read.
    #[error("the profile `{name}` cannot be read: {why}")]
    Malformed {
        /// The name.
        name: String,
        /// Why.
        why: String,
    },
}

const BUILT_IN: &[(&str, &str)] = &[
    ("claude-code", include_str!("../profiles/claude-code.toml")),
    ("codex", include_str!("../profiles/codex.toml")),
    ("gemini-cli", include_str!("../profiles/gemini-cli.toml")),
    ("localgpt", include_str!("../profiles/localgpt.toml")),
    ("openclaw", include_str!("../profiles/openclaw.toml")),
    ("opencode", include_str!("../profiles/opencode.toml")),
    ("shell", include_str!("../profiles/shell.toml")),
    ("skill", include_str!("../profiles/skill.toml")),
];

/// Most profiles that build on one another.
const DEEPEST: usize = 8;

/// Profiles by name: the built-in ones, and the owner's.
#[derive(Debug, Clone, Default)]
pub struct Profiles {
    own: BTreeMap<String, Profile>,
}

impl Profiles {
    /// With the owner's, which come before built-in ones of the same name.
    #[must_use]
    pub fn new(own: BTreeMap<String, Profile>) -> Self {
        Self { own }
    }

    /// Every name.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
        names.extend(self.own.keys().map(String::as_str));
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The profile for a program by its name; `shell` where none is meant for it.
    #[must_use]
    pub fn meant_for(&self, program: &OsStr) -> String {
        let name = Path::new(program).file_name().and_then(OsStr::to_str).unwrap_or_default();
        let meant = |profile: &Profile| profile.programs.iter().any(|one| one == name);
        // To read all that are built in takes longer than to see that they do not name it.
        let quoted = format!("\"{name}\"");
        let may_name = |one: &str| {
            let mut built_in = BUILT_IN.iter().filter(|(known, _)| *known == one);
            self.own.contains_key(one) || built_in.any(|(_, text)| text.contains(&quoted))
        };
        let all = self.names();
        let found = all
            .iter()
            .filter(|one| may_name(one))
            .find(|one| self.one(one).is_ok_and(|profile| meant(&profile)));
        (*found.unwrap_or(&"shell")).to_owned()
    }

    /// A profile with all that it builds on.
    ///
    /// # Errors
    /// When there is none of that name, or it cannot be used.
    pub fn resolve(&self, name: &str) -> Result<Profile, ProfileError> {
        let mut whole = self.one(name)?;
        let mut next = whole.inherits.take();
        for _ in 0..DEEPEST {
            let Some(base) = next else { return Ok(whole) };
            let mut base = self.one(&base)?;
            next = base.inherits.take();
            whole = whole.over(base);
        }
        Err(ProfileError::Endless(name.to_owned()))
    }

    fn one(&self, name: &str) -> Result<Profile, ProfileError> {
        if let Some(own) = self.own.get(name) {
            return Ok(own.clone());
        }
        let text = BUILT_IN.iter().find(|(known, _)| *known == name).map(|(_, text)| text);
        let Some(text) = text else {
            let known = self.names().join(", ");
            return Err(ProfileError::Unknown { name: name.to_owned(), known });
        };
        toml::from_str(text).map_err(|error| ProfileError::Malformed {
            name: name.to_owned(),
            why: error.to_string(),
        })
    }
}

impl Profile {
    /// This one, and what it builds on.
    fn over(self, base: Self) -> Self {
        let both = |mut first: Vec<String>, second: Vec<String>| {
            first.extend(second);
            first
        };
        Self {
            about: self.about,
            inherits: None,
            programs: self.programs,
            read: both(base.read, self.read),
            write: both(base.write, self.write),
            own: both(base.own, self.own),
            keep: both(base.keep, self.keep),
            fresh: both(base.fresh, self.fresh),
            snapshots: both(base.snapshots, self.snapshots),
            private: both(base.private, self.private),
            masked: both(base.masked, self.masked),
            protect: base.protect.into_iter().chain(self.protect).collect(),
            release: both(base.release, self.release),
            env: both(base.env, self.env),
            hosts: both(base.hosts, self.hosts),
            home: self.home.or(base.home),
            memory_files: self.memory_files.or(base.memory_files),
            processes: self.processes.or(base.processes),
            memory: self.memory.or(base.memory),
            cpus: self.cpus.or(base.cpus),
            seccomp: self.seccomp.or(base.seccomp),
            file_size: self.file_size.or(base.file_size),
            open_files: self.open_files.or(base.open_files),
            timeout: self.timeout.or(base.timeout),
        }
    }

    /// Adds what it says to a spec, whose home must be set already if there is one.
    pub fn apply(&self, spec: &mut Spec) {
        let home = spec.home.clone();
        let paths = |list: &[String]| {
            list.iter().filter_map(|path| expand(path, home.as_deref())).collect::<Vec<_>>()
        };
        spec.read_if_there.extend(paths(&self.read));
        spec.write_if_there.extend(paths(&self.write));
        let made = |list: &[String]| {
            list.iter()
                .filter_map(|path| {
                    let plain = path.trim_end_matches('/');
                    expand(plain, home.as_deref()).map(|found| (found, plain.len() < path.len()))
                })
                .collect::<Vec<_>>()
        };
        let (keep, fresh) = (made(&self.keep), made(&self.fresh));
        spec.write_if_there.extend(keep.iter().map(|(path, _)| path.clone()));
        let fresh_paths: Vec<PathBuf> = fresh.iter().map(|(path, _)| path.clone()).collect();
        for own in paths(&self.own) {
            let (read, write) = shown_of(&own, &fresh_paths, &spec.write_if_there);
            spec.read_if_there.extend(read);
            spec.write_if_there.extend(write);
            spec.own.push(own);
        }
        spec.fresh.extend(fresh_paths);
        spec.kept.extend(keep);
        spec.kept.extend(fresh.into_iter().filter(|(_, folder)| *folder));
        spec.snapshots.extend(paths(&self.snapshots));
        spec.masked.extend(paths(&self.masked));
        spec.protect.extend(self.protect.iter().cloned());
        for name in &self.release {
            spec.names.release(name);
        }
        if self.home == Some(false) {
            spec.home = None;
        }
        spec.strict_memory |= self.memory_files == Some(false);
        let limits = &mut spec.limits;
        limits.processes = self.processes.unwrap_or(limits.processes);
        limits.memory = self.memory.or(limits.memory);
        limits.cpus = self.cpus.or(limits.cpus);
        limits.file_size = self.file_size.unwrap_or(limits.file_size);
        limits.open_files = self.open_files.unwrap_or(limits.open_files);
        spec.timeout = self.timeout.map(Duration::from_secs).or(spec.timeout);
    }

    /// Whether a variable passes.
    #[must_use]
    pub fn passes(&self, name: &OsStr) -> bool {
        let name = name.as_encoded_bytes();
        self.env.iter().any(|one| match one.strip_suffix('*') {
            Some(start) => !start.is_empty() && name.starts_with(start.as_bytes()),
            None => name == one.as_bytes(),
        })
    }

    /// The variables that pass.
    #[must_use]
    pub fn environment(
        &self,
        all: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Vec<(OsString, OsString)> {
        all.into_iter().filter(|(name, _)| self.passes(name)).collect()
    }
}

/// What of a program's own folder is shown: what can be read, and what can be written by a name with `*`. Links are not
/// followed: somebody may have put one there that leads to all else.
fn shown_of(own: &Path, fresh: &[PathBuf], written: &[PathBuf]) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let entries = std::fs::read_dir(own).into_iter().flatten().flatten();
    let plain =
        entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir() || kind.is_file()));
    let paths = plain.map(|entry| own.join(entry.file_name()));
    let paths = paths.filter(|path| !fresh.iter().any(|one| is_named(one, path)));
    paths.partition(|path| !written.iter().any(|one| is_named(one, path)))
}

/// Whether a path whose last part may have `*` names another.
fn is_named(pattern: &Path, path: &Path) -> bool {
    pattern.parent() == path.parent()
        && pattern.file_name().zip(path.file_name()).is_some_and(|(pattern, name)| {
            crate::names::fits(pattern.as_encoded_bytes(), name.as_encoded_bytes())
        })
}

/// A path of a profile; none where it begins with a home that there is not.
#[must_use]
pub fn expand(path: &str, home: Option<&Path>) -> Option<PathBuf> {
    match path.strip_prefix("~/") {
        Some(rest) => home.map(|home| home.join(rest)),
        None => Some(PathBuf::from(path)).filter(|path| path.is_absolute()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_profile_can_be_used() {
        let profiles = Profiles::default();
        for (name, _) in BUILT_IN {
            let profile = profiles.resolve(name).unwrap();
            assert!(!profile.about.is_empty(), "{name}");
            assert!(profile.passes(OsStr::new("PATH")), "{name}");
            assert!(!profile.passes(OsStr::new("AWS_SECRET_ACCESS_KEY")), "{name}");
            assert!(!profile.passes(OsStr::new("LD_PRELOAD")), "{name}");
            assert!(!profile.passes(OsStr::new("SSH_AUTH_SOCK")), "{name}");
        }
        assert_eq!(profiles.meant_for(OsStr::new("/usr/bin/claude")), "claude-code");
        assert_eq!(profiles.meant_for(OsStr::new("make")), "shell");
    }

    #[test]
    fn profiles_add_up_and_have_an_end() {
        let own: BTreeMap<String, Profile> = toml::from_str(
            r#"
            [mine]
            inherits = "skill"
            env = ["MY_*"]
            timeout = 7
            [a]
            inherits = "b"
            [b]
            inherits = "a"
            "#,
        )
        .unwrap();
        let profiles = Profiles::new(own);
        let mine = profiles.resolve("mine").unwrap();
        assert!(mine.passes(OsStr::new("MY_KEY")) && mine.passes(OsStr::new("PATH")));
        assert_eq!((mine.timeout, mine.processes), (Some(7), Some(256)));
        assert_eq!(profiles.resolve("a"), Err(ProfileError::Endless("a".to_owned())));
        assert!(matches!(profiles.resolve("c"), Err(ProfileError::Unknown { .. })));
        assert!(toml::from_str::<Profile>("raed = []").is_err());
        assert!(toml::from_str::<Profile>("protect = [\"..\"]").is_err());
        let named = "protect = [\"notes/*.md\"]\nrelease = [\".npmrc\"]";
        let named: Profile = toml::from_str(named).unwrap();
        let mut spec = Spec::new("/w".into(), Vec::new());
        named.apply(&mut spec);
        assert_eq!(spec.names.of(b"w", b".npmrc"), None);
        assert_eq!(spec.protect, ["notes/*.md".parse().unwrap()]);
    }

    #[test]
    fn a_star_alone_passes_nothing() {
        let profile = Profile { env: vec!["*".to_owned()], ..Profile::default() };
        assert!(!profile.passes(OsStr::new("SECRET")));
        assert_eq!(expand("~/x", None), None);
        assert_eq!(expand("x", None), None);
        assert_eq!(expand("~/x", Some(Path::new("/h"))), Some("/h/x".into()));
    }
}
