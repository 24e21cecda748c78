//! What the files of the kernel say.

use std::fs::File;
use std::io::Read as _;
use std::path::{Component, Path};

use super::Roots;

/// More than any of these files has.
const MOST: u64 = 4 << 20;
/// Control groups above the one of the process that are looked at.
const GROUPS: usize = 32;

/// Kinds of namespaces, each with the number that the machine's first one has on every kernel, and
/// the numbers that it has on some.
const KINDS: [(&str, &[u64]); 8] = [
    ("cgroup", &[0xEFFF_FFFB]),
    ("ipc", &[0xEFFF_FFFF]),
    ("mnt", &[0xEFFF_FFF8, 0xF000_0000, 0xF000_0001]),
    ("net", &[0xEFFF_FFF9]),
    ("pid", &[0xEFFF_FFFC]),
    ("time", &[0xEFFF_FFFA]),
    ("user", &[0xEFFF_FFFD]),
    ("uts", &[0xEFFF_FFFE]),
];
/// A setting that only the machine's first network has.
const FIRST_NETWORK: &str = "sys/net/core/netdev_max_backlog";
/// Words in the control group of the first process that name what runs a container.
const RUNNERS: [&str; 8] =
    ["docker", "kubepods", "containerd", "crio", "libpod", "lxc", "nspawn", "garden"];

/// Limits, as `/proc/PID/limits` names them and as we do.
const LIMITS: [(&str, &str); 6] = [
    ("Max processes", "nproc"),
    ("Max open files", "nofile"),
    ("Max address space", "as"),
    ("Max file size", "fsize"),
    ("Max core file size", "core"),
    ("Max cpu time", "cpu"),
];

/// Whose a namespace is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    /// Not that of the machine's first process.
    Own,
    /// That of the machine's first process.
    Machine,
    /// It cannot be told.
    Unknown,
}

/// What was read.
#[derive(Debug, Default)]
pub(super) struct Reading {
    pub(super) seccomp: Option<u32>,
    pub(super) no_new_privs: Option<bool>,
    pub(super) capabilities: Option<u64>,
    pub(super) namespaces: Vec<(&'static str, Whose)>,
    pub(super) readonly_root: Option<bool>,
    /// Hard limits; `None` is no limit.
    pub(super) limits: Vec<(&'static str, Option<u64>)>,
    pub(super) group_processes: Option<u64>,
    pub(super) group_memory: Option<u64>,
    pub(super) marks: Vec<String>,
    /// Files that say that user namespaces are blocked.
    pub(super) userns_blocked: Option<&'static str>,
}

impl Reading {
    pub(super) fn of(roots: &Roots) -> Self {
        let process = roots.proc.join(&roots.process);
        let status = text(&process.join("status")).unwrap_or_default();
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.strip_prefix(':').map(str::trim)
        };
        let groups = groups(roots, &process);
        Self {
            seccomp: field("Seccomp").and_then(|value| value.parse().ok()),
            no_new_privs: field("NoNewPrivs").map(|value| value != "0"),
            capabilities: field("CapEff").and_then(|value| u64::from_str_radix(value, 16).ok()),
            namespaces: namespaces(roots, &process),
            readonly_root: readonly_root(&process),
            limits: limits(&process),
            group_processes: groups.0,
            group_memory: groups.1,
            marks: marks(roots),
            userns_blocked: userns_blocked(roots),
        }
    }

    pub(super) fn is_own(&self, kind: &str) -> bool {
        self.namespaces.iter().any(|(name, whose)| *name == kind && *whose == Whose::Own)
    }
}

fn text(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(MOST).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn namespaces(roots: &Roots, process: &Path) -> Vec<(&'static str, Whose)> {
    let number = |process: &Path, kind: &str| {
        let link = std::fs::read_link(process.join("ns").join(kind)).ok()?;
        let link = link.to_str()?;
        link.strip_prefix(kind)?.strip_prefix(":[")?.strip_suffix(']')?.parse::<u64>().ok()
    };
    let reader = roots.proc.join("self");
    // Process 1 of this `/proc` is the machine's own only where its numbers are.
    let first = roots.proc.join("1");
    let first = (number(&first, "pid") == Some(0xEFFF_FFFC)).then_some(first);
    let whose = |kind: &'static str, known: &[u64]| {
        let Some(own) = number(process, kind) else { return Whose::Unknown };
        if known.contains(&own) {
            return Whose::Machine;
        }
        match first.as_deref().and_then(|first| number(first, kind)) {
            Some(first) if first == own => return Whose::Machine,
            Some(_) => return Whose::Own,
            None => {}
        }
        if kind != "net" {
            return Whose::Own;
        }
        // On kernels before 6.18 the first network has no fixed number. What `sys/net` shows is the
        // reader's network, so it speaks of the process where both are in the same.
        let same = number(&reader, kind) == Some(own);
        match (same, roots.proc.join(FIRST_NETWORK).exists(), roots.proc.join("sys/net").exists()) {
            (true, true, _) => Whose::Machine,
            (true, false, true) | (false, true, _) => Whose::Own,
            _ => Whose::Unknown,
        }
    };
    KINDS
        .iter()
        // Older kernels have no time namespaces: then there is nothing to tell.
        .filter(|(kind, _)| *kind != "time" || process.join("ns/time").symlink_metadata().is_ok())
        .map(|(kind, known)| (*kind, whose(kind, known)))
        .collect()
}

/// Whether the last file system that is mounted on `/` is read-only.
fn readonly_root(process: &Path) -> Option<bool> {
    let mounts = text(&process.join("mountinfo"))?;
    let mut root = mounts.lines().filter_map(|line| {
        let (mount, system) = line.split_once(" - ")?;
        let mut fields = mount.split(' ');
        let (point, options) = (fields.nth(4)?, fields.next()?);
        let of_system = system.split(' ').nth(2)?;
        let is_read_only = |options: &str| options.split(',').any(|one| one == "ro");
        (point == "/").then(|| is_read_only(options) || is_read_only(of_system))
    });
    root.next_back()
}

fn limits(process: &Path) -> Vec<(&'static str, Option<u64>)> {
    let text = text(&process.join("limits")).unwrap_or_default();
    let limit = |(name, short): &(&str, &'static str)| {
        let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
        let hard = rest.split_whitespace().nth(1)?;
        match hard {
            "unlimited" => Some((*short, None)),
            number => number.parse().ok().map(|number| (*short, Some(number))),
        }
    };
    LIMITS.iter().filter_map(limit).collect()
}

/// The tightest limits of processes and memory of the control group and those above it.
fn groups(roots: &Roots, process: &Path) -> (Option<u64>, Option<u64>) {
    let cgroup = text(&process.join("cgroup")).unwrap_or_default();
    let Some(own) = cgroup.lines().find_map(|line| line.strip_prefix("0::/")) else {
        return (None, None);
    };
    let own = Path::new(own);
    if !own.components().all(|part| matches!(part, Component::Normal(_))) {
        return (None, None);
    }
    let base = roots.sys.join("fs/cgroup");
    let tightest = |file: &str| {
        let above = own.ancestors().take(GROUPS);
        above
            .filter_map(|group| text(&base.join(group).join(file))?.trim().parse::<u64>().ok())
            .min()
    };
    (tightest("pids.max"), tightest("memory.max"))
}

/// What says that this is a container. Any of it can be forged by whoever may write there.
fn marks(roots: &Roots) -> Vec<String> {
    let mut marks = Vec::new();
    for file in [".dockerenv", "run/.containerenv", "run/systemd/container"] {
        if roots.root.join(file).symlink_metadata().is_ok() {
            marks.push(format!("/{file}"));
        }
    }
    let cgroup = text(&roots.proc.join("1/cgroup")).unwrap_or_default();
    if let Some(runner) = RUNNERS.iter().find(|runner| cgroup.contains(**runner)) {
        marks.push(format!("control group of {runner}"));
    }
    marks
}

fn userns_blocked(roots: &Roots) -> Option<&'static str> {
    let says = |file: &str, value: &str| {
        text(&roots.proc.join(file)).is_some_and(|text| text.trim() == value)
    };
    if says("sys/user/max_user_namespaces", "0") {
        Some("user.max_user_namespaces is 0")
    } else if says("sys/kernel/unprivileged_userns_clone", "0") {
        Some("kernel.unprivileged_userns_clone is 0")
    } else if says("sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
        Some("kernel.apparmor_restrict_unprivileged_userns is 1")
    } else {
        None
    }
}
