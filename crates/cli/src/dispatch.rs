//! From the arguments to the exit code.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::error::{ContextValue, ErrorKind};
use clap::{ArgMatches, Args as _, FromArgMatches as _};

use crate::cli::{Cli, Globals, TOOLS, Tool};
use crate::commands::hook::Args as HookArgs;
use crate::commands::run::Args as RunArgs;
use crate::commands::{self, Command};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::{Ui, harmless};

/// Runs the command that `arguments` ask for, the program's own name first.
pub(crate) fn run(arguments: Vec<OsString>) -> ExitCode {
    let tool = tool_called(arguments.first());
    if let Some((state_dir, args)) = plain_hook(tool, &arguments) {
        let ui = Ui::new(&Globals::default());
        let context = Context::new(ui, "hook".to_owned(), tool.name, state_dir);
        return commands::hook::run(&context, args).code().into();
    }
    let (cli, name) = match plain_run(tool, &arguments) {
        Some(cli) => (cli, "run".to_owned()),
        None => {
            let parsed = (tool.command)().try_get_matches_from(&arguments);
            let parsed = parsed.and_then(|matches| Ok(((tool.read)(&matches)?, matches)));
            match parsed {
                Ok((cli, matches)) => (cli, command_name(tool, &matches)),
                Err(error) => return refuse(error, tool, &arguments),
            }
        }
    };
    let ui = Ui::new(&cli.globals);
    let mut context = Context::new(ui, name, tool.name, cli.globals.state_dir);
    let exit = commands::run(&mut context, cli.command).unwrap_or_else(|error| {
        context.ui.error(Some(&context.command), &error);
        error.exit
    });
    match context.program_code {
        Some(code) => ExitCode::from(code),
        None => context.ui.close(exit),
    }
}

/// The arguments of a hook, as installers write them: an agent waits for each one, and to build all
/// that the command line knows takes longer than to ask. Anything else is read the long way.
fn plain_hook(tool: &Tool, arguments: &[OsString]) -> Option<(Option<PathBuf>, HookArgs)> {
    let (state_dir, rest) = plain_words(tool, arguments, "hook")?;
    let rest: Option<Vec<&str>> = rest.iter().map(|word| word.to_str()).collect();
    Some((state_dir, HookArgs::plain(&rest?)?))
}

/// The arguments of a run, read with what `run` knows alone: the whole command line takes longer to build
/// than a namespace. What is wrong, or asks for help, is read the long way.
fn plain_run(tool: &Tool, arguments: &[OsString]) -> Option<Cli> {
    plain_words(tool, arguments, "run")?;
    let run = RunArgs::augment_args(clap::Command::new("run"));
    let known = Globals::augment_args(clap::Command::new("wardkeep")).subcommand(run);
    let matches = known.try_get_matches_from(arguments).ok()?;
    let globals = Globals::from_arg_matches(&matches).ok()?;
    let (_, matches) = matches.subcommand()?;
    let args = RunArgs::from_arg_matches(matches).ok()?;
    Some(Cli { globals, command: Command::Run(args) })
}

/// The words behind a command that comes first, but for the state directory.
fn plain_words<'a>(
    tool: &Tool,
    arguments: &'a [OsString],
    wanted: &str,
) -> Option<(Option<PathBuf>, &'a [OsString])> {
    let mut words =
        arguments.get(1..).filter(|_| tool.group.is_none() && tool.name == "wardkeep")?;
    let mut state_dir = None;
    if let [option, value, rest @ ..] = words
        && option == "--state-dir"
    {
        let looks_like_a_path = !value.is_empty() && !value.as_encoded_bytes().starts_with(b"-");
        state_dir = looks_like_a_path.then(|| Some(PathBuf::from(value)))?;
        words = rest;
    }
    let [command, rest @ ..] = words else { return None };
    (command == wanted).then_some((state_dir, rest))
}

/// The tool by the name that the program was called by.
fn tool_called(program: Option<&OsString>) -> &'static Tool {
    let name = program.and_then(|program| Path::new(program).file_name());
    TOOLS.iter().find(|tool| Some(OsStr::new(tool.name)) == name).unwrap_or(&TOOLS[0])
}

/// The command as `wardkeep` spells it: `aegx verify`, whatever the link's name.
fn command_name(tool: &Tool, mut matches: &ArgMatches) -> String {
    let mut name = tool.group.unwrap_or_default().to_owned();
    while let Some((next, below)) = matches.subcommand() {
        if !name.is_empty() {
            name.push(' ');
        }
        name.push_str(next);
        matches = below;
    }
    name
}

/// Whether a command line that cannot be read asks for a run: then other exit codes may be the program's.
fn asks_for_run(tool: &Tool, arguments: &[OsString]) -> bool {
    let mut words = arguments.iter().skip(1);
    let first = loop {
        match words.next() {
            Some(word) if word == "--state-dir" => drop(words.next()),
            Some(word) if word.as_encoded_bytes().starts_with(b"-") => {}
            word => break word,
        }
    };
    tool.group.is_none() && first.is_some_and(|word| word == "run")
}

/// Answers what is no command: help, the version, or a wrong command line.
fn refuse(mut error: clap::Error, tool: &Tool, arguments: &[OsString]) -> ExitCode {
    // Clap has read nothing that could be asked.
    let asked =
        |flag: &str| arguments.iter().take_while(|text| *text != "--").any(|text| text == flag);
    let globals =
        Globals { json: asked("--json"), no_color: asked("--no-color"), ..Globals::default() };
    let mut ui = Ui::new(&globals);
    disarm(&mut error);
    let exit = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Exit::Success,
        _ => Exit::Failed,
    };
    if exit == Exit::Failed && globals.json {
        let text = error.render().to_string();
        let lines: Vec<&str> =
            text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
        let message = lines.join(" ");
        let message = message.strip_prefix("error: ").unwrap_or("no command was given");
        ui.error(None, &CliError::new(exit, message, "see --help for what can be given"));
    } else {
        ui.help(&error.render(), error.use_stderr());
    }
    let code = ui.close(exit);
    if exit == Exit::Failed && asks_for_run(tool, arguments) {
        return ExitCode::from(commands::run::NOT_STARTED);
    }
    code
}

/// Makes harmless what a message repeats from the command line: a shell's `*` may have put the
/// names of hostile files there.
fn disarm(error: &mut clap::Error) {
    let context: Vec<_> = error.context().map(|(kind, value)| (kind, value.clone())).collect();
    for (kind, value) in context {
        let value = match value {
            ContextValue::String(text) => ContextValue::String(harmless(&text)),
            ContextValue::Strings(texts) => {
                ContextValue::Strings(texts.iter().map(|text| harmless(text)).collect())
            }
            _ => continue,
        };
        error.insert(kind, value);
    }
}
