//! Paths followed link by link, so that the links can be made anew.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, statat};

use super::View;

/// Most links on the way to a path.
const MOST_LINKS: usize = 40;

/// What is at a path, looked at once: most paths share their first parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    Absent,
    There(FileType, u64),
}

/// What was seen, by path.
#[derive(Debug, Default)]
pub(super) struct Looks(HashMap<Vec<u8>, Seen>);

impl Looks {
    fn at(&mut self, path: &[u8]) -> Seen {
        if let Some(seen) = self.0.get(path) {
            return *seen;
        }
        let seen = match statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(data) => {
                let size = u64::try_from(data.st_size).unwrap_or(u64::MAX);
                Seen::There(FileType::from_raw_mode(data.st_mode), size)
            }
            Err(_) => Seen::Absent,
        };
        self.0.insert(path.to_owned(), seen);
        seen
    }
}

/// Something that is there.
#[derive(Debug)]
pub(super) struct Real {
    pub(super) path: PathBuf,
    pub(super) kind: FileType,
    pub(super) size: u64,
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
        let mut links = Vec::new();
        let mut real: Vec<u8> = Vec::with_capacity(path.as_os_str().len());
        let mut last = Seen::There(FileType::Directory, 0);
        let mut left: Vec<OsString> = parts(path).map(OsStr::to_owned).collect();
        left.reverse();
        while let Some(part) = left.pop() {
            let end = real.len();
            if part == ".." {
                let above = real.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
                real.truncate(above);
                last = Seen::There(FileType::Directory, 0);
                continue;
            }
            real.push(b'/');
            real.extend_from_slice(part.as_bytes());
            last = self.looks.at(&real);
            match last {
                Seen::Absent => return None,
                Seen::There(FileType::Symlink, _) => {}
                Seen::There(..) => continue,
            }
            let link = PathBuf::from(OsString::from_vec(real.clone()));
            let target = link.read_link().ok()?;
            real.truncate(if target.is_absolute() { 0 } else { end });
            last = Seen::There(FileType::Directory, 0);
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
        match last {
            Seen::There(kind, size) => {
                let path = PathBuf::from(OsString::from_vec(real));
                Some((Real { path, kind, size }, links))
            }
            Seen::Absent => None,
        }
    }
}

pub(super) fn parts(path: &Path) -> impl Iterator<Item = &OsStr> {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name),
        Component::ParentDir => Some(OsStr::new("..")),
        _ => None,
    })
}
