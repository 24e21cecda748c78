//! A bundle directory, read without following links.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, fstat, openat, statat};

use super::{MAX_TOTAL_BYTES, Member, Source, SourceError};

/// An open bundle directory.
#[derive(Debug)]
pub struct DirectorySource {
    directory: OwnedFd,
}

/// Opens a regular file below `directory` without following a link and without waiting on a
/// pipe.
///
/// # Errors
/// When it is missing, not a regular file, or cannot be opened.
pub fn open_regular_at(directory: impl AsFd, name: &str) -> Result<(File, u64), SourceError> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(directory, name, flags, Mode::empty()).map_err(|errno| {
        if errno == rustix::io::Errno::LOOP || errno == rustix::io::Errno::NXIO {
            SourceError::NotRegular(name.to_owned())
        } else {
            SourceError::io(name, errno.into())
        }
    })?;
    let stat = fstat(&file).map_err(|errno| SourceError::io(name, errno.into()))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(SourceError::NotRegular(name.to_owned()));
    }
    Ok((File::from(file), u64::try_from(stat.st_size).unwrap_or(0)))
}

impl DirectorySource {
    /// Opens the directory at `path`.
    ///
    /// # Errors
    /// When it is no directory or cannot be opened.
    pub fn open(path: &Path) -> Result<Self, SourceError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(path, flags, Mode::empty())
            .map_err(|errno| SourceError::io(path.display().to_string(), errno.into()))?;
        Ok(Self { directory })
    }

    fn folder(&self, name: &str) -> Result<OwnedFd, SourceError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(&self.directory, name, flags, Mode::empty())
            .map_err(|errno| SourceError::io(name, errno.into()))
    }

    fn list(
        &self,
        folder: &OwnedFd,
        prefix: &str,
        members: &mut Vec<Member>,
    ) -> Result<(), SourceError> {
        let shown = if prefix.is_empty() { "." } else { prefix };
        let failed = |errno: rustix::io::Errno| SourceError::io(shown, errno.into());
        for entry in Dir::read_from(folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let bytes = entry.file_name().to_bytes();
            if bytes == b"." || bytes == b".." {
                continue;
            }
            let stat = match statat(folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => stat,
                Err(rustix::io::Errno::NOENT) => continue,
                Err(errno) => return Err(failed(errno)),
            };
            let kind = FileType::from_raw_mode(stat.st_mode);
            let file_name = std::ffi::OsStr::from_bytes(bytes).to_string_lossy();
            let name = if prefix.is_empty() {
                file_name.into_owned()
            } else {
                format!("{prefix}/{file_name}")
            };
            if kind == FileType::Directory && prefix.is_empty() {
                let subfolder = self.folder(&name)?;
                self.list(&subfolder, &name, members)?;
                continue;
            }
            members.push(Member {
                name,
                size: u64::try_from(stat.st_size).unwrap_or(0),
                regular: kind == FileType::RegularFile,
            });
        }
        Ok(())
    }
}

impl Source for DirectorySource {
    fn members(&mut self) -> Result<Vec<Member>, SourceError> {
        let mut members = Vec::new();
        self.list(&self.directory, "", &mut members)?;
        members.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(members)
    }

    fn open(&mut self, name: &str) -> Result<Box<dyn Read + '_>, SourceError> {
        let (file, size) = match name.split_once('/') {
            Some((folder, file)) => open_regular_at(self.folder(folder)?, file)?,
            None => open_regular_at(&self.directory, name)?,
        };
        // A directory is not packed: its logs may be longer than a zip entry may be.
        if size > MAX_TOTAL_BYTES {
            let name = name.to_owned();
            return Err(SourceError::TooLarge { name, size, limit: MAX_TOTAL_BYTES });
        }
        Ok(Box::new(file))
    }
}
