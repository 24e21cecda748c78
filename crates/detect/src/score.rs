//! A learned score beside the rules: a linear model over words and runs of characters, by window.
//!
//! The weights are trained by `examples/train-score` on texts in `data/corpus` at the root of the repository;
//! `docs/model-card.md` says on which, and what it is worth.

use std::borrow::Cow;
use std::ops::Range;

use crate::finding::{Category, Channel, Finding, Transform};
use crate::views::View;

use self::features::{SCALES, Sink, WINDOW};
use self::weights::{BITS, BUCKETS, Weights};

pub mod features;
pub mod weights;

/// The rule that its findings are reported under.
pub const LEARNED: &str = "score.learned";
/// The weights that ship, as a file.
pub static SHIPPED: &[u8] = include_bytes!("score/weights.bin");

/// As if every window had so many features more that say nothing: a few words alone prove little.
pub const SMOOTH: f32 = 30.0;
/// What a score counts for at most: it needs a rule beside it to block.
const MOST: f32 = 0.75;
/// What the score of a text of one block counts for at most: a few words are suspicious, and no more.
const SHORT: f32 = 0.5;
/// What it counts for in addition that the words were hidden by an encoding, as the logarithm of odds.
const ENCODED: f32 = 2.0;
/// Blocks of a page: about five hundred words.
const PAGE: usize = 32;
/// A score that counts for less is no finding, though it counts.
pub const REPORTED: f32 = 0.4;

/// The kind of text that a channel carries; `None` where the score was not trained for it.
#[must_use]
pub fn kind_of(channel: Channel) -> Option<usize> {
    match channel {
        Channel::User => Some(0),
        Channel::ToolOutput | Channel::Document | Channel::Memory | Channel::Skill => Some(1),
        Channel::Policy | Channel::ModelOutput => None,
    }
}

/// What a distance from the threshold counts for, from 0 to 1: one half at the threshold, enough to be suspicious.
#[must_use]
pub fn weight(distance: f32) -> f32 {
    (1.0 / (1.0 + (-distance).exp())).min(MOST)
}

/// What a text of so many blocks is asked for more than one of a single block, as a share of the weights' `length`: of more
/// windows the highest is higher by chance. Beyond a page it grows no more, so that no filling hides an attack.
#[must_use]
pub fn stretch(blocks: usize) -> f32 {
    #[expect(clippy::cast_precision_loss, reason = "at most `PAGE`")]
    let blocks = blocks.clamp(1, PAGE) as f32;
    blocks.ln()
}

/// The window of a text that scores highest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Highest {
    /// Its score: the logarithm of the odds, as trained.
    pub score: f32,
    /// Blocks of the whole text.
    pub blocks: usize,
    /// Its first byte.
    pub start: usize,
    /// Behind its last byte.
    pub end: usize,
}

/// The learned score.
#[derive(Debug, Clone)]
pub struct Model {
    weights: Weights,
}

impl Model {
    /// With the weights that ship; `None` if they were damaged.
    #[must_use]
    pub fn shipped() -> Option<Self> {
        Weights::read(SHIPPED).map(|weights| Self { weights })
    }

    /// With other weights.
    #[must_use]
    pub fn new(weights: Weights) -> Self {
        Self { weights }
    }

    /// The highest window of a text in normal form; `None` for a text without any word.
    #[must_use]
    pub fn highest(&self, text: &str, kind: usize) -> Option<Highest> {
        let mut sums = Sums {
            table: self.weights.cells.first_chunk()?,
            scale: self.weights.scale,
            sum: 0,
            count: 0,
            blocks: [(0, 0, 0); WINDOW],
            next: 0,
            start: 0,
            highest: None,
        };
        features::walk(text, &mut sums);
        let bias = self.weights.bias[kind];
        sums.highest.map(|one| Highest { score: one.score + bias, blocks: sums.next, ..one })
    }

    /// How far a score is above what texts of its length and kind are suspicious from.
    #[must_use]
    pub fn distance(&self, highest: &Highest, kind: usize) -> f32 {
        let asked =
            self.weights.threshold[kind] + self.weights.length[kind] * stretch(highest.blocks);
        highest.score - asked
    }

    /// What a reading of a text counts for, as a finding, however little; `None` where there is nothing to score.
    ///
    /// `blocks` are those of the longest reading so far: a part that was decoded is one of many windows all the same.
    #[must_use]
    pub fn finding(
        &self,
        view: &View<'_>,
        channel: Channel,
        blocks: &mut usize,
    ) -> Option<Finding> {
        let kind = kind_of(channel)?;
        let mut highest = self.highest(view.text(), kind)?;
        *blocks = highest.blocks.max(*blocks);
        highest.blocks = *blocks;
        let altered = view.altered(highest.start..highest.end);
        // Text in characters that do not show is a finding by itself.
        let hides = |step: &Transform| step.hides() && *step != Transform::Tags;
        let encoded = altered
            && view.path().iter().any(hides)
            && mostly_altered(view, highest.start..highest.end);
        let prior = if encoded { ENCODED } else { 0.0 };
        let most = if highest.blocks <= 1 { SHORT } else { MOST };
        Some(Finding {
            rule: Cow::Borrowed(LEARNED),
            category: if kind == 0 {
                Category::BehaviorManipulation
            } else {
                Category::IndirectInjection
            },
            weight: weight(self.distance(&highest, kind) + prior).min(most),
            span: view.span(highest.start..highest.end),
            path: if altered { view.path().to_vec() } else { Vec::new() },
            reason: Cow::Borrowed("The wording as a whole is like that of attacks."),
        })
    }
}

/// Whether a third of the words of a window were undone: digits in a text are not yet a disguise.
fn mostly_altered(view: &View<'_>, window: Range<usize>) -> bool {
    let text = view.text().get(window.clone()).unwrap_or_default();
    let (mut words, mut altered) = (0, 0);
    for word in text.split_whitespace() {
        let start = window.start + (word.as_ptr() as usize - text.as_ptr() as usize);
        words += 1;
        altered += usize::from(view.altered(start..start + word.len()));
    }
    3 * altered >= words
}

/// The sums of the last blocks.
struct Sums<'w> {
    table: &'w [u8; BUCKETS],
    scale: f32,
    sum: i32,
    count: u32,
    /// Sum, features and first byte of each.
    blocks: [(i32, u32, usize); WINDOW],
    next: usize,
    start: usize,
    highest: Option<Highest>,
}

impl Sink for Sums<'_> {
    #[inline]
    fn feature(&mut self, hash: u32) {
        self.sum += i32::from(self.table[(hash >> (32 - BITS)) as usize].cast_signed());
        self.count += 1;
    }

    fn block(&mut self, end: usize) {
        self.blocks[self.next % WINDOW] = (self.sum, self.count, self.start);
        self.next += 1;
        (self.sum, self.count) = (0, 0);
        self.start = end;
        let (mut sum, mut count) = (0, 0);
        for back in 1..=WINDOW.min(self.next) {
            let (one, features, start) = self.blocks[(self.next - back) % WINDOW];
            sum += one;
            count += features;
            if !SCALES.contains(&back) && back < self.next || count == 0 {
                continue;
            }
            // Both are small: a block has a few hundred features.
            #[expect(clippy::cast_precision_loss, reason = "far below 2^24")]
            let score = sum as f32 * self.scale / (count as f32 + SMOOTH).sqrt();
            if self.highest.is_none_or(|highest| score > highest.score) {
                self.highest = Some(Highest { score, blocks: 0, start, end });
            }
        }
    }
}
