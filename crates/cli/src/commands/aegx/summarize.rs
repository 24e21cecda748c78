//! `aegx summarize`

use std::path::PathBuf;

use wardkeep_evidence::verify::Options;

use super::report::{self, Answer};
use super::watched;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::Line;

/// Counts what is in a bundle, and says whether it verifies
///
/// The exit code is 0 even when it does not: use `verify` to decide.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The bundle, a directory or a zip
    bundle: PathBuf,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let options = Options { threads: context.threads(), ..Options::default() };
    let report = watched::verify(context, &args.bundle, &options)?;
    let ui = &mut context.ui;
    ui.answer(format!("Bundle: {}", args.bundle.display()));
    if let Some(created_at) = &report.created_at {
        ui.answer(format!("Created: {created_at}"));
    }
    ui.answer(format!("Records: {}", report.records));
    ui.answer(format!("Audit entries: {}", report.entries));
    ui.answer(format!("Blobs: {}", report.blobs));
    ui.answer("Records by type:");
    for (kind, count) in &report.by_type {
        ui.answer(format!("  {kind}: {count}"));
    }
    ui.answer("Records by principal:");
    for (principal, count) in &report.by_principal {
        ui.answer(format!("  {principal}: {count}"));
    }
    ui.answer(report::headline(&report, &options));
    for line in report::findings(&report) {
        ui.answer(Line::from("  ").plain(line));
    }
    let answer = Answer::new(&args.bundle, &report, &options);
    Ok(context.finish(Exit::Success, report.passed(), &answer))
}
