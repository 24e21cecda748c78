//! `wardkeep sandbox`

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use wardkeep_sandbox::audit::{Compliance, Probes, Profile, Report, Roots, State, audit};

use super::run::why;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::Line;

/// Looks at what confines an agent
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Audit(AuditArgs),
    Why(Box<why::Args>),
}

/// Tells what confines this process, and what of a profile is missing
///
/// Namespaces, seccomp, capabilities, limits, the root file system and more are looked at, in the files of
/// the kernel and by trying. Run it where the agent runs: inside of its container, or by
/// `wardkeep run -- wardkeep sandbox audit`. Exit code 20 says that something is missing.
#[derive(Debug, clap::Args)]
#[command(after_long_help = crate::exit::HELP)]
pub(crate) struct AuditArgs {
    /// A file with what must be there, as JSON: require_container, require_seccomp,
    /// require_readonly_root, allowed_syscalls, max_processes, max_open_files, network_namespace
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
}

/// Variables that container runtimes set; anybody can, so they are shown and prove nothing.
const MARKS: [&str; 3] = ["KUBERNETES_SERVICE_HOST", "container", "CONTAINER_RUNTIME"];

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    match args.command {
        Command::Audit(args) => run_audit(context, &args),
        Command::Why(args) => why::run(context, *args),
    }
}

fn run_audit(context: &mut Context, args: &AuditArgs) -> Result<Exit, CliError> {
    let profile = args.profile.as_deref().map(read_profile).transpose()?.unwrap_or_default();
    let marks = MARKS.iter().filter(|name| std::env::var_os(name).is_some());
    let probes = Probes::thorough().marked(marks.map(|name| (*name).to_owned()).collect());
    let report = audit(&Roots::here(), &probes, &profile);
    show(context, &report);
    let exit = match report.compliance {
        Compliance::Full => Exit::Success,
        Compliance::Partial | Compliance::None => Exit::ActionRequired,
    };
    Ok(context.finish(exit, exit == Exit::Success, &report))
}

fn show(context: &mut Context, report: &Report) {
    let verdict = match report.compliance {
        Compliance::Full => "full: all that the profile demands is there",
        Compliance::Partial => "partial: something that the profile demands is missing",
        Compliance::None => "none: nothing confines this process",
    };
    context.ui.answer(
        Line::from("Confinement: ")
            .strong(verdict)
            .plain(format!(" (score {} of 100)", report.score)),
    );
    let rows: Vec<Vec<String>> = report
        .findings
        .iter()
        .map(|one| {
            let state = match one.state {
                State::Held => "yes",
                State::Missing => "no",
                State::Unknown => "unknown",
            };
            let required = if one.required { "demanded" } else { "" };
            [&one.id, state, required, &one.message].map(str::to_owned).to_vec()
        })
        .collect();
    table(context, &rows);
    for fix in report.lacking().filter_map(|one| Some((&one.id, one.fix.as_ref()?))) {
        context.ui.hint(&format!("{}: {}", fix.0, fix.1));
    }
}

fn table(context: &mut Context, rows: &[Vec<String>]) {
    let rows: Vec<_> = rows.iter().map(|row| row.iter().map(Line::from).collect()).collect();
    context.ui.answer_table(&rows);
}

fn read_profile(path: &Path) -> Result<Profile, CliError> {
    /// More than any profile has.
    const LIMIT: u64 = 1 << 20;
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(LIMIT).read_to_string(&mut text))
        .map_err(|error| CliError::io("read", path, &error))?;
    serde_json::from_str(&text).map_err(|error| {
        let message = format!("`{}` is no profile: {error}", path.display());
        CliError::refused(message, "see `wardkeep sandbox audit --help` for its keys")
    })
}
