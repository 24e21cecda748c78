//! The one path resolver: from a path as an agent wrote it to the file that it is.
//!
//! Component by component from the root, by directory descriptors, without following anything
//! unseen: each link is read and walked in turn, `..` goes to the real parent, and every directory
//! on the way is noted by device and inode. What does not exist is named as far as it does. Some
//! paths mean something else to the agent's process than to this one (`/proc/self/…`,
//! `/dev/fd/3`): they are read as the agent's.
//!
//! The answer is a snapshot: whoever acts on it later opens the file anew and compares.

mod special;
mod walk;

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use wardkeep_identity::config::CONFIG_FILE;
use wardkeep_policy::protect::{
    FileKind, PathFacts, ProtectLists, ProtectedSet, Readings, fold_name, folded_components,
    glob_matches,
};

use crate::daemon::Root;
use walk::Walk;

/// Longest path, in bytes.
pub const MAX_PATH: usize = 64 << 10;
/// Most components that are walked, those of links included.
pub const MAX_COMPONENTS: usize = 4096;
/// Most links that are followed, as many as the kernel follows.
pub const MAX_LINKS: usize = 40;
/// Most files of the state directory, and matches of globs, that a set knows by identity.
const MAX_IDENTIFIED: usize = 4096;
/// Most agents whose installation is read.
const MAX_INSTALLED: usize = 64;
/// Longest list of files that `wardkeep install` wrote.
const MAX_LIST: u64 = 1 << 20;
/// Longest entry of a protect tier.
const LONGEST_ENTRY: usize = 1024;

/// Why a path cannot be resolved. Whoever asks treats it as a denial.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// It says nothing.
    #[error("the path is empty; name a file")]
    Empty,
    /// It has a byte that no path has.
    #[error("the path has a zero byte; leave it out")]
    ZeroByte,
    /// It is too long, or its links make it so.
    #[error("the path is longer than {MAX_PATH} bytes or {MAX_COMPONENTS} components; shorten it")]
    TooLong,
    /// Its links lead in a circle.
    #[error("`{}` leads in a circle, or over more than {MAX_LINKS} links; remove the link", path.display())]
    Loop {
        /// The link at which it was given up.
        path: PathBuf,
    },
    /// What it is relative to is not a directory.
    #[error("`{}` is no directory that a path could be relative to; give an absolute one", path.display())]
    Base {
        /// The directory.
        path: PathBuf,
    },
    /// A component changed while it was looked at.
    #[error("`{}` was changed while it was looked at; try again", path.display())]
    Changed {
        /// The component.
        path: PathBuf,
    },
    /// Only the agent's process knows what it is.
    #[error("`{}` means something only to the agent's own process; name the file itself", path.display())]
    OwnProcess {
        /// The component.
        path: PathBuf,
    },
    /// The system does not let it be seen.
    #[error("cannot look at `{}`: {error}; make it readable for the user that runs wardkeep", path.display())]
    System {
        /// The component.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
}

/// Resolves paths relative to a directory.
#[derive(Debug, Clone)]
pub struct Resolver {
    /// Absolute and real.
    base: PathBuf,
    /// What someone else sees, where only that counts.
    view: Option<Root>,
}

impl Resolver {
    /// Resolves relative to this directory, which must be absolute and exist.
    ///
    /// # Errors
    ///
    /// If it is no directory, or cannot be looked at.
    pub fn new(base: &Path) -> Result<Self, ResolveError> {
        if !base.is_absolute() {
            return Err(ResolveError::Base { path: base.to_path_buf() });
        }
        let facts = Walk::new(Path::new("/"))?.run(base, true)?;
        if facts.kind != FileKind::Directory {
            return Err(ResolveError::Base { path: base.to_path_buf() });
        }
        Ok(Self { base: facts.path, view: None })
    }

    /// As [`Self::new`] for someone who sees other files: a directory that is another one there, or none
    /// here, is known by its name alone.
    ///
    /// # Errors
    ///
    /// As of [`Self::new`].
    pub fn from(base: &Path, view: Option<&Root>) -> Result<Self, ResolveError> {
        let Some(view) = view else { return Self::new(base) };
        if !base.is_absolute() {
            return Err(ResolveError::Base { path: base.to_path_buf() });
        }
        check(base)?;
        let facts = Walk::new(Path::new("/"))?.seen_by(Some(view))?.run(base, true)?;
        if !matches!(facts.kind, FileKind::Directory | FileKind::Missing) {
            return Err(ResolveError::Base { path: base.to_path_buf() });
        }
        Ok(Self { base: facts.path, view: Some(view.clone()) })
    }

    /// The same for someone who sees other files: what is another file there, or none, or none here, is
    /// a name and nothing else.
    #[must_use]
    pub fn seen_by(self, view: Option<&Root>) -> Self {
        Self { view: view.cloned(), ..self }
    }

    /// The directory, real.
    #[must_use]
    pub fn base(&self) -> &Path {
        &self.base
    }

    /// The file that opening the path would open: a link at its end is followed.
    ///
    /// # Errors
    ///
    /// If it cannot be told which file that is.
    pub fn target(&self, path: &Path) -> Result<Readings, ResolveError> {
        self.resolve(path, true)
    }

    /// The directory entry that removing or renaming the path would touch: a link at its end is
    /// not followed.
    ///
    /// # Errors
    ///
    /// If it cannot be told which entry that is.
    pub fn entry(&self, path: &Path) -> Result<Readings, ResolveError> {
        self.resolve(path, false)
    }

    fn resolve(&self, path: &Path, follow: bool) -> Result<Readings, ResolveError> {
        check(path)?;
        let walk = || Walk::new(&self.base)?.seen_by(self.view.as_ref());
        let literal = walk()?.run(path, follow);
        let Some(text) = cleaned(&self.base, path) else {
            return Ok(Readings { literal: literal?, cleaned: None });
        };
        let clean = walk()?.run(&text, follow);
        match (literal, clean) {
            (Ok(literal), Ok(clean)) => {
                let same = clean.path == literal.path && clean.identity == literal.identity;
                Ok(Readings { literal, cleaned: (!same).then_some(clean) })
            }
            // What one reading cannot resolve, the other may: both have to be known.
            (Err(error), _) | (_, Err(error)) => Err(error),
        }
    }
}

fn check(path: &Path) -> Result<(), ResolveError> {
    let bytes = path.as_os_str().as_bytes();
    if bytes.is_empty() {
        return Err(ResolveError::Empty);
    }
    if bytes.contains(&0) {
        return Err(ResolveError::ZeroByte);
    }
    if bytes.len() > MAX_PATH {
        return Err(ResolveError::TooLong);
    }
    Ok(())
}

/// The path with `x/..` taken out of the text, if there is any.
fn cleaned(base: &Path, path: &Path) -> Option<PathBuf> {
    if !path.components().any(|component| component == Component::ParentDir) {
        return None;
    }
    let mut clean = PathBuf::from("/");
    for component in base.join(path).components() {
        match component {
            Component::ParentDir => {
                clean.pop();
            }
            Component::Normal(name) => clean.push(name),
            _ => {}
        }
    }
    Some(clean)
}

/// What is protected for whom: the settings in the user's home, those in every home that `wardkeep
/// install` wrote into, and the files that it wrote. An agent may run with another home than the one
/// that the system's list of users tells.
#[must_use]
pub fn protect_lists(state: &Path, home: Option<&Path>) -> ProtectLists {
    /// What is read of a list of files.
    #[derive(Default, serde::Deserialize)]
    #[serde(default)]
    struct Installed {
        home: Option<PathBuf>,
        files: Vec<Written>,
    }
    #[derive(serde::Deserialize)]
    struct Written {
        path: PathBuf,
    }
    let mut lists = ProtectLists::with_home(home);
    let mut budget = MAX_INSTALLED;
    let folder = state.join("installed");
    for name in names_in(&folder, &mut budget) {
        let list = folder.join(name).join("list.json");
        let Some(installed) = crate::files::read_plain(&list, MAX_LIST)
            .ok()
            .and_then(|bytes| serde_json::from_slice::<Installed>(&bytes).ok())
        else {
            continue;
        };
        if let Some(other) = installed.home.filter(|other| Some(other.as_path()) != home) {
            lists.add_home(&other);
        }
        lists.settings.extend(installed.files.into_iter().map(|one| one.path));
    }
    lists
}

/// The lists with the protect tier of the workspace, as its own list has it. What stands there can only
/// tighten; one that cannot be read adds nothing, and `wardkeep status` tells of it.
fn with_tier(workspace: &Path, lists: &ProtectLists) -> ProtectLists {
    let mut lists = lists.clone();
    let path = workspace.join(CONFIG_FILE);
    let Ok(bytes) = crate::files::read_plain(&path, MAX_LIST) else { return lists };
    let Ok(config) = serde_json::from_slice::<serde_json::Value>(&bytes) else { return lists };
    let listed = config.get("protect").and_then(|list| list.as_array()).into_iter().flatten();
    let tiers = config.get("files").and_then(|files| files.as_object()).into_iter().flatten();
    let tiers = tiers.filter(|(_, tier)| tier.as_str() == Some("protect")).map(|(name, _)| &**name);
    let names = listed.filter_map(|entry| entry.as_str()).chain(tiers);
    let known: HashSet<String> = lists.protect.iter().cloned().collect();
    // One that means nothing here is passed over; the others hold.
    let names = names.map(|name| name.trim_start_matches("./").trim_end_matches('/'));
    let names = names.filter(|name| {
        let part = |part: &str| !part.is_empty() && part != "." && part != "..";
        name.len() <= LONGEST_ENTRY && name.split('/').all(part) && !known.contains(*name)
    });
    let names: Vec<String> = names.take(MAX_IDENTIFIED).map(str::to_owned).collect();
    lists.protect.extend(names);
    lists
}

/// The protected files of a workspace, known by name alone: for who only wants to know what a command
/// is about.
///
/// # Errors
///
/// If workspace or state directory cannot be resolved.
pub fn protected_names(
    workspace: &Path,
    state: &Path,
    lists: &ProtectLists,
) -> Result<ProtectedSet, ResolveError> {
    let root = Resolver { base: PathBuf::from("/"), view: None };
    let (workspace, state) = (root.target(workspace)?.literal, root.target(state)?.literal);
    Ok(ProtectedSet::new(&workspace, &state, &with_tier(&workspace.path, lists)))
}

/// The protected files of a workspace as they are now, known by name and by identity.
///
/// # Errors
///
/// If workspace or state directory cannot be resolved.
pub fn protected_set(
    workspace: &Path,
    state: &Path,
    lists: &ProtectLists,
) -> Result<ProtectedSet, ResolveError> {
    let root = Resolver { base: PathBuf::from("/"), view: None };
    let workspace = root.target(workspace)?.literal;
    let state = root.target(state)?.literal;
    let mut set = ProtectedSet::new(&workspace, &state, &with_tier(&workspace.path, lists));
    // More of a tier than this are known by their names alone.
    let candidates: Vec<PathBuf> = set.candidates().take(MAX_IDENTIFIED).collect();
    let globs: Vec<String> = set.globs().map(str::to_owned).collect();
    let places = [&workspace, &state];
    let identify = |set: &mut ProtectedSet, path: &Path| identify(set, &root, &places, path);
    // Most lie in folders that are not there, several in each.
    let mut folders: HashMap<PathBuf, bool> = HashMap::new();
    for path in candidates {
        let Some(folder) = path.parent() else { continue };
        let there = match folders.get(folder) {
            Some(there) => *there,
            None => {
                let there = folder.metadata().is_ok();
                folders.insert(folder.to_path_buf(), there);
                there
            }
        };
        if there {
            identify(&mut set, &path);
        }
    }
    // Names that only differ in case or form are the same file where the system says so, and
    // another protected one where it does not.
    let wanted = names_wanted(&set, &workspace.path);
    let mut budget = MAX_IDENTIFIED;
    for name in names_in(&workspace.path, &mut budget) {
        if wanted.contains(&fold_name(&name.to_string_lossy())) {
            identify(&mut set, &workspace.path.join(name));
        }
    }
    for glob in globs {
        for path in matches_below(&workspace.path, &glob, &mut budget) {
            identify(&mut set, &path);
        }
    }
    let mut budget = MAX_IDENTIFIED;
    for name in names_in(&state.path, &mut budget) {
        identify(&mut set, &state.path.join(name));
    }
    Ok(set)
}

/// The folded names of what is protected right inside of a workspace.
fn names_wanted(set: &ProtectedSet, workspace: &Path) -> HashSet<String> {
    let depth = workspace.components().count();
    let here = folded_components(workspace);
    let right_inside = |path: &PathBuf| path.components().count() == depth + 1;
    set.candidates()
        .filter(right_inside)
        .filter_map(|path| {
            let mut parts = folded_components(&path);
            parts.pop().filter(|_| parts == here)
        })
        .collect()
}

/// A file that cannot be resolved has no identity to know: it stays protected by its name.
fn identify(set: &mut ProtectedSet, root: &Resolver, places: &[&PathFacts], path: &Path) {
    // Most are not there, and that is cheap to see.
    let Ok(data) = std::fs::symlink_metadata(path) else { return };
    // A folder is known by its name alone.
    if data.is_dir() {
        return;
    }
    // So are files right inside of a folder that was walked to: each hook asks for them all.
    let place = places.iter().find(|place| path.parent() == Some(&place.path));
    if let Some(file) = place.and_then(|place| walk::file_in(place, path, &data)) {
        set.identify(&file);
        return;
    }
    let Ok(entry) = root.entry(path) else { return };
    set.identify(&entry.literal);
    // What a protected name leads to is protected as well, wherever it lies.
    if data.is_symlink()
        && let Ok(target) = root.target(path)
    {
        set.identify_as(&entry.literal, &target.literal);
    }
}

fn names_in(directory: &Path, budget: &mut usize) -> Vec<OsString> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut names = Vec::new();
    for entry in entries.flatten() {
        let Some(left) = budget.checked_sub(1) else { break };
        *budget = left;
        names.push(entry.file_name());
    }
    names
}

/// Files below a directory that a glob of the protect tier names.
fn matches_below(directory: &Path, glob: &str, budget: &mut usize) -> Vec<PathBuf> {
    let mut found = vec![directory.to_path_buf()];
    for part in glob.split('/').filter(|part| !part.is_empty() && *part != ".") {
        let mut next = Vec::new();
        for folder in &found {
            if part == "**" {
                next.push(folder.clone());
                below(folder, 8, budget, &mut next);
                continue;
            }
            for name in names_in(folder, budget) {
                if glob_matches(&fold_name(part), &fold_name(&name.to_string_lossy())) {
                    next.push(folder.join(name));
                }
            }
        }
        found = next;
    }
    found
}

fn below(folder: &Path, depth: usize, budget: &mut usize, out: &mut Vec<PathBuf>) {
    if depth == 0 {
        return;
    }
    for name in names_in(folder, budget) {
        let path = folder.join(name);
        let directory = std::fs::symlink_metadata(&path).is_ok_and(|data| data.is_dir());
        out.push(path.clone());
        if directory {
            below(&path, depth - 1, budget, out);
        }
    }
}

/// As [`judge_command`](wardkeep_policy::protect::judge_command) wants it: resolves with the
/// system's files.
///
/// # Errors
///
/// The reason in words.
pub fn resolve_for_command(base: &Path, path: &str, follow: bool) -> Result<Readings, String> {
    resolve_seen(base, path, follow, None)
}

/// The same for someone who sees other files.
///
/// # Errors
///
/// The reason in words.
pub(crate) fn resolve_seen(
    base: &Path,
    path: &str,
    follow: bool,
    view: Option<&Root>,
) -> Result<Readings, String> {
    let resolver = Resolver { base: base.to_path_buf(), view: view.cloned() };
    let path = Path::new(path);
    let readings = if follow { resolver.target(path) } else { resolver.entry(path) };
    readings.map_err(|error| error.to_string())
}
