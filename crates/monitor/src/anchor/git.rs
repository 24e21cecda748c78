//! The git anchor: each seal a commit, pushed without force to a branch of a remote.
//!
//! The commits lie in a bare gitdir of our own; git runs with a clean environment and with every
//! setting off by which a repository, a remote or a home directory could make it start a program.
//! The history of the branch is the anchor, so the remote must refuse forced pushes.

mod command;
mod remote;

use std::fs;
use std::path::{Path, PathBuf};

use wardkeep_evidence::checkpoint::Checkpoint;
use wardkeep_evidence::seal::LogPublic;

pub use self::command::VARIABLES;
use self::command::{Git, GitError};
pub use self::remote::{GitRemote, GitRemoteError};
use super::{Anchor, AnchorError, MAX_SEAL_BYTES, Receipt, Submission, Surroundings};
use super::{shown, signed_head, storage};

const CHECKPOINT_FILE: &str = "checkpoint";
// The last commit the remote took from us.
const HEAD_REF: &str = "refs/wardkeep/head";
// The head of the remote's branch as last fetched.
const REMOTE_REF: &str = "refs/wardkeep/remote";
const STALE_LOCKS: [&str; 6] = [
    "refs/wardkeep/head.lock",
    "refs/wardkeep/remote.lock",
    "packed-refs.lock",
    "shallow.lock",
    "config.lock",
    "HEAD.lock",
];

/// A branch of a git remote.
#[derive(Debug, Clone)]
pub struct GitAnchor {
    name: String,
    remote: GitRemote,
    branch: String,
    directory: PathBuf,
    surroundings: Surroundings,
}

impl GitAnchor {
    /// An anchor on a branch of a remote, with its commits in the gitdir `directory`, which is made
    /// when it is missing and which nobody else may write to.
    pub fn new(
        name: &str,
        url: &str,
        branch: &str,
        directory: &Path,
        surroundings: Surroundings,
    ) -> Result<Self, AnchorError> {
        let refuse = |error: &dyn std::fmt::Display| AnchorError::refused(name, error);
        let remote = GitRemote::parse(url).map_err(|error| refuse(&error))?;
        remote::check_branch(branch).map_err(|error| refuse(&error))?;
        command::check_variables(&surroundings).map_err(|error| refuse(&error))?;
        Ok(Self {
            name: name.to_owned(),
            remote,
            branch: branch.to_owned(),
            directory: directory.to_owned(),
            surroundings,
        })
    }

    /// The gitdir ready for use. The caller lets no two processes use it at a time.
    fn open(&self) -> Result<Git<'_>, AnchorError> {
        let local = |error| self.local(&format!("`{}`: {error}", self.directory.display()));
        let parent = self.directory.parent().unwrap_or(&self.directory);
        storage::private_directory(parent).map_err(local)?;
        storage::private_directory(&self.directory).map_err(local)?;
        let git = Git::find(&self.surroundings, &self.directory, &self.remote)
            .map_err(|error| self.fault(error))?;
        if !self.directory.join("HEAD").exists() {
            git.init().map_err(|error| self.fault(error))?;
        }
        for lock in STALE_LOCKS {
            // Left by a git that was killed; it would keep the next one from working.
            let _ = fs::remove_file(self.directory.join(lock));
        }
        Ok(git)
    }

    fn local(&self, reason: &str) -> AnchorError {
        let advice = "delete this folder, it is filled again from the remote";
        AnchorError::local(&self.name, format!("{}; {advice}", shown(reason)))
    }

    /// An error of a step that stays on this machine.
    fn fault(&self, error: GitError) -> AnchorError {
        match error {
            GitError::Missing => AnchorError::refused(&self.name, error),
            _ => self.local(&format!("`{}`: {error}", self.directory.display())),
        }
    }

    /// An error of a step that talks to the remote.
    fn remote_error(&self, error: &GitError) -> AnchorError {
        match error {
            GitError::Failed { errors } if command::is_refusal(errors) => {
                let advice = "check the url and the access rights";
                AnchorError::refused(&self.name, format!("{}; {advice}", shown(errors)))
            }
            _ => AnchorError::unreachable(&self.name, error),
        }
    }

    /// What the commit holds, when the log's key signed it.
    fn head_in(
        &self,
        git: &Git<'_>,
        commit: &str,
        log: &LogPublic,
    ) -> Result<Option<(Checkpoint, String)>, AnchorError> {
        let blob = match git.blob(&format!("{commit}:{CHECKPOINT_FILE}"), MAX_SEAL_BYTES) {
            Ok(blob) => blob,
            Err(GitError::Failed { .. }) => return Ok(None),
            Err(error) => return Err(self.fault(error)),
        };
        let Ok(text) = String::from_utf8(blob) else { return Ok(None) };
        Ok(signed_head(&text, log).map(|head| (head, text)))
    }

    /// Fetches the head of the branch and reads it; `None` when the remote has no such branch.
    fn fetch(
        &self,
        git: &Git<'_>,
        log: &LogPublic,
    ) -> Result<Option<(String, Checkpoint)>, AnchorError> {
        let full_name = format!("refs/heads/{}", self.branch);
        if !git.remote_has(&full_name).map_err(|error| self.remote_error(&error))? {
            return Ok(None);
        }
        git.fetch(&full_name, REMOTE_REF).map_err(|error| self.remote_error(&error))?;
        let commit = git.commit_of(REMOTE_REF).map_err(|error| self.fault(error))?;
        let commit = commit.ok_or_else(|| self.local("the fetched branch is not there"))?;
        match self.head_in(git, &commit, log)? {
            Some((head, _)) => Ok(Some((commit, head))),
            None => {
                let reason = format!(
                    "branch `{}` holds commits that are not of this log; give it a branch of its own",
                    self.branch
                );
                Err(AnchorError::refused(&self.name, reason))
            }
        }
    }

    /// Makes the commit and pushes it; `None` when the remote's branch does not lead to it.
    fn push(
        &self,
        git: &Git<'_>,
        submission: &Submission<'_>,
        parent: Option<&str>,
        now: u64,
    ) -> Result<Option<String>, AnchorError> {
        let message = format!("seal of {} entries\n", submission.checkpoint.size);
        let text = submission.note.to_string();
        let commit = git
            .commit(CHECKPOINT_FILE, text.as_bytes(), parent, &message, now)
            .map_err(|error| self.fault(error))?;
        self.push_commit(git, &commit).map(|pushed| pushed.then_some(commit))
    }

    fn push_commit(&self, git: &Git<'_>, commit: &str) -> Result<bool, AnchorError> {
        match git.push(commit, &format!("refs/heads/{}", self.branch)) {
            Ok(()) => {}
            Err(GitError::NotFastForward) => return Ok(false),
            Err(GitError::RemoteRejected { reason }) => {
                let advice = "let the remote's owner allow pushes to this branch";
                let reason = format!("the remote rejects it: {}; {advice}", shown(&reason));
                return Err(AnchorError::refused(&self.name, reason));
            }
            Err(error) => return Err(self.remote_error(&error)),
        }
        git.update_ref(HEAD_REF, commit).map_err(|error| self.fault(error))?;
        Ok(true)
    }

    fn receipt(&self, submission: &Submission<'_>, commit: &str, now: u64) -> Receipt {
        Receipt {
            anchor: self.name.clone(),
            size: submission.checkpoint.size,
            at: now,
            cosigned: None,
            detail: format!(
                "commit {commit} on `{}`; holds only if the remote denies forced pushes and deletions",
                self.branch
            ),
        }
    }
}

impl Anchor for GitAnchor {
    fn name(&self) -> &str {
        &self.name
    }

    fn kind(&self) -> &'static str {
        "git"
    }

    fn put(&mut self, submission: &Submission<'_>, now: u64) -> Result<Receipt, AnchorError> {
        submission.check(&self.name)?;
        let git = self.open()?;
        let parent = git.commit_of(HEAD_REF).map_err(|error| self.fault(error))?;
        let held = match &parent {
            Some(commit) => self.head_in(&git, commit, submission.log)?,
            None => None,
        };
        // A gitdir that holds another log's commits goes for nothing; the remote decides.
        let parent = held.as_ref().and(parent);
        if let Some((head, text)) = &held {
            submission.compare(&self.name, head)?;
            if let Some(commit) = parent.as_ref().filter(|_| *text == submission.note.to_string())
                && self.push_commit(&git, commit)?
            {
                return Ok(self.receipt(submission, commit, now));
            }
        }
        if let Some(commit) = self.push(&git, submission, parent.as_deref(), now)? {
            return Ok(self.receipt(submission, &commit, now));
        }
        let fetched = self.fetch(&git, submission.log)?;
        if let Some((_, head)) = &fetched {
            submission.compare(&self.name, head)?;
        }
        let parent = fetched.map(|(commit, _)| commit);
        match self.push(&git, submission, parent.as_deref(), now)? {
            Some(commit) => Ok(self.receipt(submission, &commit, now)),
            None => Err(AnchorError::unreachable(&self.name, "the branch changed meanwhile")),
        }
    }

    fn latest(&mut self, log: &LogPublic) -> Result<Option<u64>, AnchorError> {
        let git = self.open()?;
        Ok(self.fetch(&git, log)?.map(|(_, head)| head.size))
    }
}
