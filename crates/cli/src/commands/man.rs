//! `wardkeep man`

use std::path::{Path, PathBuf};

use clap_mangen::Man;
use serde::Serialize;
use wardkeep_evidence::bundle::StagedFile;

use crate::cli::TOOLS;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Prints the manual page, or writes one page for every command
///
/// To read it: wardkeep man | man -l -
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Write the pages of all commands into this directory, replacing those of the same name
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

#[derive(Serialize)]
struct Page {
    page: String,
}

#[derive(Serialize)]
struct Pages {
    directory: String,
    pages: Vec<String>,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let Some(directory) = args.out else {
        let page = render(&Man::new((TOOLS[0].command)()))?;
        context.ui.generated(&page);
        return Ok(context.done(&Page { page: String::from_utf8_lossy(&page).into_owned() }));
    };
    std::fs::create_dir_all(&directory)
        .map_err(|error| CliError::io("create", &directory, &error))?;
    let mut pages = Vec::new();
    for tool in TOOLS {
        let mut command = (tool.command)().disable_help_subcommand(true);
        command.build();
        write_tree(command, &directory, &mut pages)?;
    }
    let directory = directory.display().to_string();
    context.ui.say(format!("Wrote {} pages: {directory}", pages.len()));
    Ok(context.done(&Pages { directory, pages }))
}

fn write_tree(
    command: clap::Command,
    directory: &Path,
    pages: &mut Vec<String>,
) -> Result<(), CliError> {
    for below in command.get_subcommands() {
        write_tree(below.clone(), directory, pages)?;
    }
    // A built command below another knows its place as `wardkeep-aegx-init`.
    let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
    let file = format!("{name}.1");
    let page = render(&Man::new(command))?;
    StagedFile::replace(&directory.join(&file), 0o644, &page)?;
    pages.push(file);
    Ok(())
}

fn render(man: &Man) -> Result<Vec<u8>, CliError> {
    let mut page = Vec::new();
    man.render(&mut page)
        .map_err(|error| CliError::io("make", Path::new("the manual page"), &error))?;
    Ok(page)
}
