//! `evidence verify`

use std::path::PathBuf;

use wardkeep_monitor::verify::verify_store;

use super::report;
use crate::commands::trust::TrustArgs;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::{Line, harmless};

/// Checks the journal: every id, the chain, the seals, and how far each protection reaches
///
/// Witnesses that are configured as anchors count without being named. One that is named with
/// --witness must vouch for something.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    trust: TrustArgs,
    /// For whoever looks for the other command
    #[arg(hide = true)]
    bundle: Option<PathBuf>,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    if let Some(bundle) = &args.bundle {
        let bundle = harmless(&bundle.to_string_lossy());
        return Err(CliError::refused(
            "this checks the journal of this machine, and takes no bundle",
            format!("run `wardkeep aegx verify {bundle}`"),
        ));
    }
    let reader = context.open_reader()?;
    let mut trust = args.trust.read()?;
    let named = trust.witnesses.clone();
    trust.witnesses.extend(report::configured_witnesses(&reader));
    // A configured witness that has not been asked yet is no fault; a named one is looked for below.
    trust.demand_witnesses = false;
    let total = report::journal_bytes(&reader);
    let mut progress = context.ui.progress("verifying");
    let mut done = 0;
    let threads = context.threads();
    let mut report = verify_store(&reader, &trust, threads, &mut |bytes| {
        done += bytes;
        progress.update(done, total);
    })?;
    drop(progress);
    report::demand(&named, &mut report);
    for line in report::findings(&report.findings) {
        context.ui.fault(line);
    }
    let verdict = Line::from("Verification: ");
    let verdict = if report.passed() { verdict.good("PASS") } else { verdict.bad("FAIL") };
    context.ui.answer(verdict);
    context.ui.table(&report::reach(&report, &trust));
    if !report.passed() {
        context.ui.hint(
            "the journal is not as it was written: keep this state directory as it is, compare it \
             with a backup, and see what a witness last saw",
        );
    }
    let exit = report.findings.worst().map_or(Exit::Success, Exit::from);
    Ok(context.finish(exit, report.passed(), &report::Answer::new(&reader, &report)))
}
