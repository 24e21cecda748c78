//! `wardkeep undo`

use std::path::{Path, PathBuf};

use serde::Serialize;
use wardkeep_evidence::check::printable;
use wardkeep_monitor::rollback::RolledBack;
use wardkeep_monitor::snapshot::{By, RelativePath, Snapshots};
use wardkeep_monitor::store::StoreReader;
use wardkeep_monitor::undo::{self, Call, UndoPlan, Undone, Wanted};
use wardkeep_policy::sign::Presence;

use super::look::with_index;
use super::md::sign::request;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Brings back what an agent changed or destroyed
///
/// Before a tool of an agent writes, moves or deletes files, Wardkeep keeps what they are. This puts
/// them back: those of the last such call below the current folder, of a whole session, or the files
/// that are named. Run again, it goes one step further back. What it replaces is kept as a snapshot
/// first. Files that were not there before are left alone unless --created is given, and files that
/// the agent's tools did not touch never change. Packages, caches and build output, files over 16 MiB,
/// and what is over 64 MiB in one call are not kept. Nor is what a command changes without naming it
/// (`make clean`, `xargs rm`, a formatter). Refuses without a terminal unless --yes is given, and
/// always inside `wardkeep run`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files, or folders with all in them; without any, those of the last call
    #[arg(value_name = "FILE", conflicts_with_all = ["last", "session"])]
    files: Vec<PathBuf>,
    /// The last call of a tool that changed something below the current folder; this is the default
    #[arg(long, conflicts_with = "session")]
    last: bool,
    /// Everything that this session changed; a part of its name is enough
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// Also remove files that were not there before
    #[arg(long)]
    created: bool,
    /// List the newest calls that can be undone, and change nothing
    #[arg(long, conflicts_with_all = ["files", "last", "session", "created", "dry_run", "yes"])]
    list: bool,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Undo without asking
    #[arg(long)]
    yes: bool,
}

/// Calls that are listed.
const LISTED: u32 = 20;
/// Paths of a call that are shown.
const SHOWN: usize = 4;

#[derive(Serialize)]
struct Answer {
    dry_run: bool,
    calls: Vec<CallRow>,
    restored: Vec<PathBuf>,
    removed: Vec<PathBuf>,
    /// Files that were not there before and are left.
    created: Vec<PathBuf>,
    lost: Vec<LeftRow>,
    left: Vec<LeftRow>,
    /// Snapshots of what was replaced.
    kept: Vec<String>,
}

#[derive(Serialize)]
struct CallRow {
    record: String,
    time: String,
    agent: String,
    session: String,
    tool: String,
    paths: Vec<PathBuf>,
    /// Why nothing was kept, or null.
    failed: Option<String>,
    /// `no`, `in-part` or `yes`.
    undone: &'static str,
}

#[derive(Serialize)]
struct LeftRow {
    path: PathBuf,
    why: String,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let reader = context.open_reader()?;
    if args.list {
        return list(context, &reader);
    }
    let (plan, target) = planned(context, &reader, &args)?;
    review(context, &plan, args.created);
    let removes = args.created && !plan.created.is_empty();
    let nothing = plan.back.is_empty() && !removes;
    if nothing || args.dry_run {
        if nothing {
            context.ui.answer(if plan.calls.is_empty() && plan.lost.is_empty() {
                "Nothing to undo: nothing was kept of that; `--list` shows what was."
            } else {
                "Nothing to undo: no file differs from what was kept of it."
            });
        }
        let done = Answer { dry_run: args.dry_run, ..would(&plan, args.created, !nothing) };
        return Ok(context.done(&done));
    }
    ask(context, args.yes)?;
    let store = context.open_store()?;
    let done = undo::carry_out(
        &Snapshots::new(&store),
        &plan,
        target.wanted(),
        args.created,
        By::owner(),
    )?;
    Ok(answer(context, &plan, args.created, &done))
}

fn planned(
    context: &mut Context,
    reader: &StoreReader,
    args: &Args,
) -> Result<(UndoPlan, Target), CliError> {
    let here = std::path::absolute(context.workspace()).unwrap_or_default();
    let target = match (&args.session, args.files.as_slice()) {
        (Some(name), _) => Target::Session(one_session(context, reader, name)?),
        (None, []) => Target::Last(real(&here)),
        (None, files) => Target::Files(files.iter().map(|file| real(&here.join(file))).collect()),
    };
    let wanted = target.wanted();
    let (plan, _) = with_index(context, reader, false, |index| undo::plan(reader, index, wanted))?;
    Ok((plan, target))
}

/// What is to be undone.
enum Target {
    Last(PathBuf),
    Session(String),
    Files(Vec<PathBuf>),
}

impl Target {
    fn wanted(&self) -> Wanted<'_> {
        match self {
            Self::Last(folder) => Wanted::Last(folder),
            Self::Session(session) => Wanted::Session(session),
            Self::Files(files) => Wanted::Files(files),
        }
    }
}

fn one_session(
    context: &mut Context,
    reader: &StoreReader,
    name: &str,
) -> Result<String, CliError> {
    let (found, _) =
        with_index(context, reader, false, |index| undo::sessions(reader, index, name))?;
    let mut found: Vec<String> = found.into_iter().collect();
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(CliError::refused(
            format!("no session `{}` has changed files", printable(name)),
            "see `wardkeep undo --list`",
        )),
        _ => Err(CliError::refused(
            format!("`{}` is a part of {} sessions' names", printable(name), found.len()),
            format!("name one of them: {}", found.join(", ")),
        )),
    }
}

/// The real path, as far as there is one: what was deleted has none.
fn real(path: &Path) -> PathBuf {
    if let (Some(parent), Some(name)) = (path.parent(), path.file_name())
        && path.symlink_metadata().is_err()
    {
        return real(parent).join(name);
    }
    let parent = path.parent().and_then(|parent| parent.canonicalize().ok());
    match (parent, path.file_name()) {
        (Some(parent), Some(name)) => parent.join(name),
        _ => path.canonicalize().unwrap_or_else(|_| path.to_owned()),
    }
}

fn list(context: &mut Context, reader: &StoreReader) -> Result<Exit, CliError> {
    let (calls, _) =
        with_index(context, reader, false, |index| undo::calls(reader, index, None, LISTED))?;
    if calls.is_empty() {
        context.ui.answer("No call of an agent's tool has changed files yet.");
    }
    for call in &calls {
        let undone = match call.undone {
            Undone::Nothing => "",
            Undone::Paths(_) => "  (undone in part)",
            Undone::All => "  (undone)",
        };
        let (session, tool) = (shown(&call.session), shown(&call.tool));
        context.ui.answer(format!("{}  {session}  {tool}{undone}", call.at));
        let paths: Vec<PathBuf> = call.paths().collect();
        for path in paths.iter().take(SHOWN) {
            context.ui.say(format!("    {}", shown(&path.to_string_lossy())));
        }
        if let Some(more) = paths.len().checked_sub(SHOWN).filter(|more| *more > 0) {
            context.ui.say(format!("    and {more} more"));
        }
        if let Err(why) = &call.kept {
            context.ui.note(&format!("nothing was kept: {}", shown(why)));
        }
    }
    let answer = Answer { calls: calls.iter().map(row).collect(), ..empty() };
    Ok(context.done(&answer))
}

fn review(context: &mut Context, plan: &UndoPlan, created: bool) {
    for call in plan.calls.iter().take(SHOWN) {
        let (at, session, tool) = (call.at, shown(&call.session), shown(&call.tool));
        context.ui.say(format!("{at}  {session}  {tool}"));
    }
    for (path, back) in &plan.back {
        let what = if back.replaces { "put back" } else { "bring back" };
        context.ui.say(format!("{what}  {}", shown(&path.to_string_lossy())));
    }
    for path in plan.created.keys() {
        let path = shown(&path.to_string_lossy());
        if created {
            context.ui.say(format!("remove  {path}"));
        } else {
            context.ui.note(&format!("`{path}` was not there before, and stays: see --created"));
        }
    }
    for (path, why) in &plan.lost {
        let path = shown(&path.to_string_lossy());
        context.ui.note(&format!("`{path}` {why}: no copy was kept"));
    }
    for call in &plan.calls {
        if let Err(why) = &call.kept {
            context.ui.note(&format!(
                "of the call at {} nothing was kept: {}",
                call.at,
                shown(why)
            ));
        }
    }
}

fn ask(context: &mut Context, yes: bool) -> Result<(), CliError> {
    let request = request(context, yes)?;
    if request.confined {
        return Err(CliError::refused(
            "undo is refused inside `wardkeep run`",
            "undo in a terminal of your own",
        ));
    }
    match request.presence {
        Presence::Yes => Ok(()),
        Presence::Terminal if context.confirm("Undo?")? => Ok(()),
        Presence::Terminal => Err(CliError::refused("not undone", "nothing was changed")),
        Presence::None => Err(CliError::refused(
            "undo needs a person",
            "run it in a terminal, or give --yes if you have seen what changes",
        )),
    }
}

fn answer(
    context: &mut Context,
    plan: &UndoPlan,
    created: bool,
    done: &[(PathBuf, RolledBack)],
) -> Exit {
    let count =
        |list: fn(&RolledBack) -> usize| done.iter().map(|(_, one)| list(one)).sum::<usize>();
    context.ui.answer(format!(
        "✓ Undone: {} put back, {} removed",
        count(|one| one.restored.len()),
        count(|one| one.removed.len())
    ));
    let mut result = would(plan, created, false);
    for (root, one) in done {
        let full = |path: &RelativePath| root.join(path.as_path());
        result.restored.extend(one.restored.iter().map(full));
        result.removed.extend(one.removed.iter().map(full));
        for left in &one.left {
            context.ui.fault(format!("`{}` {}: it is as it was", left.path, left.why));
            result.left.push(LeftRow { path: full(&left.path), why: left.why.to_string() });
        }
        if let Some(kept) = one.kept {
            context.ui.say(format!("What was replaced is in {kept}: `wardkeep rollback {kept}`"));
            result.kept.push(kept.to_string());
        }
    }
    let exit = if result.left.is_empty() { Exit::Success } else { Exit::Failed };
    context.finish(exit, exit == Exit::Success, &result)
}

/// What a plan says; with `done`, as if it were done.
fn would(plan: &UndoPlan, created: bool, done: bool) -> Answer {
    let mut answer = empty();
    answer.calls = plan.calls.iter().map(row).collect();
    if done {
        answer.restored = plan.back.keys().cloned().collect();
    }
    let all = plan.created.keys().cloned().collect();
    match (created, done) {
        (true, true) => answer.removed = all,
        (true, false) => {}
        (false, _) => answer.created = all,
    }
    let lost = plan.lost.iter();
    answer.lost =
        lost.map(|(path, why)| LeftRow { path: path.clone(), why: why.clone() }).collect();
    answer
}

fn empty() -> Answer {
    Answer {
        dry_run: false,
        calls: Vec::new(),
        restored: Vec::new(),
        removed: Vec::new(),
        created: Vec::new(),
        lost: Vec::new(),
        left: Vec::new(),
        kept: Vec::new(),
    }
}

fn row(call: &Call) -> CallRow {
    CallRow {
        record: call.record.to_string(),
        time: call.at.to_string(),
        agent: call.agent.clone(),
        session: call.session.clone(),
        tool: call.tool.clone(),
        paths: call.paths().collect(),
        failed: call.kept.as_ref().err().cloned(),
        undone: match call.undone {
            Undone::Nothing => "no",
            Undone::Paths(_) => "in-part",
            Undone::All => "yes",
        },
    }
}

fn shown(text: &str) -> String {
    printable(text)
}
