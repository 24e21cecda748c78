//! Small private files: replaced whole, appended to durably, locked.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use wardkeep_evidence::seal::ends_within_line;

const PRIVATE_FILE: u32 = 0o600;
const PRIVATE_DIRECTORY: u32 = 0o700;
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Makes a folder only we can enter, and refuses one others may write to.
pub(super) fn private_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(PRIVATE_DIRECTORY).create(path)?;
    let metadata = fs::symlink_metadata(path)?;
    let owner = rustix::process::geteuid().as_raw();
    if !metadata.is_dir() || metadata.uid() != owner || metadata.mode() & WRITABLE_BY_OTHERS != 0 {
        let reason = "the folder must be a real one of this user that nobody else can write to";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
    }
    Ok(())
}

/// Reads a whole regular file of at most `limit` bytes, without following a link; `None` when
/// there is none.
pub(super) fn read(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let file = match open_options(OFlags::NONBLOCK).read(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is too large"));
    }
    Ok(Some(bytes))
}

/// Replaces a file whole: after a crash it holds the old bytes or the new ones, never a part.
///
/// The caller makes sure that nobody else replaces the same file meanwhile.
pub(super) fn replace(directory: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let temporary = temporary_path(directory, name);
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = open_options(OFlags::empty());
    let mut file = options.write(true).create_new(true).mode(PRIVATE_FILE).open(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&temporary, directory.join(name))?;
    sync_directory(directory)
}

/// Appends a frame and waits until it is on disk; a write cut off earlier is closed first.
pub(super) fn append_frame(directory: &Path, name: &str, frame: &str) -> io::Result<()> {
    let path = directory.join(name);
    let existed = fs::symlink_metadata(&path).is_ok();
    let mut options = open_options(OFlags::NONBLOCK);
    options.read(true).append(true).create(true).mode(PRIVATE_FILE);
    let mut file = options.open(&path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is not a regular file"));
    }
    write_frame(&mut file, frame)?;
    if existed { Ok(()) } else { sync_directory(directory) }
}

/// Appends a frame to an open file, after a newline when the file was cut off within a line.
pub(super) fn write_frame(file: &mut File, frame: &str) -> io::Result<()> {
    let bytes = if ends_within_line(&last_byte(file)?) {
        format!("\n{frame}").into_bytes()
    } else {
        frame.as_bytes().to_vec()
    };
    file.write_all(&bytes)?;
    file.sync_data()
}

/// A file locked against every other process and every other opening of it in this one.
///
/// It is unlocked when dropped, not only closed: a program that another thread is just starting
/// holds a copy of the descriptor for a moment, and with it the lock.
#[derive(Debug)]
pub(super) struct Lock(File);

impl Lock {
    /// Locks the file once it is free.
    pub(super) fn wait(file: File) -> io::Result<Self> {
        file.lock()?;
        Ok(Self(file))
    }

    /// Locks the file if it is free.
    pub(super) fn attempt(file: File) -> io::Result<Option<Self>> {
        match file.try_lock() {
            Ok(()) => Ok(Some(Self(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// The file.
    pub(super) fn file(&mut self) -> &mut File {
        &mut self.0
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

/// Opens the lock file `name`, made if it is missing.
pub(super) fn lock_file(directory: &Path, name: &str) -> io::Result<File> {
    let mut options = open_options(OFlags::NONBLOCK);
    options.read(true).write(true).create(true).truncate(false).mode(PRIVATE_FILE);
    options.open(directory.join(name))
}

fn last_byte(file: &File) -> io::Result<Vec<u8>> {
    use std::os::unix::fs::FileExt as _;
    let Some(offset) = file.metadata()?.len().checked_sub(1) else { return Ok(Vec::new()) };
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset)?;
    Ok(byte.to_vec())
}

fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

fn temporary_path(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!(".{name}.new"))
}

/// Options that never follow a link in the last place, nor hand the file to another program.
fn open_options(more: OFlags) -> OpenOptions {
    let mut options = OpenOptions::new();
    // INVARIANT: open flags fit in the positive half of an int on every platform.
    let flags = OFlags::NOFOLLOW.union(more).bits();
    options.custom_flags(i32::try_from(flags).unwrap_or_default());
    options
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn files_are_private_and_replaced_whole() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        assert_eq!(read(&at("a"), 10).unwrap(), None);
        fs::write(temporary_path(directory.path(), "a"), "left by a crash").unwrap();
        for text in ["first", "second"] {
            replace(directory.path(), "a", text.as_bytes()).unwrap();
            assert_eq!(read(&at("a"), 10).unwrap().unwrap(), text.as_bytes());
        }
        assert_eq!(mode(&at("a")), 0o600);
        assert!(read(&at("a"), 5).is_err());
        symlink(at("a"), at("link")).unwrap();
        assert!(read(&at("link"), 10).is_err());
        assert!(append_frame(directory.path(), "link", "x\n").is_err());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_frame_after_a_torn_write_begins_a_line() {
        let directory = tempfile::tempdir().unwrap();
        append_frame(directory.path(), "frames", "one\n").unwrap();
        fs::write(directory.path().join("frames"), "one\ntw").unwrap();
        append_frame(directory.path(), "frames", "three\n").unwrap();
        let bytes = read(&directory.path().join("frames"), 100).unwrap().unwrap();
        assert_eq!(bytes, b"one\ntw\nthree\n");
        assert_eq!(mode(&directory.path().join("frames")), 0o600);
    }

    #[test]
    fn a_folder_open_to_others_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        let own = directory.path().join("own");
        private_directory(&own).unwrap();
        assert_eq!(mode(&own), 0o700);
        fs::set_permissions(&own, fs::Permissions::from_mode(0o770)).unwrap();
        assert!(private_directory(&own).is_err());
        symlink(directory.path(), directory.path().join("link")).unwrap();
        assert!(private_directory(&directory.path().join("link")).is_err());
    }
}
