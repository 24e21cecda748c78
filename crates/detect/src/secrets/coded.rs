//! Credentials behind escapes and encodings: `%67hp_…`, `\u0067hp_…`, `&#x67;hp_…`, Base64, hexadecimal digits.
//!
//! INVARIANT: the work is linear. Escapes are undone a fixed number of times and make a text shorter; a run of digits is
//! read in each of its phases at most once, and what it becomes is shorter and read once more at most.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ops::Range;

use super::{Secret, find_joined_secrets, run_length};
use crate::finding::Span;
use crate::views::alphabets::{base64, hex, nibble, printable_base64, printable_hex};

/// How often escapes inside of escapes are undone.
const ROUNDS: usize = 3;
/// Digits inside of digits.
const DEPTH: usize = 2;
/// The shortest credential is this long in Base64.
const MIN_RUN: usize = 24;
/// And this long in hexadecimal digits.
const MIN_HEX: usize = 36;
/// Lines of one piece are this long at least, but for the last.
const MIN_LINE: usize = 16;
/// Blanks at the end of a line, and before the next.
const MAX_BLANKS: usize = 64;

/// Finds credentials that are not written as they are, but behind escapes of addresses, strings and markup, in Base64
/// or in hexadecimal digits, one in the other a few times. The place is that of what they are written in.
///
/// What [`find_joined_secrets`] finds in the text itself is not among them, unless it is found again.
///
/// ```
/// use wardkeep_detect::secrets::find_coded_secrets;
/// let text = format!("/?q=%67l%70at-{}", "x7Kq2mZp9RtW4vBn6LsD");
/// assert_eq!(find_coded_secrets(&text)[0].kind, "gitlab-token");
/// ```
pub fn find_coded_secrets(text: &str) -> Vec<Secret> {
    let mut found = Vec::new();
    look(text.as_bytes(), DEPTH, &mut found);
    found.sort_by_key(|secret: &Secret| (secret.span.start, secret.span.end));
    found.dedup_by(|one, other| one.kind == other.kind && one.span == other.span);
    found
}

fn look(text: &[u8], depth: usize, found: &mut Vec<Secret>) {
    plus(text, found);
    let mut last: Option<Reading> = None;
    for _ in 0..ROUNDS {
        let source = last.as_ref().map_or(text, |reading| &reading.text);
        let Some(mut next) = unescaped(source) else { break };
        if let Some(last) = &last {
            for place in &mut next.from {
                *place = last.from[*place];
            }
        }
        let before = found.len();
        found.extend(find_joined_secrets(&readable(&next.text)));
        plus(&next.text, found);
        for secret in &mut found[before..] {
            secret.span = next.source(secret.span);
        }
        last = Some(next);
    }
    if depth == 0 {
        return;
    }
    let before = found.len();
    let source = last.as_ref().map_or(text, |reading| &reading.text);
    let mut read = |digits: &[u8], place: Range<usize>| {
        for plain in digits_read(digits) {
            let mut inside = find_joined_secrets(&readable(&plain.text));
            look(&plain.text, depth - 1, &mut inside);
            found.extend(inside.into_iter().map(|secret| {
                let span = plain.place(secret.span, digits, &place);
                Secret { span, ..secret }
            }));
        }
    };
    runs(source, &mut read);
    pairs(source, &mut read);
    if let Some(reading) = &last {
        for secret in &mut found[before..] {
            secret.span = reading.source(secret.span);
        }
    }
}

/// A form writes blanks as `+`, which only the blocks of private keys cannot do without.
fn plus(text: &[u8], found: &mut Vec<Secret>) {
    if memchr::memmem::find(text, b"BEGIN+").is_some() {
        let blanks = |byte: &u8| if *byte == b'+' { b' ' } else { *byte };
        let spaced: Vec<u8> = text.iter().map(blanks).collect();
        found.extend(find_joined_secrets(&readable(&spaced)));
    }
}

/// A text with its escapes undone, and where each byte and the end of it came from.
struct Reading {
    text: Vec<u8>,
    from: Vec<usize>,
}

impl Reading {
    fn source(&self, span: Span) -> Span {
        let end = self.from.len() - 1;
        Span { start: self.from[span.start.min(end)], end: self.from[span.end.min(end)] }
    }
}

/// Undoes escapes, once; nothing where there are none.
fn unescaped(text: &[u8]) -> Option<Reading> {
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

const DIGITS: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0_u8;
    loop {
        table[byte as usize] =
            byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_');
        if byte == 255 {
            break table;
        }
        byte += 1;
    }
};

/// Calls back with runs of digits, those of several lines as one, and where they stand.
fn runs(text: &[u8], mut each: impl FnMut(&[u8], Range<usize>)) {
    let is_digit = |byte: &u8| DIGITS[usize::from(*byte)];
    let mut dense = Vec::new();
    let mut at = 0;
    while let Some(window) = text.get(at..at + MIN_LINE) {
        // From the end: most words are passed without a look at each letter.
        if let Some(gap) = window.iter().rposition(|byte| !is_digit(byte)) {
            at += gap + 1;
            continue;
        }
        dense.clear();
        let start = at;
        loop {
            let line = text[at..].iter().take_while(|byte| is_digit(byte)).count();
            dense.extend_from_slice(&text[at..at + line]);
            at += line;
            let gap = line_break(&text[at..]);
            if gap == 0 || line < MIN_LINE || !text.get(at + gap).is_some_and(is_digit) {
                break;
            }
            at += gap;
        }
        if dense.len() >= MIN_RUN {
            each(&dense, start..at);
        }
    }
}

/// Calls back with pairs of hexadecimal digits that stand apart, as one run, and where they stand: `67 68 70`,
/// `67:68:70`, `0x67, 0x68`.
fn pairs(text: &[u8], mut each: impl FnMut(&[u8], Range<usize>)) {
    let is_pair =
        |at: usize| text.get(at..at + 2).is_some_and(|pair| pair.iter().all(u8::is_ascii_hexdigit));
    let mut dense = Vec::new();
    let mut at = 0;
    while let Some(last) = text.get(at + 4) {
        // Two pairs that stand apart have nothing else in them.
        if !last.is_ascii_hexdigit() && !b" :,-x\t\r\n\\".contains(last) {
            at += 5;
            continue;
        }
        if !is_pair(at) {
            at += 1;
            continue;
        }
        dense.clear();
        let start = at;
        loop {
            dense.extend_from_slice(&text[at..at + 2]);
            at += 2;
            let gap = apart(&text[at..]);
            if gap == 0 || !is_pair(at + gap) {
                break;
            }
            at += gap;
        }
        if dense.len() >= MIN_HEX {
            each(&dense, start..at);
        }
    }
}

/// The length of what stands between two pairs of digits: a sign, and a blank or the end of a line.
fn apart(text: &[u8]) -> usize {
    let sign = usize::from(matches!(text, [b':' | b',' | b'-', ..]));
    let rest = &text[sign..];
    let gap = sign
        + match line_break(rest) {
            0 => usize::from(matches!(rest, [b' ' | b'\t', ..])),
            end => end,
        };
    if gap > 0 && text[gap..].starts_with(b"0x") { gap + 2 } else { gap }
}

/// The length of an end of line with the blanks around it: as it is, or as a string of JSON writes it.
fn line_break(text: &[u8]) -> usize {
    let blanks =
        |from: usize| run_length(text, from, MAX_BLANKS, |byte| matches!(byte, b' ' | b'\t'));
    let before = blanks(0);
    let end = match text[before..] {
        [b'\r', b'\n', ..] => 2,
        [b'\n', ..] => 1,
        [b'\\', b'r', b'\\', b'n', ..] => 4,
        [b'\\', b'n', ..] => 2,
        _ => return 0,
    };
    before + end + blanks(before + end)
}

/// What digits say.
struct Plain {
    text: Vec<u8>,
    /// Where they begin in their run.
    from: usize,
    /// So many digits are so many bytes.
    group: (usize, usize),
}

impl Plain {
    /// The digits of a part, where the run stands; all of a run that is of several lines.
    fn place(&self, span: Span, digits: &[u8], run: &Range<usize>) -> Span {
        if digits.len() != run.len() {
            return Span { start: run.start, end: run.end };
        }
        let (count, bytes) = self.group;
        let start = self.from + span.start / bytes * count;
        let end = self.from + span.end.div_ceil(bytes) * count;
        Span { start: run.start + start, end: run.end.min(run.start + end) }
    }
}

/// What a run of digits may say, where it says anything that can be printed.
fn digits_read(digits: &[u8]) -> impl Iterator<Item = Plain> {
    let groups = (0..4)
        .filter(|phase| is_text(&digits[*phase..], printable_base64))
        .map(|phase| Plain { text: base64(digits, phase), from: phase, group: (4, 3) });
    let mut next = 0;
    let pairs =
        digits
            .split(|byte| !byte.is_ascii_hexdigit())
            .map(move |run| {
                let start = next;
                next += run.len() + 1;
                (start, run)
            })
            .filter(|(_, run)| run.len() >= MIN_HEX)
            .flat_map(|(start, run)| {
                (0..2).filter(|phase| is_text(&run[*phase..], printable_hex)).map(move |phase| {
                    Plain { text: hex(&run[phase..]), from: start + phase, group: (2, 1) }
                })
            });
    groups.chain(pairs)
}

/// Whether two groups of eight digits in a row can be printed.
fn is_text(digits: &[u8], printable: impl Fn(&[u8; 8]) -> bool) -> bool {
    let (eights, _) = digits.as_chunks::<8>();
    let mut at = 1;
    while at < eights.len() {
        if !printable(&eights[at]) {
            at += 2;
        } else if printable(&eights[at - 1]) {
            return true;
        } else {
            at += 1;
        }
    }
    false
}

/// Bytes as text of the same length.
fn readable(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => {
            bytes.iter().map(|byte| if byte.is_ascii() { char::from(*byte) } else { ' ' }).collect()
        }
    }
}
