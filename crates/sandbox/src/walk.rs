//! One bounded look at the workspace for names that are guarded.

use std::ffi::CString;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, RawDir, ResolveFlags};
use rustix::io::Errno;

use crate::names::{Guard, Names};

/// Most entries that are looked at.
pub const MAX_ENTRIES: usize = 100_000;
/// Most guarded names that are found; each becomes a mount.
pub const MAX_FOUND: usize = 2_000;
/// Deepest folder that is looked into.
const DEEPEST: usize = 64;

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

/// What a walk gives.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Walked {
    /// The guarded names, each before those below it.
    pub found: Vec<Found>,
    /// How many entries were seen.
    pub entries: usize,
    /// Whether the walk ended before it had seen everything.
    pub cut_short: bool,
    /// Links and other special files with guarded names: no mount can hold them.
    pub unheld: Vec<CString>,
}

/// Looks for guarded names below `root`, which lies at the path `base`. Links are never followed, and what
/// lies below a guarded folder is not looked at.
///
/// # Errors
/// When `root` itself cannot be read.
pub fn walk(root: BorrowedFd<'_>, base: &Path, names: &Names) -> Result<Walked, Errno> {
    let base = base.as_os_str().as_bytes();
    let mut walked = Walked::default();
    let mut buffer = vec![MaybeUninit::<u8>::uninit(); 64 << 10];
    let mut first = Some(open(root, c".")?);
    let mut stack: Vec<(Vec<u8>, usize)> = vec![(Vec::new(), 0)];
    while let Some((path, depth)) = stack.pop() {
        let folder = match (first.take(), CString::new(path.clone())) {
            (Some(first), _) => first,
            // Unreadable here is unreadable there: it is the same user.
            (None, Ok(path)) => match open(root, &path) {
                Ok(folder) => folder,
                Err(_) => continue,
            },
            (None, Err(_)) => continue,
        };
        let mut entries = RawDir::new(folder.as_fd(), &mut buffer);
        while let Some(entry) = entries.next() {
            let Ok(entry) = entry else { break };
            let name = entry.file_name();
            let bytes = name.to_bytes();
            if matches!(bytes, b"." | b"..") {
                continue;
            }
            walked.entries += 1;
            if walked.entries > MAX_ENTRIES {
                walked.cut_short = true;
                return Ok(walked);
            }
            let kind = match entry.file_type() {
                FileType::Unknown => kind_of(folder.as_fd(), name),
                kind => kind,
            };
            let parent = if path.is_empty() { base } else { &path };
            let guard = match names.of(parent, bytes) {
                // A worktree's or submodule's `.git` says where its repository is.
                None if bytes == b".git" && kind == FileType::RegularFile => Some(Guard::ReadOnly),
                // Repositories of submodules.
                None if matches!(bytes, b"hooks" | b"config") && in_modules(&path) => {
                    Some(Guard::ReadOnly)
                }
                guard => guard,
            };
            match (guard, kind) {
                (Some(guard), FileType::Directory | FileType::RegularFile) => {
                    if walked.found.len() >= MAX_FOUND {
                        walked.cut_short = true;
                        return Ok(walked);
                    }
                    let folder = kind == FileType::Directory;
                    walked.found.extend(joined(&path, bytes).map(|path| Found {
                        path,
                        guard,
                        folder,
                    }));
                }
                (Some(_), _) => {
                    if walked.unheld.len() < MAX_FOUND {
                        walked.unheld.extend(joined(&path, bytes));
                    }
                }
                (None, FileType::Directory) if bytes == b"objects" && ends_with_git(&path) => {}
                (None, FileType::Directory) if depth >= DEEPEST => walked.cut_short = true,
                (None, FileType::Directory) => {
                    stack.extend(joined(&path, bytes).map(|path| (path.into_bytes(), depth + 1)));
                }
                (None, _) => {}
            }
        }
    }
    Ok(walked)
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

fn in_modules(path: &[u8]) -> bool {
    let mut parts = path.split(|byte| *byte == b'/');
    parts.any(|part| part == b".git") && parts.next() == Some(b"modules")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn names_in(folder: &std::path::Path) -> Walked {
        let root = rustix::fs::open(folder, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty());
        let mut walked = walk(root.unwrap().as_fd(), folder, &Names::standard()).unwrap();
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
                "w/.git"
            ]
        );
        assert_eq!(walked.unheld, [c"CLAUDE.md".to_owned()]);
        assert!(!walked.cut_short);
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
