//! From findings to a score and a verdict.

use crate::finding::{Channel, Finding, Verdict};
use crate::score::LEARNED;

/// From which score on a text is suspicious, and from which it is blocked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Thresholds {
    /// At least this much is [`Verdict::Suspicious`].
    pub suspicious: f32,
    /// At least this much is [`Verdict::Block`].
    pub block: f32,
}

impl Thresholds {
    /// The thresholds that ship, by channel.
    #[must_use]
    pub fn of(channel: Channel) -> Self {
        let block = match channel {
            Channel::User => 0.85,
            Channel::Policy => 0.75,
            Channel::ToolOutput | Channel::Document | Channel::Memory | Channel::Skill => 0.8,
            Channel::ModelOutput => 0.9,
        };
        Self { suspicious: 0.5, block }
    }

    /// What a score means.
    #[must_use]
    pub fn judge(&self, score: f32) -> Verdict {
        if score >= self.block {
            Verdict::Block
        } else if score >= self.suspicious {
            Verdict::Suspicious
        } else {
            Verdict::Clean
        }
    }
}

/// What further findings of one category count for.
const AGAIN: f32 = 0.6;
/// What they count for where they found the same words.
const SAME: f32 = 0.3;

/// Independent reasons add up, never beyond 1: each rule counts once, with its heaviest finding;
/// the second and later rules of one category count less than the first, and least where they found
/// the same words. The learned score looks at other things than any rule, and counts in full beside all.
///
/// Findings come heaviest first.
#[must_use]
pub fn score(findings: &[Finding]) -> f32 {
    let mut counted: Vec<&Finding> = Vec::new();
    let mut clean = 1.0f32;
    for finding in findings {
        if counted.iter().any(|other| other.rule == finding.rule) {
            continue;
        }
        let mut share = 1.0;
        let alike = |other: &&&Finding| {
            other.category == finding.category && other.rule != LEARNED && finding.rule != LEARNED
        };
        for other in counted.iter().filter(alike) {
            let same = other.span.start < finding.span.end && finding.span.start < other.span.end;
            share = f32::min(share, if same { SAME } else { AGAIN });
        }
        counted.push(finding);
        clean *= 1.0 - finding.weight * share;
    }
    (1.0 - clean).clamp(0.0, 1.0)
}
