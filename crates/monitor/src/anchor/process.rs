//! A program run with bounded input, output, file size and time.

use std::io::{self, Read, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use thiserror::Error;

/// The most bytes given to a program: what fits into a pipe, so that writing never blocks.
pub(super) const MAX_INPUT_BYTES: usize = 64 * 1024;

const MAX_FILE_BYTES: u64 = 256 * 1024 * 1024;
// A program left behind by ours may hold its output open; what was read by then is enough.
const OUTPUT_GRACE: Duration = Duration::from_secs(1);
const READ_BYTES: usize = 8 * 1024;

/// What a program that ended left behind.
#[derive(Debug)]
pub(super) struct Ended {
    /// Whether it ended with exit status 0.
    pub(super) success: bool,
    /// Its output, cut off at the limit.
    pub(super) output: Vec<u8>,
    /// Its error output, cut off at the limit.
    pub(super) errors: Vec<u8>,
}

/// Why a program gave no result.
#[derive(Debug, Error)]
pub(super) enum ProcessError {
    /// It could not be started or watched.
    #[error("it does not start: {0}")]
    Start(#[from] io::Error),
    /// It was given more than [`MAX_INPUT_BYTES`].
    #[error("its input is too large")]
    Input,
    /// It ran too long and was killed.
    #[error("it took more than {} seconds and was stopped", .0.as_secs())]
    Deadline(Duration),
}

/// Output and error output.
type Outputs = (Vec<u8>, Vec<u8>);

enum Event {
    Exited,
    OutputEnded,
}

/// Runs a program in a process group of its own; at the deadline the whole group is killed.
pub(super) fn run(
    mut command: Command,
    input: &[u8],
    output_limit: usize,
    deadline: Duration,
) -> Result<Ended, ProcessError> {
    if input.len() > MAX_INPUT_BYTES {
        return Err(ProcessError::Input);
    }
    let until = Instant::now() + deadline;
    command.process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let result = watch(&mut child, input, output_limit, until);
    if !matches!(result, Ok(Some(_))) {
        // The child is not reaped yet, so the number still names its group.
        let _ = rustix::process::kill_process_group(Pid::from_child(&child), Signal::KILL);
        let _ = child.kill();
    }
    let success = child.wait()?.success();
    let (output, errors) = result?.ok_or(ProcessError::Deadline(deadline))?;
    Ok(Ended { success, output, errors })
}

/// Feeds the child and waits until it has exited, which leaves it to be reaped; `None` at the
/// deadline.
fn watch(
    child: &mut Child,
    input: &[u8],
    output_limit: usize,
    until: Instant,
) -> Result<Option<Outputs>, ProcessError> {
    limit_file_size(child);
    let (sender, events) = mpsc::channel();
    let output = collect(child.stdout.take(), output_limit, sender.clone())?;
    let errors = collect(child.stderr.take(), output_limit, sender.clone())?;
    let pid = Pid::from_child(child);
    thread::Builder::new().spawn(move || {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let _ = rustix::io::retry_on_intr(|| rustix::process::waitid(WaitId::Pid(pid), options));
        let _ = sender.send(Event::Exited);
    })?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that ends without reading all of it says why by its exit status.
        let _ = stdin.write_all(input);
    }
    let Some(ended) = wait_for_exit(&events, until) else { return Ok(None) };
    wait_for_output(&events, ended, until.min(Instant::now() + OUTPUT_GRACE));
    Ok(Some((take(&output), take(&errors))))
}

/// Waits for the exit and gives the number of outputs that ended before it.
fn wait_for_exit(events: &Receiver<Event>, until: Instant) -> Option<usize> {
    let mut ended = 0;
    loop {
        match events.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Event::Exited) => return Some(ended),
            Ok(Event::OutputEnded) => ended += 1,
            Err(_) => return None,
        }
    }
}

fn wait_for_output(events: &Receiver<Event>, mut ended: usize, until: Instant) {
    while ended < 2 {
        match events.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(_) => ended += 1,
            Err(_) => return,
        }
    }
}

/// Reads an output to its end on a thread of its own and keeps the first `limit` bytes.
fn collect(
    output: Option<impl Read + Send + 'static>,
    limit: usize,
    events: Sender<Event>,
) -> io::Result<Arc<Mutex<Vec<u8>>>> {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let shared = Arc::clone(&kept);
    thread::Builder::new().spawn(move || {
        let mut buffer = [0; READ_BYTES];
        if let Some(mut output) = output {
            while let Ok(count @ 1..) = output.read(&mut buffer) {
                let mut kept = shared.lock().unwrap_or_else(PoisonError::into_inner);
                let room = limit.saturating_sub(kept.len()).min(count);
                kept.extend_from_slice(buffer.get(..room).unwrap_or_default());
            }
        }
        let _ = events.send(Event::OutputEnded);
    })?;
    Ok(kept)
}

fn take(kept: &Mutex<Vec<u8>>) -> Vec<u8> {
    std::mem::take(&mut *kept.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Bounds what the program and those it starts can write to one file. It is set just after the
/// start, long before any of them has heard from a remote.
#[cfg(target_os = "linux")]
fn limit_file_size(child: &Child) {
    use rustix::process::{Resource, Rlimit};
    let limit = Rlimit { current: Some(MAX_FILE_BYTES), maximum: Some(MAX_FILE_BYTES) };
    let _ = rustix::process::prlimit(Some(Pid::from_child(child)), Resource::Fsize, limit);
}

#[cfg(not(target_os = "linux"))]
fn limit_file_size(_child: &Child) {
    let _ = MAX_FILE_BYTES;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(script);
        command
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn input_and_outputs_pass_and_are_cut_off() {
        let script = "cat; echo wrong >&2; exit 3";
        let ended = run(shell(script), b"some text", 4, LONG).unwrap();
        assert_eq!(
            (ended.success, &*ended.output, &*ended.errors),
            (false, &b"some"[..], &b"wron"[..])
        );
        let ended = run(shell("head -c 1000000 /dev/zero"), b"", 10, LONG).unwrap();
        assert_eq!((ended.success, ended.output.len()), (true, 10));
        let ended = run(shell("exec <&-; true"), &[b'x'; MAX_INPUT_BYTES], 10, LONG).unwrap();
        assert!(ended.success);
        assert!(matches!(
            run(shell("true"), &[0; MAX_INPUT_BYTES + 1], 1, LONG),
            Err(ProcessError::Input)
        ));
        assert!(matches!(
            run(Command::new("/nowhere/git"), b"", 1, LONG),
            Err(ProcessError::Start(_))
        ));
    }

    #[test]
    fn a_program_and_its_children_are_stopped_at_the_deadline() {
        let started = Instant::now();
        let directory = tempfile::tempdir().unwrap();
        let pid_file = directory.path().join("pid");
        let script = format!("sleep 1000 & echo $! > {}; wait", pid_file.display());
        let result = run(shell(&script), b"", 10, Duration::from_secs(5));
        assert!(matches!(result, Err(ProcessError::Deadline(_))));
        assert!(started.elapsed() < LONG);
        let child: i32 = std::fs::read_to_string(pid_file).unwrap().trim().parse().unwrap();
        // Gone, or dead and waiting for whoever inherited it; the signal may still be under way.
        let alive = || {
            let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
            !stat.is_empty() && !stat.contains(") Z ")
        };
        while alive() && started.elapsed() < LONG {
            thread::yield_now();
        }
        assert!(!alive());
    }

    #[test]
    fn a_program_left_behind_does_not_hold_us_up() {
        let started = Instant::now();
        let ended = run(shell("sleep 20 & echo done"), b"", 10, LONG).unwrap();
        assert_eq!((ended.success, &*ended.output), (true, &b"done\n"[..]));
        assert!(started.elapsed() < Duration::from_secs(15));
    }
}
