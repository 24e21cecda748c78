//! The last steps before the program: session, terminal, limits, filter.

use std::os::fd::{AsFd as _, BorrowedFd};

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit};

use super::{FAILED, Set, tell};
use crate::error::{Failure, Step};
use crate::landlock::Rules;
use crate::notify;
use crate::sys::{self, Side};

/// Another process, for the program.
#[expect(unsafe_code, reason = "the child calls only `main` below, which allocates nothing")]
pub(super) fn fork() -> Result<Side, Errno> {
    // SAFETY: this process has one thread: it was itself made by a fork.
    unsafe { sys::fork_into(0) }
}

/// Becomes the program. Does not return.
pub(super) fn main(
    set: &Set,
    report: BorrowedFd<'_>,
    terminal: Option<BorrowedFd<'_>>,
    watcher: Option<BorrowedFd<'_>>,
) -> ! {
    let failure = become_program(set, terminal, watcher);
    tell(report, failure);
    sys::exit_now(FAILED)
}

fn become_program(
    set: &Set,
    terminal: Option<BorrowedFd<'_>>,
    watcher: Option<BorrowedFd<'_>>,
) -> Failure {
    if let Err(failure) = get_ready(set, terminal, watcher) {
        return failure;
    }
    let mut why = Errno::NOENT;
    for program in &set.programs {
        let errno = sys::execve(program, &set.arguments, &set.environment);
        // As shells do: one that may not be run is better to tell than one that is not there.
        if errno != Errno::NOENT && errno != Errno::NOTDIR {
            why = errno;
        }
        if !matches!(errno, Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) {
            break;
        }
    }
    Failure::at(Step::Exec, 0)(why)
}

fn get_ready(
    set: &Set,
    terminal: Option<BorrowedFd<'_>>,
    watcher: Option<BorrowedFd<'_>>,
) -> Result<(), Failure> {
    let session = Failure::at(Step::Session, 0);
    rustix::process::setsid().map_err(&session)?;
    if let Some(terminal) = terminal {
        sys::take_terminal(terminal).map_err(Failure::at(Step::Terminal, 2))?;
        let [stdin, stdout, stderr] = set.terminals;
        let failed = Failure::at(Step::Terminal, 3);
        if stdin {
            rustix::stdio::dup2_stdin(terminal).map_err(&failed)?;
        }
        if stdout {
            rustix::stdio::dup2_stdout(terminal).map_err(&failed)?;
        }
        if stderr {
            rustix::stdio::dup2_stderr(terminal).map_err(&failed)?;
        }
    }
    sys::reset_signals();
    if let (None, Some(abi)) = (&set.plan, set.landlock) {
        super::restrict(set, abi, false)?;
        // What watches over this process must not be ended by it.
        let failed = Failure::at(Step::Landlock, usize::MAX);
        if let Some(rules) = Rules::no_signals(abi).map_err(&failed)? {
            rules.restrict().map_err(&failed)?;
        }
    }
    limit(set)?;
    sys::close_from_on_exec(3).map_err(Failure::at(Step::Descriptors, 0))?;
    if let (Some((filter, _)), Some(watcher)) = (&set.watch, watcher) {
        let failed = |index| move |error| Failure::at(Step::Watch, index)(errno_of(&error));
        let listener = filter.install().map_err(failed(0))?;
        notify::hand_over(watcher, listener.as_fd()).map_err(failed(1))?;
    }
    if let Some(filter) = &set.filter {
        sys::seccomp(filter, false).map_err(Failure::at(Step::Seccomp, 0))?;
    }
    // Last of all: what it lets through for sure is the start of the program, and to tell that it failed.
    if let Some(profile) = &set.profile {
        sys::seccomp(profile.program(), profile.logs()).map_err(Failure::at(Step::Seccomp, 1))?;
    }
    Ok(())
}

fn errno_of(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

fn limit(set: &Set) -> Result<(), Failure> {
    let limits = &set.limits;
    // Programs reserve far more addresses than they fill; where a limit was asked for, it holds for both.
    let addresses = limits.memory.unwrap_or_else(|| set.memory.saturating_mul(32));
    for (index, (resource, most)) in [
        (Resource::Core, 0),
        (Resource::Nproc, limits.processes),
        (Resource::Data, limits.memory.unwrap_or(set.memory)),
        (Resource::As, addresses),
        (Resource::Fsize, limits.file_size),
        (Resource::Nofile, limits.open_files),
        (Resource::Memlock, 64 << 20),
    ]
    .into_iter()
    .enumerate()
    {
        let now = rustix::process::getrlimit(resource);
        let hard = now.maximum.map_or(most, |hard| hard.min(most));
        let soft = now.current.map_or(hard, |soft| soft.min(hard));
        let new = Rlimit { current: Some(soft), maximum: Some(hard) };
        rustix::process::setrlimit(resource, new).map_err(Failure::at(Step::Limits, index))?;
    }
    Ok(())
}
