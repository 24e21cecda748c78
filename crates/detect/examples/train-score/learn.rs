//! Logistic regression by gradient descent; of each text the window that scores highest is learned from.

use std::borrow::Cow;

use wardkeep_detect::score::features::{SCALES, WINDOW};
use wardkeep_detect::score::weights::{BUCKETS, KINDS, Weights};
use wardkeep_detect::score::{SMOOTH, kind_of};

use crate::rows::{Origin, Row};

const SEED: u64 = 0x5eed_0011;

/// How it is trained.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    pub(crate) rate: f32,
    pub(crate) decay: f32,
    /// The share of features that a step does without.
    pub(crate) dropped: f32,
    pub(crate) epochs: usize,
    /// What rows from outside the repository count for.
    pub(crate) more: f32,
    /// What generated rows count for.
    pub(crate) made: f32,
}

impl Default for Settings {
    fn default() -> Self {
        Self { rate: 0.2, decay: 0.003, dropped: 0.3, epochs: 8, more: 0.5, made: 0.5 }
    }
}

/// Numbers without any pattern, the same every time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// Weights for all texts, and a bias for each kind.
pub(crate) struct Trained {
    weights: Vec<f32>,
    bias: [f32; KINDS],
}

/// What was learned of each so far, squared.
struct Squares {
    weights: Vec<f32>,
    bias: [f32; KINDS],
}

impl Trained {
    pub(crate) fn on(rows: &[&Row], settings: &Settings) -> Self {
        let mut trained = Self { weights: vec![0.0; BUCKETS], bias: [0.0; KINDS] };
        let mut squares = Squares { weights: vec![1e-3; BUCKETS], bias: [1.0; KINDS] };
        let mut random = Random(SEED);
        let mut order: Vec<usize> = (0..rows.len()).collect();
        for epoch in 0..settings.epochs {
            for at in (1..order.len()).rev() {
                order.swap(at, random.below(at + 1));
            }
            for &at in &order {
                let row = rows[at];
                // At first nothing tells in which window of a long text the attack is.
                if row.blocks.is_empty() || (epoch == 0 && row.attack && row.blocks.len() > WINDOW)
                {
                    continue;
                }
                let which = if epoch == 0 {
                    let last = random.below(row.blocks.len());
                    (last, WINDOW.min(row.blocks[last].1 + 1))
                } else {
                    let (last, blocks, _) = trained.highest(row);
                    (last, blocks)
                };
                let share = match row.origin {
                    Origin::Corpus => 1.0,
                    Origin::Generated => settings.made,
                    Origin::Other => settings.more,
                };
                trained.step(row, which, share, settings, &mut squares, &mut random);
            }
        }
        trained
    }

    fn step(
        &mut self,
        row: &Row,
        which: (usize, usize),
        share: f32,
        settings: &Settings,
        squares: &mut Squares,
        random: &mut Random,
    ) {
        let kind = kind(row);
        let bound = (settings.dropped * 65536.0) as u64;
        let mut bits = 0;
        let mut left = 0;
        let kept: Vec<usize> = row
            .window(which.0, which.1)
            .iter()
            .filter(|_| {
                if left == 0 {
                    (bits, left) = (random.next(), 4);
                }
                left -= 1;
                let keep = bits & 0xffff >= bound;
                bits >>= 16;
                keep
            })
            .map(|&bucket| bucket as usize)
            .collect();
        let norm = 1.0 / (kept.len() as f32 + SMOOTH).sqrt();
        let sum: f32 = kept.iter().map(|&at| self.weights[at]).sum();
        let score = sum * norm + self.bias[kind];
        let wanted = if row.attack { 1.0 } else { 0.0 };
        let error = share * (1.0 / (1.0 + (-score).exp()) - wanted);
        let slope = error * norm;
        let square = slope * slope;
        for &at in &kept {
            squares.weights[at] += square;
            let step = slope / squares.weights[at].sqrt() + settings.decay * self.weights[at];
            self.weights[at] -= settings.rate * step;
        }
        squares.bias[kind] += error * error;
        self.bias[kind] -= settings.rate * error / squares.bias[kind].sqrt();
    }

    /// The window that scores highest: its last block, how many there are, and its score.
    fn highest(&self, row: &Row) -> (usize, usize, f32) {
        let kind = kind(row);
        let mut highest = (0, 1, f32::MIN);
        let mut sums = Vec::with_capacity(row.blocks.len());
        let mut start = 0;
        for (at, &(end, before)) in row.blocks.iter().enumerate() {
            let block = &row.buckets[start..end];
            let sum: f32 = block.iter().map(|&at| self.weights[at as usize]).sum();
            sums.push((sum, end - start));
            start = end;
            for blocks in SCALES.iter().map(|&scale| scale.min(before + 1)) {
                let window = &sums[at + 1 - blocks..=at];
                let (sum, count) =
                    window.iter().fold((0.0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
                let score = sum / (count as f32 + SMOOTH).sqrt() + self.bias[kind];
                if score > highest.2 {
                    highest = (at, blocks, score);
                }
            }
        }
        highest
    }

    /// The score of a text's highest window.
    pub(crate) fn score(&self, row: &Row) -> f32 {
        if row.blocks.is_empty() { -9.0 } else { self.highest(row).2 }
    }

    /// In eight bits; the largest few are cut.
    pub(crate) fn weights(&self, threshold: [f32; KINDS], length: [f32; KINDS]) -> Weights {
        let mut sizes: Vec<f32> = self.weights.iter().map(|weight| weight.abs()).collect();
        sizes.sort_by(f32::total_cmp);
        let scale = sizes[sizes.len() - sizes.len() / 2000] / 127.0;
        let cells: Vec<u8> = self
            .weights
            .iter()
            .map(|weight| ((weight / scale).round().clamp(-127.0, 127.0) as i8).cast_unsigned())
            .collect();
        Weights { scale, bias: self.bias, threshold, length, cells: Cow::Owned(cells) }
    }
}

fn kind(row: &Row) -> usize {
    kind_of(row.channel).unwrap_or_default()
}
