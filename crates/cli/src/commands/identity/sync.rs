//! `wardkeep sync`

use std::path::PathBuf;

use serde::Serialize;
use wardkeep_identity::sync::Synced;
use wardkeep_monitor::identity::{Desk, Told};

use super::history::{Kept, keep_quietly};
use super::{Access, Asked, Meant, Report, Seen, access, ask};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::{Line, Progress};

/// Puts back what you approved, where it drifted
///
/// Protected files get their approved bytes, owner and mode again, whatever stands in their place: that
/// is kept in the state directory, never adopted. Watched files keep their content, which becomes a
/// version in the history. Exit 0: everything is as approved now; 1: something could not be put back.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The workspace [default: the current folder]
    workspace: Option<PathBuf>,
}

#[derive(Serialize)]
struct Answer<'a> {
    workspace: String,
    #[serde(flatten)]
    synced: &'a Synced,
    record: String,
    history: Option<Kept>,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    match access(context, args.workspace.as_deref())? {
        Access::Direct(meant) => {
            let store = meant.open_store(context)?;
            let progress = context.ui.progress("Looking");
            let report = report(&meant, &meant.desk(&store), Some(progress))?;
            Ok(report.print(context))
        }
        Access::Daemon(state) => {
            let workspace = args.workspace.unwrap_or_else(|| context.workspace());
            let asked = Asked { workspace, files: Vec::new(), delete: false };
            ask(context, &state, "identity.sync", asked)
        }
    }
}

/// Puts right what drifted.
pub(super) fn report(
    meant: &Meant,
    desk: &Desk<'_>,
    progress: Option<Progress>,
) -> Result<Report, CliError> {
    let seen = Seen::new(progress);
    let told = |files: usize| seen.tell(files);
    let done = desk.run(
        "sync",
        Told::default(),
        |workspace| workspace.sync(&told),
        |synced| {
            let told = Told::default().with_files(synced.mended.iter().map(|one| &one.name));
            told.with_kept(synced.kept.iter().map(|kept| (&kept.name, kept.uid)))
        },
    )?;
    drop(seen);
    let synced = done.outcome;
    let history = keep_quietly(meant, desk, &synced.versions, "sync", done.record);
    let mut lines = Vec::new();
    if let Some(recovered) = &synced.recovered {
        let how = if recovered.completed { "completed" } else { "taken back" };
        lines.push(Line::from(format!("An interrupted {} was {how}", recovered.operation)));
    }
    for mended in &synced.mended {
        let why: Vec<String> = mended.drift.iter().map(ToString::to_string).collect();
        let why = if why.is_empty() { mended.status.word().to_owned() } else { why.join(", ") };
        lines.push(Line::default().good("mended: ").plain(format!("{} ({why})", mended.name)));
    }
    for kept in &synced.kept {
        let line = Line::default().strong("kept: ");
        lines.push(line.plain(format!("what stood at {} ({})", kept.name, kept.at)));
    }
    for name in &synced.locked {
        let line = Line::default().strong("locked: ");
        lines.push(line.plain(format!("{name}, new and not approved")));
    }
    if let Some(problem) = history.as_ref().and_then(|kept| kept.problem.as_ref()) {
        lines.push(Line::from(format!("no version was kept: {problem}")));
    }
    for left in &synced.left {
        lines.push(
            Line::default().bad("not mended: ").plain(format!("{}: {}", left.name, left.why)),
        );
    }
    let whole = synced.left.is_empty();
    if whole {
        lines.push(Line::from(match synced.mended.len() {
            0 => "Nothing had drifted".to_owned(),
            1 => "1 file mended".to_owned(),
            many => format!("{many} files mended"),
        }));
    }
    let answer = Answer {
        workspace: meant.place.path().display().to_string(),
        synced: &synced,
        record: done.record.to_string(),
        history,
    };
    let exit = if whole { Exit::Success } else { Exit::Refused };
    Report::of(exit, whole, lines, &answer)
}
