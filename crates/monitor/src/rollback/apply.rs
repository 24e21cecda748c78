//! The files of a plan, one by one. Every step can be taken again.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd as _;

use rustix::fs::{AtFlags, fsync, unlinkat};
use wardkeep_evidence::hash::{BlobHash, sha256};

use super::plan::Plan;
use super::{Left, LeftWhy};
use crate::snapshot::{
    Content, Manifest, Opened, Put, RelativePath, Result, Root, Seen, Snapshots, Unflushed, clear,
    folded, prepare, rename_over,
};

/// What was done.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub(super) restored: Vec<RelativePath>,
    pub(super) removed: Vec<RelativePath>,
    pub(super) left: Vec<Left>,
}

pub(super) fn apply(
    snapshots: &Snapshots<'_>,
    root: &Root,
    plan: &Plan,
    target: &Opened,
    kept: &Manifest,
) -> Result<Done> {
    let mut forms: HashMap<Vec<String>, Vec<&RelativePath>> = HashMap::new();
    for entry in &target.manifest().files {
        forms.entry(folded(&entry.path)).or_default().push(&entry.path);
    }
    let work = Work { snapshots, root, plan, target, kept, forms };
    let mut done = Done::default();
    let mut failed = HashSet::new();
    work.clear_temporaries();
    let stages = work.stages();
    let mut each = |positions: &[usize], act: &mut dyn FnMut(usize) -> io::Result<bool>| {
        for position in positions.iter().copied() {
            if failed.contains(&position) {
                continue;
            }
            let why = match act(position) {
                Ok(true) => continue,
                Ok(false) => LeftWhy::Changed,
                Err(error) => LeftWhy::Failed(error.to_string()),
            };
            failed.insert(position);
            done.left.push(Left { path: plan.paths[position].clone(), why });
        }
    };
    each(&stages.in_the_way, &mut |position| work.remove(position));
    let mut unflushed = Unflushed::default();
    each(&stages.written, &mut |position| work.prepare(position, &mut unflushed));
    let flushed = unflushed.flush(snapshots.steps);
    each(&stages.written, &mut |position| match &flushed {
        Ok(()) => work.replace(position),
        Err(error) => Err(io::Error::other(error.to_string())),
    });
    each(&stages.removed, &mut |position| work.remove(position));
    work.clear_temporaries();
    work.flush();
    let left: HashSet<RelativePath> = done.left.iter().map(|left| left.path.clone()).collect();
    for path in plan.paths.iter().filter(|path| !left.contains(path)) {
        let wanted = work.wanted(path);
        match (holds(&root.look(path, size_of(wanted)), wanted), wanted) {
            (true, Some(_)) => done.restored.push(path.clone()),
            (true, None) => done.removed.push(path.clone()),
            (false, _) => done.left.push(Left { path: path.clone(), why: LeftWhy::Changed }),
        }
    }
    Ok(done)
}

struct Work<'a> {
    snapshots: &'a Snapshots<'a>,
    root: &'a Root,
    plan: &'a Plan,
    target: &'a Opened,
    kept: &'a Manifest,
    /// What is restored, by names as file systems may compare them.
    forms: HashMap<Vec<String>, Vec<&'a RelativePath>>,
}

/// Positions in the plan, in the order in which they are dealt with.
#[derive(Debug, Default)]
struct Stages {
    /// What stands in the way of another file.
    in_the_way: Vec<usize>,
    written: Vec<usize>,
    removed: Vec<usize>,
}

impl Work<'_> {
    fn wanted(&self, path: &RelativePath) -> Option<&Content> {
        self.target.manifest().file(path).map(|entry| &entry.content)
    }

    fn stages(&self) -> Stages {
        let paths = &self.plan.paths;
        let written: HashSet<&RelativePath> =
            paths.iter().filter(|path| self.wanted(path).is_some()).collect();
        let above: HashSet<RelativePath> = written.iter().flat_map(|path| parents(path)).collect();
        let mut stages = Stages::default();
        for (position, path) in paths.iter().enumerate() {
            let stage = if written.contains(path) {
                &mut stages.written
            } else if above.contains(path) || parents(path).any(|up| written.contains(&up)) {
                &mut stages.in_the_way
            } else {
                &mut stages.removed
            };
            stage.push(position);
        }
        stages
    }

    /// Makes a file that is to be put back beside its place, unless it is there; `false` if the
    /// present one is neither old nor new.
    fn prepare(&self, position: usize, unflushed: &mut Unflushed) -> io::Result<bool> {
        let path = &self.plan.paths[position];
        let Some(content) = self.wanted(path) else { return Ok(true) };
        match self.stands(path) {
            Stands::New => return Ok(true),
            Stands::Old => {}
            Stands::Other => return Ok(false),
        }
        let bytes = self.target.read(content).map_err(io::Error::other)?;
        let what = match content {
            Content::File { mode, .. } => Put::File { bytes: &bytes, mode: *mode },
            Content::Link { .. } => Put::Link(&bytes),
        };
        let folder = self.root.make_folder_of(path)?;
        let temporary = self.plan.temporary(position);
        let steps = self.snapshots.steps;
        unflushed.add(prepare(
            folder.as_fd(),
            OsStr::new(&temporary),
            path.name(),
            what,
            steps,
        )?)?;
        Ok(true)
    }

    /// Puts what was made in its place.
    fn replace(&self, position: usize) -> io::Result<bool> {
        let path = &self.plan.paths[position];
        match self.stands(path) {
            Stands::New => return Ok(true),
            Stands::Old => {}
            Stands::Other => return Ok(false),
        }
        let Some(folder) = self.root.folder_of(path)? else { return Ok(false) };
        let temporary = self.plan.temporary(position);
        rename_over(folder.as_fd(), OsStr::new(&temporary), path.name(), self.snapshots.steps)?;
        Ok(true)
    }

    /// Removes a file that was not there; `false` if it is another one than was kept.
    fn remove(&self, position: usize) -> io::Result<bool> {
        let path = &self.plan.paths[position];
        match self.stands(path) {
            Stands::New => return Ok(true),
            Stands::Old if self.is_written_under_another_name(path) => return Ok(true),
            Stands::Old => {}
            Stands::Other => return Ok(false),
        }
        let Some(folder) = self.root.folder_of(path)? else { return Ok(true) };
        self.snapshots.steps.step("remove a file");
        clear(folder.as_fd(), path.name())?;
        self.snapshots.steps.step("removed");
        // Folders that came with it go with it, if nothing else is in them.
        let covers = &self.target.manifest().covers;
        let listed = |folder: &RelativePath| {
            covers.iter().any(|cover| cover == folder || cover.is_below(folder))
        };
        for inner in parents(path).take_while(|inner| !listed(inner)) {
            let Some(outer) = self.root.folder_of(&inner)? else { break };
            if unlinkat(&outer, inner.name(), AtFlags::REMOVEDIR).is_err() {
                break;
            }
        }
        Ok(true)
    }

    /// What stands at a path: what is wanted, what was kept of it, or neither. Of a pipe or a device
    /// nothing is kept.
    fn stands(&self, path: &RelativePath) -> Stands {
        let wanted = self.wanted(path);
        let was = self.kept.file(path).map(|entry| &entry.content);
        let seen = self.root.look(path, size_of(wanted).max(size_of(was)));
        if holds(&seen, wanted) {
            Stands::New
        } else if holds(&seen, was) || (was.is_none() && matches!(seen, Seen::Special)) {
            Stands::Old
        } else {
            Stands::Other
        }
    }

    /// Where the system does not tell cases apart, an added name may be that of a restored file.
    fn is_written_under_another_name(&self, path: &RelativePath) -> bool {
        let others = self.forms.get(&folded(path)).into_iter().flatten();
        let mut others = others.filter(|other| **other != path).peekable();
        if others.peek().is_none() {
            return false;
        }
        let here = self.root.identity(path);
        here.is_some()
            && others
                .any(|other| self.root.identity(other) == here && !self.is_hard_link(path, other))
    }

    /// Two names of one file that the folder lists both.
    fn is_hard_link(&self, one: &RelativePath, other: &RelativePath) -> bool {
        let listed = |path: &RelativePath| {
            let folder = self.root.folder_of(path).ok().flatten();
            let names = folder.and_then(|folder| {
                crate::snapshot::names_in(folder.as_fd(), self.snapshots.limits.names).ok()
            });
            names.is_some_and(|(names, _)| names.iter().any(|name| name == path.name()))
        };
        listed(one) && listed(other)
    }

    /// What an ended process left.
    fn clear_temporaries(&self) {
        for (position, path) in self.plan.paths.iter().enumerate() {
            if let Ok(Some(folder)) = self.root.folder_of(path) {
                let _ = clear(folder.as_fd(), OsStr::new(&self.plan.temporary(position)));
            }
        }
    }

    /// Makes the names durable; a folder that is gone has none.
    fn flush(&self) {
        self.snapshots.steps.step("flush the folders");
        let mut flushed = BTreeSet::new();
        for path in &self.plan.paths {
            if flushed.insert(path.parent())
                && let Ok(Some(folder)) = self.root.folder_of(path)
            {
                let _ = fsync(&folder);
            }
        }
    }
}

/// What a path holds in the middle of a rollback.
enum Stands {
    New,
    Old,
    Other,
}

fn size_of(content: Option<&Content>) -> u64 {
    match content {
        Some(Content::File { size, .. }) => *size,
        _ => 0,
    }
}

/// Whether this is there; a folder or nothing count as nothing.
fn holds(seen: &Seen, content: Option<&Content>) -> bool {
    match (seen, content) {
        (Seen::Missing | Seen::Folder, None) => true,
        (Seen::File { bytes, mode }, Some(Content::File { hash, mode: wanted, .. })) => {
            mode == wanted && BlobHash(sha256(bytes)) == *hash
        }
        (Seen::Link(leads), Some(Content::Link { target })) => leads == target,
        _ => false,
    }
}

/// The folders that a path lies in, the deepest first.
fn parents(path: &RelativePath) -> impl Iterator<Item = RelativePath> {
    std::iter::successors(path.parent(), RelativePath::parent)
}
