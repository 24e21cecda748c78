//! `aegx init`

use std::path::PathBuf;

use serde::Serialize;
use wardkeep_evidence::bundle::{BundleDirectory, export_zip};

use super::{make_room, require_absent, require_outside, shown};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Makes an empty bundle
///
/// A bundle that exists is left alone (exit 1).
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The directory to make; it must not exist, or be empty
    bundle_dir: PathBuf,
    /// Also pack the empty bundle into this zip
    #[arg(long, value_name = "PATH")]
    zip_out: Option<PathBuf>,
}

#[derive(Serialize)]
struct Answer {
    bundle: String,
    zip: Option<String>,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let Args { bundle_dir, zip_out } = args;
    if let Some(zip) = &zip_out {
        require_absent(zip)?;
        require_outside(&bundle_dir, zip)?;
    }
    make_room(&bundle_dir)?;
    BundleDirectory::init(&bundle_dir, context.now()?.to_string())?;
    if let Some(zip) = &zip_out {
        export_zip(&bundle_dir, zip, false)?;
    }
    let answer = Answer { bundle: shown(&bundle_dir), zip: zip_out.as_deref().map(shown) };
    context.ui.say(format!("Initialized bundle: {}", answer.bundle));
    if let Some(zip) = &answer.zip {
        context.ui.say(format!("Exported bundle: {zip}"));
    }
    Ok(context.done(&answer))
}
