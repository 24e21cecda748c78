//! Files of an agent's configuration: read as they are, written as a whole.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::{InstallError, Result};

/// Largest configuration that is taken for one.
const MAX_BYTES: u64 = 16 << 20;

/// A file that changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The file, as the agent names it.
    pub path: PathBuf,
    /// What it holds; nothing, if it is not there.
    pub before: Option<Vec<u8>>,
    /// What it will hold.
    pub after: Vec<u8>,
}

/// What a file holds; nothing, if it is not there. A link is followed to what it leads to.
pub(super) fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    let data = match fs::metadata(path) {
        Ok(data) => data,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // A link that leads nowhere is something all the same.
            if path.symlink_metadata().is_ok() {
                return Err(InstallError::unusable(path, "is a link that leads nowhere"));
            }
            return Ok(None);
        }
        Err(error) => return Err(InstallError::io("read", path, error)),
    };
    if !data.is_file() {
        return Err(InstallError::unusable(path, "is not a regular file"));
    }
    if data.len() > MAX_BYTES {
        return Err(InstallError::unusable(path, format!("is longer than {MAX_BYTES} bytes")));
    }
    let mut bytes = Vec::new();
    fs::File::open(path)
        .and_then(|file| file.take(MAX_BYTES).read_to_end(&mut bytes))
        .map_err(|error| InstallError::io("read", path, error))?;
    Ok(Some(bytes))
}

impl Change {
    /// Whether the file holds already what it should.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.before.as_deref() == Some(self.after.as_slice())
    }

    /// Writes it. Where it is for everybody, a new file can be read by everybody.
    pub(super) fn write(&self, shared: bool) -> Result<()> {
        let mode = if shared { 0o644 } else { PRIVATE };
        if self.is_done() { Ok(()) } else { put_new(&self.path, &self.after, mode) }
    }

    pub(super) fn undo(&self) -> Result<()> {
        match &self.before {
            Some(before) => put(&self.path, before),
            None => remove(&self.path),
        }
    }
}

/// The mode of a new file that is only the owner's.
const PRIVATE: u32 = 0o600;

/// Writes a file as a whole: beside it first, then in its place. What a link leads to is replaced,
/// not the link; mode and owner's rights stay.
pub(super) fn put(path: &Path, bytes: &[u8]) -> Result<()> {
    put_new(path, bytes, PRIVATE)
}

fn put_new(path: &Path, bytes: &[u8], new_mode: u32) -> Result<()> {
    let failed = |action, error| InstallError::io(action, path, error);
    let real = match fs::canonicalize(path) {
        Ok(real) => real,
        Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
        Err(error) => return Err(failed("find", error)),
    };
    let folder = real.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder).map_err(|error| failed("make the folder of", error))?;
    let mode = fs::metadata(&real).ok().map(|data| data.permissions());
    if mode.as_ref().is_some_and(fs::Permissions::readonly) {
        return Err(InstallError::unusable(path, "is read-only"));
    }
    let name = real.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let beside = folder.join(format!(".{name}.wardkeep-{}", std::process::id()));
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    let written = options.open(&beside).and_then(|mut file| {
        let mode = mode.unwrap_or_else(|| fs::Permissions::from_mode(new_mode));
        file.set_permissions(mode)?;
        file.write_all(bytes)?;
        file.sync_all()
    });
    let placed = written.and_then(|()| fs::rename(&beside, &real));
    if let Err(error) = placed {
        let _ = fs::remove_file(&beside);
        return Err(failed("write", error));
    }
    Ok(())
}

pub(super) fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(InstallError::io("remove", path, error))
        }
        _ => Ok(()),
    }
}
