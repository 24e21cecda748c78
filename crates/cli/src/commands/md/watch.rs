//! `wardkeep md watch`

use std::time::Duration;

use serde::Serialize;
use wardkeep_monitor::policy::{About, Desk, watched_files};
use wardkeep_monitor::watch::{Content, Watch};

use super::{Place, policy_store, shown};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Watches LocalGPT.md, its manifest and the config, and writes down every change
///
/// Runs beside a session until interrupted. A change is written as `file_changed`; the session keeps
/// the text it verified until the next start.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    place: Place,
    /// The agent that runs, for the record
    #[arg(long, default_value = "")]
    agent: String,
    /// The session's id, for the record
    #[arg(long, default_value = "")]
    session: String,
    /// Stop after so many seconds
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<u64>,
}

#[derive(Serialize)]
struct ChangeJson {
    file: String,
    content_sha256: Option<String>,
    record: String,
}

#[derive(Serialize)]
struct Answer {
    changes: u64,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let workspace = args.place.open(context)?;
    let open = context.open_store()?;
    let desk = Desk::new(&open, rustix::process::getuid().as_raw());
    let about = About { agent: &args.agent, session: &args.session };
    let mut watch = Watch::new(watched_files(&policy_store(context)?, &workspace));
    context.ui.say(format!("watching {}", shown(context, workspace.path())));
    if !watch.is_prompt() {
        context.ui.note("the system reports no changes: looking every few seconds instead");
    }
    let clock = std::time::Instant::now();
    let mut changes = 0;
    loop {
        let left = match args.seconds {
            None => Duration::from_secs(3600),
            Some(seconds) => Duration::from_secs(seconds).saturating_sub(clock.elapsed()),
        };
        for change in watch.next(left) {
            let written = desk.file_changed(&workspace, &change, about)?;
            changes += 1;
            let file = shown(context, &change.path);
            if let Some(trouble) = &written.trouble {
                context.ui.note(&trouble.to_string());
            }
            context.ui.answer(format!("{file} changed"));
            if context.ui.is_json() {
                let hash = match &change.after {
                    Content::Bytes(hash) => Some(wardkeep_evidence::hash::encode_hex(hash)),
                    _ => None,
                };
                let record = written.record.to_string();
                context.ui.line_of_json(&ChangeJson { file, content_sha256: hash, record });
            }
        }
        let over = args.seconds.is_some_and(|seconds| clock.elapsed().as_secs() >= seconds);
        if over || context.ui.has_failed() {
            return Ok(context.done(&Answer { changes }));
        }
    }
}
