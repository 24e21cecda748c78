//! `aegx export`

use std::path::PathBuf;

use serde::Serialize;
use wardkeep_evidence::bundle::export_zip;

use super::{require_absent, require_outside, shown};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Packs a bundle directory into a zip
///
/// Equal bundles give equal zips. The bundle is not verified.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The bundle directory
    bundle_dir: PathBuf,
    /// The zip to write
    out_zip: PathBuf,
    /// Replace the zip if it exists
    #[arg(long)]
    force: bool,
}

#[derive(Serialize)]
struct Answer {
    bundle: String,
    zip: String,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let Args { bundle_dir, out_zip, force } = args;
    if !force && let Err(mut error) = require_absent(&out_zip) {
        "choose another path, or replace it with --force".clone_into(&mut error.hint);
        return Err(error);
    }
    require_outside(&bundle_dir, &out_zip)?;
    export_zip(&bundle_dir, &out_zip, force)?;
    let answer = Answer { bundle: shown(&bundle_dir), zip: shown(&out_zip) };
    context.ui.say(format!("Exported bundle: {}", answer.zip));
    Ok(context.done(&answer))
}
