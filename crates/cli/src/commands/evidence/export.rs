//! `evidence export`

use std::path::PathBuf;

use serde::Serialize;
use wardkeep_evidence::bundle::export_zip;
use wardkeep_evidence::record::RecordType;
use wardkeep_monitor::export::{Exported, Selection, export_watched};
use wardkeep_monitor::index::Filter;

use super::report::journal_bytes;
use super::resolve::resolve_record;
use crate::commands::log::full_name;
use crate::commands::time::parse_time;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Writes a bundle of the journal, or of a part that proves what it is a part of
///
/// A part holds only the chosen records and their blobs, unchanged; each with its original entry
/// and a proof that the sealed log holds it. Check any bundle with `wardkeep aegx verify`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where to write it: a new directory, or a zip if the name ends in .zip
    out: PathBuf,
    /// Only records from this time on, like 2026-01-31T12:00:00Z or 2h for two hours ago
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only records up to this time
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Only records of this session: AGENT:ID, or the agent's own ID for it
    #[arg(long)]
    session: Option<String>,
    /// Only records of this agent
    #[arg(long)]
    agent: Option<String>,
    /// Only records of this type
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<RecordType>,
    /// Only this record, what it came from and what came from it
    #[arg(long, value_name = "RECORD")]
    around: Option<String>,
}

#[derive(Serialize)]
struct Answer {
    bundle: String,
    part: bool,
    exported: Exported,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let reader = context.open_reader()?;
    let now = context.now()?;
    let time =
        |text: &Option<String>| text.as_deref().map(|text| parse_time(text, now)).transpose();
    let selection = Selection {
        filter: Filter {
            since: time(&args.since)?,
            until: time(&args.until)?,
            session: args.session.map(|name| full_name(context, &reader, name)).transpose()?,
            agent: args.agent,
            kind: args.kind,
            ..Filter::default()
        },
        around: args.around.as_deref().map(|text| resolve_record(&reader, text)).transpose()?,
    };
    let total = 2 * journal_bytes(&reader);
    let mut line = context.ui.progress("exporting");
    let mut done = 0;
    let mut progress = |bytes| {
        done += bytes;
        line.update(done, total);
    };
    let zipped = args.out.extension().is_some_and(|extension| extension == "zip");
    let exported = if zipped {
        if std::fs::symlink_metadata(&args.out).is_ok() {
            let message = format!("`{}` exists already", args.out.display());
            return Err(CliError::refused(message, "choose another path, or remove it first"));
        }
        let folder = args.out.parent().filter(|parent| !parent.as_os_str().is_empty());
        let folder = folder.unwrap_or(std::path::Path::new("."));
        let staging = tempfile::Builder::new()
            .prefix(".wardkeep-export-")
            .tempdir_in(folder)
            .map_err(|error| CliError::io("write to", folder, &error))?;
        let bundle = staging.path().join("bundle");
        let exported = export_watched(&reader, &selection, &bundle, now, &mut progress)?;
        export_zip(&bundle, &args.out, false)?;
        exported
    } else {
        export_watched(&reader, &selection, &args.out, now, &mut progress)?
    };
    drop(line);
    let part = !selection.is_all();
    context.ui.answer(args.out.display().to_string());
    let of = if part { format!(" of {}", exported.total) } else { String::new() };
    context.ui.say(format!("{}{of} records, {} blobs", exported.records, exported.blobs));
    if exported.omitted_parents > 0 {
        context.ui.say(format!("{} parents are not in it, and listed", exported.omitted_parents));
    }
    for (count, what) in [
        (exported.missing_blobs, "blobs that records name are missing"),
        (exported.unreadable_lines, "lines of the journal hold no record and are not in it"),
    ] {
        if count > 0 {
            context.ui.note(&format!("{count} {what}: see `wardkeep evidence verify`"));
        }
    }
    if exported.records == 0 && part {
        context.ui.note("no record is as you asked for: the bundle is empty");
    }
    if exported.sealed < exported.total {
        context.ui.note(&format!(
            "the newest seal covers {} of {} records, and what is behind it is vouched for by nobody yet: \
             `wardkeep evidence seal` seals it when it is due, or says when that is; export again then",
            exported.sealed, exported.total
        ));
    }
    context.ui.say(format!("check it with `wardkeep aegx verify {}`", args.out.display()));
    let answer = Answer { bundle: args.out.display().to_string(), part, exported };
    Ok(context.done(&answer))
}
