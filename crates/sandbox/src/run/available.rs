//! Which layers this kernel gives to this user, why not, and what to do about it.

use rustix::io::Errno;

use crate::spec::Layer;
use crate::sys;

/// The oldest kernel that has all that is used: of its calls that are told, a descriptor and an answer in one.
const OLDEST: (u32, u32) = (5, 14);

/// How a kernel is had that is not too old.
pub(super) const NEWER: &str = "use Linux 5.14 or later: nothing can be gone without instead";

/// Why this kernel is too old, whatever may be missing. One that does not tell its version is tried.
pub(super) fn too_old() -> Option<String> {
    let (first, second) = crate::seccomp::kernel().filter(|kernel| *kernel < OLDEST)?;
    Some(format!("this kernel, Linux {first}.{second}, is too old"))
}

/// The version of Landlock.
pub(super) fn landlock() -> Result<i32, String> {
    match sys::landlock_abi() {
        Ok(abi) if abi >= 1 => Ok(abi),
        Ok(_) | Err(Errno::NOSYS) => Err("this kernel has no Landlock".to_owned()),
        Err(Errno::OPNOTSUPP) => Err("Landlock is switched off in this kernel".to_owned()),
        Err(errno) => Err(format!("the kernel refuses Landlock ({errno})")),
    }
}

/// Whether filters of system calls are to be had.
pub(super) fn seccomp() -> Result<(), String> {
    let known = [libc::SECCOMP_RET_KILL_PROCESS, libc::SECCOMP_RET_ERRNO];
    if known.into_iter().all(sys::seccomp_knows) {
        Ok(())
    } else {
        Err("this kernel has no filters of system calls".to_owned())
    }
}

/// Whether a process may read what another one names in its calls, as who watches over them must.
pub(super) fn watching() -> Result<(), String> {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    match scope.trim() {
        scope @ ("2" | "3") => Err(format!(
            "kernel.yama.ptrace_scope is {scope}, so that nobody can read which names a program makes"
        )),
        _ => Ok(()),
    }
}

/// How names can be watched where no process may look into another one.
pub(super) const UNREADABLE: &str = "set kernel.yama.ptrace_scope to 1, or go without by \
     --allow-degraded names";

/// Why there are no namespaces, after the kernel said `errno`.
pub(super) fn why_no_namespaces(errno: Errno) -> String {
    let read = |path: &str| {
        std::fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default()
    };
    if read("/proc/sys/user/max_user_namespaces") == "0" {
        return "user.max_user_namespaces is 0".to_owned();
    }
    if read("/proc/sys/kernel/unprivileged_userns_clone") == "0" {
        return "kernel.unprivileged_userns_clone is 0".to_owned();
    }
    if read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1" {
        return "AppArmor keeps user namespaces from programs without a profile".to_owned();
    }
    if errno == Errno::ACCESS {
        return "AppArmor, SELinux or the like keeps user namespaces from this program".to_owned();
    }
    format!("the kernel refuses them ({errno}), as inside of many containers")
}

/// How names can be watched where there are no filters.
pub(super) const NO_FILTER: &str = "use a kernel with CONFIG_SECCOMP_FILTER, or go without both by \
     --allow-degraded seccomp --allow-degraded names";

/// How a layer can be had.
pub(super) fn how(layer: Layer) -> &'static str {
    match layer {
        Layer::Namespaces => {
            "allow user namespaces (sysctl user.max_user_namespaces=15000, \
             kernel.unprivileged_userns_clone=1, an AppArmor profile with `userns`; in a container \
             --security-opt seccomp=unconfined), or go without by --allow-degraded namespaces"
        }
        Layer::Proc => {
            "run outside of the container or with an unmasked /proc, or go without by \
             --allow-degraded proc"
        }
        Layer::Landlock => {
            "use a kernel from 5.13 on with `landlock` in its lsm= list, or go without by \
             --allow-degraded landlock"
        }
        Layer::Seccomp => {
            "use a kernel with CONFIG_SECCOMP_FILTER, or go without by --allow-degraded seccomp"
        }
        Layer::Names => "start it in a smaller folder, or go without by --allow-degraded names",
    }
}
