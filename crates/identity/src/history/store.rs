//! A bare git store: loose objects and one reference, each written whole or not at all.

use std::collections::{BTreeSet, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use gix_hash::{Kind as Hash, ObjectId};
use gix_object::Kind;
use rustix::fs::{FlockOperation, OFlags, flock, syncfs};
use rustix::io::Errno;

use super::{Damage, HistoryError, damaged};

const REFERENCE: &str = "refs/heads/main";
/// `preciousObjects` keeps git's own housekeeping from removing or packing what this reads.
const CONFIG: &str = "[core]
\trepositoryformatversion = 1
\tfilemode = true
\tbare = true
\tlogallrefupdates = false
[gc]
\tauto = 0
\tpackrefs = false
[extensions]
\tobjectformat = sha256
\tpreciousobjects = true
";
const HEAD: &str = "ref: refs/heads/main\n";
/// From so many new objects on, all of the file system is flushed at once.
const MANY: usize = 16;
/// Largest file of packed references.
const MAX_PACKED: u64 = 64 << 10;
/// Longest `kind size` in front of an object.
const MAX_HEADER: usize = 32;

/// A folder with a store in it.
#[derive(Debug)]
pub(super) struct Store {
    folder: PathBuf,
}

impl Store {
    pub(super) fn open_or_create(folder: &Path) -> Result<Self, HistoryError> {
        let store = Self { folder: folder.to_owned() };
        match store.read_file("HEAD", 4096) {
            Ok(Some(_)) => return Ok(store),
            Ok(None) => {}
            Err(error) => return Err(failed("read", folder)(error)),
        }
        for name in ["", "objects", "refs", "refs/heads"] {
            let path = folder.join(name);
            let mut builder = fs::DirBuilder::new();
            builder.recursive(true).mode(0o700);
            builder.create(&path).map_err(failed("make", &path))?;
        }
        // The head comes last: with it the store is one.
        for (name, text) in [("config", CONFIG), ("HEAD", HEAD)] {
            store.replace(name, text.as_bytes())?;
        }
        Ok(store)
    }

    /// Keeps other writers out as long as the value lives.
    pub(super) fn hold(&self) -> Result<File, HistoryError> {
        let path = self.folder.join("wardkeep.lock");
        let open = || {
            let file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .custom_flags(QUIETLY.bits().cast_signed())
                .open(&path)?;
            flock(&file, FlockOperation::LockExclusive)?;
            Ok(file)
        };
        open().map_err(failed("lock", &path))
    }

    /// The newest commit.
    pub(super) fn reference(&self) -> Result<Option<ObjectId>, HistoryError> {
        let path = self.folder.join(REFERENCE);
        let packed = || self.read_file("packed-refs", MAX_PACKED).map(packed_reference);
        let bytes = match self.read_file(REFERENCE, 256) {
            Ok(None) => packed(),
            other => other,
        };
        let bytes = match bytes {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Ok(None),
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                return Err(HistoryError::Damaged(Damage::Reference));
            }
            Err(error) => return Err(failed("read", &path)(error)),
        };
        let text = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        let id = ObjectId::from_hex(text).ok().filter(|id| id.kind() == Hash::Sha256);
        id.map(Some).ok_or(HistoryError::Damaged(Damage::Reference))
    }

    pub(super) fn set_reference(&self, id: ObjectId) -> Result<(), HistoryError> {
        self.replace(REFERENCE, format!("{id}\n").as_bytes())
    }

    /// An object of a kind, with at most `limit` bytes, that is what its name says.
    pub(super) fn read(
        &self,
        id: ObjectId,
        kind: Kind,
        limit: usize,
    ) -> Result<Vec<u8>, HistoryError> {
        match self.try_read(id, limit) {
            Ok(Some((found, bytes))) if found == kind => Ok(bytes),
            Ok(Some(_)) => Err(damaged(id)),
            Ok(None) => Err(HistoryError::Damaged(Damage::Missing(id.to_string()))),
            Err(error) if is_content(&error) => Err(damaged(id)),
            Err(error) => Err(failed("read", &self.path_of(id))(error)),
        }
    }

    fn try_read(&self, id: ObjectId, limit: usize) -> io::Result<Option<(Kind, Vec<u8>)>> {
        let Some(file) = open(&self.path_of(id))? else { return Ok(None) };
        let wrong = || io::Error::from(ErrorKind::InvalidData);
        let most = limit + MAX_HEADER + 1;
        let mut bytes = Vec::new();
        ZlibDecoder::new(file).take(most as u64).read_to_end(&mut bytes)?;
        let end = bytes.iter().take(MAX_HEADER).position(|byte| *byte == 0).ok_or_else(wrong)?;
        let (kind, size, _) =
            gix_object::decode::loose_header(&bytes[..=end]).map_err(|_| wrong())?;
        let body = bytes.split_off(end + 1);
        if body.len() as u64 != size || body.len() > limit || name_of(kind, &body)? != id {
            return Err(wrong());
        }
        Ok(Some((kind, body)))
    }

    fn path_of(&self, id: ObjectId) -> PathBuf {
        let name = id.to_string();
        let (folder, rest) = name.split_at(2);
        self.folder.join("objects").join(folder).join(rest)
    }

    fn read_file(&self, name: &str, limit: u64) -> io::Result<Option<Vec<u8>>> {
        let Some(file) = open(&self.folder.join(name))? else { return Ok(None) };
        let mut bytes = Vec::new();
        file.take(limit + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > limit {
            return Err(ErrorKind::InvalidData.into());
        }
        Ok(Some(bytes))
    }

    /// Writes a small file whole or not at all. The temporary one is where git looks for nothing.
    fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), HistoryError> {
        let path = self.folder.join(name);
        let temporary = self.folder.join("wardkeep.new");
        let write = || {
            let mut file = create(&temporary)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            fs::rename(&temporary, &path)?;
            flush_folder(path.parent().unwrap_or(&self.folder))
        };
        write().map_err(failed("write", &path))
    }
}

/// Objects that are written together. Nothing refers to them before all are durable.
#[derive(Debug)]
pub(super) struct Batch<'a> {
    store: &'a Store,
    known: HashSet<ObjectId>,
    /// Temporary files and what they become, with those that are still to be flushed.
    written: Vec<(PathBuf, ObjectId, Option<File>)>,
}

impl<'a> Batch<'a> {
    pub(super) fn new(store: &'a Store) -> Self {
        Self { store, known: HashSet::new(), written: Vec::new() }
    }

    /// Writes an object unless it is there, whole; its name.
    pub(super) fn put(&mut self, kind: Kind, bytes: &[u8]) -> Result<ObjectId, HistoryError> {
        let objects = self.store.folder.join("objects");
        let id = name_of(kind, bytes).map_err(failed("write", &objects))?;
        if !self.known.insert(id) {
            return Ok(id);
        }
        // One that is there and torn is written again.
        let there = self.store.try_read(id, bytes.len());
        if there.is_ok_and(|there| there.is_some()) {
            return Ok(id);
        }
        let number = self.written.len();
        let temporary = objects.join(format!("tmp_obj_wardkeep_{number}"));
        let write = || {
            let mut encoder = ZlibEncoder::new(create(&temporary)?, Compression::fast());
            encoder.write_all(&gix_object::encode::loose_header(kind, bytes.len() as u64))?;
            encoder.write_all(bytes)?;
            encoder.finish()
        };
        let file = write().map_err(failed("write", &temporary))?;
        // A few are flushed one by one; of many none is kept open.
        let kept = (number < MANY).then_some(file);
        self.written.push((temporary, id, kept));
        Ok(id)
    }

    /// Makes all of them durable under their names.
    pub(super) fn finish(mut self) -> Result<(), HistoryError> {
        let objects = self.store.folder.join("objects");
        let mut finish = || {
            let root = File::open(&objects)?;
            let is_few = self.written.len() <= MANY;
            if is_few {
                self.written
                    .iter()
                    .filter_map(|(_, _, file)| file.as_ref())
                    .try_for_each(File::sync_all)?;
            } else {
                syncfs(&root)?;
            }
            let mut folders = BTreeSet::new();
            for (temporary, id, _) in self.written.drain(..) {
                let path = self.store.path_of(id);
                if let Some(folder) = path.parent() {
                    match fs::DirBuilder::new().mode(0o700).create(folder) {
                        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                            return Err(error);
                        }
                        _ => {}
                    }
                    folders.insert(folder.to_owned());
                }
                fs::rename(temporary, path)?;
            }
            if is_few {
                folders.iter().try_for_each(|folder| flush_folder(folder))?;
                root.sync_all()
            } else {
                Ok(syncfs(&root)?)
            }
        };
        finish().map_err(failed("write", &objects))
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        for (temporary, _, _) in self.written.drain(..) {
            // Nothing refers to it; what stays is overwritten by the next one.
            let _ = fs::remove_file(temporary);
        }
    }
}

/// The line of our reference where somebody had git pack its references.
fn packed_reference(file: Option<Vec<u8>>) -> Option<Vec<u8>> {
    let ending = format!(" {REFERENCE}");
    let file = file?;
    let mut lines = file.split(|byte| *byte == b'\n');
    lines.find_map(|line| line.strip_suffix(ending.as_bytes()).map(<[u8]>::to_vec))
}

const QUIETLY: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// Opens a regular file, and nothing else.
fn open(path: &Path) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(QUIETLY.bits().cast_signed());
    let file = match options.open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            // A link, a socket, or a file where a folder should be.
            let odd = [Errno::LOOP, Errno::NXIO, Errno::NOTDIR].map(|errno| errno.raw_os_error());
            let is_odd = error.raw_os_error().is_some_and(|code| odd.contains(&code));
            return Err(if is_odd { ErrorKind::InvalidData.into() } else { error });
        }
    };
    if file.metadata()?.is_file() { Ok(Some(file)) } else { Err(ErrorKind::InvalidData.into()) }
}

/// A new file in the place of whatever is left of an earlier one.
fn create(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

fn flush_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

fn name_of(kind: Kind, bytes: &[u8]) -> io::Result<ObjectId> {
    gix_object::compute_hash(Hash::Sha256, kind, bytes).map_err(|_| ErrorKind::InvalidData.into())
}

/// Whether an error is about the bytes rather than about the reading of them.
fn is_content(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::InvalidData | ErrorKind::InvalidInput | ErrorKind::UnexpectedEof
    )
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> HistoryError {
    let path = path.to_owned();
    move |source| HistoryError::Io { action, path, source }
}
