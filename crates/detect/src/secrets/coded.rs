//! Credentials behind escapes and encodings: `%67hp_…`, `\u0067hp_…`, `&#x67;hp_…`, Base64, hexadecimal digits.
//!
//! INVARIANT: the work is linear. Escapes are undone a fixed number of times and make a text shorter; a run of digits is
//! read in each of its phases at most once, and what it becomes is shorter and read once more at most.

mod digits;
mod escapes;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ops::Range;

use super::{Secret, find_joined_secrets};
use digits::{digits_read, pairs, runs};
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

/// Bytes as text of the same length.
fn readable(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => {
            bytes.iter().map(|byte| if byte.is_ascii() { char::from(*byte) } else { ' ' }).collect()
        }
    }
}
