//! `wardkeep md check`

use std::path::PathBuf;

use serde::Serialize;
use wardkeep_monitor::policy::{About, Ask, Desk};
use wardkeep_policy::protect::{Level, Operation};

use super::Place;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Says whether a tool of the agent may touch a file or run a command
///
/// For agents that ask before they act. Denied is what would change the policy, its manifest, the
/// state directory, the settings of an agent or another protected file, by whatever name or link,
/// and what would read the state directory; each is written to the audit log as `write_blocked`.
/// What a command does is read off its words, which is a heuristic: a boundary is only `wardkeep
/// run`, or files of another owner. Exit 0: nothing speaks against it; 1: denied.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    what: What,
    /// The tool that asks, for the record
    #[arg(long, default_value = "unknown")]
    tool: String,
    /// The agent that asks, for the record
    #[arg(long, default_value = "")]
    agent: String,
    /// Its session, for the record
    #[arg(long, default_value = "")]
    session: String,
}

/// One of these.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct What {
    /// Write this file
    #[arg(long, value_name = "PATH")]
    write: Option<PathBuf>,
    /// Read this file
    #[arg(long, value_name = "PATH")]
    read: Option<PathBuf>,
    /// Remove this file or folder
    #[arg(long, value_name = "PATH")]
    delete: Option<PathBuf>,
    /// Give another file this name
    #[arg(long, value_name = "PATH")]
    replace: Option<PathBuf>,
    /// Run this shell command
    #[arg(long, value_name = "COMMAND")]
    command: Option<String>,
}

#[derive(Serialize)]
struct DenialJson {
    what: String,
    why: String,
    next: String,
}

#[derive(Serialize)]
struct Answer {
    level: &'static str,
    denials: Vec<DenialJson>,
    record: Option<String>,
    alert: Option<String>,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let workspace = args.place.open(context)?;
    let open = context.open_store()?;
    let desk = Desk::new(&open, rustix::process::getuid().as_raw());
    let about = About { agent: &args.agent, session: &args.session };
    let What { write, read, delete, replace, command } = &args.what;
    let paths = [
        (write, Operation::Write),
        (read, Operation::Read),
        (delete, Operation::Delete),
        (replace, Operation::Replace),
    ];
    let path = paths.iter().find_map(|(path, operation)| Some((*operation, path.as_ref()?)));
    let ask = match (path, command) {
        (Some((operation, path)), _) => Ask::Path(operation, path),
        (None, Some(command)) => Ask::Command(command),
        (None, None) => return Err(CliError::refused("nothing to check", "see --help")),
    };
    let home = context.home();
    let checked = desk.check(&workspace, ask, &args.tool, about, home.as_deref())?;
    let (level, exit) = match checked.level {
        Level::NoHit => ("allowed", Exit::Success),
        Level::Warned => ("warned", Exit::Success),
        Level::Denied => ("denied", Exit::Refused),
    };
    context.ui.answer(level);
    for denial in &checked.denials {
        context.ui.fault(denial.why.as_str());
        context.ui.hint(&denial.next);
    }
    if checked.alert.is_some() {
        context.ui.fault("⚠ this session was blocked before: it may be under an injection");
    }
    let answer = Answer {
        level,
        denials: checked
            .denials
            .iter()
            .map(|one| DenialJson {
                what: one.what.clone(),
                why: one.why.clone(),
                next: one.next.clone(),
            })
            .collect(),
        record: checked.written.map(|written| written.record.to_string()),
        alert: checked.alert.map(|record| record.to_string()),
    };
    Ok(context.finish(exit, exit == Exit::Success, &answer))
}
