//! `wardkeep md edit`

use std::process::Command;

use super::{Place, sign};
use wardkeep_policy::manifest::Signer;

use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Opens LocalGPT.md in your editor, then offers to sign it
///
/// The editor is that of VISUAL or EDITOR, else vi.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    place: Place,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let workspace = args.place.open(context)?;
    if !context.has_terminal() {
        return Err(CliError::refused(
            "there is no terminal to edit in",
            "edit the file, then run `wardkeep md sign`",
        ));
    }
    edit_file(context, &workspace.policy_path())?;
    sign::sign(context, &workspace, false, Signer::Cli)
}

/// Runs the owner's editor on a file.
pub(crate) fn edit_file(context: &Context, path: &std::path::Path) -> Result<(), CliError> {
    let editor = context.editor();
    // As git and others do: the variable may hold options.
    let status = Command::new("sh")
        .args(["-c", &format!("{editor} \"$@\""), "editor"])
        .arg(path)
        .status()
        .map_err(|error| CliError::io("run", std::path::Path::new(&editor), &error))?;
    if status.success() {
        return Ok(());
    }
    Err(CliError::refused(
        format!("the editor `{editor}` ended with {status}"),
        "set EDITOR to an editor that works; nothing was signed",
    ))
}
