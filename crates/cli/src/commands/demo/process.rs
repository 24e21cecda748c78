//! The hostile processes of the scenes: started, waited for, and ended whatever happens.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use wardkeep_sandbox::names::PathPattern;
use wardkeep_sandbox::{Prepared, SandboxError, Spec};

use super::stage::broken;
use crate::error::CliError;

/// How long a script may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// How long a signal may take that nothing keeps from its goal.
pub(super) const SOON: Duration = Duration::from_secs(5);
/// How long one is waited for that must not get there.
pub(super) const A_MOMENT: Duration = Duration::from_millis(250);
/// Longest question of a script.
const LONGEST: u64 = 4096;

/// A process that is ended when nobody needs it any more.
pub(super) struct Process(Child);

impl Process {
    /// Somebody at work: a process of the owner that others want to end.
    pub(super) fn at_work() -> Result<Self, CliError> {
        Ok(Self(quiet(Command::new("sleep").arg("60")).spawn().map_err(broken)?))
    }

    pub(super) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Whether it ends within that time: a signal takes a moment on a busy machine.
    pub(super) fn ends_within(&mut self, patience: Duration) -> Result<bool, CliError> {
        let until = Instant::now() + patience;
        loop {
            if self.0.try_wait().map_err(broken)?.is_some() {
                return Ok(true);
            }
            if Instant::now() >= until {
                return Ok(false);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn wait(mut self) -> Result<(), CliError> {
        self.ends_within(PATIENCE).map(drop)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn quiet(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null())
}

fn script(shell: &Path, words: &[impl AsRef<OsStr>], folder: &Path, home: &Path) -> Command {
    let mut command = Command::new(shell);
    command.args(words).current_dir(folder).env_clear();
    command.env("HOME", home).env("PATH", "/usr/bin:/bin");
    quiet(&mut command);
    command
}

/// Runs a script as any program runs.
pub(super) fn free(
    shell: &Path,
    words: &[impl AsRef<OsStr>],
    folder: &Path,
    home: &Path,
) -> Result<(), CliError> {
    Process(script(shell, words, folder, home).spawn().map_err(broken)?).wait()
}

/// Runs a script as `wardkeep run` does, in a workspace, with a home and a hidden state directory.
pub(super) fn confined(
    shell: &Path,
    words: &[OsString],
    (work, home): (PathBuf, PathBuf),
    state: PathBuf,
    protect: Vec<PathPattern>,
) -> Result<(), SandboxError> {
    let mut command = vec![shell.as_os_str().to_owned()];
    command.extend(words.iter().cloned());
    let mut spec = Spec::new(work, command);
    spec.protect = protect;
    spec.hidden.push(state);
    spec.environment =
        vec![("HOME".into(), home.clone().into()), ("PATH".into(), "/usr/bin:/bin".into())];
    spec.home = Some(home);
    spec.timeout = Some(PATIENCE);
    spec.terminal = false;
    Prepared::new(spec)?.spawn()?.wait().map(drop)
}

/// Runs a script that asks before each step, a line a question, and is answered `yes` or `no`.
pub(super) fn asking(
    shell: &Path,
    words: &[impl AsRef<OsStr>],
    folder: &Path,
    mut judge: impl FnMut(&str) -> Result<bool, CliError>,
) -> Result<(), CliError> {
    let mut command = script(shell, words, folder, folder);
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(broken)?;
    let mut process = Process(child);
    let (Some(mut answers), Some(questions)) = (process.0.stdin.take(), process.0.stdout.take())
    else {
        return Ok(());
    };
    let mut questions = BufReader::new(questions);
    loop {
        let mut line = String::new();
        let read = questions.by_ref().take(LONGEST).read_line(&mut line).map_err(broken)?;
        if read == 0 {
            break;
        }
        let answer: &[u8] = if judge(line.trim_end())? { b"yes\n" } else { b"no\n" };
        // One that has ended asks no more.
        let _ = answers.write_all(answer);
    }
    drop(answers);
    process.wait()
}

/// Whoever wants what is to be stolen, on this machine's loopback.
pub(super) struct Thief {
    listener: TcpListener,
    pub(super) port: u16,
}

impl Thief {
    pub(super) fn listen() -> Result<Self, CliError> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(broken)?;
        listener.set_nonblocking(true).map_err(broken)?;
        let port = listener.local_addr().map_err(broken)?.port();
        Ok(Self { listener, port })
    }

    /// What came.
    pub(super) fn got(&self) -> String {
        let mut sent = Vec::new();
        if let Ok((stream, _)) = self.listener.accept() {
            let _ = stream.set_nonblocking(false);
            let _ = stream.set_read_timeout(Some(Duration::from_secs(1)));
            let _ = stream.take(LONGEST).read_to_end(&mut sent);
        }
        String::from_utf8_lossy(&sent).into_owned()
    }
}

/// A shell that can open connections, or any.
pub(super) fn shell() -> Option<&'static Path> {
    let known = ["/bin/bash", "/usr/bin/bash"];
    known.into_iter().map(Path::new).find(|path| path.exists())
}

/// Why programs cannot be confined, in a few words; `wardkeep sandbox audit` has the rest.
pub(super) fn unconfined(error: &SandboxError) -> String {
    let told = error.to_string();
    let first = told.split(';').next().unwrap_or_default();
    format!("programs cannot be confined here: {first} (see `wardkeep sandbox audit`)")
}
