//! The findings that are reported: the heaviest, however many there are.

use std::cmp::Ordering;

use crate::finding::{Finding, Span};

/// Findings that a scan reports at most.
pub(super) const MOST: usize = 64;
/// As many wait until the lighter ones go.
const WAITING: usize = 16 * MOST;

/// Collects findings and forgets the lighter ones, so that a text full of them costs little memory.
#[derive(Debug, Default)]
pub(super) struct Heaviest {
    kept: Vec<Finding>,
    /// Whatever does not come before this is not reported.
    floor: Option<(f32, Span)>,
}

impl Heaviest {
    /// Takes a finding in, if it can be among those that are reported.
    pub(super) fn add(&mut self, weight: f32, span: Span, finding: impl FnOnce() -> Finding) {
        if self.floor.is_some_and(|floor| order((weight, span), floor) != Ordering::Less) {
            return;
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
        self.kept.truncate(MOST);
        if self.kept.len() == MOST {
            self.floor = self.kept.last().map(|last| (last.weight, last.span));
        }
    }
}

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

    proptest! {
        #[test]
        fn as_if_all_had_been_kept(all in prop::collection::vec((0u8..4, 0usize..40), 0..3000)) {
            let mut heaviest = Heaviest::default();
            let mut plain: Vec<Finding> = Vec::new();
            for (number, (weight, start)) in all.into_iter().enumerate() {
                let (weight, span) = (f32::from(weight) / 4.0, Span { start, end: start + 1 });
                let finding = Finding {
                    rule: Cow::Owned(number.to_string()),
                    category: Category::IndirectInjection,
                    weight,
                    span,
                    path: Vec::new(),
                    reason: Cow::Borrowed("a test"),
                };
                heaviest.add(weight, span, || finding.clone());
                plain.push(finding);
            }
            plain.sort_by(|a, b| b.weight.total_cmp(&a.weight).then(a.span.cmp(&b.span)));
            plain.truncate(MOST);
            prop_assert_eq!(heaviest.finish(), plain);
        }
    }
}
