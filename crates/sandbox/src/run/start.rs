//! The fork, and what is heard from the other side before the program runs.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType};
use rustix::pipe::PipeFlags;
use rustix::process::{WaitId, WaitIdOptions};

use super::{PASSED, available};
use crate::child::{self, Ends, Set};
use crate::error::{Failure, SandboxError, Step};
use crate::spec::Layer;
use crate::sys::{self, Mask, Side};
use crate::view::Guarded;

/// A program that runs.
pub(super) struct Started {
    pub(super) process: OwnedFd,
    pub(super) life: OwnedFd,
    pub(super) signals: OwnedFd,
    pub(super) mask: Mask,
}

/// Forks and waits until the program runs, or hears why it does not. `leave` is asked while the other side
/// sets everything up, and the program is started only if it gives leave. It gets the number of the other
/// side's process, and a way to tell it what was found in the workspace.
pub(super) fn start(
    set: &mut Set,
    leave: impl FnOnce(i32, BorrowedFd<'_>) -> Result<Vec<Guarded>, SandboxError>,
) -> Result<Started, SandboxError> {
    let failed = |errno| SandboxError::Step { step: Step::Prepare, subject: None, errno };
    let (report, far_report) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(failed)?;
    let (life, far_life) = rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )
    .map_err(failed)?;
    let (found, far_found) = rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )
    .map_err(failed)?;
    let mut kept = PASSED.to_vec();
    kept.push(libc::SIGCHLD);
    let mask = sys::block(&kept).map_err(failed)?;
    let signals = sys::signal_fd(&PASSED).map_err(failed);
    let started = signals.and_then(|signals| {
        let side = fork(set).map_err(|errno| no_process(set, errno))?;
        match side {
            Side::Child => {
                // Only the other side holds these, so that its end is seen.
                drop((report, life, found, signals));
                child::main(set, Ends { report: far_report, life: far_life, found: far_found })
            }
            Side::Parent { process, pid } => {
                drop((far_report, far_life, far_found));
                let given = leave(pid, found.as_fd());
                drop(found);
                let life = match given {
                    Ok(guarded) => {
                        set.guarded = guarded;
                        let _ = rustix::net::send(&life, &[child::GO], SendFlags::NOSIGNAL);
                        life
                    }
                    Err(error) => {
                        drop(life);
                        let id = WaitId::PidFd(process.as_fd());
                        let _ = rustix::process::waitid(id, WaitIdOptions::EXITED);
                        return Err(error);
                    }
                };
                match hear(&report) {
                    Ok(None) => Ok(Started { process, life, signals, mask }),
                    heard => {
                        drop(life);
                        let id = WaitId::PidFd(process.as_fd());
                        let _ = rustix::process::waitid(id, WaitIdOptions::EXITED);
                        Err(match heard {
                            Ok(Some(failure)) => explain(set, failure),
                            _ => SandboxError::Ended,
                        })
                    }
                }
            }
        }
    });
    if started.is_err() {
        sys::unblock(&mask);
    }
    started
}

#[expect(unsafe_code, reason = "the child calls only `child::main`")]
fn fork(set: &Set) -> Result<Side, Errno> {
    // The network comes later: it takes longest, and can be made aside.
    let namespaces = libc::CLONE_NEWUSER
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWCGROUP;
    let namespaces = if set.plan.is_some() { namespaces } else { 0 };
    if has_other_threads() {
        // SAFETY: the child allocates, and takes no other lock.
        unsafe { sys::fork_whole_into(namespaces) }
    } else {
        // SAFETY: no other thread holds a lock.
        unsafe { sys::fork_into(namespaces) }
    }
}

fn has_other_threads() -> bool {
    // A folder for each, besides its own two names.
    rustix::fs::stat(c"/proc/self/task").map_or(true, |data| data.st_nlink != 3)
}

/// What the other side says before it closes its end: nothing, if the program runs.
fn hear(report: &OwnedFd) -> Result<Option<Failure>, Errno> {
    let mut bytes = [0; 9];
    let mut filled = 0;
    while filled < bytes.len() {
        match rustix::io::read(report, &mut bytes[filled..]) {
            Ok(0) if filled == 0 => return Ok(None),
            Ok(0) => return Err(Errno::PIPE),
            Ok(read) => filled += read,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(Some(Failure::from_bytes(bytes)))
}

fn no_process(set: &Set, errno: Errno) -> SandboxError {
    let refused = matches!(
        errno,
        Errno::PERM | Errno::ACCESS | Errno::NOSPC | Errno::INVAL | Errno::NOSYS | Errno::USERS
    );
    if set.plan.is_some() && refused {
        return unavailable(Layer::Namespaces, available::why_no_namespaces(errno));
    }
    SandboxError::Step { step: Step::Fork, subject: None, errno }
}

fn unavailable(layer: Layer, why: String) -> SandboxError {
    SandboxError::Unavailable { layer, why, how: available::how(layer) }
}

/// A failure of the other side, in words.
fn explain(set: &Set, failure: Failure) -> SandboxError {
    let Failure { step, errno, index } = failure;
    let index = index as usize;
    let plan = set.plan.as_ref();
    let refused = matches!(errno, Errno::PERM | Errno::ACCESS);
    let first = matches!(step, Step::Map | Step::Network | Step::Private | Step::Root);
    // There may be no room for one more network.
    let full = step == Step::Network && matches!(errno, Errno::NOSPC | Errno::USERS);
    if plan.is_some() && (refused && first || full) {
        return unavailable(Layer::Namespaces, available::why_no_namespaces(errno));
    }
    if step == Step::Proc && refused {
        let why = "the kernel refuses another /proc, as where parts of it are masked";
        return unavailable(Layer::Proc, why.to_owned());
    }
    let words = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    if step == Step::Exec {
        let program = set.programs.first().map(|program| words(program)).unwrap_or_default();
        let name = match set.programs.len() {
            1 => program,
            _ => program.rsplit('/').next().unwrap_or_default().to_owned(),
        };
        return SandboxError::Program { program: name, errno };
    }
    let subject = match (step, plan) {
        (Step::Source | Step::Mount, Some(plan)) => {
            plan.mounts.get(index).map(|mount| format!("/{}", words(&mount.target)))
        }
        (Step::Names, Some(_)) => {
            set.guarded.get(index).map(|guarded| format!("/{}", words(&guarded.path)))
        }
        (Step::Landlock, Some(plan)) => plan.rules.get(index).map(|(path, _)| words(path)),
        (Step::Folder, Some(plan)) => {
            let folders = plan.folders.iter().map(|(path, _)| path);
            let mut all = folders.chain(&plan.files);
            all.nth(index).map(|path| format!("/{}", words(path)))
        }
        (Step::Directory, plan) => Some(words(plan.map_or(&set.directory, |plan| &plan.directory))),
        _ => None,
    };
    SandboxError::Step { step, subject, errno }
}

/// A folder for temporary files where there is no private `/tmp`; it is removed with this.
#[derive(Debug)]
pub(super) struct PrivateFolder(PathBuf);

impl PrivateFolder {
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Makes one, which no other user can enter.
pub(super) fn private_folder() -> Result<PrivateFolder, SandboxError> {
    use std::os::unix::fs::DirBuilderExt as _;
    let base = Path::new("/tmp");
    for attempt in 0..64_u32 {
        let path = base.join(format!("wardkeep-run-{}-{attempt}", std::process::id()));
        match std::fs::DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(PrivateFolder(path)),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                let what = format!("cannot hold temporary files ({error})");
                return Err(SandboxError::Path { path: base.to_owned(), what });
            }
        }
    }
    let what = "holds too many folders of earlier runs: remove them".to_owned();
    Err(SandboxError::Path { path: base.to_owned(), what })
}
