//! Which names are protected, and where.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::names::{self, Guard, Hit};

/// Below one of these lie the packages of others, as they were packed. Nothing takes a name there for
/// its own settings.
const PACKAGES: [&str; 3] = ["node_modules", "site-packages", "dist-packages"];

/// Protected names, and where they count.
#[derive(Debug, Clone)]
pub struct Names {
    table: names::Names,
    roots: Vec<PathBuf>,
    free: Vec<PathBuf>,
    held: Vec<PathBuf>,
    snapshots: Vec<PathBuf>,
}

impl Default for Names {
    fn default() -> Self {
        Self::new()
    }
}

impl Names {
    /// The names that every agent, shell, editor, build and package manager obeys.
    #[must_use]
    pub fn new() -> Self {
        Self::of(names::Names::standard())
    }

    /// The names of a table.
    #[must_use]
    pub fn of(table: names::Names) -> Self {
        Self { table, roots: Vec::new(), free: Vec::new(), held: Vec::new(), snapshots: Vec::new() }
    }

    /// Protects one more name: one part or several, without wildcards, at any depth.
    #[must_use]
    pub fn protect(mut self, name: &str) -> Self {
        if !self.table.add(name, Guard::ReadOnly)
            && let Ok(pattern) = name.parse()
        {
            self.table.add_pattern(pattern);
        }
        self
    }

    /// Protects a name no more.
    #[must_use]
    pub fn release(mut self, name: &str) -> Self {
        self.table.release(name);
        self
    }

    /// A workspace, or another folder that may be written: what lies above it does not count as part of a
    /// name, nor does its own name alone. Its real path.
    #[must_use]
    pub fn root(mut self, path: impl Into<PathBuf>) -> Self {
        self.roots.push(path.into());
        self
    }

    /// A place where every name may be, by its real path.
    #[must_use]
    pub fn free(mut self, path: impl Into<PathBuf>) -> Self {
        self.free.push(path.into());
        self
    }

    /// Protects what is, or would be, at a real path, and all below it: a protected name is a link to it.
    #[must_use]
    pub fn hold(mut self, path: impl Into<PathBuf>) -> Self {
        self.held.push(path.into());
        self
    }

    /// A folder, by its real path, in which repositories may have one of the [roots](Self::root) for their working tree.
    #[must_use]
    pub fn snapshots(mut self, path: impl Into<PathBuf>) -> Self {
        self.snapshots.push(path.into());
        self
    }

    /// Whether a repository at a path may have another for its working tree. It must be written as the root is: what is
    /// below could become a link.
    pub(super) fn is_snapshot(&self, repository: &[u8], work: &[u8]) -> bool {
        let is = |root: &PathBuf| root.as_os_str().as_bytes() == work;
        self.snapshots.iter().any(|place| is_below(repository, place.as_os_str().as_bytes()))
            && self.roots.iter().any(is)
    }

    /// As [`Self::hold`], for several.
    pub(crate) fn hold_all(&mut self, paths: Vec<PathBuf>) {
        self.held.extend(paths);
    }

    /// Whether every name may be at a path. A workspace inside of a free place is not free.
    pub(super) fn is_free(&self, path: &[u8]) -> bool {
        let free = deepest(&self.free, path);
        free.is_some() && free >= deepest(&self.roots, path)
    }

    /// Whether a path lies beyond all that may be written.
    pub(super) fn is_outside(&self, path: &[u8]) -> bool {
        deepest(&self.roots, path).is_none() && deepest(&self.free, path).is_none()
    }

    /// Whether a protected name leads to a path, or to something above it.
    pub(super) fn is_held(&self, path: &[u8]) -> bool {
        self.held.iter().any(|held| is_below(path, held.as_os_str().as_bytes()))
    }

    /// Whether a protected name leads to something below a path.
    pub(super) fn holds_below(&self, path: &[u8]) -> bool {
        self.held.iter().any(|held| is_below(held.as_os_str().as_bytes(), path))
    }

    /// The parts of a path that count.
    pub(super) fn counted<'a>(&self, path: &'a [u8]) -> Counted<'a> {
        let parts = parts_of(path).collect();
        match deepest(&self.roots, path) {
            Some(depth) if depth > 0 => Counted { parts, above: depth - 1, first: 1 },
            _ => Counted { parts, above: 0, first: 0 },
        }
    }

    /// The first protected name in a path.
    pub(super) fn find(&self, counted: &Counted<'_>) -> Option<Hit> {
        self.table.find(counted.parts(), counted.first)
    }

    /// Whether names that are protected elsewhere may be in a folder at a path.
    pub(super) fn is_looser(&self, counted: &Counted<'_>) -> bool {
        self.table.is_looser(counted.parts())
    }

    /// Whether names that are protected at a path may be in a folder at another.
    pub(super) fn is_looser_than(&self, there: &Counted<'_>, here: &Counted<'_>) -> bool {
        self.table.is_looser_than(there.parts(), here.parts())
    }

    /// What would have to lie in a directory at a path, for a protected name to begin above it and
    /// to end in it.
    pub(super) fn continued(&self, counted: &Counted<'_>) -> Vec<PathBuf> {
        // The workspace itself is where it is.
        if counted.parts().len() <= counted.first {
            return Vec::new();
        }
        let found = self.table.continued(counted.parts()).into_iter();
        found.map(|tail| PathBuf::from(std::ffi::OsStr::from_bytes(&tail))).collect()
    }
}

/// A path below its workspace.
#[derive(Debug, Clone)]
pub(super) struct Counted<'a> {
    parts: Vec<&'a [u8]>,
    /// Parts that do not count.
    above: usize,
    /// The first part that a name may end with: 1 where the first that counts is the workspace's own.
    pub(super) first: usize,
}

impl<'a> Counted<'a> {
    /// The parts that count.
    pub(super) fn parts(&self) -> &[&'a [u8]] {
        &self.parts[self.above.min(self.parts.len())..]
    }

    /// The path up to and with the part `at`.
    pub(super) fn up_to(&self, at: usize) -> PathBuf {
        let mut path = PathBuf::from("/");
        let end = (self.above + at + 1).min(self.parts.len());
        path.extend(self.parts[..end].iter().map(|part| std::ffi::OsStr::from_bytes(part)));
        path
    }

    /// Whether it lies in a folder of packages, before its part `at`.
    pub(super) fn is_package(&self, at: usize) -> bool {
        let parts = self.parts().iter().take(at).skip(self.first);
        let mut parts = parts;
        parts.any(|part| is_package(part))
    }
}

/// Whether a folder of this name holds the packages of others.
pub(crate) fn is_package(name: &[u8]) -> bool {
    PACKAGES.iter().any(|known| known.as_bytes() == name)
}

/// The parts of a path.
pub(crate) fn parts_of(path: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    path.split(|byte| *byte == b'/').filter(|part| !part.is_empty())
}

/// Whether a real path is another one, or lies below it.
pub(super) fn is_below(path: &[u8], above: &[u8]) -> bool {
    let rest = path.strip_prefix(above);
    rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'/' || above.ends_with(b"/"))
}

fn deepest(places: &[PathBuf], path: &[u8]) -> Option<usize> {
    let above = places.iter().map(|place| place.as_os_str().as_bytes());
    above.filter(|place| is_below(path, place)).map(|place| parts_of(place).count()).max()
}

/// A real path as bytes.
pub(super) fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_places_of_names_count() {
        let names = Names::new().root("/h/.claude/ws").free("/h/.claude").free("/tmp");
        assert!(names.is_free(b"/tmp/x") && names.is_free(b"/h/.claude/x"));
        assert!(!names.is_free(b"/h/.claude/ws/x") && !names.is_free(b"/tmpx/x"));
        assert_eq!(names.counted(b"/h/.claude/ws/x").parts(), [b"ws".as_slice(), b"x"]);
        assert_eq!(names.counted(b"/other").parts(), [b"other".as_slice()]);
    }

    #[test]
    fn a_folder_of_an_agent_holds_its_own_things_but_not_its_settings() {
        let names = Names::new().root("/h/.claude").root("/h/ws").free("/h");
        let found =
            |path: &[u8]| !names.is_free(path) && names.find(&names.counted(path)).is_some();
        assert!(found(b"/h/.claude/settings.json") && found(b"/h/.claude/hooks/x"));
        assert!(!found(b"/h/.claude/todos/x") && found(b"/h/ws/.claude/todos/x"));
        assert!(!found(b"/h/x/.claude"));
    }

    #[test]
    fn what_links_lead_to_is_held() {
        let names = Names::new().root("/w").hold("/w/docs/a.md");
        assert!(names.is_held(b"/w/docs/a.md") && names.is_held(b"/w/docs/a.md/x"));
        assert!(!names.is_held(b"/w/docs/a.mdx") && !names.is_held(b"/w/docs"));
        assert!(names.holds_below(b"/w/docs") && !names.holds_below(b"/w/doc"));
    }
}
