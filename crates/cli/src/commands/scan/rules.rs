//! `scan --rules`

use serde::Serialize;
use wardkeep_detect::finding::Channel;
use wardkeep_detect::rules::builtin;

use super::category;
use crate::context::Context;
use crate::exit::Exit;
use crate::ui::Line;

#[derive(Serialize)]
struct RuleJson {
    id: &'static str,
    category: String,
    weight: f32,
    explanation: &'static str,
}

#[derive(Serialize)]
struct Answer {
    rules: Vec<RuleJson>,
}

pub(super) fn run(context: &mut Context, channel: Channel) -> Exit {
    let rules: Vec<RuleJson> = builtin()
        .iter()
        .map(|rule| RuleJson {
            id: rule.id(),
            category: category(rule.category()),
            weight: rule.weight(channel),
            explanation: rule.explanation(),
        })
        .collect();
    let rows: Vec<Vec<Line>> = rules
        .iter()
        .map(|rule| {
            vec![
                Line::from(rule.id.to_owned()),
                Line::from(format!("{:.2}", rule.weight)),
                Line::from(rule.category.clone()),
                Line::from(rule.explanation.to_owned()),
            ]
        })
        .collect();
    context.ui.answer_table(&rows);
    context.finish(Exit::Success, true, &Answer { rules })
}
