//! The filter: which calls are told to the supervisor.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use libc::sock_filter;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use super::abi;
use crate::filter as deny;

#[cfg(target_arch = "x86_64")]
const ARCH: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const ARCH: u32 = 0xC000_00B7;
/// Numbers from here on are those of the x32 ABI.
#[cfg(target_arch = "x86_64")]
const X32: u32 = 0x4000_0000;

/// An open with one of these makes a name, or can change a file.
const MAKES: u32 = (libc::O_CREAT | libc::O_TRUNC) as u32 | TMPFILE;
const WRITES: u32 = (libc::O_WRONLY | libc::O_RDWR) as u32;
/// `O_TMPFILE` without the bit of `O_DIRECTORY`.
const TMPFILE: u32 = (libc::O_TMPFILE & !libc::O_DIRECTORY) as u32;

/// Calls that make names, or write by one.
const TOLD: &[libc::c_long] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_creat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mkdir,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mknod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rename,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_link,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_symlink,
    libc::SYS_mkdirat,
    libc::SYS_mknodat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_bind,
    // By a further name of a file that a mount holds.
    libc::SYS_truncate,
    // Its flags lie in memory, where a filter cannot see them.
    libc::SYS_openat2,
    // Makes nothing, but says with which rights everything is made.
    libc::SYS_umask,
];
/// Calls that take something away.
const REMOVES: &[libc::c_long] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_unlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rmdir,
    libc::SYS_unlinkat,
];
/// Calls that send signals.
const SIGNALS: &[libc::c_long] = &[
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_tgkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_pidfd_send_signal,
];
/// Calls that change of a file what is not in it.
const CHANGES: &[libc::c_long] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchmodat2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
];
/// Calls that say when processes get what they wait for.
const TURNS: &[libc::c_long] = &[
    libc::SYS_setpriority,
    libc::SYS_ioprio_set,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
];
/// Opens, each with the argument that holds its flags.
const OPENS: &[(libc::c_long, u32)] = &[
    (libc::SYS_openat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1),
];
/// What goes around a filter. Programs know kernels that have none of it.
const ABSENT: &[libc::c_long] = &[libc::SYS_io_uring_setup, libc::SYS_open_by_handle_at];

/// Calls that look for something, each with the argument that holds its path, and the one before it, if it
/// is a directory to start from.
pub(super) const LOOKS: &[(libc::c_long, usize, bool)] = &[
    (libc::SYS_newfstatat, 1, true),
    (libc::SYS_statx, 1, true),
    (libc::SYS_faccessat, 1, true),
    (libc::SYS_faccessat2, 1, true),
    (libc::SYS_readlinkat, 1, true),
    (libc::SYS_execve, 0, false),
    (libc::SYS_execveat, 1, true),
    (libc::SYS_chdir, 0, false),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_stat, 0, false),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_lstat, 0, false),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_access, 0, false),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_readlink, 0, false),
];

/// Of these, those that say whether a file is there and what it is like. Programs make them before they open it.
const STATS: &[libc::c_long] = &[
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_stat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lstat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_access,
];

/// What is told besides calls that make names and opens that can change a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// Calls that take names away: what existed before is held by nothing else.
    pub(crate) removing: bool,
    /// Calls that nobody needs: no other filter denies them.
    pub(crate) denied: bool,
    /// Calls that look for something.
    pub(crate) looking: bool,
    /// Opens of files for reading, and looks at them.
    pub(crate) reading: bool,
    /// Signals: nothing else keeps them from other processes of the user.
    pub(crate) signals: bool,
    /// Modes, owners and times of files, and turns of processes: without namespaces nothing else keeps them from what is
    /// outside.
    pub(crate) shared: bool,
}

/// A filter, ready to be installed. Installing allocates nothing, so that it may follow a fork.
#[derive(Debug, Clone)]
pub struct Filter {
    program: Vec<sock_filter>,
}

impl Default for Filter {
    fn default() -> Self {
        Self::new()
    }
}

impl Filter {
    /// Every call that makes a name or takes one away, and every open that can change a file.
    #[must_use]
    pub fn new() -> Self {
        Self::of(Told { removing: true, ..Told::default() })
    }

    /// What is told, by what else there is.
    pub(crate) fn of(told: Told) -> Self {
        let mut program = vec![load(4), if_equal(ARCH, 0, 1), jump(1), give(absent()), load(0)];
        #[cfg(target_arch = "x86_64")]
        program.extend([
            filter(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 0, 1, X32),
            give(absent()),
        ]);
        for number in ABSENT {
            program.extend([if_equal(call(*number), 0, 1), give(absent())]);
        }
        let removing = if told.removing { REMOVES } else { &[] };
        let looking: Vec<_> = match (told.looking, told.reading) {
            (true, _) => LOOKS.iter().map(|look| look.0).collect(),
            (_, true) => STATS.to_vec(),
            _ => Vec::new(),
        };
        let denied: Vec<_> = if told.denied { deny::denied().collect() } else { Vec::new() };
        let signals = if told.signals { SIGNALS } else { &[] };
        let (changes, turns) = if told.shared { (CHANGES, TURNS) } else { (&[][..], &[][..]) };
        let all = TOLD.iter().chain(removing).chain(signals).chain(changes).chain(turns);
        for number in all.chain(&looking).chain(&denied) {
            program.extend([if_equal(call(*number), 0, 1), give(libc::SECCOMP_RET_USER_NOTIF)]);
        }
        let any_bit =
            |yes, no, bits| filter(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, yes, no, bits);
        for (number, argument) in OPENS {
            // The lower half of an argument; the kernel takes no more of these flags.
            let flags = load(16 + 8 * argument);
            let tell = give(libc::SECCOMP_RET_USER_NOTIF);
            let allow = give(libc::SECCOMP_RET_ALLOW);
            let rest = match (told.looking, told.reading) {
                (true, _) => vec![tell],
                // Folders are never asked about.
                (_, true) => vec![
                    flags,
                    any_bit(3, 0, libc::O_PATH as u32),
                    any_bit(1, 0, MAKES | WRITES),
                    any_bit(1, 0, libc::O_DIRECTORY as u32),
                    tell,
                    allow,
                ],
                // A descriptor that only names something makes nothing, whatever else is asked for.
                _ => vec![
                    flags,
                    any_bit(2, 0, libc::O_PATH as u32),
                    any_bit(0, 1, MAKES | WRITES),
                    tell,
                    allow,
                ],
            };
            program.push(if_equal(call(*number), 0, u8::try_from(rest.len()).unwrap_or(0)));
            program.extend(rest);
        }
        if told.denied {
            program.extend([
                if_equal(call(libc::SYS_clone), 0, 3),
                load(16),
                any_bit(0, 1, deny::NAMESPACES),
                give(libc::SECCOMP_RET_USER_NOTIF),
            ]);
        }
        program.push(give(libc::SECCOMP_RET_ALLOW));
        Self { program }
    }

    /// Installs it in the calling thread and all that it will start. `no_new_privs` must be set.
    ///
    /// # Errors
    /// When the kernel refuses: it needs to be 5.14 or later. Nothing is installed then.
    pub fn install(&self) -> io::Result<OwnedFd> {
        abi::install(&self.program)
    }
}

fn call(number: libc::c_long) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn absent() -> u32 {
    libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32
}

fn filter(code: u32, yes: u8, no: u8, value: u32) -> sock_filter {
    sock_filter { code: u16::try_from(code).unwrap_or(u16::MAX), jt: yes, jf: no, k: value }
}

fn load(offset: u32) -> sock_filter {
    filter(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, offset)
}

fn if_equal(value: u32, yes: u8, no: u8) -> sock_filter {
    filter(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, yes, no, value)
}

fn jump(over: u32) -> sock_filter {
    filter(libc::BPF_JMP | libc::BPF_JA, 0, 0, over)
}

fn give(value: u32) -> sock_filter {
    filter(libc::BPF_RET | libc::BPF_K, 0, 0, value)
}

/// Hands a listener to whoever has the other end of a socket. Allocates nothing.
///
/// # Errors
/// When it cannot be sent.
pub fn hand_over(socket: BorrowedFd<'_>, listener: BorrowedFd<'_>) -> io::Result<()> {
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut room);
    let listeners = [listener];
    if !control.push(SendAncillaryMessage::ScmRights(&listeners)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    sendmsg(socket, &[io::IoSlice::new(b"l")], &mut control, SendFlags::empty())?;
    Ok(())
}

/// Takes the listener that [`hand_over`] sends; waits for it.
///
/// # Errors
/// When the other end has gone, or sends something else.
pub fn take_over(socket: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut room);
    let mut byte = [0];
    let flags = RecvFlags::CMSG_CLOEXEC;
    recvmsg(socket, &mut [io::IoSliceMut::new(&mut byte)], &mut control, flags)?;
    let found = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    });
    found.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}
