//! One pass over the words of a text that notices what is worth another reading.

use std::sync::Arc;

use super::inline::Undone;
use super::language::ROT13_GAIN;
use super::letters::{Accents, Backwards, Joined, Leet, Rot13, Spaced};
use super::map::Map;
use super::numbers::Numbers;
use super::pieces::Pieces;
use super::{inline, markup};

/// What a byte can be part of.
pub(super) const LOWER: u16 = 1;
const UPPER: u16 = 1 << 1;
const DIGIT: u16 = 1 << 2;
const HEX_LETTER: u16 = 1 << 3;
/// Signs that are in Base64 and in words: `+`, `/`, `-`, `_`, `=`.
const BASE64_SIGN: u16 = 1 << 4;
const OTHER_SIGN: u16 = 1 << 5;
const LEET_SIGN: u16 = 1 << 6;
const HIGH: u16 = 1 << 7;
/// `%`, `&`, `\`, `=`, `+`: what an escape begins with.
pub(super) const ESCAPE: u16 = 1 << 8;
/// `<`, `*`, `_`, `` ` ``, `~`, `[`: what markup begins with.
pub(super) const MARKUP: u16 = 1 << 9;
const QUOTE: u16 = 1 << 10;
const OTHER_LETTER: u16 = 1 << 11;
const HYPHEN: u16 = 1 << 12;
const EX: u16 = 1 << 13;
const LETTER: u16 = LOWER | UPPER;

pub(super) const CLASS: [u16; 256] = {
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

    pub(super) fn range(self) -> std::ops::Range<usize> {
        self.start..self.end
    }
}

/// All other readings of a text in normal form that there is a reason for.
///
/// `maps` lead back to the text before spaces were folded, where a wide gap still parts words.
pub(super) fn survey(source: &str, maps: &[Arc<Map>], budget: usize) -> (Vec<Undone>, bool) {
    let bytes = source.as_bytes();
    let mut pieces = Pieces::new(source, budget);
    let mut numbers = Numbers::new(source);
    let mut leet = Leet::new(source, budget);
    let mut spaced = Spaced::new(source, maps, budget);
    let mut joined = Joined::new(source, budget);
    let mut accents = Accents::new(source, budget);
    let mut rot13 = Rot13::new(source, budget);
    let mut backwards = Backwards::new(source, budget);
    let mut all = 0_u16;
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        let (mut flags, mut gain) = (0_u16, 0_i32);
        for byte in &bytes[start..] {
            if *byte <= b' ' {
                break;
            }
            flags |= CLASS[usize::from(*byte)];
            gain += i32::from(GAIN[usize::from(*byte)]);
            at += 1;
        }
        let token = Token { start, end: at };
        at += 1;
        if token.len() == 0 {
            continue;
        }
        all |= flags;
        let high = flags & HIGH != 0;
        if token.len() == 1 || (high && token.len() <= 4) {
            spaced.short(token);
        } else if spaced.open() {
            spaced.flush();
        }
        rot13.token(token, gain);
        let words = flags & LETTER != 0;
        if words {
            backwards.token(token, bytes[start], bytes[token.end - 1]);
            if token.len() >= Joined::LEAST {
                joined.token(token);
            }
        }
        if flags & !LETTER != 0 {
            if flags & LEET_SIGN != 0 && words {
                leet.token(token);
            }
            if token.len() >= 3 && words && flags & (OTHER_SIGN | BASE64_SIGN | ESCAPE) != 0 {
                spaced.punctuated(token);
            }
            if high && words {
                accents.token(token);
            }
        }
        let numeric = flags & (OTHER_LETTER | HIGH) == 0 && (flags & DIGIT != 0 || numbers.open());
        if numeric {
            numbers.token(token, &mut pieces);
        } else if numbers.open() {
            numbers.flush(&mut pieces);
        }
        let plain = flags & OTHER_SIGN == 0;
        if token.len() >= 12 || pieces.pending() {
            pieces.token(token.range(), plain);
        } else if plain
            && flags & LETTER == LETTER
            && token.len() >= 4
            && bytes[start + 1..token.end].iter().any(u8::is_ascii_uppercase)
        {
            pieces.short(token.range());
        }
    }
    numbers.flush(&mut pieces);
    let mut found: Vec<Undone> = Vec::new();
    if all & ESCAPE != 0 {
        found.extend(inline::unescape(source, budget));
    }
    if all & MARKUP != 0 {
        found.extend(markup::strip(source, budget));
    }
    pieces.flush();
    let truncated = pieces.truncated;
    found.extend(pieces.finish());
    found.extend(spaced.finish());
    found.extend(joined.finish());
    found.extend(leet.finish());
    found.extend(rot13.finish());
    found.extend(backwards.finish());
    if all & QUOTE != 0 {
        found.extend(inline::concatenate(source, budget));
    }
    if all & HYPHEN != 0 {
        found.extend(inline::hyphens(source, budget));
    }
    found.extend(accents.finish());
    (found, truncated)
}
