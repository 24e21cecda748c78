//! A whole bundle written in one go.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

use super::{BundleError, Result, StagedDirectory};
use crate::entry::Entry;
use crate::hash::{BlobHash, RecordId};
use crate::manifest::Manifest;
use crate::source::{AUDIT_LOG, BLOBS, MANIFEST, MAX_FILE_BYTES, RECORDS, SEALS};

/// Writes records and entries in order; the bundle appears when [`BundleWriter::finish`] returns.
#[derive(Debug)]
pub struct BundleWriter {
    directory: StagedDirectory,
    records: BufWriter<File>,
    entries: BufWriter<File>,
    manifest: Manifest,
    buffer: Vec<u8>,
}

impl BundleWriter {
    /// Starts a bundle at `path`, which must not exist or be an empty folder.
    ///
    /// # Errors
    /// When it exists or cannot be written.
    pub fn create(path: &Path, created_at: String) -> Result<Self> {
        let directory = StagedDirectory::create(path)?;
        let open = |name: &str| {
            let path = directory.path().join(name);
            File::create_new(&path).map_err(|error| BundleError::io("create", &path, error))
        };
        let (records, entries) = (open(RECORDS)?, open(AUDIT_LOG)?);
        let blobs = directory.path().join(BLOBS);
        fs::create_dir(&blobs).map_err(|error| BundleError::io("create", &blobs, error))?;
        Ok(Self {
            directory,
            records: BufWriter::with_capacity(1 << 18, records),
            entries: BufWriter::with_capacity(1 << 18, entries),
            manifest: Manifest::empty(created_at),
            buffer: Vec::with_capacity(1024),
        })
    }

    /// Adds a record, given as its line, under the next entry of this bundle's own chain.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn push(&mut self, id: RecordId, root: bool, line: &[u8], timestamp: &str) -> Result<()> {
        let previous = self.manifest.audit_head;
        let entry = Entry::chained(self.manifest.record_count, timestamp.to_owned(), id, previous);
        self.push_chained(&entry, root, line)
    }

    /// Adds a record under an entry that is chained already.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn push_chained(&mut self, entry: &Entry, root: bool, line: &[u8]) -> Result<()> {
        self.buffer.clear();
        entry.write_line(&mut self.buffer);
        self.buffer.push(b'\n');
        let written = self
            .records
            .write_all(line)
            .and_then(|()| self.records.write_all(b"\n"))
            .and_then(|()| self.entries.write_all(&self.buffer));
        written.map_err(|error| BundleError::io("write", self.directory.path(), error))?;
        self.manifest.record_count += 1;
        self.manifest.audit_head = entry.hash;
        if root {
            self.manifest.root_records.push(entry.record);
        }
        Ok(())
    }

    /// Adds a blob by copying `reader`, whose bytes must hash to `hash`.
    ///
    /// # Errors
    /// When it cannot be written, is too large, or hashes to something else.
    pub fn push_blob(&mut self, hash: BlobHash, reader: &mut dyn Read) -> Result<()> {
        use sha2::Digest as _;
        let path = self.directory.path().join(BLOBS).join(hash.to_string());
        let failed = |error| BundleError::io("write", &path, error);
        let mut file = match File::create_new(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
            Err(error) => return Err(failed(error)),
        };
        let mut hasher = sha2::Sha256::new();
        let mut buffer = vec![0u8; 1 << 16];
        let mut limited = reader.take(MAX_FILE_BYTES + 1);
        let mut size = 0u64;
        loop {
            let count = limited.read(&mut buffer).map_err(failed)?;
            if count == 0 {
                break;
            }
            size += count as u64;
            hasher.update(&buffer[..count]);
            file.write_all(&buffer[..count]).map_err(failed)?;
        }
        let computed: [u8; 32] = hasher.finalize().into();
        if size > MAX_FILE_BYTES || computed != hash.0 {
            return Err(BundleError::Damaged(format!("the blob {hash} is not what its name says")));
        }
        self.manifest.blob_count += 1;
        Ok(())
    }

    /// Adds a file under `seals/`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn seal_file(&mut self, name: &str) -> Result<BufWriter<File>> {
        let folder = self.directory.path().join(SEALS);
        match fs::create_dir(&folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(BundleError::io("create", &folder, error));
            }
            _ => {}
        }
        let path = folder.join(name);
        let file =
            File::create_new(&path).map_err(|error| BundleError::io("create", &path, error))?;
        Ok(BufWriter::new(file))
    }

    /// Writes the manifest, flushes everything and puts the bundle in its place.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(self) -> Result<Manifest> {
        let Self { directory, records, entries, manifest, .. } = self;
        for (writer, name) in [(records, RECORDS), (entries, AUDIT_LOG)] {
            let path = directory.path().join(name);
            let file = writer
                .into_inner()
                .map_err(|error| BundleError::io("write", &path, error.into_error()))?;
            file.sync_all().map_err(|error| BundleError::io("flush", &path, error))?;
        }
        let path = directory.path().join(MANIFEST);
        let mut file =
            File::create_new(&path).map_err(|error| BundleError::io("create", &path, error))?;
        file.write_all(&manifest.to_bytes())
            .and_then(|()| file.sync_all())
            .map_err(|error| BundleError::io("write", &path, error))?;
        directory.commit()?;
        Ok(manifest)
    }
}
