//! Who asks, and what they may ask.

use std::fs;
use std::os::unix::net::UnixStream;

use wardkeep_sandbox::peer_of;

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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// The user.
    pub uid: u32,
    /// The process; it may have ended since.
    pub pid: i32,
    /// What they may ask.
    pub role: Role,
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
        let mut role = self.role(uid, door).ok_or(Some(uid))?;
        // Landlock does not keep a confined process from connecting, so it may come to this door.
        if role == Role::Owner && is_more_confined(pid) {
            role = Role::Agent;
        }
        Ok(Peer { uid, pid, role })
    }
}

/// What a process is held by.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Bonds {
    no_new_privileges: bool,
    filters: u64,
    namespaces: Vec<Option<std::path::PathBuf>>,
}

impl Bonds {
    /// Of a process, by its number or `self`; `None` if that cannot be told.
    fn of(process: &str) -> Option<Self> {
        let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.strip_prefix(':')?.trim().parse::<u64>().ok()
        };
        let namespace = |kind| fs::read_link(format!("/proc/{process}/ns/{kind}")).ok();
        Some(Self {
            no_new_privileges: field("NoNewPrivs")? != 0,
            // Kernels before 5.9 tell only whether there are any.
            filters: field("Seccomp_filters").or_else(|| field("Seccomp"))?,
            namespaces: ["mnt", "user", "pid", "net"].map(namespace).into(),
        })
    }
}

/// Whether a process is held by more than this one: then it is no terminal of the owner's. A process
/// that cannot be looked at counts as confined.
fn is_more_confined(pid: i32) -> bool {
    let (Some(own), Some(other)) = (Bonds::of("self"), Bonds::of(&pid.to_string())) else {
        return true;
    };
    (other.no_new_privileges && !own.no_new_privileges)
        || other.filters > own.filters
        || other.namespaces != own.namespaces
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
        assert!(!is_more_confined(own));
        assert!(is_more_confined(0), "what cannot be looked at is confined");
    }
}
