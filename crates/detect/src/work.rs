//! What a scan costs, counted in steps: the same for the same text on every machine.

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Characters and stretches that are brought into normal form.
    Folded,
    /// The bytes of those.
    FoldedBytes,
    /// Bytes that are looked at for other readings.
    Surveyed,
    /// Words among them that are no ordinary ones.
    Words,
    /// The bytes of those.
    WordBytes,
    /// Words that are disguised by digits, signs or gaps, or joined, perhaps.
    Disguises,
    /// Bytes of stretches that are read backwards or with other letters, perhaps.
    Turned,
    /// Where it is looked up whether something is new in a reading.
    Looked,
    /// Bytes that are decoded, perhaps.
    Decoded,
    /// Bytes of other readings.
    Written,
    /// Places in which those differ.
    Edits,
    /// Bytes that rules are looked for in.
    Sieved,
    /// Bytes of sentences that may match.
    Read,
    /// Literals of rules.
    Literals,
    /// Elements of patterns that they fit.
    Elements,
    /// Bytes between two of them, or around a match.
    Around,
    /// Matches.
    Matches,
    /// What is found and kept, for a while at least.
    Findings,
    /// Where a secret or an address may be.
    Anchors,
    /// Bytes that may belong to a secret.
    Secrets,
    /// Bytes of addresses.
    Addresses,
    /// Bytes of those that need care.
    Careful,
}

pub(crate) const STEPS: usize = 22;

/// What each step costs, in hundredths of a nanosecond: fitted to 1,600 texts on one machine (`what_steps_take`). It
/// is about right for half of them and off by three for a few, which is enough to tell ordinary texts from hostile
/// ones.
const COSTS: [usize; STEPS] = [
    200, 800, 160, 1450, 140, 2300, 77, 2000, 138, 10, 1280, 53, 295, 2440, 204, 203, 7800, 28000,
    2200, 52, 336, 450,
];
/// What a byte of a text may cost in all: about seven times what it costs in prose.
const PER_BYTE: usize = 3200;
/// As if every text were so much longer.
const FREE: usize = 1 << 16;

/// Steps taken so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Work {
    steps: [usize; STEPS],
    /// What they may cost; `None` for whatever it takes.
    most: Option<usize>,
}

impl Work {
    #[inline]
    pub(crate) fn add(&mut self, step: Step, count: usize) {
        self.steps[step as usize] += count;
    }

    /// From now on, no more than a text of this length may cost.
    pub(crate) fn limit(&mut self, length: usize) {
        self.most = Some(length.saturating_add(FREE).saturating_mul(PER_BYTE));
    }

    /// Whether that and as much again is still within the limit.
    pub(crate) fn allows(&self, more: usize) -> bool {
        self.most.is_none_or(|most| self.cost().saturating_add(more) <= most)
    }

    /// What they cost in all.
    pub(crate) fn cost(&self) -> usize {
        self.cost_of(STEPS)
    }

    /// What those cost that every reading takes; secrets and addresses are looked for once.
    pub(crate) fn cost_of_reading(&self) -> usize {
        self.cost_of(Step::Anchors as usize)
    }

    fn cost_of(&self, kinds: usize) -> usize {
        self.steps
            .iter()
            .zip(COSTS)
            .take(kinds)
            .map(|(count, cost)| count.saturating_mul(cost))
            .sum()
    }
}

#[cfg(test)]
thread_local! {
    /// What the last text cost.
    pub(crate) static LAST: std::cell::Cell<Work> =
        const { std::cell::Cell::new(Work { steps: [0; STEPS], most: None }) };
}

#[cfg(test)]
mod tests;
