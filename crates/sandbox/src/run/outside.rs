//! Files that are not shown inside, looked at from outside. The program says where to look; what is found is judged by the
//! path that the kernel tells of what was opened, and that very file is what a yes is about.

use std::ffi::OsString;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{
    AtFlags, FileType, FsWord, Mode, OFlags, ResolveFlags, fstat, fstatfs, openat2, statat,
};
use rustix::io::Errno;

use crate::notify::Wanted;
use crate::spec::Spec;
use crate::view::{Shows, is_credential, secrets_of, sounds_secret};

/// Rounds that a race with somebody who moves folders may cost.
const ROUNDS: usize = 8;

/// Why something is not shown, and nobody is asked.
pub(super) const CREDENTIAL: &str =
    "it holds keys, logins or a history: nobody is asked about those";
pub(crate) const MASKED: &str = "it is masked";
const NO_TEXT: &str = "its name is no text, and cannot be shown in a question";
/// Why somebody is asked.
const NOT_SHOWN: &str = "it is not shown inside";
const SOUNDS_SECRET: &str =
    "it is not shown inside. CAREFUL: its name says that it may hold a SECRET";

/// File systems whose files are no files: the kernel makes up what is in them.
const MADE_UP: &[FsWord] = &[
    0x9FA0,      // proc
    0x6265_6572, // sysfs
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x7363_6673, // securityfs
    0x0027_E0EB, // cgroup
    0x6367_7270, // cgroup2
    0x6265_6570, // configfs
    0xCAFE_4A11, // bpf
    0xDE5E_81E4, // efivarfs
    0x6165_676C, // pstore
    0x6E73_6673, // nsfs
    0xF97C_FF8C, // selinux
    0x1CD1,      // devpts
    0x4249_4E4D, // binfmt_misc
];

/// All files of the machine, on mounts of our own that cannot be written to.
#[derive(Debug)]
pub(super) struct Outside {
    root: OwnedFd,
    shows: Arc<Shows>,
    hidden: Vec<PathBuf>,
    masked: Vec<PathBuf>,
    /// Keys and logins in the home, for where links or mounts lead to them.
    secrets: Vec<PathBuf>,
}

/// What a look has found.
#[derive(Debug)]
pub(super) enum Looked {
    /// Nothing that could be shown, or that may be known of.
    Absent,
    /// Something about which nobody is asked, and why.
    Kept(PathBuf, &'static str),
    /// A file that could be shown.
    Found(Found),
}

/// A file that is there outside. It is not open yet: only held.
#[derive(Debug)]
pub(super) struct Found {
    file: OwnedFd,
    identity: (u64, u64),
    /// Its path, as the kernel tells.
    pub(super) path: PathBuf,
    /// Why it is asked about.
    pub(super) rule: &'static str,
}

impl Outside {
    pub(super) fn new(root: OwnedFd, shows: Arc<Shows>, spec: &Spec) -> Self {
        let (hidden, masked) = (spec.hidden.clone(), spec.masked.clone());
        Self { root, shows, hidden, masked, secrets: secrets_of(spec.home.as_deref()) }
    }

    /// Looks for a plain file that whoever runs this can read.
    pub(super) fn look(&self, wanted: &Wanted) -> Looked {
        self.find(wanted).unwrap_or(Looked::Absent)
    }

    fn find(&self, wanted: &Wanted) -> Option<Looked> {
        let follow = if wanted.no_follow { OFlags::NOFOLLOW } else { OFlags::empty() };
        let file = self.hold(&wanted.path, follow, ResolveFlags::empty())?;
        let found = fstat(&file).ok()?;
        let made_up = MADE_UP.contains(&fstatfs(&file).ok()?.f_type);
        let kind = FileType::from_raw_mode(found.st_mode);
        if kind != FileType::RegularFile || found.st_nlink == 0 || made_up {
            return None;
        }
        let identity = (found.st_dev, found.st_ino);
        let path = path_of(&file)?;
        // What is told must lead to the same file again, without a link on the way.
        let again = self.hold(&path, OFlags::NOFOLLOW, ResolveFlags::NO_SYMLINKS)?;
        if self.identity(&again)? != identity || self.shows.covers(&path) {
            return None;
        }
        if self.is_one_of(&self.hidden, &path, identity) || !is_readable(&file) {
            return None;
        }
        if self.is_one_of(&self.masked, &path, identity) {
            return Some(Looked::Kept(path, MASKED));
        }
        if is_credential(&path) || self.is_one_of(&self.secrets, &path, identity) {
            return Some(Looked::Kept(path, CREDENTIAL));
        }
        if path.to_str().is_none() {
            return Some(Looked::Kept(path, NO_TEXT));
        }
        let rule = if sounds_secret(&path) { SOUNDS_SECRET } else { NOT_SHOWN };
        Some(Looked::Found(Found { file, identity, path, rule }))
    }

    /// Opens what was asked about: that very file, if it still is what and where it was. It can only be read, and its mount
    /// lets nobody change its mode, times or attributes by the descriptor either.
    pub(super) fn open(&self, found: &Found) -> Option<OwnedFd> {
        if path_of(&found.file)? != found.path {
            return None;
        }
        let again = self.hold(&found.path, OFlags::NOFOLLOW, ResolveFlags::NO_SYMLINKS)?;
        let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::open(link_of(&found.file), flags, Mode::empty()).ok()?;
        let data = fstat(&file).ok()?;
        let plain = FileType::from_raw_mode(data.st_mode) == FileType::RegularFile;
        let read_only = rustix::fs::fstatvfs(&file).ok()?.f_flag;
        let read_only = read_only.contains(rustix::fs::StatVfsMountFlags::RDONLY);
        let same = (data.st_dev, data.st_ino) == found.identity
            && self.identity(&again)? == found.identity;
        (plain && same && read_only).then_some(file)
    }

    /// Holds what is at a path, from the root of those mounts.
    fn hold(&self, path: &Path, more: OFlags, how: ResolveFlags) -> Option<OwnedFd> {
        let flags = OFlags::PATH | OFlags::CLOEXEC | more;
        let how = how | ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        if !path.is_absolute() {
            return None;
        }
        for _ in 0..ROUNDS {
            match openat2(&self.root, path, flags, Mode::empty(), how) {
                // Somebody moves a folder on the way.
                Err(Errno::AGAIN | Errno::INTR) => {}
                held => return held.ok(),
            }
        }
        None
    }

    fn identity(&self, file: &OwnedFd) -> Option<(u64, u64)> {
        fstat(file).ok().map(|data| (data.st_dev, data.st_ino))
    }

    /// Whether a file is one of these or lies in one of them, by whatever path and mount.
    fn is_one_of(&self, these: &[PathBuf], path: &Path, identity: (u64, u64)) -> bool {
        let mut above = Vec::new();
        for folder in path.ancestors().skip(1) {
            let name = folder.strip_prefix("/").unwrap_or(folder);
            let name = if name.as_os_str().is_empty() { Path::new(".") } else { name };
            match statat(&self.root, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(data) => above.push((data.st_dev, data.st_ino)),
                // Where that cannot be told, it may be.
                Err(_) => return !these.is_empty(),
            }
        }
        these.iter().any(|one| {
            path.starts_with(one)
                || std::fs::metadata(one).is_ok_and(|data| {
                    let own = (data.dev(), data.ino());
                    own == identity || above.contains(&own)
                })
        })
    }
}

fn link_of(file: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", file.as_fd().as_raw_fd())
}

/// The path of what is held, as the kernel tells.
fn path_of(file: &OwnedFd) -> Option<PathBuf> {
    let path = rustix::fs::readlink(link_of(file), Vec::new()).ok()?.into_bytes();
    (path.first() == Some(&b'/')).then(|| OsString::from_vec(path).into())
}

/// Whether the user can read it.
fn is_readable(file: &OwnedFd) -> bool {
    rustix::fs::access(link_of(file), rustix::fs::Access::READ_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outside(folder: &Path) -> Outside {
        let root = rustix::fs::open("/", OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap();
        Outside {
            root,
            shows: Arc::new(Shows::default()),
            hidden: vec![folder.join("state")],
            masked: vec![folder.join("masked"), folder.join("one.txt")],
            secrets: secrets_of(Some(folder)),
        }
    }

    fn told(looked: Looked) -> String {
        match looked {
            Looked::Absent => "absent".to_owned(),
            Looked::Kept(path, why) => format!("{}: {why}", path.display()),
            Looked::Found(found) => format!("{}: {}", found.path.display(), found.rule),
        }
    }

    #[test]
    fn only_plain_files_are_found_and_by_their_real_path() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        let at = |name: &str| real.join(name);
        for name in ["state", "masked", ".ssh", "d"] {
            std::fs::create_dir(at(name)).unwrap();
        }
        for name in ["notes", "state/key", "masked/x", ".ssh/id", "one.txt", "my.pem"] {
            std::fs::write(at(name), "x").unwrap();
        }
        std::fs::hard_link(at("one.txt"), at("two.txt")).unwrap();
        std::os::unix::fs::symlink(at("notes"), at("link")).unwrap();
        std::os::unix::fs::symlink(at("state"), at("d/s")).unwrap();
        std::os::unix::fs::symlink(at(".ssh/id"), at("harmless")).unwrap();
        std::fs::create_dir(at("dotfiles")).unwrap();
        std::fs::write(at("dotfiles/hosts"), "x").unwrap();
        std::os::unix::fs::symlink(at("dotfiles"), at(".aws")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        let outside = outside(&real);
        let look = |path: PathBuf, no_follow: bool| {
            let program = String::new();
            told(outside.look(&Wanted { number: 0, path, no_follow, program }))
        };
        let shown = |name: &str, why: &str| format!("{}: {why}", at(name).display());
        for (name, expected) in [
            ("notes", shown("notes", NOT_SHOWN)),
            ("d/../notes", shown("notes", NOT_SHOWN)),
            ("link", shown("notes", NOT_SHOWN)),
            ("my.pem", shown("my.pem", SOUNDS_SECRET)),
            ("harmless", shown(".ssh/id", CREDENTIAL)),
            ("dotfiles/hosts", shown("dotfiles/hosts", CREDENTIAL)),
            ("masked/x", shown("masked/x", MASKED)),
            ("two.txt", shown("two.txt", MASKED)),
            ("state/key", "absent".to_owned()),
            ("d/s/key", "absent".to_owned()),
            ("pipe", "absent".to_owned()),
            ("d", "absent".to_owned()),
            ("none", "absent".to_owned()),
        ] {
            assert_eq!(look(at(name), false), expected, "{name}");
        }
        assert_eq!(look(at("link"), true), "absent");
        assert_eq!(look("notes".into(), false), "absent");
        for path in
            ["/proc/self/environ", "/proc/self/root/etc/passwd", "/sys/kernel/uevent_seqnum"]
        {
            assert_eq!(look(path.into(), false), "absent", "{path}");
        }
        // On a mount that can be written to nothing is opened.
        let wanted =
            Wanted { number: 0, path: at("notes"), no_follow: false, program: String::new() };
        let Looked::Found(found) = outside.look(&wanted) else { panic!() };
        assert!(outside.open(&found).is_none());
    }
}
