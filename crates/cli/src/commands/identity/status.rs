//! `wardkeep status`

use std::path::PathBuf;

use rustix::fs::{Gid, Uid};
use serde::Serialize;
use wardkeep_identity::config::Tier;
use wardkeep_identity::error::IdentityError;
use wardkeep_identity::lock::{Agent, Anchor, Lock, anchors};
use wardkeep_identity::state::{FileState, State, Status};
use wardkeep_monitor::identity::{Place, Setup};

use super::{Access, Asked, Report, Seen, access, ask};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::{Line, Progress};

/// Shows whether the files that define an agent are as you approved them
///
/// Each protected and watched file is ok, drifted, missing or pending; what is staged is listed too.
/// Says which level of enforcement holds, and what it does not prevent. Exit 0: nothing is wrong;
/// 1: something drifted or is missing, or the workspace is not set up.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The workspace [default: the current folder]
    workspace: Option<PathBuf>,
    /// Read every file, whatever is remembered of it
    #[arg(long)]
    full: bool,
}

impl Args {
    pub(crate) fn new(workspace: Option<PathBuf>, full: bool) -> Self {
        Self { workspace, full }
    }

    pub(crate) fn into_parts(self) -> (Option<PathBuf>, bool) {
        (self.workspace, self.full)
    }
}

#[derive(Serialize)]
struct Answer<'a> {
    workspace: String,
    enforcement: Enforcement,
    #[serde(flatten)]
    state: &'a State,
    counts: Counts,
    staged: Vec<StagedRow>,
    /// What lies in staging and is no proposal.
    refused: Vec<(String, String)>,
    /// Why what is staged could not be told.
    staging_problem: Option<String>,
}

#[derive(Serialize)]
struct Enforcement {
    level: &'static str,
    lock: Option<Lock>,
    /// Folders above the workspace that the agent can put others in the place of.
    loose: Vec<String>,
    explained: String,
}

#[derive(Serialize)]
struct Counts {
    ok: usize,
    drifted: usize,
    missing: usize,
    pending: usize,
}

#[derive(Serialize)]
struct StagedRow {
    name: String,
    status: &'static str,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    match access(context, args.workspace.as_deref())? {
        Access::Direct(meant) => {
            let progress = context.ui.progress("Looking");
            let report = report(&meant.place, args.full, Some(progress))?;
            Ok(report.print(context))
        }
        Access::Daemon(state) => {
            let workspace = args.workspace.unwrap_or_else(|| context.workspace());
            let asked = Asked { workspace, files: Vec::new(), delete: false };
            ask(context, &state, "identity.status", asked)
        }
    }
}

/// How a workspace is.
pub(super) fn report(
    place: &Place,
    full: bool,
    progress: Option<Progress>,
) -> Result<Report, CliError> {
    let seen = Seen::new(progress);
    let told = |files: usize| seen.tell(files);
    let workspace = place.workspace();
    let state = if full { workspace.look_closely(&told)? } else { workspace.look(&told)? };
    let (mut staged, mut refused, mut staging_problem) = (Vec::new(), Vec::new(), None);
    match workspace.changes(&told) {
        Ok(changes) => {
            staged.extend(changes.changes.iter().map(|change| StagedRow {
                name: change.name.to_string(),
                status: change.status(),
            }));
            let rows = changes.refused.iter().map(|one| (one.name.to_string(), one.why.clone()));
            refused.extend(rows);
        }
        Err(error @ (IdentityError::NoStaging | IdentityError::TooMuch { .. })) => {
            staging_problem = Some(error.to_string());
        }
        Err(error) => return Err(error.into()),
    }
    drop(seen);
    let misplaced = place.usable().err();
    let clean = state.is_clean() && misplaced.is_none();
    let enforcement = enforcement(place);
    let mut lines = vec![Line::from(format!("Workspace: {}", place.path().display()))];
    lines.push(Line::from(format!("Enforcement: {}", enforcement.explained)));
    for loose in &enforcement.loose {
        lines.push(Line::default().strong("  not prevented: ").plain(loose));
    }
    if let Some(error) = &misplaced {
        lines.push(Line::default().bad(error.to_string()));
    }
    if state.unfinished {
        lines.push(Line::default().strong("a change was interrupted; the next one finishes it"));
    }
    for tier in [Tier::Protect, Tier::Watch] {
        lines.extend(rows(tier, &state.files));
    }
    for closed in &state.closed {
        lines.push(
            Line::default().bad("closed   ").plain(format!("{}: {}", closed.name, closed.why)),
        );
    }
    if !staged.is_empty() {
        lines.push(Line::default().strong("Staged"));
        for row in &staged {
            lines.push(Line::from(format!("  {:<10} {}", row.status, row.name)));
        }
    }
    for (name, why) in &refused {
        lines.push(Line::default().bad("  refused  ").plain(format!("{name}: {why}")));
    }
    if let Some(problem) = &staging_problem {
        lines.push(Line::default().strong("  ").plain(problem));
    }
    let count = |status| state.count(status);
    let counts = Counts {
        ok: count(Status::Ok),
        drifted: count(Status::Drifted),
        missing: count(Status::Missing),
        pending: count(Status::Pending),
    };
    lines.push(Line::from(format!(
        "{} ok, {} drifted, {} missing, {} pending",
        counts.ok, counts.drifted, counts.missing, counts.pending
    )));
    if !clean {
        lines.push(Line::next("`wardkeep sync` puts back what you approved."));
    } else if !staged.is_empty() {
        lines.push(Line::next("`wardkeep diff` shows what is staged."));
    }
    let exit = if clean { Exit::Success } else { Exit::Refused };
    let workspace = place.path().display().to_string();
    let answer =
        Answer { workspace, enforcement, state: &state, counts, staged, refused, staging_problem };
    Report::of(exit, clean, lines, &answer)
}

/// Most files that are listed one by one where nothing is wrong with them.
const LISTED: usize = 50;

fn rows(tier: Tier, files: &[FileState]) -> Vec<Line> {
    let of = || files.iter().filter(|file| file.tier == tier);
    if of().next().is_none() {
        return Vec::new();
    }
    let heading = match tier {
        Tier::Protect => "Protect",
        Tier::Watch => "Watch",
    };
    let mut lines = vec![Line::default().strong(heading)];
    let many = of().count() > LISTED;
    for file in of().filter(|file| !many || file.status != Status::Ok) {
        let word = format!("  {:<8} ", file.status.word());
        let line = match file.status {
            Status::Ok => Line::default().good(word),
            Status::Drifted | Status::Missing => Line::default().bad(word),
            Status::Pending => Line::default().strong(word),
        };
        let why: Vec<String> = file.drift.iter().map(ToString::to_string).collect();
        let why = if why.is_empty() { String::new() } else { format!(": {}", why.join(", ")) };
        lines.push(line.plain(format!("{}{why}", file.name)));
    }
    if many {
        let fine = of().filter(|file| file.status == Status::Ok).count();
        lines.push(Line::default().good(format!("  ok       {fine} files")));
    }
    lines
}

fn enforcement(place: &Place) -> Enforcement {
    match place.setup() {
        Setup::User => Enforcement {
            level: "user",
            lock: None,
            loose: Vec::new(),
            explained: "user: changes are detected and undone; they are prevented only where the \
                        agent runs under `wardkeep run`"
                .to_owned(),
        },
        Setup::Owned { agent, agent_group, lock, .. } => {
            let agent =
                Agent { uid: Uid::from_raw(agent), groups: vec![Gid::from_raw(agent_group)] };
            let loose = match anchors(place.path(), &agent) {
                Ok(anchors) => anchors.iter().filter(|anchor| !anchor.holds).map(explain).collect(),
                Err(error) => vec![format!("the folders above could not be looked at: {error}")],
            };
            let how = match lock {
                Lock::None => {
                    "protected files belong to a user of their own, but can be put aside by \
                     whoever owns their folder: that is detected and undone"
                }
                Lock::Immutable => {
                    "protected files belong to a user of their own and are immutable"
                }
                Lock::Sticky => {
                    "protected files belong to a user of their own, in folders of root's"
                }
            };
            Enforcement {
                level: "owned",
                lock: Some(lock),
                loose,
                explained: format!("owned: {how}"),
            }
        }
    }
}

fn explain(anchor: &Anchor) -> String {
    format!(
        "`{}` can be renamed by the agent ({}); a workspace put in its place is detected",
        anchor.path.display(),
        anchor.why.words()
    )
}
