//! The confined side, from the fork to the program. Nothing here panics; it may allocate, for the fork has
//! seen to other threads.

mod aside;
mod found;
mod init;
mod opened;
mod program;
mod root;

use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Signal};
use rustix::termios::{Termios, Winsize};

use crate::error::{Failure, Step};
use crate::landlock::{Access, Rules};
use crate::notify;
use crate::seccomp::SeccompProfile;
use crate::spec::Limits;
use crate::sys::{self, Arguments, Instruction};
use crate::view::{Guarded, Plan, Shows};

pub(crate) use aside::LARGEST_COPY;
pub(crate) use found::tell_found;
pub(crate) use init::{
    ALL_TOLD, ASKED, ENDED, GO, LISTENER, LONGEST_MESSAGE, MADE, MODELS, NEW, OUTSIDE, REFUSED,
    SIGNAL, STUCK, TELL, TERMINAL, UNMADE, WANTED, WITHDRAWN, answer,
};

/// All that the confined side needs, made before the fork.
pub(crate) struct Set {
    /// The new root; none, where there are no namespaces.
    pub(crate) plan: Option<Plan>,
    /// What was found in the workspace, on the side that has looked.
    pub(crate) guarded: Vec<Guarded>,
    /// What goes into the files that map the user.
    pub(crate) map: [CString; 2],
    /// Size of the new root, for `tmpfs`.
    pub(crate) size: CString,
    /// Landlock rules in place of the plan's.
    pub(crate) rules: Vec<(CString, Access)>,
    /// Where the program starts, in place of the plan's.
    pub(crate) directory: CString,
    /// Version of Landlock; none, where it is left out.
    pub(crate) landlock: Option<i32>,
    /// What tells of calls that make names, and which names must not be made.
    pub(crate) watch: Option<(notify::Filter, notify::Names)>,
    /// Files that are held and have other names besides, by device and inode; known on the confined side.
    pub(crate) linked: Vec<(u64, u64)>,
    /// Locked while a name is looked at and made.
    pub(crate) lock: Option<Arc<File>>,
    /// Whether it is told what was looked for and not found.
    pub(crate) learns: bool,
    /// Whether the other side is asked about protected names.
    pub(crate) asks: bool,
    /// What is shown, where the other side is asked for files that are not.
    pub(crate) reads: Option<Arc<Shows>>,
    /// All files of the machine, on mounts that cannot be written to, for the other side; known on the confined side.
    pub(crate) outside: Option<OwnedFd>,
    /// How long a call may take that makes a name.
    pub(crate) patience: Duration,
    /// The filter; none, where it is left out.
    pub(crate) filter: Option<Vec<Instruction>>,
    /// One more, of whoever started it.
    pub(crate) profile: Option<SeccompProfile>,
    /// Whether `/proc` may be left out.
    pub(crate) without_proc: bool,
    /// Names under which the program may be found.
    pub(crate) programs: Vec<CString>,
    pub(crate) arguments: Arguments,
    pub(crate) environment: Arguments,
    pub(crate) limits: Limits,
    pub(crate) memory: u64,
    /// Which of the first three descriptors are terminals.
    pub(crate) terminals: [bool; 3],
    /// Size and settings of the terminal outside.
    pub(crate) window: Option<Winsize>,
    pub(crate) settings: Option<Termios>,
    /// Port on which the proxy is found inside.
    pub(crate) proxy: Option<u16>,
    /// Port on which the proxy of model APIs is found inside.
    pub(crate) models: Option<u16>,
    /// Where opened sources are kept; its room is made before the fork.
    pub(crate) sources: Vec<OwnedFd>,
}

/// The ends of what this process is connected to the other with.
pub(crate) struct Ends {
    /// Failures go here; it closes when the program starts.
    pub(crate) report: OwnedFd,
    /// Signals come from here, the end goes there. When it closes, everything ends.
    pub(crate) life: OwnedFd,
    /// What was found in the workspace comes from here.
    pub(crate) found: OwnedFd,
}

/// Sets everything up and watches over the program. Does not return.
pub(crate) fn main(set: &mut Set, ends: Ends) -> ! {
    let Ends { report, life, found } = ends;
    let code = match confine(set, found) {
        Ok(()) => init::run(set, report, life),
        Err(failure) => {
            tell(report.as_fd(), failure);
            FAILED
        }
    };
    sys::exit_now(code)
}

/// What this process ends with where the set-up failed; the other side has heard more.
const FAILED: i32 = 125;

/// Tells the other side what failed.
pub(crate) fn tell(report: BorrowedFd<'_>, failure: Failure) {
    let _ = rustix::io::write(report, &failure.to_bytes());
}

/// Everything that holds for this process and all that it starts.
fn confine(set: &mut Set, found: OwnedFd) -> Result<(), Failure> {
    let tie = Failure::at(Step::Tie, 0);
    if set.plan.is_some() {
        // The first process of its namespace: the others end with it.
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(&tie)?;
        let network = aside::Network::begin()?;
        map_user(set)?;
        root::change(set, found.as_fd())?;
        network.enter()?;
    } else {
        // Whoever outlives its parent comes to this process, which ends it.
        let own = rustix::process::getpid();
        rustix::process::set_child_subreaper(Some(own)).map_err(&tie)?;
    }
    // Nobody inside may look into this process, whatever it has open.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(&tie)?;
    let directory = set.plan.as_ref().map_or(&set.directory, |plan| &plan.directory);
    rustix::process::chdir(directory.as_c_str()).map_err(Failure::at(Step::Directory, 0))?;
    let drop = Failure::at(Step::Capabilities, 0);
    rustix::thread::set_no_new_privs(true).map_err(&drop)?;
    sys::drop_capabilities().map_err(&drop)?;
    if let Some(abi) = set.landlock {
        restrict(set, abi, true)?;
    }
    Ok(())
}

fn map_user(set: &Set) -> Result<(), Failure> {
    let write = |path: &std::ffi::CStr, text: &[u8], index| {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        let file = rustix::fs::open(path, flags, Mode::empty());
        let done = file.and_then(|file| rustix::io::write(&file, text));
        done.map(drop).map_err(Failure::at(Step::Map, index))
    };
    write(c"/proc/self/setgroups", b"deny", 0)?;
    write(c"/proc/self/uid_map", set.map[0].to_bytes(), 1)?;
    write(c"/proc/self/gid_map", set.map[1].to_bytes(), 2)
}

/// Puts the rules in force. Without a `/proc` of its own, only what watches over the program reads it.
fn restrict(set: &Set, abi: i32, watching: bool) -> Result<(), Failure> {
    let namespaces = set.plan.is_some();
    let failed = Failure::at(Step::Landlock, usize::MAX);
    let rules = Rules::new(abi, !namespaces).map_err(&failed)?;
    let listed = set.plan.as_ref().map_or(&set.rules, |plan| &plan.rules);
    for (index, (path, access)) in listed.iter().enumerate() {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        match rustix::fs::open(path.as_c_str(), flags, Mode::empty()) {
            Ok(at) => {
                allow(&rules, at.as_fd(), *access).map_err(Failure::at(Step::Landlock, index))?
            }
            // Not there: nothing to allow.
            Err(Errno::NOENT | Errno::ACCESS) => {}
            Err(errno) => return Err(Failure::at(Step::Landlock, index)(errno)),
        }
    }
    if !namespaces && watching {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let proc = rustix::fs::open(c"/proc", flags, Mode::empty()).map_err(&failed)?;
        rules.allow(proc.as_fd(), true, Access::Read).map_err(&failed)?;
    }
    // What was passed on is open already; by its path, too, it may be what it is.
    for (index, fd) in [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()]
        .into_iter()
        .enumerate()
    {
        let regular = rustix::fs::fstat(fd).is_ok_and(|data| {
            rustix::fs::FileType::from_raw_mode(data.st_mode) == rustix::fs::FileType::RegularFile
        });
        if regular && namespaces {
            let access = if index == 0 { Access::Read } else { Access::ReadWrite };
            // Where this cannot be said, it can be used through its number alone.
            let _ = rules.allow(fd, false, access);
        }
    }
    rules.restrict().map_err(&failed)
}

fn allow(rules: &Rules, at: BorrowedFd<'_>, access: Access) -> Result<(), Errno> {
    let data = rustix::fs::fstat(at)?;
    let kind = rustix::fs::FileType::from_raw_mode(data.st_mode);
    rules.allow(at, kind == rustix::fs::FileType::Directory, access)
}
