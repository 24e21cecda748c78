//! The command line as clap sees it. Doc comments are the help.

mod groups;

use std::path::PathBuf;

use clap::{Args, CommandFactory, FromArgMatches, Parser};

use crate::commands::{Command, aegx, identity, init, md};
use crate::context::LOCALGPT;
use crate::exit;

/// Judges what an AI agent does, and keeps a record that cannot be quietly changed
#[derive(Debug, Parser)]
#[command(
    name = "wardkeep",
    bin_name = "wardkeep",
    version,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true,
    after_long_help = exit::HELP
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) globals: Globals,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Makes, packs and verifies evidence bundles
#[derive(Debug, Parser)]
#[command(
    name = "aegx",
    bin_name = "aegx",
    version = concat!(env!("CARGO_PKG_VERSION"), " (wardkeep)"),
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true,
    after_long_help = exit::HELP
)]
struct AegxCli {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    command: aegx::Command,
}

/// Signs, verifies and shows the owner's standing instructions
///
/// As LocalGPT names it: the state lies in ~/.localgpt, the workspace in ~/.localgpt/workspace.
#[derive(Debug, Parser)]
#[command(
    name = "localgpt",
    bin_name = "localgpt",
    version = concat!(env!("CARGO_PKG_VERSION"), " (wardkeep)"),
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true,
    after_long_help = exit::HELP
)]
struct LocalgptCli {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    command: LocalgptCommand,
}

#[derive(Debug, clap::Subcommand)]
enum LocalgptCommand {
    Init(init::Args),
    #[command(visible_aliases = ["policy", "security"])]
    Md(md::Args),
}

/// Protects, watches and restores the files that define an agent
///
/// As Soulguard names it.
#[derive(Debug, Parser)]
#[command(
    name = "soulguard",
    bin_name = "soulguard",
    version = concat!(env!("CARGO_PKG_VERSION"), " (wardkeep)"),
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true,
    after_long_help = exit::HELP
)]
struct SoulguardCli {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    command: SoulguardCommand,
}

#[derive(Debug, clap::Subcommand)]
enum SoulguardCommand {
    Init(init::Args),
    Status(identity::StatusArgs),
    Diff(identity::DiffArgs),
    Apply(identity::ApplyArgs),
    Sync(identity::SyncArgs),
    Reset(identity::ResetArgs),
    Stage(identity::StageArgs),
    Protect(identity::ProtectArgs),
    Watch(identity::WatchArgs),
    Release(identity::ReleaseArgs),
    #[command(visible_alias = "log")]
    History(identity::HistoryArgs),
    Restore(identity::RestoreArgs),
}

impl From<SoulguardCommand> for Command {
    fn from(command: SoulguardCommand) -> Self {
        match command {
            SoulguardCommand::Init(args) => Self::Init(args.only_identity()),
            SoulguardCommand::Status(args) => Self::Status(args.into()),
            SoulguardCommand::Diff(args) => Self::Diff(args),
            SoulguardCommand::Apply(args) => Self::Apply(args),
            SoulguardCommand::Sync(args) => Self::Sync(args),
            SoulguardCommand::Reset(args) => Self::Reset(args),
            SoulguardCommand::Stage(args) => Self::Stage(args),
            SoulguardCommand::Protect(args) => Self::Protect(args),
            SoulguardCommand::Watch(args) => Self::Watch(args),
            SoulguardCommand::Release(args) => Self::Release(args),
            SoulguardCommand::History(args) => Self::History(args),
            SoulguardCommand::Restore(args) => Self::Restore(args),
        }
    }
}

/// Options that every command takes.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Globals {
    /// Print one JSON object on standard output, errors too, and nothing else
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print only the result and errors
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Never use colours
    #[arg(long, global = true)]
    pub(crate) no_color: bool,
    /// Keep state in this directory instead of the user's own
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) state_dir: Option<PathBuf>,
}

/// A name that the binary answers to.
pub(crate) struct Tool {
    /// Name of the file or link it is called by.
    pub(crate) name: &'static str,
    /// The commands under that name.
    pub(crate) command: fn() -> clap::Command,
    /// Reads what was parsed as a command of `wardkeep`.
    pub(crate) read: fn(&clap::ArgMatches) -> Result<Cli, clap::Error>,
    /// Where these commands stand under `wardkeep`.
    pub(crate) group: Option<&'static str>,
}

/// Every name; any other is the first.
pub(crate) const TOOLS: &[Tool] = &[
    Tool {
        name: "wardkeep",
        command: || groups::grouped(Cli::command()),
        read: Cli::from_arg_matches,
        group: None,
    },
    Tool {
        name: "aegx",
        command: AegxCli::command,
        read: |matches| {
            let AegxCli { globals, command } = AegxCli::from_arg_matches(matches)?;
            Ok(Cli { globals, command: Command::Aegx(aegx::Args { command }) })
        },
        group: Some("aegx"),
    },
    Tool {
        name: LOCALGPT,
        command: LocalgptCli::command,
        read: |matches| {
            let LocalgptCli { globals, command } = LocalgptCli::from_arg_matches(matches)?;
            let command = match command {
                LocalgptCommand::Init(args) => Command::Init(args.only_policy()),
                LocalgptCommand::Md(args) => Command::Md(args),
            };
            Ok(Cli { globals, command })
        },
        group: None,
    },
    Tool {
        name: "soulguard",
        command: SoulguardCli::command,
        read: |matches| {
            let SoulguardCli { globals, command } = SoulguardCli::from_arg_matches(matches)?;
            Ok(Cli { globals, command: command.into() })
        },
        group: None,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_sound_and_explains_everything() {
        for tool in TOOLS {
            let mut command = (tool.command)();
            command.clone().debug_assert();
            command.build();
            check_explained(&command);
        }
    }

    fn check_explained(command: &clap::Command) {
        assert!(command.get_about().is_some(), "{}", command.get_name());
        for argument in command.get_arguments() {
            assert!(argument.get_help().is_some(), "{} {argument}", command.get_name());
        }
        command.get_subcommands().for_each(check_explained);
    }
}
