//! The file as it is written: what OCI runtimes read, and what Docker has besides.

use std::collections::BTreeSet;

use serde::Deserialize;

/// A profile. A key that is not known could be one that changes what the others mean.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct File {
    pub(super) default_action: Action,
    pub(super) default_errno_ret: Option<u64>,
    pub(super) architectures: Option<Vec<Architecture>>,
    pub(super) arch_map: Option<Vec<Mapped>>,
    pub(super) flags: Option<Vec<Flag>>,
    pub(super) syscalls: Option<Vec<Entry>>,
}

/// What becomes of a call. A listener or a tracer of somebody else's is not offered: whoever it is could let a call pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) enum Action {
    #[serde(rename = "SCMP_ACT_ALLOW")]
    Allow,
    #[serde(rename = "SCMP_ACT_LOG")]
    Log,
    #[serde(rename = "SCMP_ACT_ERRNO")]
    Errno,
    #[serde(rename = "SCMP_ACT_TRAP")]
    Trap,
    #[serde(rename = "SCMP_ACT_KILL_THREAD", alias = "SCMP_ACT_KILL")]
    KillThread,
    #[serde(rename = "SCMP_ACT_KILL_PROCESS")]
    KillProcess,
}

/// Which machine a profile is for. It holds for this one whatever is listed: a call by another is never let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) enum Architecture {
    #[serde(rename = "SCMP_ARCH_X86_64")]
    X8664,
    #[serde(rename = "SCMP_ARCH_AARCH64")]
    Aarch64,
    #[serde(rename = "SCMP_ARCH_RISCV64")]
    Riscv64,
    #[serde(
        rename = "SCMP_ARCH_X86",
        alias = "SCMP_ARCH_X32",
        alias = "SCMP_ARCH_ARM",
        alias = "SCMP_ARCH_LOONGARCH64",
        alias = "SCMP_ARCH_M68K",
        alias = "SCMP_ARCH_MIPS",
        alias = "SCMP_ARCH_MIPS64",
        alias = "SCMP_ARCH_MIPS64N32",
        alias = "SCMP_ARCH_MIPSEL",
        alias = "SCMP_ARCH_MIPSEL64",
        alias = "SCMP_ARCH_MIPSEL64N32",
        alias = "SCMP_ARCH_PARISC",
        alias = "SCMP_ARCH_PARISC64",
        alias = "SCMP_ARCH_PPC",
        alias = "SCMP_ARCH_PPC64",
        alias = "SCMP_ARCH_PPC64LE",
        alias = "SCMP_ARCH_S390",
        alias = "SCMP_ARCH_S390X",
        alias = "SCMP_ARCH_SH",
        alias = "SCMP_ARCH_SHEB"
    )]
    Other,
}

/// Docker's form of it. It is read so that it must be one that is known.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "nothing hangs on it")]
pub(super) struct Mapped {
    architecture: Architecture,
    sub_architectures: Option<Vec<Architecture>>,
}

/// How the kernel is to take the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) enum Flag {
    /// For all threads; there is one.
    #[serde(rename = "SECCOMP_FILTER_FLAG_TSYNC")]
    Threads,
    /// What is refused is written to the kernel's log.
    #[serde(rename = "SECCOMP_FILTER_FLAG_LOG")]
    Log,
}

/// What holds for some calls.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Entry {
    /// Docker's older form for one.
    pub(super) name: Option<String>,
    pub(super) names: Option<Vec<String>>,
    pub(super) action: Action,
    pub(super) errno_ret: Option<u64>,
    pub(super) args: Option<Vec<Argument>>,
    #[expect(dead_code, reason = "it is for people")]
    pub(super) comment: Option<String>,
    pub(super) includes: Option<Condition>,
    pub(super) excludes: Option<Condition>,
}

/// What an argument must be.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Argument {
    pub(super) index: u64,
    pub(super) value: u64,
    pub(super) value_two: Option<u64>,
    pub(super) op: Op,
}

/// How it is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) enum Op {
    #[serde(rename = "SCMP_CMP_NE")]
    NotEqual,
    #[serde(rename = "SCMP_CMP_LT")]
    Less,
    #[serde(rename = "SCMP_CMP_LE")]
    AtMost,
    #[serde(rename = "SCMP_CMP_EQ")]
    Equal,
    #[serde(rename = "SCMP_CMP_GE")]
    AtLeast,
    #[serde(rename = "SCMP_CMP_GT")]
    Greater,
    #[serde(rename = "SCMP_CMP_MASKED_EQ")]
    Masked,
}

/// Docker's conditions for an entry as a whole.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Condition {
    pub(super) arches: Option<BTreeSet<Machine>>,
    pub(super) caps: Option<BTreeSet<String>>,
    pub(super) min_kernel: Option<String>,
}

/// A machine as Docker names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Machine {
    Amd64,
    Arm64,
    Riscv64,
    #[serde(
        rename = "x86",
        alias = "386",
        alias = "x32",
        alias = "arm",
        alias = "loong64",
        alias = "mips",
        alias = "mips64",
        alias = "mips64n32",
        alias = "mipsel",
        alias = "mipsel64",
        alias = "mipsel64n32",
        alias = "mipsle",
        alias = "mips64le",
        alias = "ppc",
        alias = "ppc64",
        alias = "ppc64le",
        alias = "s390",
        alias = "s390x"
    )]
    Other,
}

impl Machine {
    /// This one.
    pub(super) const HERE: Self = if cfg!(target_arch = "x86_64") {
        Self::Amd64
    } else if cfg!(target_arch = "aarch64") {
        Self::Arm64
    } else {
        Self::Riscv64
    };
}

/// Whether a capability has this name. One that nobody knows would leave an entry out, or in, by a slip.
pub(super) fn is_capability(name: &str) -> bool {
    const KNOWN: &str = "AUDIT_CONTROL AUDIT_READ AUDIT_WRITE BLOCK_SUSPEND BPF CHECKPOINT_RESTORE CHOWN \
        DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID IPC_LOCK IPC_OWNER KILL LEASE LINUX_IMMUTABLE MAC_ADMIN \
        MAC_OVERRIDE MKNOD NET_ADMIN NET_BIND_SERVICE NET_BROADCAST NET_RAW PERFMON SETFCAP SETGID SETPCAP \
        SETUID SYSLOG SYS_ADMIN SYS_BOOT SYS_CHROOT SYS_MODULE SYS_NICE SYS_PACCT SYS_PTRACE SYS_RAWIO \
        SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG WAKE_ALARM";
    let known = |name: &str| KNOWN.split_whitespace().any(|one| one == name);
    name.strip_prefix("CAP_").is_some_and(known)
}
