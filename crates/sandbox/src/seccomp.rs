//! A seccomp profile in the format of OCI runtimes, as one more filter beside ours: it can only take away.

mod calls;
mod compile;
mod format;
mod rules;

use std::fs::File;
use std::io::Read as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use self::rules::Rules;
pub(crate) use self::rules::kernel;
use crate::error::SandboxError;
use crate::sys::Instruction;

/// Longer than any such file: Docker's own has 17 KiB.
const LARGEST: u64 = 1 << 20;

/// A profile that was read and understood, all of it.
#[derive(Clone)]
pub struct SeccompProfile {
    source: SeccompSource,
    /// Where the file lies without any link, for a look at who may write it.
    real: PathBuf,
    program: Vec<Instruction>,
    logs: bool,
}

/// Which profile is in force, for the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SeccompSource {
    /// The file.
    pub path: String,
    /// SHA-256 of what it held when it was read.
    pub sha256: String,
}

impl std::fmt::Debug for SeccompProfile {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let steps = self.program.len();
        to.debug_struct("SeccompProfile")
            .field("source", &self.source)
            .field("steps", &steps)
            .finish_non_exhaustive()
    }
}

impl SeccompProfile {
    /// Reads a profile: JSON as Docker, Podman and OCI runtimes read it. Whatever is not understood is an error, as is a
    /// profile under which nothing could be started.
    ///
    /// # Errors
    /// When it cannot be read or used, or somebody else could have written it.
    pub fn load(path: &Path) -> Result<Self, SandboxError> {
        let refuse = |what: String| SandboxError::Path { path: path.to_owned(), what };
        let (bytes, real) = read(path).map_err(refuse)?;
        let (program, logs) = program_of(&bytes)
            .map_err(|why| refuse(format!("cannot be used as a seccomp profile: {why}")))?;
        let hash = Sha256::digest(&bytes);
        let sha256 = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        let source = SeccompSource { path: path.display().to_string(), sha256 };
        Ok(Self { source, real, program, logs })
    }

    /// Which it is.
    #[must_use]
    pub fn source(&self) -> &SeccompSource {
        &self.source
    }

    /// The folder among these in which it lies.
    pub(crate) fn lies_in<'a>(
        &self,
        mut folders: impl Iterator<Item = &'a PathBuf>,
    ) -> Option<&'a PathBuf> {
        folders.find(|folder| {
            let real = folder.canonicalize();
            self.real.starts_with(real.as_ref().unwrap_or(folder))
        })
    }

    pub(crate) fn program(&self) -> &[Instruction] {
        &self.program
    }

    /// Whether the kernel is to log what it refuses.
    pub(crate) fn logs(&self) -> bool {
        self.logs
    }
}

fn program_of(bytes: &[u8]) -> Result<(Vec<Instruction>, bool), String> {
    let file: format::File = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let rules = Rules::new(file, kernel())?;
    Ok((compile::program(&rules)?, rules.logs))
}

/// What the file holds, and where it really lies.
fn read(path: &Path) -> Result<(Vec<u8>, PathBuf), String> {
    // A pipe would keep this waiting; a link may be turned elsewhere after the owner has looked.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(|errno| match errno {
        Errno::LOOP => "is a link: name the seccomp profile itself".to_owned(),
        Errno::NOENT => "is not there: name a seccomp profile, or leave it out for ours".to_owned(),
        errno => format!("cannot be read as a seccomp profile: {errno}"),
    })?;
    let file = File::from(file);
    let failed = |error: std::io::Error| format!("cannot be read as a seccomp profile: {error}");
    let data = file.metadata().map_err(failed)?;
    if !data.is_file() {
        return Err("is no file: name a seccomp profile".to_owned());
    }
    let own = rustix::process::geteuid().as_raw();
    if data.uid() != own && data.uid() != 0 {
        return Err("belongs to another user, who could change it: copy it".to_owned());
    }
    if data.mode() & 0o022 != 0 {
        return Err("may be written by others: `chmod go-w` it, after a look".to_owned());
    }
    let mut bytes = Vec::new();
    (&file).take(LARGEST + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > LARGEST {
        return Err(format!("is no seccomp profile: it is larger than {LARGEST} bytes"));
    }
    let real = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
    Ok((bytes, real.map_err(failed)?))
}

#[cfg(test)]
mod tests;
