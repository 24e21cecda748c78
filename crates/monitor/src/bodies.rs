//! Bodies of model calls that the owner wants kept: each encrypted with a key of its own.
//!
//! A body lies in the state directory under the hash of its ciphertext, and its key beside it. To erase
//! one is to destroy its key: the record that names it, its hashes and the chain stay as they are.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use chacha20poly1305::aead::{AeadInOut as _, KeyInit as _};
use chacha20poly1305::{ChaCha20Poly1305, Key, Nonce};
use wardkeep_evidence::bundle::{BundleError, StagedFile};
use wardkeep_evidence::hash::{BlobHash, sha256};
use zeroize::Zeroizing;

use crate::files::{no_follow, read_plain};
use crate::journal::{Folder, JournalError};

/// Folder of the bodies, in the state directory.
const FOLDER: &str = "bodies";
/// Ending of a key's name.
const KEY: &str = "key";
/// Longest body that is kept.
pub const MAX_BODY_BYTES: usize = 16 << 20;
/// What is authenticated with each body.
const ABOUT: &[u8] = b"wardkeep body 1";
const KEY_BYTES: usize = 32;

/// Why a body cannot be kept or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BodyError {
    /// It is too long.
    #[error("a body of {0} bytes is longer than is kept ({MAX_BODY_BYTES})")]
    TooLong(usize),
    /// It is not there.
    #[error("the body {0} is not in this state directory")]
    Absent(BlobHash),
    /// Its key is gone.
    #[error("the body {0} was erased: its key is destroyed")]
    Erased(BlobHash),
    /// It is not what was kept.
    #[error("the body {0} was changed since it was kept")]
    Changed(BlobHash),
    /// No randomness for a key.
    #[error("the system gives no random bytes: {0}")]
    Random(String),
    /// The folder cannot be used.
    #[error(transparent)]
    Folder(#[from] JournalError),
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] BundleError),
}

/// The bodies of a state directory.
#[derive(Debug, Clone)]
pub struct Bodies {
    folder: PathBuf,
}

impl Bodies {
    /// Those of the state directory `state`.
    #[must_use]
    pub fn of(state: &Path) -> Self {
        Self { folder: state.join(FOLDER) }
    }

    /// Keeps a body; gives the name it is kept under.
    ///
    /// # Errors
    /// When it is too long, or cannot be written.
    pub fn keep(&self, body: &[u8]) -> Result<BlobHash, BodyError> {
        if body.len() > MAX_BODY_BYTES {
            return Err(BodyError::TooLong(body.len()));
        }
        Folder::create(&self.folder)?;
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        getrandom::fill(&mut *key).map_err(|error| BodyError::Random(error.to_string()))?;
        let mut sealed = body.to_vec();
        // No key is used twice, so that the nonce may be.
        cipher(&key)
            .encrypt_in_place(&Nonce::default(), ABOUT, &mut sealed)
            .map_err(|_| BodyError::TooLong(body.len()))?;
        let name = BlobHash(sha256(&sealed));
        StagedFile::replace(&self.key_path(name), 0o600, &*key)?;
        StagedFile::replace(&self.path(name), 0o600, &sealed)?;
        Ok(name)
    }

    /// Reads a body.
    ///
    /// # Errors
    /// When it is not there, was erased or changed.
    pub fn read(&self, name: BlobHash) -> Result<Vec<u8>, BodyError> {
        let (path, key_path) = (self.path(name), self.key_path(name));
        let sealed = read_plain(&path, MAX_BODY_BYTES as u64 + 64);
        let key = read_plain(&key_path, KEY_BYTES as u64).map(Zeroizing::new);
        let absent = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        let mut sealed = match (sealed, &key) {
            (Ok(sealed), _) => sealed,
            (Err(error), _) if absent(&error) => return Err(BodyError::Absent(name)),
            (Err(error), _) => return Err(JournalError::io("read", &path, error).into()),
        };
        let key = match key {
            Ok(key) => key,
            Err(error) if absent(&error) => return Err(BodyError::Erased(name)),
            Err(error) => return Err(JournalError::io("read", &key_path, error).into()),
        };
        let key: Zeroizing<[u8; KEY_BYTES]> = match key.as_slice().try_into() {
            Ok(key) => Zeroizing::new(key),
            Err(_) => return Err(BodyError::Changed(name)),
        };
        if BlobHash(sha256(&sealed)) != name {
            return Err(BodyError::Changed(name));
        }
        cipher(&key)
            .decrypt_in_place(&Nonce::default(), ABOUT, &mut sealed)
            .map_err(|_| BodyError::Changed(name))?;
        Ok(sealed)
    }

    /// Destroys the key of a body; says whether there was one. What the disk itself keeps of old blocks
    /// is beyond this.
    ///
    /// # Errors
    /// When it cannot be destroyed.
    pub fn erase(&self, name: BlobHash) -> Result<bool, BodyError> {
        let path = self.key_path(name);
        let failed = |error: io::Error| JournalError::io("erase", &path, error);
        let mut options = fs::OpenOptions::new();
        let file = match options.write(true).custom_flags(no_follow()).open(&path) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(error).into()),
        };
        let Some(mut file) = file else { return Ok(false) };
        // Where files are written in place, nothing of it is left.
        file.write_all(&[0; KEY_BYTES]).and_then(|()| file.sync_all()).map_err(failed)?;
        fs::remove_file(&path).map_err(failed)?;
        fs::File::open(&self.folder).and_then(|folder| folder.sync_all()).map_err(failed)?;
        Ok(true)
    }

    fn path(&self, name: BlobHash) -> PathBuf {
        self.folder.join(name.to_string())
    }

    fn key_path(&self, name: BlobHash) -> PathBuf {
        self.path(name).with_extension(KEY)
    }
}

fn cipher(key: &[u8; KEY_BYTES]) -> ChaCha20Poly1305 {
    ChaCha20Poly1305::new(&Key::from(*key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_again_and_no_more_after_it_is_erased() {
        let state = tempfile::tempdir().unwrap();
        let bodies = Bodies::of(state.path());
        let body = b"{\"messages\":[\"a very plain secret\"]}";
        let (one, other) = (bodies.keep(body).unwrap(), bodies.keep(body).unwrap());
        assert_ne!(one, other, "each has a key of its own");
        assert_eq!(bodies.read(one).unwrap(), body);
        for file in fs::read_dir(state.path().join(FOLDER)).unwrap() {
            let bytes = fs::read(file.unwrap().path()).unwrap();
            assert!(!bytes.windows(6).any(|part| part == b"secret"));
        }
        assert!(bodies.erase(one).unwrap());
        assert!(!bodies.erase(one).unwrap());
        assert!(matches!(bodies.read(one), Err(BodyError::Erased(_))));
        assert_eq!(bodies.read(other).unwrap(), body);
    }

    #[test]
    fn what_was_changed_is_not_shown() {
        let state = tempfile::tempdir().unwrap();
        let bodies = Bodies::of(state.path());
        let name = bodies.keep(b"as it was").unwrap();
        let mut sealed = fs::read(bodies.path(name)).unwrap();
        sealed[0] ^= 1;
        fs::write(bodies.path(name), &sealed).unwrap();
        assert!(matches!(bodies.read(name), Err(BodyError::Changed(_))));
        fs::write(bodies.key_path(bodies.keep(b"x").unwrap()), b"short").unwrap();
        let absent = BlobHash(sha256(b"nothing"));
        assert!(matches!(bodies.read(absent), Err(BodyError::Absent(_))));
        let long = vec![0; MAX_BODY_BYTES + 1];
        assert!(matches!(bodies.keep(&long), Err(BodyError::TooLong(_))));
    }

    #[test]
    fn a_link_in_the_place_of_a_key_is_not_followed() {
        let state = tempfile::tempdir().unwrap();
        let bodies = Bodies::of(state.path());
        let name = bodies.keep(b"body").unwrap();
        let aim = state.path().join("aim");
        fs::write(&aim, [7; KEY_BYTES]).unwrap();
        fs::remove_file(bodies.key_path(name)).unwrap();
        std::os::unix::fs::symlink(&aim, bodies.key_path(name)).unwrap();
        assert!(bodies.read(name).is_err() && bodies.erase(name).is_err());
        assert_eq!(fs::read(&aim).unwrap(), [7; KEY_BYTES]);
    }
}
