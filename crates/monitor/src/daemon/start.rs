//! Starting a daemon where one is needed.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::wire::{Client, WireError};

/// How a daemon is started.
#[derive(Debug, Clone)]
pub struct Starter {
    /// The program; it must know `--state-dir DIR daemon`.
    pub program: PathBuf,
    /// It ends after nobody was connected for so many seconds.
    pub idle_exit: u64,
    /// What of the environment it gets. Nothing else: what starts it may be an agent's child, and a
    /// variable that makes the loader load something would reach into the daemon.
    pub variables: Vec<(OsString, OsString)>,
    /// Whether this process is confined: then nothing is started, for it would be confined too.
    pub confined: bool,
}

impl Starter {
    /// A daemon that ends when nobody was connected for 15 minutes.
    #[must_use]
    pub fn new(program: PathBuf) -> Self {
        Self { program, idle_exit: 15 * 60, variables: Vec::new(), confined: false }
    }
}

/// Why there is no daemon.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// There is one, or something in its place, that cannot be asked.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A confined process starts none.
    #[error("no daemon runs, and none is started from inside of `wardkeep run`: start it outside")]
    Confined,
    /// The program cannot be started.
    #[error("cannot start `{program}` ({error}): run `wardkeep daemon --foreground` to see more")]
    Spawn {
        /// The program.
        program: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// It ended at once.
    #[error("the daemon ended at once ({0}): run `wardkeep daemon --foreground` to see why")]
    Ended(ExitStatus),
    /// It does not answer.
    #[error(
        "the daemon did not come up within {0:?}: run `wardkeep daemon --foreground` to see why"
    )]
    Deadline(Duration),
}

/// How often a daemon that comes up is looked for.
const PAUSE: Duration = Duration::from_millis(2);
/// How long another one is waited for, after the one that was started has ended.
const AFTERMATH: Duration = Duration::from_millis(500);

/// Connects to the daemon of `state`, starting one if none runs. Whoever starts at the same time
/// gets the same one: of several, the first to take the lock stays and the others end. Says whether
/// it was started here.
///
/// # Errors
/// When there is none after `deadline`.
pub fn ensure_running(
    state: &Path,
    starter: &Starter,
    deadline: Duration,
) -> Result<(Client, bool), StartError> {
    let until = Instant::now() + deadline;
    match Client::connect(state, deadline) {
        Ok(client) => return Ok((client, false)),
        Err(error) if error.is_absent() => {}
        Err(error) => return Err(error.into()),
    }
    if starter.confined {
        return Err(StartError::Confined);
    }
    let mut child = spawn(state, starter)?;
    let mut ended: Option<(ExitStatus, Instant)> = None;
    loop {
        match Client::connect(state, deadline) {
            Ok(client) => return Ok((client, ended.is_none())),
            Err(error) if error.is_absent() => {}
            Err(error) => return Err(error.into()),
        }
        if ended.is_none() {
            ended = child.try_wait().ok().flatten().map(|status| (status, Instant::now()));
        }
        match ended {
            // It may have found another one that comes up, or came up and was ended.
            Some((status, at)) if at.elapsed() > AFTERMATH => {
                return Err(StartError::Ended(status));
            }
            _ if Instant::now() >= until => return Err(StartError::Deadline(deadline)),
            _ => std::thread::sleep(PAUSE),
        }
    }
}

fn spawn(state: &Path, starter: &Starter) -> Result<Child, StartError> {
    let idle = format!("{}s", starter.idle_exit);
    Command::new(&starter.program)
        .arg("--state-dir")
        .arg(state)
        .args(["daemon", "--foreground", "--detached", "--idle-exit", &idle])
        .env_clear()
        .envs(starter.variables.iter().map(|(name, value)| (name, value)))
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| StartError::Spawn { program: starter.program.clone(), error })
}
