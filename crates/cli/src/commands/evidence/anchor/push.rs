//! `evidence anchor push`

use serde::Serialize;
use wardkeep_evidence::seal::Seal;
use wardkeep_monitor::anchor::outbox::{Alarm, AnchorState, Outcome};
use wardkeep_monitor::anchor::{AnchorError, Submission};
use wardkeep_monitor::proof::NewestSeal;
use wardkeep_monitor::store::{Store, StoreReader};

use super::super::report::time;
use super::{find, open, trouble, words};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::Line;

/// Makes the seal that is due and brings the newest one to every anchor that lacks it
///
/// An anchor that could not be reached is left alone for a minute, then for two, up to an hour.
/// Exit 1: an anchor does not have the seal yet. Exit 2: an anchor saw a newer or another log than
/// this one, now or earlier and not cleared since.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only these anchors
    names: Vec<String>,
    /// Ask also those that have the seal already or are left alone for a while
    #[arg(long)]
    force: bool,
}

#[derive(Serialize)]
struct Answer {
    /// Records under the seal.
    size: Option<u64>,
    epoch: Option<u64>,
    anchors: Vec<Pushed>,
}

#[derive(Serialize)]
struct Pushed {
    name: String,
    kind: &'static str,
    /// `pushed`, `current`, `waiting`, or the kind of error.
    result: String,
    size: u64,
    at: Option<u64>,
    detail: Option<String>,
    error: Option<String>,
    next_attempt: Option<u64>,
    alarm: Option<Alarm>,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    // Nothing is made where nothing was recorded.
    let reader = context.open_reader()?;
    let mut outbox = open(context)?;
    args.names.iter().try_for_each(|name| find(&outbox, name).map(drop))?;
    if outbox.list().is_empty() {
        context.ui.say("No anchors: see `wardkeep evidence anchor add --help`");
        return Ok(context.done(&Answer { size: None, epoch: None, anchors: Vec::new() }));
    }
    let store = context.open_store()?;
    let (newest, seal) = newest(&store, &reader)?;
    if let Some(problem) = store.seal_problem() {
        context.ui.note(&format!("no new seals are made: {problem}"));
    }
    let now = u64::try_from(store.now().unix()).unwrap_or(0);
    let wanted = |name: &str| args.names.is_empty() || args.names.iter().any(|one| one == name);
    let submission = Submission {
        log: &newest.log,
        note: &newest.note,
        checkpoint: &newest.checkpoint,
        consistency: &|old| newest.consistency(old),
    };
    let outcomes = outbox.push_to(&wanted, &submission, now, args.force)?;
    let statuses = outbox.list();
    let tried = |name: &str| outcomes.iter().find(|outcome| outcome.name == name);
    let anchors: Vec<Pushed> = statuses
        .iter()
        .filter(|status| wanted(&status.config.name))
        .map(|status| {
            let name = &status.config.name;
            Pushed::new(name, status.config.place.kind(), status.state, tried(name))
        })
        .collect();
    let Seal { size, epoch, .. } = seal;
    let due = store.next_seal().map(|due| format!("; the next is due at {}", time(due)));
    context.ui.say(format!("seal {epoch} over {size} records{}", due.unwrap_or_default()));
    for anchor in &anchors {
        context.ui.answer(anchor.line());
    }
    let exit = anchors.iter().map(Pushed::exit).max_by_key(|exit| exit.code());
    let exit = exit.unwrap_or(Exit::Success);
    match exit {
        Exit::Success => {}
        Exit::Refused => context.ui.hint(
            "what cannot be reached is tried again by the next push; --force does not wait; see \
             `wardkeep evidence anchor list`",
        ),
        _ => context.ui.hint(
            "an older copy of the state directory was put back, or records were cut off or \
             rewritten: keep both, restore the newer one, and clear the alarm when you know why \
             (`wardkeep evidence anchor clear --help`)",
        ),
    }
    let (size, epoch) = (Some(size), Some(epoch));
    Ok(context.finish(exit, exit == Exit::Success, &Answer { size, epoch, anchors }))
}

/// The newest seal with what is needed to show it; the one that is due is made first.
fn newest(store: &Store, reader: &StoreReader) -> Result<(NewestSeal, Seal), CliError> {
    store.seal()?;
    let newest = NewestSeal::load(reader)?;
    let seal = newest.as_ref().and_then(|newest| Seal::from_checkpoint(&newest.checkpoint).ok());
    match (newest, seal) {
        (Some(newest), Some(seal)) => Ok((newest, seal)),
        _ => {
            let problem = store.seal_problem();
            Err(CliError::new(
                Exit::Unreadable,
                problem.unwrap_or_else(|| "there is no seal to bring to the anchors".to_owned()),
                "anchors keep seals: see what is wrong with `wardkeep evidence verify`",
            ))
        }
    }
}

impl Pushed {
    fn new(name: &str, kind: &'static str, state: &AnchorState, tried: Option<&Outcome>) -> Self {
        let failing = state.failures > 0;
        let (result, error) = match tried.map(|outcome| &outcome.result) {
            Some(Ok(_)) => ("pushed", None),
            Some(Err(error)) => (error.kind(), Some(error.to_string())),
            None if failing => {
                ("waiting", state.last_failure.as_ref().map(|last| last.message.clone()))
            }
            None => ("current", None),
        };
        // Kept with the state, unless that could not be written.
        let alarm = match tried.map(|outcome| &outcome.result) {
            Some(Err(AnchorError::Rollback { theirs, ours, .. })) => {
                let (theirs, ours) = (*theirs, *ours);
                Some(Alarm::Rollback { at: state.last_attempt.unwrap_or(0), theirs, ours })
            }
            Some(Err(AnchorError::Fork { size, .. })) => {
                Some(Alarm::Fork { at: state.last_attempt.unwrap_or(0), size: *size })
            }
            _ => state.alarm,
        };
        Self {
            name: name.to_owned(),
            kind,
            result: result.to_owned(),
            size: state.last_size,
            at: state.last_success,
            detail: state.detail.clone(),
            error,
            next_attempt: failing.then_some(state.next_attempt),
            alarm,
        }
    }

    fn exit(&self) -> Exit {
        match (self.alarm, &self.error) {
            (Some(Alarm::Rollback { .. } | Alarm::Fork { .. }), _) => Exit::Failed,
            (Some(Alarm::StateLost), _) | (_, Some(_)) => Exit::Refused,
            (None, None) => Exit::Success,
        }
    }

    fn line(&self) -> Line {
        let line = Line::from(format!("{}: ", self.name));
        let holds = || {
            let detail = self.detail.as_deref().map(|detail| format!(", {detail}"));
            format!("{} records{}", self.size, detail.unwrap_or_default())
        };
        match (self.alarm, &self.error) {
            (Some(alarm), Some(_)) if alarm != Alarm::StateLost => line.bad(words(alarm)),
            (Some(alarm), None) => {
                line.plain(format!("has {}; not cleared: ", holds())).bad(words(alarm))
            }
            (_, Some(error)) => {
                let next = self.next_attempt.map(|at| format!(" (again from {})", time(at)));
                let (error, next) = (trouble(&self.name, error), next.unwrap_or_default());
                line.bad("not pushed").plain(format!(": {error}{next}"))
            }
            (None, None) if self.result == "current" => {
                line.good("has it").plain(format!(": {}", holds()))
            }
            (None, None) => line.good("pushed").plain(format!(": {}", holds())),
        }
    }
}
