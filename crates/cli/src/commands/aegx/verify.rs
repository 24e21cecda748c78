//! `aegx verify`

use std::path::PathBuf;

use wardkeep_evidence::check::{Check, Class, Mode};
use wardkeep_evidence::verify::{Options, Report};

use super::report::{self, Answer};
use super::watched;
use crate::commands::trust::TrustArgs;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Checks a bundle: every id, the chain, blobs, seals and witnesses
///
/// Prints `Verification: PASS`, who vouches for it and how far each protection reaches, or every failed
/// check and `Verification: FAIL`. That it passes says that nothing in it contradicts itself; who made it
/// is shown only by keys that you know: name them with --log and --witness. Exit 2: the bundle does not hold together; 3: it breaks the schema; 4: it
/// cannot be read or parsed.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The bundle, a directory or a zip
    bundle: PathBuf,
    /// Make only the checks of v0.1, for its verdict
    #[arg(long, conflicts_with_all = ["log", "witness"])]
    lenient: bool,
    #[command(flatten)]
    trust: TrustArgs,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let trust = args.trust.read()?;
    let mode = if args.lenient { Mode::Lenient } else { Mode::Strict };
    let options = Options { mode, threads: context.threads(), trust };
    let report = watched::verify(context, &args.bundle, &options)?;
    let exit = report.worst().map_or(Exit::Success, Exit::from);
    print(context, &report, &options);
    let answer = Answer::new(&args.bundle, &report, &options);
    Ok(context.finish(exit, report.passed(), &answer))
}

fn print(context: &mut Context, report: &Report, options: &Options) {
    for line in report::findings(report) {
        context.ui.fault(line);
    }
    context.ui.answer(report::headline(report, options));
    context.ui.table(&report::reach(report, options));
    match report.worst() {
        None => {}
        Some(_) if only_newer_types(report) => context.ui.hint(
            "v0.1 refuses record types it does not know: run it without --lenient for our own verdict",
        ),
        Some(_) if only_of_another(report) => context.ui.hint(
            "nothing of the bundle contradicts itself, but the log that you named has signed nothing of it: \
             check that it is the right log.pub, or get a bundle that was exported after the next seal",
        ),
        Some(Class::Integrity) => context.ui.hint(
            "the bundle was changed after it was written, or is incomplete: do not rely on it, get it \
             again from its source",
        ),
        Some(Class::Schema) => context.ui.hint(
            "the bundle does not follow the format: write it again with the tool it came from",
        ),
        Some(Class::Parse) => {
            context.ui.hint("a part cannot be read: restore the files named above from a copy");
        }
    }
}

/// Whether nothing is wrong but that the named log does not vouch for it.
fn only_of_another(report: &Report) -> bool {
    let findings = &report.findings;
    let other = |check: Check| matches!(check, Check::SealMissing | Check::SealOrigin);
    findings.dropped() == 0 && findings.kept().iter().all(|finding| other(finding.check))
}

/// Whether nothing is wrong but types that came after v0.1.
fn only_newer_types(report: &Report) -> bool {
    let findings = &report.findings;
    findings.dropped() == 0
        && findings.kept().iter().all(|finding| finding.check == Check::RecordTypeExtended)
}
