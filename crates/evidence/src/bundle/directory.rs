//! A bundle directory that grows record by record, as `aegx` does it.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, openat};

use super::{BundleError, BundleWriter, Result, StagedFile};
use crate::entry::Entry;
use crate::hash::{BlobHash, EntryHash, RecordId};
use crate::json;
use crate::manifest::Manifest;
use crate::record::{NewRecord, Payload};
use crate::source::{AUDIT_LOG, BLOBS, KEEP, MANIFEST, MAX_FILE_BYTES, RECORDS, SourceError};
use crate::verify::MAX_LINE_BYTES;

/// What a blob is called until its hash is known.
const INCOMING: &str = "incoming";

/// An existing bundle, locked against other writers.
#[derive(Debug)]
pub struct BundleDirectory {
    path: PathBuf,
    folder: Locked,
    manifest: Manifest,
}

/// The folder of a bundle with the lock on it.
///
/// It is unlocked when dropped, not only closed: a program that another thread is just starting
/// holds a copy of the descriptor for a moment, and with it the lock.
#[derive(Debug)]
struct Locked(OwnedFd);

impl AsFd for Locked {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// What a log file of the bundle holds.
struct Scan {
    ids: HashSet<RecordId>,
    last: Option<EntryHash>,
    /// Length of the part that the manifest counts.
    committed: u64,
}

impl BundleDirectory {
    /// Makes an empty bundle.
    ///
    /// # Errors
    /// When there is something at `path` already.
    pub fn init(path: &Path, created_at: String) -> Result<()> {
        BundleWriter::create(path, created_at)?.finish().map(|_| ())
    }

    /// Opens and locks a bundle.
    ///
    /// # Errors
    /// When it is no bundle, is damaged, or another process has it.
    pub fn open(path: &Path) -> Result<Self> {
        // As a directory: opening a pipe would wait for its other end.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(path, flags, Mode::empty())
            .map_err(|errno| BundleError::io("open", path, errno.into()))?;
        flock(&folder, FlockOperation::NonBlockingLockExclusive).map_err(|errno| {
            if errno == rustix::io::Errno::WOULDBLOCK {
                BundleError::Locked(path.display().to_string())
            } else {
                BundleError::io("lock", path, errno.into())
            }
        })?;
        let folder = Locked(folder);
        let (file, _) = crate::source::open_regular_at(&folder, MANIFEST)?;
        let (manifest, defects) = Manifest::read(file);
        let manifest = match (manifest, defects.first()) {
            (Some(manifest), None) => manifest,
            (_, defect) => {
                let found = defect.map_or_else(String::new, |defect| defect.found.clone());
                return Err(BundleError::Damaged(format!("{MANIFEST}: {found}")));
            }
        };
        let bundle = Self { path: path.to_owned(), folder, manifest };
        bundle.remove_leftovers();
        Ok(bundle)
    }

    /// Removes what a process killed in the middle of a write left behind under a temporary name.
    /// The lock is held, so none of it is in use; what cannot be removed is for `verify` to name.
    fn remove_leftovers(&self) {
        for (folder, staged) in [(&self.path, MANIFEST), (&self.path.join(BLOBS), INCOMING)] {
            let prefix = format!(".{staged}.partial-");
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                if entry.file_name().to_string_lossy().starts_with(&prefix) {
                    let _ = fs::remove_file(entry.path());
                }
            }
        }
    }

    /// Copies a file in as a blob.
    ///
    /// # Errors
    /// When the file is no regular file, too large, or cannot be read or written.
    pub fn add_blob(&mut self, file: &Path) -> Result<BlobHash> {
        use sha2::Digest as _;
        use std::os::unix::fs::OpenOptionsExt as _;
        let shown = file.display().to_string();
        // Without blocking: a pipe that nobody writes to would wait for ever.
        let nonblocking = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0);
        let source = OpenOptions::new()
            .read(true)
            .custom_flags(nonblocking)
            .open(file)
            .map_err(|error| BundleError::io("open", file, error))?;
        let metadata = source.metadata().map_err(|error| BundleError::io("read", file, error))?;
        if !metadata.is_file() {
            return Err(SourceError::NotRegular(shown).into());
        }
        let too_large =
            |size| SourceError::TooLarge { name: shown.clone(), size, limit: MAX_FILE_BYTES };
        if metadata.len() > MAX_FILE_BYTES {
            return Err(too_large(metadata.len()).into());
        }
        let folder = self.path.join(BLOBS);
        let mut staged = StagedFile::create(&folder.join(INCOMING), 0o644)?;
        let mut hasher = sha2::Sha256::new();
        let mut buffer = vec![0u8; 1 << 16];
        let mut limited = source.take(MAX_FILE_BYTES + 1);
        let mut size = 0;
        loop {
            let count =
                limited.read(&mut buffer).map_err(|error| BundleError::io("read", file, error))?;
            if count == 0 {
                break;
            }
            size += count as u64;
            hasher.update(&buffer[..count]);
            staged
                .file()
                .write_all(&buffer[..count])
                .map_err(|error| BundleError::io("write", &folder, error))?;
        }
        if size > MAX_FILE_BYTES {
            return Err(too_large(size).into());
        }
        let hash = BlobHash(hasher.finalize().into());
        staged.retarget(folder.join(hash.to_string()));
        staged.commit(true)?;
        self.write_manifest()?;
        Ok(hash)
    }

    /// Adds a record at the end.
    ///
    /// # Errors
    /// When a parent or the blob is not in the bundle, the record is there already, or it cannot
    /// be written.
    pub fn add_record(&mut self, record: NewRecord<'_>) -> Result<RecordId> {
        let records = self.scan(RECORDS)?;
        let entries = self.scan(AUDIT_LOG)?;
        if entries.last.unwrap_or(EntryHash::ZERO) != self.manifest.audit_head {
            let what = "its last entry is not the one that the manifest names";
            return Err(BundleError::Damaged(format!("{AUDIT_LOG}: {what}")));
        }
        if let Some(parent) = record.parents.iter().find(|parent| !records.ids.contains(parent)) {
            return Err(BundleError::ParentUnknown(*parent));
        }
        if let Payload::Blob { hash, size, .. } = &record.payload {
            let blob = self.path.join(BLOBS).join(hash.to_string());
            let metadata = fs::symlink_metadata(&blob).ok().filter(fs::Metadata::is_file);
            let actual = metadata.ok_or(BundleError::BlobUnknown(*hash))?.len();
            if actual != *size {
                return Err(BundleError::BlobSize { hash: *hash, actual, given: *size });
            }
        }
        let record = record.seal()?;
        if records.ids.contains(&record.id) {
            return Err(BundleError::Duplicate(record.id));
        }
        let timestamp = record.timestamp().unwrap_or_default().to_owned();
        let previous = entries.last.unwrap_or(EntryHash::ZERO);
        let entry = Entry::chained(self.manifest.record_count, timestamp, record.id, previous);
        let mut line = Vec::new();
        record.write_line(&mut line);
        self.append(RECORDS, records.committed, line)?;
        let mut line = Vec::new();
        entry.write_line(&mut line);
        self.append(AUDIT_LOG, entries.committed, line)?;
        self.manifest.record_count += 1;
        self.manifest.audit_head = entry.hash;
        if record.parents.is_empty() {
            self.manifest.root_records.push(record.id);
        }
        self.write_manifest()?;
        Ok(record.id)
    }

    /// Reads the ids (and for the audit log the last hash) of a file up to what the manifest
    /// counts. One line more is what a crash before the manifest was written leaves: it was never
    /// acknowledged and is overwritten. More than that is damage.
    fn scan(&self, name: &str) -> Result<Scan> {
        let path = self.path.join(name);
        let damaged = |what: &str| BundleError::Damaged(format!("{name}: {what}"));
        let (file, _) = crate::source::open_regular_at(&self.folder, name)?;
        let mut reader = BufReader::new(file);
        let mut scan = Scan { ids: HashSet::new(), last: None, committed: 0 };
        let mut line = Vec::new();
        let mut count = 0;
        loop {
            line.clear();
            let read = reader
                .by_ref()
                .take(MAX_LINE_BYTES as u64 + 1)
                .read_until(b'\n', &mut line)
                .map_err(|error| BundleError::io("read", &path, error))?;
            if read == 0 {
                break;
            }
            count += 1;
            if count > self.manifest.record_count {
                if count > self.manifest.record_count + 1 {
                    return Err(damaged("more lines than the manifest counts"));
                }
                continue;
            }
            // What is appended must begin a line of its own.
            if !line.ends_with(b"\n") {
                return Err(damaged("a line has no end"));
            }
            let value = json::parse(&line).map_err(|error| damaged(&error.to_string()))?;
            let object = value.as_object().ok_or_else(|| damaged("a line is no object"))?;
            let hash = |key| object.get(key).and_then(json::Value::as_str);
            let id = hash("recordId").and_then(RecordId::from_hex);
            scan.ids.insert(id.ok_or_else(|| damaged("a line has no id"))?);
            scan.last = hash("entryHash").and_then(EntryHash::from_hex);
            scan.committed += read as u64;
        }
        if count < self.manifest.record_count {
            return Err(damaged("fewer lines than the manifest counts"));
        }
        Ok(scan)
    }

    fn append(&self, name: &str, committed: u64, mut line: Vec<u8>) -> Result<()> {
        let path = self.path.join(name);
        line.push(b'\n');
        let write = || {
            let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mut file = File::from(openat(&self.folder, name, flags, Mode::empty())?);
            file.set_len(committed)?;
            file.seek(SeekFrom::End(0))?;
            file.write_all(&line)?;
            file.sync_data()
        };
        write().map_err(|error| BundleError::io("write", &path, error))
    }

    fn write_manifest(&mut self) -> Result<()> {
        let folder = self.path.join(BLOBS);
        let entries =
            fs::read_dir(&folder).map_err(|error| BundleError::io("list", &folder, error))?;
        let mut count = 0;
        for entry in entries {
            let entry = entry.map_err(|error| BundleError::io("list", &folder, error))?;
            let name = entry.file_name();
            // A file of another name is a blob staged when a process was killed, or not ours.
            count +=
                u64::from(name != KEEP && BlobHash::from_hex(&name.to_string_lossy()).is_some());
        }
        self.manifest.blob_count = count;
        StagedFile::replace(&self.path.join(MANIFEST), 0o644, &self.manifest.to_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a program has it that another thread starts at this moment, until it is executed.
    #[test]
    fn a_copy_of_the_descriptor_keeps_nobody_out() {
        let folder = tempfile::tempdir().unwrap();
        BundleDirectory::init(folder.path(), "2026-01-02T03:04:05Z".to_owned()).unwrap();
        let bundle = BundleDirectory::open(folder.path()).unwrap();
        let copy = rustix::io::dup(&bundle.folder).unwrap();
        assert!(matches!(BundleDirectory::open(folder.path()), Err(BundleError::Locked(_))));
        drop(bundle);
        BundleDirectory::open(folder.path()).unwrap();
        drop(copy);
    }
}
