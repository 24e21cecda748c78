//! What is observed. Nothing begins as seen.

/// Everything that the mark depends on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// The agents of this machine that are known.
    pub agents: Vec<AgentFacts>,
    /// The workspaces that are known.
    pub workspaces: Vec<WorkspaceFacts>,
    /// Whether the evidence holds.
    pub evidence: Evidence,
    /// Whether something outside remembers how far it had come.
    pub anchors: Anchors,
    /// How the skills are.
    pub skills: Skills,
}

/// An agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentFacts {
    /// Its name, as `wardkeep install` takes it.
    pub name: String,
    /// The program that starts it.
    pub program: String,
    /// Whether it asks.
    pub asks: Asks,
    /// What confined it, when it was last seen.
    pub confined: Confined,
}

/// Whether an agent asks before it acts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Asks {
    /// It was not looked at.
    #[default]
    Unseen,
    /// It was never told to.
    No,
    /// It has the hooks, and was not told to trust them yet: none of them runs.
    Untrusted {
        /// Whether its program is here, so that it can be told.
        program: bool,
    },
    /// It was told to, and does not any more; why.
    SwitchedOff(String),
    /// Yes.
    Yes,
}

/// What confines an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Confined {
    /// No session of it was looked at.
    #[default]
    Unseen,
    /// Nothing.
    No,
    /// Less than the profile demands.
    Partly,
    /// All that the profile demands.
    Fully,
}

/// A workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceFacts {
    /// Where it is.
    pub path: String,
    /// Who keeps the files that define the agent.
    pub keeping: Keeping,
    /// Whether they are as the owner approved them.
    pub files: Files,
    /// How the policy stands.
    pub policy: Policy,
}

/// Who keeps files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Keeping {
    /// Nobody.
    #[default]
    None,
    /// The agent's own user: changes are undone, not prevented.
    User,
    /// Another user.
    Owned,
}

/// Whether files are as approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Files {
    /// They were not looked at.
    #[default]
    Unseen,
    /// Yes.
    Approved,
    /// So many are not.
    Drifted(usize),
}

/// How a policy stands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Policy {
    /// It was not looked at.
    #[default]
    Unseen,
    /// There is none.
    None,
    /// It is not signed.
    Unsigned,
    /// It does not count, and once did or pretends to: its state in a word.
    Broken(String),
    /// It is signed and in force.
    Valid,
}

/// Whether evidence holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Evidence {
    /// It was not verified.
    #[default]
    Unseen,
    /// It holds.
    Holds,
    /// It does not.
    Broken,
}

/// What is outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Anchors {
    /// Nothing.
    #[default]
    None,
    /// Something that has taken nothing yet.
    Unreached,
    /// Something that has taken a seal.
    Reached,
    /// Something that has seen another log than this one.
    Alarm,
}

/// How skills are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Skills {
    /// They were not looked at.
    #[default]
    Unseen,
    /// All that are pinned are as they were, or there are none.
    Sound,
    /// So many are not as they were pinned, or no pin counts.
    Changed(usize),
}
