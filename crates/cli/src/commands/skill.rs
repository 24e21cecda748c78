//! `wardkeep skill`

mod approve;
mod diff;
mod folder;
mod install;
pub(super) mod list;
mod pin;
mod sarif;
mod show;
mod verify;

use std::path::Path;

use serde::Serialize;
use wardkeep_guard::skill::{Content, Options, Tree};
use wardkeep_monitor::skills::options::options;
use wardkeep_monitor::skills::{Candidate, Pin, Pins, SkillError, kept};

use super::md::policy_store;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Judges skills, plugins and tool definitions before they enter an agent
///
/// `approve` trusts one skill as it is now, down to the byte; `pin` fixes its name to what it is, and says
/// nothing of it. `install` puts a skill into its place that was judged or approved; `list` and `diff` tell
/// what was changed since.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Verify(verify::Args),
    Approve(approve::Args),
    Pin(pin::Args),
    Install(install::Args),
    List(list::Args),
    Diff(diff::Args),
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    match args.command {
        Command::Verify(args) => verify::run(context, &args),
        Command::Approve(args) => approve::run(context, &args),
        Command::Pin(args) => pin::run(context, &args),
        Command::Install(args) => install::run(context, &args),
        Command::List(args) => list::run(context, &args),
        Command::Diff(args) => diff::run(context, &args),
    }
}

/// What the owner says about skills, and which are pinned. Judging needs no state at all: where there is
/// none, nothing is pinned.
fn owner(context: &mut Context) -> Result<(Options, Pins), CliError> {
    let Ok(policy) = policy_store(context) else { return Ok(Default::default()) };
    if !policy.state().exists() {
        return Ok(Default::default());
    }
    let said = options(&policy, context.now()?);
    said.notes.iter().for_each(|note| context.ui.note(note));
    let mut options = said.options;
    let pins = Pins::load(&policy);
    for pin in &pins.pins {
        if let Some(text) = kept(policy.state(), pin.tree).as_ref().and_then(manual) {
            options.names.add(&pin.name, &text);
        }
    }
    Ok((options, pins))
}

/// The text of a skill's manual.
fn manual(tree: &Tree) -> Option<String> {
    let entry = tree.entries.iter().find(|entry| entry.path.eq_ignore_ascii_case("skill.md"))?;
    match &entry.content {
        Content::File(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        _ => None,
    }
}

/// Reads a skill that is to be trusted, all of it and once.
fn candidate(source: &Path, options: &Options) -> Result<Candidate, CliError> {
    let found = source.symlink_metadata().map_err(|error| CliError::io("read", source, &error))?;
    if !found.is_dir() {
        let message = format!("`{}` is no folder", source.display());
        return Err(CliError::refused(message, "name the folder that holds the skill"));
    }
    Ok(Candidate::read(source, options)?)
}

/// What is said of a pin in JSON.
#[derive(Serialize)]
struct PinJson<'a> {
    name: &'a str,
    tree: String,
    verdict: &'a str,
    approved: bool,
    hosts: &'a [String],
    runs_commands: bool,
    variables: &'a [String],
    record: &'a str,
}

impl<'a> PinJson<'a> {
    fn of(pin: &'a Pin) -> Self {
        Self {
            name: &pin.name,
            tree: pin.tree.to_string(),
            verdict: &pin.verdict,
            approved: pin.approved,
            hosts: &pin.hosts,
            runs_commands: pin.runs_commands,
            variables: &pin.variables,
            record: &pin.record,
        }
    }
}

impl From<SkillError> for CliError {
    fn from(error: SkillError) -> Self {
        match error {
            SkillError::Approvals(error) => error.into(),
            SkillError::Store(error) => error.into(),
            other => {
                let text = other.to_string();
                match text.split_once(": ") {
                    Some((message, hint)) => Self::refused(message, hint),
                    None => Self::refused(text, "see `wardkeep skill verify`"),
                }
            }
        }
    }
}
