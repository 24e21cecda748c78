//! Who asks, and what they may ask.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use wardkeep_sandbox::peer_of;

use super::View;
use crate::wire::Door;

/// What someone may ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// What hooks need, and nothing that approves.
    Agent,
    /// Everything.
    Owner,
}

/// What an agent may ask beside its hooks. Nothing in it approves, reads what others said, or ends
/// anything.
const FOR_AGENTS: [&str; 6] =
    ["ping", "version", "identity.status", "identity.diff", "identity.stage", "identity.sync"];
/// Every operation that begins so is a hook's.
const HOOKS: &str = "hook.";

impl Role {
    /// Whether an operation may be asked for. What is not listed is for the owner alone.
    #[must_use]
    pub fn may(self, op: &str) -> bool {
        match self {
            Self::Owner => true,
            Self::Agent => FOR_AGENTS.contains(&op) || op.starts_with(HOOKS),
        }
    }
}

/// Whoever is at the other end of a connection, as the kernel tells.
#[derive(Debug, Clone)]
pub struct Peer {
    /// The user.
    pub uid: u32,
    /// The process; it may have ended since.
    pub pid: i32,
    /// What they may ask.
    pub role: Role,
    /// Why it is no terminal of the owner's, where it is the owner's process.
    pub(super) held: Option<&'static str>,
    /// What they see of the files.
    pub view: View,
}

/// Who may connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerPolicy {
    owner: u32,
    agent: Option<u32>,
}

impl PeerPolicy {
    /// Only the state directory's owner.
    #[must_use]
    pub fn new(owner: u32) -> Self {
        Self { owner, agent: None }
    }

    /// The agent's own user as well; no change where that is the owner.
    #[must_use]
    pub fn with_agent(self, agent: Option<u32>) -> Self {
        Self { agent: agent.filter(|agent| *agent != self.owner), ..self }
    }

    /// What a user may ask at a door; `None` for everybody else.
    #[must_use]
    pub fn role(self, uid: u32, door: Door) -> Option<Role> {
        match door {
            Door::Monitor if uid == self.owner => Some(Role::Owner),
            Door::Hooks if uid == self.owner => Some(Role::Agent),
            _ if Some(uid) == self.agent => Some(Role::Agent),
            _ => None,
        }
    }

    /// Looks who is there.
    pub(super) fn look(self, stream: &UnixStream, door: Door) -> Result<Peer, Option<u32>> {
        let found = peer_of(stream).map_err(|_| None)?;
        // One that cannot be looked at is nobody's agent.
        let (uid, pid) = (found.uid, found.pid.ok_or(None)?);
        // Before anything else: the number is another's once the process has ended.
        let view = View::of(pid);
        let mut role = self.role(uid, door).ok_or(Some(uid))?;
        // Landlock does not keep a confined process from connecting, so it may come to this door.
        let mut held = None;
        if role == Role::Owner {
            held = held_by(pid);
            if held.is_some() {
                role = Role::Agent;
            }
        }
        Ok(Peer { uid, pid, role, held, view })
    }
}

/// Kinds of namespaces, each with what is said where a process is in another one of it.
const KINDS: [(&str, &str); 4] = [
    ("mnt", "its mount namespace is another one than the daemon's"),
    ("user", "its user namespace is another one than the daemon's"),
    ("pid", "its process namespace is another one than the daemon's"),
    ("net", "its network namespace is another one than the daemon's"),
];

/// The machine's first mount namespace, which no sandbox has made. Kernels before 6.18 give it no number of its own.
const FIRST_MOUNTS: &str = "mnt:[4026531832]";

/// What a process is held by.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Bonds {
    no_new_privileges: bool,
    filters: u64,
    namespaces: [Option<PathBuf>; 4],
}

impl Bonds {
    /// Of a process, by its number or `self`; `None` if that cannot be told.
    fn of(process: &str) -> Option<Self> {
        let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.strip_prefix(':')?.trim().parse::<u64>().ok()
        };
        let namespace = |(kind, _)| fs::read_link(format!("/proc/{process}/ns/{kind}")).ok();
        Some(Self {
            no_new_privileges: field("NoNewPrivs")? != 0,
            // Kernels before 5.9 tell only whether there are any.
            filters: field("Seccomp_filters").or_else(|| field("Seccomp"))?,
            namespaces: KINDS.map(namespace),
        })
    }

    /// By what this process is held, and another is not.
    fn beyond(&self, other: &Self) -> Option<&'static str> {
        if self.no_new_privileges && !other.no_new_privileges {
            return Some("it can get no new privileges");
        }
        if self.filters > other.filters {
            return Some("a filter of system calls holds it");
        }
        let both = self.namespaces.iter().zip(&other.namespaces).zip(KINDS);
        let mut differ = both.filter(|((own, other), _)| {
            // A daemon that a unit of systemd keeps to mounts of its own is asked from outside of them.
            own != other && own.as_deref() != Some(Path::new(FIRST_MOUNTS))
        });
        differ.next().map(|(_, (_, why))| why)
    }
}

/// By what a process is held, and this one is not: then it is no terminal of the owner's. A process that cannot be
/// looked at counts as confined.
fn held_by(pid: i32) -> Option<&'static str> {
    match (Bonds::of("self"), Bonds::of(&pid.to_string())) {
        (Some(own), Some(other)) => other.beyond(&own),
        _ => Some("the daemon cannot look at it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_may_ask_what_hooks_need_and_nothing_else() {
        for op in ["ping", "version", "hook.tool_call", "identity.status", "identity.stage"] {
            assert!(Role::Agent.may(op), "{op}");
        }
        for op in [
            "approvals.list",
            "approvals.show",
            "approvals.approve",
            "approvals.deny",
            "identity.apply",
            "identity.status.apply",
            "status",
            "stop",
            "hook",
            "hooks.x",
            "ping2",
            "",
        ] {
            assert!(!Role::Agent.may(op), "{op}");
            assert!(Role::Owner.may(op), "{op}");
        }
    }

    #[test]
    fn a_door_for_hooks_makes_nobody_an_owner() {
        let policy = PeerPolicy::new(1000).with_agent(Some(1001));
        assert_eq!(policy.role(1000, Door::Monitor), Some(Role::Owner));
        assert_eq!(policy.role(1000, Door::Hooks), Some(Role::Agent));
        for door in Door::ALL {
            assert_eq!(policy.role(1001, door), Some(Role::Agent));
            for uid in [0, 1, 999, 1002, u32::MAX] {
                assert_eq!(policy.role(uid, door), None);
            }
        }
        let same = PeerPolicy::new(1000).with_agent(Some(1000));
        assert_eq!(same, PeerPolicy::new(1000));
    }

    #[test]
    fn this_process_is_not_more_confined_than_itself() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert_eq!(held_by(own), None);
        assert!(held_by(0).is_some(), "what cannot be looked at is confined");
    }

    #[test]
    fn only_the_first_mounts_are_another_place_of_the_owners() {
        let of = |names: [&str; 4]| Bonds {
            no_new_privileges: false,
            filters: 0,
            namespaces: names.map(|name| (!name.is_empty()).then(|| name.into())),
        };
        let first = of([FIRST_MOUNTS, "user:[1]", "pid:[1]", "net:[1]"]);
        let unit = of(["mnt:[4026532001]", "user:[1]", "pid:[1]", "net:[1]"]);
        // The daemon runs in a unit with mounts of its own, and the owner asks from a plain shell.
        assert_eq!(first.beyond(&unit), None);
        // The daemon runs in a plain shell, and who asks has other mounts: it may be that alone which confines it.
        assert!(unit.beyond(&first).unwrap().contains("mount"));
        let other = of(["mnt:[4026532002]", "user:[1]", "pid:[1]", "net:[1]"]);
        assert!(other.beyond(&unit).unwrap().contains("mount"));
        // One that cannot be told is another one.
        assert!(of(["", "user:[1]", "pid:[1]", "net:[1]"]).beyond(&unit).is_some());
        // Whatever its mounts are, nothing else may hold it.
        for (bound, why) in [
            (of([FIRST_MOUNTS, "user:[2]", "pid:[1]", "net:[1]"]), "user"),
            (of([FIRST_MOUNTS, "user:[1]", "pid:[2]", "net:[1]"]), "process"),
            (of([FIRST_MOUNTS, "user:[1]", "pid:[1]", "net:[2]"]), "network"),
            (of([FIRST_MOUNTS, "user:[1]", "pid:[1]", ""]), "network"),
            (Bonds { no_new_privileges: true, ..first.clone() }, "privileges"),
            (Bonds { filters: 1, ..first.clone() }, "filter"),
        ] {
            assert!(bound.beyond(&unit).unwrap().contains(why), "{bound:?}");
            assert!(bound.beyond(&first).unwrap().contains(why), "{bound:?}");
        }
    }
}
