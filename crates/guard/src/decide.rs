//! The decision: what the built-in rules say, and what the owner's say on top of it.

use wardkeep_detect::finding::Scan;
use wardkeep_detect::leak::OutputGuard;
use wardkeep_detect::scan::Detector;

use crate::action::Action;
use crate::assess::{self, Around};
use crate::facts::Facts;
use crate::rules::Rules;
use crate::verdict::Decision;

/// What a decision is made with.
#[derive(Debug, Clone, Copy)]
pub struct Means<'a> {
    /// Judges texts.
    pub detector: &'a Detector,
    /// Knows the session's prompt.
    pub guard: &'a OutputGuard,
    /// The rules.
    pub rules: &'a Rules,
}

/// Scans, looks, and decides.
#[must_use]
pub fn decide(
    action: &Action<'_>,
    around: Around,
    means: Means<'_>,
) -> (Decision, Facts, Option<Scan>) {
    let scan = assess::scan(action, means.detector, means.guard);
    let facts = assess::facts(action, around, scan.as_ref());
    (judge(&facts, means.rules), facts, scan)
}

/// Decides on facts alone.
#[must_use]
pub fn judge(facts: &Facts, rules: &Rules) -> Decision {
    let judged = rules.judge(facts);
    Decision {
        verdict: judged.verdict(),
        rule: judged.rule(),
        reason: judged.reason(facts).into_owned(),
        taint: facts.taint() | judged.taint,
        hits: judged.hits,
    }
}
