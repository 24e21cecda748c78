//! `wardkeep rules`

mod check;
mod explain;
mod facts;
mod list;
mod test;

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use clap::Subcommand;
use serde::Serialize;
use wardkeep_guard::rules::{OwnRule, RuleFile, RuleProblem, Rules};
use wardkeep_guard::verdict::Verdict;
use wardkeep_monitor::rules::in_force;

use super::md::policy_store;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::Line;

/// Checks, explains, tests and lists the rules that decide
///
/// The built-in rules always hold. Your own are Cedar policies in rules.cedar and rules/*.cedar of the
/// state directory; they only forbid, so they tighten and never weaken. docs/rules.md tells how to
/// write them.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What can be done with rules.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Check(check::Args),
    Explain(Box<explain::Args>),
    Test(test::Args),
    List(list::Args),
}

pub(crate) fn run(context: &mut Context, command: Command) -> Result<Exit, CliError> {
    match command {
        Command::Check(args) => check::run(context, args),
        Command::Explain(args) => explain::run(context, *args),
        Command::Test(args) => test::run(context, args),
        Command::List(args) => list::run(context, args),
    }
}

/// Largest file with rules, facts or cases that is read.
const MAX_BYTES: u64 = 4 << 20;

/// The rules in force, and what the signed set is found to be.
struct InForce {
    rules: Rules,
    state: &'static str,
    files: Vec<String>,
}

/// Those of `file`, or those of the state directory.
fn load(context: &Context, file: Option<&Path>) -> Result<InForce, CliError> {
    if let Some(file) = file {
        let text = read(file)?;
        let name = file.display().to_string();
        let rules = Rules::new(&[RuleFile { name: &name, text: &text }]);
        return Ok(InForce { rules, state: "not_looked_at", files: vec![name] });
    }
    let set = policy_store(context)?.settings().set;
    let names = set.files.keys().filter(|name| wardkeep_monitor::rules::is_rules(name));
    let files = names.cloned().collect();
    Ok(InForce { rules: in_force(&set), state: set.state.name(), files })
}

/// A file, or standard input for `-`.
fn read(path: &Path) -> Result<Vec<u8>, CliError> {
    let mut bytes = Vec::new();
    let failed = |error: &std::io::Error| CliError::io("read", path, error);
    if path == Path::new("-") {
        std::io::stdin().lock().take(MAX_BYTES + 1).read_to_end(&mut bytes)
    } else {
        let file = File::open(path).map_err(|error| failed(&error))?;
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes)
    }
    .map_err(|error| failed(&error))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(CliError::new(
            Exit::Unreadable,
            format!("`{}` has more than {MAX_BYTES} bytes", path.display()),
            "give a smaller file",
        ));
    }
    Ok(bytes)
}

#[derive(Serialize)]
struct ProblemJson<'a> {
    file: &'a str,
    line: usize,
    column: usize,
    message: &'a str,
    help: Option<&'a str>,
    excerpt: &'a str,
    marks: &'a str,
}

impl<'a> From<&'a RuleProblem> for ProblemJson<'a> {
    fn from(problem: &'a RuleProblem) -> Self {
        let RuleProblem { file, line, column, message, help, excerpt, marks } = problem;
        Self { file, line: *line, column: *column, message, help: help.as_deref(), excerpt, marks }
    }
}

#[derive(Serialize)]
struct OwnJson<'a> {
    id: &'a str,
    verdict: &'static str,
    reason: Option<&'a str>,
    file: &'a str,
    line: usize,
}

impl<'a> From<&'a OwnRule> for OwnJson<'a> {
    fn from(rule: &'a OwnRule) -> Self {
        let OwnRule { id, verdict, reason, file, line } = rule;
        Self { id, verdict: verdict.as_str(), reason: reason.as_deref(), file, line: *line }
    }
}

/// A verdict in the tone that it deserves.
fn toned(line: Line, verdict: Verdict) -> Line {
    match verdict {
        Verdict::Allow => line.good(verdict.as_str()),
        Verdict::Deny => line.bad(verdict.as_str()),
        _ => line.strong(verdict.as_str()),
    }
}

/// Says that every action is asked about, where that is so.
fn warn_of_doubt(context: &mut Context, rules: &Rules) {
    if let Some(doubt) = rules.doubt() {
        context.ui.fault(Line::default().bad(&*doubt.rule).plain(": ").plain(&*doubt.reason));
    }
}
