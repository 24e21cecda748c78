//! What the owned level needs of the machine: a group, a guardian, and a way for the agent to ask.
//!
//! The only place in this crate that starts programs: by absolute path, root's own, with nothing
//! inherited, and only to make or remove accounts and to have a sudoers file checked. Accounts are
//! looked up in the files of a root directory that the caller names, so that a test can have its own.

mod accounts;
mod sudoers;
mod unit;

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use thiserror::Error;

pub use self::accounts::{Account, Guardian, Removed};
pub use self::sudoers::{Sudoers, sudoers_text};
pub use self::unit::unit_text;
use crate::lock::{Agent, anchors};

/// The group of everything that is protected or watched.
pub const GROUP: &str = "soulguard";
/// Who owns what is protected.
pub const GUARDIAN: &str = "soulguardian";

/// Why the machine could not be prepared.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SystemError {
    /// A file cannot be read or written.
    #[error("cannot {action} `{}`: {source}", .path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// With what.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// A file of accounts is not as it should be.
    #[error("`{}` is too large or not readable as accounts", .path.display())]
    Accounts {
        /// The file.
        path: PathBuf,
    },
    /// An account that exists cannot be used.
    #[error("account `{name}` cannot be used: {why}; remove or change it, then run this again")]
    Unfit {
        /// Whose.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A program is not installed.
    #[error(
        "`{program}` is not installed; make group `{GROUP}` and user `{GUARDIAN}` in it by hand, then run this again"
    )]
    Missing {
        /// Its path.
        program: &'static str,
    },
    /// A program that would run as root can be changed by somebody else.
    #[error("`{}` must not be run as root: {why}", .path.display())]
    Untrusted {
        /// The program.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A program failed.
    #[error("`{program}` failed: {message}")]
    Failed {
        /// Its path.
        program: &'static str,
        /// What it said, or how it ended.
        message: String,
    },
    /// A path cannot stand in a file that says what may run as root.
    #[error(
        "`{}` cannot be named in {place}: {why}; use the daemon, or a path of plain letters", shown(.path)
    )]
    Path {
        /// The path.
        path: PathBuf,
        /// Where it would have stood.
        place: &'static str,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The identifier of a workspace is none.
    #[error("`{}` is not the identifier of a workspace", shown(Path::new(.0)))]
    Identifier(String),
}

/// A machine, or a directory that looks like the root of one.
#[derive(Debug, Clone)]
pub struct System {
    root: PathBuf,
}

impl System {
    /// With the files below `root`, which is `/` outside of tests.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// A path below the root.
    fn at(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    fn is_real(&self) -> bool {
        self.root == Path::new("/")
    }
}

/// Runs a program of root's with nothing of the caller's.
fn run(program: &'static str, arguments: &[&std::ffi::OsStr]) -> Result<(), SystemError> {
    let path = Path::new(program);
    let Ok(real) = path.canonicalize() else { return Err(SystemError::Missing { program }) };
    check_program(&real, None)?;
    let failed = |message: String| SystemError::Failed { program, message };
    let output = Command::new(path)
        .args(arguments)
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("LC_ALL", "C")
        .current_dir("/")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = if output.stderr.is_empty() { &output.stdout } else { &output.stderr };
    let said = String::from_utf8_lossy(&said[..said.len().min(1024)]);
    let said = said.trim();
    Err(failed(if said.is_empty() {
        output.status.to_string()
    } else {
        wardkeep_evidence::check::printable(&said.replace('\n', "; "))
    }))
}

/// Makes sure that only root can change a program, and, where an agent is named, that the agent can
/// put no other one in its place.
fn check_program(path: &Path, agent: Option<&Agent>) -> Result<(), SystemError> {
    let untrusted = |why: String| SystemError::Untrusted { path: path.to_owned(), why };
    let failed = |source| SystemError::Io { action: "look at", path: path.to_owned(), source };
    let metadata = path.symlink_metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(untrusted("it is no regular file; name the file itself, not a link".into()));
    }
    if metadata.uid() != 0 {
        return Err(untrusted("it does not belong to root".into()));
    }
    if metadata.mode() & 0o022 != 0 {
        return Err(untrusted("others than root can write it".into()));
    }
    let Some(agent) = agent else { return Ok(()) };
    for anchor in anchors(path, agent).map_err(failed)? {
        if !anchor.holds {
            let place = shown(&anchor.path);
            return Err(untrusted(format!("the agent can replace `{place}`: {}", anchor.why)));
        }
    }
    Ok(())
}

/// Whether a path can be written into a file of rules as it is: absolute, plain, without steps up
/// and without anything that means more than itself there.
fn check_path(path: &Path, place: &'static str) -> Result<String, SystemError> {
    let refused = |why| SystemError::Path { path: path.to_owned(), place, why };
    let text = path.to_str().ok_or_else(|| refused("it is not plain text"))?;
    let rest = text.strip_prefix('/').ok_or_else(|| refused("it is not absolute"))?;
    if text.len() > 1024 {
        return Err(refused("it is too long"));
    }
    if rest.split('/').any(|name| matches!(name, "" | "." | "..")) {
        return Err(refused("it has an empty name or one of dots in it"));
    }
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'.' | b'_' | b'-' | b'+');
    if !text.bytes().all(is_plain) {
        return Err(refused("it has characters that mean something there"));
    }
    Ok(text.to_owned())
}

/// A path in an error message.
fn shown(path: &Path) -> String {
    wardkeep_evidence::check::printable(&path.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_absolute_paths_are_written_into_rules() {
        for good in ["/home/agent/ws", "/srv/a.b/c_d-e+f", "/ALL", "/w/ALL"] {
            assert_eq!(check_path(Path::new(good), "a file").unwrap(), good);
        }
        let long = format!("/{}", "x".repeat(2000));
        let bad = [
            "",
            "/",
            "ALL",
            "ws",
            "~/ws",
            "/a//b",
            "/a/",
            "/a/./b",
            "/a/../b",
            "/a b",
            "/a\tb",
            "/a\nb",
            "/a\n#0 ALL=(ALL) NOPASSWD: ALL",
            "/a,/bin/sh",
            "/a\\",
            "/a\\,b",
            "/a*",
            "/a?",
            "/[ab]",
            "/a!b",
            "/a:b",
            "/a=b",
            "/a#b",
            "/a\"b",
            "/a'b",
            "/a$HOME",
            "/a%h",
            "/a;b",
            "/a(b)",
            "/a\u{0}b",
            "/ä",
            "/^a$",
            "/a@b",
            long.as_str(),
        ];
        for bad in bad {
            assert!(check_path(Path::new(bad), "a file").is_err(), "{bad:?}");
        }
    }
}
