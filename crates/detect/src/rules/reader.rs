//! Every literal of a text, and the ends of its sentences.

use super::finder::{
    BITS, EIGHT, Entry, FOUR, Finder, LOOSE, SIGN, START, STOP, WORD, Window, begins, eight, first,
    hash, hash_four, is_usual_stop, is_word, window,
};
use crate::bitmap::{BLOCK, bits};

/// What a reader comes upon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// A literal: which, where it starts and ends.
    Literal(u16, usize, usize),
    /// The end of a sentence: all literals that end up to it have been seen.
    Stop(usize),
}

/// Reads a text from a place on, in blocks, until the answer to the last end of a sentence in one is to stop.
pub(crate) fn read(finder: &Finder, text: &[u8], from: usize, mut seen: impl FnMut(Event) -> bool) {
    let mut padded = [0; _];
    let mut at = from;
    let mut carry = at.checked_sub(1).is_some_and(|before| is_word(text[before]));
    while at < text.len() {
        let window = window(text, at, &mut padded);
        let words = window.first_chunk().map_or(0, |block| bits(block, is_word));
        let starts = words & !(words << 1 | u64::from(carry));
        let block = Block { finder, text, window, at, words };
        if block.read(starts, &mut seen) {
            return;
        }
        carry = words >> (BLOCK - 1) != 0;
        at += BLOCK;
    }
}

struct Block<'a> {
    finder: &'a Finder,
    text: &'a [u8],
    window: &'a Window,
    at: usize,
    words: u64,
}

impl Block<'_> {
    /// Words first: what ends behind the end of a sentence waits for the next one.
    #[inline]
    fn read(&self, mut starts: u64, seen: &mut impl FnMut(Event) -> bool) -> bool {
        while starts != 0 {
            let place = starts.trailing_zeros() as usize;
            starts &= starts - 1;
            self.word(place, seen);
        }
        let Some(block) = self.window.first_chunk::<BLOCK>() else { return true };
        let ascii = block.iter().fold(0, |any, byte| any | byte) < 0x80;
        let others = if ascii && self.finder.usual {
            bits(block, is_usual_stop)
        } else {
            !self.words & bits(block, begins)
        };
        let mut over = false;
        let mut rest = others;
        if !self.finder.loose().is_empty() {
            rest |= bits(block, |byte| self.finder.special(byte) & LOOSE != 0);
        }
        while rest != 0 {
            let place = rest.trailing_zeros() as usize;
            let bit = rest & rest.wrapping_neg();
            rest &= rest - 1;
            let special = self.finder.special(self.window[place]);
            if special != 0
                && let Some(stop) = self.special(place, special, others & bit != 0, seen)
            {
                over = stop;
            }
        }
        over
    }

    #[inline]
    fn word(&self, place: usize, seen: &mut impl FnMut(Event) -> bool) {
        let Some(kinds) = self.finder.kinds.first_chunk::<{ 1 << BITS }>() else { return };
        let eight = eight(self.window, place);
        let mut run = (self.words >> place).trailing_ones() as usize;
        if place + run == BLOCK {
            run += self.window[BLOCK..].iter().take_while(|byte| is_word(**byte)).count();
        }
        let word = eight & first(run);
        let kind =
            kinds[hash(word)] & WORD | kinds[hash(eight)] & EIGHT | kinds[hash_four(eight)] & FOUR;
        if kind != 0 {
            self.told(kind, word, eight, place, seen);
        }
    }

    fn told(
        &self,
        kind: u8,
        word: u64,
        eight: u64,
        place: usize,
        seen: &mut impl FnMut(Event) -> bool,
    ) {
        self.finder.told(kind, word, eight, |entry| self.entry(entry, place, seen));
    }

    #[inline]
    fn entry(&self, entry: &Entry, place: usize, seen: &mut impl FnMut(Event) -> bool) {
        if let Some((start, end)) = self.finder.verify(self.text, entry, self.at + place) {
            seen(Event::Literal(entry.literal, start, end));
        }
    }

    /// Whether to stop, where a sentence ends.
    fn special(
        &self,
        place: usize,
        special: u8,
        other: bool,
        seen: &mut impl FnMut(Event) -> bool,
    ) -> Option<bool> {
        if special & LOOSE != 0 {
            for entry in self.finder.loose() {
                self.entry(entry, place, seen);
            }
        }
        if other && special & START != 0 {
            let eight = eight(self.window, place);
            let kind = self.finder.kinds.get(hash_four(eight)).copied().unwrap_or(0);
            self.told(kind & FOUR, eight, eight, place, seen);
        }
        if other && special & SIGN != 0 {
            for entry in self.finder.signs() {
                self.entry(entry, place, seen);
            }
        }
        if special & STOP == 0 {
            return None;
        }
        self.finder.stop(self.text, self.at + place).map(|end| seen(Event::Stop(end)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::rules::{RuleSet, WORDS};

    type Found = BTreeSet<(u16, usize, usize)>;

    fn read_all(finder: &Finder, text: &str) -> Found {
        let mut found = Found::new();
        let mut last = 0;
        read(finder, text.as_bytes(), 0, |event| {
            match event {
                Event::Literal(literal, start, end) => {
                    assert!(end > last, "seen too late");
                    assert!(found.insert((literal, start, end)), "seen twice");
                }
                Event::Stop(end) => last = end,
            }
            false
        });
        found
    }

    /// Literal by literal.
    fn slowly(finder: &Finder, text: &str) -> Found {
        let mut found = Found::new();
        for entry in finder.entries.iter() {
            let literal = &finder.bytes[entry.at as usize..][..usize::from(entry.len)];
            let literal = std::str::from_utf8(literal).unwrap();
            for start in text.char_indices().map(|(at, _)| at) {
                let end = start + literal.len();
                let next = text.as_bytes().get(end);
                if text[start..].starts_with(literal)
                    && !(entry.right && next.is_some_and(u8::is_ascii_alphanumeric))
                {
                    found.insert((entry.literal, start, end));
                }
            }
        }
        found
    }

    /// Whether a literal that starts a word may start here.
    fn starts(text: &str, start: usize) -> bool {
        !text[..start].ends_with(|c: char| c.is_ascii_alphanumeric())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 4))]
        #[test]
        fn everything_is_seen(
            pieces in prop::collection::vec(
                (
                    prop::sample::select(
                        WORDS.iter().flat_map(|(_, _, words)| words.iter().copied()).collect::<Vec<_>>(),
                    ),
                    prop::sample::select(vec![" ", " ", "", ". ", "\n\n", "_", "é", "忽", "x", "'"]),
                ),
                0..24,
            ),
        ) {
            let text: String = pieces
                .iter()
                .flat_map(|(word, gap)| [word.replace('*', "").to_lowercase(), (*gap).to_owned()])
                .collect();
            let finder = RuleSet::builtin().tables.finder;
            let seen = read_all(&finder, &text);
            let all = slowly(&finder, &text);
            prop_assert!(seen.is_subset(&all));
            for (literal, start, end) in all.difference(&seen) {
                let flags = RuleSet::builtin().tables.literals[usize::from(*literal)].flags;
                let left = flags & crate::rules::compile::LEFT != 0;
                prop_assert!(left && !starts(&text, *start), "{:?}", &text[*start..*end]);
            }
        }
    }
}
