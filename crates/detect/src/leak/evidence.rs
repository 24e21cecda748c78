//! What speaks for a leak, added up, and what has to be withheld for it.

use crate::finding::{Category, Finding, Scan, Span, Transform, Verdict};
use crate::rules::verdict::Thresholds;

/// Findings that are reported at most; what is withheld has no such bound.
const MOST: usize = 64;
/// Less than this is no finding, unless it is what makes the text suspicious.
const LEAST: f32 = 0.1;

/// A reason to think of a leak.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) id: &'static str,
    pub(super) reason: &'static str,
}

/// How often a signal counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Count {
    /// Once for its rule, with the greatest weight.
    Once,
    /// Each time, with a weight of its own.
    Each(f32),
}

/// Something that was met.
#[derive(Debug, Clone)]
pub(super) struct Signal {
    pub(super) rule: &'static Rule,
    pub(super) weight: f32,
    pub(super) count: Count,
    pub(super) span: Span,
    /// Whether what follows in the same paragraph belongs to it.
    pub(super) tail: bool,
    pub(super) path: Vec<Transform>,
}

impl Signal {
    fn into_finding(self) -> Finding {
        Finding {
            rule: self.rule.id.into(),
            category: Category::DataExfiltration,
            weight: self.weight,
            span: self.span,
            path: self.path,
            reason: self.rule.reason.into(),
        }
    }
}

/// A finding that may still grow.
#[derive(Debug)]
struct Open {
    id: u64,
    weight: f32,
    /// Where it stands among the findings, if it is one that is reported.
    finding: Option<usize>,
    is_finding: bool,
}

/// All signals so far.
#[derive(Debug)]
pub(super) struct Evidence {
    thresholds: Thresholds,
    /// What is left of innocence without the open ones.
    clean: f32,
    /// The highest score so far; a verdict is not taken back.
    highest: f32,
    open: Vec<Open>,
    counted: Vec<(&'static str, f32)>,
    findings: Vec<Finding>,
    /// Parts of the text that belong to findings and have not been passed yet.
    pub(super) withheld: Vec<Span>,
}

impl Evidence {
    pub(super) fn new(thresholds: Thresholds) -> Self {
        Self {
            thresholds,
            clean: 1.0,
            highest: 0.0,
            open: Vec::new(),
            counted: Vec::new(),
            findings: Vec::new(),
            withheld: Vec::new(),
        }
    }

    pub(super) fn score(&self) -> f32 {
        self.highest
    }

    /// Adds up anew; says whether something of this weight, which came last, is a finding.
    fn weigh(&mut self, weight: f32) -> bool {
        let before = self.verdict();
        let open = self.open.iter().map(|open| 1.0 - open.weight).product::<f32>();
        self.highest = self.highest.max(1.0 - self.clean * open).clamp(0.0, 1.0);
        self.verdict() != Verdict::Clean && (weight >= LEAST || before == Verdict::Clean)
    }

    pub(super) fn verdict(&self) -> Verdict {
        self.thresholds.judge(self.score())
    }

    /// Takes a signal in; says whether it is a finding: one that makes the text suspicious, or
    /// that comes when it is.
    pub(super) fn add(&mut self, signal: Signal) -> bool {
        let fresh = match signal.count {
            Count::Each(fresh) => fresh,
            Count::Once => self.first(signal.rule.id, signal.weight),
        };
        self.clean *= 1.0 - fresh.clamp(0.0, 1.0);
        if !self.weigh(signal.weight) {
            return false;
        }
        self.withheld.push(signal.span);
        self.report(|| signal.into_finding());
        true
    }

    /// Takes in a finding of another detector.
    pub(super) fn add_found(&mut self, found: Finding) {
        self.clean *= 1.0 - found.weight.clamp(0.0, 1.0);
        if self.weigh(found.weight) {
            self.withheld.push(found.span);
            self.report(|| found);
        }
    }

    /// What a rule adds to what it has counted for already.
    fn first(&mut self, rule: &'static str, weight: f32) -> f32 {
        match self.counted.iter_mut().find(|(known, _)| *known == rule) {
            Some((_, counted)) if *counted >= weight => 0.0,
            Some((_, counted)) => {
                let fresh = 1.0 - (1.0 - weight) / (1.0 - *counted).max(f32::EPSILON);
                *counted = weight;
                fresh
            }
            None => {
                self.counted.push((rule, weight));
                weight
            }
        }
    }

    /// A signal that goes on: its weight and end are those of now.
    pub(super) fn grow(&mut self, id: u64, signal: &Signal) {
        let Count::Each(fresh) = signal.count else { return };
        let at = match self.open.iter().position(|open| open.id == id) {
            Some(at) => at,
            None => {
                self.open.push(Open { id, weight: 0.0, finding: None, is_finding: false });
                self.open.len() - 1
            }
        };
        self.open[at].weight = fresh.clamp(0.0, 1.0);
        if !self.weigh(signal.weight) {
            return;
        }
        self.withheld.push(signal.span);
        match self.open[at].finding {
            Some(index) => {
                self.findings[index].weight = signal.weight;
                self.findings[index].span = signal.span;
            }
            None if !self.open[at].is_finding => {
                self.open[at].finding = (self.findings.len() < MOST).then_some(self.findings.len());
                self.report(|| signal.clone().into_finding());
            }
            None => {}
        }
        self.open[at].is_finding = true;
    }

    /// The signal will not go on.
    pub(super) fn close(&mut self, id: u64) {
        if let Some(at) = self.open.iter().position(|open| open.id == id) {
            self.clean *= 1.0 - self.open.swap_remove(at).weight;
        }
    }

    /// Whether a signal that goes on is a finding by now.
    pub(super) fn is_finding(&self, id: u64) -> bool {
        self.open.iter().any(|open| open.id == id && open.is_finding)
    }

    /// The last reported finding reaches to `end`.
    pub(super) fn extend(&mut self, index: Option<usize>, span: Span) {
        self.withheld.push(span);
        if let Some(finding) = index.and_then(|index| self.findings.get_mut(index)) {
            finding.span.end = finding.span.end.max(span.end);
        }
    }

    /// Where the last reported finding stands.
    pub(super) fn last(&self) -> Option<usize> {
        (self.findings.len() < MOST).then(|| self.findings.len().checked_sub(1)).flatten()
    }

    fn report(&mut self, finding: impl FnOnce() -> Finding) {
        if self.findings.len() < MOST {
            self.findings.push(finding());
        }
    }

    pub(super) fn into_scan(mut self) -> Scan {
        let (verdict, score) = (self.verdict(), self.score());
        self.findings.sort_by(|a, b| b.weight.total_cmp(&a.weight).then(a.span.cmp(&b.span)));
        Scan { verdict, score, findings: self.findings }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Channel;

    static RULE: Rule = Rule { id: "a", reason: "" };
    static OTHER: Rule = Rule { id: "b", reason: "" };

    fn signal(rule: &'static Rule, weight: f32, count: Count, at: usize) -> Signal {
        Signal { rule, weight, count, span: (at..at + 1).into(), tail: false, path: Vec::new() }
    }

    fn evidence() -> Evidence {
        Evidence::new(Thresholds::of(Channel::ModelOutput))
    }

    #[test]
    fn what_tips_the_balance_is_a_finding_and_what_came_before_is_not() {
        let mut evidence = evidence();
        assert!(!evidence.add(signal(&RULE, 0.4, Count::Once, 0)));
        assert!(!evidence.add(signal(&RULE, 0.4, Count::Once, 1)), "a rule counts once");
        assert!(evidence.add(signal(&OTHER, 0.3, Count::Once, 2)));
        assert!(evidence.add(signal(&RULE, 0.4, Count::Once, 3)), "and so is what comes after");
        let scan = evidence.into_scan();
        assert_eq!(scan.verdict, Verdict::Suspicious);
        assert!((scan.score - 0.58).abs() < 1e-6);
        let starts: Vec<usize> = scan.findings.iter().map(|one| one.span.start).collect();
        assert_eq!(starts, [3, 2]);
    }

    #[test]
    fn however_little_tips_the_balance_it_is_a_finding() {
        let mut evidence = evidence();
        let near = Thresholds::of(Channel::ModelOutput).suspicious - 0.01;
        assert!(!evidence.add(signal(&RULE, near, Count::Once, 0)));
        assert!(evidence.add(signal(&OTHER, 0.05, Count::Each(0.05), 1)));
        assert!(!evidence.add(signal(&OTHER, 0.05, Count::Each(0.05), 2)), "but no more of it");
        let scan = evidence.into_scan();
        assert_eq!((scan.verdict, scan.findings.len()), (Verdict::Suspicious, 1));
    }

    #[test]
    fn what_goes_on_counts_with_its_last_weight() {
        let mut evidence = evidence();
        evidence.grow(1, &signal(&RULE, 0.3, Count::Each(0.3), 0));
        assert!(!evidence.is_finding(1));
        let longer = Signal { span: (0..9).into(), ..signal(&RULE, 0.95, Count::Each(0.95), 0) };
        evidence.grow(1, &longer);
        assert!(evidence.is_finding(1) && evidence.verdict() == Verdict::Block);
        evidence.close(1);
        let scan = evidence.into_scan();
        assert!((scan.score - 0.95).abs() < 1e-6);
        assert_eq!((scan.findings.len(), scan.findings[0].span.end), (1, 9));
    }
}
