//! Options that say which keys to trust, shared by everything that verifies.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use wardkeep_evidence::note::VerifierKey;
use wardkeep_evidence::seal::LogPublic;
use wardkeep_evidence::verify::Trust;

use crate::error::CliError;

/// Which log and which witnesses the caller trusts.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct TrustArgs {
    /// A file with the public keys of the log that this must be (`log.pub`)
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// The key of a witness that must vouch for it, `NAME+ID+KEY`; may be given again
    #[arg(long, value_name = "VKEY")]
    witness: Vec<String>,
}

impl TrustArgs {
    /// Reads the keys.
    pub(crate) fn read(&self) -> Result<Trust, CliError> {
        Ok(Trust {
            log: self.log.as_deref().map(read_log_public).transpose()?,
            witnesses: self
                .witness
                .iter()
                .map(|text| parse_witness(text))
                .collect::<Result<_, _>>()?,
            demand_witnesses: true,
        })
    }
}

/// Reads the public keys of a log from a file.
pub(crate) fn read_log_public(path: &Path) -> Result<LogPublic, CliError> {
    /// More than any key file has.
    const LIMIT: u64 = 4096;
    const HINT: &str = "give a file that holds the line beginning `wardkeep-log-v1+`";
    let metadata = std::fs::metadata(path).map_err(|error| CliError::io("open", path, &error))?;
    if !metadata.is_file() {
        let message = format!("`{}` is not a file", path.display());
        return Err(CliError::new(crate::exit::Exit::Unreadable, message, HINT));
    }
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(LIMIT).read_to_string(&mut text))
        .map_err(|error| CliError::io("read", path, &error))?;
    text.trim_end().parse().map_err(|_| {
        let message = format!("`{}` does not hold the public keys of a log", path.display());
        CliError::refused(message, HINT)
    })
}

fn parse_witness(text: &str) -> Result<VerifierKey, CliError> {
    let hint = "copy the whole line that the witness publishes, like `NAME+ID+KEY`";
    VerifierKey::parse(text).map_err(|error| CliError::refused(format!("--witness: {error}"), hint))
}
