//! The findings that are reported: of each rule the heaviest, then the heaviest of all others.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use crate::finding::{Finding, Span};

/// Findings that a scan reports at most.
pub(super) const MOST: usize = 64;
/// As many wait until the lighter ones go.
const WAITING: usize = 16 * MOST;

/// Collects findings and forgets the lighter ones, so that a text full of them costs little memory; no
/// number of findings of one rule crowds out another rule.
#[derive(Debug, Default)]
pub(super) struct Heaviest {
    kept: Vec<Finding>,
    /// The heaviest of each rule.
    rules: HashMap<String, (f32, Span)>,
    /// Whatever does not come before this is reported only as the heaviest of its rule.
    floor: Option<(f32, Span)>,
}

impl Heaviest {
    /// Takes a finding of a rule in, if it can be among those that are reported.
    pub(super) fn add(
        &mut self,
        rule: &str,
        weight: f32,
        span: Span,
        finding: impl FnOnce() -> Finding,
    ) {
        let new = (weight, span);
        let best = self.rules.get_mut(rule);
        let better = best.as_ref().is_none_or(|best| order(new, **best) == Ordering::Less);
        if !better && self.floor.is_some_and(|floor| order(new, floor) != Ordering::Less) {
            return;
        }
        match best {
            Some(best) if better => *best = new,
            Some(_) => {}
            None => {
                self.rules.insert(rule.to_owned(), new);
            }
        }
        self.kept.push(finding());
        if self.kept.len() >= WAITING {
            self.settle();
        }
    }

    /// Those that are reported, heaviest first.
    pub(super) fn finish(mut self) -> Vec<Finding> {
        self.settle();
        self.kept
    }

    fn settle(&mut self) {
        self.kept.sort_by(|a, b| order((a.weight, a.span), (b.weight, b.span)));
        let rules = self.kept.iter().map(|one| &*one.rule).collect::<HashSet<_>>().len();
        let mut others = MOST.saturating_sub(rules);
        let mut seen: HashSet<String> = HashSet::new();
        let mut last = None;
        self.kept.retain(|one| {
            if !seen.contains(&*one.rule) {
                return seen.len() < MOST && seen.insert(one.rule.clone().into_owned());
            }
            if others > 0 {
                others -= 1;
                last = Some((one.weight, one.span));
                return true;
            }
            false
        });
        // Others are kept as long as there is room, then only those that come before the last.
        if others == 0 {
            self.floor = last.or(Some(HEAVIEST));
        }
    }
}

/// Nothing comes before it.
const HEAVIEST: (f32, Span) = (f32::INFINITY, Span { start: 0, end: 0 });

/// The heavier one first, then the one that stands first.
fn order(a: (f32, Span), b: (f32, Span)) -> Ordering {
    b.0.total_cmp(&a.0).then(a.1.cmp(&b.1))
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use proptest::prelude::*;

    use super::*;
    use crate::finding::Category;

    /// The same with all of them at hand.
    fn slowly(mut all: Vec<Finding>) -> Vec<Finding> {
        all.sort_by(|a, b| b.weight.total_cmp(&a.weight).then(a.span.cmp(&b.span)));
        let first = |at: usize| all[..at].iter().all(|other| other.rule != all[at].rule);
        let firsts: Vec<usize> = (0..all.len()).filter(|at| first(*at)).take(MOST).collect();
        let rest = (0..all.len()).filter(|at| !first(*at)).take(MOST - firsts.len());
        let mut kept: Vec<usize> = firsts.iter().copied().chain(rest).collect();
        kept.sort_unstable();
        kept.into_iter().map(|at| all[at].clone()).collect()
    }

    proptest! {
        #[test]
        fn as_if_all_had_been_kept(
            all in prop::collection::vec((0u8..4, 0usize..40, 0u8..90), 0..3000),
            rules in 1u8..90,
        ) {
            let mut heaviest = Heaviest::default();
            let mut plain: Vec<Finding> = Vec::new();
            for (weight, start, rule) in all {
                let (weight, span) = (f32::from(weight) / 4.0, Span { start, end: start + 1 });
                let finding = Finding {
                    rule: Cow::Owned((rule % rules).to_string()),
                    category: Category::IndirectInjection,
                    weight,
                    span,
                    path: Vec::new(),
                    reason: Cow::Borrowed("a test"),
                };
                heaviest.add(&finding.rule, weight, span, || finding.clone());
                plain.push(finding);
            }
            prop_assert_eq!(heaviest.finish(), slowly(plain));
        }
    }
}
