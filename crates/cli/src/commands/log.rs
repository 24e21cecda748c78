//! `wardkeep log`

use std::collections::VecDeque;
use std::ops::ControlFlow;

use serde::Serialize;
use wardkeep_agents::Agent;
use wardkeep_evidence::canonical::write_compact;
use wardkeep_evidence::json::{Object, Value};
use wardkeep_evidence::record::{Payload, Record, RecordType};
use wardkeep_monitor::index::{Filter, Index, IndexError};
use wardkeep_monitor::journal::{JournalLine, Position, parse_line, scan};
use wardkeep_monitor::notices::Notice;
use wardkeep_monitor::store::StoreReader;

use super::evidence::report::journal_bytes;
use super::evidence::resolve::find_record;
use super::time::parse_time;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::{Line, Member, harmless, members};

/// Shows the newest records of the journal, newest first, or one in full
///
/// What is shown is read from the journal and its id computed again; the index only says where to
/// look, and is made anew when it is wrong. Whether the journal as a whole holds together is for
/// `wardkeep evidence verify` to say.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Show this record in full: its id, or at least the first 8 digits of it
    #[arg(conflicts_with_all = ["session", "agent", "kind", "since", "until", "limit"])]
    record: Option<String>,
    /// Only records of this session: AGENT:ID, or the agent's own ID for it
    #[arg(long)]
    session: Option<String>,
    /// Only records of this agent
    #[arg(long)]
    agent: Option<String>,
    /// Only records of this type: SessionStart, ToolCall, FileWrite …
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<RecordType>,
    /// Not before this time: 2026-01-31T12:00:00Z, or how long ago: 15m, 2h, 3d
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Not after this time
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// How many at most
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: u32,
}

#[derive(Serialize)]
struct Answer {
    records: Vec<serde_json::Value>,
    reindexed: bool,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let reader = context.open_reader()?;
    if let Some(text) = &args.record {
        let (_, line) = find_record(&reader, text)?;
        if let Some(line) = parse_line(&line) {
            context.ui.answer_members(&in_full(&line));
        }
        let records = vec![json(&line)];
        return Ok(context.done(&Answer { records, reindexed: false }));
    }
    let now = context.now()?;
    let time =
        |text: &Option<String>| text.as_deref().map(|text| parse_time(text, now)).transpose();
    let filter = Filter {
        since: time(&args.since)?,
        until: time(&args.until)?,
        session: args.session,
        agent: args.agent,
        kind: args.kind,
        ..Filter::default()
    };
    let (mut lines, mut reindexed) = newest(context, &reader, &filter, args.limit)?;
    if let Some(name) = filter.session.clone().filter(|_| lines.is_empty()) {
        let session = Some(full_name(context, &reader, name)?);
        let (found, anew) =
            newest(context, &reader, &Filter { session, ..filter.clone() }, args.limit)?;
        (lines, reindexed) = (found, reindexed | anew);
    }
    if lines.is_empty() && filter.session.is_some() {
        context.ui.hint("a session is named AGENT:ID, as `wardkeep log --json` shows it in full");
    }
    show(context, &lines);
    let records = lines.iter().map(|line| json(line)).collect();
    Ok(context.done(&Answer { records, reindexed }))
}

/// The name of a session as records have it; an agent's own id for one may be given without the agent's
/// name.
pub(super) fn full_name(
    context: &mut Context,
    reader: &StoreReader,
    name: String,
) -> Result<String, CliError> {
    if name.contains(':') {
        return Ok(name);
    }
    let known = std::iter::once(name.clone());
    for session in known.chain(Agent::ALL.iter().map(|agent| format!("{agent}:{name}"))) {
        let filter = Filter { session: Some(session.clone()), ..Filter::default() };
        if !newest(context, reader, &filter, 1)?.0.is_empty() {
            return Ok(session);
        }
    }
    Ok(name)
}

/// The newest lines that match, newest first, and whether the index had to be made anew for it.
fn newest(
    context: &mut Context,
    reader: &StoreReader,
    filter: &Filter,
    limit: u32,
) -> Result<(Vec<Vec<u8>>, bool), CliError> {
    let mut reindexed = false;
    let lines = loop {
        match indexed(context, reader, filter, limit, reindexed) {
            Ok(Looked { lines, wrong: 0 }) => break lines,
            Ok(Looked { wrong, .. }) if !reindexed => {
                reindexed = true;
                context.ui.note(&format!(
                    "the index was wrong about {wrong} records: it is made anew from the journal"
                ));
            }
            Ok(Looked { lines, .. }) => break lines,
            Err(IndexError::Journal(error)) => return Err(error.into()),
            Err(error) => {
                context.ui.note(&format!("without the index, all of the journal is read: {error}"));
                break read_all(reader, filter, limit)?;
            }
        }
    };
    Ok((lines, reindexed))
}

/// What the index led to.
struct Looked {
    lines: Vec<Vec<u8>>,
    /// How many rows did not lead to a sound line that was asked for, in its place.
    wrong: usize,
}

fn indexed(
    context: &Context,
    reader: &StoreReader,
    filter: &Filter,
    limit: u32,
    anew: bool,
) -> Result<Looked, IndexError> {
    let total = journal_bytes(reader);
    let mut progress = context.ui.progress("indexing");
    let mut done = 0;
    let mut watch = |bytes| {
        done += bytes;
        progress.update(done, total);
    };
    if anew {
        Index::rebuild(reader.path(), reader.folder(), &mut watch)?;
    }
    let mut index = Index::open(reader.path())?;
    index.catch_up(reader.folder(), &mut watch)?;
    let mut looked = Looked { lines: Vec::new(), wrong: 0 };
    let mut before = None;
    for location in index.newest(filter, limit)? {
        // A place that cannot be read is as wrong as one that holds something else.
        let text = reader.folder().read_line(location).unwrap_or_default();
        let found = parse_line(&text).filter(|line| filter.matches(line));
        let place = found.map(|line| line.entry.index);
        match place.filter(|place| before.is_none_or(|before| *place < before)) {
            Some(place) => {
                before = Some(place);
                looked.lines.push(text);
            }
            None => looked.wrong += 1,
        }
    }
    Ok(looked)
}

fn read_all(reader: &StoreReader, filter: &Filter, limit: u32) -> Result<Vec<Vec<u8>>, CliError> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut lines: VecDeque<Vec<u8>> = VecDeque::new();
    scan(reader.folder(), Position::START, |_, text| {
        if parse_line(text).is_some_and(|line| filter.matches(&line)) {
            lines.push_front(text.to_vec());
            lines.truncate(limit);
        }
        ControlFlow::Continue(())
    })?;
    Ok(lines.into())
}

fn json(line: &[u8]) -> serde_json::Value {
    // INVARIANT: only lines that were parsed come here.
    serde_json::from_slice(line).unwrap_or_default()
}

/// Column of the session, left out where there is none.
const SESSION: usize = 4;
const SHORT_ID: usize = 10;
const LONGEST_SESSION: usize = 16;
/// Below this a summary says nothing.
const SHORTEST_SUMMARY: usize = 24;

fn show(context: &mut Context, lines: &[Vec<u8>]) {
    if lines.is_empty() {
        context.ui.say("No records.");
        return;
    }
    let header = ["index", "time", "type", "by", "session", "id", "content"];
    let mut rows = vec![header.map(str::to_owned)];
    // Only a terminal has an edge.
    let room = context.ui.room();
    let lines = lines.iter().filter_map(|text| parse_line(text));
    rows.extend(lines.map(|line| row(&line, room.is_some())));
    let mut rows: Vec<Vec<String>> = rows.into_iter().map(Vec::from).collect();
    if rows.iter().skip(1).all(|row| row[SESSION].is_empty()) {
        rows.iter_mut().for_each(|row| drop(row.remove(SESSION)));
    }
    let last = rows[0].len() - 1;
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let others: usize = (0..last).filter_map(width).map(|width| width + 2).sum();
    if let Some(room) = room {
        let left = room.saturating_sub(others + 2);
        if left < SHORTEST_SUMMARY {
            show_below(context, &rows, room);
            return;
        }
        for row in &mut rows {
            row[last] = cut(&row[last], left);
        }
    }
    let cells = rows.iter().map(|row| row.iter().map(Line::from).collect());
    context.ui.answer_table(&cells.collect::<Vec<_>>());
}

/// Where there is no room beside the rest, what each record tells stands below it.
fn show_below(context: &mut Context, rows: &[Vec<String>], room: usize) {
    const INDENT: usize = 9;
    let last = rows.first().map_or(0, |row| row.len() - 1);
    let widths: Vec<usize> = (0..last)
        .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    let left = room.saturating_sub(INDENT);
    for (number, row) in rows.iter().enumerate() {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        let line = cells.collect::<Vec<_>>().join("  ");
        context.ui.answer(format!("  {}", line.trim_end()));
        if number > 0 {
            context.ui.answer(format!("{:INDENT$}{}", "", cut(&row[last], left)));
        }
    }
}

fn row(line: &JournalLine<'_>, narrow: bool) -> [String; 7] {
    let record = &line.record;
    let text = |text: Option<&str>| harmless(text.unwrap_or_default());
    let session = text(record.meta_str("session"));
    [
        line.entry.index.to_string(),
        text(record.timestamp()),
        record.kind.to_string(),
        record.principal.to_string(),
        if narrow { cut(&session, LONGEST_SESSION) } else { session },
        format!("{:.SHORT_ID$}", record.id),
        told(line),
    ]
}

/// What a record tells, on one line: the message of a notification, what was decided about what, or the
/// content itself.
pub(super) fn told(line: &JournalLine<'_>) -> String {
    if let Some(notice) = Notice::of(line) {
        let subject = content(&line.record).and_then(|content| content.get("subject")?.as_str());
        return harmless(&once(&notice.message, subject.unwrap_or_default()));
    }
    harmless(&words(&line.record))
}

/// A text that names what it is about only once.
fn once(text: &str, subject: &str) -> String {
    match text.split_once(subject) {
        Some((before, after)) if !subject.is_empty() => {
            format!("{before}{subject}{}", after.replace(&format!("`{subject}`"), "it"))
        }
        _ => text.to_owned(),
    }
}

fn content<'a>(record: &'a Record<'_>) -> Option<&'a Object<'a>> {
    match &record.payload {
        Payload::Inline(Value::Object(content)) => Some(content),
        _ => None,
    }
}

/// All of a record: what it tells, where it stands, and its content, a label and what it says. As it is in the
/// journal, and so to be made harmless by whoever shows it.
pub(super) fn in_full(line: &JournalLine<'_>) -> Vec<Member> {
    let (record, entry) = (&line.record, &line.entry);
    let row = |label: &str, text: String| (label.to_owned(), text);
    let mut all = vec![
        row("tells", told(line)),
        row("record", record.id.to_string()),
        row("index", entry.index.to_string()),
        row("type", record.kind.to_string()),
        row("by", record.principal.to_string()),
    ];
    let value = |value: &Value<'_>| -> serde_json::Value {
        serde_json::from_str(&compact(value)).unwrap_or_default()
    };
    for (name, said) in &record.meta.members {
        let label = if name == "ts" { "time" } else { name };
        let said = serde_json::json!({ label: value(said) });
        all.extend(members(&said));
    }
    if !record.taint.is_empty() {
        all.push(row("taint", record.taint.join(", ")));
    }
    all.extend(record.parents.iter().map(|parent| row("from", parent.to_string())));
    match &record.payload {
        Payload::Blob { hash, mime, size } => {
            all.push(row("content", format!("{size} bytes of {mime}, blob {hash}")));
        }
        Payload::Inline(Value::Object(content)) => {
            all.extend(members(&value(&Value::Object(content.clone()))));
        }
        Payload::Inline(other) => {
            all.extend(members(&serde_json::json!({ "content": value(other) })));
        }
    }
    if let Some(extensions) = &record.extensions {
        let said = value(&Value::Object(extensions.clone()));
        all.extend(members(&serde_json::json!({ "not covered by its id": said })));
    }
    all.push(row("entry", entry.hash.to_string()));
    all.push(row("after entry", entry.previous.to_string()));
    all
}

/// What a record tells that is no notification.
fn words(record: &Record<'_>) -> String {
    /// Hashes are longer.
    const LONGEST: usize = 60;
    let Payload::Inline(Value::Object(content)) = &record.payload else {
        return summary(&record.payload);
    };
    let text = |key: &str| content.get(key).and_then(Value::as_str);
    let trial = text("kind") == Some("trial");
    if (trial || text("kind") == Some("decision"))
        && let (Some(act), Some(subject), Some(verdict)) =
            (text("act"), text("subject"), text("verdict"))
    {
        let from = text("place").map(|place| format!(", {place}")).unwrap_or_default();
        let how = text("how").map(|how| format!(" ({how})")).unwrap_or_default();
        let mark = if trial { "trial of wardkeep's own: " } else { "" };
        return format!("{mark}{act} {subject}{from}: {verdict}{how}");
    }
    let word = |value: &Value<'_>| match value {
        Value::Bool(said) => Some(said.to_string()),
        Value::Array(_) | Value::Object(_) | Value::Null => None,
        other => other
            .as_str()
            .map_or_else(|| Some(compact(other)), |text| Some(text.to_owned()))
            .filter(|text| text.chars().count() <= LONGEST),
    };
    let kind = content.get("kind").and_then(word);
    let members = content.sorted().into_iter().filter(|(key, _)| key != "kind" && key != "v");
    let told = members.filter_map(|(key, value)| Some(format!("{key} {}", word(value)?)));
    let told = kind.into_iter().chain(told).collect::<Vec<_>>().join(" · ");
    if told.is_empty() { summary(&record.payload) } else { told }
}

fn compact(value: &Value<'_>) -> String {
    let mut bytes = Vec::new();
    write_compact(value, &mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The content on one line, as far as a terminal could need it.
fn summary(payload: &Payload<'_>) -> String {
    /// Wider than terminals are.
    const ENOUGH: usize = 1000;
    let text = match payload {
        Payload::Inline(value) => match value.as_str() {
            Some(text) => text.to_owned(),
            None => compact(value),
        },
        Payload::Blob { hash, mime, size } => {
            format!("{size} bytes of {mime}, blob {hash:.SHORT_ID$}")
        }
    };
    harmless(&text.chars().take(ENOUGH).collect::<String>())
}

/// At most `width` characters; `text` is harmless already.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}
