//! A refusal in words.

use std::fmt;
use std::path::Path;

use super::super::facts::{FileKind, PathFacts};
use super::super::lists::STAGING_FOLDER;
use super::{Class, Operation, ProtectedSet};
use wardkeep_detect::names::folded_components;

/// A refusal, with what to do instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// The file, as the owner calls it.
    pub what: String,
    /// Why it is protected.
    pub class: Class,
    /// The reason in words.
    pub why: String,
    /// What to do next.
    pub next: String,
}

impl fmt::Display for Denial {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}; {}", self.why, self.next)
    }
}

impl Denial {
    /// For a path that cannot be resolved: what cannot be judged is denied.
    #[must_use]
    pub fn unresolved(path: &str, reason: &str) -> Self {
        Self {
            what: path.to_owned(),
            class: Class::Unknown,
            why: format!("cannot tell which file `{path}` is: {reason}"),
            next: "write the path out, without links that loop".to_owned(),
        }
    }
}

impl ProtectedSet {
    pub(super) fn denial(
        &self,
        class: Class,
        shown: &str,
        operation: Operation,
        facts: &PathFacts,
    ) -> Denial {
        let inside = self.workspace.relative(facts);
        let named = inside.is_some_and(|inside| inside == folded_components(Path::new(shown)));
        let path = facts.path.display();
        if facts.kind == FileKind::Directory && !named && class != Class::State {
            let what = match class {
                Class::Policy => "the owner's signed policy",
                Class::Manifest => "the signature of the owner's policy",
                Class::AgentSettings => "settings that decide what an agent may do",
                _ => "a protected file",
            };
            return Denial {
                what: shown.to_owned(),
                class,
                why: format!("this would take `{shown}` along, {what} in `{path}`"),
                next: "change or delete single files there instead, or ask the owner".to_owned(),
            };
        }
        let subject = if named || class == Class::State {
            format!("`{shown}`")
        } else {
            format!("`{path}`, which is `{shown}`,")
        };
        let (why, next) = match class {
            Class::State if operation.only_reads() => (
                format!("{subject} holds the key and the records that this agent is judged by"),
                "nothing in it is for an agent; ask the owner".to_owned(),
            ),
            Class::State => (
                format!("{subject} holds the key and the records that this agent is judged by"),
                "an agent may change nothing in it".to_owned(),
            ),
            Class::Policy => (
                format!("{subject} is the owner's signed policy, which an agent may only read"),
                "the owner changes it with `wardkeep md edit`".to_owned(),
            ),
            Class::Manifest => (
                format!("{subject} holds the signature of the owner's policy"),
                "only `wardkeep md sign`, run by the owner, writes it".to_owned(),
            ),
            Class::AgentSettings => (
                format!("{subject} holds settings that decide what an agent may do"),
                "the owner changes them outside of a session".to_owned(),
            ),
            Class::ControlPlane => (
                format!("{subject} changes what is protected"),
                "the owner runs it, outside of a session".to_owned(),
            ),
            Class::Protected => (
                format!("{subject} is protected: it changes only with the owner's approval"),
                format!(
                    "write your version to `{STAGING_FOLDER}/{shown}`; the owner sees it with \
                     `wardkeep diff` and takes it over with `wardkeep apply`"
                ),
            ),
            Class::Unknown => (
                format!("{shown} is a file that only the agent's own process knows"),
                "name the file itself".to_owned(),
            ),
        };
        Denial { what: shown.to_owned(), class, why, next }
    }
}
