//! What is known about a path once it was resolved.

use std::path::PathBuf;

/// Which file it is, whatever it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    /// The file system.
    pub device: u64,
    /// The file in it.
    pub inode: u64,
}

/// What kind of file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, where the last one was not to be followed.
    Link,
    /// A device, pipe or socket.
    Other,
    /// An open file of the agent's own process, by number: `/dev/fd/3`.
    Descriptor(u32),
    /// There is nothing there.
    Missing,
}

/// A path with every link, `.` and `..` resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathFacts {
    /// The real place, absolute.
    pub path: PathBuf,
    /// What is there.
    pub kind: FileKind,
    /// Which file it is, if there is one.
    pub identity: Option<Identity>,
    /// How many names the file has; 0 if there is none.
    pub links: u64,
    /// The directories above it that exist, the root first. Number `n` is the one that the first
    /// `n` components of the path name.
    pub ancestors: Vec<Identity>,
    /// How many components at its end do not exist.
    pub missing: usize,
    /// Whether any component was a link.
    pub through_link: bool,
    /// The last component, folded; see [`super::fold_name`].
    pub folded_name: String,
}

impl PathFacts {
    /// Whether there is something.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.kind != FileKind::Missing
    }

    /// The directory that it lies in, or would, if that exists.
    #[must_use]
    pub fn parent(&self) -> Option<Identity> {
        self.ancestors.last().copied().filter(|_| self.missing <= 1)
    }
}

/// How a path may be read.
///
/// The kernel follows links before it goes up by `..`; many programs take `x/..` out of the text
/// before they open anything. Where the two lead to different places, both count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readings {
    /// As the kernel reads it.
    pub literal: PathFacts,
    /// As a program reads it that cleans paths up, if that is another place.
    pub cleaned: Option<PathFacts>,
}

impl Readings {
    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &PathFacts> {
        std::iter::once(&self.literal).chain(&self.cleaned)
    }
}

impl From<PathFacts> for Readings {
    fn from(literal: PathFacts) -> Self {
        Self { literal, cleaned: None }
    }
}
