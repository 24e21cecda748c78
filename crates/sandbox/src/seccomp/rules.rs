//! What a profile says of each call on this machine.

use std::collections::BTreeMap;

use super::calls::{Call, Calls};
use super::format::{Action, Argument, Condition, Entry, File, Flag, Machine, Op, is_capability};
use crate::filter;

/// Calls that the start itself needs when the filter holds already: the program is started, or it is told why not.
const NEEDED: [(&str, libc::c_long); 3] = [
    ("execve", libc::SYS_execve),
    ("write", libc::SYS_write),
    ("exit_group", libc::SYS_exit_group),
];

/// Largest error that the kernel gives.
const LAST_ERRNO: u64 = 4095;

/// Arguments of which the kernel takes the lower half only. An entry that denies by one, or allows what one is not,
/// compares no more: any other bit above would be a way around it.
const SHORT: &[(libc::c_long, &[usize])] = &[
    (libc::SYS_read, &[0]),
    (libc::SYS_write, &[0]),
    (libc::SYS_close, &[0]),
    (libc::SYS_fstat, &[0]),
    (libc::SYS_lseek, &[0, 2]),
    (libc::SYS_ioctl, &[0, 1]),
    (libc::SYS_fcntl, &[0, 1]),
    (libc::SYS_flock, &[0, 1]),
    (libc::SYS_fsync, &[0]),
    (libc::SYS_fdatasync, &[0]),
    (libc::SYS_ftruncate, &[0]),
    (libc::SYS_syncfs, &[0]),
    (libc::SYS_readahead, &[0]),
    (libc::SYS_fstatfs, &[0]),
    (libc::SYS_mmap, &[4]),
    (libc::SYS_fchdir, &[0]),
    (libc::SYS_getdents64, &[0, 2]),
    (libc::SYS_pread64, &[0]),
    (libc::SYS_pwrite64, &[0]),
    (libc::SYS_readv, &[0]),
    (libc::SYS_writev, &[0]),
    (libc::SYS_preadv, &[0]),
    (libc::SYS_pwritev, &[0]),
    (libc::SYS_preadv2, &[0, 5]),
    (libc::SYS_pwritev2, &[0, 5]),
    (libc::SYS_sendfile, &[0, 1]),
    (libc::SYS_splice, &[0, 2, 5]),
    (libc::SYS_tee, &[0, 1, 3]),
    (libc::SYS_vmsplice, &[0, 3]),
    (libc::SYS_copy_file_range, &[0, 2, 5]),
    (libc::SYS_fallocate, &[0, 1]),
    (libc::SYS_fadvise64, &[0, 3]),
    (libc::SYS_sync_file_range, &[0, 3]),
    (libc::SYS_dup, &[0]),
    (libc::SYS_dup3, &[0, 1, 2]),
    (libc::SYS_close_range, &[0, 1, 2]),
    (libc::SYS_pipe2, &[1]),
    (libc::SYS_openat, &[0, 2, 3]),
    (libc::SYS_openat2, &[0]),
    (libc::SYS_mkdirat, &[0, 2]),
    (libc::SYS_mknodat, &[0, 2, 3]),
    (libc::SYS_unlinkat, &[0, 2]),
    (libc::SYS_renameat2, &[0, 2, 4]),
    (libc::SYS_linkat, &[0, 2, 4]),
    (libc::SYS_symlinkat, &[1]),
    (libc::SYS_readlinkat, &[0, 3]),
    (libc::SYS_faccessat, &[0, 2]),
    (libc::SYS_faccessat2, &[0, 2, 3]),
    (libc::SYS_newfstatat, &[0, 3]),
    (libc::SYS_statx, &[0, 2, 3]),
    (libc::SYS_utimensat, &[0, 3]),
    (libc::SYS_umask, &[0]),
    (libc::SYS_fchmod, &[0, 1]),
    (libc::SYS_fchmodat, &[0, 2]),
    (libc::SYS_fchmodat2, &[0, 2, 3]),
    (libc::SYS_fchown, &[0, 1, 2]),
    (libc::SYS_fchownat, &[0, 2, 3, 4]),
    (libc::SYS_name_to_handle_at, &[0, 4]),
    (libc::SYS_open_by_handle_at, &[0, 2]),
    (libc::SYS_execveat, &[0, 4]),
    (libc::SYS_fsetxattr, &[0, 4]),
    (libc::SYS_fgetxattr, &[0]),
    (libc::SYS_flistxattr, &[0]),
    (libc::SYS_fremovexattr, &[0]),
    (libc::SYS_setxattr, &[4]),
    (libc::SYS_lsetxattr, &[4]),
    (libc::SYS_inotify_init1, &[0]),
    (libc::SYS_inotify_add_watch, &[0, 2]),
    (libc::SYS_inotify_rm_watch, &[0, 1]),
    (libc::SYS_fanotify_init, &[0, 1]),
    (libc::SYS_fanotify_mark, &[0, 1, 3]),
    (libc::SYS_epoll_create1, &[0]),
    (libc::SYS_epoll_ctl, &[0, 1, 2]),
    (libc::SYS_epoll_pwait, &[0, 2, 3]),
    (libc::SYS_epoll_pwait2, &[0, 2]),
    (libc::SYS_semtimedop, &[0, 2]),
    (libc::SYS_mq_timedsend, &[0, 3]),
    (libc::SYS_mq_timedreceive, &[0]),
    (libc::SYS_mq_notify, &[0]),
    (libc::SYS_mq_getsetattr, &[0]),
    (libc::SYS_timer_settime, &[0, 1]),
    (libc::SYS_setitimer, &[0]),
    (libc::SYS_getitimer, &[0]),
    (libc::SYS_clock_gettime, &[0]),
    (libc::SYS_clock_getres, &[0]),
    (libc::SYS_clock_adjtime, &[0]),
    (libc::SYS_finit_module, &[0, 2]),
    (libc::SYS_delete_module, &[1]),
    (libc::SYS_kexec_file_load, &[0, 1]),
    (libc::SYS_migrate_pages, &[0]),
    (libc::SYS_eventfd2, &[0, 1]),
    (libc::SYS_signalfd4, &[0, 3]),
    (libc::SYS_timerfd_create, &[0, 1]),
    (libc::SYS_timerfd_settime, &[0, 1]),
    (libc::SYS_timerfd_gettime, &[0]),
    (libc::SYS_ppoll, &[1]),
    (libc::SYS_pselect6, &[0]),
    (libc::SYS_socket, &[0, 1, 2]),
    (libc::SYS_socketpair, &[0, 1, 2]),
    (libc::SYS_bind, &[0, 2]),
    (libc::SYS_connect, &[0, 2]),
    (libc::SYS_listen, &[0, 1]),
    (libc::SYS_accept, &[0]),
    (libc::SYS_accept4, &[0, 3]),
    (libc::SYS_shutdown, &[0, 1]),
    (libc::SYS_sendto, &[0, 3, 5]),
    (libc::SYS_recvfrom, &[0, 3]),
    (libc::SYS_sendmsg, &[0, 2]),
    (libc::SYS_recvmsg, &[0, 2]),
    (libc::SYS_sendmmsg, &[0, 2, 3]),
    (libc::SYS_recvmmsg, &[0, 2, 3]),
    (libc::SYS_getsockname, &[0]),
    (libc::SYS_getpeername, &[0]),
    (libc::SYS_setsockopt, &[0, 1, 2, 4]),
    (libc::SYS_getsockopt, &[0, 1, 2]),
    (libc::SYS_prctl, &[0]),
    (libc::SYS_personality, &[0]),
    (libc::SYS_clone, &[0]),
    (libc::SYS_setns, &[0, 1]),
    (libc::SYS_seccomp, &[0, 1]),
    (libc::SYS_bpf, &[0, 2]),
    (libc::SYS_keyctl, &[0]),
    (libc::SYS_add_key, &[4]),
    (libc::SYS_request_key, &[3]),
    (libc::SYS_perf_event_open, &[1, 2, 3]),
    (libc::SYS_userfaultfd, &[0]),
    (libc::SYS_kill, &[0, 1]),
    (libc::SYS_tkill, &[0, 1]),
    (libc::SYS_tgkill, &[0, 1, 2]),
    (libc::SYS_rt_sigaction, &[0]),
    (libc::SYS_rt_sigprocmask, &[0]),
    (libc::SYS_rt_sigqueueinfo, &[0, 1]),
    (libc::SYS_rt_tgsigqueueinfo, &[0, 1, 2]),
    (libc::SYS_pidfd_open, &[0, 1]),
    (libc::SYS_pidfd_send_signal, &[0, 1, 3]),
    (libc::SYS_pidfd_getfd, &[0, 1, 2]),
    (libc::SYS_waitid, &[0, 1, 3]),
    (libc::SYS_wait4, &[0, 2]),
    (libc::SYS_process_vm_readv, &[0]),
    (libc::SYS_process_vm_writev, &[0]),
    (libc::SYS_kcmp, &[0, 1, 2]),
    (libc::SYS_setpriority, &[0, 1, 2]),
    (libc::SYS_getpriority, &[0, 1]),
    (libc::SYS_ioprio_set, &[0, 1, 2]),
    (libc::SYS_ioprio_get, &[0, 1]),
    (libc::SYS_sched_setscheduler, &[0, 1]),
    (libc::SYS_sched_setparam, &[0]),
    (libc::SYS_sched_setaffinity, &[0, 1]),
    (libc::SYS_sched_setattr, &[0, 2]),
    (libc::SYS_setpgid, &[0, 1]),
    (libc::SYS_getpgid, &[0]),
    (libc::SYS_getsid, &[0]),
    (libc::SYS_setuid, &[0]),
    (libc::SYS_setgid, &[0]),
    (libc::SYS_setreuid, &[0, 1]),
    (libc::SYS_setregid, &[0, 1]),
    (libc::SYS_setresuid, &[0, 1, 2]),
    (libc::SYS_setresgid, &[0, 1, 2]),
    (libc::SYS_setfsuid, &[0]),
    (libc::SYS_setfsgid, &[0]),
    (libc::SYS_setgroups, &[0]),
    (libc::SYS_prlimit64, &[0, 1]),
    (libc::SYS_setrlimit, &[0]),
    (libc::SYS_getrlimit, &[0]),
    (libc::SYS_getrusage, &[0]),
    (libc::SYS_membarrier, &[0, 1, 2]),
    (libc::SYS_getrandom, &[2]),
    (libc::SYS_memfd_create, &[1]),
    (libc::SYS_memfd_secret, &[0]),
    (libc::SYS_mlockall, &[0]),
    (libc::SYS_mlock2, &[2]),
    (libc::SYS_msync, &[2]),
    (libc::SYS_madvise, &[2]),
    (libc::SYS_mbind, &[5]),
    (libc::SYS_set_mempolicy, &[0]),
    (libc::SYS_move_pages, &[0, 5]),
    (libc::SYS_process_madvise, &[0, 3, 4]),
    (libc::SYS_process_mrelease, &[0, 1]),
    (libc::SYS_futex, &[1, 2, 5]),
    (libc::SYS_mq_open, &[1, 2]),
    (libc::SYS_msgget, &[0, 1]),
    (libc::SYS_msgsnd, &[0, 3]),
    (libc::SYS_msgrcv, &[0, 4]),
    (libc::SYS_msgctl, &[0, 1]),
    (libc::SYS_semget, &[0, 1, 2]),
    (libc::SYS_semop, &[0, 2]),
    (libc::SYS_semctl, &[0, 1, 2]),
    (libc::SYS_shmget, &[0, 2]),
    (libc::SYS_shmat, &[0, 2]),
    (libc::SYS_shmctl, &[0, 1]),
    (libc::SYS_io_uring_setup, &[0]),
    (libc::SYS_io_uring_enter, &[0, 1, 2, 3]),
    (libc::SYS_io_uring_register, &[0, 1, 3]),
    (libc::SYS_fsopen, &[1]),
    (libc::SYS_fsconfig, &[0, 1, 4]),
    (libc::SYS_fsmount, &[0, 1, 2]),
    (libc::SYS_fspick, &[0, 2]),
    (libc::SYS_move_mount, &[0, 2, 4]),
    (libc::SYS_open_tree, &[0, 2]),
    (libc::SYS_mount_setattr, &[0, 2]),
    (libc::SYS_umount2, &[1]),
    (libc::SYS_landlock_create_ruleset, &[2]),
    (libc::SYS_landlock_add_rule, &[0, 1, 3]),
    (libc::SYS_landlock_restrict_self, &[0, 1]),
    (libc::SYS_clock_settime, &[0]),
    (libc::SYS_clock_nanosleep, &[0, 1]),
    (libc::SYS_timer_create, &[0]),
    (libc::SYS_swapon, &[1]),
    (libc::SYS_reboot, &[0, 1, 2]),
    (libc::SYS_syslog, &[0, 2]),
    (libc::SYS_quotactl, &[0, 2]),
    (libc::SYS_quotactl_fd, &[0, 1, 2]),
];

/// The same of calls that other machines do not have.
#[cfg(target_arch = "x86_64")]
const SHORT_HERE: &[(libc::c_long, &[usize])] = &[
    (libc::SYS_open, &[1, 2]),
    (libc::SYS_creat, &[1]),
    (libc::SYS_access, &[1]),
    (libc::SYS_mkdir, &[1]),
    (libc::SYS_mknod, &[1, 2]),
    (libc::SYS_chmod, &[1]),
    (libc::SYS_chown, &[1, 2]),
    (libc::SYS_lchown, &[1, 2]),
    (libc::SYS_dup2, &[0, 1]),
    (libc::SYS_renameat, &[0, 2]),
    (libc::SYS_getdents, &[0, 2]),
    (libc::SYS_epoll_wait, &[0, 2, 3]),
    (libc::SYS_poll, &[1, 2]),
    (libc::SYS_select, &[0]),
    (libc::SYS_eventfd, &[0]),
    (libc::SYS_signalfd, &[0]),
    (libc::SYS_arch_prctl, &[0]),
    (libc::SYS_alarm, &[0]),
];
#[cfg(not(target_arch = "x86_64"))]
const SHORT_HERE: &[(libc::c_long, &[usize])] = &[];

/// All that a profile says.
#[derive(Debug)]
pub(super) struct Rules {
    /// Of calls that are not listed, as the kernel says it.
    pub(super) default: u32,
    pub(super) calls: BTreeMap<u32, Decision>,
    pub(super) logs: bool,
}

/// What it says of one call: the first case that holds, or what is left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Decision {
    pub(super) cases: Vec<(Vec<Test>, u32)>,
    pub(super) otherwise: u32,
}

/// What an argument must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Test {
    pub(super) index: usize,
    /// Bits that count.
    pub(super) mask: u64,
    pub(super) op: Op,
    pub(super) value: u64,
}

impl Rules {
    /// Where several entries hold for a call, the strictest counts, whichever comes first.
    pub(super) fn new(file: File, kernel: Option<(u32, u32)>) -> Result<Self, String> {
        if file.architectures.is_some() && file.arch_map.is_some() {
            return Err("it has both `architectures` and `archMap`: leave one out".to_owned());
        }
        let default = outcome(file.default_action, file.default_errno_ret)
            .map_err(|why| format!("`defaultErrnoRet` {why}"))?;
        let known = Calls::new();
        let mut calls: BTreeMap<u32, Decision> = BTreeMap::new();
        for (at, entry) in file.syscalls.into_iter().flatten().enumerate() {
            let place = |why: String| format!("entry {} of `syscalls` {why}", at + 1);
            if !holds(&entry, kernel).map_err(place)? {
                continue;
            }
            let outcome = outcome(entry.action, entry.errno_ret)
                .map_err(|why| place(format!("has an `errnoRet` that {why}")))?;
            for name in names(&entry).map_err(place)? {
                let number = match known.named(name) {
                    Call::Here(number) => number,
                    Call::Elsewhere => continue,
                    // Nothing is let through by that.
                    Call::Unknown if strictness(outcome) >= strictness(default) => continue,
                    Call::Unknown => {
                        return Err(place(format!(
                            "is to refuse `{}`, which is not known as a call: mend the name, or leave it out",
                            name.escape_default()
                        )));
                    }
                };
                let tests = tests(&entry, number, outcome)
                    .map_err(|why| place(format!("(`{name}`) {why}")))?;
                let decision = calls.entry(number);
                let fresh = || Decision { cases: Vec::new(), otherwise: default };
                decision.or_insert_with(fresh).cases.push((tests, outcome));
            }
        }
        for decision in calls.values_mut() {
            decision.settle();
        }
        leave_told(&mut calls, default);
        let logs = file.flags.is_some_and(|flags| flags.contains(&Flag::Log));
        let rules = Self { default, calls, logs };
        rules.check_needed()?;
        Ok(rules)
    }

    fn check_needed(&self) -> Result<(), String> {
        for (name, number) in NEEDED {
            let decision = u32::try_from(number).ok().and_then(|number| self.calls.get(&number));
            let fine = match decision {
                Some(decision) => decision.outcomes().all(lets_through),
                None => lets_through(self.default),
            };
            if !fine {
                return Err(format!(
                    "it does not allow `{name}` whatever its arguments are, so that nothing could be started under it: \
                     allow `execve`, `write` and `exit_group`"
                ));
            }
        }
        Ok(())
    }
}

impl Decision {
    fn outcomes(&self) -> impl Iterator<Item = u32> {
        self.cases.iter().map(|(_, outcome)| *outcome).chain([self.otherwise])
    }

    /// Puts the strictest first; what stands behind a case without conditions never counts.
    fn settle(&mut self) {
        self.cases.sort_by_key(|(_, outcome)| strictness(*outcome));
        if let Some(last) = self.cases.iter().position(|(tests, _)| tests.is_empty()) {
            self.otherwise = self.cases[last].1;
            self.cases.truncate(last);
        }
    }
}

/// Calls that ours denies keep its answer: an error from here would come first, and nobody would hear that the program
/// has tried, or the program would not see that it must take an older call. What is more than an error stays.
fn leave_told(calls: &mut BTreeMap<u32, Decision>, default: u32) {
    let left = |outcome: &mut u32| {
        if strictness(*outcome) == strictness(libc::SECCOMP_RET_ERRNO) {
            *outcome = libc::SECCOMP_RET_ALLOW;
        }
    };
    let fresh = || Decision { cases: Vec::new(), otherwise: default };
    let told = filter::denied().chain(filter::UNKNOWN.iter().copied());
    for number in told.filter_map(|call| u32::try_from(call).ok()) {
        let decision = calls.entry(number).or_insert_with(fresh);
        decision.cases.iter_mut().for_each(|(_, outcome)| left(outcome));
        left(&mut decision.otherwise);
    }
    // A new process in a new namespace is told of by its flags.
    let Ok(clone) = u32::try_from(libc::SYS_clone) else { return };
    let decision = calls.entry(clone).or_insert_with(fresh);
    let error = strictness(libc::SECCOMP_RET_ERRNO);
    let at = decision.cases.iter().take_while(|(_, one)| strictness(*one) < error).count();
    if at < decision.cases.len() || strictness(decision.otherwise) >= error {
        let mask = filter::NAMESPACES.into();
        let test = Test { index: 0, mask, op: Op::NotEqual, value: 0 };
        decision.cases.insert(at, (vec![test], libc::SECCOMP_RET_ALLOW));
    }
}

/// What the kernel compares: the less, the stricter.
pub(super) fn strictness(outcome: u32) -> i32 {
    (outcome & libc::SECCOMP_RET_ACTION_FULL).cast_signed()
}

fn lets_through(outcome: u32) -> bool {
    strictness(outcome) >= strictness(libc::SECCOMP_RET_LOG)
}

fn outcome(action: Action, errno: Option<u64>) -> Result<u32, String> {
    if action != Action::Errno && errno.is_some() {
        return Err("has no meaning, as its action gives no error: leave it out".to_owned());
    }
    Ok(match action {
        Action::Allow => libc::SECCOMP_RET_ALLOW,
        Action::Log => libc::SECCOMP_RET_LOG,
        Action::Errno => {
            let errno = errno.unwrap_or(libc::EPERM as u64);
            let errno = u32::try_from(errno).ok().filter(|_| errno <= LAST_ERRNO);
            libc::SECCOMP_RET_ERRNO | errno.ok_or("is no error: give 0 to 4095")?
        }
        Action::Trap => libc::SECCOMP_RET_TRAP,
        Action::KillThread => libc::SECCOMP_RET_KILL_THREAD,
        Action::KillProcess => libc::SECCOMP_RET_KILL_PROCESS,
    })
}

fn names(entry: &Entry) -> Result<Vec<&str>, String> {
    let names: Vec<&str> = match (&entry.name, &entry.names) {
        (Some(_), Some(_)) => {
            return Err("has both `name` and `names`: leave one out".to_owned());
        }
        (Some(name), None) => vec![name],
        (None, names) => names.iter().flatten().map(String::as_str).collect(),
    };
    if names.is_empty() {
        return Err("names no call: add `names`, or leave it out".to_owned());
    }
    Ok(names)
}

/// Whether an entry counts here. Nobody confined has a capability.
fn holds(entry: &Entry, kernel: Option<(u32, u32)>) -> Result<bool, String> {
    for condition in [&entry.includes, &entry.excludes].into_iter().flatten() {
        if let Some(name) = condition.caps.iter().flatten().find(|name| !is_capability(name)) {
            return Err(format!(
                "names a capability that is not known: `{}`",
                name.escape_default()
            ));
        }
    }
    let nothing = Condition::default();
    let includes = entry.includes.as_ref().unwrap_or(&nothing);
    let excludes = entry.excludes.as_ref().unwrap_or(&nothing);
    let here = |condition: &Condition| {
        condition
            .arches
            .as_ref()
            .filter(|all| !all.is_empty())
            .map(|all| all.contains(&Machine::HERE))
    };
    let excluded = here(excludes) == Some(true) || reaches(excludes, kernel)? == Some(true);
    let included = here(includes) != Some(false)
        && includes.caps.as_ref().is_none_or(|caps| caps.is_empty())
        && reaches(includes, kernel)? != Some(false);
    Ok(included && !excluded)
}

/// Whether this kernel is the one that is asked for, or later.
fn reaches(condition: &Condition, kernel: Option<(u32, u32)>) -> Result<Option<bool>, String> {
    let Some(least) = &condition.min_kernel else { return Ok(None) };
    let bad = || format!("has a `minKernel` that is no version: `{}`", least.escape_default());
    let least = version(least, true).ok_or_else(bad)?;
    let kernel = kernel.ok_or("has a `minKernel`, and this kernel does not tell its version")?;
    Ok(Some(kernel >= least))
}

/// The version of this kernel.
pub(crate) fn kernel() -> Option<(u32, u32)> {
    version(rustix::system::uname().release().to_str().ok()?, false)
}

fn version(text: &str, whole: bool) -> Option<(u32, u32)> {
    let (first, rest) = text.split_once('.')?;
    let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
    if whole && end < rest.len() || !first.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some((first.parse().ok()?, rest[..end].parse().ok()?))
}

fn tests(entry: &Entry, number: u32, outcome: u32) -> Result<Vec<Test>, String> {
    let mut all: Vec<Test> = Vec::new();
    for argument in entry.args.iter().flatten() {
        let test = test(argument, number, outcome)?;
        if all.iter().any(|other| other.index == test.index) {
            return Err(format!(
                "asks twice for argument {}, which runtimes take for one or the other: make two entries of it",
                test.index
            ));
        }
        all.push(test);
    }
    Ok(all)
}

fn test(argument: &Argument, number: u32, outcome: u32) -> Result<Test, String> {
    let Argument { index, value, value_two, op } = *argument;
    let index = usize::try_from(index).ok().filter(|index| *index < 6);
    let index = index.ok_or("asks for an argument that no call has: give 0 to 5")?;
    let (mut mask, mut value) = match (op, value_two) {
        (Op::Masked, second) => (value, second.unwrap_or(0)),
        (_, None | Some(0)) => (u64::MAX, value),
        _ => return Err("has a `valueTwo` that its `op` does not compare: leave it out".to_owned()),
    };
    if value & !mask != 0 {
        return Err("has a `valueTwo` with bits that its `value` leaves out, so that nothing fits"
            .to_owned());
    }
    let short = SHORT
        .iter()
        .chain(SHORT_HERE)
        .any(|(call, indexes)| u32::try_from(*call) == Ok(number) && indexes.contains(&index));
    // What lets all others through must not take one for another that the kernel takes for the same.
    let evades = !lets_through(outcome) || matches!(op, Op::NotEqual | Op::Greater | Op::AtLeast);
    // A negative number may be written with or without the upper half.
    if short && evades && (value >> 32 == 0 || value >> 32 == u64::from(u32::MAX)) {
        mask &= u64::from(u32::MAX);
        value &= mask;
    }
    Ok(Test { index, mask, op, value })
}
