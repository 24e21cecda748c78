//! The device key: 32 random bytes that only the owner can read.

use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use hmac::{Hmac, KeyInit as _, Mac as _};
use rustix::fs::{Mode, fchmod, fstat};
use sha2::Sha256;
use std::os::fd::AsFd as _;
use wardkeep_evidence::bundle::{BundleError, StagedFile};
use zeroize::Zeroizing;

use crate::files::{Unread, open_below, open_folder, split};

/// Name of the key in the state directory.
pub const KEY_FILE: &str = ".device_key";

/// Bytes of a key.
const LENGTH: usize = 32;
/// Bytes of a block of SHA-256: a key of HMAC is padded to it with zeros.
const BLOCK: usize = 64;

/// Why there is no usable key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// There is none.
    #[error("there is no device key at `{0}`: run `wardkeep init`, then sign again")]
    Missing(PathBuf),
    /// There is one already.
    #[error(
        "`{0}` exists already and is never overwritten: move it away first if you want another"
    )]
    Exists(PathBuf),
    /// It is a link or no regular file.
    #[error("the device key `{path}` {found}; a key that was moved may have been read")]
    NotPlain {
        /// The key.
        path: PathBuf,
        /// What was found there.
        found: Unread,
    },
    /// Others can read or change it.
    #[error(
        "the device key `{path}` has mode {mode:04o}, so that others can reach it: run `chmod 600` on it, and make a new key if anyone may have read it"
    )]
    Reachable {
        /// The key.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// It belongs to someone else.
    #[error(
        "the device key `{path}` belongs to user {found}, not to user {owner}: move it away and run `wardkeep init`"
    )]
    Owner {
        /// The key.
        path: PathBuf,
        /// Whom it belongs to.
        found: u32,
        /// Whom it should belong to.
        owner: u32,
    },
    /// It does not have 32 bytes.
    #[error(
        "the device key `{path}` has {found} bytes in place of 32: restore it from a backup, or move it away and run `wardkeep init`"
    )]
    Length {
        /// The key.
        path: PathBuf,
        /// Its length.
        found: u64,
    },
    /// It is 32 times the same byte.
    #[error(
        "the device key `{0}` is not random: move it away and run `wardkeep init`, then sign again"
    )]
    Empty(PathBuf),
    /// The file system refused.
    #[error("cannot {action} the device key `{path}` ({error}): fix the folder's owner or mode")]
    Io {
        /// What was tried.
        action: &'static str,
        /// The key.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

impl KeyError {
    /// A stable word for logs.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Missing(_) => "key-missing",
            Self::Exists(_) => "key-exists",
            Self::NotPlain { .. } => "key-not-plain",
            Self::Reachable { .. } => "key-reachable-by-others",
            Self::Owner { .. } => "key-of-another-user",
            Self::Length { .. } => "key-wrong-length",
            Self::Empty(_) => "key-not-random",
            Self::Io { .. } => "key-unreadable",
        }
    }
}

/// The device key. It is erased from memory when dropped and never shown.
pub struct DeviceKey(Zeroizing<[u8; BLOCK]>);

impl fmt::Debug for DeviceKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("DeviceKey(…)")
    }
}

impl DeviceKey {
    /// Makes a key of random bytes and writes it to `path`, readable by its owner alone from the
    /// first byte; it appears whole or not at all.
    ///
    /// # Errors
    /// When there is something already, or it cannot be written.
    pub fn create(path: &Path, random: [u8; LENGTH]) -> Result<Self, KeyError> {
        let random = Zeroizing::new(random);
        let key = Self::of(&random[..], path)?;
        let failed = |error: BundleError| match error {
            BundleError::Exists(_) => KeyError::Exists(path.to_owned()),
            BundleError::Io { error, .. } => io_error("write", path, error),
            other => io_error("write", path, io::Error::other(other.to_string())),
        };
        if path.symlink_metadata().is_ok() {
            return Err(KeyError::Exists(path.to_owned()));
        }
        let staged = StagedFile::create(path, 0o600).map_err(failed)?;
        fchmod(staged.file(), Mode::RUSR | Mode::WUSR)
            .map_err(|errno| io_error("write", path, errno.into()))?;
        staged.file().write_all(&random[..]).map_err(|error| io_error("write", path, error))?;
        staged.commit(false).map_err(failed)?;
        Ok(key)
    }

    /// Reads the key at `path`, which must be a plain file of `owner` that nobody else can reach.
    ///
    /// # Errors
    /// When it is missing, a link, of another owner, reachable by others, or not 32 bytes long.
    pub fn load(path: &Path, owner: u32) -> Result<Self, KeyError> {
        let missing = || KeyError::Missing(path.to_owned());
        let (folder, name) = split(path).ok_or_else(missing)?;
        let folder = open_folder(folder).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => missing(),
            _ => io_error("read", path, error),
        })?;
        let mut file = open_below(folder.as_fd(), name).map_err(|found| match found {
            Unread::Missing => missing(),
            Unread::Io(error) => io_error("read", path, error),
            found => KeyError::NotPlain { path: path.to_owned(), found },
        })?;
        let stat = fstat(&file).map_err(|errno| io_error("read", path, errno.into()))?;
        let mode = stat.st_mode & 0o7777;
        if stat.st_uid != owner {
            return Err(KeyError::Owner { path: path.to_owned(), found: stat.st_uid, owner });
        }
        if mode & 0o077 != 0 {
            return Err(KeyError::Reachable { path: path.to_owned(), mode });
        }
        let mut bytes = Zeroizing::new([0u8; LENGTH + 1]);
        let mut length = 0;
        loop {
            match file.read(&mut bytes[length..]) {
                Ok(0) => break,
                Ok(count) => length += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(io_error("read", path, error)),
            }
        }
        if length != LENGTH {
            let found = u64::try_from(stat.st_size).unwrap_or(0).max(length as u64);
            return Err(KeyError::Length { path: path.to_owned(), found });
        }
        Self::of(&bytes[..LENGTH], path)
    }

    fn of(bytes: &[u8], path: &Path) -> Result<Self, KeyError> {
        // What a crash of the file system leaves in place of a key.
        if bytes.iter().all(|byte| *byte == bytes[0]) {
            return Err(KeyError::Empty(path.to_owned()));
        }
        let mut padded = Zeroizing::new([0u8; BLOCK]);
        padded[..LENGTH].copy_from_slice(bytes);
        Ok(Self(padded))
    }

    fn mac(&self) -> Hmac<Sha256> {
        Hmac::new((&*self.0).into())
    }

    /// HMAC-SHA256 over bytes as they are: the signature of the RFC.
    #[must_use]
    pub fn sign(&self, content: &[u8]) -> [u8; 32] {
        self.mac().chain_update(content).finalize().into_bytes().into()
    }

    /// Whether `tag` is [`Self::sign`] of `content`, in constant time.
    #[must_use]
    pub fn verify(&self, content: &[u8], tag: &[u8; 32]) -> bool {
        self.mac().chain_update(content).verify_slice(tag).is_ok()
    }

    /// A key for another purpose, from which nothing of this one can be learned.
    #[must_use]
    pub fn derive(&self, purpose: &str) -> [u8; 32] {
        self.bind("derived key v1", &[purpose.as_bytes()])
    }

    /// HMAC-SHA256 over a domain and parts, each behind its length, so that no two different rows
    /// of parts give the same bytes and none gives those of a plain signature over a policy that
    /// is text.
    #[must_use]
    pub(crate) fn bind(&self, domain: &str, parts: &[&[u8]]) -> [u8; 32] {
        self.bound(domain, parts).finalize().into_bytes().into()
    }

    /// Whether `tag` is [`Self::bind`] of the same, in constant time.
    #[must_use]
    pub(crate) fn is_bound(&self, domain: &str, parts: &[&[u8]], tag: &[u8; 32]) -> bool {
        self.bound(domain, parts).verify_slice(tag).is_ok()
    }

    fn bound(&self, domain: &str, parts: &[&[u8]]) -> Hmac<Sha256> {
        // INVARIANT: 0xff stands in no UTF-8 text, and only UTF-8 text is ever signed plainly.
        let mut mac = self.mac().chain_update(b"\xffwardkeep\0");
        for part in std::iter::once(domain.as_bytes()).chain(parts.iter().copied()) {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        mac
    }
}

fn io_error(action: &'static str, path: &Path, error: io::Error) -> KeyError {
    KeyError::Io { action, path: path.to_owned(), error }
}
