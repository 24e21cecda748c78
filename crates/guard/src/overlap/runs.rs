//! From hashes that are known to passages that were copied.

use std::ops::Range;

use super::words::{SHINGLE, WORD, Word};

/// Hits that are further apart do not show one passage: with four between two of them, every word
/// is in one of both.
const APART: usize = 4;
/// Words beyond the first and last hit that may belong to the copy.
const BEYOND: usize = 3;
/// A passage.
const PASSAGE: Measure = Measure { words: 10, letters: 40 };
/// Most of a line.
const LINE: Measure = Measure { words: 6, letters: 32 };
/// How much of the line that is, in hundredths.
const OF_LINE: usize = 60;
/// A passage with words put in.
const PIECES: Measure = Measure { words: 12, letters: 48 };
/// Words that may be put in between two pieces.
const PUT_IN: usize = 4;
/// Error messages are told by one of their first words.
const FIRST: usize = 3;

struct Measure {
    words: u32,
    letters: u32,
}

impl Measure {
    fn reached(&self, units: u32, letters: u32) -> bool {
        units >= self.words * u32::from(WORD) && letters >= self.letters
    }
}

/// Where passages were copied, as ranges of hits, from which words have hits.
pub(super) fn repeated(words: &[Word], hit: impl Fn(usize) -> bool) -> Vec<Range<usize>> {
    let places = words.len().saturating_sub(SHINGLE - 1);
    let mut found = Vec::new();
    let mut pieces = Pieces::default();
    let mut at = 0;
    while at < places {
        if !hit(at) {
            at += 1;
            continue;
        }
        let (first, mut last) = (at, at);
        at += 1;
        while at < places && at - last <= APART {
            if hit(at) {
                last = at;
            }
            at += 1;
        }
        let chain = first..last + SHINGLE;
        let units = units(words, &chain);
        if PASSAGE.reached(units, letters_around(words, &chain)) || lines(words, &chain) {
            found.push(first..last + 1);
        }
        if let Some(together) = pieces.add(&chain, units, letters(words, &chain)) {
            found.push(together);
        }
    }
    found
}

/// What words count for; those of an error message half.
fn units(words: &[Word], range: &Range<usize>) -> u32 {
    let sum: u32 = words[range.clone()].iter().map(|word| u32::from(word.units)).sum();
    if is_error(words, range) { sum / 2 } else { sum }
}

fn is_error(words: &[Word], range: &Range<usize>) -> bool {
    words[range.clone()].iter().take(FIRST).any(|word| word.error)
}

fn letters(words: &[Word], range: &Range<usize>) -> u32 {
    words[range.clone()].iter().map(|word| u32::from(word.letters)).sum()
}

/// Letters of what may have been copied.
fn letters_around(words: &[Word], range: &Range<usize>) -> u32 {
    letters(words, &(range.start.saturating_sub(BEYOND)..words.len().min(range.end + BEYOND)))
}

/// Whether most of a line is in a chain. A line with an error message is often quoted.
fn lines(words: &[Word], chain: &Range<usize>) -> bool {
    if is_error(words, chain) {
        return false;
    }
    let mut from = chain.start;
    while from < chain.end {
        let line = words[from].line;
        let to = from + words[from..chain.end].partition_point(|word| word.line == line);
        let inside = from..to;
        if LINE.reached(units(words, &inside), letters(words, &inside)) {
            let start = words[..from].partition_point(|word| word.line < line);
            let end = to + words[to..].partition_point(|word| word.line == line);
            if inside.len() * 100 >= (end - start) * OF_LINE {
                return true;
            }
        }
        from = to;
    }
    false
}

/// Chains that follow each other closely.
#[derive(Debug, Default)]
struct Pieces {
    /// Where the first begins and the last ends.
    start: usize,
    end: usize,
    count: usize,
    units: u32,
    letters: u32,
}

impl Pieces {
    /// Adds the next chain; gives all together where they are a passage.
    fn add(&mut self, chain: &Range<usize>, units: u32, letters: u32) -> Option<Range<usize>> {
        if self.count == 0 || chain.start > self.end + PUT_IN {
            *self = Self { start: chain.start, ..Self::default() };
        }
        self.count += 1;
        self.units += units;
        self.letters += letters;
        self.end = chain.end;
        let together = self.count > 1 && PIECES.reached(self.units, self.letters);
        together.then(|| self.start..self.end + 1 - SHINGLE)
    }
}
