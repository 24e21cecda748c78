//! What runs have in common: what was seen in folders, so that only those that have changed are listed again, and a lock.

use std::fs::{self, DirBuilder, File};
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use rustix::fs::{Mode, OFlags};
use wardkeep_evidence::hash::{encode_hex, sha256};
use wardkeep_sandbox::walk::{LARGEST, Listings, Seen};
use wardkeep_sandbox::{SettingsFolder, Spec};

use crate::context::Context;
use crate::error::CliError;

/// Where they lie in the state directory, one file a workspace.
const FOLDER: &str = "listings";
/// Where copies of the machine's settings lie.
const SETTINGS: &str = "settings";
/// Where locks lie.
const LOCKS: &str = "locks";
/// Most files; the oldest go.
const MOST: usize = 64;
/// How files begin that are not done, and how long that may take.
const BEGUN: &str = ".tmp";
const BUSY: Duration = Duration::from_secs(600);

/// The lock of all runs in the same file system: who looks at a name and makes it has it. Without one, two runs in one
/// workspace could make together what neither may.
pub(super) fn lock(state: &Path, workspace: &Path) -> Result<Arc<File>, CliError> {
    let folder = state.join(LOCKS);
    let failed = |error: std::io::Error| CliError::io("open a lock in", &folder, &error);
    let device = fs::metadata(workspace).map_err(failed)?.dev();
    make(&folder).map_err(failed)?;
    let flags = OFlags::RDONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let path = folder.join(format!("names-{device:x}"));
    let file = rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR)
        .map_err(|errno| failed(errno.into()))?;
    Ok(Arc::new(file.into()))
}

pub(super) fn make(folder: &Path) -> std::io::Result<()> {
    match DirBuilder::new().recursive(true).mode(0o700).create(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// The file of a workspace.
pub(super) struct Kept {
    path: PathBuf,
    now: SystemTime,
}

impl Kept {
    /// Gives the run what is remembered of its workspace. Without it a run is only slower.
    pub(super) fn recall(context: &Context, state: &Path, spec: &mut Spec) -> Option<Self> {
        let (key, now) = context.boot()?;
        let user = rustix::process::geteuid().as_raw();
        let workspace = [&user.to_le_bytes(), spec.workspace.as_os_str().as_bytes()].concat();
        let path = state.join(FOLDER).join(encode_hex(&sha256(&workspace)[..16]));
        let listings = match read(&path) {
            Some(bytes) => Listings::read(key, now, bytes),
            None => Listings::new(key, now),
        };
        spec.listings = Some(Arc::new(listings));
        spec.settings = Some(SettingsFolder::new(state.join(SETTINGS), key, now));
        Some(Self { path, now })
    }

    /// Keeps what was seen, if that is something new, while the program runs. Where it cannot be kept, the next run
    /// is only slower.
    pub(super) fn keep(self, known: Arc<Listings>, seen: Seen) -> Option<JoinHandle<()>> {
        let news = seen.is_new(&known);
        let work = move || {
            if let Some(bytes) = seen.to_bytes(&known) {
                let _ = self.write(&bytes);
            }
        };
        news.then(|| std::thread::spawn(work))
    }

    fn write(&self, bytes: &[u8]) -> std::io::Result<()> {
        let folder = self.path.parent().ok_or(std::io::ErrorKind::NotFound)?;
        make(folder)?;
        let mut file = tempfile::Builder::new().prefix(BEGUN).tempfile_in(folder)?;
        file.write_all(bytes)?;
        file.persist(&self.path).map_err(|error| error.error)?;
        remove_oldest(folder, self.now)
    }
}

/// What such a file holds, if nobody else can have written it.
fn read(path: &Path) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    let data = file.metadata().ok()?;
    let own = data.uid() == rustix::process::geteuid().as_raw() && data.mode() & 0o022 == 0;
    if !data.is_file() || !own || data.len() > LARGEST as u64 {
        return None;
    }
    let mut bytes = Vec::with_capacity(usize::try_from(data.len()).ok()?);
    file.take(LARGEST as u64).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Removes the oldest files that have such a name as is given here, and nothing else.
fn remove_oldest(folder: &Path, now: SystemTime) -> std::io::Result<()> {
    // A link could lead to the files of others.
    if !folder.symlink_metadata()?.is_dir() {
        return Ok(());
    }
    let is_own = |name: &[u8]| name.len() == 32 && name.iter().all(u8::is_ascii_hexdigit);
    let is_begun = |name: &[u8]| {
        let rest = name.strip_prefix(BEGUN.as_bytes());
        rest.is_some_and(|rest| rest.len() == 6 && rest.iter().all(u8::is_ascii_alphanumeric))
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)?.flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        let Ok(changed) = entry.metadata().and_then(|data| data.modified()) else { continue };
        if is_own(name.as_bytes()) {
            files.push((changed, path));
        } else if is_begun(name.as_bytes())
            && now.duration_since(changed).is_ok_and(|age| age > BUSY)
        {
            // Whoever was at it was killed.
            fs::remove_file(path)?;
        }
    }
    files.sort_unstable();
    for (_, path) in files.iter().take(files.len().saturating_sub(MOST)) {
        fs::remove_file(path)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_oldest_of_our_own_go() {
        let folder = tempfile::tempdir().unwrap();
        let (own, link) = (folder.path().join("own"), folder.path().join("link"));
        fs::create_dir(&own).unwrap();
        fs::write(own.join("notes.txt"), "").unwrap();
        for number in 0..MOST + 3 {
            fs::write(own.join(format!("{number:032x}")), "").unwrap();
        }
        // One that is being written, or was when somebody was killed.
        fs::write(own.join(".tmpA1b2C3"), "").unwrap();
        std::os::unix::fs::symlink(&own, &link).unwrap();
        let count = || fs::read_dir(&own).unwrap().count();
        let now = SystemTime::now();
        remove_oldest(&link, now + 2 * BUSY).unwrap();
        assert_eq!(count(), MOST + 5);
        remove_oldest(&own, now).unwrap();
        assert_eq!(count(), MOST + 2);
        remove_oldest(&own, now + 2 * BUSY).unwrap();
        assert_eq!(count(), MOST + 1);
        assert!(own.join("notes.txt").exists());
    }
}
