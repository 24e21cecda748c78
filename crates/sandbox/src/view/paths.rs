//! Paths followed link by link, so that the links can be made anew.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, statat};

use super::View;
use super::settings::Stamp;

/// Most links on the way to a path.
const MOST_LINKS: usize = 40;

/// What is at a path, looked at once: most paths share their first parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    Absent,
    There(FileType, Stamp),
}

/// What was seen, by path.
#[derive(Debug)]
pub(super) struct Looks {
    seen: HashMap<Vec<u8>, Seen>,
    /// A folder to which no link leads: most paths lie where the one before does.
    folder: Vec<u8>,
}

impl Default for Looks {
    fn default() -> Self {
        // As many as are looked at for an ordinary home.
        Self { seen: HashMap::with_capacity(400), folder: Vec::new() }
    }
}

impl Looks {
    /// Follows a path to which no link leads; `None` where there is one. What is not there is nothing.
    fn plain(&mut self, path: &Path) -> Option<Option<Real>> {
        let bytes = path.as_os_str().as_bytes();
        let mut real: Vec<u8> = Vec::with_capacity(bytes.len() + 1);
        let rest =
            bytes.strip_prefix(self.folder.as_slice()).and_then(|rest| rest.strip_prefix(b"/"));
        let known = rest.filter(|_| !self.folder.is_empty());
        if known.is_some() {
            real.extend_from_slice(&self.folder);
        }
        let mut last = (FileType::Directory, None);
        for part in parts(known.map_or(path, |rest| Path::new(OsStr::from_bytes(rest)))) {
            if part == ".." {
                return None;
            }
            real.push(b'/');
            real.extend_from_slice(part.as_bytes());
            match self.at(&real) {
                Seen::Absent if known.is_none() => {
                    self.keep_folder(&real);
                    return Some(None);
                }
                Seen::Absent => return Some(None),
                Seen::There(FileType::Symlink, _) => return None,
                Seen::There(kind, stamp) => last = (kind, Some(stamp)),
            }
        }
        if known.is_none() {
            self.keep_folder(&real);
        }
        if real.is_empty() {
            real.push(b'/');
        }
        let (kind, stamp) = last;
        Some(Some(Real { path: PathBuf::from(OsString::from_vec(real)), kind, stamp }))
    }

    /// Remembers the folder that something lies in.
    fn keep_folder(&mut self, path: &[u8]) {
        let above = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        self.folder.clear();
        self.folder.extend_from_slice(&path[..above]);
    }

    fn at(&mut self, path: &[u8]) -> Seen {
        if let Some(seen) = self.seen.get(path) {
            return *seen;
        }
        let seen = match statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(data) => Seen::There(FileType::from_raw_mode(data.st_mode), Stamp::of(&data)),
            Err(_) => Seen::Absent,
        };
        self.seen.insert(path.to_owned(), seen);
        seen
    }
}

/// Something that is there.
#[derive(Debug)]
pub(super) struct Real {
    pub(super) path: PathBuf,
    pub(super) kind: FileType,
    /// None where it was not looked at by this path: a folder above others.
    pub(super) stamp: Option<Stamp>,
}

impl View {
    /// The real path; links on the way to it are noted. `None` where it is not there.
    pub(super) fn follow(&mut self, path: &Path) -> Option<Real> {
        let (real, links) = self.resolve(path)?;
        self.links.extend(links);
        Some(real)
    }

    /// The real path, and the links on the way to it. `None` where it is not there.
    pub(super) fn resolve(&mut self, path: &Path) -> Option<(Real, Vec<(PathBuf, PathBuf)>)> {
        if let Some(real) = self.looks.plain(path) {
            return Some((real?, Vec::new()));
        }
        let mut links = Vec::new();
        let mut real: Vec<u8> = Vec::with_capacity(path.as_os_str().len());
        let mut last = (FileType::Directory, None);
        let mut left: Vec<OsString> = parts(path).map(OsStr::to_owned).collect();
        left.reverse();
        while let Some(part) = left.pop() {
            let end = real.len();
            if part == ".." {
                let above = real.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
                real.truncate(above);
                last = (FileType::Directory, None);
                continue;
            }
            real.push(b'/');
            real.extend_from_slice(part.as_bytes());
            match self.looks.at(&real) {
                Seen::Absent => return None,
                Seen::There(FileType::Symlink, _) => {}
                Seen::There(kind, stamp) => {
                    last = (kind, Some(stamp));
                    continue;
                }
            }
            let link = PathBuf::from(OsString::from_vec(real.clone()));
            let target = link.read_link().ok()?;
            real.truncate(if target.is_absolute() { 0 } else { end });
            last = (FileType::Directory, None);
            let more: Vec<OsString> = parts(&target).map(OsStr::to_owned).collect();
            left.extend(more.into_iter().rev());
            links.push((link, target));
            if links.len() > MOST_LINKS {
                return None;
            }
        }
        if real.is_empty() {
            real.push(b'/');
        }
        let (kind, stamp) = last;
        Some((Real { path: PathBuf::from(OsString::from_vec(real)), kind, stamp }, links))
    }
}

pub(super) fn parts(path: &Path) -> impl Iterator<Item = &OsStr> {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name),
        Component::ParentDir => Some(OsStr::new("..")),
        _ => None,
    })
}
