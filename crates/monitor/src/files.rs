//! Files of the state directory. Whoever has the user's rights may have put a link, a pipe or a
//! device in the place of any of them, so they are opened without following or waiting, and read
//! up to a limit.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;
use sha2::{Digest as _, Sha256};

/// Largest file of seals that is read: some 400,000 seals, eleven years of epochs.
pub(crate) const MAX_SEALS_BYTES: u64 = 256 << 20;
/// Largest file that holds a line or two.
pub(crate) const MAX_SMALL_BYTES: u64 = 4 << 10;

/// Flags to open a file with that must be a plain one.
pub(crate) fn no_follow() -> i32 {
    i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or(0)
}

/// Opens a plain file for reading.
pub(crate) fn open_plain(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(no_follow()).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    Ok(file)
}

/// Opens a file to lock, making it for its owner alone if it is not there.
pub(crate) fn lock_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let file = options.custom_flags(no_follow()).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    Ok(file)
}

/// Reads a plain file of at most `limit` bytes.
pub(crate) fn read_plain(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_plain(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::other(format!("longer than {limit} bytes")));
    }
    Ok(bytes)
}

/// As [`read_plain`]; nothing if the file is not there.
pub(crate) fn read_if_there(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    match read_plain(path, limit) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        read => read,
    }
}

/// SHA-256 of `length` bytes from `offset` on.
pub(crate) fn hash_range(file: &File, offset: u64, length: u64) -> io::Result<[u8; 32]> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0u8; 1 << 16];
    let (mut at, mut left) = (offset, length);
    while left > 0 {
        let size = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
        file.read_exact_at(&mut buffer[..size], at)?;
        hasher.update(&buffer[..size]);
        at += size as u64;
        left -= size as u64;
    }
    Ok(hasher.finalize().into())
}
