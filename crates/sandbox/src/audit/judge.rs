//! From what was found to findings, a score and a verdict.

use std::collections::BTreeMap;

use super::read::{Reading, Whose};
use super::{Compliance, Finding, Probes, Profile, Report, State, UserNamespaces};

/// Names of the capabilities, by their bits.
const CAPABILITIES: [&str; 41] = [
    "chown",
    "dac_override",
    "dac_read_search",
    "fowner",
    "fsetid",
    "kill",
    "setgid",
    "setuid",
    "setpcap",
    "linux_immutable",
    "net_bind_service",
    "net_broadcast",
    "net_admin",
    "net_raw",
    "ipc_lock",
    "ipc_owner",
    "sys_module",
    "sys_rawio",
    "sys_chroot",
    "sys_ptrace",
    "sys_pacct",
    "sys_admin",
    "sys_boot",
    "sys_nice",
    "sys_resource",
    "sys_time",
    "sys_tty_config",
    "mknod",
    "lease",
    "audit_write",
    "audit_control",
    "setfcap",
    "mac_override",
    "mac_admin",
    "syslog",
    "wake_alarm",
    "block_suspend",
    "audit_read",
    "perfmon",
    "bpf",
    "checkpoint_restore",
];
/// Whoever has one of these is not held by a limit of processes.
const UNLIMITED: u64 = 1 << 21 | 1 << 24;
const RUN: &str = "start the agent with `wardkeep run`";

/// The worse of two answers to one question; either may be missing.
fn worse<T: Copy>(one: Option<T>, other: Option<T>, pick: impl FnOnce(T, T) -> T) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(pick(one, other)),
        (one, other) => one.or(other),
    }
}

/// Findings as they are made.
struct Sheet {
    findings: Vec<Finding>,
    score: u32,
}

impl Sheet {
    /// Adds a finding that is worth `points`.
    fn add(&mut self, id: &str, state: State, points: u32, message: String, fix: &str) {
        if state == State::Held {
            self.score += points;
        }
        let fix = (state != State::Held && !fix.is_empty()).then(|| fix.to_owned());
        self.findings.push(Finding { id: id.to_owned(), state, required: false, message, fix });
    }

    fn require(&mut self, id: &str) {
        for finding in self.findings.iter_mut().filter(|finding| finding.id == id) {
            finding.required = true;
        }
    }
}

fn state(held: Option<bool>) -> State {
    match held {
        Some(true) => State::Held,
        Some(false) => State::Missing,
        None => State::Unknown,
    }
}

/// All that is told of a process, file and call together.
struct Facts {
    seccomp: Option<u32>,
    no_new_privs: Option<bool>,
    capabilities: Option<u64>,
    readonly_root: Option<bool>,
    limits: BTreeMap<&'static str, Option<u64>>,
    marks: Vec<String>,
    container: Option<bool>,
}

impl Facts {
    fn of(reading: &Reading, probes: &Probes) -> Self {
        let mut limits: BTreeMap<_, _> = reading.limits.iter().copied().collect();
        for (name, asked) in &probes.limits {
            let read = limits.get(name).copied();
            // No limit is the worse one.
            let worst = worse(Some(*asked), read, |one, other| Some(one?.max(other?)));
            limits.insert(name, worst.flatten());
        }
        let mut marks = reading.marks.clone();
        marks.extend(probes.marks.iter().cloned());
        let told = |kind: &str| {
            let found = reading.namespaces.iter().find(|(name, _)| *name == kind)?;
            match found.1 {
                Whose::Own => Some(true),
                Whose::Machine => Some(false),
                Whose::Unknown => None,
            }
        };
        let container = match (told("pid"), told("mnt")) {
            (Some(true), Some(true)) => Some(true),
            (Some(false), _) | (_, Some(false)) => Some(false),
            _ => None,
        };
        Self {
            seccomp: worse(reading.seccomp, probes.seccomp, u32::min),
            no_new_privs: worse(reading.no_new_privs, probes.no_new_privs, |a, b| a && b),
            capabilities: worse(reading.capabilities, probes.capabilities, |a, b| a | b),
            readonly_root: worse(reading.readonly_root, probes.readonly_root, |a, b| a && b),
            limits,
            marks,
            container,
        }
    }

    /// Most processes: the tightest limit that really holds this process.
    fn processes(&self, reading: &Reading) -> Option<u64> {
        let held = self.capabilities.is_some_and(|bits| bits & UNLIMITED == 0);
        let own = self.limits.get("nproc").copied().flatten().filter(|_| held);
        own.into_iter().chain(reading.group_processes).min()
    }

    fn memory(&self, reading: &Reading) -> Option<u64> {
        let own = self.limits.get("as").copied().flatten();
        own.into_iter().chain(reading.group_memory).min()
    }
}

pub(super) fn judge(reading: &Reading, probes: &Probes, profile: &Profile) -> Report {
    let facts = Facts::of(reading, probes);
    let mut sheet = Sheet { findings: Vec::new(), score: 0 };
    surroundings(&mut sheet, reading, &facts);
    privileges(&mut sheet, reading, probes, &facts);
    limits(&mut sheet, reading, &facts, profile);
    calls(&mut sheet, probes, profile);
    disagreements(&mut sheet, reading, probes);

    let demanded = [
        ("container", profile.require_container),
        ("seccomp", profile.require_seccomp),
        ("readonly-root", profile.require_readonly_root),
        ("namespace-net", profile.network_namespace),
        ("syscalls", profile.allowed_syscalls.is_some()),
        ("max-processes", profile.max_processes.is_some()),
        ("max-open-files", profile.max_open_files.is_some()),
    ];
    for (id, _) in demanded.iter().filter(|(_, demanded)| *demanded) {
        sheet.require(id);
    }
    let lacks = sheet.findings.iter().any(|one| one.required && one.state != State::Held);
    let filtered = facts.seccomp.is_some_and(|mode| mode != 0);
    // A mount namespace of its own hides nothing by itself; a mark is only a word.
    let confined = filtered
        || facts.container == Some(true)
        || facts.readonly_root == Some(true)
        || ["pid", "net", "user"].iter().any(|kind| reading.is_own(kind));
    let compliance = match (lacks, confined) {
        (false, _) => Compliance::Full,
        (true, true) => Compliance::Partial,
        (true, false) => Compliance::None,
    };
    let names = |whose: Whose| {
        let found = reading.namespaces.iter().filter(move |(_, one)| *one == whose);
        found.map(|(name, _)| (*name).to_owned()).collect::<Vec<_>>()
    };
    let shown = |limit: &Option<u64>| limit.map_or("unlimited".to_owned(), |most| most.to_string());
    let mut resource_limits: BTreeMap<String, String> =
        facts.limits.iter().map(|(name, limit)| ((*name).to_owned(), shown(limit))).collect();
    for (name, group) in
        [("cgroup-pids", reading.group_processes), ("cgroup-memory", reading.group_memory)]
    {
        if group.is_some() {
            resource_limits.insert(name.to_owned(), shown(&group));
        }
    }
    Report {
        in_container: facts.container == Some(true),
        container_marks: facts.marks.clone(),
        seccomp_active: filtered,
        seccomp_mode: facts.seccomp.map(|mode| mode_name(mode).to_owned()),
        namespaces: names(Whose::Own),
        unknown_namespaces: names(Whose::Unknown),
        readonly_root: facts.readonly_root == Some(true),
        resource_limits,
        capabilities: facts.capabilities.map(capability_names),
        no_new_privs: facts.no_new_privs,
        landlock_abi: probes.landlock_abi,
        user_namespaces: probes.user_namespaces,
        score: u8::try_from(sheet.score.min(100)).unwrap_or(100),
        compliance,
        findings: sheet.findings,
    }
}

fn mode_name(mode: u32) -> &'static str {
    match mode {
        0 => "disabled",
        1 => "strict",
        _ => "filter",
    }
}

fn capability_names(bits: u64) -> Vec<String> {
    (0..64)
        .filter(|bit| bits >> bit & 1 == 1)
        .map(|bit| CAPABILITIES.get(bit).map_or(format!("cap_{bit}"), |name| (*name).to_owned()))
        .collect()
}

fn surroundings(sheet: &mut Sheet, reading: &Reading, facts: &Facts) {
    let named = match facts.marks.as_slice() {
        [] => String::new(),
        marks => format!(" ({})", marks.join(", ")),
    };
    let message = match (facts.container, facts.marks.is_empty()) {
        (Some(true), _) => format!("processes and mounts are its own{named}"),
        (Some(false), true) => "it shares processes or mounts with the machine".to_owned(),
        (Some(false), false) => {
            format!("something says container{named}, but it shares processes or mounts")
        }
        (None, _) => "its namespaces cannot be looked at".to_owned(),
    };
    sheet.add("container", state(facts.container), 20, message, RUN);
    for (kind, whose) in &reading.namespaces {
        let (held, what) = match whose {
            Whose::Own => (State::Held, "its own"),
            Whose::Machine => (State::Missing, "the machine's"),
            Whose::Unknown => (State::Unknown, "not known"),
        };
        let points = match *kind {
            "net" => 6,
            "pid" | "mnt" | "user" | "ipc" => 3,
            "uts" | "cgroup" => 1,
            _ => 0,
        };
        let message = format!("the {kind} namespace is {what}");
        sheet.add(&format!("namespace-{kind}"), held, points, message, RUN);
    }
    let message = match facts.readonly_root {
        Some(true) => "the root cannot be written to",
        Some(false) => "the root can be written to",
        None => "how the root is mounted cannot be told",
    };
    sheet.add("readonly-root", state(facts.readonly_root), 10, message.to_owned(), RUN);
}

fn privileges(sheet: &mut Sheet, reading: &Reading, probes: &Probes, facts: &Facts) {
    let message = match facts.seccomp {
        Some(0) => "no filter: every system call is possible".to_owned(),
        Some(mode) => format!("system calls are held back ({})", mode_name(mode)),
        None => "whether there is a filter cannot be told".to_owned(),
    };
    sheet.add("seccomp", state(facts.seccomp.map(|mode| mode != 0)), 20, message, RUN);
    let message = match facts.no_new_privs {
        Some(true) => "no program can gain privileges",
        Some(false) => "set-user-id programs work: privileges can be gained",
        None => "whether privileges can be gained cannot be told",
    };
    sheet.add("no-new-privs", state(facts.no_new_privs), 10, message.to_owned(), RUN);
    let message = match facts.capabilities {
        Some(0) => "no capabilities".to_owned(),
        Some(bits) => {
            let names = capability_names(bits);
            let more = names.len().saturating_sub(4);
            let some = names.iter().take(4).cloned().collect::<Vec<_>>().join(", ");
            let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("capabilities in effect: {some}{rest}")
        }
        None => "its capabilities cannot be told".to_owned(),
    };
    let fix = "do not run the agent as root, or drop capabilities (`--cap-drop ALL`)";
    sheet.add("capabilities", state(facts.capabilities.map(|bits| bits == 0)), 10, message, fix);
    let message = match probes.landlock_abi {
        Some(0) => "the kernel has no Landlock".to_owned(),
        Some(abi) => {
            format!("the kernel has Landlock ABI {abi}; whether it is used is not visible")
        }
        None => "not asked".to_owned(),
    };
    let fix = "a kernel of 5.13 or later with `landlock` among its `lsm=`";
    sheet.add("landlock", state(probes.landlock_abi.map(|abi| abi > 0)), 0, message, fix);
    // The other way round: to be able to make them is what `wardkeep run` needs, and what an agent
    // inside of it must not be.
    let (held, message) = match (probes.user_namespaces, reading.userns_blocked) {
        (Some(UserNamespaces::Allowed), _) => (Some(true), "a child could make one".to_owned()),
        (Some(found), why) => {
            let what = match found {
                UserNamespaces::Powerless => "a child could make one, but had no power inside",
                _ => "a child could not make one",
            };
            (Some(false), why.map_or(what.to_owned(), |why| format!("{what}: {why}")))
        }
        (None, Some(why)) => (None, format!("not tried; {why}")),
        (None, None) => (None, "not tried".to_owned()),
    };
    let fix =
        "`wardkeep run` needs them for its namespaces; without, it uses Landlock and seccomp alone";
    sheet.add("user-namespaces", state(held), 0, message, fix);
}

fn limits(sheet: &mut Sheet, reading: &Reading, facts: &Facts, profile: &Profile) {
    let mut limit = |id: &str, what: &str, found: Option<u64>, most: Option<u64>, points: u32| {
        let held = found.is_some_and(|found| most.is_none_or(|most| found <= most));
        let message = match (found, most) {
            (Some(found), None) => format!("at most {found} {what}"),
            (Some(found), Some(most)) => {
                format!("at most {found} {what}; the profile allows {most}")
            }
            (None, _) => format!("no limit of {what} holds it"),
        };
        sheet.add(id, state(Some(held)), points, message, RUN);
    };
    let most = profile.max_processes.map(u64::from);
    limit("max-processes", "processes", facts.processes(reading), most, 4);
    let files = facts.limits.get("nofile").copied().flatten();
    limit("max-open-files", "open files", files, profile.max_open_files.map(u64::from), 0);
    limit("max-memory", "bytes of memory", facts.memory(reading), None, 4);
    let size = facts.limits.get("fsize").copied().flatten();
    limit("max-file-size", "bytes in a file", size, None, 2);
}

fn calls(sheet: &mut Sheet, probes: &Probes, profile: &Profile) {
    if probes.syscalls.is_empty() && profile.allowed_syscalls.is_none() {
        return;
    }
    let allowed = profile.allowed_syscalls.as_deref().unwrap_or_default();
    let open: Vec<&str> = probes
        .syscalls
        .iter()
        .filter(|(name, refused)| !**refused && !allowed.iter().any(|one| one == **name))
        .map(|(name, _)| *name)
        .collect();
    let tried = probes.syscalls.len();
    let (held, message) = match (tried, open.as_slice()) {
        (0, _) => (None, "not tried".to_owned()),
        (_, []) => (Some(true), format!("{tried} dangerous calls were tried and none is possible")),
        (_, open) => (Some(false), format!("possible: {}", open.join(", "))),
    };
    sheet.add("syscalls", state(held), 0, message, RUN);
}

/// A `/proc` that says more than the kernel does was put there by someone.
fn disagreements(sheet: &mut Sheet, reading: &Reading, probes: &Probes) {
    let differ = [
        ("seccomp", reading.seccomp.zip(probes.seccomp).is_some_and(|(a, b)| a > b)),
        (
            "no-new-privs",
            reading.no_new_privs.zip(probes.no_new_privs).is_some_and(|(a, b)| a & !b),
        ),
        (
            "capabilities",
            reading.capabilities.zip(probes.capabilities).is_some_and(|(a, b)| a != b),
        ),
    ];
    let names: Vec<&str> =
        differ.iter().filter(|(_, differs)| *differs).map(|(name, _)| *name).collect();
    if !names.is_empty() {
        let message = format!("/proc and the kernel disagree on {}", names.join(", "));
        sheet.add("proc-disagrees", State::Missing, 0, message, "look at what is mounted on /proc");
    }
}
