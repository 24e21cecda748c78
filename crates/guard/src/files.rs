//! Which files hold secrets, by where they are and what they are called.
//!
//! A name says what a file is for, not what is in it: a copy under another name is not recognised here.
//! What a tool gives back is scanned for secrets besides.

mod glob;
mod lists;

use std::path::Path;

use serde::Deserialize;
use wardkeep_detect::names::{fold_name, folded_components};

pub use crate::facts::Sensitivity;
pub use glob::{Glob, GlobError, MAX_GLOB};

/// Longest path that is looked at, in bytes; a longer one is denied.
pub const MAX_PATH: usize = 16 << 10;

/// The owner's additions, `[guard.files]`; globs as [`Glob`] reads them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FilesConfig {
    /// Files that only the owner reads: stricter, whatever the other lists say.
    pub denied: Vec<String>,
    /// Files whose content may hold secrets: stricter, except for files that are denied already.
    pub tainted: Vec<String>,
    /// Files that the built-in lists hit by mistake: looser. It takes nothing away from the owner's own
    /// two lists, nor from the memory, environment and password files of the machine.
    pub allowed: Vec<String>,
}

/// The built-in lists and the owner's, ready to ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SensitiveFiles {
    always: Vec<Glob>,
    denied: Vec<Glob>,
    tainted: Vec<Glob>,
    exceptions: Vec<Glob>,
    own_denied: Vec<Glob>,
    own_tainted: Vec<Glob>,
}

impl SensitiveFiles {
    /// With the owner's additions.
    ///
    /// # Errors
    /// If one of the owner's globs is none.
    pub fn new(config: &FilesConfig) -> Result<Self, GlobError> {
        let own = |globs: &[String]| {
            globs.iter().map(|glob| Glob::new(glob)).collect::<Result<Vec<_>, _>>()
        };
        let mut files = Self {
            own_denied: own(&config.denied)?,
            own_tainted: own(&config.tainted)?,
            ..Self::default()
        };
        files.exceptions.extend(own(&config.allowed)?);
        Ok(files)
    }
}

impl Default for SensitiveFiles {
    fn default() -> Self {
        let built_in = |globs: &[&str]| globs.iter().flat_map(|glob| Glob::new(glob)).collect();
        Self {
            always: built_in(lists::ALWAYS),
            denied: built_in(lists::DENIED),
            tainted: built_in(lists::TAINTED),
            exceptions: built_in(lists::EXCEPTIONS),
            own_denied: Vec::new(),
            own_tainted: Vec::new(),
        }
    }
}

/// How a file is kept from being read, by its real path; every link is resolved already.
///
/// ```
/// use std::path::Path;
/// use wardkeep_guard::files::{SensitiveFiles, Sensitivity, sensitivity};
/// let files = SensitiveFiles::default();
/// let of = |path: &str| sensitivity(Path::new(path), None, &files);
/// assert_eq!(of("/w/.env"), Sensitivity::Denied);
/// assert_eq!(of("/home/u/.ssh/config"), Sensitivity::Tainted);
/// assert_eq!(of("/w/.env.example"), Sensitivity::None);
/// ```
#[must_use]
pub fn sensitivity(path: &Path, home: Option<&Path>, files: &SensitiveFiles) -> Sensitivity {
    if path.as_os_str().len() > MAX_PATH {
        return Sensitivity::Denied;
    }
    let components = folded_components(path);
    let Some(last) = components.last() else { return Sensitivity::None };
    let home = home.map(folded_components);
    let original = original_of(last).map(|name| fold_name(&name));
    let mut names: Vec<Vec<&str>> = vec![components.iter().map(String::as_str).collect()];
    if let Some(original) = &original {
        let mut other = names[0].clone();
        other.pop();
        other.push(original);
        names.push(other);
    }
    let hit = |globs: &[Glob]| {
        globs.iter().any(|glob| names.iter().any(|path| glob.matches(path, home.as_deref())))
    };
    if hit(&files.always) || hit(&files.own_denied) {
        return Sensitivity::Denied;
    }
    let own = if hit(&files.own_tainted) { Sensitivity::Tainted } else { Sensitivity::None };
    let worded = || names.iter().filter_map(|path| path.last()).any(|name| is_worded(name));
    let built_in = if hit(&files.denied) {
        Sensitivity::Denied
    } else if hit(&files.tainted) || worded() {
        Sensitivity::Tainted
    } else {
        Sensitivity::None
    };
    if built_in > own && !hit(&files.exceptions) { built_in } else { own }
}

/// Whether a word in its name says that it holds secrets.
fn is_worded(name: &str) -> bool {
    lists::WORDS.iter().any(|word| name.contains(word))
        && !lists::OTHER_TOKENS.iter().any(|other| name.contains(other))
        && !name.rsplit_once('.').is_some_and(|(_, ending)| lists::CODE.contains(&ending))
}

/// The name that a file had before it was copied: `.env~`, `prod.pem.bak`, `..env.swp`.
fn original_of(name: &str) -> Option<String> {
    let mut rest = name;
    for _ in 0..3 {
        let cut = lists::COPIES.iter().find_map(|ending| rest.strip_suffix(ending));
        match cut.filter(|cut| !cut.is_empty()) {
            Some(cut) => rest = cut,
            None => break,
        }
    }
    let swap = name.ends_with(".swp") || name.ends_with(".swo");
    let rest = if swap { rest.strip_prefix('.').unwrap_or(rest) } else { rest };
    (rest != name && !rest.is_empty()).then(|| rest.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str) -> Sensitivity {
        sensitivity(Path::new(path), Some(Path::new("/home/u")), &SensitiveFiles::default())
    }

    #[test]
    fn every_built_in_glob_is_one() {
        for list in [lists::ALWAYS, lists::DENIED, lists::TAINTED, lists::EXCEPTIONS] {
            for glob in list {
                assert!(Glob::new(glob).is_ok(), "{glob}");
            }
        }
        assert!(lists::CODE.is_sorted());
    }

    #[test]
    fn copies_are_what_they_were() {
        for path in ["/w/.env~", "/w/.env.bak", "/w/..env.swp", "/w/tls.key.old", "/w/a.pem.bak~"] {
            assert_eq!(of(path), Sensitivity::Denied, "{path}");
        }
        assert_eq!(of("/w/.env.example~"), Sensitivity::None);
        assert_eq!(of("/w/.bak"), Sensitivity::None);
        assert_eq!(of("/w/~"), Sensitivity::None);
        assert_eq!(of("/"), Sensitivity::None);
    }

    #[test]
    fn what_cannot_be_a_path_is_denied() {
        assert_eq!(of(&format!("/{}", "a".repeat(MAX_PATH))), Sensitivity::Denied);
    }

    #[test]
    fn lists_move_in_one_direction_each() {
        let config: FilesConfig = toml::from_str(
            r#"
            denied = ["~/notes/*.txt", "both.txt"]
            tainted = ["*.pem", "invoice*"]
            allowed = ["tests/**/*.pem", "tests/**/*.key", "invoice*", "both.txt", "shadow", "environ"]
            "#,
        )
        .unwrap();
        let files = SensitiveFiles::new(&config).unwrap();
        let of = |path: &str| sensitivity(Path::new(path), Some(Path::new("/home/u")), &files);
        // Stricter.
        assert_eq!(of("/home/u/notes/a.txt"), Sensitivity::Denied);
        assert_eq!(of("/home/v/notes/a.txt"), Sensitivity::None);
        assert_eq!(of("/w/invoice-1.pdf"), Sensitivity::Tainted);
        // `tainted` loosens nothing.
        assert_eq!(of("/w/prod.pem"), Sensitivity::Denied);
        // `allowed` takes away what is built in, and nothing else.
        assert_eq!(of("/w/tests/tls/server.key"), Sensitivity::None);
        assert_eq!(of("/w/tests/tls/server.pem"), Sensitivity::Tainted);
        assert_eq!(of("/w/both.txt"), Sensitivity::Denied);
        assert_eq!(of("/etc/shadow"), Sensitivity::Denied);
        assert_eq!(of("/proc/1/environ"), Sensitivity::Denied);
        for wrong in ["allowed = [\"*\"]", "denied = [\"a/../b\"]"] {
            let config: FilesConfig = toml::from_str(wrong).unwrap();
            assert!(SensitiveFiles::new(&config).is_err(), "{wrong}");
        }
        assert!(toml::from_str::<FilesConfig>("alowed = []").is_err());
    }
}
