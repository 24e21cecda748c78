//! Copies of the machine's settings that are kept between runs: one mount in place of many copies.
//!
//! They are those of this start of the machine alone, so that nothing half written is found after a crash, and only of
//! files that have not changed for a moment, so that their times tell whether they have since. A folder of copies is
//! never changed; one of other files gets another name.

use std::ffi::{CString, OsStr};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt,
};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{FlockOperation, OFlags, Stat};
use sha2::{Digest as _, Sha256};

use super::plan::{Mount, Plan, Source};
use crate::child::LARGEST_COPY;
use crate::sys::{NO_DEV, NO_SUID, READ_ONLY};
use crate::walk::keeps_times;

/// What is kept, from the root on.
const WHAT: &str = "etc";
/// What the copies are of.
const MANIFEST: &str = "manifest";
/// How long a file must have been as it is.
const SETTLED: Duration = Duration::from_secs(2);
/// How long a folder stays that nobody uses.
const STAYS: Duration = Duration::from_secs(24 * 60 * 60);
/// Names of those that are not done begin so.
const UNDONE: &str = ".new-";

/// Where copies of the machine's settings are kept: a folder that nobody else can write to.
#[derive(Debug, Clone)]
pub struct SettingsFolder {
    path: PathBuf,
    boot: [u8; 16],
    now: SystemTime,
}

impl SettingsFolder {
    /// In a folder, which is made when it is needed. `boot` tells this start of the machine from others.
    #[must_use]
    pub fn new(path: PathBuf, boot: [u8; 16], now: SystemTime) -> Self {
        Self { path, boot, now }
    }
}

/// By which a file is known again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) size: u64,
    device: u64,
    number: u64,
    seconds: i64,
    nanoseconds: u64,
}

impl Stamp {
    #[expect(clippy::unnecessary_cast, reason = "these are other types on other machines")]
    pub(super) fn of(data: &Stat) -> Self {
        Self {
            size: u64::try_from(data.st_size).unwrap_or(u64::MAX),
            device: data.st_dev as u64,
            number: data.st_ino as u64,
            // Nobody can set it, and every change does.
            seconds: data.st_ctime as i64,
            nanoseconds: data.st_ctime_nsec as u64,
        }
    }

    fn has_settled(&self, now: SystemTime) -> bool {
        let seconds = u64::try_from(self.seconds).ok().map(Duration::from_secs);
        let changed = seconds.and_then(|seconds| UNIX_EPOCH.checked_add(seconds));
        let until =
            changed.and_then(|changed| changed.checked_add(SETTLED + Duration::from_secs(1)));
        until.is_some_and(|until| until <= now)
    }
}

/// What of a new root lies in the folder of settings.
#[derive(Debug)]
struct Parts {
    folders: Vec<(CString, u32)>,
    files: Vec<CString>,
    links: Vec<(CString, CString)>,
    copies: Vec<(CString, CString, Stamp)>,
}

impl Parts {
    /// All of it, so that two are the same only if it is.
    fn manifest(&self, boot: [u8; 16]) -> Vec<u8> {
        let mut text = boot.to_vec();
        let mut add = |kind: u8, fields: &[&[u8]]| {
            text.push(kind);
            for field in fields {
                text.extend_from_slice(field);
                text.push(0);
            }
        };
        for (path, mode) in &self.folders {
            add(b'd', &[path.to_bytes(), mode.to_string().as_bytes()]);
        }
        for path in &self.files {
            add(b'f', &[path.to_bytes()]);
        }
        for (target, path) in &self.links {
            add(b'l', &[path.to_bytes(), target.to_bytes()]);
        }
        for (source, path, stamp) in &self.copies {
            let Stamp { size, device, number, seconds, nanoseconds } = stamp;
            let stamp = format!("{size} {device} {number} {seconds} {nanoseconds}");
            add(b'c', &[path.to_bytes(), source.to_bytes(), stamp.as_bytes()]);
        }
        text
    }
}

/// Copies that are to be kept for the next run.
#[derive(Debug)]
pub struct NewSettings {
    parts: Parts,
    manifest: Vec<u8>,
    name: String,
    folder: SettingsFolder,
}

/// Has a plan mount the copies that are kept in place of making them, if there are some; otherwise gives what is to be
/// kept. The file is to be held as long as the mount is there.
pub(super) fn settle(
    plan: &mut Plan,
    stamps: impl Fn(&Path) -> Option<Stamp>,
    folder: &SettingsFolder,
) -> (Option<File>, Option<NewSettings>) {
    let is_in = |path: &CString| {
        path.to_bytes().strip_prefix(WHAT.as_bytes()).is_some_and(|rest| rest.starts_with(b"/"))
    };
    let stamped = |(source, path): &(CString, CString)| {
        let stamp = stamps(Path::new(OsStr::from_bytes(source.to_bytes())))?;
        Some((source.clone(), path.clone(), stamp))
    };
    let copies: Option<Vec<_>> =
        plan.copies.iter().filter(|(_, path)| is_in(path)).map(stamped).collect();
    let Some(copies) = copies.filter(|copies| !copies.is_empty()) else { return (None, None) };
    let parts = Parts {
        folders: plan.folders.iter().filter(|(path, _)| is_in(path)).cloned().collect(),
        files: plan.files.iter().filter(|path| is_in(path)).cloned().collect(),
        links: plan.links.iter().filter(|(_, path)| is_in(path)).cloned().collect(),
        copies,
    };
    let manifest = parts.manifest(folder.boot);
    let name: String =
        Sha256::digest(&manifest)[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    let own = folder.path.join(&name);
    let kept = own.join(WHAT);
    if let (Some(held), Ok(kept)) = (held(&own.join(MANIFEST), &manifest), super::absolute(&kept)) {
        plan.folders.retain(|(path, _)| !is_in(path));
        plan.files.retain(|path| !is_in(path));
        plan.links.retain(|(_, path)| !is_in(path));
        plan.copies.retain(|(_, path)| !is_in(path));
        let (source, attributes) = (Source::Old(kept), READ_ONLY | NO_SUID | NO_DEV);
        // Before what is mounted in it.
        plan.mounts.insert(0, Mount { source, target: c"etc".to_owned(), attributes });
        remove_all_undone(&folder.path);
        return (Some(held), None);
    }
    let settled = parts.copies.iter().all(|(_, _, stamp)| stamp.has_settled(folder.now));
    let news = NewSettings { parts, manifest, name, folder: folder.clone() };
    (None, settled.then_some(news))
}

/// The manifest, if it says this, nobody else can have written it, and it stays.
fn held(path: &Path, expected: &[u8]) -> Option<File> {
    let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).ok()?;
    let mut file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared).ok()?;
    let data = file.metadata().ok()?;
    let is_own = data.uid() == rustix::process::geteuid().as_raw() && data.mode() & 0o022 == 0;
    // Whoever removes it has it locked, and may have been at it before.
    if !data.is_file() || !is_own || data.nlink() != 1 || data.len() != expected.len() as u64 {
        return None;
    }
    let mut text = vec![0; expected.len()];
    file.read_exact(&mut text).ok()?;
    (text == expected).then_some(file)
}

impl NewSettings {
    /// Keeps them. Without it the next run only takes longer.
    ///
    /// # Errors
    /// When they cannot be written, or have changed meanwhile.
    pub fn keep(self) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder.path)?;
        let held = own_folder(&self.folder.path)?;
        // Whatever comes to be at its path meanwhile, this is the one that was looked at.
        let folder = &PathBuf::from(format!("/proc/self/fd/{}", held.as_raw_fd()));
        self.remove_others(folder);
        let undone = folder.join(format!("{UNDONE}{}", std::process::id()));
        DirBuilder::new().mode(0o700).create(&undone)?;
        // As long as somebody is at it, nobody else takes it for a leftover.
        let _busy = locked(&undone)?;
        let kept = self.fill(&undone).and_then(|()| fs::rename(&undone, folder.join(&self.name)));
        if kept.is_err() {
            fs::remove_dir_all(&undone)?;
        }
        kept
    }

    fn fill(&self, undone: &Path) -> io::Result<()> {
        let at = |path: &CString| undone.join(OsStr::from_bytes(path.to_bytes()));
        let mode = |path: &Path, mode| fs::set_permissions(path, PermissionsExt::from_mode(mode));
        let what = undone.join(WHAT);
        fs::create_dir(&what)?;
        mode(&what, 0o755)?;
        for (path, bits) in &self.parts.folders {
            fs::create_dir(at(path))?;
            mode(&at(path), *bits)?;
        }
        for path in &self.parts.files {
            let file = File::create_new(at(path))?;
            file.set_permissions(PermissionsExt::from_mode(0o444))?;
        }
        for (target, path) in &self.parts.links {
            std::os::unix::fs::symlink(OsStr::from_bytes(target.to_bytes()), at(path))?;
        }
        for (source, path, stamp) in &self.parts.copies {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let opened = rustix::fs::open(source.as_c_str(), flags, rustix::fs::Mode::empty())?;
            let mut text = Vec::new();
            let mut opened = File::from(opened);
            (&mut opened).take(LARGEST_COPY as u64 + 1).read_to_end(&mut text)?;
            let known =
                keeps_times(opened.as_fd()) && Stamp::of(&rustix::fs::fstat(&opened)?) == *stamp;
            if !known || text.len() as u64 != stamp.size {
                return Err(io::Error::other("a file has changed"));
            }
            let mut file = File::create_new(at(path))?;
            file.write_all(&text)?;
            file.set_permissions(PermissionsExt::from_mode(0o444))?;
        }
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(undone.join(MANIFEST))?;
        file.write_all(&self.manifest)
    }

    /// Removes what is of another start of the machine, or old, unless a run has it.
    fn remove_others(&self, folder: &Path) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if !is_folder || !is_own_name(entry.file_name().as_bytes()) {
                continue;
            }
            let changed = entry.metadata().and_then(|data| data.modified()).ok();
            let age = changed.and_then(|changed| self.folder.now.duration_since(changed).ok());
            let is_old = age.is_some_and(|age| age > STAYS);
            let goes = match File::open(path.join(MANIFEST)) {
                _ if is_undone(&entry) => {
                    remove_undone(&path);
                    false
                }
                Ok(mut manifest) => {
                    let mut boot = [0; 16];
                    let other = manifest.read_exact(&mut boot).is_err() || boot != self.folder.boot;
                    let lock = FlockOperation::NonBlockingLockExclusive;
                    if (is_old || other) && rustix::fs::flock(&manifest, lock).is_ok() {
                        // Whoever has opened it sees that it has gone; the lock is held until all of it has.
                        let _ = fs::remove_file(path.join(MANIFEST));
                        let _ = fs::remove_dir_all(&path);
                    }
                    false
                }
                Err(_) => is_old,
            };
            if goes {
                let _ = fs::remove_dir_all(&path);
            }
        }
    }
}

/// A folder of the user's own that nobody else may write to; no link, which could lead to any other.
fn own_folder(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = File::from(rustix::fs::open(path, flags, rustix::fs::Mode::empty())?);
    let data = folder.metadata()?;
    let is_own = data.uid() == rustix::process::geteuid().as_raw() && data.mode() & 0o022 == 0;
    is_own.then_some(folder).ok_or_else(|| io::Error::other("another user may write to it"))
}

/// A folder that nobody else has locked.
fn locked(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = File::from(rustix::fs::open(path, flags, rustix::fs::Mode::empty())?);
    rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive)?;
    Ok(folder)
}

fn is_undone(entry: &fs::DirEntry) -> bool {
    entry.file_name().as_bytes().starts_with(UNDONE.as_bytes())
}

/// Removes copies that were begun, if whoever did so is there no more.
fn remove_undone(path: &Path) {
    if let Ok(_lock) = locked(path) {
        let _ = fs::remove_dir_all(path);
    }
}

/// Removes all that were begun in a folder of our own.
fn remove_all_undone(folder: &Path) {
    let Ok(held) = own_folder(folder) else { return };
    let folder = PathBuf::from(format!("/proc/self/fd/{}", held.as_raw_fd()));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if is_undone(&entry) && is_own_name(entry.file_name().as_bytes()) {
            remove_undone(&entry.path());
        }
    }
}

/// Whether a name is one that is given here: nothing else in the folder is touched.
fn is_own_name(name: &[u8]) -> bool {
    match name.strip_prefix(UNDONE.as_bytes()) {
        Some(number) => number.iter().all(u8::is_ascii_digit),
        None => name.len() == 32 && name.iter().all(u8::is_ascii_hexdigit),
    }
}
