//! `wardkeep snapshot show`

use serde::Serialize;
use wardkeep_monitor::snapshot::{Content, Entry, LeftOut};

use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::Line;

/// Shows what a snapshot holds, after computing all of its hashes again
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Its id, or at least the first 4 digits of it
    id: String,
}

#[derive(Serialize)]
struct Answer {
    id: String,
    taken: String,
    scope: &'static str,
    workspace: String,
    reason: String,
    record: String,
    covers: Vec<String>,
    files: Vec<File>,
    /// Of the state directory.
    state: Vec<File>,
    left_out: Vec<LeftOut>,
    more_left_out: u64,
}

#[derive(Serialize)]
struct File {
    path: String,
    sha256: Option<String>,
    size: Option<u64>,
    mode: Option<String>,
    link: Option<String>,
}

impl File {
    fn of(entry: &Entry) -> Self {
        let path = entry.path.to_string();
        match &entry.content {
            Content::File { hash, size, mode } => Self {
                path,
                sha256: Some(hash.to_string()),
                size: Some(*size),
                mode: Some(format!("{mode:03o}")),
                link: None,
            },
            Content::Link { target } => Self {
                path,
                sha256: None,
                size: None,
                mode: None,
                link: Some(String::from_utf8_lossy(target).into_owned()),
            },
        }
    }

    fn cells(&self, folder: &str) -> Vec<Line> {
        const SHORT: usize = 10;
        let size = self.size.map_or_else(|| "link".to_owned(), |size| size.to_string());
        let what = match (&self.sha256, &self.link) {
            (Some(hash), _) => format!("{hash:.SHORT$}"),
            (None, Some(link)) => format!("to {link}"),
            (None, None) => String::new(),
        };
        let mode = self.mode.clone().unwrap_or_default();
        [format!("{folder}{}", self.path), size, mode, what].map(Line::from).to_vec()
    }
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CliError> {
    let opened = super::open(context, &args.id)?;
    opened.check()?;
    let (listed, manifest) = (opened.listed(), opened.manifest());
    let files: Vec<File> = manifest.files.iter().map(File::of).collect();
    let state: Vec<File> = manifest.state.iter().map(File::of).collect();
    let workspace = manifest.workspace.display().to_string();
    context.ui.say(format!(
        "Snapshot {} of {workspace}, {}, {}",
        listed.id, manifest.scope, manifest.taken
    ));
    if !manifest.reason.is_empty() {
        context.ui.say(format!("  {}", manifest.reason));
    }
    let mut rows: Vec<Vec<Line>> = files.iter().map(|file| file.cells("")).collect();
    rows.extend(state.iter().map(|file| file.cells("STATE/")));
    context.ui.answer_table(&rows);
    for left in &manifest.left_out {
        context.ui.note(&format!("`{}` {}: it was left out", left.path, left.why.words()));
    }
    if !state.is_empty() {
        context.ui.say("Files of STATE are there to compare with: a rollback leaves them alone.");
    }
    Ok(context.done(&Answer {
        id: listed.id.to_string(),
        taken: manifest.taken.clone(),
        scope: manifest.scope.as_str(),
        workspace,
        reason: manifest.reason.clone(),
        record: listed.record.to_string(),
        covers: manifest.covers.iter().map(ToString::to_string).collect(),
        files,
        state,
        left_out: manifest.left_out.clone(),
        more_left_out: manifest.more_left_out,
    }))
}
