//! The files of a plan, one by one. Every step can be taken again.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd as _;

use rustix::fs::{AtFlags, fsync, unlinkat};
use wardkeep_evidence::hash::{BlobHash, sha256};
use wardkeep_policy::protect::fold_name;

use super::plan::Plan;
use super::{Left, LeftWhy};
use crate::snapshot::{
    Content, Manifest, Opened, Put, RelativePath, Result, Root, Seen, Snapshots, clear, place,
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
    let work = Work { snapshots, root, plan, target, kept };
    let mut done = Done::default();
    work.clear_temporaries();
    for position in work.order() {
        let path = &plan.paths[position];
        let mut leave = |why| done.left.push(Left { path: path.clone(), why });
        match work.one(position) {
            Ok(true) => {}
            Ok(false) => leave(LeftWhy::Changed),
            Err(error) => leave(LeftWhy::Failed(error.to_string())),
        }
    }
    work.flush();
    let failed: HashSet<RelativePath> = done.left.iter().map(|left| left.path.clone()).collect();
    for path in plan.paths.iter().filter(|path| !failed.contains(path)) {
        match (work.is(path, work.wanted(path)), work.wanted(path)) {
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
}

impl Work<'_> {
    fn wanted(&self, path: &RelativePath) -> Option<&Content> {
        self.target.manifest().file(path).map(|entry| &entry.content)
    }

    /// Positions in the plan: first what stands in the way of another file, then what is written,
    /// then what is removed.
    fn order(&self) -> Vec<usize> {
        let paths = &self.plan.paths;
        let written: HashSet<&RelativePath> =
            paths.iter().filter(|path| self.wanted(path).is_some()).collect();
        let above: HashSet<RelativePath> = written.iter().flat_map(|path| parents(path)).collect();
        let rank = |path: &RelativePath| match self.wanted(path) {
            Some(_) => 1,
            None if above.contains(path) => 0,
            None if parents(path).any(|folder| written.contains(&folder)) => 0,
            None => 2,
        };
        let mut order: Vec<usize> = (0..paths.len()).collect();
        order.sort_by_key(|position| rank(&paths[*position]));
        order
    }

    /// Puts one file back or removes it; `false` if it is neither old nor new.
    fn one(&self, position: usize) -> io::Result<bool> {
        let path = &self.plan.paths[position];
        let wanted = self.wanted(path);
        if self.is(path, wanted) {
            return Ok(true);
        }
        let was = self.kept.file(path).map(|entry| &entry.content);
        if !self.is(path, was) && !self.is_special(path) {
            return Ok(false);
        }
        match wanted {
            Some(content) => self.write(position, path, content)?,
            None if self.is_written_under_another_name(path) => {}
            None => self.remove(path)?,
        }
        Ok(true)
    }

    fn write(&self, position: usize, path: &RelativePath, content: &Content) -> io::Result<()> {
        let bytes = self.target.read(content).map_err(io::Error::other)?;
        let what = match content {
            Content::File { mode, .. } => Put::File { bytes: &bytes, mode: *mode },
            Content::Link { .. } => Put::Link(&bytes),
        };
        let folder = self.root.make_folder_of(path)?;
        let temporary = self.plan.temporary(position);
        let placed =
            place(folder.as_fd(), OsStr::new(&temporary), path.name(), what, self.snapshots.steps);
        if placed.is_err() {
            let _ = clear(folder.as_fd(), OsStr::new(&temporary));
        }
        placed
    }

    fn remove(&self, path: &RelativePath) -> io::Result<()> {
        let Some(folder) = self.root.folder_of(path)? else { return Ok(()) };
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
        Ok(())
    }

    /// Whether a path holds this; a folder or nothing count as nothing.
    fn is(&self, path: &RelativePath, content: Option<&Content>) -> bool {
        let limit = match content {
            Some(Content::File { size, .. }) => *size,
            _ => 0,
        };
        match (self.root.look(path, limit), content) {
            (Seen::Missing | Seen::Folder, None) => true,
            (Seen::File { bytes, mode }, Some(Content::File { hash, mode: wanted, .. })) => {
                mode == *wanted && BlobHash(sha256(&bytes)) == *hash
            }
            (Seen::Link(leads), Some(Content::Link { target })) => leads == *target,
            _ => false,
        }
    }

    fn is_special(&self, path: &RelativePath) -> bool {
        matches!(self.root.look(path, 0), Seen::Special)
    }

    /// Where the system does not tell cases apart, an added name may be that of a restored file.
    fn is_written_under_another_name(&self, path: &RelativePath) -> bool {
        let form = |path: &RelativePath| {
            path.names().map(|name| fold_name(&name.to_string_lossy())).collect::<Vec<_>>()
        };
        let (mine, here) = (form(path), self.root.identity(path));
        here.is_some()
            && self.target.manifest().files.iter().any(|entry| {
                entry.path != *path
                    && form(&entry.path) == mine
                    && self.root.identity(&entry.path) == here
                    && !self.is_hard_link(path, &entry.path)
            })
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

/// The folders that a path lies in, the deepest first.
fn parents(path: &RelativePath) -> impl Iterator<Item = RelativePath> {
    std::iter::successors(path.parent(), RelativePath::parent)
}
