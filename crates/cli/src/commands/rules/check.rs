//! `wardkeep rules check`

use std::path::PathBuf;

use serde::Serialize;

use super::{InForce, OwnJson, ProblemJson, load, warn_of_doubt};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Says what is wrong with your rules, with line and caret
///
/// Without FILE, checks rules.cedar and rules/*.cedar of the state directory. Exit 0: they can be used;
/// 1: they cannot, and until that is mended every action is asked about; 11: they can be used, but are
/// not as you signed them.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Check this file instead, or `-` for standard input
    file: Option<PathBuf>,
}

#[derive(Serialize)]
struct Answer<'a> {
    files: &'a [String],
    state: &'static str,
    rules: Vec<OwnJson<'a>>,
    problems: Vec<ProblemJson<'a>>,
    warnings: Vec<ProblemJson<'a>>,
    digest: &'a str,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let InForce { rules, state, files } = load(context, args.file.as_deref())?;
    let (own, problems) = (rules.own(), rules.problems());
    for problem in problems.iter().chain(own.warnings()) {
        problem.to_string().lines().for_each(|line| context.ui.fault(line));
    }
    let exit = match (problems.is_empty(), rules.doubt().is_some()) {
        (false, _) => Exit::Refused,
        (true, true) => Exit::Tampered,
        (true, false) => Exit::Success,
    };
    if !problems.is_empty() {
        context
            .ui
            .answer(format!("{}, none of the rules is used", many(problems.len(), "problem")));
    } else if files.is_empty() {
        context.ui.answer("no rules of your own");
    } else {
        context.ui.answer(format!("{}: sound", many(own.rules().len(), "rule")));
        if state == "unsigned" {
            context.ui.note("they are not signed: whoever can write the state directory can remove them; run `wardkeep config sign`");
        }
    }
    warn_of_doubt(context, &rules);
    let answer = Answer {
        files: &files,
        state,
        rules: own.rules().iter().map(OwnJson::from).collect(),
        problems: problems.iter().map(ProblemJson::from).collect(),
        warnings: own.warnings().iter().map(ProblemJson::from).collect(),
        digest: rules.digest(),
    };
    Ok(context.finish(exit, exit == Exit::Success, &answer))
}

fn many(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
