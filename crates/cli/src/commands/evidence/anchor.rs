//! `wardkeep evidence anchor`: places that remember how far the log had come.

mod add;
mod clear;
mod list;
mod push;
mod remove;

use clap::Subcommand;
use wardkeep_monitor::anchor::outbox::{Alarm, ConfigError, Outbox, Place, Status};

use super::report::time;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Keeps the newest seal where this machine cannot take it back: files of others, git, witnesses
#[derive(Debug, clap::Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_long_help = crate::exit::HELP
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What can be done with anchors.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Add(add::Args),
    List(list::Args),
    Push(push::Args),
    Clear(clear::Args),
    Remove(remove::Args),
}

/// Runs a command of the group.
pub(crate) fn run(context: &mut Context, command: Command) -> Result<Exit, CliError> {
    match command {
        Command::Add(args) => add::run(context, args),
        Command::List(args) => list::run(context, args),
        Command::Push(args) => push::run(context, args),
        Command::Clear(args) => clear::run(context, args),
        Command::Remove(args) => remove::run(context, args),
    }
}

/// The anchors of the state directory, as they are now.
fn open(context: &Context) -> Result<Outbox, CliError> {
    Ok(Outbox::open(&context.state_dir()?, context.surroundings())?)
}

/// The anchor of this name.
fn find<'a>(outbox: &'a Outbox, name: &str) -> Result<Status<'a>, CliError> {
    let found = outbox.list().into_iter().find(|status| status.config.name == name);
    Ok(found.ok_or_else(|| ConfigError::Unknown { name: name.to_owned() })?)
}

/// Where an anchor is, in a few words.
pub(crate) fn place(place: &Place) -> String {
    match place {
        Place::File { path } => path.clone(),
        Place::Git { url, branch } => format!("{url} branch {branch}"),
        Place::Witness { url, .. } => url.clone(),
    }
}

/// What an anchor reported, in plain words.
pub(crate) fn words(alarm: Alarm) -> String {
    match alarm {
        Alarm::Rollback { at, theirs, ours } => format!(
            "ROLLBACK: this log is older than what the anchor saw: {theirs} records there, {ours} \
             here ({})",
            time(at)
        ),
        Alarm::Fork { at, size } => format!(
            "FORK: this log is different from what the anchor saw: its first {size} records are \
             not the ones here ({})",
            time(at)
        ),
        Alarm::StateLost => {
            "LOST: what was known of this anchor is gone from this machine, alarms included"
                .to_owned()
        }
    }
}

/// What an anchor's error says, without what a line that begins with its name says already.
fn trouble<'a>(name: &str, message: &'a str) -> &'a str {
    let message = message.strip_prefix(&format!("anchor `{name}`")).unwrap_or(message);
    let message = message.trim_start_matches([':', ' ']);
    message.strip_suffix("; it is tried again later").unwrap_or(message)
}
