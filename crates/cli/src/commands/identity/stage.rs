//! `wardkeep stage`

use std::path::PathBuf;

use serde::Serialize;
use wardkeep_identity::name::Name;
use wardkeep_identity::stage::Staged;
use wardkeep_monitor::identity::{Desk, Told};

use super::{Access, Asked, Meant, Report, access, ask, names};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::Line;

/// Makes a copy of a protected file that can be edited
///
/// The copy lies in `.soulguard/staging`, and is the proposal: `wardkeep diff` shows it, the owner's
/// `wardkeep apply` installs it. With --delete, proposes that the file goes.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Protected files, or folders of them
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Propose that they are deleted
    #[arg(long, short)]
    delete: bool,
    /// The workspace [default: the current folder]
    #[arg(long, short)]
    workspace: Option<PathBuf>,
}

#[derive(Serialize)]
struct Answer<'a> {
    workspace: String,
    #[serde(flatten)]
    staged: &'a Staged,
    record: String,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    match access(context, args.workspace.as_deref())? {
        Access::Direct(meant) => {
            let files = names(meant.place.path(), &args.files)?;
            let store = meant.open_store(context)?;
            Ok(report(&meant, &meant.desk(&store), &files, args.delete)?.print(context))
        }
        Access::Daemon(state) => {
            let workspace = args.workspace.unwrap_or_else(|| context.workspace());
            let asked = Asked { workspace, files: args.files, delete: args.delete };
            ask(context, &state, "identity.stage", asked)
        }
    }
}

/// Stages files.
pub(super) fn report(
    meant: &Meant,
    desk: &Desk<'_>,
    files: &[Name],
    delete: bool,
) -> Result<Report, CliError> {
    let asked = Told::default().with_files(files);
    let done = desk.run(
        if delete { "stage-deletion" } else { "stage" },
        asked,
        |workspace| workspace.stage(files, delete),
        |staged| {
            let all = staged.staged.iter().chain(&staged.made).chain(&staged.deleted);
            Told::default().with_files(all)
        },
    )?;
    let staged = done.outcome;
    let mut lines = Vec::new();
    for (word, list) in [
        ("staged: ", &staged.staged),
        ("staged, empty: ", &staged.made),
        ("to be deleted: ", &staged.deleted),
        ("already staged: ", &staged.already),
    ] {
        lines.extend(list.iter().map(|name| Line::default().strong(word).plain(name.to_string())));
    }
    if !staged.staged.is_empty() || !staged.made.is_empty() {
        lines.push(Line::next("edit it below `.soulguard/staging`."));
    }
    let workspace = meant.place.path().display().to_string();
    let answer = Answer { workspace, staged: &staged, record: done.record.to_string() };
    Report::of(Exit::Success, true, lines, &answer)
}
