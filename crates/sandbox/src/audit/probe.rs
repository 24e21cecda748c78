//! What only the kernel can say: asked of it by calls.

use std::collections::BTreeMap;

use rustix::process::Resource;
use serde::{Deserialize, Serialize};

/// Whether new user namespaces can be made and used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UserNamespaces {
    /// They can.
    Allowed,
    /// They can be made, but give no privileges inside: AppArmor does that.
    Powerless,
    /// They cannot be made.
    Blocked,
}

/// What calls said; `None` where nothing was asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Probes {
    /// The seccomp mode.
    pub seccomp: Option<u32>,
    /// Whether no program can gain privileges.
    pub no_new_privs: Option<bool>,
    /// Capabilities in effect, as bits.
    pub capabilities: Option<u64>,
    /// Whether the root is read-only.
    pub readonly_root: Option<bool>,
    /// Which Landlock the kernel has; 0 is none.
    pub landlock_abi: Option<u32>,
    /// Whether a child could make a user namespace.
    pub user_namespaces: Option<UserNamespaces>,
    /// Hard limits by our names for them; an inner `None` is no limit.
    pub limits: BTreeMap<&'static str, Option<u64>>,
    /// Calls that were tried, and whether they were refused.
    pub syscalls: BTreeMap<&'static str, bool>,
    /// What the environment says of a container. It is the caller's to read.
    pub marks: Vec<String>,
}

/// Calls that a confined process needs not, with arguments that do nothing but are wrong in a way that
/// is told apart from a refusal.
const TRIED: [(&str, libc::c_long, [usize; 5]); 16] = [
    ("add_key", libc::SYS_add_key, [0, 0, 0, 0, 0]),
    ("bpf", libc::SYS_bpf, [usize::MAX, 0, 0, 0, 0]),
    ("delete_module", libc::SYS_delete_module, [0, 0, 0, 0, 0]),
    ("fsopen", libc::SYS_fsopen, [0, usize::MAX, 0, 0, 0]),
    ("init_module", libc::SYS_init_module, [0, 0, 0, 0, 0]),
    ("io_uring_setup", libc::SYS_io_uring_setup, [0, 0, 0, 0, 0]),
    ("kexec_load", libc::SYS_kexec_load, [0, usize::MAX, 0, usize::MAX, 0]),
    ("keyctl", libc::SYS_keyctl, [0x7FFF_FFFF, 0, 0, 0, 0]),
    ("mount", libc::SYS_mount, [0, 0, 0, 0, 0]),
    ("open_by_handle_at", libc::SYS_open_by_handle_at, [usize::MAX, 0, 0, 0, 0]),
    ("perf_event_open", libc::SYS_perf_event_open, [0, 0, 0, 0, usize::MAX]),
    ("pivot_root", libc::SYS_pivot_root, [0, 0, 0, 0, 0]),
    ("process_vm_readv", libc::SYS_process_vm_readv, [usize::MAX, 0, 0, 0, 0]),
    ("ptrace", libc::SYS_ptrace, [0x7FFF_FFFF, 0, 0, 0, 0]),
    ("setns", libc::SYS_setns, [usize::MAX, 0, 0, 0, 0]),
    ("userfaultfd", libc::SYS_userfaultfd, [0x4000_0000, 0, 0, 0, 0]),
];

impl Probes {
    /// Asks for all that costs next to nothing, of this process.
    #[must_use]
    pub fn quick() -> Self {
        let limit = |resource| rustix::process::getrlimit(resource).maximum;
        let limits = [
            ("nproc", limit(Resource::Nproc)),
            ("nofile", limit(Resource::Nofile)),
            ("as", limit(Resource::As)),
            ("fsize", limit(Resource::Fsize)),
            ("core", limit(Resource::Core)),
            ("cpu", limit(Resource::Cpu)),
        ];
        Self {
            seccomp: control(libc::PR_GET_SECCOMP).and_then(|mode| u32::try_from(mode).ok()),
            no_new_privs: control(libc::PR_GET_NO_NEW_PRIVS).map(|set| set != 0),
            capabilities: rustix::thread::capabilities(None).ok().map(|sets| sets.effective.bits()),
            readonly_root: rustix::fs::statvfs("/")
                .ok()
                .map(|found| found.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY)),
            landlock_abi: Some(landlock_abi()),
            limits: limits.into(),
            ..Self::default()
        }
    }

    /// Asks for everything, of this process; what might leave traces is tried in children that end at
    /// once.
    #[must_use]
    pub fn thorough() -> Self {
        Self {
            user_namespaces: user_namespaces(),
            syscalls: TRIED
                .iter()
                .filter_map(|(name, number, arguments)| {
                    refused(*number, arguments).map(|refused| (*name, refused))
                })
                .collect(),
            ..Self::quick()
        }
    }

    /// With what the environment says of a container.
    #[must_use]
    pub fn marked(self, marks: Vec<String>) -> Self {
        Self { marks, ..self }
    }
}

/// A `prctl` that only tells; `None` if it cannot be asked.
fn control(option: libc::c_int) -> Option<libc::c_int> {
    // SAFETY: these options take no pointer, change nothing, and want zeros.
    #[expect(unsafe_code, reason = "no wrapper has this call")]
    let found = unsafe { libc::prctl(option, 0, 0, 0, 0) };
    (found >= 0).then_some(found)
}

fn landlock_abi() -> u32 {
    /// `LANDLOCK_CREATE_RULESET_VERSION`
    const VERSION: u32 = 1;
    // SAFETY: with this flag the call reads nothing and only returns a number.
    #[expect(unsafe_code, reason = "no wrapper has this call")]
    let found = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0usize, VERSION)
    };
    u32::try_from(found).unwrap_or(0)
}

/// In the child: which step failed is the highest bit, why is below.
const SECOND: i32 = 0x80;

fn user_namespaces() -> Option<UserNamespaces> {
    let status = in_child(|| {
        // SAFETY: both calls take plain numbers, and act on this child only.
        #[expect(unsafe_code, reason = "only calls that may follow a fork")]
        unsafe {
            if libc::unshare(libc::CLONE_NEWUSER) != 0 {
                return *libc::__errno_location() & 0x7F;
            }
            // AppArmor lets the namespace come into being and takes its privileges away.
            if libc::unshare(libc::CLONE_NEWUTS) != 0 {
                return SECOND | (*libc::__errno_location() & 0x7F);
            }
        }
        0
    })?;
    // A child that was killed was kept from it, too.
    if libc::WIFEXITED(status) {
        Some(match libc::WEXITSTATUS(status) {
            0 => UserNamespaces::Allowed,
            code if code & SECOND != 0 => UserNamespaces::Powerless,
            _ => UserNamespaces::Blocked,
        })
    } else {
        Some(UserNamespaces::Blocked)
    }
}

/// Whether the kernel refuses a call; `None` if that could not be tried.
fn refused(number: libc::c_long, arguments: &[usize; 5]) -> Option<bool> {
    let status = in_child(|| {
        let [a, b, c, d, e] = *arguments;
        // SAFETY: the arguments are wrong on purpose, so that the call has no effect.
        #[expect(unsafe_code, reason = "the call itself is what is asked about")]
        let found = unsafe { libc::syscall(number, a, b, c, d, e) };
        // SAFETY: the address is this thread's own.
        #[expect(unsafe_code, reason = "only calls that may follow a fork")]
        let why = unsafe { *libc::__errno_location() };
        i32::from(found == -1 && matches!(why, libc::EPERM | libc::ENOSYS | libc::EACCES))
    })?;
    Some(!libc::WIFEXITED(status) || libc::WEXITSTATUS(status) == 1)
}

/// Runs `work` in a child, whose exit code it gives, and waits for it. `work` may only make calls that
/// are allowed after a fork.
fn in_child(work: impl FnOnce() -> i32) -> Option<i32> {
    // SAFETY: the child makes system calls on its own stack and ends without unwinding or cleaning up.
    #[expect(unsafe_code, reason = "the child must not be the program itself")]
    let child = unsafe { libc::fork() };
    match child {
        ..0 => None,
        0 => {
            let code = work();
            // SAFETY: ends the child at once; nothing of the parent's is flushed twice.
            #[expect(unsafe_code, reason = "the library's exit would run the parent's handlers")]
            unsafe {
                libc::_exit(code)
            }
        }
        child => {
            let mut status = 0;
            loop {
                #[expect(
                    unsafe_code,
                    reason = "the status is wanted, also of a child that was killed"
                )]
                // SAFETY: `status` is ours and outlives the call.
                let done = unsafe { libc::waitpid(child, &raw mut status, 0) };
                if done == child {
                    return Some(status);
                }
                if std::io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
                    return None;
                }
            }
        }
    }
}
