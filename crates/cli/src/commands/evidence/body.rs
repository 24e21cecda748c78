//! `evidence body` and `evidence erase`

use std::io::IsTerminal as _;

use serde::Serialize;
use wardkeep_evidence::hash::{BlobHash, RecordId};
use wardkeep_evidence::json::{Object, Value};
use wardkeep_evidence::record::{Payload, Principal, RecordType};
use wardkeep_monitor::bodies::{Bodies, BodyError};
use wardkeep_monitor::journal::parse_line;
use wardkeep_monitor::store::Event;

use super::resolve::find_record;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::harmless;

/// Shows a body that `wardkeep proxy --keep-bodies` has kept
///
/// The record is that of a model's reply; it names the request as it went out and the reply as the agent got
/// it. On a terminal what could steer it is shown as text; in a file or pipe the bytes are as they were.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The record's id, or the beginning of it
    record: String,
    /// The request as it went out, rather than the reply
    #[arg(long)]
    request: bool,
}

/// Destroys the keys of kept bodies, and records that
///
/// The record, its hashes and the chain stay valid; what was said can be read no more. What a disk or a
/// backup keeps of files that are gone is beyond this.
#[derive(Debug, clap::Args)]
pub(crate) struct EraseArgs {
    /// Ids of the records of replies, or the beginnings of them
    #[arg(required = true)]
    records: Vec<String>,
}

/// What a record says that was kept.
struct Kept {
    id: RecordId,
    request: Option<BlobHash>,
    reply: Option<BlobHash>,
}

#[derive(Serialize)]
struct Shown {
    #[serde(rename = "recordId")]
    record_id: String,
    body: String,
    bytes: u64,
    text: Option<String>,
}

#[derive(Serialize)]
struct Erased {
    erased: Vec<String>,
    gone: Vec<String>,
    record: Option<String>,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let kept = kept(context, &args.record)?;
    let name = if args.request { kept.request } else { kept.reply };
    let name = name.ok_or_else(|| none(&kept.id.to_string()))?;
    let body = Bodies::of(&context.state_dir()?).read(name).map_err(failed)?;
    let text = str::from_utf8(&body).ok();
    if context.ui.is_json() || !std::io::stdout().is_terminal() {
        // In JSON it is a member of the answer.
        context.ui.generated(&body);
    } else {
        for line in String::from_utf8_lossy(&body).lines() {
            context.ui.answer(harmless(line));
        }
    }
    Ok(context.done(&Shown {
        record_id: kept.id.to_string(),
        body: name.to_string(),
        bytes: body.len() as u64,
        text: text.map(str::to_owned),
    }))
}

pub(crate) fn erase(context: &mut Context, args: EraseArgs) -> Result<Exit, CliError> {
    let all = args.records.iter().map(|text| kept(context, text));
    let all: Vec<Kept> = all.collect::<Result<_, _>>()?;
    let bodies = Bodies::of(&context.state_dir()?);
    let (mut erased, mut gone, mut parents) = (Vec::new(), Vec::new(), Vec::new());
    for kept in &all {
        let names: Vec<BlobHash> = kept.request.iter().chain(&kept.reply).copied().collect();
        if names.is_empty() {
            return Err(none(&kept.id.to_string()));
        }
        parents.push(kept.id);
        for name in names {
            match bodies.erase(name).map_err(failed)? {
                true => erased.push(name.to_string()),
                false => gone.push(name.to_string()),
            }
        }
    }
    let mut record = None;
    if !erased.is_empty() {
        let names = erased.iter().map(|name| Value::from(name.clone())).collect();
        let content = Object::from([
            ("kind", Value::from("bodies-erased")),
            ("v", Value::from(1u64)),
            ("bodies", Value::Array(names)),
        ]);
        let kind = RecordType::GuardDecision;
        let mut event = Event::new(kind, Principal::User, Value::Object(content));
        event.agent = "wardkeep";
        event.parents = parents;
        record = Some(context.open_store()?.append(event)?.id.to_string());
    }
    context.ui.answer(match erased.len() {
        0 => "they were erased before".to_owned(),
        1 => "1 body is erased".to_owned(),
        count => format!("{count} bodies are erased"),
    });
    Ok(context.done(&Erased { erased, gone, record }))
}

fn kept(context: &Context, text: &str) -> Result<Kept, CliError> {
    let reader = context.open_reader()?;
    let (id, line) = find_record(&reader, text)?;
    let line = parse_line(&line).ok_or_else(|| none(text))?;
    let Payload::Inline(Value::Object(content)) = &line.record.payload else {
        return Err(none(text));
    };
    let name = |key: &str| match content.get(key) {
        Some(Value::String(text)) => BlobHash::from_hex(text),
        _ => None,
    };
    let is_reply =
        matches!(content.get("kind"), Some(Value::String(kind)) if kind == "model-reply");
    if !is_reply {
        return Err(none(text));
    }
    Ok(Kept { id, request: name("request_body"), reply: name("reply_body") })
}

fn none(record: &str) -> CliError {
    CliError::refused(
        format!("the record {record} has no kept body"),
        "give the record of a model's reply; bodies are kept only by `wardkeep proxy --keep-bodies`",
    )
}

fn failed(error: BodyError) -> CliError {
    let exit = match error {
        BodyError::Changed(_) => Exit::Tampered,
        _ => Exit::Unreadable,
    };
    CliError::new(exit, error.to_string(), "see `wardkeep log` for when it was kept or erased")
}
