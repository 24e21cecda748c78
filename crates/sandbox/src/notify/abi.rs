//! The calls to the kernel that no wrapper has.
#![expect(unsafe_code, reason = "the only place of this module with calls that no wrapper has")]

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

use libc::{c_int, c_long, c_ulong, sock_filter};

/// `SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV`: once a call is taken, only a deadly signal ends the wait.
const WAIT_KILLABLE: c_ulong = 1 << 5;
const NEW_LISTENER: c_ulong = 1 << 3;
const RECEIVE: c_ulong = 0xC050_2100;
const SEND: c_ulong = 0xC018_2101;
const ID_VALID: c_ulong = 0x4008_2102;
const ADD_FD: c_ulong = 0x4018_2103;
const SET_FLAGS: c_ulong = 0x4008_2104;
/// `SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP`
const SYNC_WAKE_UP: u64 = 1;

/// `SECCOMP_USER_NOTIF_FLAG_CONTINUE`
const CONTINUE: u32 = 1;
/// `SECCOMP_ADDFD_FLAG_SEND`
const ADD_AND_SEND: u32 = 1 << 1;

/// A call that waits for an answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    pub(super) id: u64,
    pub(super) pid: u32,
    pub(super) number: c_long,
    pub(super) arguments: [u64; 6],
}

#[repr(C)]
#[derive(Default)]
struct Notification {
    id: u64,
    pid: u32,
    flags: u32,
    number: c_int,
    arch: u32,
    instruction: u64,
    arguments: [u64; 6],
}

#[repr(C)]
struct Response {
    id: u64,
    value: i64,
    error: i32,
    flags: u32,
}

#[repr(C)]
struct AddFd {
    id: u64,
    flags: u32,
    source: u32,
    target: u32,
    target_flags: u32,
}

fn done(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

pub(super) fn install(program: &[sock_filter]) -> io::Result<OwnedFd> {
    let length = u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let program = libc::sock_fprog { len: length, filter: program.as_ptr().cast_mut() };
    let set = |flags: c_ulong| {
        // SAFETY: the program and its length live through the call, which only reads them.
        unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                flags,
                &raw const program,
            )
        }
    };
    let mut found = set(NEW_LISTENER | WAIT_KILLABLE);
    if found < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL) {
        found = set(NEW_LISTENER);
    }
    if found < 0 {
        return Err(io::Error::last_os_error());
    }
    let found = c_int::try_from(found).map_err(|_| io::ErrorKind::Other)?;
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(found) })
}

/// Takes the next call; waits for one.
pub(super) fn receive(listener: BorrowedFd<'_>) -> io::Result<Call> {
    let mut found = Notification::default();
    // SAFETY: the buffer is of the kernel's own layout, zeroed as it demands, and outlives the call.
    done(unsafe { libc::ioctl(listener.as_raw_fd(), RECEIVE as _, &raw mut found) })?;
    let Notification { id, pid, number, arguments, .. } = found;
    Ok(Call { id, pid, number: c_long::from(number), arguments })
}

/// Whether a call still waits: then its thread still lives, and its number is its own.
pub(super) fn is_valid(listener: BorrowedFd<'_>, id: u64) -> bool {
    // SAFETY: the number is only read, and outlives the call.
    done(unsafe { libc::ioctl(listener.as_raw_fd(), ID_VALID as _, &raw const id) }).is_ok()
}

/// Answers with a value or an error.
pub(super) fn answer(
    listener: BorrowedFd<'_>,
    id: u64,
    result: Result<i64, i32>,
) -> io::Result<()> {
    let (value, error) = match result {
        Ok(value) => (value, 0),
        Err(error) => (0, -error.abs().max(1)),
    };
    let response = Response { id, value, error, flags: 0 };
    // SAFETY: the response is of the kernel's own layout and outlives the call.
    done(unsafe { libc::ioctl(listener.as_raw_fd(), SEND as _, &raw const response) }).map(drop)
}

/// Has the kernel carry out the call itself. Only for what takes numbers and points to nothing.
pub(super) fn go_on(listener: BorrowedFd<'_>, id: u64) -> io::Result<()> {
    let response = Response { id, value: 0, error: 0, flags: CONTINUE };
    // SAFETY: the response is of the kernel's own layout and outlives the call.
    done(unsafe { libc::ioctl(listener.as_raw_fd(), SEND as _, &raw const response) }).map(drop)
}

/// Gives the caller a descriptor, and answers with its number. With `late`, only when ours is closed: a
/// program that was written could not be run while anybody has it open for writing. Else it is done in one.
pub(super) fn answer_with(
    listener: BorrowedFd<'_>,
    id: u64,
    descriptor: OwnedFd,
    close_on_exec: bool,
    late: bool,
) -> io::Result<()> {
    let add = AddFd {
        id,
        flags: if late { 0 } else { ADD_AND_SEND },
        source: u32::try_from(descriptor.as_raw_fd()).map_err(|_| io::ErrorKind::InvalidInput)?,
        target: 0,
        target_flags: if close_on_exec { libc::O_CLOEXEC as u32 } else { 0 },
    };
    // SAFETY: the request is of the kernel's own layout and outlives the call.
    let number = done(unsafe { libc::ioctl(listener.as_raw_fd(), ADD_FD as _, &raw const add) })?;
    drop(descriptor);
    if late { answer(listener, id, Ok(number.into())) } else { Ok(()) }
}

/// Has the kernel switch straight to whoever is answered, where it can.
pub(super) fn wake_at_once(listener: BorrowedFd<'_>) {
    // SAFETY: the flags go by value.
    let _ = unsafe { libc::ioctl(listener.as_raw_fd(), SET_FLAGS as _, SYNC_WAKE_UP) };
}

/// Reads from the memory of another process; how much was there.
pub(super) fn read_memory(pid: u32, address: u64, into: &mut [u8]) -> io::Result<usize> {
    let pid = libc::pid_t::try_from(pid).map_err(|_| io::ErrorKind::InvalidInput)?;
    let start = usize::try_from(address).map_err(|_| io::ErrorKind::InvalidInput)?;
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let remote =
        libc::iovec { iov_base: std::ptr::without_provenance_mut(start), iov_len: into.len() };
    // SAFETY: writes at most `into.len()` bytes into `into`; the other side is not our memory.
    let read = unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) };
    usize::try_from(read).map_err(|_| io::Error::last_os_error())
}

/// Writes to the memory of another process, as far as that could write there itself.
pub(super) fn write_memory(pid: u32, address: u64, from: &[u8]) -> io::Result<()> {
    let pid = libc::pid_t::try_from(pid).map_err(|_| io::ErrorKind::InvalidInput)?;
    let start = usize::try_from(address).map_err(|_| io::ErrorKind::InvalidInput)?;
    let local = libc::iovec { iov_base: from.as_ptr().cast_mut().cast(), iov_len: from.len() };
    let remote =
        libc::iovec { iov_base: std::ptr::without_provenance_mut(start), iov_len: from.len() };
    // SAFETY: reads at most `from.len()` bytes of `from`; the other side is not our memory.
    let written =
        unsafe { libc::process_vm_writev(pid, &raw const local, 1, &raw const remote, 1, 0) };
    match usize::try_from(written) {
        Ok(count) if count == from.len() => Ok(()),
        Ok(_) => Err(io::Error::from_raw_os_error(libc::EFAULT)),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

/// Bytes of the kernel's own answer to `stat`.
#[cfg(target_arch = "x86_64")]
const STAT: usize = 144;
#[cfg(target_arch = "aarch64")]
const STAT: usize = 128;
/// Bytes of its answer to `statx`.
const STATX: usize = 256;

/// What an open file is like, as the kernel lays it out for `stat`, or with a mask for `statx`.
pub(super) fn stat_bytes(file: BorrowedFd<'_>, mask: Option<u32>) -> io::Result<Vec<u8>> {
    let mut room = [0_u64; STATX / 8];
    let (file, to) = (file.as_raw_fd(), room.as_mut_ptr());
    let (done, length) = match mask {
        // SAFETY: the kernel writes less than there is room for, which outlives the call.
        None => (unsafe { libc::syscall(libc::SYS_fstat, file, to) }, STAT),
        Some(mask) => {
            let flags = libc::AT_EMPTY_PATH;
            // SAFETY: the same; the path is terminated.
            let done =
                unsafe { libc::syscall(libc::SYS_statx, file, c"".as_ptr(), flags, mask, to) };
            (done, STATX)
        }
    };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut bytes: Vec<u8> = room.iter().flat_map(|word| word.to_ne_bytes()).collect();
    bytes.truncate(length);
    Ok(bytes)
}

/// Binds a socket to an address of any family.
pub(super) fn bind(socket: BorrowedFd<'_>, address: &[u8]) -> io::Result<()> {
    #[repr(C, align(8))]
    struct Room([u8; 128]);
    let mut room = Room([0; 128]);
    let length = address.len().min(room.0.len());
    room.0[..length].copy_from_slice(&address[..length]);
    let length = libc::socklen_t::try_from(length).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: the address is ours, aligned, and as long as is said.
    done(unsafe { libc::bind(socket.as_raw_fd(), (&raw const room).cast(), length) }).map(drop)
}

/// A thread of another process; only of a kernel that can name one.
pub(super) fn open_thread(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: plain numbers.
    let found = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, libc::O_EXCL) };
    let found = c_int::try_from(found).map_err(|_| io::ErrorKind::Other)?;
    let found = done(found)?;
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(found) })
}

/// A process; the number is its own as long as it has not been waited for.
pub(super) fn open_process(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: plain numbers.
    let found = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let found = c_int::try_from(found).map_err(|_| io::ErrorKind::Other)?;
    let found = done(found)?;
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(found) })
}

/// Sends a process a signal; 0 only asks whether one could be sent.
pub(super) fn send_signal(process: BorrowedFd<'_>, signal: u32) -> io::Result<()> {
    let (process, none) = (process.as_raw_fd(), std::ptr::null::<libc::siginfo_t>());
    // SAFETY: plain numbers, and no pointer.
    let sent = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, process, signal, none, 0) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Gives this thread a directory and a umask of its own.
pub(super) fn own_directory() -> io::Result<()> {
    // SAFETY: plain numbers; nothing of another thread changes.
    done(unsafe { libc::unshare(libc::CLONE_FS) }).map(drop)
}

/// Keeps others of the same user from looking into this process.
pub(super) fn hide() -> io::Result<()> {
    // SAFETY: plain numbers.
    done(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) }).map(drop)
}

/// What a call is called that nobody carries out.
pub(super) const UNNAMED: &str = "call";

/// What a call is, and where its arguments are.
pub(super) fn name(number: c_long) -> &'static str {
    match number {
        libc::SYS_openat | libc::SYS_openat2 => "open",
        libc::SYS_mkdirat => "mkdir",
        libc::SYS_mknodat => "mknod",
        libc::SYS_renameat | libc::SYS_renameat2 => "rename",
        libc::SYS_linkat => "link",
        libc::SYS_symlinkat => "symlink",
        libc::SYS_bind => "bind",
        libc::SYS_unlinkat => "remove",
        libc::SYS_truncate => "truncate",
        libc::SYS_umask => "umask",
        libc::SYS_fchmod | libc::SYS_fchmodat | libc::SYS_fchmodat2 => "chmod",
        libc::SYS_fchown | libc::SYS_fchownat => "chown",
        libc::SYS_utimensat => "utime",
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chmod => "chmod",
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chown | libc::SYS_lchown => "chown",
        #[cfg(target_arch = "x86_64")]
        libc::SYS_utime | libc::SYS_utimes | libc::SYS_futimesat => "utime",
        #[cfg(target_arch = "x86_64")]
        libc::SYS_unlink | libc::SYS_rmdir => "remove",
        #[cfg(target_arch = "x86_64")]
        libc::SYS_open | libc::SYS_creat => "open",
        #[cfg(target_arch = "x86_64")]
        libc::SYS_mkdir => "mkdir",
        #[cfg(target_arch = "x86_64")]
        libc::SYS_mknod => "mknod",
        #[cfg(target_arch = "x86_64")]
        libc::SYS_rename => "rename",
        #[cfg(target_arch = "x86_64")]
        libc::SYS_link => "link",
        #[cfg(target_arch = "x86_64")]
        libc::SYS_symlink => "symlink",
        _ => UNNAMED,
    }
}
