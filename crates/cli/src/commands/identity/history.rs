//! `wardkeep history`, and keeping versions in it.

use std::path::PathBuf;

use serde::Serialize;
use wardkeep_evidence::hash::RecordId;
use wardkeep_evidence::time::Timestamp;
use wardkeep_identity::history::{FileVersion, History, Log};
use wardkeep_identity::version::Version;
use wardkeep_monitor::identity::Desk;
use wardkeep_monitor::index::Index;

use super::{Meant, names, owned};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::Line;

/// Shows the versions of the tracked files
///
/// Newest first; with FILE, only those in which it changed. Each names the record of what caused it.
/// `wardkeep restore FILE@REV` brings one back.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The file
    file: Option<PathBuf>,
    /// The workspace [default: the current folder]
    #[arg(long, short)]
    workspace: Option<PathBuf>,
    /// How many
    #[arg(long, short = 'n', default_value_t = 50, value_name = "N")]
    limit: usize,
}

#[derive(Serialize)]
struct Answer<'a> {
    workspace: String,
    #[serde(flatten)]
    log: &'a Log,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let meant = owned(context, args.workspace.as_deref())?;
    let name = match &args.file {
        Some(file) => names(meant.place.path(), std::slice::from_ref(file))?.pop(),
        None => None,
    };
    let folder = meant.place.history();
    let log = if folder.symlink_metadata().is_ok() {
        History::open_or_create(&folder)?.log(name.as_ref(), args.limit)?
    } else {
        Log::default()
    };
    if log.entries.is_empty() {
        context.ui.answer("No versions yet");
    }
    for entry in &log.entries {
        let id = entry.commit.to_string();
        let time = Timestamp::from_unix(entry.time).map(|time| time.to_string());
        let title = entry.message.lines().next().unwrap_or_default();
        let mut line = Line::default().strong(id.get(..12).unwrap_or(&id));
        line = line.faint(format!(" {} ", time.unwrap_or_default())).plain(title);
        if matches!(entry.file, Some(FileVersion::Removed)) {
            line = line.warning(" (removed)");
        }
        context.ui.answer(line);
    }
    if log.more {
        context.ui.say("… more: see --limit");
    }
    if let Some(damage) = &log.damage {
        context.ui.note(&damage.to_string());
    }
    let workspace = meant.place.path().display().to_string();
    Ok(context.done(&Answer { workspace, log: &log }))
}

/// What became of the versions of an operation.
#[derive(Debug, Serialize)]
pub(in crate::commands) struct Kept {
    commit: Option<String>,
    /// Why there is none.
    pub(super) problem: Option<String>,
}

/// Keeps versions, where the configuration does not say no. It never fails: what went wrong is said.
pub(in crate::commands) fn keep(
    context: &mut Context,
    meant: &Meant,
    desk: &Desk<'_>,
    versions: &[Version],
    operation: &str,
    record: RecordId,
) -> Option<Kept> {
    let kept = keep_quietly(meant, desk, versions, operation, record)?;
    if let Some(problem) = &kept.problem {
        context.ui.note(&format!("no version was kept: {problem}"));
    }
    Some(kept)
}

/// As [`keep`], without a terminal.
pub(in crate::commands) fn keep_quietly(
    meant: &Meant,
    desk: &Desk<'_>,
    versions: &[Version],
    operation: &str,
    record: RecordId,
) -> Option<Kept> {
    let failed = |problem: String| Some(Kept { commit: None, problem: Some(problem) });
    let workspace = meant.place.workspace();
    match workspace.record() {
        Ok(record) if !record.config.git() => return None,
        Ok(_) => {}
        Err(error) => return failed(error.to_string()),
    }
    if versions.is_empty() {
        return None;
    }
    let causes = causes(meant, desk, versions);
    match desk.keep(versions, &title(operation, versions), record, &causes) {
        Ok(committed) => {
            let problem = committed.damage.first().map(ToString::to_string);
            Some(Kept { commit: committed.commit.map(|id| id.to_string()), problem })
        }
        Err(error) => failed(error.to_string()),
    }
}

/// Files whose causes are looked up.
const LOOKED_UP: usize = 100;

/// The records of what last changed the files, as far as the monitor saw it.
fn causes(meant: &Meant, desk: &Desk<'_>, versions: &[Version]) -> Vec<(String, RecordId)> {
    let Ok(index) = Index::open(&meant.state) else { return Vec::new() };
    let looked = versions.iter().take(LOOKED_UP).filter_map(|version| {
        let cause = desk.cause(&index, &version.name).ok().flatten()?;
        Some((version.name.to_string(), cause))
    });
    looked.collect()
}

/// Files that a title names.
const NAMED: usize = 5;

fn title(operation: &str, versions: &[Version]) -> String {
    let mut names: Vec<String> =
        versions.iter().take(NAMED).map(|version| version.name.to_string()).collect();
    if versions.len() > NAMED {
        names.push(format!("{} more", versions.len() - NAMED));
    }
    format!("soulguard: {operation} {}", names.join(", "))
}
