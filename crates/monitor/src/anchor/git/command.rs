//! The git process: found by absolute path, started with nothing it could inherit.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use thiserror::Error;

use super::remote::GitRemote;
use crate::anchor::Surroundings;
use crate::anchor::process::{self, Ended, ProcessError};

/// The variables a caller may pass on to git: those that say how to reach and to trust a remote.
pub const VARIABLES: [&str; 11] = [
    "SSH_AUTH_SOCK",
    "GIT_SSH_COMMAND",
    "GIT_ASKPASS",
    "GIT_SSL_CAINFO",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "http_proxy",
    "https_proxy",
    "HTTPS_PROXY",
    "no_proxy",
    "NO_PROXY",
];

// What a setting of a repository could otherwise make git start, sign, ask or write.
const SETTINGS: [&str; 21] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.alternateRefsCommand=true",
    "core.askPass=",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.fsync=all",
    "core.logAllRefUpdates=false",
    "credential.helper=",
    "commit.gpgSign=false",
    "push.gpgSign=false",
    "push.followTags=false",
    "push.recurseSubmodules=no",
    "fetch.recurseSubmodules=false",
    "fetch.writeCommitGraph=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "receive.autogc=false",
    "protocol.ext.allow=never",
    "submodule.recurse=false",
    "transfer.fsckObjects=true",
];
const OUTPUT_LIMIT: usize = 64 * 1024;
const LOCAL_DEADLINE: Duration = Duration::from_secs(30);
const IDENTITY: &str = "wardkeep";
const ADDRESS: &str = "wardkeep@localhost";

/// Why git did not do what it was asked.
#[derive(Debug, Error)]
pub(super) enum GitError {
    #[error("git is not installed; install it, or remove this anchor")]
    Missing,
    #[error("git failed: {0}")]
    Process(#[from] ProcessError),
    #[error("git failed: {}", super::shown(.errors))]
    Failed { errors: String },
    #[error("git answered something else than asked")]
    Answer,
    #[error("the push is not a fast-forward")]
    NotFastForward,
    #[error("the remote rejects the push: {}", super::shown(.reason))]
    RemoteRejected { reason: String },
}

/// A variable that is not passed on.
#[derive(Debug, Error)]
#[error("variable `{name}` is not passed on to git; pass only those that reach a remote")]
pub(super) struct VariableError {
    name: String,
}

pub(super) fn check_variables(surroundings: &Surroundings) -> Result<(), VariableError> {
    let is_known = |name: &OsStr| VARIABLES.iter().any(|known| name == *known);
    match surroundings.variables.iter().find(|(name, _)| !is_known(name)) {
        Some((name, _)) => Err(VariableError { name: super::shown(&name.to_string_lossy()) }),
        None => Ok(()),
    }
}

/// Whether git's error output says that trying again will not help.
pub(super) fn is_refusal(errors: &str) -> bool {
    const REFUSALS: [&str; 7] = [
        "does not appear to be a git repository",
        "dubious ownership",
        "Permission denied",
        "Authentication failed",
        "could not read Username",
        "Host key verification failed",
        "not found",
    ];
    REFUSALS.iter().any(|refusal| errors.contains(refusal))
}

/// Git on one gitdir and one remote.
#[derive(Debug)]
pub(super) struct Git<'a> {
    program: PathBuf,
    surroundings: &'a Surroundings,
    directory: &'a Path,
    remote: &'a GitRemote,
}

impl<'a> Git<'a> {
    /// Looks for git in the absolute folders of the search path.
    pub(super) fn find(
        surroundings: &'a Surroundings,
        directory: &'a Path,
        remote: &'a GitRemote,
    ) -> Result<Self, GitError> {
        let is_program = |path: &PathBuf| {
            path.metadata()
                .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
        };
        let program = folders(surroundings).map(|folder| folder.join("git")).find(is_program);
        let program = program.ok_or(GitError::Missing)?;
        Ok(Self { program, surroundings, directory, remote })
    }

    /// Makes the bare repository.
    pub(super) fn init(&self) -> Result<(), GitError> {
        self.local(&["init", "--quiet", "--bare", "--template=", "--initial-branch=none"], b"")?;
        Ok(())
    }

    /// The commit a reference names; `None` when there is no such reference.
    pub(super) fn commit_of(&self, reference: &str) -> Result<Option<String>, GitError> {
        let name = format!("{reference}^{{commit}}");
        match self.local(&["rev-parse", "--verify", "--quiet", "--end-of-options", &name], b"") {
            Ok(output) => object_id(&output).map(Some),
            Err(GitError::Failed { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The bytes of a blob of at most `limit` bytes.
    pub(super) fn blob(&self, name: &str, limit: usize) -> Result<Vec<u8>, GitError> {
        let blob = self.local(&["cat-file", "blob", name], b"")?;
        if blob.len() > limit { Err(GitError::Answer) } else { Ok(blob) }
    }

    /// Makes a commit that holds one file.
    pub(super) fn commit(
        &self,
        file: &str,
        content: &[u8],
        parent: Option<&str>,
        message: &str,
        now: u64,
    ) -> Result<String, GitError> {
        let blob = object_id(&self.local(&["hash-object", "-w", "--stdin"], content)?)?;
        let listing = format!("100644 blob {blob}\t{file}\n");
        let tree = object_id(&self.local(&["mktree"], listing.as_bytes())?)?;
        let mut command = self.command(&["commit-tree", &tree]);
        if let Some(parent) = parent {
            command.args(["-p", parent]);
        }
        let date = format!("@{now} +0000");
        for role in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{role}_NAME"), IDENTITY);
            command.env(format!("GIT_{role}_EMAIL"), ADDRESS);
            command.env(format!("GIT_{role}_DATE"), &date);
        }
        object_id(&self.finish(command, message.as_bytes(), LOCAL_DEADLINE)?)
    }

    /// Lets a reference of the gitdir name a commit.
    pub(super) fn update_ref(&self, reference: &str, commit: &str) -> Result<(), GitError> {
        self.local(&["update-ref", reference, commit], b"").map(drop)
    }

    /// Whether the remote has this reference.
    pub(super) fn remote_has(&self, reference: &str) -> Result<bool, GitError> {
        let mut command = self.command(&["ls-remote", "--quiet"]);
        command.args(self.serving("upload-pack")).args(["--", self.remote.url(), reference]);
        let output = self.finish(command, b"", self.surroundings.deadline)?;
        Ok(!output.is_empty())
    }

    /// Fetches a reference of the remote into one of the gitdir.
    pub(super) fn fetch(&self, from: &str, to: &str) -> Result<(), GitError> {
        let mut command = self.command(&["fetch", "--quiet", "--no-tags", "--no-write-fetch-head"]);
        command.args(["--no-recurse-submodules", "--no-auto-maintenance"]);
        command.args(self.serving("upload-pack"));
        command.args(["--", self.remote.url(), &format!("+{from}:{to}")]);
        self.finish(command, b"", self.surroundings.deadline).map(drop)
    }

    /// Pushes a commit to a reference of the remote, never by force.
    pub(super) fn push(&self, commit: &str, reference: &str) -> Result<(), GitError> {
        let mut command = self.command(&["push", "--porcelain", "--no-verify", "--no-follow-tags"]);
        command.args(["--no-signed", "--recurse-submodules=no", "--no-force"]);
        command.args(self.serving("receive-pack"));
        command.args(["--", self.remote.url(), &format!("{commit}:{reference}")]);
        let ended = process::run(command, b"", OUTPUT_LIMIT, self.surroundings.deadline)?;
        if ended.success {
            return Ok(());
        }
        let output = String::from_utf8_lossy(&ended.output);
        let Some(line) = output.lines().find(|line| line.starts_with('!')) else {
            return Err(failure(&ended));
        };
        let reason = line.rsplit('\t').next().unwrap_or_default();
        if reason.starts_with("[rejected]") {
            return Err(GitError::NotFastForward);
        }
        Err(GitError::RemoteRejected { reason: reason.to_owned() })
    }

    /// How the other side is started when it is on this machine: there git runs it as our own
    /// process in the remote's folder, whose hooks and settings are not ours to obey.
    fn serving(&self, service: &str) -> Option<String> {
        if !self.remote.is_local() {
            return None;
        }
        let settings: Vec<_> = SETTINGS.iter().map(|setting| format!("-c '{setting}'")).collect();
        Some(format!(
            "--{service}=GIT_ALLOW_PROTOCOL=none GIT_NO_LAZY_FETCH=1 git {} \
             -c receive.denyCurrentBranch=refuse -c receive.denyNonFastForwards=true {service}",
            settings.join(" ")
        ))
    }

    fn local(&self, arguments: &[&str], input: &[u8]) -> Result<Vec<u8>, GitError> {
        self.finish(self.command(arguments), input, LOCAL_DEADLINE)
    }

    fn finish(
        &self,
        command: Command,
        input: &[u8],
        deadline: Duration,
    ) -> Result<Vec<u8>, GitError> {
        let ended = process::run(command, input, OUTPUT_LIMIT, deadline)?;
        if ended.success { Ok(ended.output) } else { Err(failure(&ended)) }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.env_clear().current_dir(self.directory);
        command.envs(self.surroundings.variables.iter().map(|(name, value)| (name, value)));
        if !self.surroundings.variables.iter().any(|(name, _)| name == "GIT_SSH_COMMAND") {
            command.env("GIT_SSH_COMMAND", "ssh -oBatchMode=yes");
        }
        // INVARIANT: the folders come out of a search path, so they join to one again.
        let path = std::env::join_paths(folders(self.surroundings)).unwrap_or_default();
        command
            .env("PATH", path)
            .env("HOME", self.directory)
            .env("GIT_DIR", self.directory)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_ATTR_NOSYSTEM", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_ALLOW_PROTOCOL", self.remote.protocol())
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("SSH_ASKPASS_REQUIRE", "never")
            .env("LC_ALL", "C");
        command.args(["--no-pager", "--no-replace-objects", "--no-optional-locks"]);
        SETTINGS.iter().for_each(|setting| {
            command.args(["-c", setting]);
        });
        command.args(arguments);
        command
    }
}

/// The absolute folders of the search path; a relative one could be the agent's.
fn folders(surroundings: &Surroundings) -> impl Iterator<Item = PathBuf> {
    std::env::split_paths(&surroundings.search_path).filter(|folder| folder.is_absolute())
}

fn failure(ended: &Ended) -> GitError {
    let errors = String::from_utf8_lossy(&ended.errors);
    let is_verdict = |line: &&str| line.starts_with("fatal:") || line.starts_with("error:");
    let (verdicts, others): (Vec<_>, Vec<_>) = errors.lines().partition(is_verdict);
    GitError::Failed { errors: [verdicts, others].concat().join(", ") }
}

/// Reads the one object name git printed.
fn object_id(output: &[u8]) -> Result<String, GitError> {
    let text = str::from_utf8(output).map_err(|_| GitError::Answer)?.trim_end_matches('\n');
    let is_hex = text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    if is_hex && [40, 64].contains(&text.len()) {
        Ok(text.to_owned())
    } else {
        Err(GitError::Answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_folders_are_not_searched() {
        let found = |path: &str| folders(&Surroundings::new(path.into())).collect::<Vec<_>>();
        assert_eq!(found("bin:.::/usr/bin:../x:"), [Path::new("/usr/bin")]);
        assert!(found("").is_empty());
    }

    #[test]
    fn object_names_are_read_strictly() {
        let name = "0123456789abcdef0123456789abcdef01234567";
        assert_eq!(object_id(format!("{name}\n").as_bytes()).ok().as_deref(), Some(name));
        for wrong in ["", "HEAD", &name[1..], &name.to_uppercase(), "--x"] {
            assert!(object_id(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
