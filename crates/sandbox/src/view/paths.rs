//! Paths followed link by link, so that the links can be made anew.

use std::path::{Component, Path, PathBuf};

use super::View;

/// Most links on the way to a path.
const MOST_LINKS: usize = 40;

impl View {
    /// The real path; links on the way to it are noted. `None` where it is not there.
    pub(super) fn follow(&mut self, path: &Path) -> Option<PathBuf> {
        let mut links = 0;
        let mut real = PathBuf::from("/");
        let mut left: Vec<PathBuf> = parts(path).collect();
        left.reverse();
        while let Some(part) = left.pop() {
            if part.as_os_str() == ".." {
                real.pop();
                continue;
            }
            let next = real.join(&part);
            let data = next.symlink_metadata().ok()?;
            if !data.is_symlink() {
                real = next;
                continue;
            }
            links += 1;
            if links > MOST_LINKS {
                return None;
            }
            let target = next.read_link().ok()?;
            self.links.insert(next, target.clone());
            if target.is_absolute() {
                real = PathBuf::from("/");
            }
            let mut more: Vec<PathBuf> = parts(&target).collect();
            more.reverse();
            left.extend(more);
        }
        Some(real)
    }
}

pub(super) fn parts(path: &Path) -> impl Iterator<Item = PathBuf> + '_ {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(PathBuf::from(name)),
        Component::ParentDir => Some(PathBuf::from("..")),
        _ => None,
    })
}
