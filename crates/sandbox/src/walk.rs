//! One bounded look at the workspace for names that are guarded.

#[cfg(test)]
mod again;
mod listings;

use std::collections::HashSet;
use std::ffi::{CStr, CString};
use std::hash::{DefaultHasher, Hasher as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir};
use rustix::io::Errno;

use crate::names::{Guard, Names};
use crate::notify::git::{self, Part};
use crate::notify::names::{is_package, parts_of};

pub(crate) use self::listings::is_sure as keeps_times;
pub use self::listings::{LARGEST, Listings, Seen};

/// Most entries that are looked at.
pub const MAX_ENTRIES: usize = 100_000;
/// Most guarded names that are found; each becomes a mount.
pub const MAX_FOUND: usize = 2_000;
/// Deepest folder that is looked into.
const DEEPEST: usize = 64;
/// Folders that one thread looks at before it asks for help.
const ALONE: usize = 40;

/// A guarded name that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its path, from the folder that was walked.
    pub path: CString,
    /// What is done about it.
    pub guard: Guard,
    /// Whether it is a folder.
    pub folder: bool,
}

/// A link that is a guarded name, or a part of one, or lies in a guarded folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Its path, from the folder that was walked.
    pub path: CString,
    /// What is done about what it leads to.
    pub guard: Guard,
    /// What is guarded in what it leads to; nothing is all of it.
    pub inside: Vec<Vec<u8>>,
}

/// What a walk gives.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Walked {
    /// The guarded names.
    pub found: Vec<Found>,
    /// Links that have to be followed.
    pub links: Vec<Link>,
    /// Sockets.
    pub sockets: Vec<CString>,
    /// The folders, each by a number that is made of its path ([`number_of`]).
    pub folders: HashSet<u64>,
    /// How many entries were seen.
    pub entries: usize,
    /// Whether the walk ended before it had seen everything.
    pub cut_short: bool,
}

/// A folder that is still to be looked at.
struct Next {
    /// The folder that it is in, if that is open. Names are looked at the last first, so that no more of these are
    /// open than folders lie in one another.
    above: Option<Arc<OwnedFd>>,
    path: CString,
    depth: usize,
    /// Whether all of it is guarded.
    inside: Option<Guard>,
}

/// What of a repository a folder has.
#[derive(Default)]
struct Repository {
    head: bool,
    objects: bool,
    refs: bool,
    commondir: bool,
    steering: Vec<(CString, FileType)>,
}

impl Repository {
    fn sees(&mut self, name: &CStr, kind: FileType) {
        let bytes = name.to_bytes();
        let is = |known: &str| bytes.eq_ignore_ascii_case(known.as_bytes());
        self.head |= is("HEAD");
        self.objects |= is("objects");
        self.refs |= is("refs");
        self.commondir |= is("commondir");
        if ["config", "config.worktree", "commondir", "hooks"].iter().any(|known| is(known)) {
            self.steering.push((name.to_owned(), kind));
        }
    }

    fn is_one(&self) -> bool {
        self.head && (self.commondir || (self.objects && self.refs))
    }
}

/// Looks for guarded names below `root`, which lies at the path `base`. Links are not followed, and below a
/// guarded folder only links and sockets are looked for. With `whole`, all of `root` is guarded.
///
/// # Errors
/// When `root` itself cannot be read.
pub fn walk(
    root: BorrowedFd<'_>,
    base: &Path,
    names: &Names,
    whole: Option<Guard>,
) -> Result<Walked, Errno> {
    walk_again(root, base, names, whole, None).map(|(walked, _)| walked)
}

/// As [`walk`], but folders that have not changed since they were remembered are not listed again.
///
/// # Errors
/// When `root` itself cannot be read.
pub fn walk_again(
    root: BorrowedFd<'_>,
    base: &Path,
    names: &Names,
    whole: Option<Guard>,
    listings: Option<&Listings>,
) -> Result<(Walked, Seen), Errno> {
    let base = base.file_name().unwrap_or_default().as_bytes();
    let first = open(root, c".")?;
    let data = rustix::fs::fstat(&first)?;
    let listings = listings.filter(|_| listings::is_sure(first.as_fd()));
    let memory = listings.map(|listings| Memory { listings, device: data.st_dev });
    let mut walker = Walker::new(root, base, names, memory);
    match listings.and_then(|listings| Some((listings, listings.find(&data)?))) {
        Some((listings, at)) => {
            let top = Next { above: None, path: CString::default(), depth: 0, inside: whole };
            walker.remembered(listings, at, &top);
        }
        None => walker.folder(first, b"", 0, whole),
    }
    walker.go_on(ALONE);
    if walker.stack.len() < 2 {
        walker.go_on(usize::MAX);
        return Ok((walker.walked, walker.seen));
    }
    // There is much to see: two look, and who has nothing left is given of the other's.
    let mut other = Walker::new(root, base, names, memory);
    let shared = Shared::default();
    let joined = std::thread::scope(|scope| {
        let far = std::thread::Builder::new().spawn_scoped(scope, || other.share(&shared));
        if far.is_err() {
            // There may be no room for one more thread.
            drop(Leaves(&shared));
        }
        walker.share(&shared);
        far.map_or(Ok(()), std::thread::ScopedJoinHandle::join)
    });
    // What was not seen is not guarded.
    joined.map_err(|_| Errno::AGAIN)?;
    let (mut walked, mut seen) = (walker.walked, walker.seen);
    walked.join(other.walked);
    seen.join(other.seen);
    Ok((walked, seen))
}

/// A number for the path of a folder, from the one that was walked. Two paths may have the same.
#[must_use]
pub fn number_of(path: &[u8]) -> u64 {
    let mut number = DefaultHasher::new();
    // As it is told and shown.
    number.write(String::from_utf8_lossy(path).as_bytes());
    number.finish()
}

/// What two that look have in common.
#[derive(Default)]
struct Shared {
    state: Mutex<Spare>,
    changed: Condvar,
    /// Whether somebody waits, to be seen without the lock.
    wanted: AtomicBool,
}

#[derive(Default)]
struct Spare {
    /// What one has given for the other.
    folders: Vec<Next>,
    /// How many wait, and have left.
    waiting: usize,
    gone: usize,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Spare> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives half of what there is to the other, if that waits: the first half, in which more lies.
    fn give(&self, stack: &mut Vec<Next>) {
        if stack.len() > 1 && self.wanted.swap(false, Ordering::Relaxed) {
            let half = stack.len() / 2;
            self.lock().folders.extend(stack.drain(..half));
            self.changed.notify_all();
        }
    }

    /// Waits for what the other gives; nothing if that has nothing either.
    fn take(&self) -> Vec<Next> {
        let mut spare = self.lock();
        spare.waiting += 1;
        while spare.folders.is_empty() && spare.waiting + spare.gone < 2 {
            self.wanted.store(true, Ordering::Relaxed);
            spare = self.changed.wait(spare).unwrap_or_else(PoisonError::into_inner);
        }
        let folders = std::mem::take(&mut spare.folders);
        // Who ends goes on waiting, so that the other ends as well.
        if folders.is_empty() {
            self.changed.notify_all();
        } else {
            spare.waiting -= 1;
        }
        folders
    }
}

/// Whoever leaves is not waited for, also where it fails.
struct Leaves<'a>(&'a Shared);

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        self.0.lock().gone += 1;
        self.0.changed.notify_all();
    }
}

/// What is remembered, and of which device.
#[derive(Clone, Copy)]
struct Memory<'a> {
    listings: &'a Listings,
    device: u64,
}

/// A walk on its way.
struct Walker<'a> {
    /// The folder that is walked.
    root: BorrowedFd<'a>,
    /// Its name.
    base: &'a [u8],
    names: &'a Names,
    memory: Option<Memory<'a>>,
    walked: Walked,
    seen: Seen,
    stack: Vec<Next>,
    buffer: Vec<MaybeUninit<u8>>,
}

/// One folder that is looked at.
struct Look<'a> {
    path: &'a [u8],
    depth: usize,
    inside: Option<Guard>,
    /// If it is open.
    folder: Option<Arc<OwnedFd>>,
    /// Its path with the name of the folder that is walked, and the parts of that.
    parent: &'a [u8],
    parts: Vec<&'a [u8]>,
    in_git: bool,
    /// Whether it lies among the packages of others, where nothing obeys the names.
    in_package: bool,
    repository: Repository,
}

impl<'a> Look<'a> {
    fn new(parent: &'a [u8], path: &'a [u8], depth: usize, inside: Option<Guard>) -> Self {
        let parts: Vec<&[u8]> = parts_of(parent).collect();
        let in_git = git::part(&parts).0 != Part::Outside;
        let in_package = parts.iter().skip(1).any(|part| is_package(part));
        let repository = Repository::default();
        Self { path, depth, inside, folder: None, parent, parts, in_git, in_package, repository }
    }
}

impl<'a> Walker<'a> {
    fn new(
        root: BorrowedFd<'a>,
        base: &'a [u8],
        names: &'a Names,
        memory: Option<Memory<'a>>,
    ) -> Self {
        let buffer = vec![MaybeUninit::uninit(); 64 << 10];
        let (walked, seen) = (Walked::default(), Seen::default());
        Self { root, base, names, memory, walked, seen, stack: Vec::new(), buffer }
    }

    /// Whether more was seen than can be.
    fn has_ended(&mut self) -> bool {
        self.walked.entries > MAX_ENTRIES || self.walked.is_full()
    }

    /// Looks at so many folders, or all.
    fn go_on(&mut self, folders: usize) {
        for _ in 0..folders {
            let ended = self.has_ended();
            let Some(next) = self.stack.pop().filter(|_| !ended) else { return };
            self.next(&next);
        }
    }

    /// Looks at all that it has, and that another gives.
    fn share(&mut self, shared: &Shared) {
        let _leaves = Leaves(shared);
        while !self.has_ended() {
            let Some(next) = self.stack.pop() else {
                self.stack = shared.take();
                if self.stack.is_empty() {
                    return;
                }
                continue;
            };
            self.next(&next);
            shared.give(&mut self.stack);
        }
    }

    fn next(&mut self, next: &Next) {
        if let Some((listings, at)) = self.unchanged(next) {
            self.remembered(listings, at, next);
            return;
        }
        let folder = match &next.above {
            Some(above) => open(above.as_fd(), last_of(&next.path)),
            None => open_below(self.root, &next.path),
        };
        match folder {
            Ok(folder) => self.folder(folder, next.path.to_bytes(), next.depth, next.inside),
            Err(Errno::ACCESS) if next.inside.is_none() && self.is_own(next) => {
                // Inside, whoever owns it could open it.
                let found = Found { path: next.path.clone(), guard: Guard::Masked, folder: true };
                self.walked.found.push(found);
                let _ = self.walked.is_full();
            }
            Err(errno) => self.walked.cut_short |= is_shortage(errno),
        }
    }

    /// Whether a folder that cannot be read is this user's, or that cannot be told.
    fn is_own(&self, next: &Next) -> bool {
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let data = match &next.above {
            Some(above) => rustix::fs::statat(above, last_of(&next.path), flags),
            None => rustix::fs::statat(self.root, &next.path, flags),
        };
        data.map_or(true, |data| data.st_uid == rustix::process::geteuid().as_raw())
    }

    /// A folder that has not changed since it was remembered. That it is the same one is told by what it is, and not
    /// by the path to it.
    fn unchanged(&self, next: &Next) -> Option<(&'a Listings, usize)> {
        let Memory { listings, device } = self.memory.filter(|one| !one.listings.is_empty())?;
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let data = match &next.above {
            Some(above) => rustix::fs::statat(above, last_of(&next.path), flags),
            None => rustix::fs::statat(self.root, &next.path, flags),
        };
        let data = data.ok().filter(|data| data.st_dev == device)?;
        Some((listings, listings.find(&data)?))
    }

    /// Looks at what a folder held, which it holds still.
    fn remembered(&mut self, listings: &Listings, at: usize, next: &Next) {
        let parent = [self.base, b"/", next.path.to_bytes()].concat();
        let mut look = Look::new(&parent, next.path.to_bytes(), next.depth, next.inside);
        self.note(&look);
        for entry in listings.entries(at) {
            let Some((name, kind)) = entry else {
                self.walked.cut_short = true;
                return;
            };
            if !self.entry(&mut look, name, kind) {
                return;
            }
        }
        self.seen.unchanged(at);
        self.repository(&look);
    }

    /// Looks at one folder.
    fn folder(&mut self, folder: OwnedFd, path: &[u8], depth: usize, inside: Option<Guard>) {
        let folder = Arc::new(folder);
        let parent = [self.base, b"/", path].concat();
        let mut look = Look::new(&parent, path, depth, inside);
        look.folder = Some(Arc::clone(&folder));
        self.note(&look);
        // Before it is listed: what changes from now on changes this as well.
        let listing = self.memory.and_then(|memory| {
            let data = rustix::fs::fstat(&folder).ok()?;
            let own = data.st_dev == memory.device;
            own.then(|| self.seen.begin(memory.listings, &data)).flatten()
        });
        let mut buffer = std::mem::take(&mut self.buffer);
        let whole = self.list(&mut look, &folder, &mut buffer, listing.is_some());
        self.buffer = buffer;
        match (listing, whole) {
            (Some(listing), true) => self.seen.end(listing),
            (Some(listing), false) => self.seen.forget(&listing),
            (None, _) => {}
        }
        self.repository(&look);
    }

    /// Remembers that a folder is there. What is in git's own, or guarded whole, does not become another folder.
    fn note(&mut self, look: &Look<'_>) {
        if look.inside.is_none() && !look.in_git {
            self.walked.folders.insert(number_of(look.path));
        }
    }

    /// Looks at what a folder holds. Says whether it saw all of it.
    fn list(
        &mut self,
        look: &mut Look<'_>,
        folder: &OwnedFd,
        buffer: &mut [MaybeUninit<u8>],
        remember: bool,
    ) -> bool {
        let mut entries = RawDir::new(folder.as_fd(), buffer);
        while let Some(entry) = entries.next() {
            let entry = match entry {
                Ok(entry) => entry,
                Err(errno) => {
                    self.walked.cut_short |= is_shortage(errno);
                    return false;
                }
            };
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => kind_of(folder.as_fd(), name),
                kind => kind,
            };
            if remember {
                self.seen.add(name, kind);
            }
            if !self.entry(look, name, kind) {
                return false;
            }
        }
        true
    }

    /// Looks at one name in a folder. Says whether there is room for more.
    fn entry(&mut self, look: &mut Look<'_>, name: &CStr, kind: FileType) -> bool {
        let Look { path, depth, inside, parent, in_git, in_package, .. } = *look;
        let bytes = name.to_bytes();
        self.walked.entries += 1;
        if self.walked.entries > MAX_ENTRIES {
            self.walked.cut_short = true;
            return false;
        }
        if kind == FileType::Socket {
            self.walked.sockets.extend(joined(path, bytes));
            return true;
        }
        if let Some(guard) = inside {
            match kind {
                FileType::Symlink => self.walked.link(path, bytes, guard, Vec::new()),
                FileType::Directory if depth >= DEEPEST => self.walked.cut_short = true,
                FileType::Directory => push(&mut self.stack, look, bytes, inside),
                _ => {}
            }
            return !self.walked.is_full();
        }
        if !in_git {
            look.repository.sees(name, kind);
        }
        let written = self
            .names
            .written(parent, bytes)
            .filter(|_| !in_package || self.names.is_owners(&[parent, b"/", bytes].concat()));
        // At the top it may be carried to where names are folded, and be obeyed there.
        let harmless = |otherwise: bool| otherwise && depth > 0 && self.tells_apart(look);
        let written = written.filter(|(_, otherwise)| !harmless(*otherwise));
        let guard = written.map(|(guard, _)| guard).or_else(|| {
            let whole = || [look.parts.as_slice(), &[bytes]].concat();
            let part = if in_git { git::part(&whole()).0 } else { Part::Outside };
            let steers = matches!(
                part,
                Part::Hooks | Part::Hook | Part::Config | Part::Worktree | Part::Elsewhere
            );
            // A worktree's or submodule's `.git` says where its repository is.
            let file = bytes.eq_ignore_ascii_case(b".git") && kind != FileType::Directory;
            (steers || file).then_some(Guard::ReadOnly)
        });
        match (guard, kind) {
            (Some(guard), FileType::Symlink) => self.walked.link(path, bytes, guard, Vec::new()),
            (None, FileType::Symlink) if in_package => {}
            (None, FileType::Symlink) => {
                let rest = self.names.continued(&[look.parts.as_slice(), &[bytes]].concat());
                if !rest.is_empty() {
                    self.walked.link(path, bytes, Guard::ReadOnly, rest);
                }
            }
            (Some(guard), _) => {
                let is_folder = kind == FileType::Directory;
                self.walked.found.extend(joined(path, bytes).map(|path| Found {
                    path,
                    guard,
                    folder: is_folder,
                }));
                // Links in what is shown empty lead nowhere.
                if is_folder && guard == Guard::ReadOnly {
                    self.walked.cut_short |= depth >= DEEPEST;
                    push(&mut self.stack, look, bytes, Some(guard));
                }
            }
            (None, FileType::Directory) if bytes == b"objects" && ends_with_git(path) => {}
            (None, FileType::Directory) if depth >= DEEPEST => self.walked.cut_short = true,
            (None, FileType::Directory) => push(&mut self.stack, look, bytes, None),
            (None, _) => {}
        }
        !self.walked.is_full()
    }

    /// Whether a folder is known to tell cases apart.
    fn tells_apart(&self, look: &Look<'_>) -> bool {
        match &look.folder {
            Some(folder) => crate::cases::tells_apart(folder.as_fd()),
            None => CString::new(look.path)
                .ok()
                .and_then(|path| open_below(self.root, &path).ok())
                .is_some_and(|folder| crate::cases::tells_apart(folder.as_fd())),
        }
    }

    /// Guards what steers a folder that is a repository itself.
    fn repository(&mut self, look: &Look<'_>) {
        if !look.repository.is_one() {
            return;
        }
        for (name, kind) in &look.repository.steering {
            let (name, folder) = (name.to_bytes(), *kind == FileType::Directory);
            match kind {
                FileType::Symlink => self.walked.link(look.path, name, Guard::ReadOnly, Vec::new()),
                _ => self.walked.found.extend(joined(look.path, name).map(|path| Found {
                    path,
                    guard: Guard::ReadOnly,
                    folder,
                })),
            }
        }
    }
}

impl Walked {
    fn link(&mut self, path: &[u8], name: &[u8], guard: Guard, inside: Vec<Vec<u8>>) {
        self.links.extend(joined(path, name).map(|path| Link { path, guard, inside }));
    }

    /// Adds what another has seen.
    fn join(&mut self, other: Self) {
        self.found.extend(other.found);
        self.links.extend(other.links);
        self.sockets.extend(other.sockets);
        self.folders.extend(other.folders);
        self.entries += other.entries;
        self.cut_short |= other.cut_short | (self.entries > MAX_ENTRIES);
        let _ = self.is_full();
    }

    /// Whether more was found than can be held.
    fn is_full(&mut self) -> bool {
        let full = self.found.len() + self.links.len() + self.sockets.len() > MAX_FOUND;
        self.cut_short |= full;
        full
    }
}

/// Opens a folder by its one name, which leads nowhere else: it is no link, and not `..`.
fn open(at: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(at, name, flags, Mode::empty())
}

/// Opens a folder by its path from another, of which no part is a link.
fn open_below(root: BorrowedFd<'_>, path: &CStr) -> Result<OwnedFd, Errno> {
    let mut folder = open(root, c".")?;
    for part in parts_of(path.to_bytes()) {
        let part = CString::new(part).map_err(|_| Errno::INVAL)?;
        folder = open(folder.as_fd(), &part)?;
    }
    Ok(folder)
}

/// Whether something was not seen for want of means.
fn is_shortage(errno: Errno) -> bool {
    matches!(errno, Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN | Errno::INTR)
}

/// The last part of a path.
fn last_of(path: &CStr) -> &CStr {
    let bytes = path.to_bytes_with_nul();
    let start = bytes.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    CStr::from_bytes_with_nul(&bytes[start..]).unwrap_or(path)
}

fn push(stack: &mut Vec<Next>, look: &Look<'_>, name: &[u8], inside: Option<Guard>) {
    let Look { path, depth, .. } = *look;
    let next = |path| Next { above: look.folder.clone(), path, depth: depth + 1, inside };
    stack.extend((depth < DEEPEST).then(|| joined(path, name).map(next)).flatten());
}

fn kind_of(folder: BorrowedFd<'_>, name: &std::ffi::CStr) -> FileType {
    rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
        .map_or(FileType::Unknown, |data| FileType::from_raw_mode(data.st_mode))
}

fn joined(path: &[u8], name: &[u8]) -> Option<CString> {
    let mut whole = path.to_vec();
    if !whole.is_empty() {
        whole.push(b'/');
    }
    whole.extend_from_slice(name);
    CString::new(whole).ok()
}

fn ends_with_git(path: &[u8]) -> bool {
    path == b".git" || path.ends_with(b"/.git")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn names_in(folder: &std::path::Path) -> Walked {
        let root = rustix::fs::open(folder, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty());
        let mut walked = walk(root.unwrap().as_fd(), folder, &Names::standard(), None).unwrap();
        walked.found.sort_by(|a, b| a.path.cmp(&b.path));
        walked
    }

    #[test]
    fn what_is_guarded_is_found_and_links_are_not_followed() {
        let lab = tempfile::tempdir().unwrap();
        let at = |path: &str| lab.path().join(path);
        for folder in ["a/b/.git/hooks", "a/b/.git/objects/.vscode", ".git/modules/m/hooks", "w"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        for file in ["a/b/.git/config", ".env", "a/AGENTS.md", "w/.git", "src.rs"] {
            fs::write(at(file), "x").unwrap();
        }
        std::os::unix::fs::symlink("/etc", at("etc")).unwrap();
        std::os::unix::fs::symlink("a/AGENTS.md", at("CLAUDE.md")).unwrap();
        std::os::unix::fs::symlink("a", at(".github")).unwrap();
        std::os::unix::fs::symlink("../w", at("a/b/.git/hooks/pre-push")).unwrap();
        for name in ["bare/HEAD", "bare/config", "half/HEAD", "half/config"] {
            fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            fs::write(at(name), "x").unwrap();
        }
        fs::create_dir_all(at("bare/objects")).unwrap();
        fs::create_dir_all(at("bare/refs")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("w/s")).unwrap();
        let walked = names_in(lab.path());
        let found: Vec<_> = walked.found.iter().map(|one| one.path.to_str().unwrap()).collect();
        assert_eq!(
            found,
            [
                ".env",
                ".git/modules/m/hooks",
                "a/AGENTS.md",
                "a/b/.git/config",
                "a/b/.git/hooks",
                "bare/config",
                "w/.git"
            ]
        );
        let mut links: Vec<_> = walked.links.iter().map(|one| one.path.to_str().unwrap()).collect();
        links.sort_unstable();
        assert_eq!(links, [".github", "CLAUDE.md", "a/b/.git/hooks/pre-push"]);
        let parts = walked.links.iter().find(|one| one.path.as_c_str() == c".github").unwrap();
        assert!(parts.inside.contains(&b"workflows".to_vec()), "{parts:?}");
        assert_eq!(walked.sockets, [c"w/s".to_owned()]);
        assert!(!walked.cut_short);
    }

    #[test]
    fn much_is_seen_by_two_as_by_one() {
        let lab = tempfile::tempdir().unwrap();
        let mut expected = Vec::new();
        for folder in 0..200 {
            let path = format!("d{}/s{folder}", folder % 7);
            fs::create_dir_all(lab.path().join(&path)).unwrap();
            for name in ["a.rs", ".env", "CLAUDE.md"] {
                fs::write(lab.path().join(&path).join(name), "x").unwrap();
            }
            std::os::unix::fs::symlink("a.rs", lab.path().join(&path).join("AGENTS.md")).unwrap();
            expected.extend([format!("{path}/.env"), format!("{path}/CLAUDE.md")]);
        }
        expected.sort();
        let walked = names_in(lab.path());
        let found: Vec<_> = walked.found.iter().map(|one| one.path.to_str().unwrap()).collect();
        assert_eq!(found, expected);
        assert_eq!((walked.links.len(), walked.entries), (200, 7 + 200 + 4 * 200));
        assert!(!walked.cut_short);
        // More than can be held is told, whoever found it.
        for folder in 200..1100 {
            let path = lab.path().join(format!("d{}/s{folder}", folder % 7));
            fs::create_dir_all(&path).unwrap();
            fs::write(path.join(".env"), "x").unwrap();
            fs::write(path.join("CLAUDE.md"), "x").unwrap();
        }
        assert!(names_in(lab.path()).cut_short);
    }

    /// One folder holds nearly everything, another almost nothing: whoever gets which, all is seen once.
    #[test]
    fn nothing_is_lost_or_seen_twice_where_one_has_more_to_do() {
        let lab = tempfile::tempdir().unwrap();
        let mut expected = Vec::new();
        for folder in 0..60 {
            fs::create_dir_all(lab.path().join(format!("small{folder}"))).unwrap();
        }
        for folder in 0..400 {
            let path = format!("large/{}/{}/{folder}", folder % 3, folder % 11);
            fs::create_dir_all(lab.path().join(&path)).unwrap();
            fs::write(lab.path().join(&path).join(".npmrc"), "x").unwrap();
            expected.push(format!("{path}/.npmrc"));
        }
        expected.sort();
        for _ in 0..50 {
            let walked = names_in(lab.path());
            let found: Vec<_> = walked.found.iter().map(|one| one.path.to_str().unwrap()).collect();
            assert_eq!(found, expected);
            assert_eq!(walked.entries, 60 + 1 + 3 + 33 + 400 + 400);
            assert!(!walked.cut_short);
        }
    }

    #[test]
    fn want_of_means_is_no_reason_to_have_seen_all() {
        assert!(is_shortage(Errno::MFILE) && is_shortage(Errno::NOMEM));
        assert!(!is_shortage(Errno::ACCESS) && !is_shortage(Errno::NOENT));
        assert_eq!((last_of(c"a/b/c"), last_of(c"c")), (c"c", c"c"));
    }

    #[test]
    fn a_walk_has_an_end() {
        let lab = tempfile::tempdir().unwrap();
        let mut folder = lab.path().to_owned();
        for _ in 0..80 {
            folder.push("d");
        }
        fs::create_dir_all(&folder).unwrap();
        assert!(names_in(lab.path()).cut_short);
    }
}
