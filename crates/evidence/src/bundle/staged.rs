//! Files and folders that appear whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::{BundleError, Result, sync_directory};

/// A folder that is filled under a temporary name and renamed to its own at the end. Dropped
/// before that, it is removed.
#[derive(Debug)]
pub struct StagedDirectory {
    staging: PathBuf,
    target: PathBuf,
    committed: bool,
}

/// A file that is written under a temporary name and renamed to its own at the end.
#[derive(Debug)]
pub struct StagedFile {
    file: File,
    staging: PathBuf,
    target: PathBuf,
    committed: bool,
}

impl StagedDirectory {
    /// Starts a folder that is to become `target`, which must not exist or be empty.
    ///
    /// # Errors
    /// When there is something already, or the parent cannot be written.
    pub fn create(target: &Path) -> Result<Self> {
        match fs::read_dir(target) {
            Ok(mut entries) => {
                if entries.next().is_some() {
                    return Err(BundleError::Exists(target.display().to_string()));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(BundleError::io("create", target, error)),
        }
        let staging = unused_beside(target, |path| fs::DirBuilder::new().mode(0o700).create(path))?;
        Ok(Self { staging: staging.0, target: target.to_owned(), committed: false })
    }

    /// Where to write while it is staged.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.staging
    }

    /// Puts the folder in its place.
    ///
    /// # Errors
    /// When it cannot be flushed or renamed.
    pub fn commit(mut self) -> Result<()> {
        sync_directory(&self.staging)?;
        // An empty target is replaced by the rename; a full one refuses it.
        fs::rename(&self.staging, &self.target)
            .map_err(|error| BundleError::io("create", &self.target, error))?;
        self.committed = true;
        sync_directory(parent_of(&self.target))
    }
}

impl Drop for StagedDirectory {
    fn drop(&mut self) {
        if !self.committed {
            let _ = fs::remove_dir_all(&self.staging);
        }
    }
}

impl StagedFile {
    /// Starts a file that is to become `target`, readable by the owner only until `mode` is set.
    ///
    /// # Errors
    /// When the parent folder cannot be written.
    pub fn create(target: &Path, mode: u32) -> Result<Self> {
        let (staging, file) = unused_beside(target, |path| {
            OpenOptions::new().read(true).write(true).create_new(true).mode(mode).open(path)
        })?;
        Ok(Self { file, staging, target: target.to_owned(), committed: false })
    }

    /// The open file.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file another name to appear under, in the same folder.
    pub fn retarget(&mut self, target: PathBuf) {
        self.target = target;
    }

    /// Flushes the file and puts it in its place; replaces what stands there if `replace`.
    ///
    /// # Errors
    /// When it cannot be flushed or put there, or something is there and must stay.
    pub fn commit(mut self, replace: bool) -> Result<()> {
        self.file.sync_all().map_err(|error| BundleError::io("flush", &self.staging, error))?;
        let placed = if replace {
            fs::rename(&self.staging, &self.target)
        } else {
            // A hard link refuses to replace, without a moment in between.
            fs::hard_link(&self.staging, &self.target).and_then(|()| fs::remove_file(&self.staging))
        };
        match placed {
            Ok(()) => self.committed = true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(BundleError::Exists(self.target.display().to_string()));
            }
            Err(error) => return Err(BundleError::io("create", &self.target, error)),
        }
        sync_directory(parent_of(&self.target))
    }

    /// Writes `bytes` to `target` as a whole, replacing what stands there.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn replace(target: &Path, mode: u32, bytes: &[u8]) -> Result<()> {
        let mut staged = Self::create(target, mode)?;
        staged
            .file
            .write_all(bytes)
            .map_err(|error| BundleError::io("write", &staged.staging, error))?;
        staged.commit(true)
    }
}

impl Drop for StagedFile {
    fn drop(&mut self) {
        if !self.committed {
            let _ = fs::remove_file(&self.staging);
        }
    }
}

fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes something under a name beside `target` that nothing has yet.
fn unused_beside<T>(
    target: &Path,
    mut make: impl FnMut(&Path) -> io::Result<T>,
) -> Result<(PathBuf, T)> {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    for attempt in 0..10_000u32 {
        let path =
            parent_of(target).join(format!(".{name}.partial-{}-{attempt}", std::process::id()));
        match make(&path) {
            Ok(made) => return Ok((path, made)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(BundleError::io("write beside", target, error)),
        }
    }
    Err(BundleError::Exists(format!("{}.partial-*", target.display())))
}
