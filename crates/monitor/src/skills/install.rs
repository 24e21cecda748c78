//! Putting a skill into its place: all of it or nothing, from memory, and never through a link.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, FlockOperation, Mode, OFlags, RenameFlags, flock, fsync, mkdirat,
    openat, renameat_with, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;
use wardkeep_guard::skill::tree::leads_out;
use wardkeep_guard::skill::{Content, Entry, Tree};

const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// What the names of unfinished installations begin with; twelve random letters follow.
const STAGE: &str = ".wardkeep-skill-";
/// How deep folders are removed.
const DEPTH: usize = 64;

/// Why a skill was not installed. Where it was to go is as it was before.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InstallError {
    /// The place cannot be one.
    #[error("`{}` is no place for a skill: name a folder to be made, below one that is there", .0.display())]
    Place(PathBuf),
    /// A folder on the way is a link.
    #[error("`{}` is a link, and nothing is installed through one: name the folder that it leads to", .0.display())]
    Link(PathBuf),
    /// Something else stands there.
    #[error("`{}` exists already and is not the pinned skill: move it away, or choose another place", .0.display())]
    Exists(PathBuf),
    /// A name or link leads out of the skill.
    #[error("`{0}` leads out of the skill's folder: it is not installed")]
    LeadsOut(String),
    /// The system refused.
    #[error("cannot {action} `{}` ({error}): fix its owner or mode, or make room", .path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

type Result<T> = std::result::Result<T, InstallError>;

/// A place for a skill: the folder that it will lie in, held open, and its name there.
#[derive(Debug)]
pub struct Place {
    parent: OwnedFd,
    name: OsString,
    path: PathBuf,
}

impl Place {
    /// Opens, and makes where they are missing, the folders above `path`, none of which may be a link.
    ///
    /// # Errors
    /// When one is, or cannot be opened.
    pub fn open(path: &Path) -> Result<Self> {
        let absolute = std::path::absolute(path).map_err(|error| InstallError::Io {
            action: "find",
            path: path.to_owned(),
            error,
        })?;
        let none = || InstallError::Place(path.to_owned());
        let name = match absolute.components().next_back() {
            Some(Component::Normal(name)) => name.to_owned(),
            _ => return Err(none()),
        };
        let above = absolute.parent().ok_or_else(none)?;
        let mut at = openat(CWD, "/", FOLDER, Mode::empty())
            .map_err(|errno| failed("open", Path::new("/"), errno))?;
        let mut walked = PathBuf::from("/");
        for part in above.components() {
            let step: &OsStr = match part {
                Component::Normal(step) => step,
                Component::ParentDir => OsStr::new(".."),
                _ => continue,
            };
            walked.push(step);
            let opened = match openat(&at, step, FOLDER, Mode::empty()) {
                Err(Errno::NOENT) => mkdirat(&at, step, Mode::from_raw_mode(0o755))
                    .and_then(|()| openat(&at, step, FOLDER, Mode::empty())),
                opened => opened,
            };
            at = opened.map_err(|errno| match errno {
                Errno::LOOP | Errno::NOTDIR if is_link(&at, step) => {
                    InstallError::Link(walked.clone())
                }
                errno => failed("open", &walked, errno),
            })?;
        }
        Ok(Self { parent: at, name, path: absolute })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a skill may be put here: what stands here is replaced only where `replaces` says so.
    ///
    /// # Errors
    /// When something else stands here.
    pub fn check(&self, replaces: bool) -> Result<()> {
        self.there(replaces).map(drop)
    }

    /// Whether there is a folder that is to be replaced.
    fn there(&self, replaces: bool) -> Result<bool> {
        match statat(&self.parent, &*self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => match FileType::from_raw_mode(stat.st_mode) {
                FileType::Symlink => Err(InstallError::Link(self.path.clone())),
                FileType::Directory if replaces => Ok(true),
                _ => Err(InstallError::Exists(self.path.clone())),
            },
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(failed("look at", &self.path, errno)),
        }
    }

    /// Installs a skill. What stands in its place is replaced only where `replaces` says that it may be.
    ///
    /// # Errors
    /// When something stands there, or it cannot be written; nothing is left of it then.
    pub fn install(&self, tree: &Tree, random: [u8; 6], replaces: bool) -> Result<()> {
        for entry in &tree.entries {
            check(entry)?;
        }
        self.clear();
        let there = self.there(replaces)?;
        let random: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let stage = OsString::from(format!("{STAGE}{random}"));
        mkdirat(&self.parent, &*stage, Mode::RWXU)
            .map_err(|errno| failed("make a folder beside", &self.path, errno))?;
        let done = self.fill(&stage, tree).and_then(|_held| {
            // Another may have come first: what was looked at above is looked at again by the system.
            let flags = if there { RenameFlags::EXCHANGE } else { RenameFlags::NOREPLACE };
            renameat_with(&self.parent, &*stage, &self.parent, &*self.name, flags).map_err(
                |errno| match errno {
                    Errno::EXIST => InstallError::Exists(self.path.clone()),
                    errno => failed("put into place", &self.path, errno),
                },
            )
        });
        // What is there now is what it replaced, or what could not be finished.
        if done.is_err() || there {
            remove(self.parent.as_fd(), &stage, 0);
        }
        done?;
        fsync(&self.parent).map_err(|errno| failed("write", &self.path, errno))
    }

    /// Writes all files below the stage, those that make it a skill last; the lock on it is held
    /// until it has its name.
    fn fill(&self, stage: &OsStr, tree: &Tree) -> Result<OwnedFd> {
        let to = |errno| failed("write", &self.path, errno);
        let root = openat(&self.parent, stage, FOLDER, Mode::empty()).map_err(to)?;
        flock(&root, FlockOperation::NonBlockingLockExclusive).map_err(to)?;
        let (last, first): (Vec<&Entry>, Vec<&Entry>) =
            tree.entries.iter().partition(|entry| !entry.path.contains('/'));
        for entry in first.into_iter().chain(last) {
            write(&root, entry).map_err(|error| InstallError::Io {
                action: "write",
                path: self.path.join(&entry.path),
                error,
            })?;
        }
        rustix::fs::fchmod(&root, Mode::from_raw_mode(0o755)).map_err(to)?;
        fsync(&root).map_err(to)?;
        Ok(root)
    }

    /// Removes what an installation left here that did not come to its end.
    fn clear(&self) {
        let Ok(entries) = Dir::read_from(&self.parent) else { return };
        for entry in entries.flatten() {
            let name = OsString::from_vec(entry.file_name().to_bytes().to_vec());
            let ours =
                name.to_str().and_then(|name| name.strip_prefix(STAGE)).is_some_and(|rest| {
                    rest.len() == 12 && rest.bytes().all(|byte| byte.is_ascii_hexdigit())
                });
            let Some(folder) =
                ours.then(|| openat(&self.parent, &*name, FOLDER, Mode::empty()).ok()).flatten()
            else {
                continue;
            };
            // One that still runs holds the lock.
            if flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok() {
                remove(self.parent.as_fd(), &name, 0);
            }
        }
    }
}

fn failed(action: &'static str, path: &Path, errno: Errno) -> InstallError {
    InstallError::Io { action, path: path.to_owned(), error: errno.into() }
}

fn is_link(folder: &OwnedFd, name: &OsStr) -> bool {
    statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
}

/// Only names that stay below the folder, and no link that leaves it.
fn check(entry: &Entry) -> Result<()> {
    let plain = |part: &str| !matches!(part, "" | "." | "..") && !part.contains('\0');
    let out = match &entry.content {
        Content::Link(target) => leads_out(&entry.path, target),
        Content::File(_) => false,
        Content::Special => true,
    };
    if out || !entry.path.split('/').all(plain) {
        return Err(InstallError::LeadsOut(entry.path.clone()));
    }
    Ok(())
}

fn write(root: &OwnedFd, entry: &Entry) -> io::Result<()> {
    let mut folder = root.try_clone()?;
    let mut parts = entry.path.split('/');
    let name = parts.next_back().unwrap_or_default();
    for part in parts {
        match mkdirat(&folder, part, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
        folder = openat(&folder, part, FOLDER, Mode::empty())?;
    }
    match &entry.content {
        Content::File(bytes) => {
            let mode = if entry.executable { 0o755 } else { 0o644 };
            let flags =
                OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mut file = File::from(openat(&folder, name, flags, Mode::from_raw_mode(mode))?);
            file.write_all(bytes)?;
            file.sync_all()
        }
        Content::Link(target) => Ok(symlinkat(target.as_str(), &folder, name)?),
        Content::Special => Ok(()),
    }
}

/// Removes a folder of ours and all in it, following nothing; what cannot be removed stays.
fn remove(parent: BorrowedFd<'_>, name: &OsStr, depth: usize) {
    if unlinkat(parent, name, AtFlags::empty()).is_ok() || depth > DEPTH {
        return;
    }
    if let Ok(folder) = openat(parent, name, FOLDER, Mode::empty()) {
        let names: Vec<OsString> = Dir::read_from(&folder)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| OsString::from_vec(entry.file_name().to_bytes().to_vec()))
            .filter(|name| !matches!(name.as_bytes(), b"." | b".."))
            .collect();
        for inner in names {
            remove(folder.as_fd(), &inner, depth + 1);
        }
    }
    let _ = unlinkat(parent, name, AtFlags::REMOVEDIR);
}
