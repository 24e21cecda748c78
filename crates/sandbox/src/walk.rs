//! One bounded look at the workspace for names that are guarded.

use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, RawDir, ResolveFlags};
use rustix::io::Errno;

use crate::names::{Guard, Names};
use crate::notify::git::{self, Part};
use crate::notify::names::parts_of;

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
    /// How many entries were seen.
    pub entries: usize,
    /// Whether the walk ended before it had seen everything.
    pub cut_short: bool,
}

/// A folder that is still to be looked at.
struct Next {
    path: Vec<u8>,
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
    let base = base.file_name().unwrap_or_default().as_bytes();
    let first = open(root, c".")?;
    let mut walker = Walker::new(root, base, names);
    let whole = Next { path: Vec::new(), depth: 0, inside: whole };
    walker.folder(Some(first), whole);
    walker.go_on(ALONE);
    if walker.stack.len() < 2 {
        walker.go_on(usize::MAX);
        return Ok(walker.walked);
    }
    // There is much to see: two look.
    let mut other = Walker::new(root, base, names);
    let all = std::mem::take(&mut walker.stack);
    for (place, next) in all.into_iter().enumerate() {
        let half = if place % 2 == 0 { &mut walker } else { &mut other };
        half.stack.push(next);
    }
    let joined = std::thread::scope(|scope| {
        let far = std::thread::Builder::new().spawn_scoped(scope, || other.go_on(usize::MAX));
        walker.go_on(usize::MAX);
        far.map(std::thread::ScopedJoinHandle::join)
    });
    match joined {
        Ok(Ok(())) => {}
        // What was not seen is not guarded.
        Ok(Err(_)) => return Err(Errno::AGAIN),
        // There may be no room for one more thread.
        Err(_) => other.go_on(usize::MAX),
    }
    let mut walked = walker.walked;
    walked.join(other.walked);
    Ok(walked)
}

/// A walk on its way.
struct Walker<'a> {
    root: BorrowedFd<'a>,
    /// Name of the folder that is walked.
    base: &'a [u8],
    names: &'a Names,
    walked: Walked,
    stack: Vec<Next>,
    buffer: Vec<MaybeUninit<u8>>,
}

impl<'a> Walker<'a> {
    fn new(root: BorrowedFd<'a>, base: &'a [u8], names: &'a Names) -> Self {
        let buffer = vec![MaybeUninit::uninit(); 64 << 10];
        Self { root, base, names, walked: Walked::default(), stack: Vec::new(), buffer }
    }

    /// Looks at so many folders, or all.
    fn go_on(&mut self, folders: usize) {
        for _ in 0..folders {
            let ended = self.walked.entries > MAX_ENTRIES || self.walked.is_full();
            let Some(next) = self.stack.pop().filter(|_| !ended) else { return };
            self.folder(None, next);
        }
    }

    /// Looks at one folder, which may be open already.
    fn folder(&mut self, first: Option<OwnedFd>, Next { path, depth, inside }: Next) {
        let folder = match (first, CString::new(path.clone())) {
            (Some(first), _) => first,
            // Unreadable here is unreadable there: it is the same user.
            (None, Ok(path)) => match open(self.root, &path) {
                Ok(folder) => folder,
                Err(_) => return,
            },
            (None, Err(_)) => return,
        };
        let parent = [self.base, b"/", &path].concat();
        let parts: Vec<&[u8]> = parts_of(&parent).collect();
        let in_git = git::part(&parts).0 != Part::Outside;
        let mut repository = Repository::default();
        let mut entries = RawDir::new(folder.as_fd(), &mut self.buffer);
        while let Some(entry) = entries.next() {
            let Ok(entry) = entry else { break };
            let name = entry.file_name();
            let bytes = name.to_bytes();
            if matches!(bytes, b"." | b"..") {
                continue;
            }
            self.walked.entries += 1;
            if self.walked.entries > MAX_ENTRIES {
                self.walked.cut_short = true;
                return;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => kind_of(folder.as_fd(), name),
                kind => kind,
            };
            if kind == FileType::Socket {
                self.walked.sockets.extend(joined(&path, bytes));
                continue;
            }
            if let Some(guard) = inside {
                match kind {
                    FileType::Symlink => self.walked.link(&path, bytes, guard, Vec::new()),
                    FileType::Directory if depth >= DEEPEST => self.walked.cut_short = true,
                    FileType::Directory => {
                        self.stack.extend(joined(&path, bytes).map(|path| Next {
                            path: path.into_bytes(),
                            depth: depth + 1,
                            inside,
                        }))
                    }
                    _ => {}
                }
                if self.walked.is_full() {
                    return;
                }
                continue;
            }
            if !in_git {
                repository.sees(name, kind);
            }
            let guard = self.names.of(&parent, bytes).or_else(|| {
                let whole = || [parts.as_slice(), &[bytes]].concat();
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
                (Some(guard), FileType::Symlink) => {
                    self.walked.link(&path, bytes, guard, Vec::new())
                }
                (None, FileType::Symlink) => {
                    let rest = self.names.continued(&[parts.as_slice(), &[bytes]].concat());
                    if !rest.is_empty() {
                        self.walked.link(&path, bytes, Guard::ReadOnly, rest);
                    }
                }
                (Some(guard), _) => {
                    let folder = kind == FileType::Directory;
                    self.walked.found.extend(joined(&path, bytes).map(|path| Found {
                        path,
                        guard,
                        folder,
                    }));
                    // Links in what is shown empty lead nowhere.
                    if folder && guard == Guard::ReadOnly && depth < DEEPEST {
                        self.stack.extend(joined(&path, bytes).map(|path| Next {
                            path: path.into_bytes(),
                            depth: depth + 1,
                            inside: Some(guard),
                        }));
                    }
                }
                (None, FileType::Directory) if bytes == b"objects" && ends_with_git(&path) => {}
                (None, FileType::Directory) if depth >= DEEPEST => self.walked.cut_short = true,
                (None, FileType::Directory) => {
                    self.stack.extend(joined(&path, bytes).map(|path| Next {
                        path: path.into_bytes(),
                        depth: depth + 1,
                        inside: None,
                    }));
                }
                (None, _) => {}
            }
            if self.walked.is_full() {
                return;
            }
        }
        if repository.is_one() {
            for (name, kind) in &repository.steering {
                let (name, folder) = (name.to_bytes(), *kind == FileType::Directory);
                match kind {
                    FileType::Symlink => self.walked.link(&path, name, Guard::ReadOnly, Vec::new()),
                    _ => self.walked.found.extend(joined(&path, name).map(|path| Found {
                        path,
                        guard: Guard::ReadOnly,
                        folder,
                    })),
                }
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

fn open(at: BorrowedFd<'_>, name: &std::ffi::CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    rustix::fs::openat2(at, name, flags, Mode::empty(), resolve)
}

fn kind_of(folder: BorrowedFd<'_>, name: &std::ffi::CStr) -> FileType {
    rustix::fs::statat(folder, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)
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
