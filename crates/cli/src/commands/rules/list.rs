//! `wardkeep rules list`

use serde::Serialize;
use wardkeep_guard::rules::built_in::{self, Effect, Rule};
use wardkeep_guard::rules::names::Named;
use wardkeep_guard::rules::{BUILT_IN_CEDAR, SCHEMA};

use super::{InForce, load, warn_of_doubt};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::Line;

/// Lists the built-in rules and your own
///
/// The strictest verdict of all rules that match wins; a rule that passes is named where none matches.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print the Cedar schema that rules are checked against, and nothing else
    #[arg(long, conflicts_with = "cedar")]
    schema: bool,
    /// Print the built-in rules in Cedar, and nothing else
    #[arg(long)]
    cedar: bool,
}

#[derive(Serialize)]
struct RuleJson<'a> {
    id: &'a str,
    built_in: bool,
    surfaces: Vec<&'static str>,
    acts: Vec<&'static str>,
    condition: String,
    verdict: String,
}

#[derive(Serialize)]
struct Answer<'a> {
    rules: Vec<RuleJson<'a>>,
    state: &'static str,
    digest: &'a str,
}

#[derive(Serialize)]
struct Text {
    text: &'static str,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    if args.schema || args.cedar {
        let text = if args.schema { SCHEMA } else { BUILT_IN_CEDAR };
        context.ui.generated(text.as_bytes());
        return Ok(context.done(&Text { text }));
    }
    let InForce { rules, state, .. } = load(context, None)?;
    let mut listed: Vec<RuleJson<'_>> = built_in::rules().map(built_in_row).collect();
    listed.extend(rules.own().rules().iter().map(|rule| RuleJson {
        id: &rule.id,
        built_in: false,
        surfaces: Vec::new(),
        acts: Vec::new(),
        condition: match &rule.reason {
            Some(reason) => format!("{}:{}: {reason}", rule.file, rule.line),
            None => format!("{}:{}", rule.file, rule.line),
        },
        verdict: rule.verdict.as_str().to_owned(),
    }));
    let rows: Vec<Vec<Line>> = listed
        .iter()
        .map(|rule| {
            let scope = |names: &[&str]| Line::from(names.join(","));
            vec![
                Line::from(rule.id),
                scope(&rule.surfaces),
                scope(&rule.acts),
                Line::from(&rule.verdict),
                Line::from(&rule.condition),
            ]
        })
        .collect();
    context.ui.answer_table(&rows);
    warn_of_doubt(context, &rules);
    let ok = rules.doubt().is_none();
    Ok(context.finish(Exit::Success, ok, &Answer { rules: listed, state, digest: rules.digest() }))
}

fn built_in_row(rule: &'static Rule) -> RuleJson<'static> {
    RuleJson {
        id: rule.id,
        built_in: true,
        surfaces: rule.surfaces.iter().map(|one| one.name()).collect(),
        acts: rule.acts.iter().map(|one| one.name()).collect(),
        condition: rule.condition.to_owned(),
        verdict: match rule.effect {
            Effect::Demands(verdict) => verdict.as_str().to_owned(),
            Effect::Adds(taint) => format!("adds {taint}"),
            Effect::Passes => "passes".to_owned(),
        },
    }
}
