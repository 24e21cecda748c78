//! `wardkeep diff`

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::Serialize;
use wardkeep_identity::changes::{Change, Changes};
use wardkeep_identity::concern::Concerns;
use wardkeep_identity::name::Name;
use wardkeep_identity::show::{Limits, Pair, Shown, Side, Styled, Tone, compare};
use wardkeep_monitor::identity::Place;

use super::concerns::{concerns, need_acknowledgement, show_concerns};
use super::objections::{Objection, objections};
use super::{Access, Asked, Meant, Report, Seen, access, ask, names};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::{Line, Progress, quoted};

/// How long all files are compared; after that the comparison is coarser.
const PATIENCE: Duration = Duration::from_secs(2);

/// Shows what is staged, and the hash that approves exactly that
///
/// The staging folder is the proposal: what the agent changed in `.soulguard/staging` beside what you
/// approved. With FILES, only those are shown, and the hash approves only those. Exit 0: nothing is
/// staged; 1: something is.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The workspace [default: the current folder]
    workspace: Option<PathBuf>,
    /// Only these files, or all in these folders
    files: Vec<PathBuf>,
}

#[derive(Serialize)]
struct Answer<'a> {
    workspace: String,
    changes: &'a [Shown],
    /// What lies in staging and is no proposal.
    refused: Vec<(String, String)>,
    concerns: &'a [Concerns],
    objections: &'a [Objection],
    hash: Option<String>,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    match access(context, args.workspace.as_deref())? {
        Access::Direct(meant) => {
            let only = names(meant.place.path(), &args.files)?;
            let width = context.ui.width();
            let progress = context.ui.progress("Looking");
            Ok(report(&meant, &only, width, Some(progress))?.print(context))
        }
        Access::Daemon(state) => {
            let workspace = args.workspace.unwrap_or_else(|| context.workspace());
            let asked = Asked { workspace, files: args.files, delete: false };
            ask(context, &state, "identity.diff", asked)
        }
    }
}

/// What is staged, read once.
pub(super) struct Proposal {
    pub(super) changes: Changes,
    pub(super) shown: Vec<Shown>,
    pub(super) concerns: Vec<Concerns>,
    pub(super) objections: Vec<Objection>,
}

/// Reads what is staged of some files, or of all.
pub(super) fn propose(
    meant: &Meant,
    only: &[Name],
    progress: Option<Progress>,
) -> Result<Proposal, CliError> {
    let seen = Seen::new(progress);
    let told = |files: usize| seen.tell(files);
    let mut changes = meant.place.workspace().changes(&told)?;
    if !only.is_empty() {
        changes = changes.only(only);
    }
    drop(seen);
    proposal(meant, changes)
}

/// What is staged, as a page shows it.
pub(crate) struct StagedLines {
    pub(crate) changes: Vec<Shown>,
    /// What was found in them, or speaks against them.
    pub(crate) concerns: Vec<String>,
    /// The hash that approves exactly this, where no rule of the owner's forbids it.
    pub(crate) hash: Option<String>,
}

/// What is staged, for the page.
pub(crate) fn staged_lines(meant: &Meant) -> Result<StagedLines, CliError> {
    meant.place.usable()?;
    let proposal = propose(meant, &[], None)?;
    let mut lines: Vec<String> = show_concerns(&proposal.concerns).iter().map(Line::text).collect();
    lines.extend(proposal.objections.iter().map(|one| one.line().text()));
    let allowed = !proposal.changes.is_empty() && proposal.check_rules().is_ok();
    let hash = allowed.then(|| proposal.changes.hash().to_string());
    Ok(StagedLines { changes: proposal.shown, concerns: lines, hash })
}

/// What changes mean, for people.
pub(super) fn proposal(meant: &Meant, changes: Changes) -> Result<Proposal, CliError> {
    let place = &meant.place;
    let renames = changes.renames();
    let limits = Limits::until(Instant::now() + PATIENCE);
    let (mut shown, mut found) = (Vec::new(), Vec::new());
    for change in &changes.changes {
        let old = match change.old {
            Some(hash) => Some(place.workspace().bytes(hash)?),
            None => None,
        };
        let new = new_bytes(place, change)?;
        let from = renames.iter().find(|rename| rename.to == change.name);
        let pair = Pair {
            name: &change.name,
            renamed_from: from.map(|rename| &rename.from),
            old: old.as_deref().map(|bytes| Side { bytes, is_executable: change.was_executable }),
            new: new.as_deref().map(|bytes| Side { bytes, is_executable: change.executable }),
        };
        shown.push(compare(&pair, &limits));
        if let Some(new) = &new {
            found.extend(concerns(&change.name, old.as_deref(), new));
        }
    }
    let objections = objections(&meant.state, place, &changes);
    Ok(Proposal { changes, shown, concerns: found, objections })
}

impl Proposal {
    /// Whether the owner has to say that this was seen: something was found in the new content, a rule
    /// speaks against it, or not all of it could be shown.
    pub(super) fn needs_acknowledgement(&self) -> bool {
        need_acknowledgement(&self.concerns)
            || !self.objections.is_empty()
            || !self.shown.iter().all(Shown::is_complete)
    }

    /// Refuses what one of the owner's rules forbids.
    pub(super) fn check_rules(&self) -> Result<(), CliError> {
        match self.objections.iter().find(|one| one.forbids()) {
            None => Ok(()),
            Some(forbidden) => Err(CliError::refused(
                format!("your own rule `{}` forbids it: nothing was changed", forbidden.rule()),
                "change the rule and sign it with `wardkeep config sign`, or leave the file as it is",
            )),
        }
    }
}

/// The bytes that a file gets; where only its mode changes, those that it has.
fn new_bytes(place: &Place, change: &Change) -> Result<Option<Vec<u8>>, CliError> {
    match (&change.bytes, change.new) {
        (Some(bytes), _) => Ok(Some(bytes.to_vec())),
        (None, Some(hash)) => Ok(Some(place.workspace().bytes(hash)?)),
        (None, None) => Ok(None),
    }
}

/// The diff of a workspace.
pub(super) fn report(
    meant: &Meant,
    only: &[Name],
    width: usize,
    progress: Option<Progress>,
) -> Result<Report, CliError> {
    let place = &meant.place;
    place.usable()?;
    let Proposal { changes, shown, concerns, objections } = propose(meant, only, progress)?;
    let mut lines = Vec::new();
    for one in &shown {
        lines.extend(rendered(one, width));
    }
    lines.extend(show_concerns(&concerns));
    lines.extend(objections.iter().map(Objection::line));
    lines.extend(shown.iter().filter(|one| !one.is_complete()).map(|one| {
        let line = Line::default().warning("look at this: ");
        line.plain(format!("not all of {} is shown here; look at the file itself", one.name))
    }));
    for refused in &changes.refused {
        let line = Line::default().bad("refused: ");
        lines.push(line.plain(format!("{}: {}", refused.name, refused.why)));
    }
    let hash = (!changes.is_empty()).then(|| changes.hash().to_string());
    match &hash {
        None => lines.push(Line::from("No changes")),
        Some(hash) => {
            lines.push(Line::from(count(shown.len())));
            lines.push(Line::from(format!("Apply hash: {hash}")));
            let place = quoted(&place.path().to_string_lossy());
            let files: String =
                only.iter().map(|name| format!(" {}", quoted(&name.to_string()))).collect();
            let drops = if files.is_empty() { " --all" } else { &files };
            lines.push(Line::next(format!(
                "`wardkeep apply {place}{files} --hash {hash}` approves exactly this; `wardkeep reset \
                 {place}{drops}` drops it."
            )));
        }
    }
    let refused = changes.refused.iter().map(|one| (one.name.to_string(), one.why.clone()));
    let answer = Answer {
        workspace: place.path().display().to_string(),
        changes: &shown,
        refused: refused.collect(),
        concerns: &concerns,
        objections: &objections,
        hash,
    };
    let exit = if changes.is_empty() { Exit::Success } else { Exit::Refused };
    Report::of(exit, true, lines, &answer)
}

pub(super) fn count(files: usize) -> String {
    format!("{files} file{} changed", if files == 1 { "" } else { "s" })
}

/// A change as lines of the terminal.
pub(super) fn rendered(shown: &Shown, width: usize) -> Vec<Line> {
    shown.render(width).iter().map(line).collect()
}

fn line(styled: &Styled) -> Line {
    styled.pieces.iter().fold(Line::default(), |line, (tone, text)| match tone {
        Tone::Head => line.strong(text),
        Tone::Note => line.faint(text),
        Tone::Warning => line.warning(text),
        Tone::Plain => line.plain(text),
        Tone::Removed => line.removed(text),
        Tone::RemovedPart => line.bad(text),
        Tone::Added => line.added(text),
        Tone::AddedPart => line.good(text),
    })
}
