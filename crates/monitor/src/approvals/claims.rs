//! Single use: a grant is claimed by a file that can be made only once.
//!
//! Of several processes that want to use the same grant, the one that makes the file does. The file
//! is made before the decision is recorded, so that a crash in between costs the grant and never
//! gives it twice; the record then names the approval, which spends it for good.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, Mode, OFlags, mkdirat, openat, statat, unlinkat};
use rustix::io::Errno;
use wardkeep_evidence::time::Timestamp;

use super::{ApprovalsError, GrantId};

const FOLDER: &str = "claims";

/// The folder of the claims.
#[derive(Debug)]
pub(super) struct Claims {
    path: PathBuf,
}

impl Claims {
    pub(super) fn new(state: &Path) -> Self {
        Self { path: state.join(FOLDER) }
    }

    /// Claims a grant; says whether it was still to be had.
    pub(super) fn claim(&self, id: GrantId) -> Result<bool, ApprovalsError> {
        match mkdirat(rustix::fs::CWD, &self.path, Mode::from_raw_mode(0o700)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(self.failed("make", errno)),
        }
        let folder = self.open().map_err(|errno| self.failed("open", errno))?;
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(&folder, id.to_string(), flags, Mode::from_raw_mode(0o600)) {
            Ok(_) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            Err(errno) => Err(self.failed("write to", errno)),
        }
    }

    /// Whether a grant was claimed. Where that cannot be told, it counts as claimed.
    pub(super) fn is_claimed(&self, id: GrantId) -> bool {
        let folder = match self.open() {
            Ok(folder) => folder,
            Err(Errno::NOENT) => return false,
            Err(_) => return true,
        };
        !matches!(statat(&folder, id.to_string(), AtFlags::SYMLINK_NOFOLLOW), Err(Errno::NOENT))
    }

    /// Removes claims that were made before a moment at which every grant of then had ended.
    pub(super) fn tidy(&self, before: Timestamp) {
        let Ok(folder) = self.open() else { return };
        let Ok(entries) = Dir::read_from(&folder) else { return };
        for entry in entries.flatten() {
            let Ok(stat) = statat(&folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            let is_claim = entry.file_name().to_bytes().len() == 64;
            if is_claim && stat.st_mtime < before.unix() {
                let _ = unlinkat(&folder, entry.file_name(), AtFlags::empty());
            }
        }
    }

    fn open(&self) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::open(&self.path, flags, Mode::empty())
    }

    fn failed(&self, action: &'static str, errno: Errno) -> ApprovalsError {
        ApprovalsError::Io { action, path: self.path.clone(), error: errno.into() }
    }
}
