//! Approved bytes, each under its hash.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::fs::{AtFlags, Dir, Mode, OFlags, fsync, openat, renameat, syncfs, unlinkat};
use wardkeep_evidence::hash::{BlobHash, encode_hex, sha256};

use crate::error::{IdentityError, Result};
use crate::steps::Steps;
use crate::store::{Store, make_folder, read_in, unguessable};

const NEW: OFlags = OFlags::WRONLY
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// From so many on, all of the file system is flushed at once, which is faster.
const MANY: usize = 16;

/// `objects/ab/cdef…` in the folder of a workspace.
#[derive(Debug)]
pub(crate) struct Objects {
    folder: OwnedFd,
    limit: u64,
}

/// Objects that were written and are not durable yet.
#[derive(Debug, Default)]
pub(crate) struct Unflushed {
    files: Vec<(File, OwnedFd)>,
    more: bool,
}

impl Objects {
    pub(crate) fn open(store: &Store, limit: u64) -> Result<Self> {
        let folder = store
            .make_folder("objects")
            .map_err(|error| IdentityError::io("open", store.path().display(), error))?;
        Ok(Self { folder, limit })
    }

    /// The bytes of a hash; checked.
    pub(crate) fn read(&self, hash: BlobHash) -> Result<Vec<u8>> {
        let bytes = self
            .read_unchecked(hash)
            .map_err(|error| IdentityError::io("read the object", hash, error))?;
        match bytes {
            Some(bytes) if BlobHash(sha256(&bytes)) == hash => Ok(bytes),
            _ => Err(IdentityError::Object { hash }),
        }
    }

    /// Keeps bytes. They are durable once `unflushed` is flushed.
    pub(crate) fn put(
        &self,
        bytes: &[u8],
        unflushed: &mut Unflushed,
        steps: &dyn Steps,
    ) -> Result<BlobHash> {
        let hash = BlobHash(sha256(bytes));
        // One that is there may have been torn by a crash.
        if !matches!(self.read_unchecked(hash), Ok(Some(there)) if there == bytes) {
            self.write(hash, bytes, unflushed, steps)
                .map_err(|error| IdentityError::io("keep the object", hash, error))?;
        }
        Ok(hash)
    }

    pub(crate) fn flush(&self, unflushed: Unflushed, steps: &dyn Steps) -> Result<()> {
        let failed = |error: io::Error| IdentityError::io("flush", "objects", error);
        if unflushed.files.is_empty() {
            return Ok(());
        }
        steps.step("flush the objects");
        if unflushed.more {
            return syncfs(&self.folder).map_err(|errno| failed(errno.into()));
        }
        for (file, folder) in &unflushed.files {
            file.sync_all().map_err(failed)?;
            fsync(folder).map_err(|errno| failed(errno.into()))?;
        }
        Ok(())
    }

    /// Removes all but these, and what a process left that ended.
    pub(crate) fn prune(&self, used: &HashSet<BlobHash>) -> Result<usize> {
        let failed = |error: io::Error| IdentityError::io("prune", "objects", error);
        let mut removed = 0;
        for folder in names(&self.folder).map_err(failed)? {
            let inner = openat(&self.folder, &folder, FOLDER, Mode::empty())
                .map_err(|errno| failed(errno.into()))?;
            for name in names(&inner).map_err(failed)? {
                let hash = BlobHash::from_hex(&format!("{folder}{name}"));
                if !hash.is_some_and(|hash| used.contains(&hash)) {
                    unlinkat(&inner, &name, AtFlags::empty())
                        .map_err(|errno| failed(errno.into()))?;
                    removed += 1;
                }
            }
        }
        Ok(removed)
    }

    fn read_unchecked(&self, hash: BlobHash) -> io::Result<Option<Vec<u8>>> {
        let text = encode_hex(&hash.0);
        let (folder, name) = text.split_at(2);
        let path = format!("{folder}/{name}");
        read_in(self.folder.as_fd(), &path, self.limit)
    }

    fn write(
        &self,
        hash: BlobHash,
        bytes: &[u8],
        unflushed: &mut Unflushed,
        steps: &dyn Steps,
    ) -> io::Result<()> {
        let text = encode_hex(&hash.0);
        let (folder, name) = text.split_at(2);
        let folder = make_folder(self.folder.as_fd(), folder)?;
        let temporary = format!("new.{}", unguessable()?);
        steps.step("make an object");
        let mut file = File::from(openat(&folder, &temporary, NEW, Mode::from_raw_mode(0o600))?);
        let placed = file.write_all(bytes).and_then(|()| {
            steps.step("rename the object");
            Ok(renameat(&folder, &temporary, &folder, name)?)
        });
        if let Err(error) = placed {
            let _ = unlinkat(&folder, &temporary, AtFlags::empty());
            return Err(error);
        }
        if unflushed.files.len() < MANY {
            unflushed.files.push((file, folder));
        } else {
            unflushed.more = true;
        }
        Ok(())
    }
}

fn names(folder: &OwnedFd) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        match entry.file_name().to_str() {
            Ok("." | "..") | Err(_) => {}
            Ok(name) => names.push(name.to_owned()),
        }
    }
    Ok(names)
}
