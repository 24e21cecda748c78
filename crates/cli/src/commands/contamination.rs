//! `wardkeep contamination`

use std::path::PathBuf;

use serde::Serialize;
use wardkeep_evidence::bundle::StagedFile;
use wardkeep_monitor::provenance::{
    Cause, Closure, Contamination, Direction, Graph, Touched, Walk, contamination, results_from,
    svg,
};
use wardkeep_monitor::store::StoreReader;

use super::evidence::resolve::resolve_record;
use super::look::with_index;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::Line;

/// Shows what a record has touched: files, memory, requests that left, and what was stopped
///
/// Follows the record to everything that came from it, or with --backward to everything that it came
/// from. What is listed is read from the journal; which record came from which is what the index
/// says, and --full makes that anew first.
///
/// In place of a record a URL can be given: then it is what came back from there, each time that a tool
/// was sent to it, and of a URL without a path all that came back from its host.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The record: its id, or at least the first 8 digits of it; or the URL of a page
    record: String,
    /// Show what the record came from instead
    #[arg(long)]
    backward: bool,
    /// Only by way of named parents and content, not by what a session had seen before
    #[arg(long)]
    direct: bool,
    /// Write a picture of it to this file, as SVG
    #[arg(long, value_name = "FILE")]
    graph: Option<PathBuf>,
    /// How many of each to list at most
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
    /// Make the index anew from the journal first
    #[arg(long)]
    full: bool,
}

#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    found: Contamination,
    graph: Option<String>,
    reindexed: bool,
}

/// What came of a page, for each time that it came back.
#[derive(Serialize)]
struct OfPage {
    url: String,
    results: Vec<Contamination>,
    /// Results that are not among them.
    more_results: u64,
    reindexed: bool,
}

/// Results of one page that are followed, the newest first.
const PAGES: usize = 8;

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let reader = context.open_reader()?;
    let direction = if args.backward { Direction::Backward } else { Direction::Forward };
    let walk = Walk { direction, direct: args.direct };
    if args.record.contains("://") {
        return of_page(context, &reader, args, walk);
    }
    let source = resolve_record(&reader, &args.record)?;
    let pictured = args.graph.is_some();
    let ((found, graph), reindexed) = with_index(context, &reader, args.full, |index| {
        let found = contamination(&reader, index, source, walk, args.limit)?;
        let graph = if pictured {
            let closure = Closure::of(&reader, index, source, walk)?;
            Some(Graph::of(&reader, index, &closure)?)
        } else {
            None
        };
        Ok((found, graph))
    })?;
    show(context, &found);
    if let (Some(path), Some(graph)) = (&args.graph, &graph) {
        let way = if args.backward { "What it came from" } else { "What came from it" };
        let picture = svg(graph, &format!("{way}: record {source:.10}"), None);
        StagedFile::replace(path, 0o600, picture.as_bytes())?;
        context.ui.say(format!("picture in {}", path.display()));
    }
    let graph = args.graph.map(|path| path.display().to_string());
    Ok(context.done(&Answer { found, graph, reindexed }))
}

fn of_page(
    context: &mut Context,
    reader: &StoreReader,
    args: Args,
    walk: Walk,
) -> Result<Exit, CliError> {
    if args.graph.is_some() {
        return Err(CliError::refused(
            "a picture is made of one record",
            "give a record: without --graph, those of the URL are listed",
        ));
    }
    let url = args.record;
    let ((results, more_results), reindexed) = with_index(context, reader, args.full, |index| {
        let (records, more) = results_from(reader, index, &url, PAGES)?;
        let of = |source| contamination(reader, index, source, walk, args.limit);
        let results = records.into_iter().map(of).collect::<Result<Vec<_>, _>>()?;
        Ok((results, more))
    })?;
    if results.is_empty() {
        return Err(CliError::refused(
            format!("nothing is recorded that came back from `{url}`"),
            "see `wardkeep log` for what came from where, without what stands behind a `?`",
        ));
    }
    for found in &results {
        show(context, found);
    }
    if more_results > 0 {
        context.ui.say(format!("and {more_results} earlier results: give their records"));
    }
    Ok(context.done(&OfPage { url, results, more_results, reindexed }))
}

fn show(context: &mut Context, found: &Contamination) {
    let records = match found.records {
        0 => "no record".to_owned(),
        1 => "1 record".to_owned(),
        many => format!("{many} records"),
    };
    let by = if found.direct { " by direct edges" } else { "" };
    let headline = match found.direction {
        Direction::Forward => format!("{records} came from {:.10}{by}", found.source),
        Direction::Backward => format!("{:.10} came from {records}{by}", found.source),
    };
    context.ui.answer(headline);
    if let Some(result) = found.result {
        context.ui.hint(&format!(
            "what came back for it is another record: `wardkeep contamination {result:.10}`"
        ));
    }
    let mut rows: Vec<Vec<Line>> = Vec::new();
    for (kind, count) in &found.by_type {
        rows.push(vec![
            Line::from("type"),
            Line::from(kind.as_str()),
            Line::from(count.to_string()),
        ]);
    }
    for share in &found.sessions {
        let records = share.records.to_string();
        rows.push(vec![Line::from("session"), Line::from(&share.session), Line::from(records)]);
    }
    more(&mut rows, found.more.sessions);
    for (label, touched, left_out) in [
        ("file", &found.files, found.more.files),
        ("memory", &found.memory, found.more.memory),
        ("left", &found.left, found.more.left),
        ("stopped", &found.stopped, found.more.stopped),
    ] {
        rows.extend(touched.iter().map(|it| row(label, it)));
        more(&mut rows, left_out);
    }
    rows.extend(found.causes.iter().map(cause));
    more(&mut rows, found.more.causes);
    context.ui.answer_table(&rows);
}

/// What it came from: what that was about, and which record it is.
fn cause(cause: &Cause) -> Vec<Line> {
    let about = match (cause.subject.as_deref().unwrap_or_default(), cause.place.as_deref()) {
        (subject, Some(place)) => format!("{subject}, {place}"),
        ("", None) => "-".to_owned(),
        (subject, None) => subject.to_owned(),
    };
    let record = format!("{:.10}, {} by {}", cause.record, cause.kind, cause.principal);
    vec![Line::from("from"), Line::from(about), Line::from(record)]
}

fn row(label: &str, touched: &Touched) -> Vec<Line> {
    let times = match touched.times {
        1 => String::new(),
        many => format!(", {many} times"),
    };
    let first = format!("first by {:.10}{times}", touched.first);
    vec![Line::from(label), Line::from(&touched.subject), Line::from(first)]
}

fn more(rows: &mut Vec<Vec<Line>>, count: u64) {
    if count > 0 {
        rows.push(vec![Line::from(""), Line::from(format!("and {count} more"))]);
    }
}
