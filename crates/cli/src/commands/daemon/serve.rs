//! `wardkeep daemon` itself.

use std::os::fd::AsFd as _;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use wardkeep_monitor::daemon::{
    About, Doors, Keeper, Office, Options, Starter, Status, Stop, Tally, ensure_running,
    run as run_daemon,
};
use wardkeep_monitor::monitor::Monitor;
use wardkeep_monitor::wire::Door;

use super::{PATIENCE, duration};
use crate::commands::identity::door::IdentityDoor;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// How often new versions of watched files are kept.
const VERSIONS: Duration = Duration::from_secs(30);

/// Options of the daemon.
#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    /// Serve from this process, until it is ended (Ctrl-C, SIGTERM)
    #[arg(long)]
    foreground: bool,
    /// End when nobody was connected for so long: 90s, 15m, 2h [default: 15m, or never with --foreground]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    idle_exit: Option<Duration>,
    /// The agent's own user, by number, who may ask what hooks need
    #[arg(long, value_name = "UID", requires = "foreground")]
    agent_uid: Option<u32>,
    /// Let a group connect, by number, such as that of the agent's own user
    #[arg(long, value_name = "GID", requires = "foreground")]
    group: Option<u32>,
    /// Take the listening socket from standard input, as systemd hands it over
    #[arg(long, requires = "foreground")]
    inherit: bool,
    /// Leave the terminal's session: for the process that is started apart
    #[arg(long, hide = true, requires = "foreground")]
    detached: bool,
}

#[derive(Serialize)]
struct Ready {
    socket: String,
    pid: u32,
    started: bool,
}

pub(crate) fn run(context: &mut Context, args: ServeArgs) -> Result<Exit, CliError> {
    if context.is_confined() {
        return Err(CliError::refused(
            "a daemon is not started inside `wardkeep run`: it would be confined too",
            "start it in a terminal of your own",
        ));
    }
    if args.foreground { serve(context, &args) } else { start(context, &args) }
}

/// Starts one apart from this terminal, unless one runs.
fn start(context: &mut Context, args: &ServeArgs) -> Result<Exit, CliError> {
    let state = context.state_dir()?;
    let mut starter = Starter::new(context.program()?);
    if let Some(idle) = args.idle_exit {
        starter.idle_exit = idle.as_secs();
    }
    starter.variables = context.daemon_variables();
    let (mut client, started) = ensure_running(&state, &starter, PATIENCE)?;
    let status: Status = client.call("status", &())?.read()?;
    let socket = Door::Monitor.path(&state).display().to_string();
    let word = if started { "started" } else { "runs already" };
    context.ui.answer(format!("The daemon {word}: process {}, {socket}", status.pid));
    Ok(context.done(&Ready { socket, pid: status.pid, started }))
}

fn serve(context: &mut Context, args: &ServeArgs) -> Result<Exit, CliError> {
    let state = context.state_dir()?;
    if args.detached {
        // It fails where the process leads a group already, and then has no terminal to lose.
        let _ = rustix::process::setsid();
    }
    let stop = Stop::new().map_err(|error| failed("make a pipe", &error))?;
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        let waker = stop.waker().map_err(|error| failed("make a pipe", &error))?;
        signal_hook::low_level::pipe::register(signal, waker)
            .map_err(|error| failed("handle signals", &error))?;
    }
    // So that there is a state directory to listen in.
    drop(context.open_store()?);
    let inherited = match args.inherit {
        true => Some(std::io::stdin().as_fd().try_clone_to_owned()),
        false => None,
    };
    let inherited = inherited.transpose().map_err(|error| failed("take the socket", &error))?;
    let doors = Doors::open(&state, args.group, inherited)?;
    let monitor = context.open_monitor()?;
    for problem in monitor.problems() {
        context.ui.note(&problem);
    }
    let socket = Door::Monitor.path(&state).display().to_string();
    context.ui.answer(format!("Listening: {socket}"));
    context.done(&Ready { socket, pid: std::process::id(), started: true });
    answer(&state, &monitor, &doors, args, &stop)?;
    Ok(Exit::Success)
}

/// Answers until it is over.
fn answer(
    state: &Path,
    monitor: &Monitor,
    doors: &Doors,
    args: &ServeArgs,
    stop: &Stop,
) -> Result<(), CliError> {
    let owner = rustix::process::geteuid().as_raw();
    let (store, approvals) = (monitor.store(), monitor.approvals());
    let keeper = Keeper::new(store, approvals, owner);
    let tally = Tally::default();
    let mut options = Options::new(owner);
    options.peers = options.peers.with_agent(args.agent_uid);
    options.idle_exit = args.idle_exit;
    let door = IdentityDoor { state, store, next: monitor };
    let office = Office {
        store,
        approvals,
        keeper: &keeper,
        tally: &tally,
        about: About { started: store.now(), idle_exit: args.idle_exit.map(|idle| idle.as_secs()) },
        stop,
        next: &door,
    };
    let mut kept: Option<Instant> = None;
    let mut chores = || {
        keeper.tick();
        if kept.is_none_or(|last| last.elapsed() >= VERSIONS) {
            door.keep_versions();
            kept = Some(Instant::now());
        }
    };
    run_daemon(doors, &office, &mut chores, &options, &tally, stop)
        .map_err(|error| failed("serve", &error))?;
    // How far the journal was read is worth keeping for the next one.
    keeper.tick();
    Ok(())
}

fn failed(action: &str, error: &std::io::Error) -> CliError {
    let message = format!("cannot {action}: {}", crate::error::reason(error));
    CliError::new(Exit::Unreadable, message, "check the limits of this user, and run it again")
}
