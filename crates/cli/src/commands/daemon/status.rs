//! `wardkeep daemon status`

use serde::Serialize;
use wardkeep_monitor::daemon::Status;
use wardkeep_monitor::wire::{Client, WireError};

use super::PATIENCE;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Says whether a daemon runs, and how it does; exit 1 if none runs
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

#[derive(Serialize)]
struct Answer {
    running: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    daemon: Option<Status>,
}

pub(crate) fn run(context: &mut Context, _: Args) -> Result<Exit, CliError> {
    let state = context.state_dir()?;
    let daemon: Option<Status> = match Client::connect(&state, PATIENCE) {
        Ok(mut client) => Some(client.call("status", &())?.read()?),
        Err(WireError::Absent(_)) => None,
        Err(error) => return Err(error.into()),
    };
    let Some(status) = daemon else {
        context.ui.answer("No daemon runs.");
        context.ui.hint("`wardkeep daemon` starts one");
        let exit = Exit::Refused;
        return Ok(context.finish(exit, false, &Answer { running: false, daemon: None }));
    };
    show(context, &status);
    let sound = status.problems.is_empty();
    let exit = Exit::Success;
    Ok(context.finish(exit, sound, &Answer { running: true, daemon: Some(status) }))
}

fn show(context: &mut Context, status: &Status) {
    context.ui.answer(format!("A daemon runs: process {}, since {}", status.pid, status.started));
    let hello = &status.hello;
    let mut rows = vec![
        ("version", format!("{} (protocol {})", hello.program, hello.protocol)),
        (
            "asked",
            format!(
                "{} answered, {} refused, {} connected",
                status.answered, status.refused, status.connections
            ),
        ),
        ("waiting for you", format!("{} requests", status.pending)),
    ];
    if let Some(seconds) = status.idle_exit {
        rows.push(("ends", format!("when nobody was connected for {seconds} s")));
    }
    let rows: Vec<_> =
        rows.iter().map(|(name, value)| vec![(*name).into(), value.into()]).collect();
    context.ui.table(&rows);
    for problem in &status.problems {
        context.ui.fault(problem);
    }
    if status.pending > 0 {
        context.ui.hint("see what is asked with `wardkeep approvals list`");
    }
}
