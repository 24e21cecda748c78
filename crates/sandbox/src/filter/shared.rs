//! What only namespaces keep from the other programs of the user.

use super::{Assembler, EPERM};

const EOPNOTSUPP: u32 = libc::EOPNOTSUPP as u32;

/// Memory, queues and counters of System V and queues of POSIX, which all programs of the user share.
const MEMORY: &[libc::c_long] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_shmdt,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// Takes the memory of another process that is about to end.
const PROCESSES: &[libc::c_long] = &[libc::SYS_process_mrelease];

/// Attributes of files, which Landlock has no right for. Programs know file systems that have none.
const ATTRIBUTES: &[libc::c_long] = &[
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    // setxattrat, removexattrat
    463,
    466,
];

/// These reach other processes past every call that sends a signal: F_SETOWN, F_SETSIG, F_SETOWN_EX; FIOSETOWN, SIOCSPGRP.
const OWNERS: &[u32] = &[8, 10, 15];
const OWNER_REQUESTS: &[u32] = &[0x8901, 0x8902];

/// Requests that change a file which is open only to be read. Of each its kind and number, whatever it says of its size.
const FILE_REQUESTS: &[u32] = &[
    0x6604, // EXT4_IOC_SETVERSION
    0x7602, // FS_IOC_SETVERSION
    0x6613, // FS_IOC_SET_ENCRYPTION_POLICY
    0x6685, // FS_IOC_ENABLE_VERITY, after which nobody can write to it
    0x941A, // BTRFS_IOC_SUBVOL_SETFLAGS
    0x9425, // BTRFS_IOC_SET_RECEIVED_SUBVOL
];

/// Denies it.
pub(super) fn deny(to: &mut Assembler) {
    for call in MEMORY.iter().chain(PROCESSES) {
        to.deny(*call, EPERM);
    }
    for call in ATTRIBUTES {
        to.deny(*call, EOPNOTSUPP);
    }
    to.deny_equal(libc::SYS_fcntl, 1, OWNERS, EPERM);
    to.deny_equal(libc::SYS_ioctl, 1, OWNER_REQUESTS, EPERM);
    super::deny_requests(to, FILE_REQUESTS, None);
}
