//! Names that must not come into being, tried from inside.

mod hostile;
mod ordinary;
mod refused;

use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::mpsc;

use tempfile::TempDir;
use wardkeep_sandbox::notify::{Filter, Names, Refusal, Summary, Supervisor, hand_over, take_over};

/// A workspace, and programs that run in it under a supervisor.
pub(crate) struct Lab {
    pub(crate) folder: TempDir,
    pub(crate) names: Names,
}

/// What a program did.
pub(crate) struct Ran {
    pub(crate) output: Output,
    pub(crate) refusals: Vec<Refusal>,
    pub(crate) summary: Summary,
}

impl Ran {
    pub(crate) fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).into_owned()
    }

    pub(crate) fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    #[track_caller]
    pub(crate) fn succeeded(&self) {
        assert!(
            self.output.status.success(),
            "{}\n{}\n{}\n{:#?}",
            self.output.status,
            self.stdout(),
            self.stderr(),
            self.refusals
        );
    }
}

impl Lab {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let work = folder.path().canonicalize().unwrap().join("ws");
        std::fs::create_dir(&work).unwrap();
        let names = Names::new().root(&work);
        Self { folder, names }
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("ws")
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.work().join(name).symlink_metadata().is_ok()
    }

    pub(crate) fn put(&self, name: &str, text: &str) {
        let path = self.work().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.work().join(name)).unwrap()
    }

    /// Runs a script in the workspace.
    pub(crate) fn bash(&self, script: &str) -> Ran {
        self.run(Command::new("bash").args(["-c", script]))
    }

    /// Runs a program in the workspace.
    pub(crate) fn run(&self, command: &mut Command) -> Ran {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let filter = Filter::new();
        git_settings(command).current_dir(self.work());
        let install = move || {
            rustix::thread::set_no_new_privs(true)?;
            let listener = filter.install()?;
            hand_over(theirs.as_fd(), listener.as_fd())
        };
        // SAFETY: only system calls, and nothing is allocated.
        #[expect(unsafe_code, reason = "a filter is installed after the fork")]
        unsafe {
            command.pre_exec(install)
        };
        let (send, receive) = mpsc::channel();
        let names = self.names.clone();
        let supervisor = std::thread::spawn(move || {
            let listener = take_over(ours.as_fd()).unwrap();
            let tell = move |refusal: &Refusal| drop(send.send(refusal.clone()));
            Supervisor::new(listener, names, tell).unwrap().run(None)
        });
        let output = command.output().unwrap();
        let summary = supervisor.join().unwrap();
        Ran { output, refusals: receive.into_iter().collect(), summary }
    }

    /// The same program without a supervisor.
    pub(crate) fn bare(&self, command: &mut Command) -> Output {
        git_settings(command).current_dir(self.work()).output().unwrap()
    }
}

fn git_settings(command: &mut Command) -> &mut Command {
    command
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_AUTHOR_NAME", "a")
        .env("GIT_AUTHOR_EMAIL", "a@example.com")
        .env("GIT_COMMITTER_NAME", "a")
        .env("GIT_COMMITTER_EMAIL", "a@example.com")
}

/// Every path below a folder.
pub(crate) fn all_paths(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = vec![folder.to_owned()];
    while let Some(folder) = left.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                left.push(entry.path());
            }
            found.push(entry.path());
        }
    }
    found
}
