//! Bytes as `xxd`, `hexdump -C` and `od` print them: a place, hexadecimal digits, signs.

use std::ops::Range;

use super::digits::{MIN_HEX, line_break};
use crate::secrets::run_length;

/// Digits of a place.
const PLACE: Range<usize> = 4..17;
/// Digits that stand together.
const MAX_GROUP: usize = 16;
/// Digits of one line.
const MAX_LINE: usize = 128;
/// From the digits to the end of their line: as many signs, and backslashes of strings.
const MAX_SIGNS: usize = 256;
/// What could be the end of a line, among them.
const MAX_ENDS: usize = 32;

/// Calls back with the digits of each dump as one run, and where it stands.
pub(super) fn dumps(text: &[u8], mut each: impl FnMut(&[u8], Range<usize>)) {
    let mut dense = Vec::new();
    // Places of lines are multiples of sixteen.
    for mark in [&b"0: "[..], b"0 "] {
        let mut done = 0;
        for at in memchr::memmem::find_iter(text, mark) {
            let Some(start) = place_before(text, at + 1).filter(|start| *start >= done) else {
                continue;
            };
            dense.clear();
            let mut end = start;
            let mut next = Some(start);
            while let Some(line_end) = next.and_then(|line| digits_of(text, line, &mut dense)) {
                end = line_end;
                next = next_line(text, end);
            }
            // What is no line of a dump may have one in it.
            done = end.max(at + 1);
            if dense.len() >= MIN_HEX {
                each(&dense, start..end);
            }
        }
    }
}

/// Where the digits of a place begin that end here.
fn place_before(text: &[u8], end: usize) -> Option<usize> {
    let before = text[..end].iter().rev().take(PLACE.end);
    let length = before.take_while(|byte| byte.is_ascii_hexdigit()).count();
    PLACE.contains(&length).then_some(end - length)
}

/// Where the next line with a place begins.
fn next_line(text: &[u8], from: usize) -> Option<usize> {
    let signs = &text[from..text.len().min(from + MAX_SIGNS)];
    // Of several backslashes the first: a line is not looked for behind each.
    let ends =
        memchr::memchr2_iter(b'\n', b'\\', signs).filter(|at| *at == 0 || signs[at - 1] != b'\\');
    ends.take(MAX_ENDS).find_map(|at| {
        let line = from + at + line_break(&text[from + at..]);
        let length = run_length(text, line, PLACE.end, |byte| byte.is_ascii_hexdigit());
        (line > from + at && PLACE.contains(&length)).then_some(line)
    })
}

/// Takes the digits behind the place of a line, and says where they end.
fn digits_of(text: &[u8], line: usize, dense: &mut Vec<u8>) -> Option<usize> {
    let group = |from| run_length(text, from, MAX_GROUP + 1, |byte| byte.is_ascii_hexdigit());
    let blanks = |from| run_length(text, from, 3, |byte| byte == b' ');
    let mut at = line + group(line);
    let colon = text.get(at) == Some(&b':');
    at += usize::from(colon);
    let before = dense.len();
    let mut end = None;
    loop {
        let gap = blanks(at);
        let length = group(at + gap);
        // Behind a place with a colon two blanks are the end of the digits; signs may look like some.
        let apart = gap == 1 || gap == 2 && !(colon && end.is_some());
        let whole = (2..=MAX_GROUP).contains(&length) && length % 2 == 0;
        if !apart || !whole || dense.len() - before + length > MAX_LINE {
            return end;
        }
        at += gap;
        dense.extend_from_slice(&text[at..at + length]);
        at += length;
        end = Some(at);
    }
}
