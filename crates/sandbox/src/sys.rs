//! Calls that the kernel has and rustix has not, each behind a safe function. None of them allocates,
//! so that they may be used between fork and exec.

#![expect(unsafe_code, reason = "these calls have no safe form elsewhere")]

use std::ffi::{CStr, c_char, c_int, c_long, c_void};
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};

use rustix::io::Errno;

/// What a call gives, or the reason why not.
pub(crate) type Result<T> = rustix::io::Result<T>;

fn check(result: c_long) -> Result<c_long> {
    if result == -1 {
        Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL))
    } else {
        Ok(result)
    }
}

fn number(result: c_long) -> Result<c_int> {
    c_int::try_from(result).map_err(|_| Errno::OVERFLOW)
}

/// A descriptor that a call has just made.
fn owned(result: c_long) -> Result<OwnedFd> {
    let fd: RawFd = number(check(result)?)?;
    // SAFETY: the kernel has just made it for this process, and nobody else has seen it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Which side of a fork this is.
pub(crate) enum Side {
    /// The new process.
    Child,
    /// The process that made it.
    Parent {
        /// The number of the new process.
        pid: i32,
        /// The new process.
        process: OwnedFd,
    },
}

/// As `fork`, with flags of `clone`. Not `clone3`: containers often deny that, for its flags lie in memory.
///
/// # Safety
/// As for [`fork_into`]; `process` lives until the call returns.
unsafe fn clone(flags: c_int, process: *mut c_int) -> Result<c_int> {
    let none = std::ptr::null::<c_void>();
    // SAFETY: without a stack and without shared memory this is a fork; the kernel writes to `process` alone, the third
    // argument everywhere, and that only with CLONE_PIDFD.
    let result =
        unsafe { libc::syscall(libc::SYS_clone, c_long::from(flags), none, process, none, none) };
    number(check(result)?)
}

/// As `fork`, into new namespaces.
///
/// # Safety
/// Where this process has more than one thread, the child must call nothing that is not async-signal-safe
/// and must not allocate.
pub(crate) unsafe fn fork_into(namespaces: c_int) -> Result<Side> {
    let mut process: c_int = -1;
    let flags = namespaces | libc::CLONE_PIDFD | libc::SIGCHLD;
    // SAFETY: the number lives until the call returns; the caller keeps to what a child may do.
    match unsafe { clone(flags, &raw mut process) }? {
        0 => Ok(Side::Child),
        pid => {
            // SAFETY: CLONE_PIDFD has just put it there.
            let process = unsafe { OwnedFd::from_raw_fd(process) };
            Ok(Side::Parent { pid, process })
        }
    }
}

/// As [`fork_into`], where this process may have other threads and the child is to allocate: the C
/// library makes its own state whole in a fork of its own, and the namespaces come with a second one.
///
/// # Safety
/// As for [`fork_into`], except that the child may allocate.
pub(crate) unsafe fn fork_whole_into(namespaces: c_int) -> Result<Side> {
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    // SAFETY: the child calls the kernel alone, and then what the caller answers for.
    let between = unsafe { libc::fork() };
    match number(check(between.into())?)? {
        0 => {
            drop(read);
            let flags = namespaces | libc::CLONE_PARENT;
            // SAFETY: as in `fork_into`; the new process is a sibling of this one.
            let told = match unsafe { clone(flags, std::ptr::null_mut()) } {
                Ok(0) => return Ok(Side::Child),
                Ok(pid) => pid,
                Err(errno) => -errno.raw_os_error(),
            };
            let _ = rustix::io::write(&write, &told.to_ne_bytes());
            exit_now(0)
        }
        between => {
            drop(write);
            let mut told = [0; 4];
            let mut filled = 0;
            while filled < told.len() {
                match rustix::io::read(&read, &mut told[filled..]) {
                    Ok(0) => break,
                    Ok(count) => filled += count,
                    Err(Errno::INTR) => {}
                    Err(errno) => return Err(errno),
                }
            }
            if let Some(between) = rustix::process::Pid::from_raw(between) {
                let wait = rustix::process::WaitOptions::empty();
                while let Err(Errno::INTR) = rustix::process::waitpid(Some(between), wait) {}
            }
            match i32::from_ne_bytes(told) {
                pid if filled == told.len() && pid > 0 => {
                    let process = rustix::process::Pid::from_raw(pid).ok_or(Errno::SRCH)?;
                    let flags = rustix::process::PidfdFlags::empty();
                    let process = rustix::process::pidfd_open(process, flags)?;
                    Ok(Side::Parent { pid, process })
                }
                errno => Err(Errno::from_raw_os_error(-errno)),
            }
        }
    }
}

/// Ends this process at once.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: ends the process; no handler, no destructor runs.
    unsafe { libc::_exit(code) }
}

/// Null-terminated arrays for `execve`.
pub(crate) struct Arguments {
    // Keeps what the pointers point to.
    _strings: Vec<std::ffi::CString>,
    pointers: Vec<*const c_char>,
}

impl Arguments {
    pub(crate) fn new(strings: Vec<std::ffi::CString>) -> Self {
        let mut pointers: Vec<*const c_char> = strings.iter().map(|text| text.as_ptr()).collect();
        pointers.push(std::ptr::null());
        Self { _strings: strings, pointers }
    }
}

/// Becomes another program; returns only if that failed.
pub(crate) fn execve(program: &CStr, arguments: &Arguments, environment: &Arguments) -> Errno {
    // SAFETY: all three are terminated and live until the call returns.
    let result = unsafe {
        libc::execve(program.as_ptr(), arguments.pointers.as_ptr(), environment.pointers.as_ptr())
    };
    check(result.into()).err().unwrap_or(Errno::INVAL)
}

#[repr(C)]
struct MountAttr {
    attr_set: u64,
    attr_clr: u64,
    propagation: u64,
    userns_fd: u64,
}

/// A mount may not be written to.
pub(crate) const READ_ONLY: u64 = 0x1;
/// Set-user-id counts for nothing on a mount.
pub(crate) const NO_SUID: u64 = 0x2;
/// Device files count for nothing on a mount.
pub(crate) const NO_DEV: u64 = 0x4;
/// Nothing is executed from a mount.
pub(crate) const NO_EXEC: u64 = 0x8;

/// Sets attributes of a mount, and of all below it where it is `recursive`.
pub(crate) fn set_mount(mount: BorrowedFd<'_>, attributes: u64, recursive: bool) -> Result<()> {
    change_mount(mount, attributes, 0, recursive)
}

/// As [`set_mount`], and clears others.
pub(crate) fn change_mount(
    mount: BorrowedFd<'_>,
    set: u64,
    clear: u64,
    recursive: bool,
) -> Result<()> {
    let attr = MountAttr { attr_set: set, attr_clr: clear, propagation: 0, userns_fd: 0 };
    let recurse = if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the path is terminated, and the structure has the size that is told.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | recurse,
            std::ptr::from_ref(&attr),
            size_of::<MountAttr>(),
        )
    })
    .map(drop)
}

#[repr(C)]
struct LandlockRuleset {
    handled_access_fs: u64,
    handled_access_net: u64,
    scoped: u64,
}

#[repr(C, packed)]
struct LandlockPath {
    allowed_access: u64,
    parent_fd: i32,
}

/// Which version of Landlock there is.
pub(crate) fn landlock_abi() -> Result<i32> {
    // SAFETY: with this flag the call takes no structure.
    let result = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<c_void>(), 0_usize, 1_u32)
    };
    number(check(result)?)
}

/// An empty set of Landlock rules: what is handled is denied.
pub(crate) fn landlock_rules(files: u64, network: u64, scoped: u64, abi: i32) -> Result<OwnedFd> {
    let rules = LandlockRuleset { handled_access_fs: files, handled_access_net: network, scoped };
    // Older kernels refuse members that they do not know, also where these are zero-sized in meaning.
    let size = match abi {
        ..=3 => 8,
        4 | 5 => 16,
        _ => size_of::<LandlockRuleset>(),
    };
    // SAFETY: the structure has at least the size that is told.
    owned(unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::from_ref(&rules), size, 0_u32)
    })
}

/// Allows something below a file or folder.
pub(crate) fn landlock_allow(
    rules: BorrowedFd<'_>,
    below: BorrowedFd<'_>,
    access: u64,
) -> Result<()> {
    let rule = LandlockPath { allowed_access: access, parent_fd: below.as_raw_fd() };
    // SAFETY: the structure is the one that this kind of rule has.
    check(unsafe {
        libc::syscall(
            libc::SYS_landlock_add_rule,
            rules.as_raw_fd(),
            1_u32,
            std::ptr::from_ref(&rule),
            0_u32,
        )
    })
    .map(drop)
}

/// From here on the rules hold for this thread and what it starts.
pub(crate) fn landlock_restrict(rules: BorrowedFd<'_>) -> Result<()> {
    // SAFETY: takes numbers only.
    check(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, rules.as_raw_fd(), 0_u32) })
        .map(drop)
}

/// One instruction of a seccomp filter.
pub(crate) type Instruction = libc::sock_filter;

/// From here on the filter holds for this thread and what it starts. The kernel can log what it refuses.
pub(crate) fn seccomp(program: &[Instruction], logs: bool) -> Result<()> {
    let flags = if logs { libc::SECCOMP_FILTER_FLAG_LOG } else { 0 };
    let length = u16::try_from(program.len()).map_err(|_| Errno::INVAL)?;
    let program = libc::sock_fprog { len: length, filter: program.as_ptr().cast_mut() };
    // SAFETY: the kernel copies the program and does not write to it.
    check(unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            flags,
            std::ptr::from_ref(&program),
        )
    })
    .map(drop)
}

/// Whether the kernel knows an action of seccomp filters.
pub(crate) fn seccomp_knows(action: u32) -> bool {
    // SAFETY: the kernel reads one number.
    let result = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_GET_ACTION_AVAIL,
            0_u32,
            std::ptr::from_ref(&action),
        )
    };
    check(result).is_ok()
}

/// Has every descriptor from `first` on closed when this process becomes another program.
pub(crate) fn close_from_on_exec(first: u32) -> Result<()> {
    // SAFETY: closes nothing now.
    check(unsafe {
        libc::syscall(libc::SYS_close_range, first, u32::MAX, libc::CLOSE_RANGE_CLOEXEC)
    })
    .map(drop)
}

/// Signals that were kept back, to put them where they were.
#[derive(Clone, Copy)]
pub(crate) struct Mask(libc::sigset_t);

/// Keeps signals back for this thread.
pub(crate) fn block(signals: &[c_int]) -> Result<Mask> {
    let wanted = set_of(signals);
    let mut before = set_of(&[]);
    // SAFETY: both sets live until the call returns.
    let result =
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const wanted, &raw mut before) };
    if result == 0 { Ok(Mask(before)) } else { Err(Errno::from_raw_os_error(result)) }
}

/// Puts back what [`block`] found.
pub(crate) fn unblock(mask: &Mask) {
    // SAFETY: the set lives until the call returns.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const mask.0, std::ptr::null_mut()) };
}

fn set_of(signals: &[c_int]) -> libc::sigset_t {
    // SAFETY: a set of signals is plain data, and the calls only write to it.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in signals {
            libc::sigaddset(&raw mut set, *signal);
        }
        set
    }
}

/// A descriptor that gives the signals which are kept back.
pub(crate) fn signal_fd(signals: &[c_int]) -> Result<OwnedFd> {
    let set = set_of(signals);
    // SAFETY: the set lives until the call returns.
    let fd = unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
    owned(fd.into())
}

/// The next signal that waits in a [`signal_fd`].
pub(crate) fn next_signal(fd: BorrowedFd<'_>) -> Option<c_int> {
    let mut buffer = [0_u8; size_of::<libc::signalfd_siginfo>()];
    match rustix::io::read(fd, &mut buffer) {
        // The number is the structure's first member.
        Ok(read) if read == buffer.len() => {
            Some(c_int::from_ne_bytes([buffer[0], buffer[1], buffer[2], buffer[3]]))
        }
        _ => None,
    }
}

/// Every signal does again what it does by default, and none is kept back.
pub(crate) fn reset_signals() {
    for signal in 1..=64 {
        // SAFETY: puts a default in place; those that cannot be set are refused.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    unblock(&Mask(set_of(&[])));
}

/// Makes a terminal the controlling one of this session.
pub(crate) fn take_terminal(terminal: BorrowedFd<'_>) -> Result<()> {
    // SAFETY: takes a number.
    check(unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSCTTY, 0) }.into()).map(drop)
}

/// Gives this thread a network of its own.
pub(crate) fn leave_network() -> Result<()> {
    // SAFETY: plain numbers; nothing of another thread changes.
    check(unsafe { libc::unshare(libc::CLONE_NEWNET) }.into()).map(drop)
}

/// Brings the loopback interface of this network namespace up.
pub(crate) fn loopback_up() -> Result<()> {
    // SAFETY: takes numbers only.
    let socket = owned(
        unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) }.into(),
    )?;
    // SAFETY: plain data, all zero is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[0] = c_char::try_from(b'l').unwrap_or_default();
    request.ifr_name[1] = c_char::try_from(b'o').unwrap_or_default();
    request.ifr_ifru.ifru_flags = c_short_flags();
    // SAFETY: the structure is the one that this request takes.
    check(
        unsafe {
            libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as libc::Ioctl, &raw mut request)
        }
        .into(),
    )
    .map(drop)
}

fn c_short_flags() -> libc::c_short {
    libc::c_short::try_from(libc::IFF_UP | libc::IFF_RUNNING).unwrap_or_default()
}

/// Drops every right over the machine, now and for whatever is started.
pub(crate) fn drop_capabilities() -> Result<()> {
    const SECURE: c_long = 0b1110_1111;
    // SAFETY: prctl with numbers only.
    unsafe {
        // Not permitted without the right to it, and then there is nothing to lock.
        libc::prctl(libc::PR_SET_SECUREBITS, SECURE, 0, 0, 0);
        libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    }
    for capability in 0..=63 {
        // SAFETY: prctl with numbers only.
        let result = unsafe { libc::prctl(libc::PR_CAPBSET_READ, capability, 0, 0, 0) };
        match result {
            1 => {
                // SAFETY: prctl with numbers only.
                let dropped = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
                // Who has no right to drop it has it neither, and cannot gain it any more.
                if dropped == -1 && !gains_nothing() {
                    return Err(Errno::PERM);
                }
            }
            0 => {}
            _ => break,
        }
    }
    let none = rustix::thread::CapabilitySet::empty();
    rustix::thread::set_capabilities(
        None,
        rustix::thread::CapabilitySets { effective: none, permitted: none, inheritable: none },
    )
}

fn gains_nothing() -> bool {
    rustix::thread::no_new_privs().unwrap_or(false)
}

/// The process and the user at the other end of a Unix socket, as they were when it was connected. A process of
/// another namespace has no number here.
pub(crate) fn peer(socket: BorrowedFd<'_>) -> Result<(Option<i32>, u32)> {
    let mut found = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = number(size_of::<libc::ucred>() as c_long)?.cast_unsigned();
    // SAFETY: the structure is the one that this option gives, and as long as is told.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut found).cast::<c_void>(),
            &raw mut length,
        )
    };
    check(result.into())?;
    Ok(((found.pid > 0).then_some(found.pid), found.uid))
}

/// How many bytes of memory the machine has.
pub(crate) fn memory() -> u64 {
    // SAFETY: plain data that the call fills.
    let mut info: libc::sysinfo = unsafe { std::mem::zeroed() };
    // SAFETY: the structure lives until the call returns.
    if unsafe { libc::sysinfo(&raw mut info) } != 0 {
        return 0;
    }
    info.totalram.saturating_mul(info.mem_unit.into())
}

/// Ends every process that this one may signal, except itself. Only for where Landlock or a namespace keeps
/// signals in.
pub(crate) fn kill_all_others() {
    // SAFETY: takes numbers only.
    unsafe { libc::kill(-1, libc::SIGKILL) };
}
