//! Which rules matched, which decided, and what would have been needed.

use super::built_in::{self, Effect};
use super::{BROKEN, CHANGED, Judged, Rules};
use crate::facts::Facts;
use crate::taint::Taint;
use crate::verdict::Verdict;

/// Why facts are judged as they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// What may happen.
    pub verdict: Verdict,
    /// The rule that decided, or that let it pass.
    pub rule: String,
    /// Why, in a sentence.
    pub reason: String,
    /// Every rule that matched, the strictest first.
    pub matched: Vec<Match>,
    /// The rules that add taint, and what they add.
    pub annotated: Vec<(&'static str, Taint)>,
    /// The questions that the owner's approval answered.
    pub answered: Vec<String>,
    /// How many rules apply to such an act at such a surface.
    pub considered: usize,
}

/// A rule that matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// Its id.
    pub rule: String,
    /// What it demands.
    pub verdict: Verdict,
    /// Why, in a sentence.
    pub reason: String,
    /// When it matches, in words, or where it is written.
    pub condition: String,
    /// What would have been needed for it not to match.
    pub needed: String,
}

/// Explains what rules make of facts.
#[must_use]
pub fn explain(rules: &Rules, facts: &Facts) -> Explanation {
    let judged = rules.judge(facts);
    let unapproved = Facts { approved: false, ..facts.clone() };
    let answered = if facts.approved {
        let asked = rules.judge(&unapproved).hits.into_iter();
        asked.map(|hit| hit.rule.into_owned()).filter(|id| !has(&judged, id)).collect()
    } else {
        Vec::new()
    };
    let taint_of = |id: &'static str| match built_in::rule(id).map(|rule| rule.effect) {
        Some(Effect::Adds(taint)) => (id, taint),
        _ => (id, Taint::NONE),
    };
    Explanation {
        verdict: judged.verdict(),
        rule: judged.rule().into_owned(),
        reason: judged.reason(facts).into_owned(),
        annotated: judged.annotated.iter().copied().map(taint_of).collect(),
        answered,
        considered: built_in::rules().filter(|rule| rule.applies(facts.surface, facts.act)).count()
            + rules.own().rules().len(),
        matched: judged
            .hits
            .into_iter()
            .map(|hit| {
                let (condition, needed) = about(rules, &hit.rule, hit.verdict);
                Match {
                    rule: hit.rule.into_owned(),
                    verdict: hit.verdict,
                    reason: hit.reason.into_owned(),
                    condition,
                    needed,
                }
            })
            .collect(),
    }
}

fn has(judged: &Judged, id: &str) -> bool {
    judged.hits.iter().any(|hit| hit.rule == id)
}

fn about(rules: &Rules, id: &str, verdict: Verdict) -> (String, String) {
    if let Some(rule) = built_in::rule(id) {
        return (rule.condition.to_owned(), rule.needed.to_owned());
    }
    if let Some(rule) = rules.own().rules().iter().find(|rule| rule.id == id) {
        let condition = format!("as {} says in line {}", rule.file, rule.line);
        let needed = match verdict {
            Verdict::Ask => "the owner's approval of exactly this, or another rule",
            _ => "the owner changes the rule, and signs that",
        };
        return (condition, needed.to_owned());
    }
    match id {
        BROKEN => (
            "the owner's rules cannot be used".to_owned(),
            "the owner mends what `wardkeep rules check` names, and signs that".to_owned(),
        ),
        CHANGED => (
            "the owner's rules are not as they were signed".to_owned(),
            "the owner looks at them and runs `wardkeep config sign`".to_owned(),
        ),
        _ => ("a rule of the owner's cannot be evaluated".to_owned(), "a rule that can".to_owned()),
    }
}
