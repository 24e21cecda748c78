//! Whether a name may come into being, and what may be moved.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, Stat, fstatfs, openat, statat};
use rustix::io::Errno;

use super::git::{self, Part};
use super::names::{is_package, parts_of, same};
use super::place::{Place, path_buf};
use super::supervisor::{Stop, Supervisor};

/// Entries of a directory that is moved that are looked at, and how deep.
const MOST_ENTRIES: usize = 20_000;
const DEEPEST: usize = 64;
/// What a directory must have for git to take it for a repository.
const BARE: [&str; 3] = ["HEAD", "objects", "refs"];
/// File systems that may take `a` for `A`: FAT, exFAT, NTFS, CIFS, SMB2, HFS+, overlay of such.
const FOLDING: [i64; 8] =
    [0x4D44, 0x2011_BAB0, 0x5346_544E, 0x7366_746E, 0xFF53_4D42, 0xFE53_4D42, 0x482B, 0x6A656A63];
/// `FS_CASEFOLD_FL`
const FOLDS: u32 = 0x4000_0000;

/// How a name comes into being, or is written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deed {
    /// A file is opened for writing.
    Write,
    /// A directory is made.
    Directory,
    /// A link, a socket, a pipe, a device.
    Other,
    /// A file gets this name.
    File,
    /// A directory gets this name.
    Moved,
}

/// A path below its workspace.
struct Found<'a> {
    parts: Vec<&'a [u8]>,
    /// Parts above the workspace.
    above: usize,
}

impl Found<'_> {
    fn below(&self) -> &[&[u8]] {
        &self.parts[self.above..]
    }

    /// The path up to and with its part `at` below the workspace.
    fn up_to(&self, at: usize) -> PathBuf {
        let mut path = PathBuf::from("/");
        path.extend(
            self.parts[..=self.above + at].iter().map(|part| std::ffi::OsStr::from_bytes(part)),
        );
        path
    }
}

fn rule(parts: &[&[u8]]) -> String {
    let text = parts.iter().map(|part| String::from_utf8_lossy(part)).collect::<Vec<_>>().join("/");
    format!("`{text}` is protected")
}

impl Supervisor {
    /// Whether something may be done to a place.
    pub(super) fn check(&mut self, place: &Place, deed: Deed) -> Result<(), Stop> {
        let path = place.full();
        let parts: Vec<&[u8]> = parts_of(&path).skip(self.names.above(&path)).collect();
        // Nearly always nothing is found either way, and the file system need not be asked.
        let found =
            self.names.find(&parts, true).is_some() || git::part(&parts, true).0 > Part::Inside;
        let fold = found && folds(place.parent.as_fd());
        self.check_path(&path, deed, fold)?;
        if BARE.iter().any(|name| name.as_bytes() == place.name.as_bytes()) {
            self.check_bare(place, &path)?;
        }
        Ok(())
    }

    /// A directory that has all three is a repository, whatever it is called, and git obeys the settings
    /// in it. It may become one in this run only if it came into being in it.
    fn check_bare(&mut self, place: &Place, path: &[u8]) -> Result<(), Stop> {
        let parts: Vec<&[u8]> = parts_of(path).skip(self.names.above(path)).collect();
        if self.names.is_free(path) || git::part(&parts, true).0 != Part::Outside {
            return Ok(());
        }
        let others = BARE.iter().filter(|name| name.as_bytes() != place.name.as_bytes());
        let complete = others
            .into_iter()
            .all(|name| statat(&place.parent, *name, AtFlags::SYMLINK_NOFOLLOW).is_ok());
        let there = statat(&place.parent, &place.name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
        if !complete || there {
            return Ok(());
        }
        let folder = rustix::fs::fstat(&place.parent)?;
        if self.is_new(&folder) {
            self.note(path_buf(&place.path), &[]);
            return Ok(());
        }
        let rule = "the directory would become a repository without a `.git`".to_owned();
        Err(Stop::Refused(path_buf(path), rule))
    }

    /// Whether something may be done to a real path.
    pub(super) fn check_path(&mut self, path: &[u8], deed: Deed, fold: bool) -> Result<(), Stop> {
        if self.names.is_free(path) {
            return Ok(());
        }
        let found = Found { parts: parts_of(path).collect(), above: self.names.above(path) };
        let parts = found.below();
        let refuse = |rule: String| Err(Stop::Refused(path_buf(path), rule));
        let (part, at) = git::part(parts, fold);
        match (part, deed) {
            (Part::Inside, Deed::Moved) => {
                let rest = &parts[at + 1..];
                let first = rest.first().copied().unwrap_or_default();
                if ["modules", "worktrees", "hooks"]
                    .iter()
                    .any(|name| same(name.as_bytes(), first, fold))
                {
                    return refuse("a directory is not moved to where git looks for hooks".into());
                }
            }
            (Part::Outside | Part::Inside, _)
            | (Part::Itself | Part::Hooks | Part::Hook, Deed::Directory) => {}
            (Part::Itself, Deed::Write) if self.is_new_at(&found.up_to(at), true) => {}
            (Part::Worktree, Deed::Write | Deed::File)
                if self.is_new_at(&found.up_to(parts.len() - 1), true) => {}
            (Part::Worktree | Part::Elsewhere, _) => {
                return refuse("git would take settings and hooks from elsewhere".into());
            }
            (Part::Itself, _) => {
                return refuse("`.git` is made by git alone, in a new directory".into());
            }
            (Part::Hooks, _) => return refuse("the folder of hooks is not replaced".into()),
            (Part::Hook, Deed::Write | Deed::File)
                if parts.last().is_some_and(|name| !git::is_live_hook(name)) => {}
            (Part::Hook, _) => return refuse("a git hook executes".into()),
            // What it holds is looked at by whoever moves it there.
            (Part::Config, Deed::File) if self.is_new_at(&found.up_to(parts.len() - 1), true) => {}
            (Part::Config, _) => {
                return refuse(
                    "git's settings can execute; use `git config` in a new repository".into(),
                );
            }
        }
        let Some(hit) = self.names.find(parts, fold) else { return Ok(()) };
        // Below `.git` lies what git keeps, by names of its own: a branch may be called anything.
        if part == Part::Inside && hit.at > at {
            return Ok(());
        }
        let named = &parts[hit.at..(hit.at + hit.parts).min(parts.len())];
        if is_package(parts, hit.at) {
            return Ok(());
        }
        if let Some(repository) = self.repository(&found, hit.at) {
            self.note(repository, named);
            return Ok(());
        }
        refuse(rule(named))
    }

    /// Whether what is there may get another name, or one more.
    pub(super) fn check_source(&mut self, place: &Place) -> Result<(), Stop> {
        let (path, fold) = (place.full(), folds(place.parent.as_fd()));
        if self.names.is_free(&path) {
            return Ok(());
        }
        let found = Found { parts: parts_of(&path).collect(), above: self.names.above(&path) };
        let parts = found.below();
        let (part, at) = git::part(parts, fold);
        let is_new = |supervisor: &Self| supervisor.is_new_at(&found.up_to(parts.len() - 1), false);
        match part {
            Part::Outside | Part::Inside => {}
            _ if self.is_new_at(&found.up_to(at), false) || is_new(self) => {}
            Part::Hook if parts.last().is_some_and(|name| !git::is_live_hook(name)) => {}
            _ => {
                let rule = "git's hooks and settings stay where they are".to_owned();
                return Err(Stop::Refused(path_buf(&path), rule));
            }
        }
        match self.names.find(parts, fold) {
            Some(hit)
                if !(is_package(parts, hit.at) || part == Part::Inside && hit.at > at)
                    && self.repository(&found, hit.at).is_none() =>
            {
                let named = rule(&parts[hit.at..(hit.at + hit.parts).min(parts.len())]);
                Err(Stop::Refused(path_buf(&path), format!("{named} and stays where it is")))
            }
            _ => Ok(()),
        }
    }

    /// Whether a directory may get this name, by what it holds.
    pub(super) fn check_children(&mut self, from: &Place, to: &Place) -> Result<(), Stop> {
        let (source, target) = (from.full(), to.full());
        if self.names.is_free(&target) {
            return Ok(());
        }
        let fold = folds(to.parent.as_fd()) || folds(from.parent.as_fd());
        let parts: Vec<&[u8]> = parts_of(&target).skip(self.names.above(&target)).collect();
        for inside in self.names.continued(&parts, fold) {
            let below = Path::new(std::ffi::OsStr::from_bytes(from.name.as_bytes())).join(&inside);
            if !matches!(statat(&from.parent, &below, AtFlags::SYMLINK_NOFOLLOW), Err(Errno::NOENT))
            {
                let rule = format!("the directory holds `{}`", inside.display());
                return Err(Stop::Refused(path_buf(&target), rule));
            }
        }
        // What was kept out elsewhere is not in there; only places with other rules have to be looked at.
        let free = self.names.is_free(&source);
        let found = Found { parts: parts_of(&source).collect(), above: self.names.above(&source) };
        let parts = found.below();
        let package = is_package(parts, parts.len());
        if !free && !package && self.repository(&found, parts.len().saturating_sub(1)).is_none() {
            return Ok(());
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = openat(&from.parent, &from.name, flags, Mode::empty())?;
        // A new repository keeps its rules when it is moved as a whole.
        if !free && self.is_new_repository(&path_buf(&source)) {
            return Ok(());
        }
        let mut left = MOST_ENTRIES;
        self.walk(&folder, &target, fold, &mut left, 0)
    }

    fn walk(
        &mut self,
        folder: &OwnedFd,
        path: &[u8],
        fold: bool,
        left: &mut usize,
        depth: usize,
    ) -> Result<(), Stop> {
        let large = || {
            let rule = "the directory holds too much to look at".to_owned();
            Stop::Refused(path_buf(path), rule)
        };
        if depth > DEEPEST {
            return Err(large());
        }
        let mut room = Vec::with_capacity(16 << 10);
        let mut entries = RawDir::new(folder, room.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            *left = left.checked_sub(1).ok_or_else(large)?;
            let mut below = path.to_vec();
            below.push(b'/');
            below.extend_from_slice(name);
            let found = statat(folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)?;
            let is_folder = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
            let deed = if is_folder { Deed::Moved } else { Deed::Other };
            if git::part(&[name], fold).0 == Part::Itself {
                let rule = "the directory holds a repository".to_owned();
                return Err(Stop::Refused(path_buf(&below), rule));
            }
            self.check_path(&below, deed, fold)?;
            if is_folder {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let next = openat(folder, entry.file_name(), flags, Mode::empty())?;
                self.walk(&next, &below, fold, left, depth + 1)?;
            }
        }
        Ok(())
    }

    /// The new repository that the part `at` of a path lies in.
    fn repository(&self, found: &Found<'_>, at: usize) -> Option<PathBuf> {
        (0..at).map(|above| found.up_to(above)).find(|path| self.is_new_repository(path))
    }

    /// Whether a directory came into being in this run, and a repository in it.
    fn is_new_repository(&self, path: &Path) -> bool {
        self.is_new_at(path, false) && self.is_new_at(&path.join(".git"), false)
    }

    /// Whether what is at a real path, or the directory that it is in, came into being in this run.
    pub(super) fn is_new_at(&self, path: &Path, parent: bool) -> bool {
        let path = if parent { path.parent().unwrap_or(path) } else { path };
        let found = statat(rustix::fs::CWD, path, AtFlags::SYMLINK_NOFOLLOW);
        found.is_ok_and(|found| self.is_new(&found))
    }

    fn is_new(&self, found: &Stat) -> bool {
        self.made.contains(&(found.st_dev, found.st_ino))
    }
}

/// Whether a directory takes `a` for `A`.
pub(super) fn folds(folder: BorrowedFd<'_>) -> bool {
    #[expect(clippy::unnecessary_cast, reason = "the type differs between machines")]
    let kind = fstatfs(folder).map(|found| found.f_type as i64);
    match kind {
        // `ext4`, `f2fs` and `tmpfs` can fold, directory by directory.
        Ok(0xEF53 | 0xF2F5_2010 | 0x0102_1994) => openat(
            folder,
            c".",
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .and_then(|folder| rustix::fs::ioctl_getflags(&folder))
        .is_ok_and(|flags| flags.bits() & FOLDS != 0),
        Ok(kind) => FOLDING.contains(&kind),
        Err(_) => true,
    }
}
