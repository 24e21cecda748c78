//! `aegx add-blob`

use std::path::PathBuf;

use serde::Serialize;
use wardkeep_evidence::source::BLOBS;

use super::open_directory;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Copies a file into a bundle and prints its SHA-256, which is its name there
///
/// A record that holds it is added by `add-record --blob`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The bundle directory
    bundle: PathBuf,
    /// The file to copy
    file_path: PathBuf,
    /// Its media type; not kept with the blob, so `add-record` needs it again
    #[arg(long, default_value = "application/octet-stream")]
    mime: String,
}

#[derive(Serialize)]
struct Answer {
    blob: String,
    mime: String,
    size: u64,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let blob = open_directory(&args.bundle)?.add_blob(&args.file_path)?.to_string();
    let path = args.bundle.join(BLOBS).join(&blob);
    let metadata = path.metadata().map_err(|error| CliError::io("read", &path, &error))?;
    context.ui.answer(&blob);
    Ok(context.done(&Answer { blob, mime: args.mime, size: metadata.len() }))
}
