//! `wardkeep notifications`

use serde::Serialize;
use wardkeep_monitor::index::{Asked, Severity};
use wardkeep_monitor::notices::{Notice, acknowledge, list};

use super::log::full_name;
use super::look::with_index;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::Line;

/// Shows what the monitor has to tell and nobody has acknowledged yet, newest first
///
/// Each notification is a record of the journal: it is read from there, and stays whatever happens
/// to the program. `--ack` writes a record that everything up to the newest one shown was seen.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Show acknowledged ones too
    #[arg(long)]
    all: bool,
    /// Acknowledge everything up to the newest one that is shown
    #[arg(long)]
    ack: bool,
    /// Only of this session: AGENT:ID, or the agent's own ID for it
    #[arg(long)]
    session: Option<String>,
    /// Only at least so grave: info, medium, high, critical [default: medium, with --all info]
    #[arg(long, value_name = "SEVERITY")]
    severity: Option<Severity>,
    /// How many at most
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u32,
}

#[derive(Serialize)]
struct Answer {
    notices: Vec<Notice>,
    more: u64,
    acknowledged: Option<u64>,
    record: Option<String>,
    reindexed: bool,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let filtered = args.session.is_some() || args.severity.is_some();
    if args.ack && filtered {
        return Err(CliError::refused(
            "what is filtered out would be acknowledged unseen",
            "give --ack without --session and --severity",
        ));
    }
    if args.ack && context.is_confined() {
        return Err(CliError::refused(
            "inside `wardkeep run` nothing is acknowledged",
            "run it outside, as the owner",
        ));
    }
    let reader = context.open_reader()?;
    let usual = (!args.all).then_some(Severity::Medium);
    let severity = args.severity.or(usual);
    let session = args.session.map(|name| full_name(context, &reader, name)).transpose()?;
    let asked = Asked { session, severity, ..Asked::default() };
    let (found, reindexed) = with_index(context, &reader, false, |index| {
        list(&reader, index, &asked, args.all, args.limit)
    })?;
    show(context, &found.notices);
    if found.more > 0 {
        let all = if args.all { " --all" } else { "" };
        context.ui.note(&format!(
            "{} older ones are not shown: `wardkeep notifications{all} --limit {}` shows them",
            found.more,
            found.more.saturating_add(found.notices.len() as u64)
        ));
    }
    let mut acknowledged = found.acknowledged;
    let mut record = None;
    if let Some(newest) = found.notices.first().filter(|_| args.ack) {
        let upto = Some(newest.index).max(acknowledged);
        if upto != acknowledged {
            let store = context.open_store()?;
            record = Some(acknowledge(&store, newest.index)?.id.to_string());
            acknowledged = upto;
            context.ui.say(format!("acknowledged up to record {}", newest.index));
        }
    }
    let answer =
        Answer { notices: found.notices, more: found.more, acknowledged, record, reindexed };
    Ok(context.done(&answer))
}

fn show(context: &mut Context, notices: &[Notice]) {
    if notices.is_empty() {
        context.ui.say("No notifications.");
        return;
    }
    for notice in notices {
        context.ui.answer(headline(notice));
        if let Some(suggestion) = &notice.suggestion {
            context.ui.answer(Line::from("    ").plain(suggestion));
        }
    }
}

/// One line: when, how grave, from where, what, which record.
pub(crate) fn headline(notice: &Notice) -> Line {
    let grave = notice.severity.as_str();
    let line = Line::from(&notice.time).plain("  ");
    let line = match notice.severity {
        Severity::High | Severity::Critical => line.bad(grave),
        Severity::Medium => line.strong(grave),
        Severity::Info => line.plain(grave),
    };
    line.plain(" ")
        .plain(notice.source.as_str())
        .plain("  ")
        .plain(short(&notice.message))
        .plain(format!("  [{:.10}]", notice.record))
}

fn short(text: &str) -> String {
    const LONGEST: usize = 240;
    if text.chars().count() <= LONGEST {
        return text.to_owned();
    }
    text.chars().take(LONGEST - 1).chain(['…']).collect()
}
