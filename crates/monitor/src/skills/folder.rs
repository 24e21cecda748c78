//! A skill's folder, read into memory once, within limits and without following links.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, fstat, openat, readlinkat, statat};
use wardkeep_guard::skill::{Content, Entry, Limits, Tree};

// Without waiting: a pipe that was put in place of a file would never open.
pub(super) const SAFE: OFlags = OFlags::RDONLY
    .union(OFlags::CLOEXEC)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::NOFOLLOW);

/// Reads a skill: a folder, or a single file. What cannot be read is a gap, and never passed over.
#[must_use]
pub fn read(root: &Path, limits: &Limits) -> Tree {
    let mut reader = Reader { limits, tree: Tree::default(), left: limits.bytes };
    match statat(CWD, root, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => {
            match openat(CWD, root, SAFE | OFlags::DIRECTORY, Mode::empty()) {
                Ok(folder) => reader.folder(folder, "", 0),
                Err(_) => reader.tree.gap("", "it cannot be opened"),
            }
        }
        Ok(_) => {
            let name = root.file_name().map(|name| name.to_string_lossy().into_owned());
            let opened = openat(CWD, root, SAFE, Mode::empty());
            reader.file(opened, &name.unwrap_or_default());
        }
        Err(_) => reader.tree.gap("", "it cannot be opened"),
    }
    let mut tree = reader.tree;
    tree.entries.sort_by(|one, two| one.path.cmp(&two.path));
    tree
}

/// The same of what was opened, with [`SAFE`], by someone else.
pub(super) fn read_opened(opened: OwnedFd, name: &str, limits: &Limits) -> Tree {
    let mut reader = Reader { limits, tree: Tree::default(), left: limits.bytes };
    match fstat(&opened) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => {
            reader.folder(opened, "", 0);
        }
        _ => reader.file(Ok(opened), name),
    }
    let mut tree = reader.tree;
    tree.entries.sort_by(|one, two| one.path.cmp(&two.path));
    tree
}

struct Reader<'l> {
    limits: &'l Limits,
    tree: Tree,
    left: usize,
}

impl Reader<'_> {
    /// All below a folder that is held open: whoever moves folders about meanwhile leads nowhere.
    fn folder(&mut self, folder: OwnedFd, prefix: &str, depth: usize) {
        if depth > self.limits.depth {
            return self.tree.gap(prefix, "folders lie too deep in folders");
        }
        for name in self.names(&folder, prefix) {
            let Some(shown) = name.to_str() else {
                self.tree.gap(prefix, "a name is no UTF-8");
                continue;
            };
            let shown =
                if prefix.is_empty() { shown.to_owned() } else { format!("{prefix}/{shown}") };
            let Ok(stat) = statat(&folder, &*name, AtFlags::SYMLINK_NOFOLLOW) else {
                self.tree.gap(shown, "it cannot be opened");
                continue;
            };
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => {
                    match openat(&folder, &*name, SAFE | OFlags::DIRECTORY, Mode::empty()) {
                        Ok(inner) => self.folder(inner, &shown, depth + 1),
                        Err(_) => self.tree.gap(shown, "it cannot be opened"),
                    }
                }
                FileType::Symlink => {
                    let target = readlinkat(&folder, &*name, Vec::new());
                    match target.ok().and_then(|target| target.into_string().ok()) {
                        Some(target) => self.add(shown, Content::Link(target), false),
                        None => self.tree.gap(shown, "it is a link that cannot be read"),
                    }
                }
                FileType::RegularFile => {
                    self.file(openat(&folder, &*name, SAFE, Mode::empty()), &shown);
                }
                _ => self.add(shown, Content::Special, false),
            }
        }
    }

    /// The names in a folder, in order; fewer than there are, and a gap, where there are too many.
    fn names(&mut self, folder: &OwnedFd, prefix: &str) -> Vec<OsString> {
        let mut names = Vec::new();
        let Ok(entries) = Dir::read_from(folder.as_fd()) else {
            self.tree.gap(prefix, "it cannot be listed");
            return names;
        };
        for entry in entries {
            let Ok(entry) = entry else {
                self.tree.gap(prefix, "it cannot be listed");
                break;
            };
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            if self.tree.entries.len() + names.len() >= self.limits.files {
                self.tree.gap(prefix, "there are more files than are read");
                break;
            }
            names.push(OsString::from_vec(name.to_vec()));
        }
        names.sort_by(|one: &OsString, two: &OsString| {
            OsStr::as_bytes(one).cmp(OsStr::as_bytes(two))
        });
        names
    }

    fn add(&mut self, path: String, content: Content, executable: bool) {
        self.tree.entries.push(Entry { path, content, executable });
    }

    fn file(&mut self, opened: rustix::io::Result<OwnedFd>, shown: &str) {
        let Ok((file, stat)) = opened.and_then(|file| fstat(&file).map(|stat| (file, stat))) else {
            return self.tree.gap(shown, "it cannot be opened");
        };
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return self.add(shown.to_owned(), Content::Special, false);
        }
        let most = self.left.min(self.limits.file);
        let mut bytes = Vec::new();
        if File::from(file).take(most as u64 + 1).read_to_end(&mut bytes).is_err() {
            return self.tree.gap(shown, "it cannot be read to its end");
        }
        if bytes.len() > most {
            bytes.truncate(most);
            self.tree.gap(shown, "it is larger than is read");
        }
        self.left -= bytes.len();
        self.add(shown.to_owned(), Content::File(bytes), stat.st_mode & 0o111 != 0);
    }
}
