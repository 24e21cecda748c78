//! `wardkeep daemon stop`

use std::time::{Duration, Instant};

use serde::Serialize;
use wardkeep_monitor::wire::{Client, WireError};

use super::PATIENCE;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Ends the daemon, after it has answered who is connected
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

#[derive(Serialize)]
struct Answer {
    stopped: bool,
}

pub(crate) fn run(context: &mut Context, _: Args) -> Result<Exit, CliError> {
    let state = context.state_dir()?;
    let mut client = match Client::connect(&state, PATIENCE) {
        Ok(client) => client,
        Err(WireError::Absent(_)) => {
            context.ui.answer("No daemon runs.");
            return Ok(context.done(&Answer { stopped: false }));
        }
        Err(error) => return Err(error.into()),
    };
    client.call("stop", &())?;
    drop(client);
    let until = Instant::now() + PATIENCE;
    while !matches!(Client::connect(&state, PATIENCE), Err(WireError::Absent(_))) {
        if Instant::now() > until {
            return Err(CliError::refused(
                "the daemon was told to end, and something still listens",
                "systemd may have started it again: `systemctl --user stop wardkeep.socket`",
            ));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    context.ui.answer("The daemon has ended.");
    Ok(context.done(&Answer { stopped: true }))
}
