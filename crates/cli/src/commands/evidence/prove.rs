//! `evidence prove`

use std::io::Write as _;
use std::path::PathBuf;

use serde::Serialize;
use wardkeep_evidence::bundle::StagedFile;
use wardkeep_evidence::hash::RecordId;
use wardkeep_evidence::seal::SLOT_SECONDS;
use wardkeep_monitor::proof::{ProveError, prove};
use wardkeep_monitor::sealer::{CHECKPOINTS, last_seal};
use wardkeep_monitor::store::StoreReader;

use super::report::time;
use super::resolve::resolve_record;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Writes a small file that proves one record to anyone, without the log
///
/// The proof holds the record itself, its place in the sealed tree, the seal, and the
/// cosignatures of witnesses where there are any. Check it with `wardkeep evidence check`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The record's id, or the beginning of it
    record: String,
    /// Where to write the proof instead of RECORD.tlog-proof
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Serialize)]
struct Answer {
    #[serde(rename = "recordId")]
    record_id: String,
    proof: String,
    index: u64,
    bytes: u64,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let reader = context.open_reader()?;
    let id = resolve_record(&reader, &args.record)?;
    let proof = prove(&reader, id).map_err(|error| match error {
        ProveError::Unsealed { sealed, .. } => unsealed(&reader, id, sealed),
        other => other.into(),
    })?;
    let text = proof.to_string();
    let path = args.out.unwrap_or_else(|| {
        let short: String = id.to_string().chars().take(16).collect();
        PathBuf::from(format!("{short}.tlog-proof"))
    });
    let staged = StagedFile::create(&path, 0o644)?;
    staged
        .file()
        .write_all(text.as_bytes())
        .map_err(|error| CliError::io("write", &path, &error))?;
    staged.commit(false)?;
    context.ui.answer(path.display().to_string());
    context.ui.say(format!("proves record {id} at index {}", proof.index));
    context.ui.say(format!("check it with `wardkeep evidence check {}`", path.display()));
    Ok(context.done(&Answer {
        record_id: id.to_string(),
        proof: path.display().to_string(),
        index: proof.index,
        bytes: text.len() as u64,
    }))
}

/// Says when the record can be proven.
fn unsealed(reader: &StoreReader, id: RecordId, sealed: u64) -> CliError {
    let last = last_seal(&reader.path().join(CHECKPOINTS)).ok().flatten();
    let due = last.and_then(|(_, seal)| (seal.slots.1 + 1).checked_mul(SLOT_SECONDS));
    let when = due.map_or_else(|| "the next seal".to_owned(), time);
    CliError::refused(
        format!("the record {id} is not sealed yet, {sealed} records are"),
        format!("run `wardkeep evidence seal` from {when} on, and then this again"),
    )
}
