//! `evidence append`

use std::borrow::Cow;
use std::io::{BufRead as _, Read as _};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use wardkeep_evidence::hash::RecordId;
use wardkeep_evidence::json::{self, Object, Value};
use wardkeep_evidence::record::{Payload, Principal, RecordType};
use wardkeep_monitor::index::Said;
use wardkeep_monitor::journal::{Appended, MAX_RECORD_BYTES};
use wardkeep_monitor::store::{Event, Store};

use super::resolve::require_parents;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Appends a record to the journal and prints its id once it is on disk
///
/// With --jsonl, reads one record a line from standard input, as objects with `type`, `principal`,
/// `inline` and, if wanted, `taint`, `parents`, `session`, `agent`, `workspace`; each id is printed
/// when its record is on disk.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What happened: SessionStart, ToolCall, FileWrite …
    #[arg(long = "type", value_name = "TYPE", required_unless_present = "jsonl")]
    kind: Option<RecordType>,
    /// On whose behalf: USER, SYS, WEB, TOOL, SKILL, CHANNEL or EXTERNAL
    #[arg(long, required_unless_present = "jsonl")]
    principal: Option<Principal>,
    /// The content, as any JSON value without fractions
    #[arg(long, value_name = "JSON", allow_negative_numbers = true)]
    inline: Option<String>,
    /// The content, as a file that is kept under its hash
    #[arg(long, value_name = "FILE", conflicts_with = "inline")]
    file: Option<PathBuf>,
    /// Media type of the file
    #[arg(long, default_value = "application/octet-stream", requires = "file")]
    mime: String,
    /// Ids of the records it came from
    #[arg(long, value_name = "ID,…", value_delimiter = ',')]
    parents: Vec<RecordId>,
    /// What flowed into it
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    taint: Vec<String>,
    /// The session it belongs to
    #[arg(long, default_value = "")]
    session: String,
    /// The agent it concerns
    #[arg(long, default_value = "")]
    agent: String,
    /// The workspace it concerns
    #[arg(long, default_value = "")]
    workspace: String,
    /// Read records from standard input, a JSON object a line
    #[arg(long, conflicts_with_all = ["kind", "principal", "inline", "file", "parents", "taint"])]
    jsonl: bool,
}

#[derive(Serialize)]
struct Answer {
    #[serde(rename = "recordId", skip_serializing_if = "Option::is_none")]
    record_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<u64>,
    appended: u64,
}

/// A line of standard input.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    #[serde(rename = "type")]
    kind: String,
    principal: String,
    #[serde(default)]
    inline: Option<Box<serde_json::value::RawValue>>,
    #[serde(default)]
    taint: Vec<String>,
    #[serde(default)]
    parents: Vec<RecordId>,
    #[serde(default)]
    session: String,
    #[serde(default)]
    agent: String,
    #[serde(default)]
    workspace: String,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let store = context.open_store()?;
    if args.jsonl {
        return append_lines(context, &store);
    }
    let blob;
    let payload = match (&args.inline, &args.file) {
        (Some(text), _) => Payload::Inline(parse("--inline", text)?),
        (None, Some(path)) => {
            let (hash, size) = keep_file(&store, path)?;
            blob = args.mime.clone();
            Payload::Blob { hash, mime: Cow::Borrowed(&blob), size }
        }
        (None, None) => {
            return Err(CliError::refused("no content is given", "give --inline or --file"));
        }
    };
    let kind = args.kind.unwrap_or(RecordType::GuardDecision);
    refuse_own(kind, &payload)?;
    require_parents(&context.open_reader()?, &args.parents)?;
    let appended = store.append(Event {
        kind,
        principal: args.principal.unwrap_or(Principal::External),
        taint: args.taint.iter().map(|name| Cow::Borrowed(name.as_str())).collect(),
        parents: args.parents.clone(),
        agent: &args.agent,
        session: &args.session,
        workspace: &args.workspace,
        meta: Object::default(),
        payload,
    })?;
    say_unsealed(context, &store);
    context.ui.answer(appended.id.to_string());
    Ok(context.done(&Answer {
        record_id: Some(appended.id.to_string()),
        index: Some(appended.index),
        appended: 1,
    }))
}

fn append_lines(context: &mut Context, store: &Store) -> Result<Exit, CliError> {
    let reader = context.open_reader()?;
    let mut input = std::io::stdin().lock();
    let mut line = Vec::new();
    let mut appended = 0;
    for number in 1u64.. {
        line.clear();
        let read =
            input.by_ref().take(MAX_RECORD_BYTES as u64 * 2).read_until(b'\n', &mut line).map_err(
                |error| CliError::io("read", std::path::Path::new("standard input"), &error),
            )?;
        if read == 0 {
            break;
        }
        let done = append_line(store, &reader, &line).map_err(|error| {
            let message = format!("line {number}: {}", error.message);
            let hint = format!("{}; the {appended} records before it are kept", error.hint);
            CliError { message, hint, ..error }
        })?;
        context.ui.answer(done.id.to_string());
        appended += 1;
    }
    say_unsealed(context, store);
    Ok(context.done(&Answer { record_id: None, index: None, appended }))
}

fn append_line(
    store: &Store,
    reader: &wardkeep_monitor::store::StoreReader,
    line: &[u8],
) -> Result<Appended, CliError> {
    let request: Request = serde_json::from_slice(line).map_err(|error| {
        let hint = r#"give lines like {"type":"ToolCall","principal":"TOOL","inline":{}}"#;
        CliError::refused(format!("not a record: {error}"), hint)
    })?;
    require_parents(reader, &request.parents)?;
    let inline = match &request.inline {
        Some(raw) => parse("`inline`", raw.get())?,
        None => Value::Null,
    };
    let (kind, payload) = (request.kind.parse()?, Payload::Inline(inline));
    refuse_own(kind, &payload)?;
    Ok(store.append(Event {
        kind,
        principal: request.principal.parse()?,
        taint: request.taint.iter().map(|name| Cow::Borrowed(name.as_str())).collect(),
        parents: request.parents.clone(),
        agent: &request.agent,
        session: &request.session,
        workspace: &request.workspace,
        meta: Object::default(),
        payload,
    })?)
}

/// Records of a `kind` are what this program itself decided and did: an entry of the audit log, a
/// signature, an alert. From outside they would be believed, and written to the audit log.
fn refuse_own(kind: RecordType, payload: &Payload<'_>) -> Result<(), CliError> {
    let Payload::Inline(content) = payload else { return Ok(()) };
    let Some(word) = content.as_object().and_then(|content| content.get("kind")) else {
        return Ok(());
    };
    if kind == RecordType::GuardDecision {
        return Err(CliError::refused(
            "a GuardDecision with a `kind` is written by wardkeep alone",
            "leave `kind` out, or give another type",
        ));
    }
    // Judged actions have other types too, and what they say is counted and undone by.
    if word.as_str().and_then(Said::parse).is_some() {
        return Err(CliError::refused(
            "content of this `kind` is written by wardkeep alone",
            "leave `kind` out, or give another word",
        ));
    }
    Ok(())
}

fn parse<'a>(what: &str, text: &'a str) -> Result<Value<'a>, CliError> {
    json::parse(text.as_bytes()).map_err(|error| {
        let hint = "check quotes and commas, and quote the value for the shell";
        CliError::refused(format!("{what} is {error}"), hint)
    })
}

fn keep_file(
    store: &Store,
    path: &std::path::Path,
) -> Result<(wardkeep_evidence::hash::BlobHash, u64), CliError> {
    /// Kept in memory while it is hashed and written.
    const LIMIT: u64 = 256 << 20;
    let metadata = std::fs::metadata(path).map_err(|error| CliError::io("open", path, &error))?;
    if !metadata.is_file() || metadata.len() > LIMIT {
        return Err(CliError::refused(
            format!("`{}` is not a regular file of at most {LIMIT} bytes", path.display()),
            "give a smaller file, or its hash and place in --inline",
        ));
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(LIMIT).read_to_end(&mut bytes))
        .map_err(|error| CliError::io("read", path, &error))?;
    Ok((store.put_blob(&bytes)?, bytes.len() as u64))
}

fn say_unsealed(context: &mut Context, store: &Store) {
    if let Some(problem) = store.seal_problem() {
        context.ui.note(&format!("no seals are made: {problem}"));
    }
}
