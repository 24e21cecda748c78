//! `aegx add-record`

use std::borrow::Cow;
use std::path::PathBuf;
use std::str::FromStr as _;

use serde::Serialize;
use wardkeep_evidence::canonical::{Ambiguous, check_unambiguous};
use wardkeep_evidence::hash::{BlobHash, RecordId};
use wardkeep_evidence::json::{self, Value};
use wardkeep_evidence::record::{NewRecord, Payload, Principal, RecordType};

use super::open_directory;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Adds a record to a bundle and prints its id
///
/// The content is given in place with --inline, or as a blob with --blob, --mime and --size.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The bundle directory
    bundle: PathBuf,
    /// What happened: SessionStart, ToolCall, FileWrite …
    #[arg(long = "type", value_name = "TYPE")]
    kind: String,
    /// On whose behalf: USER, SYS, WEB, TOOL, SKILL, CHANNEL or EXTERNAL
    #[arg(long)]
    principal: String,
    /// A JSON object of facts about it; it needs a timestamp `ts`
    #[arg(long, value_name = "JSON")]
    meta: String,
    /// Ids of the records it came from
    #[arg(long, value_name = "ID,…", value_delimiter = ',')]
    parents: Vec<String>,
    /// What flowed into it
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    taint: Vec<String>,
    /// The content, as any JSON value
    #[arg(long, value_name = "JSON", allow_negative_numbers = true)]
    inline: Option<String>,
    /// The content, as the SHA-256 of a blob in the bundle
    #[arg(long, value_name = "SHA256")]
    blob: Option<String>,
    /// Media type of the blob
    #[arg(long)]
    mime: Option<String>,
    /// Length of the blob in bytes
    #[arg(long, value_name = "BYTES")]
    size: Option<u64>,
}

#[derive(Serialize)]
struct Answer {
    #[serde(rename = "recordId")]
    record_id: String,
    notes: Vec<String>,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let mut notes = Vec::new();
    let record = NewRecord {
        kind: RecordType::from_str(&args.kind)?,
        principal: Principal::from_str(&args.principal)?,
        taint: listed(&args.taint).map(Cow::Borrowed).collect(),
        parents: listed(&args.parents).map(parse_parent).collect::<Result<_, _>>()?,
        meta: match parse_json("--meta", &args.meta, &mut notes)? {
            Value::Object(meta) => meta,
            other => {
                let message = format!("--meta is {}, not an object", other.kind());
                let hint = r#"give an object like {"ts":"2026-01-31T12:00:00Z"}"#;
                return Err(CliError::refused(message, hint));
            }
        },
        payload: payload(&args, &mut notes)?,
    };
    let record_id = open_directory(&args.bundle)?.add_record(record)?.to_string();
    for note in &notes {
        context.ui.note(note);
    }
    context.ui.answer(&record_id);
    Ok(context.done(&Answer { record_id, notes }))
}

fn payload<'a>(args: &'a Args, notes: &mut Vec<String>) -> Result<Payload<'a>, CliError> {
    let choose = |message: &str| {
        CliError::refused(message, "give --inline, or --blob with --mime and --size")
    };
    match (&args.inline, &args.blob, &args.mime, args.size) {
        (Some(text), None, None, None) => Ok(Payload::Inline(parse_json("--inline", text, notes)?)),
        (None, Some(hash), Some(mime), Some(size)) => {
            let hash = BlobHash::from_hex(hash).ok_or_else(|| {
                let hint = "give the 64 hexadecimal digits that `wardkeep aegx add-blob` printed";
                CliError::refused(format!("--blob is `{hash}`, which is no SHA-256"), hint)
            })?;
            Ok(Payload::Blob { hash, mime: Cow::Borrowed(mime), size })
        }
        (Some(_), ..) => Err(choose("two forms of content are given")),
        (None, Some(_), ..) => Err(choose("a blob needs its media type and its size")),
        (None, None, ..) => Err(choose("no content is given")),
    }
}

/// Reads a JSON value. What readers of JSON disagree about is taken as v0.1 does, with a note.
fn parse_json<'a>(
    option: &str,
    text: &'a str,
    notes: &mut Vec<String>,
) -> Result<Value<'a>, CliError> {
    let value = json::parse(text.as_bytes()).map_err(|error| {
        let hint = "check quotes and commas, and quote the value for the shell";
        CliError::refused(format!("{option} is {error}"), hint)
    })?;
    match check_unambiguous(&value) {
        Ok(()) => {}
        Err(Ambiguous::DuplicateKey(key)) => notes.push(format!(
            "the key `{key}` stands twice in one object of {option}: the last one was kept"
        )),
        Err(other) => {
            notes.push(format!("{option} holds what other readers may take differently: {other}"));
        }
    }
    Ok(value)
}

fn parse_parent(text: &str) -> Result<RecordId, CliError> {
    RecordId::from_hex(text).ok_or_else(|| {
        let hint = "give ids as `wardkeep aegx add-record` prints them, with commas between";
        CliError::refused(format!("the parent `{text}` is no record id"), hint)
    })
}

/// The items of a list, as v0.1 reads one: `a, b` and an empty list are fine.
fn listed(items: &[String]) -> impl Iterator<Item = &str> {
    items.iter().map(|item| item.trim()).filter(|item| !item.is_empty())
}
