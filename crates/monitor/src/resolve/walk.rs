//! One walk from the root to a file.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat, statat};
use rustix::io::Errno;
use wardkeep_policy::protect::{FileKind, Identity, PathFacts, fold_name};

use super::special::{Process, Special};
use super::{MAX_COMPONENTS, MAX_LINKS, MAX_PATH, ResolveError};
use crate::daemon::Root;

/// Where the walk has come to.
pub(super) struct Walk {
    /// The path that relative ones start from, real.
    base: PathBuf,
    /// The directory that was reached.
    directory: OwnedFd,
    /// Its names from the root on.
    names: Vec<OsString>,
    /// The directories on the way, the root first, this one last.
    identities: Vec<Identity>,
    /// What is not a directory: a file, or names that do not exist.
    rest: Rest,
    /// Components that are still to be walked.
    pending: VecDeque<OsString>,
    links: usize,
    components: usize,
    through_link: bool,
    process: Process,
    /// The directories of these names as someone else sees them, the root first, this one last, and whether
    /// each is the same one; empty where that does not count.
    seen: Vec<(OwnedFd, bool)>,
}

/// What lies behind the directories.
enum Rest {
    /// Nothing: the path is the directory.
    None,
    /// A file.
    File(OsString, FileKind, Identity, u64),
    /// Names that do not exist.
    Missing(Vec<OsString>),
}

impl Walk {
    pub(super) fn new(base: &Path) -> Result<Self, ResolveError> {
        let (directory, identity) = root()?;
        Ok(Self {
            base: base.to_path_buf(),
            directory,
            names: Vec::new(),
            identities: vec![identity],
            rest: Rest::None,
            pending: VecDeque::new(),
            links: 0,
            components: 0,
            through_link: false,
            process: Process::default(),
            seen: Vec::new(),
        })
    }

    /// Only what someone else sees as well is walked into; the rest are names.
    pub(super) fn seen_by(mut self, view: Option<&Root>) -> Result<Self, ResolveError> {
        if let Some(view) = view {
            let folder = view
                .open(Path::new("/"), walking())
                .map_err(|error| self.failed(OsStr::new("/"), error))?;
            let same =
                fstat(&folder).is_ok_and(|stat| Some(&identity(&stat)) == self.identities.last());
            self.seen = vec![(folder, same)];
        }
        Ok(self)
    }

    /// Walks a path; a link at its end is followed or not.
    pub(super) fn run(mut self, path: &Path, follow: bool) -> Result<PathFacts, ResolveError> {
        if path.is_relative() {
            self.queue(&self.base.clone())?;
        }
        let mut own = VecDeque::new();
        components(path.as_os_str(), &mut own);
        // A slash at the end asks for the directory behind a link.
        let open_end = matches!(own.back().map(|name| name.as_bytes()), Some(b"" | b"." | b".."));
        let follow = follow || open_end;
        self.pending.extend(own);
        while let Some(name) = self.pending.pop_front() {
            self.components += 1;
            if self.components > MAX_COMPONENTS || self.names.len() > MAX_COMPONENTS {
                return Err(ResolveError::TooLong);
            }
            match name.as_bytes() {
                b"" | b"." => {}
                b".." => self.up()?,
                _ => {
                    let last =
                        self.pending.iter().all(|name| matches!(name.as_bytes(), b"" | b"."));
                    self.down(name, follow || !last)?;
                }
            }
        }
        Ok(self.facts())
    }

    /// Puts the components of a path in front of those that are left.
    fn queue(&mut self, path: &Path) -> Result<(), ResolveError> {
        let mut first = VecDeque::new();
        components(path.as_os_str(), &mut first);
        if first.len() + self.pending.len() > MAX_COMPONENTS {
            return Err(ResolveError::TooLong);
        }
        for name in first.into_iter().rev() {
            self.pending.push_front(name);
        }
        Ok(())
    }

    fn path_of(&self, name: &OsStr) -> PathBuf {
        let mut path = PathBuf::from("/");
        path.extend(&self.names);
        path.push(name);
        path
    }

    fn failed(&self, name: &OsStr, error: Errno) -> ResolveError {
        ResolveError::System { path: self.path_of(name), error: error.into() }
    }

    fn restart(&mut self) -> Result<(), ResolveError> {
        let (directory, identity) = root()?;
        self.directory = directory;
        self.names.clear();
        self.seen.truncate(1);
        self.identities = vec![identity];
        self.rest = Rest::None;
        self.process.leave();
        Ok(())
    }

    fn up(&mut self) -> Result<(), ResolveError> {
        match &mut self.rest {
            // The kernel would fail here; who cleans the text up would not.
            Rest::File(..) => {
                self.rest = Rest::None;
                return Ok(());
            }
            Rest::Missing(names) => {
                names.pop();
                if names.is_empty() {
                    self.rest = Rest::None;
                }
                return Ok(());
            }
            Rest::None => {}
        }
        let Some(name) = self.names.pop() else { return Ok(()) };
        let above = open_directory(&self.directory, OsStr::new(".."))
            .map_err(|error| self.failed(&name, error))?;
        let identity = identity(&above.1);
        self.identities.pop();
        // Moved elsewhere in the meantime: the names no longer say where this is.
        if self.identities.last() != Some(&identity) {
            return Err(ResolveError::Changed { path: self.path_of(&name) });
        }
        self.directory = above.0;
        self.seen.truncate(self.names.len() + 1);
        self.process.depth(self.names.len());
        Ok(())
    }

    fn down(&mut self, name: OsString, follow: bool) -> Result<(), ResolveError> {
        match &mut self.rest {
            Rest::Missing(names) => {
                names.push(name);
                return Ok(());
            }
            Rest::File(file, ..) => {
                // Nothing lies below a file; a program that tries fails.
                let names = vec![std::mem::take(file), name];
                self.rest = Rest::Missing(names);
                return Ok(());
            }
            Rest::None => {}
        }
        match self.process.special(&self.directory, &self.names, &name) {
            Some(Special::Root) => {
                self.count_link(&name)?;
                return self.restart();
            }
            Some(Special::Directory) => {
                self.count_link(&name)?;
                let base = self.base.clone();
                self.restart()?;
                return self.queue(&base);
            }
            Some(Special::Descriptor(number)) => {
                let nothing = Identity { device: 0, inode: 0 };
                self.rest = Rest::File(name, FileKind::Descriptor(number), nothing, 0);
                return Ok(());
            }
            Some(Special::Own) => {
                // `/proc/self` is the agent's: it is walked as a directory of that name.
                self.through_link = true;
                self.process.enter(self.names.len() + 1);
                let (directory, stat) = open_following(&self.directory, &name)
                    .map_err(|error| self.failed(&name, error))?;
                self.enter(name, directory, &stat);
                return Ok(());
            }
            Some(Special::Unknown) => {
                return Err(ResolveError::OwnProcess { path: self.path_of(&name) });
            }
            None => {}
        }
        let stat = match statat(&self.directory, &*name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT | Errno::NOTDIR) => {
                self.rest = Rest::Missing(vec![name]);
                return Ok(());
            }
            // Why not is nothing for someone who does not see it either.
            Err(_) if !self.sees(&name, None) => {
                self.rest = Rest::Missing(vec![name]);
                return Ok(());
            }
            Err(error) => return Err(self.failed(&name, error)),
        };
        if !self.sees(&name, Some(&stat)) {
            self.rest = Rest::Missing(vec![name]);
            return Ok(());
        }
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink if follow => self.follow(name),
            FileType::Directory => {
                let (directory, opened) = open_directory(&self.directory, &name)
                    .map_err(|error| self.failed(&name, error))?;
                if identity(&opened) != identity(&stat) {
                    return Err(ResolveError::Changed { path: self.path_of(&name) });
                }
                self.follow_there(&name, &opened)?;
                self.enter(name, directory, &opened);
                Ok(())
            }
            kind => {
                let kind = match kind {
                    FileType::RegularFile => FileKind::File,
                    FileType::Symlink => FileKind::Link,
                    _ => FileKind::Other,
                };
                self.rest = Rest::File(name, kind, identity(&stat), wide(stat.st_nlink));
                Ok(())
            }
        }
    }

    /// Whether someone else sees at a name what is here, where that counts: the same file, or a directory
    /// as well, in which there may be the same files, or a link that says the same.
    fn sees(&self, name: &OsStr, here: Option<&Stat>) -> bool {
        if self.is_kernels(name) {
            return true;
        }
        let Some((folder, _)) = self.seen.get(self.names.len()) else { return false };
        let Ok(there) = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) else { return false };
        let Some(here) = here else { return true };
        let kind = FileType::from_raw_mode(here.st_mode);
        if identity(&there) == identity(here) {
            return true;
        }
        let says = |at: &OwnedFd| readlinkat(at, name, Vec::new()).ok();
        kind == FileType::from_raw_mode(there.st_mode)
            && match kind {
                FileType::Directory => true,
                FileType::Symlink => says(folder) == says(&self.directory),
                _ => false,
            }
    }

    /// What the kernel makes for each process is read as the agent's already.
    fn is_kernels(&self, name: &OsStr) -> bool {
        let first = self.names.first().map_or(name, |first| first);
        self.seen.is_empty() || first == "proc" || first == "dev"
    }

    /// Goes into a directory there, too.
    fn follow_there(&mut self, name: &OsStr, stat: &Stat) -> Result<(), ResolveError> {
        if self.is_kernels(name) {
            return Ok(());
        }
        let opened = match self.seen.get(self.names.len()) {
            Some((folder, _)) => open_directory(folder, name),
            None => Err(Errno::NOENT),
        };
        let (folder, there) = opened.map_err(|error| self.failed(name, error))?;
        self.seen.push((folder, identity(&there) == identity(stat)));
        Ok(())
    }

    fn enter(&mut self, name: OsString, directory: OwnedFd, stat: &Stat) {
        self.directory = directory;
        self.names.push(name);
        self.identities.push(identity(stat));
    }

    fn count_link(&mut self, name: &OsStr) -> Result<(), ResolveError> {
        self.links += 1;
        self.through_link = true;
        if self.links > MAX_LINKS {
            return Err(ResolveError::Loop { path: self.path_of(name) });
        }
        Ok(())
    }

    fn follow(&mut self, name: OsString) -> Result<(), ResolveError> {
        self.count_link(&name)?;
        let text = readlinkat(&self.directory, &*name, Vec::new())
            .map_err(|error| self.failed(&name, error))?
            .into_bytes();
        if text.len() > MAX_PATH {
            return Err(ResolveError::TooLong);
        }
        let text = PathBuf::from(OsString::from_vec(text));
        if self.process.is_magic(&self.directory, &self.names, &name) {
            return self.follow_magic(name, &text);
        }
        if text.is_absolute() {
            self.restart()?;
        }
        if text.as_os_str().is_empty() {
            self.rest = Rest::Missing(vec![name]);
            return Ok(());
        }
        self.queue(&text)
    }

    /// A link that the kernel makes to an open file: its text is only what the file was called.
    fn follow_magic(&mut self, name: OsString, text: &Path) -> Result<(), ResolveError> {
        let there = statat(&self.directory, &*name, AtFlags::empty())
            .map_err(|error| self.failed(&name, error))?;
        if !text.is_absolute() {
            // A pipe or a socket: it has no name.
            let (kind, links) = (FileKind::Other, wide(there.st_nlink));
            self.rest = Rest::File(name, kind, identity(&there), links);
            return Ok(());
        }
        let named = statat(CWD, text, AtFlags::empty());
        if named.is_ok_and(|named| identity(&named) == identity(&there)) {
            self.restart()?;
            return self.queue(text);
        }
        Err(ResolveError::OwnProcess { path: self.path_of(&name) })
    }

    fn facts(self) -> PathFacts {
        let mut path = PathBuf::from("/");
        path.extend(&self.names);
        let mut ancestors = self.identities;
        let (kind, identity, links, missing) = match self.rest {
            // Another directory of this name: what is in this one is nobody's business there.
            Rest::None if self.seen.get(self.names.len()).is_some_and(|(_, same)| !same) => {
                ancestors.pop();
                (FileKind::Missing, None, 0, 1)
            }
            Rest::None => (FileKind::Directory, ancestors.pop(), 1, 0),
            Rest::File(name, kind, identity, links) => {
                path.push(name);
                let known = !matches!(kind, FileKind::Descriptor(_));
                (kind, known.then_some(identity), links, 0)
            }
            Rest::Missing(names) => {
                path.extend(&names);
                (FileKind::Missing, None, 0, names.len())
            }
        };
        let name = path.file_name().map(OsStr::to_string_lossy).unwrap_or_default();
        let folded_name = fold_name(&name);
        let through_link = self.through_link;
        PathFacts { path, kind, identity, links, ancestors, missing, through_link, folded_name }
    }
}

/// The components of a path; empty ones, for slashes, at its end only.
fn components(path: &OsStr, out: &mut VecDeque<OsString>) {
    let bytes = path.as_bytes();
    for part in bytes.split(|byte| *byte == b'/') {
        if !part.is_empty() {
            out.push_back(OsStr::from_bytes(part).to_owned());
        }
    }
    if bytes.ends_with(b"/") {
        out.push_back(OsString::new());
    }
}

fn root() -> Result<(OwnedFd, Identity), ResolveError> {
    let failed =
        |error: Errno| ResolveError::System { path: PathBuf::from("/"), error: error.into() };
    let (directory, stat) = open_directory(CWD, OsStr::new("/")).map_err(failed)?;
    let identity = identity(&stat);
    Ok((directory, identity))
}

/// A descriptor that only serves to walk on: nothing is read through it.
fn walking() -> OFlags {
    #[cfg(target_os = "linux")]
    let flags = OFlags::PATH;
    #[cfg(not(target_os = "linux"))]
    let flags = OFlags::RDONLY;
    flags | OFlags::DIRECTORY | OFlags::CLOEXEC
}

fn open_directory(at: impl std::os::fd::AsFd, name: &OsStr) -> rustix::io::Result<(OwnedFd, Stat)> {
    let directory = openat(at, name, walking() | OFlags::NOFOLLOW, Mode::empty())?;
    let stat = fstat(&directory)?;
    Ok((directory, stat))
}

fn open_following(at: impl std::os::fd::AsFd, name: &OsStr) -> rustix::io::Result<(OwnedFd, Stat)> {
    let directory = openat(at, name, walking(), Mode::empty())?;
    let stat = fstat(&directory)?;
    Ok((directory, stat))
}

/// A plain file right inside of a folder that was walked to, from what the system says of it.
pub(super) fn file_in(folder: &PathFacts, path: &Path, data: &Metadata) -> Option<PathFacts> {
    if !data.is_file() {
        return None;
    }
    let mut ancestors = folder.ancestors.clone();
    ancestors.push(folder.identity?);
    Some(PathFacts {
        path: path.to_path_buf(),
        kind: FileKind::File,
        identity: Some(Identity { device: data.dev(), inode: data.ino() }),
        links: data.nlink(),
        ancestors,
        missing: 0,
        through_link: folder.through_link,
        folded_name: fold_name(&path.file_name()?.to_string_lossy()),
    })
}

pub(super) fn identity(stat: &Stat) -> Identity {
    Identity { device: wide(stat.st_dev), inode: wide(stat.st_ino) }
}

/// These numbers have different types on different systems.
fn wide(number: impl TryInto<u64>) -> u64 {
    number.try_into().unwrap_or(u64::MAX)
}
