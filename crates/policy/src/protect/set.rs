//! The protected files of one workspace, and the one question that every door asks.

mod denial;
#[cfg(test)]
mod tests;

pub use denial::Denial;

use std::path::{Path, PathBuf};

use wardkeep_detect::shell::pattern_matches;

use super::facts::{FileKind, Identity, PathFacts, Readings};
use super::lists::{ProtectLists, STAGING_FOLDER, TOOL_LEVEL_PROTECTED};
use crate::workspace::{MANIFEST_FILE, POLICY_FILE};
use wardkeep_detect::names::folded_components;

/// Why a file is protected; the strictest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// It lies in the state directory: key, journal, configuration.
    State,
    /// It is the owner's policy.
    Policy,
    /// It is the policy's manifest.
    Manifest,
    /// It is a setting, an extension or a schedule of an agent.
    AgentSettings,
    /// It is a command that changes what is protected.
    ControlPlane,
    /// It is in the protect tier: changed by staging and the owner's approval.
    Protected,
    /// It cannot be told which file it is.
    Unknown,
}

/// What is to be done to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// Its content is read.
    Read,
    /// Everything below it is read.
    ReadTree,
    /// Its names are listed.
    List,
    /// Its content is written, appended to or cut off; it may be created.
    Write,
    /// It is removed, with all below it.
    Delete,
    /// It gets another name.
    RenameAway,
    /// Something else gets its name: a rename, a link, a mount.
    Replace,
    /// It gets a further name.
    HardLink,
    /// Mode, owner, times or attributes are changed.
    ChangeAttributes,
    /// The same for all below it.
    ChangeTreeAttributes,
}

impl Operation {
    /// Whether it acts on what a link at the end points to, not on the link.
    #[must_use]
    pub const fn follows_link(self) -> bool {
        !matches!(self, Self::Delete | Self::RenameAway | Self::Replace | Self::HardLink)
    }

    /// Whether nothing is changed by it.
    #[must_use]
    pub const fn only_reads(self) -> bool {
        matches!(self, Self::Read | Self::ReadTree | Self::List)
    }

    /// Whether it concerns everything below a directory.
    const fn takes_the_tree(self) -> bool {
        matches!(self, Self::Delete | Self::RenameAway | Self::Replace | Self::ChangeTreeAttributes)
    }
}

/// Whether the caller can make the agent write somewhere else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Redirect {
    /// It can: a hook that rewrites the path.
    Possible,
    /// It cannot.
    Impossible,
}

/// What is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// Nothing speaks against it.
    Allowed,
    /// It must not happen.
    Denied(Denial),
    /// It must not happen there; the same write may go to the staging folder.
    Staged {
        /// Where it may go.
        path: PathBuf,
        /// Why it must not happen where it was meant to.
        denial: Denial,
    },
}

impl Judgement {
    /// The refusal, if it is one.
    #[must_use]
    pub fn denial(&self) -> Option<&Denial> {
        match self {
            Self::Allowed => None,
            Self::Denied(denial) | Self::Staged { denial, .. } => Some(denial),
        }
    }
}

/// A directory that matters.
#[derive(Debug, Clone)]
struct Place {
    path: PathBuf,
    components: Vec<String>,
    identity: Option<Identity>,
    ancestors: Vec<Identity>,
}

impl Place {
    fn of(facts: &PathFacts) -> Self {
        Self {
            path: facts.path.clone(),
            components: folded_components(&facts.path),
            identity: facts.identity,
            ancestors: facts.ancestors.clone(),
        }
    }

    /// The components below this place, if it lies here or below.
    fn relative(&self, facts: &PathFacts) -> Option<Vec<String>> {
        let components = folded_components(&facts.path);
        if let Some(identity) = self.identity {
            if facts.identity == Some(identity) {
                return Some(Vec::new());
            }
            // The deepest one counts: a place may be mounted inside itself.
            if let Some(depth) = facts.ancestors.iter().rposition(|above| *above == identity) {
                return Some(components.get(depth..).unwrap_or_default().to_vec());
            }
        }
        components.strip_prefix(self.components.as_slice()).map(<[String]>::to_vec)
    }

    /// Whether this place lies below a directory, or is it.
    fn is_below(&self, directory: &PathFacts) -> bool {
        let known = directory.identity.is_some_and(|identity| {
            self.identity == Some(identity) || self.ancestors.contains(&identity)
        });
        known || self.components.starts_with(&folded_components(&directory.path))
    }
}

/// A protected file, or a directory with all below it.
#[derive(Debug, Clone)]
struct Rule {
    class: Class,
    /// In the workspace, or absolute.
    in_workspace: bool,
    /// Folded; of a rule in the workspace they may be globs.
    components: Vec<String>,
    /// As the owner calls it.
    shown: String,
}

/// The protected files of one workspace.
///
/// Built from the facts of the workspace and of the state directory, and from the lists. Then
/// [`ProtectedSet::identify`] takes the facts of the files that exist, so that they are known
/// under any name.
#[derive(Debug, Clone)]
pub struct ProtectedSet {
    workspace: Place,
    state: Place,
    rules: Vec<Rule>,
    identities: Vec<(Identity, Class, String)>,
}

impl ProtectedSet {
    /// What is protected in a workspace.
    #[must_use]
    pub fn new(workspace: &PathFacts, state: &PathFacts, lists: &ProtectLists) -> Self {
        let in_workspace = |class, name: &str| Rule {
            class,
            in_workspace: true,
            components: folded_components(Path::new(name)),
            shown: name.to_owned(),
        };
        let class_of = |name: &str| match name {
            POLICY_FILE => Class::Policy,
            MANIFEST_FILE => Class::Manifest,
            _ => Class::Protected,
        };
        let mut rules: Vec<Rule> =
            TOOL_LEVEL_PROTECTED.iter().map(|name| in_workspace(class_of(name), name)).collect();
        rules.extend(
            lists.workspace_settings.iter().map(|name| in_workspace(Class::AgentSettings, name)),
        );
        rules.extend(lists.settings.iter().map(|path| Rule {
            class: Class::AgentSettings,
            in_workspace: false,
            components: folded_components(path),
            shown: path.display().to_string(),
        }));
        rules.extend(lists.protect.iter().map(|name| in_workspace(class_of(name), name)));
        rules.retain(|rule| !rule.components.is_empty());
        rules.sort_by_key(|rule| rule.class);
        let (workspace, state) = (Place::of(workspace), Place::of(state));
        Self { workspace, state, rules, identities: Vec::new() }
    }

    /// The real path of the workspace.
    #[must_use]
    pub fn workspace(&self) -> &Path {
        &self.workspace.path
    }

    /// The real path of the state directory.
    #[must_use]
    pub fn state(&self) -> &Path {
        &self.state.path
    }

    /// Files that are to be handed to [`ProtectedSet::identify`] where they exist. Globs are not
    /// among them: whoever knows the files that match adds those.
    pub fn candidates(&self) -> impl Iterator<Item = PathBuf> {
        self.rules.iter().filter(|rule| !is_glob(&rule.shown)).map(|rule| {
            if rule.in_workspace {
                self.workspace.path.join(&rule.shown)
            } else {
                PathBuf::from(&rule.shown)
            }
        })
    }

    /// The globs of the protect tier.
    pub fn globs(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().map(|rule| rule.shown.as_str()).filter(|shown| is_glob(shown))
    }

    /// Remembers which file a protected name is now, so that it is known under any other name.
    ///
    /// What lies in the state directory may be given too; what is not protected is left alone.
    pub fn identify(&mut self, facts: &PathFacts) {
        let Some(identity) = facts.identity.filter(|_| facts.kind != FileKind::Directory) else {
            return;
        };
        if let Some((class, shown)) = self.by_place(facts) {
            self.identities.push((identity, class, shown));
        }
    }

    /// Remembers the file that a protected name leads to, if that name is a link.
    pub fn identify_as(&mut self, name: &PathFacts, file: &PathFacts) {
        if name.identity == file.identity || file.kind == FileKind::Directory {
            return;
        }
        if let (Some(identity), Some((class, shown))) = (file.identity, self.by_place(name)) {
            self.identities.push((identity, class, shown));
        }
    }

    /// Whether an agent may do this to a path.
    ///
    /// All readings count; the strictest answer is given.
    #[must_use]
    pub fn judge(
        &self,
        operation: Operation,
        readings: &Readings,
        redirect: Redirect,
    ) -> Judgement {
        let mut strictest: Option<(Class, String, &PathFacts)> = None;
        for facts in readings.all() {
            if let Some((class, shown)) = self.hit(operation, facts)
                && strictest.as_ref().is_none_or(|(before, ..)| class < *before)
            {
                strictest = Some((class, shown, facts));
            }
        }
        let Some((class, shown, facts)) = strictest else { return Judgement::Allowed };
        let denial = self.denial(class, &shown, operation, facts);
        let staging = self.staging(operation, class, facts);
        match staging.filter(|_| redirect == Redirect::Possible) {
            Some(path) => Judgement::Staged { path, denial },
            None => Judgement::Denied(denial),
        }
    }

    /// Something protected at or below a directory, if there is.
    #[must_use]
    pub fn below(&self, directory: &PathFacts) -> Option<(Class, String)> {
        if self.state.is_below(directory) {
            return Some((Class::State, self.state.path.display().to_string()));
        }
        let inside = self.workspace.relative(directory);
        let folded = folded_components(&directory.path);
        let whole = self.workspace.is_below(directory);
        let fits = |rule: &&Rule| match &inside {
            _ if !rule.in_workspace => rule.components.starts_with(&folded),
            Some(inside) => goes_below(&rule.components, inside),
            None => whole,
        };
        // One that is there tells more than one that could be.
        let is_there =
            |rule: &&Rule| self.identities.iter().any(|(.., shown)| *shown == rule.shown);
        let mut rules = self.rules.iter().filter(fits);
        let rule = rules.clone().find(is_there).or_else(|| rules.next())?;
        Some((rule.class, rule.shown.clone()))
    }

    /// Settings of an agent right in this folder, which is the agent's own and not a whole home.
    pub(super) fn settings_below(&self, folder: &PathFacts) -> Option<(Class, String)> {
        let inside = self.workspace.relative(folder);
        let folded = folded_components(&folder.path);
        let own = folded.last().is_some_and(|name| name.starts_with('.'));
        let rule = self.rules.iter().filter(|rule| own && rule.class == Class::AgentSettings);
        let rule = rule.into_iter().find(|rule| {
            let path = match (rule.in_workspace, &inside) {
                (true, Some(inside)) => inside,
                (true, None) => return false,
                (false, _) => &folded,
            };
            rule.components.len() == path.len() + 1 && rule.components.starts_with(path)
        })?;
        Some((rule.class, rule.shown.clone()))
    }

    /// Every protected path that is no glob: absolute, with its class and as the owner calls it.
    pub(super) fn paths(&self) -> impl Iterator<Item = (PathBuf, Class, &str)> {
        let rules = self.rules.iter().filter(|rule| !is_glob(&rule.shown)).map(|rule| {
            let path = if rule.in_workspace {
                self.workspace.path.join(&rule.shown)
            } else {
                PathBuf::from(&rule.shown)
            };
            (path, rule.class, rule.shown.as_str())
        });
        let state = std::iter::once((self.state.path.clone(), Class::State, "the state directory"));
        state.chain(rules)
    }

    /// Whether a name, folded, is that of a file in the workspace that words alone point to.
    pub(super) fn named(&self, folded: &str) -> Option<(Class, &str)> {
        let rules = self.rules.iter().filter(|rule| {
            rule.in_workspace && rule.class != Class::AgentSettings && !is_glob(&rule.shown)
        });
        let found = rules
            .filter_map(|rule| Some((rule.components.last()?, rule)))
            .find(|(name, _)| name.as_str() == folded);
        found.map(|(_, rule)| (rule.class, rule.shown.as_str()))
    }

    pub(super) fn inside_state(&self, facts: &PathFacts) -> bool {
        let Some(below) = self.state.relative(facts) else { return false };
        // The workspace may lie inside the state directory: `~/.localgpt/workspace`.
        let nested = self.workspace.components.len() > self.state.components.len()
            && self.workspace.components.starts_with(&self.state.components);
        !(nested && !below.is_empty() && self.workspace.relative(facts).is_some())
    }

    /// Whether the directory that a path lies in is protected with all below it.
    pub(super) fn covers_parent(&self, facts: &PathFacts) -> bool {
        let inside = self.workspace.relative(facts).unwrap_or_default();
        let folded = folded_components(&facts.path);
        self.rules.iter().any(|rule| {
            let path = if rule.in_workspace { &inside } else { &folded };
            path.split_last().is_some_and(|(_, above)| covers(&rule.components, above))
        })
    }

    /// What is hit by name or place, whatever is to be done.
    fn by_place(&self, facts: &PathFacts) -> Option<(Class, String)> {
        if self.inside_state(facts) {
            return Some((Class::State, self.state.path.display().to_string()));
        }
        let inside = self.workspace.relative(facts);
        let folded = folded_components(&facts.path);
        let rule = self.rules.iter().find(|rule| match (rule.in_workspace, &inside) {
            (true, Some(inside)) => covers(&rule.components, inside),
            (true, None) => false,
            (false, _) => folded.starts_with(&rule.components),
        })?;
        Some((rule.class, rule.shown.clone()))
    }

    fn hit(&self, operation: Operation, facts: &PathFacts) -> Option<(Class, String)> {
        if let FileKind::Descriptor(number) = facts.kind {
            // The streams of a command are judged where they are opened.
            return (number > 2).then(|| (Class::Unknown, format!("descriptor {number}")));
        }
        let known = self.identities.iter().filter(|(known, ..)| facts.identity == Some(*known));
        let known = known.map(|(_, class, shown)| (*class, shown.clone())).min_by_key(|hit| hit.0);
        let hit = self.by_place(facts).into_iter().chain(known).min_by_key(|hit| hit.0);
        if operation.only_reads() {
            let state = hit.filter(|(class, _)| *class == Class::State);
            let tree = operation == Operation::ReadTree
                && facts.kind == FileKind::Directory
                && self.state.is_below(facts);
            return state
                .or_else(|| tree.then(|| (Class::State, self.state.path.display().to_string())));
        }
        if hit.is_some() {
            return hit;
        }
        if operation.takes_the_tree() && facts.kind == FileKind::Directory {
            return self.below(facts);
        }
        // What gets the name may be a folder, or lead to one, that holds such a file already.
        let comes = matches!(operation, Operation::Replace | Operation::HardLink);
        if comes && matches!(facts.kind, FileKind::Missing | FileKind::Link) {
            return self.right_below(facts);
        }
        None
    }

    /// What is protected by its whole name in a folder that does not exist yet.
    fn right_below(&self, facts: &PathFacts) -> Option<(Class, String)> {
        let inside = self.workspace.relative(facts);
        let folded = folded_components(&facts.path);
        let rule = self.rules.iter().find(|rule| {
            let path = match (rule.in_workspace, &inside) {
                (true, Some(inside)) => inside,
                (true, None) => return false,
                (false, _) => &folded,
            };
            !path.is_empty()
                && rule.components.len() > path.len()
                && rule.components.starts_with(path)
        })?;
        Some((rule.class, rule.shown.clone()))
    }

    /// Where a write to a file of the protect tier may go instead.
    fn staging(&self, operation: Operation, class: Class, facts: &PathFacts) -> Option<PathBuf> {
        if class != Class::Protected || operation != Operation::Write {
            return None;
        }
        let relative = facts.path.strip_prefix(&self.workspace.path).ok()?;
        Some(self.workspace.path.join(STAGING_FOLDER).join(relative))
    }
}

fn is_glob(name: &str) -> bool {
    name.contains(['*', '?', '['])
}

/// Whether a path is what a rule names, or lies below it.
fn covers(rule: &[String], path: &[String]) -> bool {
    let is = |part: &String, name: &String| part == name || pattern_matches(part, name);
    let Some(open) = rule.iter().position(|part| part == "**") else {
        return rule.len() <= path.len()
            && rule.iter().zip(path).all(|(part, name)| is(part, name));
    };
    let (head, rest) = rule.split_at(open);
    if head.len() > path.len() || !head.iter().zip(path).all(|(part, name)| is(part, name)) {
        return false;
    }
    // All places at once, so that many of them cost no more than their number times the depth.
    let path = &path[head.len()..];
    let mut at = vec![false; path.len() + 1];
    at[0] = true;
    for part in rest {
        let mut next = vec![false; path.len() + 1];
        if part == "**" {
            let mut reached = false;
            for (here, next) in at.iter().zip(&mut next) {
                reached |= here;
                *next = reached;
            }
        } else {
            for (number, name) in path.iter().enumerate() {
                next[number + 1] = at[number] && is(part, name);
            }
        }
        if !next.contains(&true) {
            return false;
        }
        at = next;
    }
    true
}

/// Whether what a rule names may lie at or below a directory.
fn goes_below(rule: &[String], directory: &[String]) -> bool {
    match (rule.split_first(), directory.split_first()) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some((first, _)), _) if first == "**" => true,
        (Some((first, rest)), Some((name, below))) => {
            (first == name || pattern_matches(first, name)) && goes_below(rest, below)
        }
    }
}
