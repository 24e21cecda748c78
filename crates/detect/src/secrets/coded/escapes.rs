//! Escapes of addresses, strings and markup.

use std::ops::Range;

use crate::finding::Span;
use crate::views::alphabets::nibble;

/// How often markup may be written in markup.
const MAX_AMPERSANDS: usize = 3;

/// A text with its escapes undone.
pub(super) struct Reading {
    pub(super) text: Vec<u8>,
    /// Behind each byte that an escape stood for: the place here, and that in the text with the escapes.
    behind: Vec<(usize, usize)>,
}

impl Reading {
    /// Where something stands in the text with the escapes.
    pub(super) fn source(&self, span: Span) -> Span {
        Span { start: self.place(span.start), end: self.place(span.end) }
    }

    fn place(&self, at: usize) -> usize {
        let before = self.behind.partition_point(|(here, _)| *here <= at);
        let (here, there) = self.behind[..before].last().copied().unwrap_or_default();
        there + (at - here)
    }

    /// Whether an escape stood for any byte of a part.
    pub(super) fn wrote_in(&self, part: &Range<usize>) -> bool {
        let before = self.behind.partition_point(|(here, _)| *here <= part.start);
        self.behind.get(before).is_some_and(|(here, _)| *here <= part.end)
    }
}

/// Undoes escapes, once; nothing where there are none.
pub(super) fn unescaped(text: &[u8]) -> Option<Reading> {
    let mut escapes = memchr::memchr3_iter(b'%', b'\\', b'&', text)
        .filter_map(|at| Some((at, escape(&text[at..])?)))
        .peekable();
    escapes.peek()?;
    let mut reading = Reading { text: Vec::with_capacity(text.len()), behind: Vec::new() };
    let mut done = 0;
    for (at, (byte, length)) in escapes {
        if at < done {
            continue;
        }
        reading.text.extend_from_slice(without_slashes(&text[done..at], text[at]));
        reading.text.push(byte);
        done = at + length;
        reading.behind.push((reading.text.len(), done));
    }
    reading.text.extend_from_slice(&text[done..]);
    Some(reading)
}

/// What stands before an escape. A string within strings has its backslashes twice for each of them, so that any number
/// in a row belongs to the escape; each string undone by itself would be a reading of its own.
fn without_slashes(before: &[u8], mark: u8) -> &[u8] {
    let end = before.iter().rposition(|byte| *byte != b'\\').map_or(0, |last| last + 1);
    if mark == b'\\' { &before[..end] } else { before }
}

/// The byte that an escape stands for, and its length: `%67`, `%u0067`, `\u0067`, `\u{67}`, `\U00000067`, `\x67`,
/// `\147`, `\/`, `\_`, `&#x67;`, `&#103;`, `&lowbar;`.
fn escape(text: &[u8]) -> Option<(u8, usize)> {
    let pair = |high: u8, low: u8| Some(nibble(high)? << 4 | nibble(low)?);
    match text {
        [b'%', b'u' | b'U', b'0', b'0', high, low, ..] => Some((pair(*high, *low)?, 6)),
        [b'%', high, low, ..] => Some((pair(*high, *low)?, 3)),
        [b'\\', sign @ (b'/' | b'_' | b'-' | b'.'), ..] => Some((*sign, 2)),
        [b'\\', b'x', high, low, ..] => Some((pair(*high, *low)?, 4)),
        [b'\\', b'u', b'0', b'0', high, low, ..] => Some((pair(*high, *low)?, 6)),
        [b'\\', b'U', b'0', b'0', b'0', b'0', b'0', b'0', high, low, ..] => {
            Some((pair(*high, *low)?, 10))
        }
        [b'\\', b'u', b'{', rest @ ..] => {
            let (byte, length) = number(rest, 16)?;
            (rest.get(length) == Some(&b'}')).then_some((byte, length + 4))
        }
        [b'\\', b'0'..=b'7', ..] => {
            let (byte, length) = octal(&text[1..])?;
            Some((byte, length + 1))
        }
        [b'&', ..] => markup(text),
        _ => None,
    }
}

/// Octal digits: three, and four where the first is a zero that only some shells know. Nothing but what can be printed:
/// `\1` is a group of a pattern more often.
fn octal(text: &[u8]) -> Option<(u8, usize)> {
    let read = |most: usize| {
        let digits = text.iter().take(most).map_while(|byte| char::from(*byte).to_digit(8));
        let (value, length) =
            digits.fold((0, 0), |(value, length), digit| (value * 8 + digit, length + 1));
        let byte = u8::try_from(value).ok()?;
        matches!(byte, b' '..=b'~').then_some((byte, length))
    };
    read(3).or_else(|| if text.starts_with(b"0") { read(4) } else { None })
}

/// A reference of markup, also where its `&` is written as one.
fn markup(text: &[u8]) -> Option<(u8, usize)> {
    let mut before = 1;
    for _ in 1..MAX_AMPERSANDS {
        before += if text[before..].starts_with(b"amp;") { 4 } else { 0 };
    }
    match &text[before..] {
        [b'#', b'x' | b'X', rest @ ..] => reference(rest, 16, before + 2),
        [b'#', rest @ ..] => reference(rest, 10, before + 1),
        rest => rest.starts_with(b"lowbar;").then_some((b'_', before + 7)),
    }
}

/// A reference of markup behind its first `before` signs. Its end may be left away, but what follows may be the escape
/// of a digit, and is undone first.
fn reference(text: &[u8], base: u32, before: usize) -> Option<(u8, usize)> {
    let (byte, length) = number(text, base)?;
    match text.get(length) {
        Some(b';') => Some((byte, before + length + 1)),
        Some(b'%' | b'\\') => None,
        _ => Some((byte, before + length)),
    }
}

/// The number of an ASCII sign, and how many digits it has: zeros in front are of any number, and no other escape begins
/// in them, so that they are passed once.
fn number(text: &[u8], base: u32) -> Option<(u8, usize)> {
    let zeros = text.iter().take_while(|byte| **byte == b'0').count();
    let digits = text[zeros..].iter().take(8).map_while(|byte| char::from(*byte).to_digit(base));
    let (value, length) =
        digits.fold((0, zeros), |(value, length), digit| (value * base + digit, length + 1));
    let byte = u8::try_from(value).ok().filter(|byte| length > 0 && byte.is_ascii())?;
    Some((byte, length))
}
