//! `evidence compare`

use std::path::{Path, PathBuf};

use serde::Serialize;
use wardkeep_evidence::note::Note;
use wardkeep_monitor::anchor::heads::{ForkProof, HeadComparison, HeadKeys, compare_heads};

use crate::commands::trust::TrustArgs;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::Line;

/// Compares two checkpoints of one log, to show that it was forked
///
/// Two histories of one size under the same key prove that the log showed different things to
/// different people. Exit 2: a fork is proven.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A checkpoint, as a witness or an anchor keeps it
    first: PathBuf,
    /// Another one
    second: PathBuf,
    #[command(flatten)]
    trust: TrustArgs,
}

#[derive(Serialize)]
struct Answer {
    comparison: &'static str,
    detail: String,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let trust = args.trust.read()?;
    let Some(log) = &trust.log else {
        return Err(CliError::refused(
            "it is not clear whose signatures count",
            "name the log's public keys with --log",
        ));
    };
    let (first, second) = (read(&args.first)?, read(&args.second)?);
    let log_key = log.log_key();
    let keys = HeadKeys { log: &log_key, witnesses: &trust.witnesses };
    let (name, exit, detail) = match compare_heads(&first, &second, keys) {
        HeadComparison::Equal { size } => {
            ("equal", Exit::Success, format!("both have the same root over {size} records"))
        }
        HeadComparison::ForkProven { proof, signers } => {
            let what = match proof {
                ForkProof::Root { size } => format!("two roots over {size} records"),
                ForkProof::Epoch { epoch } => format!("two seals of epoch {epoch}"),
                ForkProof::Shrunk { before, after } => {
                    format!("{before} records, and {after} in a later epoch")
                }
            };
            ("fork", Exit::Failed, format!("{what}, both signed by {}", signers.join(", ")))
        }
        HeadComparison::Undecided { smaller, larger } => (
            "undecided",
            Exit::Refused,
            format!(
                "{smaller} and {larger} records: only the log itself can show that one continues the other"
            ),
        ),
        HeadComparison::OtherLog { first, second } => {
            ("unusable", Exit::Refused, format!("they are of `{first}` and `{second}`"))
        }
        HeadComparison::Unverified { reason } => ("unusable", Exit::Refused, reason),
    };
    let line = Line::default();
    context.ui.answer(match exit {
        Exit::Success => line.good(name).plain(format!(": {detail}")),
        _ => line.bad(name).plain(format!(": {detail}")),
    });
    Ok(context.finish(exit, exit == Exit::Success, &Answer { comparison: name, detail }))
}

fn read(path: &Path) -> Result<Note, CliError> {
    use std::io::Read as _;
    let mut text = String::new();
    let metadata = std::fs::metadata(path).map_err(|error| CliError::io("open", path, &error))?;
    if metadata.is_file() {
        std::fs::File::open(path)
            .and_then(|file| file.take(1 << 20).read_to_string(&mut text))
            .map_err(|error| CliError::io("read", path, &error))?;
    }
    Note::parse(&text).map_err(|error| {
        CliError::new(
            Exit::Unreadable,
            format!("`{}` holds no checkpoint: {error}", path.display()),
            "give a file with one signed checkpoint and nothing else",
        )
    })
}
