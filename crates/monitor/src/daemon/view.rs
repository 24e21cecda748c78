//! What whoever asks sees of the files, looked at from outside.
//!
//! A confined process reaches the daemon through its socket, and the daemon sees all files of its user.
//! So that it opens nothing for a process that the process could not open itself, a path is looked up
//! twice: here, and below the root of that process. Both have to be the same file.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, ResolveFlags, Stat, StatVfsMountFlags, StatxFlags, fstat, fstatvfs,
    openat, openat2, readlinkat, statat, statx,
};
use rustix::io::Errno;

/// How often a look is repeated that the kernel could not finish because something was moved meanwhile.
const AGAIN: usize = 8;
/// Longer than any `/proc/PID/status`.
const LONGEST_STATUS: u64 = 1 << 16;

/// A process, held by its folder in `/proc`: another one that gets its number later is not found there.
#[derive(Debug, Clone)]
pub struct View {
    process: Option<Arc<OwnedFd>>,
}

/// How a process sees the files.
#[derive(Debug)]
pub enum Sight {
    /// As this one does.
    Same,
    /// In the same namespaces as this one, but held by system call filters, and so perhaps by rules on
    /// files, that this one is not held by.
    Held,
    /// In its own way, below this root.
    Other(Root),
    /// It has ended, or does not let itself be looked at.
    Unknown,
}

impl View {
    /// Of a process that is connected.
    pub(super) fn of(pid: i32) -> Self {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let process = openat(CWD, format!("/proc/{pid}"), flags, Mode::empty());
        Self { process: process.ok().map(Arc::new) }
    }

    /// How the process sees the files now. It may have moved since it connected.
    #[must_use]
    pub fn sight(&self) -> Sight {
        self.process.as_ref().and_then(|process| look(process.as_fd())).unwrap_or(Sight::Unknown)
    }
}

fn look(process: BorrowedFd<'_>) -> Option<Sight> {
    let own = open_folder(CWD, "/proc/self").ok()?;
    let namespaces = |of: BorrowedFd<'_>| -> Option<[_; 2]> {
        let name = |kind: &str| readlinkat(of, kind, Vec::new()).ok();
        Some([name("ns/mnt")?, name("ns/user")?])
    };
    let theirs = namespaces(process)?;
    let same = theirs == namespaces(own.as_fd())?;
    // The kernel leads to the directory itself here, whatever it is called.
    let root = openat(process, "root", FOLDER, Mode::empty()).ok()?;
    let here = statat(CWD, "/", AtFlags::empty()).ok()?;
    if !same || identity(&fstat(&root).ok()?) != identity(&here) {
        let mounts = mounts(&theirs[0].to_string_lossy(), &root);
        return Some(Sight::Other(Root::new(root, &mounts)));
    }
    let (theirs, ours) = (filters(process)?, filters(own.as_fd())?);
    Some(if theirs > ours { Sight::Held } else { Sight::Same })
}

/// A name for the mounts that a process sees: the kernel's for the namespace, which another one may get
/// later, with the number of the mount of its root, which none does since Linux 6.8.
fn mounts(namespace: &str, root: &OwnedFd) -> String {
    let unique = StatxFlags::from_bits_retain(STATX_MNT_ID_UNIQUE);
    match statx(root, "", AtFlags::EMPTY_PATH, unique) {
        Ok(told) if told.stx_mask & STATX_MNT_ID_UNIQUE != 0 => {
            format!("{namespace}/{}", told.stx_mnt_id)
        }
        _ => namespace.to_owned(),
    }
}

/// Asks for a number of a mount that is used once.
const STATX_MNT_ID_UNIQUE: u32 = 0x4000;

/// How many system call filters hold a process.
fn filters(process: BorrowedFd<'_>) -> Option<u64> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = openat(process, "status", flags, Mode::empty()).ok()?;
    let mut status = String::new();
    File::from(file).take(LONGEST_STATUS).read_to_string(&mut status).ok()?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.strip_prefix(':')?.trim().parse::<u64>().ok()
    };
    // Kernels before 5.9 tell only whether there are any.
    field("Seccomp_filters").or_else(|| field("Seccomp"))
}

const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

fn open_folder(at: impl AsFd, path: &str) -> rustix::io::Result<OwnedFd> {
    openat(at, path, FOLDER, Mode::empty())
}

/// The root of another process.
#[derive(Debug, Clone)]
pub struct Root {
    folder: Arc<OwnedFd>,
    mounts: Arc<str>,
}

/// What a process may do to something that it sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// Nothing: it does not see it, or sees something else there.
    None,
    /// Look at it.
    Read,
    /// Change it, as far as its mount says.
    Write,
}

impl Root {
    fn new(folder: OwnedFd, mounts: &str) -> Self {
        Self { folder: Arc::new(folder), mounts: mounts.into() }
    }

    /// A folder as the root of a process with mounts of that name.
    #[cfg(test)]
    pub(crate) fn at(folder: &Path, mounts: &str) -> Self {
        Self::new(openat(CWD, folder, FOLDER, Mode::empty()).unwrap(), mounts)
    }

    /// A name for the mounts of the process. Before Linux 6.8 it may be another's after all processes that
    /// have it have ended.
    #[must_use]
    pub fn mounts(&self) -> &str {
        &self.mounts
    }

    /// What may be done to the file or folder that stands at a path here; links are followed, each side
    /// in its own way. What cannot be looked at is not seen.
    #[must_use]
    pub fn reach(&self, path: &Path) -> Reach {
        self.find(path).map_or(Reach::None, |(reach, _)| reach)
    }

    /// The real path here of what both see at a path.
    #[must_use]
    pub fn real(&self, path: &Path) -> Option<PathBuf> {
        let (_, here) = self.find(path)?;
        let text =
            readlinkat(CWD, format!("/proc/self/fd/{}", here.as_raw_fd()), Vec::new()).ok()?;
        let real = PathBuf::from(OsString::from_vec(text.into_bytes()));
        real.is_absolute().then_some(real)
    }

    /// What is at a path here, held, where the process sees the same there.
    fn find(&self, path: &Path) -> Option<(Reach, OwnedFd)> {
        let here = openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
        let there = self.open(path, OFlags::PATH).ok()?;
        if identity(&fstat(&there).ok()?) != identity(&fstat(&here).ok()?) {
            return None;
        }
        let read_only = fstatvfs(&there).ok()?.f_flag.contains(StatVfsMountFlags::RDONLY);
        Some((if read_only { Reach::Read } else { Reach::Write }, here))
    }

    /// Whether a name means the same here and there: one file, or nothing. A link at its end is one; behind
    /// any other nothing is looked for, so that none leads to what is here and not there.
    #[must_use]
    pub fn agrees(&self, path: &Path) -> bool {
        let gone = |errno: Errno| match errno {
            Errno::NOENT | Errno::NOTDIR => Ok(None),
            other => Err(other),
        };
        if !path.is_absolute() {
            return false;
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let here = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS);
        let there = self.open(path, flags);
        let identity = |file: rustix::io::Result<OwnedFd>| {
            file.and_then(|file| fstat(&file)).map(|stat| Some(identity(&stat))).or_else(gone)
        };
        match (identity(here), identity(there)) {
            (Ok(here), Ok(there)) => here == there,
            _ => false,
        }
    }

    /// Opens what the process sees at a path, without ever leaving its root.
    pub(crate) fn open(&self, path: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        if !path.is_absolute() {
            return Err(Errno::INVAL);
        }
        let below: PathBuf = path.components().filter(|one| *one != Component::RootDir).collect();
        let below = if below.as_os_str().is_empty() { Path::new(".") } else { &below };
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let mut tried = 0;
        loop {
            tried += 1;
            match openat2(&self.folder, below, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
                Err(Errno::AGAIN | Errno::INTR) if tried < AGAIN => {}
                opened => return opened,
            }
        }
    }
}

fn identity(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn own() -> Root {
        below(Path::new("/"))
    }

    fn below(path: &Path) -> Root {
        Root::at(path, "mnt:[1]")
    }

    #[test]
    fn this_process_sees_what_it_sees() {
        let pid = i32::try_from(std::process::id()).unwrap();
        assert!(matches!(View::of(pid).sight(), Sight::Same));
        let lab = tempfile::tempdir().unwrap();
        assert_eq!(own().reach(lab.path()), Reach::Write);
        let lab = lab.path().canonicalize().unwrap();
        assert!(own().agrees(&lab) && own().agrees(&lab.join("none")));
        symlink("/", lab.join("link")).unwrap();
        assert!(own().agrees(&lab.join("link")), "the link itself");
        for name in ["link/etc", "link/none"] {
            assert!(!own().agrees(&lab.join(name)), "{name}");
        }
        assert_eq!(own().reach(&lab.join("none")), Reach::None);
        assert_eq!(own().reach(Path::new("relative")), Reach::None);
    }

    #[test]
    fn a_process_that_has_ended_is_not_looked_at() {
        assert!(matches!(View::of(0).sight(), Sight::Unknown));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let view = View::of(i32::try_from(child.id()).unwrap());
        child.wait().unwrap();
        assert!(matches!(view.sight(), Sight::Unknown));
    }

    #[test]
    fn another_root_shows_what_is_below_it_and_no_link_leads_out() {
        let lab = tempfile::tempdir().unwrap();
        let lab = lab.path().canonicalize().unwrap();
        let secret = lab.join("secret");
        fs::create_dir_all(&secret).unwrap();
        let root = lab.join("root");
        // The same names are there, and something else behind each.
        let fake = root.join(secret.strip_prefix("/").unwrap());
        fs::create_dir_all(&fake).unwrap();
        assert_eq!(below(&root).reach(&secret), Reach::None);
        assert!(!below(&root).agrees(&secret));
        fs::remove_dir(&fake).unwrap();
        for target in [secret.as_path(), Path::new("/proc/self/root"), Path::new("/proc/self/cwd")]
        {
            symlink(target, &fake).unwrap();
            assert_eq!(below(&root).reach(&secret), Reach::None, "{}", target.display());
            fs::remove_file(&fake).unwrap();
        }
        let up = root.join("../secret");
        assert_eq!(below(&root).reach(&up), Reach::None);
        assert!(!below(&root).agrees(&up));
    }
}
