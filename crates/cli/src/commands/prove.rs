//! `wardkeep prove`

use std::path::PathBuf;

use serde::Serialize;
use wardkeep_evidence::bundle::StagedFile;
use wardkeep_evidence::verify::Trust;
use wardkeep_monitor::index::{Asked, Category, Index, LookError, Severity};
use wardkeep_monitor::prove::{Health, Protection, Query, Report, page, prove};
use wardkeep_monitor::provenance::{Closure, Direction, Graph, Walk};
use wardkeep_monitor::store::StoreReader;

use super::evidence::report::{configured_witnesses, journal_bytes};
use super::log::full_name;
use super::notifications::headline;
use super::time::parse_time;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::Line;

/// Shows what was blocked, what is at risk, whether the evidence holds, and what to do
///
/// The journal is verified from the last verified checkpoint on, and all of it with --full, which
/// also counts everything anew. Filters change what is counted and listed, not what must be done. Exit
/// code 20 says that someone has to do something, 2, 3 or 4 that the evidence does not hold.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Not before this time: 2026-01-31T12:00:00Z, or how long ago: 15m, 2h, 3d
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Not after this time
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Only of this category: CPI, MI, TAINT, INJECTION, EXTRACTION, LEAKAGE, PROXY, ROLLBACK,
    /// AUTO_ROLLBACK, CONTAMINATION, SKILL, FILE, NETWORK, SANDBOX, RATE_LIMIT
    #[arg(long)]
    category: Option<Category>,
    /// Only at least so grave: info, medium, high, critical
    #[arg(long)]
    severity: Option<Severity>,
    /// Only of this session: AGENT:ID, or the agent's own ID for it
    #[arg(long)]
    session: Option<String>,
    /// How many alerts and notifications to list at most
    #[arg(long, value_name = "N", default_value_t = 10)]
    limit: u32,
    /// Verify and count everything, from the first record
    #[arg(long)]
    full: bool,
    /// Write the report to this file too, as a page with timeline and provenance graph
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

#[derive(Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    report: &'a Report,
    html: Option<String>,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let reader = context.open_reader()?;
    let now = context.now()?;
    let time =
        |text: &Option<String>| text.as_deref().map(|text| parse_time(text, now)).transpose();
    let asked = Asked {
        since: time(&args.since)?,
        until: time(&args.until)?,
        session: args.session.map(|name| full_name(context, &reader, name)).transpose()?,
        category: args.category,
        severity: args.severity,
        ..Asked::default()
    };
    let query = Query { asked, limit: args.limit, full: args.full };
    let trust = Trust { witnesses: configured_witnesses(&reader), ..Trust::default() };
    let total = journal_bytes(&reader);
    let mut progress = context.ui.progress("reading");
    let mut done = 0;
    let report = prove(&reader, &trust, &query, now, context.threads(), &mut |bytes| {
        done += bytes;
        // The journal may be read twice: for the index and to verify it.
        progress.update(done.min(total), total);
    })?;
    drop(progress);
    show(context, &report);
    if let Some(path) = &args.html {
        let graph = gravest(&reader, &report)?;
        let graph = graph.as_ref().map(|(graph, title)| (graph, title.as_str()));
        StagedFile::replace(path, 0o600, page(&report, graph, None).as_bytes())?;
        context.ui.say(format!("page in {}", path.display()));
    }
    report.actions.iter().for_each(|action| context.ui.hint(action));
    let worst = report.health.findings.iter().map(|finding| finding.check.class()).max();
    let exit = match worst {
        Some(class) => Exit::from(class),
        None if report.action_required => Exit::ActionRequired,
        None => Exit::Success,
    };
    let html = args.html.map(|path| path.display().to_string());
    Ok(context.finish(exit, report.health.chain_valid, &Answer { report: &report, html }))
}

/// What the gravest of the alerts came from; nothing where there is no alert, or the index has
/// become wrong meanwhile.
pub(super) fn gravest(
    reader: &StoreReader,
    report: &Report,
) -> Result<Option<(Graph, String)>, CliError> {
    let Some(alert) = report.alerts.iter().max_by_key(|alert| (alert.severity, alert.index)) else {
        return Ok(None);
    };
    let index = Index::open(reader.path())?;
    let walk = Walk { direction: Direction::Backward, direct: false };
    let graph = Closure::of(reader, &index, alert.record, walk)
        .and_then(|closure| Graph::of(reader, &index, &closure));
    match graph {
        Ok(graph) => Ok(Some((graph, format!("Record {:.10} and its past", alert.record)))),
        Err(LookError::Index(error)) => Err(error.into()),
        Err(_) => Ok(None),
    }
}

fn show(context: &mut Context, report: &Report) {
    let sum = &report.protection;
    context.ui.answer(
        Line::from("Protection: ")
            .strong(format!("{} blocked", sum.total_threats_blocked))
            .plain(format!(" of {} actions judged", sum.total_evaluations)),
    );
    let mut rows = Vec::new();
    protection(sum, &mut rows);
    context.ui.answer_table(&rows);
    if !report.alerts.is_empty() {
        context.ui.answer("Alerts:");
        for alert in &report.alerts {
            context.ui.answer(Line::from("  ").join(&headline(alert)));
        }
        and_more(context, report.more_alerts);
    }
    let status = &report.rollback_status;
    if !status.agent_messages.is_empty() {
        context.ui.answer("To be told to the user:");
        for message in &status.agent_messages {
            context.ui.answer(Line::from("  ").plain(message));
        }
        and_more(context, status.more_messages);
    }
    for finding in &report.health.findings {
        context.ui.fault(finding.to_string());
    }
    let holds = report.health.chain_valid;
    let line = Line::from("Evidence: ");
    let line = if holds { line.good("holds") } else { line.bad("does not hold") };
    context.ui.answer(line.plain(format!(", {} records", report.health.records)));
    let mut rows = Vec::new();
    evidence(report, &mut rows);
    context.ui.table(&rows);
    let line = if report.action_required {
        Line::default().bad("Action required")
    } else {
        Line::default().good("Nothing to do")
    };
    let listed = report.agent_notifications.iter();
    let listed = listed.filter(|notice| notice.severity != Severity::Info).count() as u64;
    let open = listed + report.more_notifications;
    context.ui.answer(line.plain(match open {
        0 => String::new(),
        1 => "; 1 notification is not acknowledged".to_owned(),
        many => format!("; {many} notifications are not acknowledged"),
    }));
}

fn and_more(context: &mut Context, more: u64) {
    if more > 0 {
        context.ui.answer(format!("  and {more} more"));
    }
}

fn row(rows: &mut Vec<Vec<Line>>, label: &str, text: impl AsRef<str>) {
    rows.push(vec![Line::from(label), Line::from(text)]);
}

/// The counts that are not zero, a few on a line.
fn counts(counts: &[(u64, &str)]) -> Option<String> {
    let some = counts.iter().filter(|(count, _)| *count > 0);
    let words: Vec<String> = some.map(|(count, name)| format!("{count} {name}")).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

fn protection(sum: &Protection, rows: &mut Vec<Vec<Line>>) {
    let lines = [
        (
            "blocked",
            counts(&[
                (sum.cpi_blocks, "control plane"),
                (sum.mi_blocks, "memory"),
                (sum.conversation_blocks, "conversation"),
                (sum.file_blocks, "file"),
                (sum.network_blocks, "network"),
                (sum.skill_blocks, "skill"),
                (sum.summed_up_blocks, "in floods"),
            ]),
        ),
        ("held", counts(&[(sum.held_for_owner, "for the owner")])),
        (
            "alerts",
            counts(&[
                (sum.critical_alerts, "critical"),
                (sum.high_alerts, "high"),
                (sum.medium_alerts, "medium"),
            ]),
        ),
        (
            "rollback",
            counts(&[
                (sum.auto_rollbacks, "automatic"),
                (sum.rollback_recommendations, "recommended"),
                (sum.contamination_events, "contamination"),
            ]),
        ),
        (
            "other",
            counts(&[
                (sum.skills_verified, "skills verified"),
                (sum.proxy_misconfigs_detected, "proxies trusted too widely"),
            ]),
        ),
    ];
    for (label, text) in lines {
        if let Some(text) = text {
            row(rows, label, text);
        }
    }
}

fn evidence(report: &Report, rows: &mut Vec<Vec<Line>>) {
    let Health { verified_now, verified_earlier, last_full, why_full, seals, .. } = &report.health;
    row(
        rows,
        "verified",
        match (verified_earlier, last_full) {
            (0, _) => "all of them now".to_owned(),
            (earlier, Some(when)) => format!(
                "{verified_now} now; {earlier} earlier, all of them last at {when} (--full reads all)"
            ),
            (earlier, None) => format!("{verified_now} now; {earlier} earlier (--full reads all)"),
        },
    );
    if let Some(why) = why_full {
        row(rows, "all read", why);
    }
    match seals {
        Some(seals) => row(
            rows,
            "sealed",
            format!("{} by {} seals, {} not yet", seals.signed_to, seals.seals, seals.unsealed),
        ),
        None => row(rows, "sealed", "nothing"),
    }
    row(
        rows,
        "counted",
        match report.counted_from {
            "journal" => "from the journal now".to_owned(),
            _ => "by the index (--full counts the journal itself)".to_owned(),
        },
    );
    for warning in &report.health.warnings {
        row(rows, "warning", warning);
    }
    if report.health.more_findings > 0 {
        row(rows, "failed", format!("{} more checks", report.health.more_findings));
    }
}
