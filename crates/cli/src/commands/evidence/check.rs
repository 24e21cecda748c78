//! `evidence check`

use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;

use serde::Serialize;
use wardkeep_evidence::proof::TlogProof;
use wardkeep_evidence::verify::WitnessReach;
use wardkeep_monitor::proof::{ProveError, Proven, check};

use super::report::time;
use crate::commands::trust::TrustArgs;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::Line;

/// Checks a proof file offline and shows the record it proves
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The proof, as `wardkeep evidence prove` writes it
    proof: PathBuf,
    #[command(flatten)]
    trust: TrustArgs,
}

#[derive(Serialize)]
struct Answer {
    proof: String,
    verdict: &'static str,
    refused: Option<String>,
    #[serde(rename = "recordId")]
    record_id: Option<String>,
    index: Option<u64>,
    size: Option<u64>,
    log: Option<String>,
    pinned: bool,
    witnesses: Vec<WitnessReach>,
    record: Option<serde_json::Value>,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let trust = args.trust.read()?;
    let text = read(&args.proof)?;
    let proven = TlogProof::parse(&text)
        .map_err(|error| ProveError::Refused(error.to_string()))
        .and_then(|proof| check(&proof, &trust))
        .and_then(|proven| {
            let named = trust
                .witnesses
                .iter()
                .find(|key| !proven.witnesses.iter().any(|reach| reach.name == key.name()));
            match named {
                Some(key) => Err(ProveError::Refused(format!("{} did not cosign it", key.name()))),
                None => Ok(proven),
            }
        });
    let verdict = Line::from("Proof: ");
    match proven {
        Ok(proven) => {
            context.ui.answer(verdict.good("PASS"));
            show(context, &proven);
            let mut record = Vec::new();
            proven.record.write_line(&mut record);
            let record: Option<serde_json::Value> = serde_json::from_slice(&record).ok();
            let pretty =
                record.as_ref().and_then(|record| serde_json::to_string_pretty(record).ok());
            for line in pretty.iter().flat_map(|text| text.lines()) {
                context.ui.say(line);
            }
            Ok(context.done(&Answer {
                proof: args.proof.display().to_string(),
                verdict: "PASS",
                refused: None,
                record_id: Some(proven.record.id.to_string()),
                index: Some(proven.entry.index),
                size: Some(proven.size),
                log: Some(proven.origin),
                pinned: proven.pinned,
                witnesses: proven.witnesses,
                record,
            }))
        }
        Err(error) => {
            context.ui.fault(error.to_string());
            context.ui.answer(verdict.bad("FAIL"));
            context.ui.hint("do not rely on it: ask whoever gave it to you for another");
            let answer = Answer {
                proof: args.proof.display().to_string(),
                verdict: "FAIL",
                refused: Some(error.to_string()),
                record_id: None,
                index: None,
                size: None,
                log: None,
                pinned: false,
                witnesses: Vec::new(),
                record: None,
            };
            Ok(context.finish(Exit::Failed, false, &answer))
        }
    }
}

fn show(context: &mut Context, proven: &Proven) {
    let mut rows = Vec::new();
    let mut row = |label: &str, text: String| rows.push(vec![Line::from(label), Line::from(text)]);
    row("record", proven.record.id.to_string());
    row("place", format!("index {} of {} sealed records", proven.entry.index, proven.size));
    let pinned = if proven.pinned {
        "the one you named"
    } else {
        "its keys came with the proof; name the log with --log to be sure"
    };
    row("log", format!("{} ({pinned})", proven.origin));
    for reach in &proven.witnesses {
        row("witnessed", format!("by {} at {}", reach.name, time(reach.at)));
    }
    if proven.witnesses.is_empty() {
        row("witnessed", "by nobody you named".to_owned());
    }
    context.ui.table(&rows);
}

fn read(path: &std::path::Path) -> Result<String, CliError> {
    /// More than any proof has.
    const LIMIT: u64 = 32 << 20;
    let metadata = std::fs::metadata(path).map_err(|error| CliError::io("open", path, &error))?;
    if !metadata.is_file() {
        let message = format!("`{}` is not a file", path.display());
        return Err(CliError::new(Exit::Unreadable, message, "give a proof file"));
    }
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(LIMIT).read_to_end(&mut bytes))
        .map_err(|error| CliError::io("read", path, &error))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
