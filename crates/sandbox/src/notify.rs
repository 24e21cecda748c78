//! Names that must not come into being: every call that makes a name or opens a file for writing is carried
//! out by a supervisor, which looks at what it really is about before it acts.
//!
//! The confined side installs a [`Filter`] and hands the listener to a [`Supervisor`] in another process of
//! the same user, the same namespaces and the same Landlock domain. A caller waits in the kernel while the
//! supervisor reads the path from its memory, once, resolves the directory to a descriptor, decides by the
//! real name, and does with that descriptor what was asked. The kernel never goes on with what the caller's
//! memory holds by then. What goes wrong is an error for the caller.
//!
//! ```no_run
//! # use wardkeep_sandbox::notify::{Filter, Names, Supervisor};
//! // In the child, after `no_new_privs`:
//! let listener = Filter::new().install()?;
//! // In the supervisor:
//! let names = Names::new().root("/home/me/project").free("/tmp");
//! let mut supervisor = Supervisor::new(listener, names, |refusal| eprintln!("{refusal}"))?;
//! let summary = supervisor.run(None);
//! for repository in &summary.repositories {
//!     println!("new: {}", repository.path.display());
//! }
//! # Ok::<(), std::io::Error>(())
//! ```

mod abi;
mod act;
mod bare;
mod born;
mod caller;
mod changes;
mod check;
mod filter;
pub(crate) mod git;
mod looks;
mod masks;
pub(crate) mod names;
mod open;
mod open2;
mod place;
mod pulse;
mod reads;
mod remove;
mod signals;
mod supervisor;

use std::fmt;
use std::path::PathBuf;

use crate::denial::DenialKind;

pub(crate) use self::filter::Told;
pub use self::filter::{Filter, hand_over, take_over};
pub use self::names::Names;
pub(crate) use self::pulse::Pulse;
pub(crate) use self::reads::{OF_READS, Wanted};
pub use self::supervisor::{Answer, Supervisor};

/// Something that was not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Why it was not: a name, a call, or, in a supervisor that learns, that it was not found.
    pub kind: DenialKind,
    /// What was called.
    pub call: &'static str,
    /// The name, as it really is: no links are left in it. Empty for a call that is about none.
    pub path: PathBuf,
    /// What speaks against it.
    pub rule: String,
    /// The thread that called.
    pub pid: u32,
    /// What that thread calls itself; it may be anything.
    pub comm: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind: _, call, path, rule, pid, comm } = self;
        write!(out, "{call} of {path:?} by {comm:?} ({pid}) was refused: {rule}")
    }
}

/// A repository that came into being.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRepository {
    /// Where it was made.
    pub path: PathBuf,
    /// Whether its folder came into being, too.
    pub is_new: bool,
    /// Names in it that would have been refused elsewhere.
    pub holds: Vec<String>,
    /// Settings and hooks in it, at the end, that execute something when git is used.
    pub executes: Vec<String>,
}

/// What a supervisor did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Calls that were carried out or answered.
    pub calls: u64,
    /// Calls that were refused for a name.
    pub refused: u64,
    /// Repositories that came into being.
    pub repositories: Vec<NewRepository>,
}
