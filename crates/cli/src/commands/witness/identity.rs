//! Who a witness is: a key and a name that never change by accident.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use wardkeep_evidence::bundle::{BundleError, StagedFile};
use wardkeep_evidence::hash::{decode_hex, encode_hex, sha256};
use wardkeep_evidence::note::{Algorithm, SigningKey};
use wardkeep_monitor::journal::Folder;
use zeroize::Zeroizing;

use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// The secret, in the folder of the witness.
const KEY: &str = "key";
/// The name, beside it.
const NAME: &str = "name";
/// More than either file has.
const LIMIT: u64 = 1024;

/// Where the witness keeps its key and its memory, and what it is called.
#[derive(Debug, clap::Args)]
pub(super) struct IdentityArgs {
    /// Folder of the witness: its key and what it has signed [default: `witness` in the state
    /// directory]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Name to sign by, fixed when the key is made [default: `wardkeep-witness/` and a part of the
    /// key's hash]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

/// A witness's folder and key.
#[derive(Debug)]
pub(super) struct Identity {
    pub(super) directory: PathBuf,
    pub(super) seed: Zeroizing<[u8; 32]>,
    pub(super) name: String,
}

impl IdentityArgs {
    /// Reads key and name, making what is not there.
    pub(super) fn open(&self, context: &Context) -> Result<Identity, CliError> {
        let directory = match &self.dir {
            Some(given) => {
                std::path::absolute(given).map_err(|error| CliError::io("find", given, &error))?
            }
            None => context.state_dir()?.join("witness"),
        };
        make_directory(&directory)?;
        let stored = read(&directory.join(NAME), Secrecy::Public)?;
        let seed = read_or_make_key(&directory.join(KEY), stored.is_some())?;
        let name = match stored {
            Some(stored) => self.known_name(stored.trim_end())?,
            None => self.fix_name(&directory.join(NAME), &seed)?,
        };
        let identity = Identity { directory, seed, name };
        identity.key()?;
        Ok(identity)
    }

    fn known_name(&self, stored: &str) -> Result<String, CliError> {
        match self.name.as_deref().filter(|given| *given != stored) {
            None => Ok(stored.to_owned()),
            Some(given) => Err(CliError::refused(
                format!("this witness is called `{stored}`, not `{given}`"),
                "leave --name out; for a witness of another name, give another --dir",
            )),
        }
    }

    fn fix_name(&self, path: &Path, seed: &[u8; 32]) -> Result<String, CliError> {
        let name = match &self.name {
            Some(given) => given.clone(),
            None => {
                let public = signing_key("unnamed", seed)?.verifier().public_key();
                let hash = encode_hex(&sha256(&public));
                format!("wardkeep-witness/{}", hash.get(..16).unwrap_or(&hash))
            }
        };
        signing_key(&name, seed)?;
        if write_new(path, &format!("{name}\n"))? {
            return Ok(name);
        }
        // Another process was faster.
        let stored = read(path, Secrecy::Public)?.unwrap_or_default();
        self.known_name(stored.trim_end())
    }
}

impl Identity {
    /// The key that cosigns.
    pub(super) fn key(&self) -> Result<SigningKey, CliError> {
        signing_key(&self.name, &self.seed)
    }
}

fn signing_key(name: &str, seed: &[u8; 32]) -> Result<SigningKey, CliError> {
    SigningKey::from_seed(name, Algorithm::CosignatureV1, seed).map_err(|_| {
        CliError::refused(
            format!("`{name}` cannot be the name of a witness"),
            "give a name without spaces, plus signs and control characters, like witness.example",
        )
    })
}

/// Makes the folder, and those above, for this user alone.
fn make_directory(directory: &Path) -> Result<(), CliError> {
    if let Some(parent) = directory.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(parent)
            .map_err(|error| CliError::io("create", parent, &error))?;
    }
    Folder::create(directory)?;
    Ok(())
}

fn read_or_make_key(path: &Path, named: bool) -> Result<Zeroizing<[u8; 32]>, CliError> {
    let mut text = read(path, Secrecy::Secret)?;
    if text.is_none() && named {
        return Err(CliError::new(
            Exit::Unreadable,
            format!("`{}` is missing, and this witness had one", path.display()),
            "restore it from a backup; for a new witness, give a new --dir",
        ));
    }
    if text.is_none() {
        let mut seed = Zeroizing::new([0; 32]);
        getrandom::fill(&mut seed[..]).map_err(|error| {
            let message = format!("the system gives no random bytes: {error}");
            CliError::new(Exit::Unreadable, message, "run it again")
        })?;
        write_new(path, &Zeroizing::new(format!("{}\n", encode_hex(&seed[..]))))?;
        // As it stands there: another process may have been faster.
        text = read(path, Secrecy::Secret)?;
    }
    text.and_then(|text| decode_hex(text.trim_end().as_bytes())).map(Zeroizing::new).ok_or_else(
        || unusable(path, "does not hold a key", "restore it from a backup, or give a new --dir"),
    )
}

/// Writes a file whole and for this user alone; `false` if something stands there.
fn write_new(path: &Path, text: &str) -> Result<bool, CliError> {
    let staged = StagedFile::create(path, 0o600)?;
    let mut file = staged.file();
    file.write_all(text.as_bytes()).map_err(|error| CliError::io("write", path, &error))?;
    match staged.commit(false) {
        Ok(()) => Ok(true),
        Err(BundleError::Exists(_)) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Secrecy {
    Secret,
    Public,
}

/// Reads a small file of this user, not through a link; `None` if there is none.
fn read(path: &Path, secrecy: Secrecy) -> Result<Option<Zeroizing<String>>, CliError> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(i32::try_from(flags).unwrap_or_default());
    let file: File = match options.open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            return Err(unusable(path, "is a link", "put the file itself there"));
        }
        Err(error) => return Err(CliError::io("read", path, &error)),
    };
    let failed = |error| CliError::io("read", path, &error);
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() || metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(unusable(path, "is not a plain file of this user", "give another --dir"));
    }
    if secrecy == Secrecy::Secret && metadata.mode() & 0o077 != 0 {
        return Err(unusable(
            path,
            "can be read by other users",
            "others may have the key: make a new witness with a new --dir, or `chmod 600` it if not",
        ));
    }
    let mut text = Zeroizing::new(String::new());
    file.take(LIMIT).read_to_string(&mut text).map_err(failed)?;
    Ok(Some(text))
}

fn unusable(path: &Path, what: &str, hint: &str) -> CliError {
    CliError::new(Exit::Unreadable, format!("`{}` {what}", path.display()), hint)
}
