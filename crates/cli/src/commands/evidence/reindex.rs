//! `evidence reindex`

use serde::Serialize;
use wardkeep_monitor::index::Index;

use super::report::journal_bytes;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Throws the index away and makes it anew from the journal
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

#[derive(Serialize)]
struct Answer {
    records: u64,
}

pub(crate) fn run(context: &mut Context, _: Args) -> Result<Exit, CliError> {
    let reader = context.open_reader()?;
    let total = journal_bytes(&reader);
    let mut progress = context.ui.progress("indexing");
    let mut done = 0;
    let records = Index::rebuild(reader.path(), reader.folder(), &mut |bytes| {
        done += bytes;
        progress.update(done, total);
    })?;
    drop(progress);
    context.ui.answer(format!("indexed {records} records"));
    Ok(context.done(&Answer { records }))
}
