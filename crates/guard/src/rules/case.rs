//! The owner's cases: facts, and what is expected of the rules.

use serde_json::Value;

use super::Rules;
use super::form::{FactsForm, Gaps};
use super::names::Named as _;
use crate::facts::Facts;
use crate::verdict::{Hit, Verdict};

/// A case.
#[derive(Debug, Clone)]
pub struct Case {
    /// Its name.
    pub name: String,
    /// The facts.
    pub facts: Facts,
    /// What is expected.
    pub expect: Verdict,
    /// The rule that is expected to decide, if one is named.
    pub rule: Option<String>,
}

/// Why a text with cases cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {why}")]
pub struct CaseError {
    place: String,
    why: String,
}

/// What became of a case.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// What was decided.
    pub verdict: Verdict,
    /// By which rule.
    pub rule: String,
    /// Why.
    pub reason: String,
    /// Everything that matched.
    pub hits: Vec<Hit>,
    /// Whether that was expected.
    pub passed: bool,
}

impl Case {
    /// Reads `{"case": [{"name": …, "principal": …, …, "expect": "deny"}]}`.
    ///
    /// # Errors
    /// When a case lacks something, or a word is not known.
    pub fn read_all(value: Value) -> Result<Vec<Self>, CaseError> {
        let wrong = |why: &str| CaseError { place: "the file".to_owned(), why: why.to_owned() };
        let Value::Object(mut top) = value else { return Err(wrong("is no table of cases")) };
        let cases = top.remove("case");
        if let Some(other) = top.keys().next() {
            return Err(wrong(&format!("`{other}` is not known: cases are written as [[case]]")));
        }
        match cases {
            Some(Value::Array(cases)) => {
                cases.into_iter().enumerate().map(|(at, case)| Self::read(at, case)).collect()
            }
            None => Ok(Vec::new()),
            Some(_) => Err(wrong("cases are written as [[case]]")),
        }
    }

    fn read(at: usize, value: Value) -> Result<Self, CaseError> {
        let Value::Object(mut value) = value else {
            return Err(CaseError {
                place: format!("case {}", at + 1),
                why: "is no table".to_owned(),
            });
        };
        let mut text = |name: &str| match value.remove(name) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        let name = text("name").unwrap_or_else(|| format!("case {}", at + 1));
        let (expect, rule) = (text("expect"), text("rule"));
        let wrong = |why: String| CaseError { place: name.clone(), why };
        let expect = expect.unwrap_or_default();
        let expect = Verdict::named(&expect).ok_or_else(|| {
            let known = Verdict::names().join(", ");
            wrong(format!("`expect` is `{expect}`: give one of {known}"))
        })?;
        let form: FactsForm = serde_json::from_value(Value::Object(value))
            .map_err(|error| wrong(error.to_string()))?;
        let facts = form.facts(Gaps::Filled).map_err(|error| wrong(error.to_string()))?;
        Ok(Self { name, facts, expect, rule })
    }

    /// Asks the rules.
    #[must_use]
    pub fn run(&self, rules: &Rules) -> Outcome {
        let judged = rules.judge(&self.facts);
        let verdict = judged.verdict();
        // Of rules that are as strict as each other, the first decides; a case may name any.
        let deciding = |id: &str| {
            if judged.hits.is_empty() {
                return judged.passed_by == id;
            }
            let strictest = judged.hits.iter().filter(|hit| hit.verdict == verdict);
            strictest.into_iter().any(|hit| hit.rule == id || hit.rule == format!("own:{id}"))
        };
        let passed = verdict == self.expect && self.rule.as_deref().is_none_or(deciding);
        Outcome {
            verdict,
            rule: judged.rule().into_owned(),
            reason: judged.reason(&self.facts).into_owned(),
            hits: judged.hits,
            passed,
        }
    }
}
