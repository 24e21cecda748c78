use super::*;

/// What a filter says of a call: a small machine of the instructions that are used.
pub(crate) fn said(
    filter: &[Instruction],
    architecture: u32,
    call: i64,
    arguments: [u64; 6],
) -> u32 {
    let mut data = Vec::new();
    data.extend(u32::try_from(call).unwrap().to_ne_bytes());
    data.extend(architecture.to_ne_bytes());
    data.extend(0_u64.to_ne_bytes());
    data.extend(arguments.iter().flat_map(|one| one.to_ne_bytes()));
    let (mut at, mut value) = (0, 0_u32);
    loop {
        let one = filter[at];
        at += 1;
        let branch = |yes: bool| usize::from(if yes { one.jt } else { one.jf });
        match u32::from(one.code) {
            0x20 => {
                let offset = one.k as usize;
                value = u32::from_ne_bytes(data[offset..offset + 4].try_into().unwrap());
            }
            0x54 => value &= one.k,
            0x15 => at += branch(value == one.k),
            0x25 => at += branch(value > one.k),
            0x35 => at += branch(value >= one.k),
            0x45 => at += branch(value & one.k != 0),
            0x05 => at += one.k as usize,
            0x06 => return one.k,
            code => panic!("{code:#x}"),
        }
    }
}

fn errno(number: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | u32::try_from(number).unwrap()
}

const ALLOWED: u32 = libc::SECCOMP_RET_ALLOW;
const KILLED: u32 = libc::SECCOMP_RET_KILL_PROCESS;

fn here(call: i64, arguments: &[u64]) -> u32 {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    said(&program(Surroundings::default()), ARCHITECTURE, call, all)
}

#[test]
fn what_programs_need_is_allowed() {
    for call in [
        libc::SYS_read,
        libc::SYS_write,
        libc::SYS_openat,
        libc::SYS_execve,
        libc::SYS_mmap,
        libc::SYS_futex,
        libc::SYS_wait4,
        libc::SYS_connect,
        libc::SYS_renameat2,
        libc::SYS_getrandom,
    ] {
        assert_eq!(here(call, &[]), ALLOWED, "{call}");
    }
}

#[test]
fn another_way_to_call_the_kernel_ends_the_process() {
    let filter = program(Surroundings::default());
    // 32-bit x86, and ARM.
    for architecture in [0x4000_0003, 0x4000_0028, 0] {
        assert_eq!(said(&filter, architecture, libc::SYS_read, [0; 6]), KILLED);
    }
    #[cfg(target_arch = "x86_64")]
    for call in [0x4000_0000, 0x4000_0000 | 39, 0x4000_0200, 0xFFFF_FFFF] {
        assert_eq!(said(&filter, ARCHITECTURE, call, [0; 6]), KILLED);
    }
}

#[test]
fn dangerous_calls_are_denied() {
    for call in denied().chain(OLD.iter().copied()) {
        assert_eq!(here(call, &[]), errno(libc::EPERM), "{call}");
    }
    for call in UNKNOWN {
        assert_eq!(here(*call, &[]), errno(libc::ENOSYS), "{call}");
    }
}

#[test]
fn arguments_count_and_their_upper_halves_do_not() {
    let denied = errno(libc::EPERM);
    let high = 0xDEAD_BEEF_0000_0000_u64;
    for (call, arguments, expected) in [
        (libc::SYS_clone, vec![0x1000_0000], denied),
        (libc::SYS_clone, vec![high | 0x1000_0000], denied),
        (libc::SYS_clone, vec![0x0002_0011], denied),
        (libc::SYS_clone, vec![0x3D_0F00], ALLOWED),
        (libc::SYS_clone, vec![17], ALLOWED),
        (libc::SYS_ioctl, vec![0, 0x5412], denied),
        (libc::SYS_ioctl, vec![0, high | 0x5412], denied),
        (libc::SYS_ioctl, vec![0, 0x541C], denied),
        (libc::SYS_ioctl, vec![0, 0x5413], ALLOWED),
        // Keys of encrypted file systems.
        (libc::SYS_ioctl, vec![3, 0xC050_6617], denied),
        (libc::SYS_ioctl, vec![3, 0xC040_6618], denied),
        // Btrfs makes and removes subvolumes: in every form, and with whatever is said of sizes.
        (libc::SYS_ioctl, vec![0, 0x5000_9401], denied),
        (libc::SYS_ioctl, vec![0, 0x5000_940E], denied),
        (libc::SYS_ioctl, vec![0, high | 0x5000_940F], denied),
        (libc::SYS_ioctl, vec![0, 0x5000_9417], denied),
        (libc::SYS_ioctl, vec![0, 0x5000_9418], denied),
        (libc::SYS_ioctl, vec![0, 0x5000_943F], denied),
        (libc::SYS_ioctl, vec![0, 0x9418], denied),
        (libc::SYS_ioctl, vec![0, 0x4018_6F04], denied),
        (libc::SYS_ioctl, vec![0, 0xC038_586B], denied),
        (libc::SYS_ioctl, vec![0, 0x4010_BC10], denied),
        // `chattr`, in both sizes.
        (libc::SYS_ioctl, vec![0, 0x4008_6602], denied),
        (libc::SYS_ioctl, vec![0, 0x4004_6602], denied),
        (libc::SYS_ioctl, vec![0, 0x401C_5820], denied),
        // FICLONE, FICLONERANGE, FIDEDUPERANGE, GETFLAGS, FSGETXATTR, FIONREAD.
        (libc::SYS_ioctl, vec![0, 0x4004_9409], ALLOWED),
        (libc::SYS_ioctl, vec![0, 0x4020_940D], ALLOWED),
        (libc::SYS_ioctl, vec![0, 0xC018_9436], ALLOWED),
        (libc::SYS_ioctl, vec![0, 0x8008_6601], ALLOWED),
        (libc::SYS_ioctl, vec![0, 0x801C_581F], ALLOWED),
        (libc::SYS_ioctl, vec![0, 0x541B], ALLOWED),
        (libc::SYS_personality, vec![0xFFFF_FFFF], ALLOWED),
        (libc::SYS_personality, vec![0x0004_0000], denied),
        (libc::SYS_seccomp, vec![1, 8], denied),
        (libc::SYS_seccomp, vec![1, 0], ALLOWED),
        (libc::SYS_fchmodat, vec![0, 0, 0o4755], denied),
        (libc::SYS_fchmodat, vec![0, 0, 0o755], ALLOWED),
        (libc::SYS_openat, vec![0, 0, 0o100, 0o4755], denied),
        (libc::SYS_openat, vec![0, 0, 0o100, 0o644], ALLOWED),
        (libc::SYS_openat, vec![0, 0, 0, 0o4755], ALLOWED),
        (libc::SYS_mknodat, vec![0, 0, 0o060_600], denied),
        (libc::SYS_mknodat, vec![0, 0, 0o020_600], denied),
        (libc::SYS_mknodat, vec![0, 0, 0o010_600], ALLOWED),
        (libc::SYS_memfd_create, vec![0, 0x10], denied),
        (libc::SYS_memfd_create, vec![0, 1], ALLOWED),
        (libc::SYS_socketpair, vec![1, 1], ALLOWED),
        (libc::SYS_socketpair, vec![40, 1], denied),
    ] {
        assert_eq!(here(call, &arguments), expected, "{call} {arguments:x?}");
    }
}

#[test]
fn only_ordinary_sockets_are_made() {
    let denied = errno(libc::EPERM);
    let unknown = errno(libc::EAFNOSUPPORT);
    for (arguments, expected) in [
        ([1, 1, 0], ALLOWED),
        ([1, 2 | 0x80000, 0], ALLOWED),
        ([2, 1, 0], ALLOWED),
        ([2, 1 | 0x800, 6], ALLOWED),
        ([10, 2, 17], ALLOWED),
        // Raw, ping, SCTP.
        ([2, 3, 1], denied),
        ([2, 2, 1], denied),
        ([10, 3, 58], denied),
        ([2, 1, 132], denied),
        ([2, 10, 0], denied),
        // The routes may be read, nothing else of netlink.
        ([16, 3, 0], ALLOWED),
        ([16, 3, 9], denied),
        // Packets, virtual machines, Bluetooth, CAN, the kernel's ciphers.
        ([17, 3, 0x300], unknown),
        ([40, 1, 0], unknown),
        ([31, 1, 0], unknown),
        ([29, 3, 1], unknown),
        ([38, 5, 0], unknown),
    ] {
        assert_eq!(here(libc::SYS_socket, &arguments), expected, "{arguments:?}");
    }
}

#[test]
fn without_a_network_namespace_the_filter_makes_up_for_it() {
    let filter = program(Surroundings { shares_network: true, no_memory_files: true, told: false });
    let socket = |a, b, c| said(&filter, ARCHITECTURE, libc::SYS_socket, [a, b, c, 0, 0, 0]);
    let denied = errno(libc::EPERM);
    assert_eq!(socket(1, 1, 0), denied);
    assert_eq!(socket(2, 2, 17), denied);
    // Not every Landlock holds TCP, and none holds all of it.
    assert_eq!(socket(2, 1, 6), denied);
    assert_eq!(socket(10, 1, 0), denied);
    assert_eq!(socket(16, 3, 0), ALLOWED);
    for (call, arguments, expected) in [
        (libc::SYS_prlimit64, [0, 7, 0, 0, 0, 0], ALLOWED),
        // Limits of others are read and not set.
        (libc::SYS_prlimit64, [0, 7, 0x7FFF_0000, 0, 0, 0], ALLOWED),
        (libc::SYS_prlimit64, [4711, 0, 0, 0x7FFF_0000, 0, 0], ALLOWED),
        (libc::SYS_prlimit64, [4711, 0, 0x7FFF_0000, 0, 0, 0], denied),
        (libc::SYS_prlimit64, [4711, 0, 1 << 32, 0, 0, 0], denied),
        (libc::SYS_prlimit64, [1 << 32 | 4711, 0, 1, 0, 0, 0], denied),
        (libc::SYS_fcntl, [3, 8, 4711, 0, 0, 0], denied),
        (libc::SYS_fcntl, [3, 15, 0, 0, 0, 0], denied),
        (libc::SYS_fcntl, [3, 2, 1, 0, 0, 0], ALLOWED),
        (libc::SYS_ioctl, [3, 0x8901, 0, 0, 0, 0], denied),
        // What cannot be written to any more, whatever is said of its size.
        (libc::SYS_ioctl, [3, 0x4080_6685, 0, 0, 0, 0], denied),
        (libc::SYS_ioctl, [3, 0xC040_6618, 0, 0, 0, 0], denied),
        (libc::SYS_ioctl, [3, 0x6685, 0, 0, 0, 0], denied),
        (libc::SYS_ioctl, [3, 0x6686, 0, 0, 0, 0], ALLOWED),
        (libc::SYS_shmget, [0, 4096, 0o600, 0, 0, 0], denied),
        (libc::SYS_semop, [0, 0, 0, 0, 0, 0], denied),
        (libc::SYS_mq_open, [0, 0, 0, 0, 0, 0], denied),
        (libc::SYS_process_mrelease, [3, 0, 0, 0, 0, 0], denied),
        (libc::SYS_fsetxattr, [3, 0, 0, 0, 0, 0], errno(libc::EOPNOTSUPP)),
        (466, [3, 0, 0, 0, 0, 0], errno(libc::EOPNOTSUPP)),
        (libc::SYS_getxattr, [0, 0, 0, 0, 0, 0], ALLOWED),
    ] {
        assert_eq!(said(&filter, ARCHITECTURE, call, arguments), expected, "{call} {arguments:?}");
    }
    let memory =
        |flags| said(&filter, ARCHITECTURE, libc::SYS_memfd_create, [0, flags, 0, 0, 0, 0]);
    assert_eq!(memory(0), denied);
    assert_eq!(memory(8), ALLOWED);
}

#[test]
fn no_jump_is_too_far() {
    let filter = program(Surroundings { shares_network: true, no_memory_files: true, told: false });
    assert!(filter.len() < 4096, "{}", filter.len());
    for (at, one) in filter.iter().enumerate() {
        let far = usize::from(one.jt.max(one.jf));
        assert!(far == 0 || at + 1 + far < filter.len(), "{at}");
    }
}
