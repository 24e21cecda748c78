//! The seccomp filter: which calls a confined program may not make, by number and by argument.

mod assemble;
mod shared;

pub(crate) use assemble::{Assembler, Compare, Label};

use crate::sys::Instruction;

/// What the filter must make up for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Surroundings {
    /// There are no namespaces: no socket may reach beyond this machine, or another program by its path, no
    /// limit or owner of a descriptor another process, and nothing the memory that programs share.
    pub(crate) shares_network: bool,
    /// Code from nowhere in the file system may not be executed.
    pub(crate) no_memory_files: bool,
    /// Calls that nobody needs are told to a supervisor, which denies them: an answer of this filter would
    /// come first.
    pub(crate) told: bool,
}

const EPERM: u32 = libc::EPERM as u32;
const ENOSYS: u32 = libc::ENOSYS as u32;
const EAFNOSUPPORT: u32 = libc::EAFNOSUPPORT as u32;

/// A call, and what it is called.
type Named = (libc::c_long, &'static str);

macro_rules! named {
    ($($call:ident,)*) => { &[$((libc::$call, stringify!($call)),)*] };
}

/// Calls that nobody confined needs.
const DENIED: &[Named] = named![
    // Mounts and roots.
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_move_mount,
    SYS_open_tree,
    SYS_fsopen,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fspick,
    SYS_mount_setattr,
    // Namespaces.
    SYS_unshare,
    SYS_setns,
    // The kernel itself.
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_kexec_file_load,
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_acct,
    SYS_quotactl,
    SYS_quotactl_fd,
    SYS_syslog,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_clock_adjtime,
    SYS_adjtimex,
    SYS_vhangup,
    SYS_nfsservctl,
    // Keys, which no namespace separates.
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    // Other processes.
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_process_madvise,
    SYS_kcmp,
    SYS_pidfd_getfd,
    SYS_move_pages,
    SYS_migrate_pages,
    // Where the kernel's own faults were.
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_fanotify_init,
    SYS_lookup_dcookie,
    // Files without a path.
    SYS_open_by_handle_at,
];

#[cfg(target_arch = "x86_64")]
const DENIED_HERE: &[Named] = named![
    SYS_modify_ldt,
    SYS_iopl,
    SYS_ioperm,
    SYS_uselib,
    SYS_ustat,
    SYS_sysfs,
    SYS__sysctl,
    SYS_afs_syscall,
    SYS_vserver,
    SYS_security,
    SYS_tuxcall,
    SYS_getpmsg,
    SYS_putpmsg,
    SYS_epoll_ctl_old,
    SYS_epoll_wait_old,
];
#[cfg(not(target_arch = "x86_64"))]
const DENIED_HERE: &[Named] = &[];

/// Calls of old kernels, for which the library has no names: create_module, get_kernel_syms, query_module.
#[cfg(target_arch = "x86_64")]
const OLD: &[libc::c_long] = &[174, 177, 178];
#[cfg(not(target_arch = "x86_64"))]
const OLD: &[libc::c_long] = &[];

/// The calls that nobody confined needs.
pub(crate) fn denied() -> impl Iterator<Item = libc::c_long> {
    DENIED.iter().chain(DENIED_HERE).map(|(call, _)| *call)
}

/// What such a call is called, or one that would make a namespace.
pub(crate) fn name_of_denied(call: libc::c_long) -> Option<&'static str> {
    if call == libc::SYS_clone {
        return Some("clone with a namespace");
    }
    let found = DENIED.iter().chain(DENIED_HERE).find(|(number, _)| *number == call);
    found.map(|(_, name)| name.trim_start_matches("SYS_"))
}

/// Calls for which there is an older way, so that programs take that: their arguments lie in memory,
/// where a filter cannot see them.
pub(crate) const UNKNOWN: &[libc::c_long] = &[
    libc::SYS_clone3,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_memfd_secret,
    // open_tree_attr
    467,
    // lsm_set_self_attr
    460,
    // file_setattr, which is `chattr` by a path.
    469,
];

#[cfg(target_arch = "x86_64")]
pub(crate) const ARCHITECTURE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
pub(crate) const ARCHITECTURE: u32 = 0xC000_00B7;
#[cfg(target_arch = "riscv64")]
pub(crate) const ARCHITECTURE: u32 = 0xC000_00F3;

/// Numbers from here on are those of another way to call the same kernel.
#[cfg(target_arch = "x86_64")]
pub(crate) const OTHER_ABI: u32 = 0x4000_0000;

/// New namespaces of any kind but time, which `clone` cannot make.
pub(crate) const NAMESPACES: u32 = (libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP) as u32;

/// Files that run as whoever owns them.
const SET_ID: u32 = 0o6000;
/// A file is made; O_TMPFILE without O_DIRECTORY.
const CREATES: u32 = libc::O_CREAT as u32 | 0o20_000_000;

/// Puts words or settings into a terminal, on requests that no job control needs.
const TERMINAL_REQUESTS: &[u32] = &[
    // TIOCSTI, TIOCLINUX, TIOCCONS, TIOCSETD, TIOCVHANGUP, TIOCGLCKTRMIOS, TIOCSLCKTRMIOS
    0x5412, 0x541C, 0x541D, 0x5423, 0x5437, 0x5456, 0x5457,
];

/// Requests that make, remove or reach names past every call that does, or change how a folder compares them. Of each its
/// kind and number, whatever it says of its size.
const NAME_REQUESTS: &[u32] = &[
    0x9401, // BTRFS_IOC_SNAP_CREATE
    0x940E, // BTRFS_IOC_SUBVOL_CREATE
    0x940F, // BTRFS_IOC_SNAP_DESTROY
    0x9417, // BTRFS_IOC_SNAP_CREATE_V2
    0x9418, // BTRFS_IOC_SUBVOL_CREATE_V2
    0x943F, // BTRFS_IOC_SNAP_DESTROY_V2
    0x6F04, // OCFS2_IOC_REFLINK, from a path to a path
    0x586B, // XFS_IOC_OPEN_BY_HANDLE
    0x6602, // FS_IOC_SETFLAGS: `chattr`, which has folders fold names
    0x5820, // FS_IOC_FSSETXATTR
];
/// All of bcachefs, which makes subvolumes by several.
const BCACHEFS: u32 = 0xBC00;

/// Keys of encrypted file systems, which belong to the user and which no namespace separates: FS_IOC_ADD_ENCRYPTION_KEY, and
/// FS_IOC_REMOVE_ENCRYPTION_KEY, after which nobody can read what the user has encrypted.
const KEY_REQUESTS: &[u32] = &[0x6617, 0x6618];

/// Have others wait who open a file, or tell of each who does, and no program needs them: F_SETLEASE, F_NOTIFY,
/// F_SETDELEG.
const FILE_REQUESTS: &[u32] = &[1024, 1026, 1040];

/// The filter as the kernel takes it.
pub(crate) fn program(surroundings: Surroundings) -> Vec<Instruction> {
    let mut to = Assembler::new();
    to.load_architecture();
    to.unless_equal_kill(ARCHITECTURE);
    to.load_number();
    #[cfg(target_arch = "x86_64")]
    to.if_at_least_kill(OTHER_ABI);
    if !surroundings.told {
        for call in denied() {
            to.deny(call, EPERM);
        }
        to.deny_bits(libc::SYS_clone, 0, NAMESPACES, EPERM);
    }
    for call in OLD {
        to.deny(*call, EPERM);
    }
    for call in UNKNOWN {
        to.deny(*call, ENOSYS);
    }
    if !surroundings.told {
        // Nobody is there who reads its flags.
        to.deny(libc::SYS_openat2, ENOSYS);
    }
    to.deny_equal(libc::SYS_ioctl, 1, TERMINAL_REQUESTS, EPERM);
    deny_requests(&mut to, NAME_REQUESTS, Some(BCACHEFS));
    deny_requests(&mut to, KEY_REQUESTS, None);
    to.deny_equal(libc::SYS_fcntl, 1, FILE_REQUESTS, EPERM);
    if surroundings.shares_network {
        shared::deny(&mut to);
    }
    to.deny_other(libc::SYS_personality, 0, &[0, u32::MAX], EPERM);
    // A listener of one's own, beside the one that watches.
    to.deny_bits(libc::SYS_seccomp, 1, 1 << 3, EPERM);
    others(&mut to);
    modes(&mut to);
    memory_files(&mut to, surroundings);
    sockets(&mut to, surroundings);
    to.allow();
    to.finish()
}

/// No limit of another process, by which it could be ended or be kept from opening files, and no other place in line for
/// process 1, which watches.
fn others(to: &mut Assembler) {
    let (end, deny, fine) = (to.label(), to.label(), to.label());
    to.unless_call(libc::SYS_prlimit64, end);
    to.load_argument(0);
    to.if_equal(0, fine);
    // Whoever only asks gives no new limit, which is a pointer.
    for high in [false, true] {
        to.load_half(2, high, u32::MAX);
        to.if_bits(u32::MAX, deny);
    }
    to.place(fine);
    to.denied_here(deny, end, EPERM);
    for (call, process) in [
        (libc::SYS_sched_setaffinity, 0),
        (libc::SYS_sched_setscheduler, 0),
        (libc::SYS_sched_setparam, 0),
        (libc::SYS_sched_setattr, 0),
        (libc::SYS_setpriority, 1),
        (libc::SYS_ioprio_set, 1),
    ] {
        to.deny_equal(call, process, &[1], EPERM);
    }
}

/// Requests by their kind and number, and all of a kind.
fn deny_requests(to: &mut Assembler, requests: &[u32], kind: Option<u32>) {
    let (end, deny) = (to.label(), to.label());
    to.unless_call(libc::SYS_ioctl, end);
    to.load_argument(1);
    to.mask(0xFFFF);
    for request in requests {
        to.if_equal(*request, deny);
    }
    if let Some(kind) = kind {
        to.mask(0xFF00);
        to.if_equal(kind, deny);
    }
    to.load_number();
    to.go(end);
    to.place(deny);
    to.refuse(EPERM);
    to.place(end);
}

/// No file that runs as whoever owns it, and no device.
fn modes(to: &mut Assembler) {
    to.deny_bits(libc::SYS_fchmod, 1, SET_ID, EPERM);
    to.deny_bits(libc::SYS_fchmodat, 2, SET_ID, EPERM);
    to.deny_bits(libc::SYS_fchmodat2, 2, SET_ID, EPERM);
    to.deny_bits_with(libc::SYS_openat, (2, CREATES), (3, SET_ID), EPERM);
    device(to, libc::SYS_mknodat, 2);
    #[cfg(target_arch = "x86_64")]
    {
        to.deny_bits(libc::SYS_chmod, 1, SET_ID, EPERM);
        to.deny_bits(libc::SYS_creat, 1, SET_ID, EPERM);
        to.deny_bits_with(libc::SYS_open, (1, CREATES), (2, SET_ID), EPERM);
        device(to, libc::SYS_mknod, 1);
    }
}

fn device(to: &mut Assembler, call: libc::c_long, mode: usize) {
    let (end, deny) = (to.label(), to.label());
    to.unless_call(call, end);
    to.load_argument(mode);
    to.if_bits(SET_ID, deny);
    to.mask(libc::S_IFMT);
    to.if_equal(libc::S_IFCHR, deny);
    to.if_equal(libc::S_IFBLK, deny);
    to.load_number();
    to.go(end);
    to.place(deny);
    to.refuse(EPERM);
    to.place(end);
}

fn memory_files(to: &mut Assembler, surroundings: Surroundings) {
    const EXECUTABLE: u32 = 0x10;
    const NEVER_EXECUTABLE: u32 = 0x8;
    to.deny_bits(libc::SYS_memfd_create, 1, EXECUTABLE, EPERM);
    if surroundings.no_memory_files {
        let (end, fine) = (to.label(), to.label());
        to.unless_call(libc::SYS_memfd_create, end);
        to.load_argument(1);
        to.if_bits(NEVER_EXECUTABLE, fine);
        to.refuse(EPERM);
        to.place(fine);
        to.load_number();
        to.place(end);
    }
}

/// Only ordinary sockets.
fn sockets(to: &mut Assembler, surroundings: Surroundings) {
    let (end, done, deny) = (to.label(), to.label(), to.label());
    let (internet, link, stream, datagram) = (to.label(), to.label(), to.label(), to.label());
    to.unless_call(libc::SYS_socket, end);
    to.load_argument(0);
    // Landlock knows TCP only from its version 4 on, and then neither a first message that connects (TCP Fast Open) nor
    // listening at whatever port the kernel gives: where the network is shared, nobody needs a socket of it.
    let shared = surroundings.shares_network;
    to.if_equal(libc::AF_UNIX as u32, if shared { deny } else { done });
    to.if_equal(libc::AF_INET as u32, if shared { deny } else { internet });
    to.if_equal(libc::AF_INET6 as u32, if shared { deny } else { internet });
    to.if_equal(libc::AF_NETLINK as u32, link);
    to.refuse(EAFNOSUPPORT);
    // Which addresses there are; nothing else of it.
    to.place(link);
    to.load_argument(2);
    to.if_equal(libc::NETLINK_ROUTE as u32, done);
    to.go(deny);
    to.place(internet);
    to.load_argument(1);
    to.mask(0xF);
    to.if_equal(libc::SOCK_STREAM as u32, stream);
    to.if_equal(libc::SOCK_DGRAM as u32, datagram);
    to.go(deny);
    to.place(stream);
    to.load_argument(2);
    to.if_equal(0, done);
    to.if_equal(libc::IPPROTO_TCP as u32, done);
    to.go(deny);
    to.place(datagram);
    to.load_argument(2);
    to.if_equal(0, done);
    to.if_equal(libc::IPPROTO_UDP as u32, done);
    to.place(deny);
    to.refuse(EPERM);
    to.place(done);
    to.load_number();
    to.place(end);
    to.deny_other(libc::SYS_socketpair, 0, &[libc::AF_UNIX as u32], EPERM);
}

#[cfg(test)]
pub(crate) mod tests;
