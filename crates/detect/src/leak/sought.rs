//! What is looked for letter by letter, made ready.

use std::collections::HashMap;
use std::ops::Range;

use super::shingle::{NONE, Register, Way, mask};

/// A name is recognised from this many letters on.
const PREFIX: usize = 6;
/// Shorter names are not watched for.
pub(super) const SHORTEST: usize = 4;
/// Longer names are told by their beginning.
const LONGEST: usize = 64;

/// One way to write something that is watched for.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pattern {
    pub(super) letters: Vec<u8>,
    /// Which of the guard's items it is.
    pub(super) item: usize,
    pub(super) way: Way,
    /// Whether it counts inside of other words.
    pub(super) anywhere: bool,
}

/// All that is looked for, ready for use.
#[derive(Debug, Default)]
pub(super) struct Sought {
    /// Sorted, so that those which begin alike stand together.
    patterns: Vec<Pattern>,
    /// Letters by which patterns are recognised, and the mask that leaves as many.
    pub(super) prefix: usize,
    pub(super) mask: u64,
    pub(super) filter: Filter,
    index: HashMap<u32, Vec<Range<usize>>>,
    pub(super) copies: Copies,
    /// Numbers that are watched for, digit by digit.
    pub(super) numbers: Vec<(Vec<u8>, usize)>,
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

    /// Watches for a number.
    pub(super) fn add_number(&mut self, item: usize, digits: Vec<u8>) {
        if (SHORTEST..=LONGEST).contains(&digits.len()) {
            self.numbers.push((digits, item));
        }
    }

    /// To be called when all is added.
    pub(super) fn seal(&mut self) {
        self.patterns.sort_unstable();
        let shortest = self.patterns.iter().map(|one| one.letters.len()).min().unwrap_or(PREFIX);
        let prefix = shortest.min(PREFIX);
        (self.prefix, self.mask) = (prefix, mask(prefix));
        self.filter = Filter::new(self.patterns.len());
        self.index.clear();
        let mut from = 0;
        for group in self.patterns.chunk_by(|a, b| a.letters[..prefix] == b.letters[..prefix]) {
            let mut register = Register::default();
            group[0].letters[..prefix].iter().for_each(|symbol| register.push(*symbol));
            let key = register.short(self.mask);
            self.filter.set(key);
            self.index.entry(key).or_default().push(from..from + group.len());
            from += group.len();
        }
    }

    pub(super) fn pattern(&self, at: usize) -> &Pattern {
        &self.patterns[at]
    }

    /// Whether patterns may begin with letters of this hash.
    pub(super) fn may_begin(&self, key: u32) -> bool {
        self.index.contains_key(&key)
    }

    /// The patterns that begin with the last letters, whose hash is `key`.
    pub(super) fn begin(&self, key: u32, last: Register) -> Option<Range<usize>> {
        let groups = self.index.get(&key)?;
        groups
            .iter()
            .find(|group| {
                let mut wanted = Register::default();
                let letters = &self.patterns[group.start].letters[..self.prefix];
                letters.iter().for_each(|symbol| wanted.push(*symbol));
                wanted.word(self.prefix) == last.word(self.prefix)
            })
            .cloned()
    }

    /// Those of some patterns, alike in their first `matched` letters, that go on with a symbol.
    pub(super) fn go_on(&self, group: Range<usize>, matched: usize, symbol: u8) -> Range<usize> {
        let patterns = &self.patterns[group.clone()];
        // A pattern that has ended comes before those that go on.
        let next =
            |pattern: &Pattern| pattern.letters.get(matched).map_or(-1, |one| i16::from(*one));
        let low = patterns.partition_point(|pattern| next(pattern) < i16::from(symbol));
        let high = patterns.partition_point(|pattern| next(pattern) <= i16::from(symbol));
        group.start + low..group.start + high
    }

    /// Whether copies of a prompt are looked for.
    pub(super) fn has_copies(&self) -> bool {
        !self.copies.slots.is_empty()
    }
}

/// A set of hashes that may say yes where it should say no.
#[derive(Debug)]
pub(super) struct Filter {
    bits: Vec<u64>,
    shift: u32,
}

impl Default for Filter {
    /// The empty set.
    fn default() -> Self {
        Self { bits: vec![0], shift: 26 }
    }
}

impl Filter {
    fn new(entries: usize) -> Self {
        let bits = (entries.max(64) * 32).next_power_of_two().min(1 << 24);
        Self { bits: vec![0; bits / 64], shift: 32 - bits.trailing_zeros() }
    }

    fn set(&mut self, hash: u32) {
        let at = (hash >> self.shift) as usize;
        self.bits[at / 64] |= 1 << (at % 64);
    }

    #[inline(always)]
    pub(super) fn has(&self, hash: u32) -> bool {
        let at = (hash >> self.shift) as usize;
        self.bits.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }
}

/// Where in the prompt a stretch stands: the way in the upper two bits, its index below.
pub(super) type Place = u32;

/// The stretches of a prompt by their hashes.
#[derive(Debug, Default)]
pub(super) struct Copies {
    pub(super) filter: Filter,
    slots: Vec<(u32, Place)>,
    shift: u32,
}

pub(super) const INDEX: u32 = (1 << 30) - 1;

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

    pub(super) fn has(&self, hash: u32) -> bool {
        !self.slots.is_empty() && self.find(hash).is_some()
    }

    pub(super) fn find(&self, hash: u32) -> Option<Place> {
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

#[cfg(test)]
mod tests {
    use super::super::fold::letters;
    use super::super::letters::Letters;
    use super::*;

    fn met(names: &[&str], text: &str) -> Vec<usize> {
        let mut sought = Sought::default();
        for (item, name) in names.iter().enumerate() {
            sought.add(item, Way::Plain, letters(name), false);
        }
        sought.seal();
        let mut reader = Letters::default();
        let mut start = 1;
        for token in text.split(' ') {
            reader.token(&sought, token, start);
            start += token.len() + 1;
        }
        reader.met.iter().map(|one| sought.pattern(one.pattern).item).collect()
    }

    #[test]
    fn names_that_begin_alike_are_told_apart() {
        let names = ["LEDGER_OPEN", "LEDGER_OPEN_NOW", "LEDGER_SHUT", "LEDGER"];
        assert_eq!(met(&names, "a ledger_open_now b"), [3, 0, 1]);
        assert_eq!(met(&names, "LEDGER_SHUT"), [3, 2]);
        assert_eq!(met(&names, "xledger_shut ledgers"), Vec::<usize>::new());
    }

    #[test]
    fn a_thousand_names_with_one_beginning_are_all_found() {
        let names: Vec<String> = (0..1000_u32)
            .map(|at| {
                format!(
                    "LEDGER_{}",
                    at.to_string().bytes().map(|b| char::from(b + b'a' - b'0')).collect::<String>()
                )
            })
            .collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(met(&names, "say LEDGER_HCG now"), [726]);
    }
}
