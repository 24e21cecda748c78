//! What is found letter by letter: names that are watched for, and copies of the prompt.

use std::collections::HashMap;

use super::fold::Folder;
use super::shingle::{LENGTH, NONE, Register, STRIDE, Way};

/// A name is recognised from this many letters on.
const PREFIX: usize = 6;
/// Shorter names are not watched for.
pub(super) const SHORTEST: usize = 4;
/// Longer names are told by their beginning.
const LONGEST: usize = 64;
/// Copies that are followed at the same time.
const MOST_RUNS: usize = 4;
/// Names that are followed at the same time.
const MOST_THREADS: usize = 64;
/// Letters by which a copy may lose or gain on its original at one place.
const DRIFT: isize = 24;
/// A copy shorter than this many letters is none.
pub(super) const SHORTEST_COPY: usize = 28;

/// One way to write something that is watched for.
#[derive(Debug)]
pub(super) struct Pattern {
    letters: Vec<u8>,
    /// Which of the guard's items it is.
    pub(super) item: usize,
    pub(super) way: Way,
    /// Whether it counts inside of other words.
    anywhere: bool,
}

/// All that is looked for, ready for use.
#[derive(Debug, Default)]
pub(super) struct Sought {
    patterns: Vec<Pattern>,
    prefix: u32,
    filter: Filter,
    index: HashMap<u64, Vec<usize>>,
    copies: Copies,
}

impl Sought {
    pub(super) fn new(stretches: &[Vec<u32>; 4]) -> Self {
        Self { copies: Copies::new(stretches), ..Self::default() }
    }

    /// Watches for some letters, in one way.
    pub(super) fn add(&mut self, item: usize, way: Way, mut letters: Vec<u8>, anywhere: bool) {
        letters.truncate(LONGEST);
        if letters.len() >= SHORTEST {
            self.patterns.push(Pattern { letters, item, way, anywhere });
        }
    }

    /// To be called when all is added.
    pub(super) fn seal(&mut self) {
        let shortest = self.patterns.iter().map(|one| one.letters.len()).min().unwrap_or(PREFIX);
        let prefix = shortest.min(PREFIX);
        self.prefix = prefix as u32;
        self.filter = Filter::new(self.patterns.len());
        self.index.clear();
        for (at, pattern) in self.patterns.iter().enumerate() {
            let mut register = Register::default();
            pattern.letters[..prefix].iter().for_each(|symbol| register.push(*symbol));
            let key = register.last(self.prefix);
            self.filter.set(spread(key));
            self.index.entry(key).or_default().push(at);
        }
    }

    pub(super) fn pattern(&self, at: usize) -> &Pattern {
        &self.patterns[at]
    }

    /// Whether copies of a prompt are looked for.
    pub(super) fn has_copies(&self) -> bool {
        !self.copies.slots.is_empty()
    }
}

fn spread(key: u64) -> u32 {
    let [a, b, c, d, ..] = key.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
    u32::from_be_bytes([a, b, c, d])
}

/// A set of hashes that may say yes where it should say no.
#[derive(Debug, Default)]
struct Filter {
    bits: Vec<u64>,
    shift: u32,
}

impl Filter {
    fn new(entries: usize) -> Self {
        let bits = (entries.max(64) * 16).next_power_of_two().min(1 << 24);
        Self { bits: vec![0; bits / 64], shift: 32 - bits.trailing_zeros() }
    }

    fn set(&mut self, hash: u32) {
        let at = (hash >> self.shift) as usize;
        self.bits[at / 64] |= 1 << (at % 64);
    }

    #[inline]
    fn has(&self, hash: u32) -> bool {
        let at = (hash >> self.shift) as usize;
        self.bits.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }
}

/// Where in the prompt a stretch stands: the way in the upper two bits, its index below.
type Place = u32;

#[derive(Debug, Default)]
struct Copies {
    filter: Filter,
    slots: Vec<(u32, Place)>,
    shift: u32,
}

const INDEX: u32 = (1 << 30) - 1;

impl Copies {
    fn new(stretches: &[Vec<u32>; 4]) -> Self {
        let entries = stretches.iter().flatten().filter(|hash| **hash != NONE).count();
        if entries == 0 {
            return Self::default();
        }
        let size = (entries * 2).next_power_of_two();
        let mut copies = Self {
            filter: Filter::new(entries),
            slots: vec![(NONE, 0); size],
            shift: 32 - size.trailing_zeros(),
        };
        for (way, list) in (0..).zip(stretches) {
            for (index, hash) in (0..INDEX).zip(list) {
                copies.insert(*hash, way << 30 | index);
            }
        }
        copies
    }

    fn slot(&self, hash: u32) -> usize {
        (hash.wrapping_mul(0x9e37_79b1) >> self.shift) as usize & (self.slots.len() - 1)
    }

    /// The first place of a stretch is kept.
    fn insert(&mut self, hash: u32, place: Place) {
        if hash == NONE {
            return;
        }
        let mut at = self.slot(hash);
        while self.slots[at].0 != NONE {
            if self.slots[at].0 == hash {
                return;
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
        self.slots[at] = (hash, place);
        self.filter.set(hash);
    }

    fn find(&self, hash: u32) -> Option<Place> {
        let mut at = self.slot(hash);
        loop {
            match self.slots[at] {
                (NONE, _) => return None,
                (known, place) if known == hash => return Some(place),
                _ => at = (at + 1) & (self.slots.len() - 1),
            }
        }
    }
}

/// A name that was met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Met {
    pub(super) pattern: usize,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// A stretch of text that follows the prompt.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    /// Tells it from other runs of the same text.
    pub(super) id: u64,
    pub(super) way: Way,
    pub(super) start: usize,
    pub(super) end: usize,
    /// Letters that it shares with the prompt.
    pub(super) matched: usize,
    /// Those that no earlier run had.
    pub(super) fresh: usize,
    first: u32,
    last: u32,
    /// The count of letters at the last hit.
    at: usize,
}

impl Run {
    /// Letters without a hit that end it.
    fn patience(&self) -> usize {
        self.matched.clamp(24, 64)
    }
}

#[derive(Debug, Clone, Copy)]
struct Thread {
    met: Met,
    matched: usize,
}

/// The state of a text that is read letter by letter.
#[derive(Debug, Default)]
pub(super) struct Letters {
    folder: Folder,
    register: Register,
    /// Letters so far.
    count: usize,
    /// Letters since all was forgotten.
    since: usize,
    /// Where the last letters began, doubled, and whether the one before stood right before.
    ring: [usize; 32],
    before: usize,
    threads: Vec<Thread>,
    /// Names that are complete unless the word goes on.
    ended: Vec<Met>,
    runs: Vec<Run>,
    runs_made: u64,
    /// Stretches of the prompt, by way, that closed runs had.
    covered: [Vec<u64>; 4],
    /// Stretches that the asker knows.
    known: [Vec<u64>; 4],
    pub(super) met: Vec<Met>,
    pub(super) closed: Vec<Run>,
}

impl Letters {
    /// Takes a token in; `start` is where it stands.
    pub(super) fn token(&mut self, sought: &Sought, token: &str, start: usize) {
        let mut folder = self.folder;
        folder.fold(token, |symbol, from, to| {
            self.letter(sought, symbol, start + from, start + to);
        });
        self.folder = folder;
        if !self.ended.is_empty() {
            self.met.append(&mut self.ended);
        }
        if !self.runs.is_empty() {
            let count = self.count;
            self.close(|run| count - run.at > run.patience());
        }
    }

    #[inline]
    fn letter(&mut self, sought: &Sought, symbol: u8, start: usize, end: usize) {
        // A character may stand for several letters.
        let joined = start <= self.before && self.count > 0;
        self.before = end;
        self.register.push(symbol);
        self.ring[self.count % 32] = start << 1 | usize::from(joined);
        self.count += 1;
        self.since += 1;
        if !self.ended.is_empty() {
            self.settle(sought, joined);
        }
        if !self.threads.is_empty() {
            self.follow(sought, symbol, end);
        }
        let key = self.register.last(sought.prefix);
        if sought.filter.has(spread(key)) && self.since >= sought.prefix as usize {
            self.begin(sought, key, end);
        }
        if sought.has_copies() && self.since >= LENGTH {
            let hash = self.register.hash();
            if sought.copies.filter.has(hash)
                && let Some(place) = sought.copies.find(hash)
            {
                self.hit(place, end);
            }
        }
    }

    /// Names that seemed complete, now that the next letter is there.
    fn settle(&mut self, sought: &Sought, joined: bool) {
        let met = &mut self.met;
        self.ended.retain(|one| {
            if !joined || sought.patterns[one.pattern].anywhere {
                met.push(*one);
            }
            false
        });
    }

    fn follow(&mut self, sought: &Sought, symbol: u8, end: usize) {
        let ended = &mut self.ended;
        self.threads.retain_mut(|thread| {
            let letters = &sought.patterns[thread.met.pattern].letters;
            if letters.get(thread.matched) != Some(&symbol) {
                return false;
            }
            thread.matched += 1;
            if thread.matched == letters.len() {
                ended.push(Met { end, ..thread.met });
                return false;
            }
            true
        });
    }

    #[cold]
    fn begin(&mut self, sought: &Sought, key: u64, end: usize) {
        let Some(patterns) = sought.index.get(&key) else { return };
        let first = self.ring[(self.count - sought.prefix as usize) % 32];
        for &pattern in patterns {
            let one = &sought.patterns[pattern];
            if (first & 1 == 1 && !one.anywhere) || self.threads.len() >= MOST_THREADS {
                continue;
            }
            let met = Met { pattern, start: first >> 1, end };
            if one.letters.len() == sought.prefix as usize {
                self.ended.push(met);
            } else {
                self.threads.push(Thread { met, matched: sought.prefix as usize });
            }
        }
    }

    #[cold]
    fn hit(&mut self, place: Place, end: usize) {
        let (way, index) = ((place >> 30) as usize, place & INDEX);
        if bit(&self.known[way], index) {
            return;
        }
        let fresh = !bit(&self.covered[way], index);
        for run in &mut self.runs {
            let (before, after) = (run.last as usize * STRIDE, index as usize * STRIDE);
            let letters = self.count - run.at;
            if run.way != Way::ALL[way] || after <= before || letters > run.patience() {
                continue;
            }
            let drift = letters.cast_signed() - (after - before).cast_signed();
            if drift.abs() <= DRIFT {
                let step = (after - before).min(LENGTH);
                run.matched += step;
                run.fresh += if fresh { step } else { 0 };
                (run.last, run.at, run.end) = (index, self.count, end);
                return;
            }
        }
        if self.runs.len() == MOST_RUNS {
            let weakest = self.runs.iter().enumerate().min_by_key(|(_, run)| (run.matched, run.at));
            if let Some((at, _)) = weakest {
                let run = self.runs.swap_remove(at);
                self.end_run(run);
            }
        }
        self.runs_made += 1;
        self.runs.push(Run {
            id: self.runs_made,
            way: Way::ALL[way],
            start: self.ring[(self.count - LENGTH) % 32] >> 1,
            end,
            matched: LENGTH,
            fresh: if fresh { LENGTH } else { 0 },
            first: index,
            last: index,
            at: self.count,
        });
    }

    fn close(&mut self, over: impl Fn(&Run) -> bool) {
        let mut at = 0;
        while at < self.runs.len() {
            if over(&self.runs[at]) {
                let run = self.runs.swap_remove(at);
                self.end_run(run);
            } else {
                at += 1;
            }
        }
    }

    fn end_run(&mut self, run: Run) {
        if run.matched < SHORTEST_COPY {
            return;
        }
        let way = Way::ALL.iter().position(|way| *way == run.way).unwrap_or(0);
        set_bits(&mut self.covered[way], run.first, run.last);
        self.closed.push(run);
    }

    /// The end of the text.
    pub(super) fn finish(&mut self) {
        if !self.runs.is_empty() {
            self.close(|_| true);
        }
        self.threads.clear();
    }

    /// Starts afresh, because too much lies between the letters.
    pub(super) fn forget(&mut self) {
        self.finish();
        self.since = 0;
    }

    /// Passes over what stands in a text that the asker knows.
    pub(super) fn know(&mut self, sought: &Sought, text: &str) {
        let (mut folder, mut register) = (Folder::default(), Register::default());
        let mut count = 0;
        for token in text.split_ascii_whitespace() {
            folder.fold(token, |symbol, _, _| {
                register.push(symbol);
                count += 1;
                if count >= LENGTH
                    && sought.has_copies()
                    && let Some(place) = sought.copies.find(register.hash())
                {
                    set_bits(&mut self.known[(place >> 30) as usize], place & INDEX, place & INDEX);
                }
            });
        }
    }

    /// A reading of something inside this one.
    pub(super) fn branch(&mut self) -> Self {
        Self {
            covered: std::mem::take(&mut self.covered),
            known: std::mem::take(&mut self.known),
            ..Self::default()
        }
    }

    /// Takes back what a branch has covered.
    pub(super) fn join(&mut self, branch: Self) {
        (self.covered, self.known) = (branch.covered, branch.known);
    }

    /// The runs that are open.
    pub(super) fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// From where on letters may still become part of a name or of a run that is not open yet.
    pub(super) fn hold(&self, sought: &Sought) -> usize {
        let window = if sought.has_copies() { LENGTH - 1 } else { sought.prefix as usize - 1 };
        let held = window.min(self.since);
        let mut from = usize::MAX;
        if held > 0 {
            from = self.ring[(self.count - held) % 32] >> 1;
        }
        self.threads.iter().fold(from, |from, thread| from.min(thread.met.start))
    }
}

fn bit(bits: &[u64], at: u32) -> bool {
    bits.get(at as usize / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
}

fn set_bits(bits: &mut Vec<u64>, first: u32, last: u32) {
    let words = last as usize / 64 + 1;
    if bits.len() < words {
        bits.resize(words, 0);
    }
    for at in first..=last {
        bits[at as usize / 64] |= 1 << (at % 64);
    }
}
