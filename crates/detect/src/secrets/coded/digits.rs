//! Runs of digits of Base64 and of hexadecimal ones, and what they say.

use std::ops::Range;

use crate::finding::Span;
use crate::secrets::run_length;
use crate::views::alphabets::{base64, hex, printable_base64, printable_hex};

/// The shortest credential is this long in Base64.
const MIN_RUN: usize = 24;
/// And this long in hexadecimal digits.
pub(super) const MIN_HEX: usize = 36;
/// Lines of one piece are this long at least, but for the last.
const MIN_LINE: usize = 16;
/// Blanks at the end of a line, and before the next.
const MAX_BLANKS: usize = 64;
/// Backslashes of an end of line in strings within strings.
const MAX_SLASHES: usize = 16;

/// A digit of Base64.
const DIGIT: u8 = 1;
/// A hexadecimal digit.
const HEX: u8 = 2;
/// What may be in pairs that stand apart.
const IN_PAIRS: u8 = 4;

const SIGNS: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0_u8;
    loop {
        let digit = byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_');
        let hex = byte.is_ascii_hexdigit();
        let apart =
            matches!(byte, b' ' | b':' | b',' | b'-' | b'x' | b'X' | b'\t' | b'\r' | b'\n' | b'\\');
        table[byte as usize] = if digit { DIGIT } else { 0 }
            | if hex { HEX } else { 0 }
            | if hex || apart { IN_PAIRS } else { 0 };
        if byte == 255 {
            break table;
        }
        byte += 1;
    }
};

fn is_hex(byte: u8) -> bool {
    SIGNS[usize::from(byte)] & HEX != 0
}

/// Calls back with runs of digits, those of several lines as one, and where they stand.
pub(super) fn runs(text: &[u8], mut each: impl FnMut(&[u8], Range<usize>)) {
    let is_digit = |byte: &u8| SIGNS[usize::from(*byte)] & DIGIT != 0;
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
pub(super) fn pairs(text: &[u8], mut each: impl FnMut(&[u8], Range<usize>)) {
    let is_pair =
        |at: usize| matches!(text.get(at..at + 2), Some([a, b]) if is_hex(*a) && is_hex(*b));
    let mut dense = Vec::new();
    let mut at = 0;
    while let Some(window) = text.get(at..at + 5) {
        // Two pairs that stand apart have nothing else in them, and a pair no digit behind it.
        if SIGNS[usize::from(window[4])] & IN_PAIRS == 0 {
            at += 5;
            continue;
        }
        if !is_hex(window[0]) || !is_hex(window[1]) || is_hex(window[2]) {
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
            0 => run_length(rest, 0, 2, |byte| matches!(byte, b' ' | b'\t')),
            end => end,
        };
    if gap > 0 && matches!(text[gap..], [b'0', b'x' | b'X', ..]) { gap + 2 } else { gap }
}

/// The length of an end of line with the blanks around it: as it is, or as a string writes it.
pub(super) fn line_break(text: &[u8]) -> usize {
    let blanks =
        |from: usize| run_length(text, from, MAX_BLANKS, |byte| matches!(byte, b' ' | b'\t'));
    let before = blanks(0);
    let end = match &text[before..] {
        [b'\r', b'\n', ..] => 2,
        [b'\n', ..] => 1,
        rest @ [b'\\', ..] => written_break(rest),
        _ => return 0,
    };
    if end == 0 { 0 } else { before + end + blanks(before + end) }
}

/// The length of `\n` or `\r\n` in a string, or in one within strings, whose backslashes are more.
fn written_break(text: &[u8]) -> usize {
    let sign = |from: usize| from + run_length(text, from, MAX_SLASHES, |byte| byte == b'\\');
    let first = sign(0);
    match text.get(first) {
        Some(b'n') => first + 1,
        Some(b'r') => {
            let second = sign(first + 1);
            let ends = second > first + 1 && text.get(second) == Some(&b'n');
            if ends { second + 1 } else { 0 }
        }
        _ => 0,
    }
}

/// What digits say.
pub(super) struct Plain {
    pub(super) text: Vec<u8>,
    /// Where they begin in their run.
    from: usize,
    /// So many digits are so many bytes.
    group: (usize, usize),
}

impl Plain {
    /// The digits of a part, where the run stands; all of a run that is of several lines.
    pub(super) fn place(&self, span: Span, digits: &[u8], run: &Range<usize>) -> Span {
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
pub(super) fn digits_read(digits: &[u8]) -> impl Iterator<Item = Plain> {
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
