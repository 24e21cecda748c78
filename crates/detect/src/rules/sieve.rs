//! Which sentences are worth reading.
//!
//! Every pattern hangs on its rarest element, and only for words of those elements the sieve looks. In a
//! sentence without any no pattern can be complete.

use super::finder::{
    BITS, EIGHT, Entry, FOUR, Finder, SIGN, START, STOP, TELLING, WORD, Window, begins, eight,
    first, hash, hash_four, is_word, window,
};
use crate::bitmap::{BLOCK, bits};

/// A place in a text where a pattern may hang.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spot {
    /// Where its sentence starts.
    pub(crate) sentence: usize,
    /// Where the literal ends.
    pub(crate) end: usize,
}

/// A text on its way through the sieve.
#[derive(Debug)]
pub(crate) struct Sieve<'a> {
    finder: &'a Finder,
    text: &'a [u8],
    /// Where the next block starts.
    at: usize,
    /// Where the sentence there starts, or an earlier one.
    sentence: usize,
    /// Up to here everything was read.
    read: usize,
}

impl<'a> Sieve<'a> {
    pub(crate) fn new(finder: &'a Finder, text: &'a [u8]) -> Self {
        Self { finder, text, at: 0, sentence: 0, read: 0 }
    }

    /// Goes on behind `end`, where a sentence starts; everything before it was read.
    pub(crate) fn resume(&mut self, end: usize) {
        self.at = end.saturating_sub(self.finder.crossing);
        self.sentence = end;
        self.read = end;
    }

    /// The next place that has not been read.
    pub(crate) fn next(&mut self) -> Option<Spot> {
        if self.finder.blind {
            let spot = Spot { sentence: self.read, end: self.text.len() };
            let more = self.read < self.text.len();
            self.read = self.text.len();
            return more.then_some(spot);
        }
        let mut carry = self.at.checked_sub(1).is_some_and(|before| is_word(self.text[before]));
        let mut padded = [0; _];
        while self.at < self.text.len() {
            let window = window(self.text, self.at, &mut padded);
            let words = window.first_chunk().map_or(0, |block| bits(block, is_word));
            if let Some((place, end)) = self.block(window, words, carry) {
                return Some(Spot { sentence: self.sentence_of(self.at + place), end });
            }
            carry = words >> (BLOCK - 1) != 0;
            self.at += BLOCK;
        }
        None
    }

    /// The first place in a block that tells a literal, and where that ends.
    #[inline]
    fn block(&self, window: &Window, words: u64, carry: bool) -> Option<(usize, usize)> {
        let kinds: &[u8; 1 << BITS] = (&*self.finder.kinds).try_into().ok()?;
        let high = window[..BLOCK].iter().fold(0, |any, byte| any | byte) >= 0x80;
        let found = if high | self.finder.signed { self.signs(window, words) } else { None };
        let mut starts = words & !(words << 1 | u64::from(carry));
        while starts != 0 {
            let place = starts.trailing_zeros() as usize;
            starts &= starts - 1;
            let eight = eight(window, place);
            let mut run = (words >> place).trailing_ones() as usize;
            if place + run == BLOCK {
                run += window[BLOCK..].iter().take_while(|byte| is_word(**byte)).count();
            }
            let word = eight & first(run);
            let kind = kinds[hash(word)] & WORD << TELLING
                | kinds[hash(eight)] & EIGHT << TELLING
                | kinds[hash_four(eight)] & FOUR << TELLING;
            if kind != 0 {
                if found.is_some_and(|(before, _)| before < place) {
                    return found;
                }
                if let Some(end) = self.told(kind, word, eight, place) {
                    return Some((place, end));
                }
            }
        }
        found
    }

    /// The same for what begins with no ASCII letter or digit.
    #[inline(never)]
    fn signs(&self, window: &Window, words: u64) -> Option<(usize, usize)> {
        let mut rest = !words & window.first_chunk().map_or(0, |block| bits(block, begins));
        while rest != 0 {
            let place = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            let special = self.finder.special(window[place]);
            let mut end = None;
            if special & START != 0 {
                let eight = eight(window, place);
                let kind = self.finder.kinds.get(hash_four(eight)).copied().unwrap_or(0);
                end = self.told(kind & FOUR << TELLING, eight, eight, place);
            }
            if special & SIGN != 0 && end.is_none() {
                end = self.finder.signs().iter().find_map(|entry| self.verify(entry, place));
            }
            if let Some(end) = end {
                return Some((place, end));
            }
        }
        None
    }

    /// Where a literal ends that patterns hang on, is told here, and was not read.
    #[inline(never)]
    fn told(&self, kind: u8, word: u64, eight: u64, place: usize) -> Option<usize> {
        let mut end = None;
        self.finder.told(kind >> TELLING, word, eight, |entry| {
            if end.is_none() {
                end = self.verify(entry, place);
            }
        });
        end
    }

    fn verify(&self, entry: &Entry, place: usize) -> Option<usize> {
        let (_, end) = self.finder.verify(self.text, entry, self.at + place)?;
        (entry.telling && end > self.read).then_some(end)
    }

    /// Where the sentence of a place starts; no further back than behind what was read.
    fn sentence_of(&self, place: usize) -> usize {
        let from = self.sentence.min(place);
        let stops = |at: &usize| self.finder.special(self.text[*at]) & STOP != 0;
        let mut ends = (from..place).rev().filter(stops);
        ends.find_map(|at| self.finder.stop(self.text, at))
            .map_or(self.sentence, |end| end.max(self.sentence))
    }
}
