//! What may be written is walked for guarded names, and their links are followed to what they lead to.

use std::ffi::OsStr;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::paths::parts;
use super::{Shown, View, gits, home};
use crate::error::SandboxError;
use crate::names::{Guard, Names};
use crate::spec::Spec;
use crate::walk::{MAX_FOUND, Walked, walk_again};

/// Most links on the way to a path.
const MOST_LINKS: usize = 40;

impl View {
    /// Walks everything that may be written.
    pub(crate) fn find_guarded(&mut self, spec: &Spec) -> Result<(), SandboxError> {
        let written =
            self.entries.iter().filter(|(_, one)| one.shown == Shown::Write && one.folder);
        let written: Vec<PathBuf> = written.map(|(path, _)| path.clone()).collect();
        for path in written {
            let walked = self.walk(&path, None).map_err(|errno| SandboxError::Path {
                path: path.clone(),
                what: format!("cannot be read ({errno})"),
            })?;
            self.follow_links(&path, &walked, spec.home.as_deref())?;
            self.guarded.push((path, walked));
        }
        if let Some(home) = &spec.home {
            let links = self.links_of_home(home, &spec.names);
            self.hold(links)?;
        }
        // What was named may be a folder of programs that listen there.
        let named = spec.read.iter().chain(&spec.read_if_there);
        let named: Vec<PathBuf> = named.filter_map(|path| path.canonicalize().ok()).collect();
        for path in named.iter().filter(|path| path.is_dir()) {
            if let Ok(walked) = self.walk(path, Some(Guard::ReadOnly)) {
                self.sockets.extend(walked.sockets.iter().map(|one| joined(path, one.to_bytes())));
            }
        }
        Ok(())
    }

    fn walk(&mut self, path: &Path, whole: Option<Guard>) -> Result<Walked, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(path, flags, Mode::empty())?;
        let listings = self.listings.as_deref();
        let (walked, seen) = walk_again(root.as_fd(), path, &self.names, whole, listings)?;
        self.seen.join(seen);
        Ok(walked)
    }

    /// Holds what the links that were found lead to.
    fn follow_links(
        &mut self,
        root: &Path,
        walked: &Walked,
        home: Option<&Path>,
    ) -> Result<(), SandboxError> {
        self.sockets.extend(walked.sockets.iter().map(|one| joined(root, one.to_bytes())));
        let mut left: Vec<(PathBuf, Guard)> = Vec::new();
        for link in &walked.links {
            let path = joined(root, link.path.to_bytes());
            if link.inside.is_empty() {
                left.push((path, link.guard));
            } else {
                left.extend(link.inside.iter().map(|rest| (joined(&path, rest), link.guard)));
            }
        }
        let files = walked.found.iter().filter(|found| !found.folder).map(|found| &found.path);
        let files = files.chain(walked.links.iter().map(|link| &link.path));
        let led = gits::leads(root, files.map(|path| joined(root, path.to_bytes())), home)?;
        left.extend(led.into_iter().map(|path| (path, Guard::ReadOnly)));
        self.hold(left)
    }

    /// Start-up files and settings of the owner's that lie, by links, where the program may write.
    fn links_of_home(&self, home: &Path, names: &Names) -> Vec<(PathBuf, Guard)> {
        let mut held = Vec::new();
        for (path, guard) in home::links(home, names) {
            let Some((links, end)) = trace(&path) else { continue };
            if !self.is_written(&end) && !links.iter().any(|link| self.is_written(link)) {
                continue;
            }
            // Who works in all of it has been told to: what is known by its name there is held.
            match self.holds_written(&end) {
                true => {
                    let inside = home::within(home, &path, names).into_iter();
                    held.extend(inside.map(|path| (path, guard)));
                }
                false => held.push((path, guard)),
            }
        }
        held
    }

    /// Holds what paths lead to.
    fn hold(&mut self, mut left: Vec<(PathBuf, Guard)>) -> Result<(), SandboxError> {
        while let Some((path, guard)) = left.pop() {
            if self.led_to.len() + self.pinned.len() > MAX_FOUND {
                return Err(SandboxError::Path {
                    path,
                    what: "leads on to more than can be held: remove such links".to_owned(),
                });
            }
            let Some((links, end)) = trace(&path) else { continue };
            let links = links.into_iter().filter(|link| self.is_written(link));
            let links: Vec<_> = links.collect();
            self.pinned.extend(links);
            if self.holds_written(&end) {
                let what = format!(
                    "leads to `{}`, all of which would have to be guarded: remove the link",
                    end.display()
                );
                return Err(SandboxError::Path { path, what });
            }
            let seen = self.covering(&end).is_some_and(|(_, one)| one.shown == Shown::Read);
            let held = self.is_written(&end) || (seen && guard == Guard::Masked);
            if !held || self.led_to.contains_key(&end) {
                continue;
            }
            self.led_to.insert(end.clone(), guard);
            if guard == Guard::ReadOnly
                && let Ok(walked) = self.walk(&end, Some(guard))
            {
                left.extend(
                    walked.links.iter().map(|one| (joined(&end, one.path.to_bytes()), guard)),
                );
                self.sockets.extend(walked.sockets.iter().map(|one| joined(&end, one.to_bytes())));
            }
        }
        Ok(())
    }

    /// Whether all of a folder that may be written lies at a path.
    fn holds_written(&self, path: &Path) -> bool {
        let mut written =
            self.entries.iter().filter(|(_, one)| one.shown == Shown::Write && one.folder);
        written.any(|(root, _)| root.starts_with(path))
    }

    /// Whether a path lies in what may be written.
    fn is_written(&self, path: &Path) -> bool {
        self.covering(path).is_some_and(|(_, one)| one.shown == Shown::Write)
    }
}

pub(super) fn joined(root: &Path, name: &[u8]) -> PathBuf {
    root.join(Path::new(OsStr::from_bytes(name)))
}

/// The links on the way to a path, and the real path, of which the last parts may not be there. `None` where
/// the links never end.
pub(crate) fn trace(path: &Path) -> Option<(Vec<PathBuf>, PathBuf)> {
    let mut links = Vec::new();
    let mut real = PathBuf::from("/");
    let mut left: Vec<PathBuf> = parts(path).map(PathBuf::from).collect();
    left.reverse();
    while let Some(part) = left.pop() {
        if part.as_os_str() == ".." {
            real.pop();
            continue;
        }
        let next = real.join(&part);
        let Ok(target) = next.read_link() else {
            real = next;
            continue;
        };
        links.push(next);
        if links.len() > MOST_LINKS {
            return None;
        }
        if target.is_absolute() {
            real = PathBuf::from("/");
        }
        let mut more: Vec<PathBuf> = parts(&target).map(PathBuf::from).collect();
        more.reverse();
        left.extend(more);
    }
    Some((links, real))
}
