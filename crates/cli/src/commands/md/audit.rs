//! `wardkeep md audit`

use std::time::Duration;

use serde::Serialize;
use wardkeep_monitor::policy::compare;
use wardkeep_policy::audit::{Action, Chain, Line as LogLine, Link, Row, Segment, Summary, read};

use super::policy_store;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::Line;

/// Shows the security audit log and whether its chain holds
///
/// Every line is shown in its place, damaged ones too, and the whole is compared with the journal,
/// which has each entry as a record: lines that were cut off at the end, or a log that was written
/// anew, keep a sound chain and still show there. Exit 15: the chain or the comparison does not hold.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only entries of this action; damaged and broken lines are shown all the same
    #[arg(long, value_name = "ACTION")]
    filter: Option<String>,
    /// Go on showing entries as they are written, until interrupted
    #[arg(long)]
    follow: bool,
}

#[derive(Serialize)]
struct RowJson {
    line: u64,
    ts: Option<String>,
    action: Option<String>,
    content_sha256: Option<String>,
    source: Option<String>,
    detail: Option<String>,
    corrupted: Option<&'static str>,
    chain: &'static str,
    never_signed: bool,
    sha256: String,
}

#[derive(Serialize)]
struct Answer {
    entries: u64,
    corrupted: u64,
    chain: &'static str,
    segments: Vec<[u64; 2]>,
    broken_lines: Vec<u64>,
    never_signed: Vec<u64>,
    missing: Vec<String>,
    unknown: Vec<u64>,
    compared: bool,
    rows: Vec<RowJson>,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let filter = args.filter.as_deref().map(known_action).transpose()?;
    let path = policy_store(context)?.audit_path();
    let report = read(&path, filter.as_ref())?;
    let summary = &report.summary;
    context.ui.say(heading(summary));
    for row in &report.rows {
        context.ui.answer(shown(row));
    }
    let compared = match context.open_reader() {
        Ok(reader) => Some(compare(reader.folder(), &path)?.differences),
        // Nothing was written here yet.
        Err(_) if summary.lines == 0 => None,
        Err(error) => {
            context.ui.fault(format!(
                "⚠ there is no journal to compare with ({}): that lines were cut off or rewritten would not show.",
                error.message
            ));
            None
        }
    };
    conclude(context, summary);
    let differences = compared.clone().unwrap_or_default();
    if !differences.missing.is_empty() {
        let lines = differences.missing.len();
        context.ui.fault(format!(
            "⚠ {lines} entries that the journal has are not in this log: it was cut or rewritten."
        ));
    }
    if !differences.unknown.is_empty() {
        context.ui.fault(format!(
            "⚠ lines {} were not written by wardkeep: the journal does not have them.",
            numbers(&differences.unknown)
        ));
    }
    let alone = compared.is_none() && summary.lines > 0;
    let holds = summary.chain == Chain::Intact && differences.agrees() && !alone;
    let exit = if holds { Exit::Success } else { Exit::AuditBroken };
    if !holds {
        context.ui.hint(
            "`wardkeep log --type GuardDecision` shows what the journal has, and `wardkeep evidence verify` whether it holds",
        );
    }
    let answer = Answer {
        entries: summary.lines,
        corrupted: summary.corrupted,
        chain: chain_word(summary.chain),
        segments: summary.segments.iter().map(|one| [one.first, one.last]).collect(),
        broken_lines: summary.broken_lines.clone(),
        never_signed: summary.never_signed.clone(),
        missing: differences.missing.iter().map(ToString::to_string).collect(),
        unknown: differences.unknown.clone(),
        compared: compared.is_some(),
        rows: report.rows.iter().map(RowJson::from).collect(),
    };
    let exit = context.finish(exit, holds && summary.never_signed.is_empty(), &answer);
    if args.follow {
        follow(context, &path, filter.as_ref(), summary.lines)?;
    }
    Ok(exit)
}

/// Shows what is new, twice a second.
fn follow(
    context: &mut Context,
    path: &std::path::Path,
    filter: Option<&Action>,
    mut shown_lines: u64,
) -> Result<(), CliError> {
    loop {
        std::thread::sleep(Duration::from_millis(500));
        let report = read(path, filter)?;
        if report.summary.lines < shown_lines {
            context.ui.fault("⚠ the log has become shorter: it was cut or replaced.");
            shown_lines = 0;
        }
        let seen = shown_lines;
        for row in report.rows.iter().filter(|row| row.number > seen && !row.torn) {
            if context.ui.is_json() {
                context.ui.line_of_json(&RowJson::from(row));
            } else {
                context.ui.answer(shown(row));
            }
            shown_lines = row.number;
        }
        shown_lines =
            shown_lines.max(report.summary.lines.saturating_sub(u64::from(report.summary.torn)));
        if context.ui.has_failed() {
            return Ok(());
        }
    }
}

fn known_action(name: &str) -> Result<Action, CliError> {
    let action = Action::from_name(name);
    if Action::ALL.contains(&action) {
        return Ok(action);
    }
    let names: Vec<&str> = Action::ALL.iter().map(Action::name).collect();
    Err(CliError::refused(
        format!("`{name}` is no action of the audit log"),
        format!("give one of {}", names.join(", ")),
    ))
}

fn heading(summary: &Summary) -> String {
    let entries = match summary.lines {
        1 => "1 entry".to_owned(),
        lines => format!("{lines} entries"),
    };
    match summary.corrupted {
        0 => format!("Security Audit Log ({entries}):"),
        corrupted => format!("Security Audit Log ({entries}, {corrupted} corrupted):"),
    }
}

/// One line as the RFC shows it, with its true number before it.
fn shown(row: &Row) -> Line {
    let number = format!("{:>5}  ", row.number);
    let entry = match &row.line {
        LogLine::Corrupted { bytes, why } => {
            return Line::from(number).bad(format!("[CORRUPTED LINE — {bytes} bytes, {why}]"));
        }
        LogLine::Entry(entry) => entry,
    };
    let time = entry.ts.get(..16).unwrap_or(&entry.ts).replace('T', " ");
    let hash = match entry.content.as_deref().and_then(|hash| hash.get(..6)) {
        Some(short) => format!("sha256:{short}"),
        None => "sha256:—".to_owned(),
    };
    let line =
        Line::from(number).plain(format!("{time:<16}  {:<18}  {hash:<13}  ", entry.action.name()));
    let line = match row.link {
        Link::Valid => line.good("✓ chain valid"),
        Link::NewSegment => line.strong("⚠ new chain segment"),
        Link::Broken => line.bad("✗ chain broken"),
    };
    let line = if row.never_signed { line.bad("  ⚠ never signed here") } else { line };
    let line = line.plain(format!("  {}", entry.source.name()));
    match &entry.detail {
        Some(detail) => line.plain(format!("  {detail}")),
        None => line,
    }
}

fn conclude(context: &mut Context, summary: &Summary) {
    if summary.corrupted > 0 || summary.segment_count > 1 {
        let found = match summary.corrupted {
            0 => String::new(),
            1 => "1 corrupted entry found. ".to_owned(),
            many => format!("{many} corrupted entries found. "),
        };
        context.ui.fault(format!("⚠ {found}Chain has {} segments.", summary.segment_count));
        for (number, segment) in (1..).zip(&summary.segments) {
            context.ui.fault(format!("  {}", segment_line(number, segment)));
        }
    }
    if summary.torn {
        context.ui.fault("⚠ the last line has no end: a crash, or it is being written.");
    }
    if !summary.never_signed.is_empty() {
        context.ui.fault(format!(
            "⚠ lines {} verified a policy that no entry before them signed: a rollback, or a log that was cut.",
            numbers(&summary.never_signed)
        ));
    }
}

fn segment_line(number: u32, segment: &Segment) -> String {
    let state = if segment.announced { "intact" } else { "does not follow the line before it" };
    format!("Segment {number}: entries {}–{} ({state})", segment.first, segment.last)
}

fn numbers(lines: &[u64]) -> String {
    const MOST: usize = 8;
    let mut text = lines.iter().take(MOST).map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if lines.len() > MOST {
        text.push_str(&format!(" and {} more", lines.len() - MOST));
    }
    text
}

pub(super) fn chain_word(chain: Chain) -> &'static str {
    match chain {
        Chain::Intact => "intact",
        Chain::Recovered => "recovered",
        Chain::Broken => "broken",
    }
}

impl From<&Row> for RowJson {
    fn from(row: &Row) -> Self {
        let (entry, corrupted) = match &row.line {
            LogLine::Entry(entry) => (Some(entry), None),
            LogLine::Corrupted { why, .. } => (None, Some(*why)),
        };
        Self {
            line: row.number,
            ts: entry.map(|entry| entry.ts.clone()),
            action: entry.map(|entry| entry.action.name().to_owned()),
            content_sha256: entry.and_then(|entry| entry.content.clone()),
            source: entry.map(|entry| entry.source.name().into_owned()),
            detail: entry.and_then(|entry| entry.detail.clone()),
            corrupted,
            chain: match row.link {
                Link::Valid => "valid",
                Link::NewSegment => "new_segment",
                Link::Broken => "broken",
            },
            never_signed: row.never_signed,
            sha256: row.hash.to_string(),
        }
    }
}
