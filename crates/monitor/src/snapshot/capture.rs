//! The files that a snapshot covers, as they are now.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::Instant;

use rustix::fs::{AtFlags, fstat, statat};
use wardkeep_evidence::hash::{BlobHash, sha256};
use wardkeep_policy::protect::fold_name;

use super::manifest::{Content, Entry, LeftOut, MAX_LEFT_OUT, Why};
use super::path::RelativePath;
use super::root::{Root, Seen, look, names_in, step_into};
use super::scope::{Scope, folded};
use super::{Limits, Result};

/// What is there now.
#[derive(Debug, Default)]
pub(crate) struct Capture {
    pub(crate) files: BTreeMap<RelativePath, Content>,
    pub(crate) left_out: BTreeMap<RelativePath, Why>,
    pub(crate) more_left_out: u64,
    pub(crate) bytes: u64,
}

impl Capture {
    pub(crate) fn entries(&self) -> Vec<Entry> {
        let entry = |(path, content): (&RelativePath, &Content)| Entry {
            path: path.clone(),
            content: content.clone(),
        };
        self.files.iter().map(entry).collect()
    }

    pub(crate) fn left_out(&self) -> Vec<LeftOut> {
        self.left_out.iter().map(|(path, why)| LeftOut { path: path.clone(), why: *why }).collect()
    }
}

/// What is done with the bytes of each file.
pub(crate) type Keep<'a> = &'a mut dyn FnMut(&[u8]) -> Result<()>;

/// How a look is taken that somebody waits for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hurry {
    /// When it must be over; what was not looked at by then is left out.
    pub(crate) until: Instant,
}

/// Looks at everything that is covered below a root. `state` is the identity of the state
/// directory, which is never part of it. In a `hurry`, what programs make again is left out.
pub(crate) fn capture(
    root: &Root,
    scope: Scope,
    covers: &[RelativePath],
    limits: &Limits,
    state: Option<(u64, u64)>,
    hurry: Option<Hurry>,
    keep: Keep<'_>,
) -> Result<Capture> {
    let mut walk =
        Walk { limits, state, hurry, keep, names: limits.names, found: Capture::default() };
    if scope.folds() {
        let wanted: Vec<Vec<String>> = covers.iter().map(folded).collect();
        let wanted: Vec<&[String]> = wanted.iter().map(Vec::as_slice).collect();
        walk.named(root.handle(), None, &wanted)?;
    } else {
        for path in covers {
            match root.folder_of(path) {
                Ok(Some(folder)) => walk.whole(folder.as_fd(), path.name(), path, 0)?,
                Ok(None) => {}
                Err(_) => walk.leave(path, Why::Unreadable),
            }
        }
    }
    Ok(walk.found)
}

struct Walk<'a> {
    limits: &'a Limits,
    state: Option<(u64, u64)>,
    hurry: Option<Hurry>,
    keep: Keep<'a>,
    /// How many names may still be listed.
    names: usize,
    found: Capture,
}

impl Walk<'_> {
    /// Takes what is wanted in a folder; `wanted` holds what is left of the names.
    fn named(
        &mut self,
        folder: BorrowedFd<'_>,
        at: Option<&RelativePath>,
        wanted: &[&[String]],
    ) -> Result<()> {
        let mut folders = Vec::new();
        for name in self.list(folder, at) {
            let form = fold_name(&name.to_string_lossy());
            let tails: Vec<&[String]> = wanted
                .iter()
                .filter_map(|names| names.split_first())
                .filter(|(first, _)| **first == form)
                .map(|(_, rest)| rest)
                .collect();
            let Some(path) = RelativePath::child(at, &name).filter(|_| !tails.is_empty()) else {
                continue;
            };
            let is_folder = matches!(look(folder, &name, 0), Seen::Folder);
            match (tails.iter().any(|rest| rest.is_empty()), is_folder) {
                // Single files first: what fills a folder cannot push them out.
                (true, false) => self.whole(folder, &name, &path, 0)?,
                (whole, true) => folders.push((name, path, tails, whole)),
                // A link or a file in the place of a folder: it is what is there.
                (false, false) => self.whole(folder, &name, &path, 0)?,
            }
        }
        for (name, path, tails, whole) in folders {
            if whole {
                self.whole(folder, &name, &path, 0)?;
            } else if let Ok(inner) = step_into(folder, &name) {
                self.named(inner.as_fd(), Some(&path), &tails)?;
            } else {
                self.leave(&path, Why::Unreadable);
            }
        }
        Ok(())
    }

    /// Takes a file, or a folder with all below it.
    fn whole(
        &mut self,
        folder: BorrowedFd<'_>,
        name: &OsStr,
        path: &RelativePath,
        depth: usize,
    ) -> Result<()> {
        if self.hurry.is_some_and(|hurry| Instant::now() >= hurry.until) {
            self.leave(path, Why::Limit);
            return Ok(());
        }
        let left = self.limits.total_bytes.saturating_sub(self.found.bytes);
        match look(folder, name, self.limits.file_bytes) {
            Seen::Missing => {}
            Seen::Folder if depth >= self.limits.depth => self.leave(path, Why::Limit),
            Seen::Folder => {
                let Ok(inner) = step_into(folder, name) else {
                    self.leave(path, Why::Unreadable);
                    return Ok(());
                };
                let identity = fstat(&inner).ok().map(|stat| (stat.st_dev, stat.st_ino));
                if identity.is_some() && identity == self.state {
                    self.leave(path, Why::State);
                    return Ok(());
                }
                if self.hurry.is_some() && is_remade(name, inner.as_fd(), depth) {
                    self.leave(path, Why::Remade);
                    return Ok(());
                }
                for name in self.list(inner.as_fd(), Some(path)) {
                    match RelativePath::child(Some(path), &name) {
                        Some(path) => self.whole(inner.as_fd(), &name, &path, depth + 1)?,
                        None => self.leave(path, Why::Limit),
                    }
                }
            }
            Seen::File { .. } | Seen::Link(_) if self.found.files.len() >= self.limits.files => {
                self.leave(path, Why::Limit);
            }
            Seen::File { bytes, .. } if bytes.len() as u64 > left => self.leave(path, Why::Limit),
            Seen::File { bytes, mode } => {
                (self.keep)(&bytes)?;
                let size = bytes.len() as u64;
                self.found.bytes += size;
                let content = Content::File { hash: BlobHash(sha256(&bytes)), size, mode };
                self.found.files.insert(path.clone(), content);
            }
            Seen::Link(target) => {
                self.found.files.insert(path.clone(), Content::Link { target });
            }
            Seen::Special => self.leave(path, Why::NotRegular),
            Seen::TooLarge => self.leave(path, Why::TooLarge),
            Seen::Unreadable => self.leave(path, Why::Unreadable),
        }
        Ok(())
    }

    fn list(
        &mut self,
        folder: BorrowedFd<'_>,
        at: Option<&RelativePath>,
    ) -> Vec<std::ffi::OsString> {
        match names_in(folder, self.names) {
            Ok((names, more)) => {
                self.names -= names.len();
                self.found.more_left_out += u64::from(more);
                names
            }
            Err(_) => {
                match at {
                    Some(path) => self.leave(path, Why::Unreadable),
                    None => self.found.more_left_out += 1,
                }
                Vec::new()
            }
        }
    }

    fn leave(&mut self, path: &RelativePath, why: Why) {
        if self.found.left_out.len() < MAX_LEFT_OUT {
            self.found.left_out.insert(path.clone(), why);
        } else if !self.found.left_out.contains_key(path) {
            self.found.more_left_out += 1;
        }
    }
}

/// Whether a folder holds what programs make again: packages, caches, build output. A repository's
/// own folder is such only inside of what is looked at, where nothing but git writes.
fn is_remade(name: &OsStr, folder: BorrowedFd<'_>, depth: usize) -> bool {
    let has = |file: &str| statat(folder, file, AtFlags::SYMLINK_NOFOLLOW).is_ok();
    match name.to_str() {
        Some("node_modules" | "__pycache__") => true,
        Some(".git") => depth > 0,
        _ => has("CACHEDIR.TAG") || has("pyvenv.cfg"),
    }
}
