//! Escapes of addresses, strings and markup.

use crate::finding::Span;
use crate::views::alphabets::nibble;

/// A text with its escapes undone, and where each byte and the end of it came from.
pub(super) struct Reading {
    pub(super) text: Vec<u8>,
    pub(super) from: Vec<usize>,
}

impl Reading {
    pub(super) fn source(&self, span: Span) -> Span {
        let end = self.from.len() - 1;
        Span { start: self.from[span.start.min(end)], end: self.from[span.end.min(end)] }
    }
}

/// Undoes escapes, once; nothing where there are none.
pub(super) fn unescaped(text: &[u8]) -> Option<Reading> {
    let mut escapes = memchr::memchr3_iter(b'%', b'\\', b'&', text)
        .filter_map(|at| Some((at, escape(&text[at..])?)))
        .peekable();
    escapes.peek()?;
    let mut reading =
        Reading { text: Vec::with_capacity(text.len()), from: Vec::with_capacity(text.len() + 1) };
    let mut done = 0;
    for (at, (byte, length)) in escapes {
        if at < done {
            continue;
        }
        reading.text.extend_from_slice(&text[done..at]);
        reading.from.extend(done..=at);
        reading.text.push(byte);
        done = at + length;
    }
    reading.text.extend_from_slice(&text[done..]);
    reading.from.extend(done..=text.len());
    Some(reading)
}

/// The byte that an escape stands for, and its length: `%67`, `\u0067`, `\u{67}`, `\x67`, `\/`, `&#x67;`, `&#103;`.
fn escape(text: &[u8]) -> Option<(u8, usize)> {
    let pair = |high: u8, low: u8| Some(nibble(high)? << 4 | nibble(low)?);
    match text {
        [b'%', high, low, ..] => Some((pair(*high, *low)?, 3)),
        [b'\\', b'/', ..] => Some((b'/', 2)),
        [b'\\', b'x', high, low, ..] => Some((pair(*high, *low)?, 4)),
        [b'\\', b'u', b'0', b'0', high, low, ..] => Some((pair(*high, *low)?, 6)),
        [b'\\', b'u', b'{', rest @ ..] => {
            let (byte, length) = number(rest, 16)?;
            (rest.get(length) == Some(&b'}')).then_some((byte, length + 4))
        }
        [b'&', b'#', b'x' | b'X', rest @ ..] => reference(rest, 16, 3),
        [b'&', b'#', rest @ ..] => reference(rest, 10, 2),
        _ => None,
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

/// The number of an ASCII sign, and how many digits it has.
fn number(text: &[u8], base: u32) -> Option<(u8, usize)> {
    let digits = text.iter().take(8).map_while(|byte| char::from(*byte).to_digit(base));
    let (value, length) =
        digits.fold((0, 0), |(value, length), digit| (value * base + digit, length + 1));
    let byte = u8::try_from(value).ok().filter(|byte| length > 0 && byte.is_ascii())?;
    Some((byte, length))
}
