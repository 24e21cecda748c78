//! The commands of `wardkeep` by what they are for: clap has no headings for them.

use std::fmt::Write as _;

use clap::Command;
use clap::builder::StyledStr;

use crate::ui::wrapped;

/// What every terminal has room for.
const COLUMNS: usize = 80;
/// Clap's own, which is added while it is built.
const HELP: (&str, &str) = ("help", "Print this message or the help of the given subcommand(s)");

/// Each command stands in one of these.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Start here", &["demo", "init", "install", "run", "status", "doctor", "uninstall"]),
    (
        "Every day",
        &[
            "top",
            "serve",
            "approvals",
            "notifications",
            "notify",
            "log",
            "prove",
            "contamination",
            "undo",
        ],
    ),
    (
        "Policy and identity",
        &[
            "md", "config", "rules", "protect", "watch", "release", "stage", "diff", "apply",
            "reset", "sync", "history", "restore",
        ],
    ),
    ("Confinement and doors", &["sandbox", "egress", "proxy", "daemon", "hook"]),
    ("Evidence", &["evidence", "aegx", "witness", "snapshot", "rollback"]),
    ("More", &["scan", "skill", "completions", "man", HELP.0]),
];

/// The command with its help in groups.
pub(super) fn grouped(command: Command) -> Command {
    let template = template(&command);
    command.help_template(template)
}

fn template(command: &Command) -> StyledStr {
    let header = command.get_styles().get_header();
    let literal = command.get_styles().get_literal();
    let longest = command.get_subcommands().map(|one| one.get_name().len()).max().unwrap_or(0);
    let mut out = StyledStr::new();
    // Writing to a string does not fail.
    let _ = write!(out, "{{before-help}}{{about-with-newline}}\n{{usage-heading}} {{usage}}\n");
    for (title, names) in GROUPS {
        let _ = write!(out, "\n{header}{title}:{header:#}\n");
        for name in names {
            let text = match command.find_subcommand(name) {
                Some(one) => about(one),
                None => HELP.1.to_owned(),
            };
            let mut name = *name;
            for line in wrapped(&text, COLUMNS - longest - 4) {
                let gap = longest + 2 - name.len();
                let _ = writeln!(out, "  {literal}{name}{literal:#}{:gap$}{line}", "");
                name = "";
            }
        }
    }
    let _ = write!(out, "\n{header}Options:{header:#}\n{{options}}{{after-help}}");
    out
}

fn about(command: &Command) -> String {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let aliases: Vec<&str> = command.get_visible_aliases().collect();
    match aliases.is_empty() {
        true => about,
        false => format!("{about} [aliases: {}]", aliases.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn every_command_stands_in_one_group() {
        let mut command = Cli::command();
        command.build();
        let mut all: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
        let mut listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        all.sort_unstable();
        listed.sort_unstable();
        assert_eq!(listed, all);
        let help = command.find_subcommand(HELP.0).map(about);
        assert_eq!(help.as_deref(), Some(HELP.1));
    }
}
