//! Credentials behind escapes and encodings: `%67hp_…`, `\u0067hp_…`, `&#x67;hp_…`, Base64, hexadecimal digits.
//!
//! INVARIANT: the work is linear. Escapes are undone a fixed number of times and make a text shorter; a run of digits is
//! read in each of its phases at most once for each time that escapes in it were undone, and what it becomes is shorter
//! and read once more at most.

mod digits;
mod dumps;
mod escapes;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ops::Range;

use super::{Secret, find_joined_secrets};
use digits::{digits_read, pairs, runs};
use dumps::dumps;
use escapes::{Reading, unescaped};

/// How often escapes inside of escapes are undone.
const ROUNDS: usize = 3;
/// Digits inside of digits.
const DEPTH: usize = 2;

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
    within(text, depth, found, |_| true);
    let mut readings: Vec<Reading> = Vec::with_capacity(ROUNDS);
    while readings.len() < ROUNDS {
        let source = readings.last().map_or(text, |reading| &reading.text);
        let Some(next) = unescaped(source) else { break };
        let before = found.len();
        found.extend(find_joined_secrets(&readable(&next.text)));
        plus(&next.text, found);
        within(&next.text, depth, found, |place| next.wrote_in(place));
        readings.push(next);
        for secret in &mut found[before..] {
            secret.span =
                readings.iter().rev().fold(secret.span, |span, reading| reading.source(span));
        }
    }
}

/// What digits say, where they were not read before.
///
/// Each reading of a text is searched, not the last alone: a sign in front of digits makes an escape of the first two.
/// Digits in which no escape stood are in the text before as they are, and were read there.
fn within(
    text: &[u8],
    depth: usize,
    found: &mut Vec<Secret>,
    is_new: impl Fn(&Range<usize>) -> bool,
) {
    if depth == 0 {
        return;
    }
    let mut read = |digits: &[u8], place: Range<usize>| {
        if !is_new(&place) {
            return;
        }
        for plain in digits_read(digits) {
            let mut inside = find_joined_secrets(&readable(&plain.text));
            look(&plain.text, depth - 1, &mut inside);
            found.extend(inside.into_iter().map(|secret| {
                let span = plain.place(secret.span, digits, &place);
                Secret { span, ..secret }
            }));
        }
    };
    runs(text, &mut read);
    pairs(text, &mut read);
    dumps(text, &mut read);
}

/// A form writes blanks as `+`, which only the blocks of private keys cannot do without.
fn plus(text: &[u8], found: &mut Vec<Secret>) {
    if memchr::memmem::find(text, b"BEGIN+").is_some() {
        let blanks = |byte: &u8| if *byte == b'+' { b' ' } else { *byte };
        let spaced: Vec<u8> = text.iter().map(blanks).collect();
        found.extend(find_joined_secrets(&readable(&spaced)));
    }
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
