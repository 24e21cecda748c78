//! `wardkeep rules test`

use std::path::{Path, PathBuf};

use serde::Serialize;
use wardkeep_guard::rules::case::{Case, Outcome};

use super::{load, read, toned, warn_of_doubt};
use crate::commands::md::policy_store;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::Line;

/// Runs your cases: facts, and what you expect of the rules
///
/// FILE is TOML with a `[[case]]` for each: name, principal, surface, act, subject, direct, ambient, file,
/// network and others, then `expect` and, if you like, `rule`. Exit 0: all came out as expected; 1: not.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The cases, instead of rules/cases.toml of the state directory
    file: Option<PathBuf>,
    /// Use the rules of this file instead of those of the state directory
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
}

#[derive(Serialize)]
struct CaseJson {
    name: String,
    passed: bool,
    expected: &'static str,
    expected_rule: Option<String>,
    verdict: &'static str,
    rule: String,
    reason: String,
}

#[derive(Serialize)]
struct Answer<'a> {
    cases: Vec<CaseJson>,
    passed: usize,
    failed: usize,
    digest: &'a str,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let file = match args.file {
        Some(file) => file,
        None => policy_store(context)?.state().join("rules/cases.toml"),
    };
    let cases = cases(&file)?;
    let loaded = load(context, args.rules.as_deref())?;
    warn_of_doubt(context, &loaded.rules);
    let mut told = Vec::new();
    for case in cases {
        let outcome = case.run(&loaded.rules);
        show(context, &case, &outcome);
        told.push(CaseJson {
            name: case.name,
            passed: outcome.passed,
            expected: case.expect.as_str(),
            expected_rule: case.rule,
            verdict: outcome.verdict.as_str(),
            rule: outcome.rule,
            reason: outcome.reason,
        });
    }
    let failed = told.iter().filter(|case| !case.passed).count();
    let passed = told.len() - failed;
    let exit = if failed == 0 { Exit::Success } else { Exit::Refused };
    context.ui.answer(format!("{passed} as expected, {failed} not"));
    let answer = Answer { cases: told, passed, failed, digest: loaded.rules.digest() };
    Ok(context.finish(exit, failed == 0, &answer))
}

fn cases(file: &Path) -> Result<Vec<Case>, CliError> {
    let unusable = |message: String| {
        CliError::new(
            Exit::Unreadable,
            format!("`{}`: {message}", file.display()),
            "docs/rules.md shows cases",
        )
    };
    let text =
        String::from_utf8(read(file)?).map_err(|_| unusable("is not UTF-8 text".to_owned()))?;
    let value: serde_json::Value = toml::from_str(&text).map_err(|error: toml::de::Error| {
        let line = error.span().map_or(1, |span| {
            text.bytes().take(span.start).filter(|byte| *byte == b'\n').count() + 1
        });
        unusable(format!("line {line}: {}", error.message()))
    })?;
    let cases = Case::read_all(value).map_err(|error| unusable(error.to_string()))?;
    if cases.is_empty() {
        Err(unusable("there is no [[case]] in it".to_owned()))
    } else {
        Ok(cases)
    }
}

fn show(context: &mut Context, case: &Case, outcome: &Outcome) {
    if outcome.passed {
        context.ui.say(Line::default().good("ok").plain("   ").plain(&case.name));
        return;
    }
    context.ui.answer(Line::default().bad("FAIL").plain(" ").plain(&case.name));
    let rule = case.rule.as_deref().unwrap_or("by any rule");
    context.ui.answer_table(&[
        vec![
            Line::from("- expected"),
            toned(Line::default(), case.expect),
            Line::from(rule),
            Line::default(),
        ],
        vec![
            Line::from("+ found"),
            toned(Line::default(), outcome.verdict),
            Line::from(&outcome.rule),
            Line::from(&outcome.reason),
        ],
    ]);
    for hit in outcome.hits.iter().skip(1) {
        context.ui.answer(format!("    also {} {}: {}", hit.verdict, hit.rule, hit.reason));
    }
}
