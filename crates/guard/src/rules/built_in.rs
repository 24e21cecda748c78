//! The rules that always hold, as code.

mod control;
mod conversation;
mod files;
mod memory;
mod network;
mod others;
mod sentence;

use std::cmp::Reverse;

use super::Judged;
use crate::facts::Facts;
use crate::surface::{Act, Surface};
use crate::taint::Taint;
use crate::verdict::{Hit, Verdict};

pub(super) use sentence::nothing_against;

/// Flags of what others could have written: the seeds' own four.
pub const FOREIGN: Taint = Taint::UNTRUSTED
    .union(Taint::INJECTION_SUSPECT)
    .union(Taint::WEB_DERIVED)
    .union(Taint::SKILL_OUTPUT);

/// The rule for what no other knows.
pub const DEFAULT_DENY: &str = "default-deny";

/// What a rule does where it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It demands this verdict at least.
    Demands(Verdict),
    /// It adds taint.
    Adds(Taint),
    /// It lets pass what nothing forbids.
    Passes,
}

/// A built-in rule.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Its id in records.
    pub id: &'static str,
    /// Where it applies; empty: everywhere.
    pub surfaces: &'static [Surface],
    /// To what acts; empty: to all.
    pub acts: &'static [Act],
    /// When it matches, in words.
    pub condition: &'static str,
    /// What it does then.
    pub effect: Effect,
    /// What would have been needed for it not to match, in words.
    pub needed: &'static str,
    holds: fn(&Facts) -> bool,
    because: fn(&Facts) -> String,
}

impl Rule {
    /// Whether it applies to this act at this surface at all.
    #[must_use]
    pub fn applies(&self, surface: Surface, act: Act) -> bool {
        (self.acts.is_empty() || self.acts.contains(&act))
            && (self.surfaces.is_empty() || self.surfaces.contains(&surface))
    }

    fn matches(&self, facts: &Facts) -> bool {
        self.applies(facts.surface, facts.act) && (self.holds)(facts)
    }
}

const PARTS: [&[Rule]; 6] = [
    control::RULES,
    memory::RULES,
    conversation::RULES,
    files::RULES,
    network::RULES,
    others::RULES,
];

/// Every built-in rule, by surface.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    PARTS.into_iter().flatten()
}

/// The rule of an id.
#[must_use]
pub fn rule(id: &str) -> Option<&'static Rule> {
    rules().find(|rule| rule.id == id)
}

/// What the built-in rules make of facts.
#[must_use]
pub fn judge(facts: &Facts) -> Judged {
    let mut judged = Judged {
        hits: Vec::new(),
        passed_by: DEFAULT_DENY,
        taint: Taint::NONE,
        annotated: Vec::new(),
    };
    for rule in rules().filter(|rule| rule.matches(facts)) {
        match rule.effect {
            // An approval is for questions alone.
            Effect::Demands(Verdict::Ask) if facts.approved => {}
            Effect::Demands(verdict) => judged.hits.push(Hit {
                rule: rule.id.into(),
                verdict,
                reason: (rule.because)(facts).into(),
            }),
            Effect::Adds(taint) => {
                judged.taint |= taint;
                judged.annotated.push(rule.id);
            }
            Effect::Passes if judged.passed_by == DEFAULT_DENY => judged.passed_by = rule.id,
            Effect::Passes => {}
        }
    }
    judged.hits.sort_by_key(|hit| Reverse(hit.verdict));
    judged
}

/// Whether some rule would let this act pass at this surface.
fn is_known(surface: Surface, act: Act) -> bool {
    rules().any(|rule| rule.effect == Effect::Passes && rule.applies(surface, act))
}

const CHANGES: &[Act] = &[Act::Write, Act::Delete, Act::Rename];

/// A rule that lets pass.
const fn passes(
    id: &'static str,
    surfaces: &'static [Surface],
    acts: &'static [Act],
    condition: &'static str,
    holds: fn(&Facts) -> bool,
) -> Rule {
    let because = nothing_against;
    Rule { id, surfaces, acts, condition, effect: Effect::Passes, needed: "", holds, because }
}

fn always(_: &Facts) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use wardkeep_evidence::record::Principal;

    use super::*;

    #[test]
    fn ids_are_unique_and_every_row_is_told_in_full() {
        let mut seen = BTreeSet::new();
        for rule in rules() {
            assert!(seen.insert(rule.id), "{}", rule.id);
            assert!(!rule.condition.is_empty(), "{}", rule.id);
            let demands = matches!(rule.effect, Effect::Demands(_));
            assert_eq!(demands, !rule.needed.is_empty(), "{}", rule.id);
        }
    }

    #[test]
    fn what_no_row_knows_is_denied() {
        let facts = Facts::new(Principal::Sys, Surface::NetworkIO, Act::Install, "x");
        let judged = judge(&facts);
        assert_eq!((judged.verdict(), &*judged.rule()), (Verdict::Deny, DEFAULT_DENY));
        assert_eq!(judged.passed_by, DEFAULT_DENY);
    }

    #[test]
    fn every_known_act_is_passed_by_one_rule_whatever_else_holds() {
        for surface in Surface::ALL {
            for act in Act::ALL {
                let judged = judge(&Facts::new(Principal::User, surface, act, "x"));
                assert_eq!(is_known(surface, act), judged.passed_by != DEFAULT_DENY);
            }
        }
    }

    #[test]
    fn an_approval_answers_questions_and_lifts_no_denial() {
        let mut facts = Facts::new(Principal::User, Surface::ControlPlane, Act::Change, "tools");
        facts.ambient = Taint::WEB_DERIVED;
        assert_eq!(judge(&facts).verdict(), Verdict::Ask);
        facts.approved = true;
        assert_eq!(judge(&facts).verdict(), Verdict::Allow);
        facts.direct = Taint::WEB_DERIVED;
        assert_eq!(judge(&facts).verdict(), Verdict::Deny);
    }
}
