//! What is found letter by letter: names that are watched for, and copies of the prompt.

use std::ops::Range;

use super::fold::{Folder, NO_LETTER, of_letter};
use super::shingle::{LENGTH, Register, STRIDE, Way};
use super::sought::{INDEX, Place, Sought};

/// Copies that are followed at the same time.
const MOST_RUNS: usize = 4;
/// Letters by which a copy may lose or gain on its original at one place.
const DRIFT: isize = 24;
/// A copy shorter than this many letters is none.
pub(super) const SHORTEST_COPY: usize = 28;

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

/// Names that go on as the text does.
#[derive(Debug)]
struct Thread {
    group: Range<usize>,
    matched: usize,
    start: usize,
    /// Whether it began inside of a word.
    joined: bool,
}

/// Where the last letters stand: for each stretch of letters, a byte each, its first letter.
#[derive(Debug, Default)]
struct Starts {
    /// The number of the first letter; its place, doubled, and whether it touches the one before.
    ring: [(usize, usize); 32],
    pushed: usize,
}

impl Starts {
    #[inline(always)]
    fn push(&mut self, letter: usize, start: usize, joined: bool) {
        self.ring[self.pushed % 32] = (letter, start << 1 | usize::from(joined));
        self.pushed += 1;
    }

    /// Where one of the last letters stands, and whether it touches the one before.
    ///
    // INVARIANT: a stretch has a letter at least, so the last 32 letters are in the ring.
    #[inline]
    fn of(&self, letter: usize) -> (usize, bool) {
        for back in 1..=self.pushed.min(32) {
            let (first, place) = self.ring[(self.pushed - back) % 32];
            if first <= letter {
                return ((place >> 1) + letter - first, letter > first || place & 1 == 1);
            }
        }
        (0, false)
    }
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
    starts: Starts,
    /// Where the last letter ended, and whether it was one byte.
    before: usize,
    narrow: bool,
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
    /// Takes a word in that is all ASCII letters; gives the last letters.
    #[inline]
    pub(super) fn word(&mut self, sought: &Sought, word: &[u8], start: usize) -> Register {
        if self.is_calm()
            && start > self.before
            && let Some((register, length)) = self.try_word(sought, word)
        {
            self.take_word(register, length, start);
            return register;
        }
        self.folder.word();
        for (at, letter) in word.iter().enumerate() {
            self.letter(sought, of_letter(*letter), start + at, start + at + 1);
        }
        self.end_token();
        self.register
    }

    /// Takes a token in; `start` is where it stands.
    pub(super) fn token(&mut self, sought: &Sought, token: &str, start: usize) {
        let mut folder = self.folder;
        folder.fold(token, |symbol, from, to| {
            self.letter(sought, symbol, start + from, start + to);
        });
        self.folder = folder;
        self.end_token();
    }

    #[inline]
    fn end_token(&mut self) {
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
        let narrow = end - start == 1;
        if start != self.before || !narrow || !self.narrow || self.count == 0 {
            self.starts.push(self.count, start, joined);
        }
        (self.before, self.narrow) = (end, narrow);
        self.register.push(symbol);
        self.count += 1;
        self.since += 1;
        if !self.ended.is_empty() {
            self.settle(sought, joined);
        }
        if !self.threads.is_empty() {
            self.follow(sought, symbol, end);
        }
        let key = self.register.short(sought.mask);
        if sought.filter.has(key) && self.since >= sought.prefix {
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
            if !joined || sought.pattern(one.pattern).anywhere {
                met.push(*one);
            }
            false
        });
    }

    fn follow(&mut self, sought: &Sought, symbol: u8, end: usize) {
        let ended = &mut self.ended;
        self.threads.retain_mut(|thread| {
            thread.group = sought.go_on(thread.group.clone(), thread.matched, symbol);
            thread.matched += 1;
            complete(sought, thread, end, ended);
            !thread.group.is_empty()
        });
    }

    // INVARIANT: a letter begins one thread at most, and none outlives the longest name.
    #[cold]
    fn begin(&mut self, sought: &Sought, key: u32, end: usize) {
        let Some(group) = sought.begin(key, self.register) else { return };
        let (start, joined) = self.starts.of(self.count - sought.prefix);
        let thread = Thread { group, matched: sought.prefix, start, joined };
        complete(sought, &thread, end, &mut self.ended);
        self.threads.push(thread);
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
            start: self.starts.of(self.count - LENGTH).0,
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

    /// Whether nothing has begun that may become something.
    #[inline]
    pub(super) fn is_calm(&self) -> bool {
        self.threads.is_empty() && self.ended.is_empty() && self.runs.is_empty()
    }

    /// Tries the letters at the beginning of some bytes, without taking them in: how many there
    /// are and the last letters then, unless one of them may end something.
    #[inline(always)]
    pub(super) fn try_word(&self, sought: &Sought, bytes: &[u8]) -> Option<(Register, usize)> {
        let mut register = self.register;
        let mut length = 0;
        for byte in bytes {
            let symbol = of_letter(*byte);
            if symbol == NO_LETTER {
                break;
            }
            register.push(symbol);
            let (short, hash) = (register.short(sought.mask), register.hash());
            if sought.filter.has(short) || sought.copies.filter.has(hash) {
                let sure = sought.may_begin(short) || sought.copies.has(hash);
                if sure {
                    return None;
                }
            }
            length += 1;
        }
        Some((register, length))
    }

    /// Takes in a word that was tried, with space before it.
    #[inline(always)]
    pub(super) fn take_word(&mut self, register: Register, length: usize, start: usize) {
        self.folder.word();
        self.starts.push(self.count, start, false);
        self.register = register;
        self.count += length;
        self.since += length;
        (self.before, self.narrow) = (start + length, true);
    }

    /// Whether there are runs, open or closed, to be weighed.
    #[inline]
    pub(super) fn has_runs(&self) -> bool {
        !self.runs.is_empty() || !self.closed.is_empty()
    }

    /// The runs that are open.
    pub(super) fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// From where on letters may still become part of a name or of a run that is not open yet.
    #[inline]
    pub(super) fn hold(&self, sought: &Sought) -> usize {
        let window = if sought.has_copies() { LENGTH - 1 } else { sought.prefix - 1 };
        let held = window.min(self.since);
        let mut from = usize::MAX;
        if held > 0 {
            (from, _) = self.starts.of(self.count - held);
        }
        for thread in &self.threads {
            from = from.min(thread.start);
        }
        from
    }
}

/// Notes the names that are complete.
fn complete(sought: &Sought, thread: &Thread, end: usize, ended: &mut Vec<Met>) {
    for pattern in thread.group.clone() {
        let one = sought.pattern(pattern);
        if one.letters.len() > thread.matched {
            break;
        }
        if !thread.joined || one.anywhere {
            ended.push(Met { pattern, start: thread.start, end });
        }
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
