//! Files as the guards see them: which one it is, and what it is to the agent.

use std::path::{Path, PathBuf};

use wardkeep_guard::facts::{FileFacts, Protection, Sensitivity};
use wardkeep_guard::files::{SensitiveFiles, sensitivity};
use wardkeep_guard::memory;
use wardkeep_guard::steering;
use wardkeep_guard::surface::{Act, Surface};
use wardkeep_policy::protect::{
    Class, Denial, Identity, Judgement, Operation, PathFacts, ProtectedSet, Readings, Redirect,
};

use crate::daemon::Root;
use crate::resolve::Resolver;

/// A file that something is to be done to.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) facts: FileFacts,
    pub(super) surface: Surface,
    /// Its real path; where it cannot be told, the one that was given.
    pub(super) path: PathBuf,
    /// Which file it is, if there is one.
    pub(super) identity: Option<Identity>,
    /// Why it may not be changed, in words.
    pub(super) denial: Option<Denial>,
    /// Where it may be written instead.
    pub(super) staged: Option<PathBuf>,
}

impl Subject {
    /// How strictly it is kept.
    pub(super) fn strictness(&self) -> (bool, Protection, bool, Protection, bool, Sensitivity) {
        let FileFacts { resolved, protection, memory, sensitivity, .. } = &self.facts;
        let kept = if *protection > Protection::Watched { *protection } else { Protection::None };
        let steers = self.surface == Surface::ControlPlane;
        (!resolved, kept, steers, *protection, *memory, *sensitivity)
    }

    /// The same file seen from another workspace: all that either says holds.
    pub(super) fn or_stricter(self, other: Self) -> Self {
        let sensitivity = self.facts.sensitivity.max(other.facts.sensitivity);
        let memory = self.facts.memory || other.facts.memory;
        let mut strict = if other.strictness() > self.strictness() { other } else { self };
        strict.facts.sensitivity = sensitivity;
        strict.facts.memory = memory;
        strict
    }
}

/// What is known of a workspace's files.
#[derive(Debug)]
pub(super) struct Ground<'a> {
    pub(super) workspace: &'a Path,
    pub(super) home: Option<&'a Path>,
    pub(super) set: &'a ProtectedSet,
    pub(super) sensitive: &'a SensitiveFiles,
    /// What whoever asks sees, where that is something else.
    pub(super) view: Option<&'a Root>,
}

/// What is done to a path, in the words of the protected set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deed {
    Read,
    Write,
    Delete,
    MoveAway,
    MoveHere,
}

impl Deed {
    fn operation(self) -> Operation {
        match self {
            Self::Read => Operation::Read,
            Self::Write => Operation::Write,
            Self::Delete => Operation::Delete,
            Self::MoveAway => Operation::RenameAway,
            Self::MoveHere => Operation::Replace,
        }
    }

    pub(super) fn act(self) -> Act {
        match self {
            Self::Read => Act::Read,
            Self::Write => Act::Write,
            Self::Delete => Act::Delete,
            Self::MoveAway | Self::MoveHere => Act::Rename,
        }
    }
}

impl Ground<'_> {
    /// Looks at a path.
    pub(super) fn subject(&self, path: &Path, deed: Deed) -> Subject {
        let operation = deed.operation();
        let readings = Resolver::new(self.workspace).and_then(|resolver| {
            let resolver = resolver.seen_by(self.view);
            if operation.follows_link() { resolver.target(path) } else { resolver.entry(path) }
        });
        match readings {
            Ok(readings) => self.resolved(&readings, deed),
            Err(error) => {
                let shown = path.to_string_lossy().into_owned();
                let denial = Denial::unresolved(&shown, &error.to_string());
                Subject {
                    facts: FileFacts {
                        path: shown,
                        memory: false,
                        protection: Protection::Sealed,
                        sensitivity: Sensitivity::Denied,
                        resolved: false,
                    },
                    surface: Surface::FileSystem,
                    path: path.to_owned(),
                    identity: None,
                    denial: Some(denial),
                    staged: None,
                }
            }
        }
    }

    fn resolved(&self, readings: &Readings, deed: Deed) -> Subject {
        let (denial, staged) = match self.set.judge(deed.operation(), readings, Redirect::Possible)
        {
            Judgement::Allowed => (None, None),
            Judgement::Denied(denial) => (Some(denial), None),
            Judgement::Staged { path, denial } => (Some(denial), Some(path)),
        };
        let class = denial.as_ref().map(|denial| denial.class);
        let is_memory = readings.all().any(|facts| self.is_memory(facts, deed));
        let protection = match class {
            // A read is denied for the state directory alone.
            Some(_) if deed == Deed::Read => Protection::None,
            Some(Class::Protected) => Protection::Protected,
            Some(_) => Protection::Sealed,
            None if is_memory => Protection::Watched,
            None => Protection::None,
        };
        let sensitivity = if class.is_some() && deed == Deed::Read {
            Sensitivity::Sealed
        } else {
            let found =
                readings.all().map(|facts| sensitivity(&facts.path, self.home, self.sensitive));
            found.max().unwrap_or(Sensitivity::None)
        };
        let steers = matches!(
            class,
            Some(
                Class::State
                    | Class::Policy
                    | Class::Manifest
                    | Class::AgentSettings
                    | Class::ControlPlane
            )
        );
        // What some program obeys by itself steers as much as a setting does; what is protected is
        // staged.
        let obeyed = |facts: &PathFacts| steering::is_obeyed(&facts.path, self.home);
        let steers = steers || class.is_none() && !is_memory && readings.all().any(obeyed);
        let surface = match (deed, steers, is_memory) {
            (Deed::Read, _, true) | (_, false, true) => Surface::DurableMemory,
            (Deed::Read, _, false) | (_, false, false) => Surface::FileSystem,
            (_, true, _) => Surface::ControlPlane,
        };
        let path = readings.literal.path.clone();
        Subject {
            facts: FileFacts {
                path: path.to_string_lossy().into_owned(),
                memory: is_memory,
                protection,
                sensitivity,
                resolved: class != Some(Class::Unknown),
            },
            surface,
            identity: readings.literal.identity,
            path,
            denial,
            staged,
        }
    }

    /// By where it lies in the workspace, or because it is the same file under another name.
    fn is_memory(&self, facts: &PathFacts, deed: Deed) -> bool {
        let workspace = self.set.workspace();
        // Whoever removes or moves a folder does so to what is in it.
        let whole = matches!(deed, Deed::Delete | Deed::MoveAway | Deed::MoveHere);
        if memory::is_memory(&facts.path, workspace)
            || (whole && memory::holds_memory(&facts.path, workspace))
        {
            return true;
        }
        // A further name, or a mount, of one of the files.
        facts.identity.is_some_and(|identity| {
            memory::MEMORY_FILES
                .iter()
                .any(|name| identity_of(&workspace.join(name)) == Some(identity))
                || (facts.links > 1 && in_folder(&workspace.join(memory::MEMORY_FOLDER), identity))
        })
    }
}

/// Most files of the memory folder that are looked at for a further name.
const MOST: usize = 4096;

fn in_folder(folder: &Path, wanted: Identity) -> bool {
    let mut waiting = vec![folder.to_owned()];
    let mut left = MOST;
    while let Some(folder) = waiting.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            // Too many to tell: it may be one of them.
            let Some(fewer) = left.checked_sub(1) else { return true };
            left = fewer;
            let path = entry.path();
            if identity_of(&path) == Some(wanted) {
                return true;
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                waiting.push(path);
            }
        }
    }
    false
}

fn identity_of(path: &Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt as _;
    let data = std::fs::symlink_metadata(path).ok()?;
    Some(Identity { device: data.dev(), inode: data.ino() })
}
