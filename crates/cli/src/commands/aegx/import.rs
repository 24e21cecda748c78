//! `aegx import`

use std::path::PathBuf;

use serde::Serialize;
use wardkeep_evidence::bundle::import_zip;
use wardkeep_evidence::source::ZipSource;

use super::{make_room, require_file, shown};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Unpacks a zip into a bundle directory
///
/// An archive that is built to harm is refused before anything is written. The bundle is not
/// verified: run `verify` on it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The zip to unpack
    bundle_zip: PathBuf,
    /// The directory to make; it must not exist, or be empty
    out_dir: PathBuf,
}

#[derive(Serialize)]
struct Answer {
    zip: String,
    bundle: String,
    verified: bool,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let Args { bundle_zip, out_dir } = args;
    require_file(&bundle_zip)?;
    // Judged before the folders above the target are made.
    ZipSource::open(&bundle_zip)?;
    make_room(&out_dir)?;
    import_zip(&bundle_zip, &out_dir)?;
    let answer = Answer { zip: shown(&bundle_zip), bundle: shown(&out_dir), verified: false };
    context.ui.say(format!("Imported bundle: {}", answer.bundle));
    context.ui.note("it was unpacked, not verified: run `wardkeep aegx verify` on it");
    Ok(context.done(&answer))
}
