//! What a confined program could do with one path, and why.

use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{Shown, View, lists};
use crate::cases;
use crate::error::SandboxError;
use crate::names::{Guard, Names};
use crate::quote::quoted;
use crate::spec::Spec;

/// What a confined program could do with a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explained {
    /// The path, with links followed as far as it exists.
    pub path: PathBuf,
    /// Whether it can be read.
    pub read: bool,
    /// Whether it can be written.
    pub write: bool,
    /// The rule that says so.
    pub why: String,
    /// How the owner can allow more, if that is possible.
    pub allow: Option<String>,
}

/// Says what a program with this confinement could do with a path. Nothing is started.
///
/// # Errors
/// When the confinement itself cannot be worked out.
pub fn explain(spec: &Spec, path: &Path) -> Result<Explained, SandboxError> {
    let mut view = View::new(spec)?;
    view.find_guarded(spec)?;
    let real = as_far_as_there(path);
    let hidden = |one: &PathBuf| real.starts_with(one.canonicalize().as_ref().unwrap_or(one));
    let told = |read: bool, write: bool, why: &str, allow: Option<String>| {
        Ok(Explained { path: real.clone(), read, write, why: why.to_owned(), allow })
    };
    let shown = quoted(&real.to_string_lossy());
    if spec.sockets.contains(&real) {
        return told(true, true, "the socket of the monitor is passed in", None);
    }
    let bared = view.covering(&real).is_some_and(|(above, entry)| {
        entry.shown == Shown::Read
            && spec
                .bared
                .iter()
                .any(|one| above.starts_with(one.canonicalize().as_ref().unwrap_or(one)))
    });
    if !bared && spec.hidden.iter().any(hidden) {
        return told(false, false, "it is wardkeep's own state, which is never shown", None);
    }
    if view.copies.contains_key(&real) {
        return told(true, false, "a copy of this setting of the machine is shown", None);
    }
    if view.stand_ins.contains_key(&real) {
        let why = "a copy is shown that may be written; of that only what does no harm is kept";
        return told(true, true, why, None);
    }
    let Some((above, entry)) = view.covering(&real) else {
        let why = "nothing shows it: what is not named by the profile is not there";
        return told(false, false, why, Some(format!("--read {shown}")));
    };
    match entry.shown {
        Shown::Bare => {
            let why = format!("only named parts of `{}` are shown", above.display());
            told(false, false, &why, Some(format!("--read {shown}")))
        }
        Shown::Mask => {
            let why = format!("`{}` may hold secrets, and is shown empty", above.display());
            told(false, false, &why, Some(format!("--read {shown}")))
        }
        Shown::Read => {
            let why = format!("`{}` is shown read-only", above.display());
            told(true, false, &why, Some(format!("--write {shown}")))
        }
        Shown::Scratch | Shown::Fresh => {
            let why = format!("`{}` is made anew for each run, and gone after it", above.display());
            told(true, true, &why, None)
        }
        Shown::Device => told(true, true, "this device is passed in", None),
        Shown::Socket => told(true, true, "this socket is passed in", None),
        Shown::Write => {
            let inside = real.strip_prefix(above).unwrap_or(&real);
            let guard = guard_of(&view.names, above, inside);
            let led = || real.ancestors().find_map(|above| view.led_to.get(above));
            match guard.filter(|_| !is_harmless(&view.names, &real, inside)) {
                None if led() == Some(&Guard::ReadOnly) => {
                    let why = "a protected name leads to it, from the workspace or the home: it can be read, \
                               never changed";
                    told(true, false, why, None)
                }
                None if led().is_some() => {
                    let why =
                        "a name that says that it holds secrets leads to it: it is shown empty";
                    told(false, false, why, Some(format!("--read {shown}")))
                }
                Some(Guard::ReadOnly) => {
                    let why = "its name steers agents, shells, editors, git or builds: it can be read, \
                               never made, changed or moved";
                    told(true, false, why, None)
                }
                Some(Guard::Masked) => {
                    let why = "its name says that it holds secrets: it is shown empty";
                    told(false, false, why, Some(format!("--read {shown}")))
                }
                None => {
                    let why = format!("`{}` may be written", above.display());
                    told(true, true, &why, None)
                }
            }
        }
    }
}

/// What guards a path in a folder that may be written: names and patterns count from the folder's own name on.
fn guard_of(names: &Names, folder: &Path, inside: &Path) -> Option<Guard> {
    let base = Path::new(folder.file_name().unwrap_or_default());
    let all = inside.ancestors().filter_map(|path| {
        let parent = base.join(path.parent()?);
        names.of(parent.as_os_str().as_encoded_bytes(), path.file_name()?.as_encoded_bytes())
    });
    all.max_by_key(|guard| *guard == Guard::Masked)
}

/// Whether the last part of a path, and no other, is like a guarded name, and nobody looks for it as it is written.
fn is_harmless(names: &Names, real: &Path, inside: &Path) -> bool {
    let (Some(above), Some(name)) = (inside.parent(), inside.file_name()) else { return false };
    let parent = above.as_os_str().as_encoded_bytes();
    // A folder that is not there yet will be as the one that it is in.
    let there = || real.ancestors().skip(1).find_map(|above| std::fs::File::open(above).ok());
    !parent.is_empty()
        && names.of_path(parent).is_none()
        && names.written(parent, name.as_encoded_bytes()) == Some((Guard::ReadOnly, true))
        && there().is_some_and(|folder| cases::tells_apart(folder.as_fd()))
}

/// Whether a path is known to hold secrets, wherever it is shown.
#[must_use]
pub fn holds_secrets(home: Option<&Path>, path: &Path) -> bool {
    let mut known =
        home.into_iter().flat_map(|home| lists::SECRETS.iter().map(|name| home.join(name)));
    let close = |secret: PathBuf| path.starts_with(&secret) || secret.starts_with(path);
    known.any(close)
        || Names::standard().of_path(path.as_os_str().as_encoded_bytes()) == Some(Guard::Masked)
}

/// The real path of what exists, and the names of what does not.
fn as_far_as_there(path: &Path) -> PathBuf {
    let there = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    match there {
        Some((above, real)) => match path.strip_prefix(above) {
            Ok(rest) if rest.as_os_str().is_empty() => real,
            Ok(rest) => real.join(rest),
            Err(_) => real,
        },
        None => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known() {
        let home = Path::new("/home/me");
        for (path, secret) in [
            ("/home/me/.ssh/id", true),
            ("/home/me", true),
            ("/srv/app/.env", true),
            ("/home/me/.config/tool/settings", false),
            ("/usr/share/dict", false),
        ] {
            assert_eq!(holds_secrets(Some(home), Path::new(path)), secret, "{path}");
        }
    }

    #[test]
    fn what_is_to_be_pasted_is_quoted() {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let (work, evil) = (folder.path().join("work"), folder.path().join("a; touch pwned;#"));
        std::fs::create_dir_all(&work).unwrap();
        std::fs::create_dir_all(&evil).unwrap();
        let mut spec = Spec::new(work, vec!["true".into()]);
        spec.home = Some(folder.path().to_owned());
        for path in [evil.clone(), evil.join("n")] {
            let allow = explain(&spec, &path).unwrap().allow.unwrap();
            assert_eq!(allow, format!("--read '{}'", path.display()));
        }
    }

    fn said(of: &Explained) -> (bool, bool, bool) {
        (of.read, of.write, of.allow.is_some())
    }

    #[test]
    fn each_kind_of_path_is_explained() {
        // Not below /tmp, which is a folder of the run's own.
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let home = folder.path().join("home");
        let (work, state) = (home.join("work"), home.join("state"));
        for path in [&work, &state.join("plugins"), &home.join(".ssh")] {
            std::fs::create_dir_all(path).unwrap();
        }
        std::os::unix::fs::symlink(home.join(".ssh"), work.join("keys")).unwrap();
        let mut spec = Spec::new(work.clone(), vec!["true".into()]);
        spec.home = Some(home.clone());
        spec.protect = vec!["/plan.md".parse().unwrap()];
        std::os::unix::fs::symlink(work.join("rc"), home.join(".bashrc")).unwrap();
        std::fs::create_dir(home.join(".claude")).unwrap();
        let settings = work.join("agent/settings.json");
        std::os::unix::fs::symlink(settings, home.join(".claude/settings.json")).unwrap();
        spec.hidden = vec![state.clone()];
        spec.bared = vec![state.join("plugins"), state.join("keys")];
        std::os::unix::fs::symlink(&state, state.join("keys")).unwrap();
        for (path, expected) in [
            (work.join("src/new.rs"), (true, true, false)),
            (work.join(".git/hooks/pre-commit"), (true, false, false)),
            (work.join("deep/AGENTS.md"), (true, false, false)),
            (work.join("deep/agents.md"), (true, false, false)),
            (work.join("deep/IDENTITY.md"), (true, false, false)),
            (work.join("identity.md"), (true, false, false)),
            (work.join(".env"), (false, false, true)),
            (work.join("plan.md"), (true, false, false)),
            (work.join("deep/plan.md"), (true, true, false)),
            (work.join("rc"), (true, false, false)),
            (work.join("agent/settings.json"), (true, false, false)),
            (work.join("agent/notes"), (true, true, false)),
            (work.join("keys/id"), (false, false, true)),
            (home.join("letters.txt"), (false, false, true)),
            (state.join("journal"), (false, false, false)),
            (state.join("keys"), (false, false, false)),
            (state.join("plugins/openclaw/index.ts"), (true, false, true)),
            ("/usr/bin/env".into(), (true, false, true)),
            ("/tmp/x".into(), (true, true, false)),
            ("/dev/null".into(), (true, true, false)),
            ("/root-of-nothing".into(), (false, false, true)),
        ] {
            let explained = explain(&spec, &path).unwrap();
            assert_eq!(said(&explained), expected, "{explained:?}");
        }
    }
}
