//! `wardkeep aegx`, also called `aegx` through a link: bundles as v0.1 has them.

mod add_blob;
mod add_record;
mod export;
mod import;
mod init;
pub(crate) mod report;
mod summarize;
mod verify;
mod watched;

use std::fs;
use std::path::Path;

use clap::Subcommand;
use wardkeep_evidence::bundle::{BundleDirectory, BundleError};
use wardkeep_evidence::source::SourceError;

use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Makes, packs and verifies evidence bundles
#[derive(Debug, clap::Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_long_help = crate::exit::HELP
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands of v0.1.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Init(init::Args),
    AddBlob(add_blob::Args),
    AddRecord(add_record::Args),
    Export(export::Args),
    Import(import::Args),
    Verify(verify::Args),
    Summarize(summarize::Args),
}

/// Runs a command of the group.
pub(crate) fn run(context: &mut Context, command: Command) -> Result<Exit, CliError> {
    match command {
        Command::Init(args) => init::run(context, args),
        Command::AddBlob(args) => add_blob::run(context, args),
        Command::AddRecord(args) => add_record::run(context, args),
        Command::Export(args) => export::run(context, args),
        Command::Import(args) => import::run(context, args),
        Command::Verify(args) => verify::run(context, args),
        Command::Summarize(args) => summarize::run(context, args),
    }
}

/// Opens a bundle directory to add to it.
fn open_directory(path: &Path) -> Result<BundleDirectory, CliError> {
    let metadata = fs::metadata(path).map_err(|error| CliError::io("open", path, &error))?;
    // Opening a pipe would wait for its other end.
    if !metadata.is_dir() {
        return Err(CliError::new(
            Exit::Unreadable,
            format!("`{}` is not a directory", path.display()),
            "give a bundle directory; a zip is unpacked into one by `wardkeep aegx import`",
        ));
    }
    Ok(BundleDirectory::open(path)?)
}

/// Makes sure that `path` is a file that can be read to its end.
fn require_file(path: &Path) -> Result<(), CliError> {
    let metadata = fs::metadata(path).map_err(|error| CliError::io("open", path, &error))?;
    if metadata.is_file() {
        Ok(())
    } else {
        Err(SourceError::NotABundle(path.display().to_string()).into())
    }
}

/// Makes the folders above a bundle that is to be written to `path`, and refuses a path that
/// cannot be replaced as a whole.
fn make_room(path: &Path) -> Result<(), CliError> {
    let current = std::env::current_dir().and_then(fs::canonicalize).ok();
    let there = fs::canonicalize(path).ok();
    if path.file_name().is_none() || (there.is_some() && there == current) {
        return Err(CliError::refused(
            format!("`{}` is a directory in use", path.display()),
            "give the name of a new directory",
        ));
    }
    match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => {
            fs::create_dir_all(parent).map_err(|error| CliError::io("create", parent, &error))
        }
        None => Ok(()),
    }
}

/// Refuses a zip inside the bundle it is made from: it would become a part of it.
fn require_outside(bundle: &Path, zip: &Path) -> Result<(), CliError> {
    let full = |path: &Path| fs::canonicalize(path).or_else(|_| std::path::absolute(path));
    let folder = zip.parent().filter(|parent| !parent.as_os_str().is_empty());
    match (full(bundle), full(folder.unwrap_or(Path::new(".")))) {
        (Ok(bundle), Ok(folder)) if folder.starts_with(&bundle) => Err(CliError::refused(
            format!("`{}` lies inside the bundle", zip.display()),
            "give a path outside of it",
        )),
        _ => Ok(()),
    }
}

/// Refuses a path where something is.
fn require_absent(path: &Path) -> Result<(), CliError> {
    match fs::symlink_metadata(path) {
        Ok(_) => Err(BundleError::Exists(path.display().to_string()).into()),
        Err(_) => Ok(()),
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
