//! Whether a name may come into being, and what may be moved.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, openat, readlinkat, statat};
use rustix::io::Errno;

use super::born::Born;
use super::git::{self, Part};
use super::names::{Counted, bytes, is_below, parts_of};
use super::place::{Place, path_buf};
use super::supervisor::{Stop, Supervisor, TOO_MANY};
use crate::cases;
use crate::names::Hit;

/// Entries of a directory that is moved that are looked at, and how deep.
const MOST_ENTRIES: usize = 20_000;
/// The same, where only their names are compared.
const MOST_EXEMPT: usize = 200_000;
/// Most links on the way to a path.
const MOST_LINKS: usize = 40;
const DEEPEST: usize = 64;

/// How a name comes into being, or is written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deed {
    /// A file is opened for writing.
    Write,
    /// A directory is made.
    Directory,
    /// A symbolic link.
    Link,
    /// A socket, a pipe, a device, one more name for a file.
    Other,
    /// A file gets this name.
    File,
    /// A directory gets this name.
    Moved,
}

impl Deed {
    /// How something gets a name by being moved.
    pub(super) fn of_moved(kind: FileType) -> Self {
        match kind {
            FileType::Directory => Self::Moved,
            FileType::RegularFile => Self::File,
            FileType::Symlink => Self::Link,
            _ => Self::Other,
        }
    }
}

/// Whether a name that was found is written in a way that nobody looks for, in a folder that tells cases apart. At the
/// top of a workspace it may be carried to where names are folded, and be obeyed there.
fn is_harmless(hit: Hit, counted: &Counted<'_>, folder: Option<BorrowedFd<'_>>) -> bool {
    hit.otherwise
        && hit.at > counted.first
        && hit.at + 1 == counted.parts().len()
        && folder.is_some_and(cases::tells_apart)
}

/// Whether there is something at a real path, or that cannot be told.
fn is_there(path: &[u8]) -> bool {
    !matches!(statat(rustix::fs::CWD, path, AtFlags::SYMLINK_NOFOLLOW), Err(Errno::NOENT))
}

fn rule(parts: &[&[u8]]) -> String {
    let text = parts.iter().map(|part| String::from_utf8_lossy(part)).collect::<Vec<_>>().join("/");
    format!("`{text}` is protected")
}

impl Supervisor {
    /// Whether something may be done to a place.
    pub(super) fn check(&mut self, place: &Place, deed: Deed) -> Result<(), Stop> {
        let path = place.full();
        self.check_path(&path, deed, Some(place.parent.as_fd()))?;
        self.check_bare(place, &path, deed)
    }

    /// Whether something may be done to a real path, whose last part is in a folder that may be held open.
    pub(super) fn check_path(
        &mut self,
        path: &[u8],
        deed: Deed,
        folder: Option<BorrowedFd<'_>>,
    ) -> Result<(), Stop> {
        if self.names.is_free(path) {
            return Ok(());
        }
        let refuse = |rule: String| Err(Stop::Refused(path_buf(path), rule));
        let leads = matches!(deed, Deed::Link | Deed::Moved) && self.names.holds_below(path);
        if leads || self.names.is_held(path) {
            return refuse("a protected name is a link to it".into());
        }
        let counted = self.names.counted(path);
        let parts = counted.parts();
        let (part, at) = git::part(parts);
        if matches!(deed, Deed::Directory | Deed::Moved | Deed::Link)
            && parts.last().is_some_and(|name| git::is_strategy(name))
        {
            return refuse("git would take what is in it for strategies of merging".into());
        }
        let is_new = |at: usize| self.is_new_at(&counted.up_to(at), true);
        let last = parts.len().saturating_sub(1);
        match (part, deed) {
            (Part::Inside, Deed::Moved)
                if parts.get(at + 1).is_some_and(|first| git::is_steering(first)) =>
            {
                return refuse("a directory is not moved to where git looks for hooks".into());
            }
            (Part::Inside, Deed::Link)
                if parts.len() > at + 2
                    || parts.get(at + 1).is_some_and(|one| git::is_known(one)) =>
            {
                return refuse("git would follow the link".into());
            }
            (Part::Outside | Part::Inside, _)
            | (Part::Itself | Part::Hooks | Part::Hook | Part::Todo, Deed::Directory) => {}
            (Part::Itself, Deed::Write) if is_new(at) => {}
            // Whoever makes it says in it what git does; see `Supervisor::make_common`.
            (Part::Worktree, Deed::Write) if is_new(last) && !is_there(path) => {}
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
            (Part::Todo, Deed::File) => {}
            (Part::Todo, _) => {
                return refuse(
                    "what a rebase does next can execute; it is put in place by a move".into(),
                );
            }
            (Part::Config, Deed::File) if is_new(last) => {}
            (Part::Config, _) => {
                return refuse(
                    "git's settings can execute; use `git config` in a new repository".into(),
                );
            }
        }
        if deed == Deed::Link
            && let Some(inside) = self.names.continued(&counted).first()
            && !counted.is_package(last)
        {
            let rule = format!("a link there would stand for `{}` in it", inside.display());
            return refuse(rule);
        }
        let Some(hit) = self.names.find(&counted) else { return Ok(()) };
        // Below `.git` lies what git keeps, by names of its own: a branch may be called anything.
        if part != Part::Outside && hit.at >= at {
            return if is_own_of_git(part, &parts[at..]) {
                Ok(())
            } else {
                refuse(rule(&parts[at..]))
            };
        }
        let end = (hit.at + hit.parts).min(parts.len());
        if counted.is_package(hit.at) || is_harmless(hit, &counted, folder) {
            return Ok(());
        }
        if let Some(repository) = self.repository(&counted, hit.at) {
            let (names, path) = (parts[hit.at..end].to_vec(), counted.up_to(end - 1));
            // What cannot be told at the end is not let through.
            if !self.note(repository, &names) {
                return refuse(TOO_MANY.into());
            }
            if !self.grant(path) {
                return refuse("too many protected names were made in this run".into());
            }
            return Ok(());
        }
        let protected = rule(&parts[hit.at..end]);
        if !matches!(deed, Deed::Write | Deed::File | Deed::Directory) {
            return refuse(protected);
        }
        let (path, folder) = (path_buf(path), deed == Deed::Directory);
        if self.is_allowed(&path, folder) && self.grant(path.clone()) {
            return Ok(());
        }
        Err(Stop::Guarded(path, protected, folder))
    }

    /// Whether what is there may get another name, or one more, or go.
    pub(super) fn check_source(&mut self, place: &Place, kind: FileType) -> Result<(), Stop> {
        let path = place.full();
        let leads = kind == FileType::Directory && self.names.holds_below(&path);
        if leads && !self.names.is_free(&path) {
            let rule = "a protected name is a link to it".to_owned();
            return Err(Stop::Refused(path_buf(&path), rule));
        }
        self.check_kept(place, kind)
    }

    /// Whether what is there may be another, while what is in it stays where it is.
    pub(super) fn check_kept(&mut self, place: &Place, kind: FileType) -> Result<(), Stop> {
        let path = place.full();
        if self.names.is_free(&path) {
            return Ok(());
        }
        let refuse = |rule: String| Err(Stop::Refused(path_buf(&path), rule));
        let is_folder = kind == FileType::Directory;
        if self.names.is_held(&path) {
            return refuse("a protected name is a link to it".into());
        }
        let counted = self.names.counted(&path);
        let parts = counted.parts();
        let (part, at) = git::part(parts);
        let last = parts.len().saturating_sub(1);
        let is_new = |at: usize| self.is_new_at(&counted.up_to(at), false);
        match part {
            Part::Inside
                if is_folder && parts.get(at + 1).is_some_and(|one| git::is_steering(one)) =>
            {
                if !is_new(at) && !is_new(last) {
                    return refuse("git's hooks and settings stay where they are".into());
                }
            }
            Part::Outside | Part::Inside | Part::Todo => {}
            _ if is_new(at) || is_new(last) => {}
            Part::Hook if parts.last().is_some_and(|name| !git::is_live_hook(name)) => {}
            _ => return refuse("git's hooks and settings stay where they are".into()),
        }
        let Some(hit) = self.names.find(&counted) else { return Ok(()) };
        let is_gits = part != Part::Outside && hit.at >= at;
        if is_gits
            || counted.is_package(hit.at)
            || self.repository(&counted, hit.at).is_some()
            || self.is_granted(&path)
            || is_harmless(hit, &counted, Some(place.parent.as_fd()))
        {
            return Ok(());
        }
        let named = rule(&parts[hit.at..(hit.at + hit.parts).min(parts.len())]);
        refuse(format!("{named} and stays where it is"))
    }

    /// Whether what is there may get one more name. What is protected, or git obeys, may not, even if it came into
    /// being in this run: by the other name it could be written to in the next one.
    pub(super) fn check_linked(&mut self, place: &Place) -> Result<(), Stop> {
        let path = place.full();
        if self.names.is_free(&path) {
            return Ok(());
        }
        let refuse = |rule: String| Err(Stop::Refused(path_buf(&path), rule));
        let counted = self.names.counted(&path);
        let parts = counted.parts();
        let (part, at) = git::part(parts);
        if !matches!(part, Part::Outside | Part::Inside) || super::bare::is_obeyed(place)? {
            return refuse("git's hooks and settings have one name".into());
        }
        let Some(hit) = self.names.find(&counted) else { return Ok(()) };
        let is_gits = part != Part::Outside && hit.at >= at;
        if is_gits
            || counted.is_package(hit.at)
            || is_harmless(hit, &counted, Some(place.parent.as_fd()))
        {
            return Ok(());
        }
        let named = rule(&parts[hit.at..(hit.at + hit.parts).min(parts.len())]);
        refuse(format!("{named} and has one name"))
    }

    /// Whether a directory may get this name, by what it holds.
    pub(super) fn check_children(&mut self, from: &Place, to: &Place) -> Result<(), Stop> {
        let (source, target) = (from.full(), to.full());
        if self.names.is_free(&target) {
            return Ok(());
        }
        let refuse = |rule: String| Err(Stop::Refused(path_buf(&target), rule));
        let (was, becomes) = (self.names.counted(&source), self.names.counted(&target));
        if git::part(becomes.parts()).0 == Part::Inside && git::part(was.parts()).0 != Part::Inside
        {
            return refuse("a directory from elsewhere is not moved into git's own".into());
        }
        for inside in self.names.continued(&becomes) {
            let below = Path::new(std::ffi::OsStr::from_bytes(from.name.as_bytes())).join(&inside);
            if !matches!(statat(&from.parent, &below, AtFlags::SYMLINK_NOFOLLOW), Err(Errno::NOENT))
            {
                return refuse(format!("the directory holds `{}`", inside.display()));
            }
        }
        self.check_grants(&source, &target)?;
        // What was kept out elsewhere is not in there; only places with other rules have to be looked at.
        let free = self.names.is_free(&source);
        let package = was.is_package(was.parts().len());
        let stays = becomes.is_package(becomes.parts().len().saturating_sub(1));
        // Below `.git`, and below a name that was let through, names were not looked at.
        let was_in_git = git::part(was.parts()).0 != Part::Outside;
        let other = (was_in_git && git::part(becomes.parts()).0 == Part::Outside)
            || self.is_granted(&source);
        let whole = free || other || (package && !stays);
        let looser = self.names.is_looser(&was);
        if !whole && !looser {
            return Ok(());
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = openat(&from.parent, &from.name, flags, Mode::empty())?;
        if whole {
            return self.walk(&folder, &target, &mut { MOST_ENTRIES }, 0);
        }
        self.check_exempt(&folder, (&source, &target), &mut { MOST_EXEMPT }, 0)
    }

    /// Whether what a folder holds may be elsewhere: names that are let through only where they are stay there.
    fn check_exempt(
        &mut self,
        folder: &OwnedFd,
        (source, target): (&[u8], &[u8]),
        left: &mut usize,
        depth: usize,
    ) -> Result<(), Stop> {
        let large = || {
            let rule = "the directory holds too much to look at".to_owned();
            Stop::Refused(path_buf(target), rule)
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
            let [was, becomes] = [source, target].map(|above| [above, b"/", name].concat());
            let is_held = |path: &[u8]| self.names.find(&self.names.counted(path)).is_some();
            let found = statat(folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)?;
            let kind = FileType::from_raw_mode(found.st_mode);
            if is_held(&becomes) && !is_held(&was) {
                let deed = match Deed::of_moved(kind) {
                    // The owner would be asked about one file, not about what comes with a folder.
                    Deed::File => Deed::Other,
                    deed => deed,
                };
                self.check_path(&becomes, deed, Some(folder.as_fd()))?;
            }
            if kind == FileType::Symlink {
                let says = readlinkat(folder, entry.file_name(), Vec::new())?;
                self.check_target(target, name, says.as_bytes())?;
            }
            if kind == FileType::Directory {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let next = openat(folder, entry.file_name(), flags, Mode::empty())?;
                self.check_exempt(&next, (&was, &becomes), left, depth + 1)?;
            }
        }
        Ok(())
    }

    /// Whether names that were let through for their repository are still in one after a move.
    fn check_grants(&self, source: &[u8], target: &[u8]) -> Result<(), Stop> {
        for granted in self.grants_below(source) {
            let own = granted.ancestors().skip(1);
            let mut own = own.take_while(|above| is_below(bytes(above), source));
            if own.any(|above| self.is_new_repository(above)) {
                continue;
            }
            let mut path = target.to_vec();
            path.extend_from_slice(&bytes(granted)[source.len()..]);
            let counted = self.names.counted(&path);
            let last = counted.parts().len().saturating_sub(1);
            if counted.is_package(last) || self.repository(&counted, last).is_some() {
                continue;
            }
            let parts = counted.parts();
            let hit = self.names.find(&counted).map_or(last, |hit| hit.at);
            return Err(Stop::Refused(path_buf(&path), rule(&parts[hit..])));
        }
        Ok(())
    }

    /// Whether a link may be at a place and say this: none leads from where names are protected to where they are not.
    /// Whoever follows it would find there what may not be here.
    pub(super) fn check_target(
        &self,
        parent: &[u8],
        name: &[u8],
        target: &[u8],
    ) -> Result<(), Stop> {
        let path = [parent, b"/", name].concat();
        let here = self.names.counted(&path);
        if self.names.is_free(&path) || here.is_package(here.parts().len()) {
            return Ok(());
        }
        // Links that never end lead nowhere.
        let Some(end) = trace(parent, target).filter(|end| !self.names.is_free(bytes(end))) else {
            return Ok(());
        };
        let there = self.names.counted(bytes(&end));
        let is_gits = |counted: &Counted<'_>| git::part(counted.parts()).0 != Part::Outside;
        let what = if there.is_package(there.parts().len()) {
            "packages"
        } else if is_gits(&there) && !is_gits(&here) {
            "what git keeps"
        } else if self.names.is_looser_than(&there, &here) {
            "names that may be only there"
        } else {
            return Ok(());
        };
        let rule = format!("the link would lead to {what}, where names are not protected");
        Err(Stop::Refused(path_buf(&path), rule))
    }

    /// Whether a link in what stays would lead out of what may be written.
    pub(super) fn leads_out(&self, parent: &[u8], target: &[u8]) -> bool {
        let outside = |end: &PathBuf| self.names.is_outside(bytes(end));
        !self.names.is_free(parent) && trace(parent, target).is_some_and(|end| outside(&end))
    }

    fn walk(
        &mut self,
        folder: &OwnedFd,
        path: &[u8],
        left: &mut usize,
        depth: usize,
    ) -> Result<(), Stop> {
        let refuse = |rule: &str| Stop::Refused(path_buf(path), rule.to_owned());
        let large = || refuse("the directory holds too much to look at");
        if depth > DEEPEST {
            return Err(large());
        }
        if super::bare::is_repository(folder) {
            return Err(refuse("the directory is a repository without a `.git`"));
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
            let kind = FileType::from_raw_mode(found.st_mode);
            let deed = match Deed::of_moved(kind) {
                // Nobody looks at what it holds.
                Deed::File => Deed::Other,
                deed => deed,
            };
            if git::part(&[name]).0 == Part::Itself {
                let rule = "the directory holds a repository".to_owned();
                return Err(Stop::Refused(path_buf(&below), rule));
            }
            self.check_path(&below, deed, Some(folder.as_fd()))?;
            if kind == FileType::Symlink {
                let says = readlinkat(folder, entry.file_name(), Vec::new())?;
                self.check_target(path, name, says.as_bytes())?;
            }
            if kind == FileType::Directory {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let next = openat(folder, entry.file_name(), flags, Mode::empty())?;
                self.walk(&next, &below, left, depth + 1)?;
            }
        }
        Ok(())
    }

    /// The new repository that the part `at` of a path lies in.
    fn repository(&self, counted: &Counted<'_>, at: usize) -> Option<PathBuf> {
        (0..at).map(|above| counted.up_to(above)).find(|path| self.is_new_repository(path))
    }

    /// Whether a directory came into being in this run, and a repository in it.
    fn is_new_repository(&self, path: &Path) -> bool {
        self.is_new_at(path, false) && self.is_new_at(&path.join(".git"), false)
    }

    /// Whether what is at a real path, or the directory that it is in, came into being in this run.
    pub(super) fn is_new_at(&self, path: &Path, parent: bool) -> bool {
        let path = if parent { path.parent().unwrap_or(path) } else { path };
        let found = Born::of(rustix::fs::CWD, path);
        found.is_ok_and(|(found, _)| self.is_new(found))
    }

    pub(super) fn is_new(&self, found: Born) -> bool {
        self.made.contains(&found)
    }
}

/// Where a link in a folder leads to, of which the last parts may not be there. `None` where links never end.
fn trace(parent: &[u8], target: &[u8]) -> Option<PathBuf> {
    let mut real = path_buf(if target.first() == Some(&b'/') { b"/" } else { parent });
    let parts = |path: &[u8]| parts_of(path).map(<[u8]>::to_vec).rev().collect::<Vec<_>>();
    let mut left = parts(target);
    let mut links = 0;
    while let Some(part) = left.pop() {
        match part.as_slice() {
            b"." => continue,
            b".." => {
                real.pop();
                continue;
            }
            _ => real.push(std::ffi::OsStr::from_bytes(&part)),
        }
        let Ok(next) = real.read_link() else { continue };
        links += 1;
        if links > MOST_LINKS {
            return None;
        }
        let next = bytes(&next);
        real = if next.first() == Some(&b'/') { PathBuf::from("/") } else { real.parent()?.into() };
        left.extend(parts(next));
    }
    Some(real)
}

/// Whether a path from its `.git` on, which has a protected name, is nevertheless git's own affair. What
/// its parts are was looked at; what git alone reads by that name is left.
fn is_own_of_git(part: Part, parts: &[&[u8]]) -> bool {
    let is =
        |at: usize, name: &[u8]| parts.get(at).is_some_and(|part| crate::names::same(part, name));
    part != Part::Inside || !(parts.len() == 3 && is(1, b"info") && is(2, b"attributes"))
}
