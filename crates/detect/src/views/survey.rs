//! One pass over the words of a text that notices what is worth another reading.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

use super::inline::Undone;
use super::language::ROT13_GAIN;
use super::letters::{Accents, Backwards, Joined, Leet, Rot13, Spaced};
use super::map::Map;
use super::numbers::Numbers;
use super::pieces::{Pieces, is_odd};
use super::{inline, markup};
use crate::bitmap::{BLOCK, bits};
use crate::work::{Step, Work};

/// What a byte can be part of.
const LOWER: u16 = 1;
const UPPER: u16 = 1 << 1;
const DIGIT: u16 = 1 << 2;
const HEX_LETTER: u16 = 1 << 3;
/// Signs that are in Base64 and in words: `+`, `/`, `-`, `_`, `=`.
const BASE64_SIGN: u16 = 1 << 4;
const OTHER_SIGN: u16 = 1 << 5;
const LEET_SIGN: u16 = 1 << 6;
const HIGH: u16 = 1 << 7;
/// `%`, `&`, `\`, `=`, `+`: what an escape begins with.
const ESCAPE: u16 = 1 << 8;
/// `<`, `*`, `_`, `` ` ``, `~`, `[`: what markup begins with.
const MARKUP: u16 = 1 << 9;
const QUOTE: u16 = 1 << 10;
const OTHER_LETTER: u16 = 1 << 11;
const HYPHEN: u16 = 1 << 12;
const EX: u16 = 1 << 13;
const LETTER: u16 = LOWER | UPPER;

const CLASS: [u16; 256] = {
    let mut table = [0; 256];
    let mut byte = 0_u8;
    loop {
        let mut class = match byte {
            b'a'..=b'z' => LOWER,
            b'A'..=b'Z' => UPPER,
            b'0'..=b'9' => DIGIT,
            b'+' | b'/' | b'-' | b'_' | b'=' => BASE64_SIGN,
            0x80.. => HIGH | OTHER_SIGN,
            0..=b' ' => 0,
            _ => OTHER_SIGN,
        };
        class |= match byte {
            b'a'..=b'f' | b'A'..=b'F' => HEX_LETTER,
            b'x' | b'X' => EX,
            b'a'..=b'z' | b'A'..=b'Z' => OTHER_LETTER,
            b'%' | b'&' | b'\\' | b'=' | b'+' => ESCAPE,
            b'<' | b'*' | b'_' | b'`' | b'~' | b'[' => MARKUP,
            b'"' | b'\'' => QUOTE,
            b'-' => HYPHEN,
            _ => 0,
        };
        if matches!(byte, b'`') {
            class |= QUOTE;
        }
        if matches!(byte, b'@' | b'$' | b'!' | b'|' | b'+' | b'(' | b'0'..=b'9') {
            class |= LEET_SIGN;
        }
        table[byte as usize] = class;
        if byte == 255 {
            break table;
        }
        byte += 1;
    }
};

const GAIN: [i8; 256] = {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 26 {
        table[b'a' as usize + at] = ROT13_GAIN[at];
        table[b'A' as usize + at] = ROT13_GAIN[at];
        at += 1;
    }
    table
};

/// What is added to every gain, so that sums of them are not negative.
const BIAS: u8 = 64;
/// Longer tokens are looked at byte by byte: a count in a sum has eight bits.
const SUMMED: usize = 255;
/// Where the counts of a sum stand, behind sixteen bits for the gain.
const LOWERS: u32 = 16;
const UPPERS: u32 = 24;
const DIGITS: u32 = 32;
const OTHER_LETTERS: u32 = 40;
/// Bytes whose flags a sum does not tell.
const OTHERS: u32 = 48;

/// What each byte adds to the sum of a token.
const SUM: [u64; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let class = CLASS[byte];
        let mut sum = GAIN[byte].wrapping_add_unsigned(BIAS) as u64;
        if class & LOWER != 0 {
            sum |= 1 << LOWERS;
        }
        if class & UPPER != 0 {
            sum |= 1 << UPPERS;
        }
        if class & DIGIT != 0 {
            sum |= 1 << DIGITS;
        }
        if class & OTHER_LETTER != 0 {
            sum |= 1 << OTHER_LETTERS;
        }
        if class & !(LETTER | DIGIT | OTHER_LETTER | HEX_LETTER | EX | LEET_SIGN) != 0 {
            sum |= 1 << OTHERS;
        }
        table[byte] = sum;
        byte += 1;
    }
    table
};

/// A word between white space.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token {
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Token {
    pub(super) fn len(self) -> usize {
        self.end - self.start
    }

    pub(super) fn range(self) -> Range<usize> {
        self.start..self.end
    }
}

/// Signs behind words that are nothing else.
#[inline]
fn is_stop(byte: u8) -> bool {
    const STOPS: u64 = 1 << b',' | 1 << b'.' | 1 << b';' | 1 << b':' | 1 << b'?' | 1 << b')';
    byte < 64 && STOPS >> byte & 1 != 0
}

/// What a sum says about ROT13.
#[inline]
fn gain(token: Token, sum: u64) -> i32 {
    let [low, high, ..] = sum.to_le_bytes();
    let biased = i32::from(u16::from_le_bytes([low, high]));
    // INVARIANT: no longer than what a sum can hold.
    let length = u8::try_from(token.len()).unwrap_or(u8::MAX);
    biased - i32::from(BIAS) * i32::from(length)
}

/// What a reading has that the one it was made of had not.
#[derive(Debug)]
pub(super) struct Fresh<'s> {
    /// Back to the text before it was brought into normal form.
    own: &'s [Arc<Map>],
    /// How that was made; `None` for the text itself.
    made: Option<&'s Map>,
    /// How often it was asked.
    looked: Cell<usize>,
}

impl<'s> Fresh<'s> {
    /// `maps` lead back, last step first; so many of them belong to bringing it into normal form.
    pub(super) fn new(maps: &'s [Arc<Map>], own: usize) -> Self {
        let (own, rest) = maps.split_at(own.min(maps.len()));
        Self { own, made: rest.first().map(|map| &**map), looked: Cell::new(0) }
    }

    /// Whether anything in a range is new. What is not was looked at before.
    pub(super) fn touches(&self, range: &Range<usize>) -> bool {
        let Some(made) = self.made else { return true };
        self.looked.update(|count| count + 1);
        let range = self.own.iter().fold(range.clone(), |range, map| map.source(range));
        made.altered(range)
    }

    /// All of them if any is new: they may belong together.
    pub(super) fn stretches(&self, ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
        if ranges.iter().any(|range| self.touches(range)) { ranges } else { Vec::new() }
    }
}

/// All other readings of a text in normal form that there is a reason for.
///
/// `maps` lead back to the text before spaces were folded, where a wide gap still parts words.
pub(super) fn survey(
    source: &str,
    fresh: Fresh<'_>,
    budget: usize,
    work: &mut Work,
) -> (Vec<Undone>, bool) {
    let maps = fresh.own;
    let pass = if fresh.made.is_none() { Pass::Both } else { Pass::Letters };
    let mut survey = Survey {
        source,
        fresh,
        pieces: Pieces::new(source, budget),
        numbers: Numbers::new(source),
        leet: Leet::new(source, budget),
        spaced: Spaced::new(source, maps, budget),
        joined: Joined::new(source, budget),
        accents: Accents::new(source, budget),
        rot13: Rot13::new(source, budget),
        backwards: Backwards::new(source, budget),
        all: 0,
        pass,
        wanted: false,
        work,
    };
    survey.tokens();
    // Where a piece is new, it may belong together with others that are not.
    if survey.wanted {
        survey.pass = Pass::Pieces;
        survey.tokens();
    }
    survey.finish(budget)
}

/// What is looked for: in a reading of another, pieces only if there is a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    Both,
    Letters,
    Pieces,
}

struct Survey<'s> {
    source: &'s str,
    fresh: Fresh<'s>,
    pieces: Pieces<'s>,
    numbers: Numbers<'s>,
    leet: Leet<'s>,
    spaced: Spaced<'s>,
    joined: Joined<'s>,
    accents: Accents<'s>,
    rot13: Rot13<'s>,
    backwards: Backwards<'s>,
    all: u16,
    pass: Pass,
    /// Whether a piece was passed over that is new.
    wanted: bool,
    work: &'s mut Work,
}

impl<'s> Survey<'s> {
    /// Finds the words: sums over all bytes so far, of which the difference between two places tells
    /// what stands between them, and bits for white space, which say where the words are.
    fn tokens(&mut self) {
        let bytes = self.source.as_bytes();
        self.work.add(Step::Surveyed, bytes.len());
        let (mut from, mut total) = (0, 0_u64);
        // Of the word that is not over yet: where it starts, and the sum before it.
        let mut open: Option<(usize, u64)> = None;
        let mut sums = [0_u64; BLOCK];
        let mut padded = [b' '; BLOCK];
        while from <= bytes.len() {
            // The last block is not full: the space behind the text ends the last word.
            let block = match bytes[from..].first_chunk() {
                Some(block) => block,
                None => {
                    let rest = &bytes[from..];
                    padded[..rest.len()].copy_from_slice(rest);
                    &padded
                }
            };
            for (sum, byte) in sums.iter_mut().zip(block) {
                *sum = total;
                total = total.wrapping_add(SUM[usize::from(*byte)]);
            }
            let blanks = bits(block, |byte| byte <= b' ');
            let inside = u64::from(open.is_some());
            let mut starts = !blanks & (blanks << 1 | (1 - inside));
            let mut ends = blanks & (!blanks << 1 | inside);
            let next = |starts: &mut u64| {
                let place = starts.trailing_zeros() as usize;
                *starts &= starts.wrapping_sub(1);
                sums.get(place).map(|sum| (from + place, *sum))
            };
            if open.is_none() {
                open = next(&mut starts);
            }
            while ends != 0 {
                let end = ends.trailing_zeros() as usize;
                ends &= ends - 1;
                if let Some((start, sum)) = open {
                    let (token, sum) =
                        (Token { start, end: from + end }, sums[end].wrapping_sub(sum));
                    if !self.word(token, sum) {
                        self.token(token, sum);
                    }
                }
                open = next(&mut starts);
            }
            from += BLOCK;
        }
    }

    /// Takes in an ordinary word: letters, all but the first of them small, perhaps a sign that ends
    /// a sentence or a part of it. Says no to others.
    #[inline]
    fn word(&mut self, token: Token, sum: u64) -> bool {
        let bytes = self.source.as_bytes();
        let (first, last) = (bytes[token.start], bytes[token.end - 1]);
        let others = sum & (0xff << UPPERS | 0xff << DIGITS | 0xff << OTHERS);
        let plain = others
            == u64::from(first.is_ascii_uppercase()) << UPPERS | u64::from(is_stop(last)) << OTHERS;
        let open = self.spaced.open()
            | self.numbers.open()
            | self.pieces.pending()
            | self.pieces.grouped();
        if !plain | open | !(2..12).contains(&token.len()) {
            return false;
        }
        if self.pass != Pass::Pieces {
            self.rot13.token(token, gain(token, sum));
            self.backwards.token(token, first, last);
        }
        true
    }

    /// Takes in any word; what its bytes add up to.
    #[inline(never)]
    fn token(&mut self, token: Token, sum: u64) {
        self.work.add(Step::Words, 1);
        let (mut flags, mut gain) = (0, 0);
        if token.len() > SUMMED || sum >> OTHERS != 0 {
            self.work.add(Step::WordBytes, token.len());
            for byte in &self.source.as_bytes()[token.range()] {
                flags |= CLASS[usize::from(*byte)];
                gain += i32::from(GAIN[usize::from(*byte)]);
            }
            self.all |= flags;
        } else {
            let some = |count: u32, flag: u16| if sum >> count & 0xff == 0 { 0 } else { flag };
            flags = some(LOWERS, LOWER)
                | some(UPPERS, UPPER)
                | some(DIGITS, DIGIT | LEET_SIGN)
                | some(OTHER_LETTERS, OTHER_LETTER);
            gain = self::gain(token, sum);
        }
        if self.pass != Pass::Pieces {
            self.letters(token, flags, gain);
        }
        let bytes = &self.source.as_bytes()[token.range()];
        let plain = flags & OTHER_SIGN == 0;
        let odd = plain && flags & LETTER == LETTER && token.len() >= 4 && is_odd(bytes);
        if self.pass == Pass::Letters {
            let piece = odd || flags & DIGIT != 0 || token.len() >= 12;
            self.wanted |= piece && self.fresh.touches(&token.range());
            return;
        }
        let numeric = flags & (OTHER_LETTER | HIGH) == 0;
        if numeric && (flags & DIGIT != 0 || self.numbers.open()) {
            self.numbers.token(token, &mut self.pieces);
        } else if self.numbers.open() {
            self.numbers.flush(&mut self.pieces);
        }
        if token.len() >= 12 || self.pieces.pending() {
            self.pieces.flush_row();
            self.pieces.token(token.range(), plain);
        } else if plain && (token.len() >= 4 || self.pieces.grouped()) {
            self.pieces.short(token.range(), !odd && flags & DIGIT == 0);
        } else if self.pieces.grouped() {
            self.pieces.flush_row();
        }
    }

    /// What is disguised letter by letter.
    #[inline]
    fn letters(&mut self, token: Token, flags: u16, gain: i32) {
        let bytes = &self.source.as_bytes()[token.range()];
        let (words, high) = (flags & LETTER != 0, flags & HIGH != 0);
        if token.len() == 1 || (high && token.len() <= 4) {
            self.spaced.short(token);
        } else if self.spaced.open() {
            self.spaced.flush();
        }
        self.rot13.token(token, gain);
        if words {
            self.backwards.token(token, bytes[0], bytes[bytes.len() - 1]);
            if token.len() >= Joined::LEAST && self.fresh.touches(&token.range()) {
                self.work.add(Step::Disguises, 1 + self.joined.token(token));
            }
        }
        // With other disguises undone first, the letters are there: only what is new is left.
        if flags & LEET_SIGN != 0 && words && self.fresh.touches(&token.range()) {
            self.work.add(Step::Disguises, 1);
            self.leet.token(token);
        }
        if token.len() >= 3 && words && flags & (OTHER_SIGN | BASE64_SIGN | ESCAPE) != 0 {
            self.work.add(Step::Disguises, 1);
            self.spaced.punctuated(token);
        }
        if high && words {
            self.accents.token(token);
        }
    }

    fn finish(mut self, budget: usize) -> (Vec<Undone>, bool) {
        let source = self.source;
        self.numbers.flush(&mut self.pieces);
        let mut found: Vec<Undone> = Vec::new();
        if self.all & ESCAPE != 0 {
            found.extend(inline::unescape(source, budget));
        }
        if self.all & MARKUP != 0 {
            found.extend(markup::strip(source, budget));
        }
        self.pieces.flush();
        self.pieces.flush_row();
        self.work.add(Step::Decoded, self.pieces.read);
        let truncated = self.pieces.truncated();
        found.extend(self.pieces.finish());
        self.spaced.flush();
        let mut turned = self.spaced.read;
        found.extend(self.spaced.finish());
        found.extend(self.joined.finish());
        found.extend(self.leet.finish());
        found.extend(self.rot13.finish(&self.fresh, &mut turned));
        found.extend(self.backwards.finish(&self.fresh, &mut turned));
        if self.all & QUOTE != 0 {
            found.extend(inline::concatenate(source, budget));
        }
        if self.all & HYPHEN != 0 {
            found.extend(inline::hyphens(source, budget));
        }
        found.extend(self.accents.finish());
        self.work.add(Step::Turned, turned);
        self.work.add(Step::Looked, self.fresh.looked.get());
        for (_, text, map) in &found {
            self.work.add(Step::Written, text.len());
            self.work.add(Step::Edits, map.len());
        }
        (found, truncated)
    }
}
