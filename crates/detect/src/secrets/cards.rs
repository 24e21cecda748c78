//! Numbers of payment cards: issuer, length, check digit.

use super::{Secret, secret};
use crate::words::Words;

/// The shortest number has 13 digits: a sample this often cannot step over one.
const STRIDE: usize = 12;

/// Words before a number that say what it is.
static NAMES: Words<7> = Words::new(["card", "visa", "amex", "credit", "debit", "payment", "pan"]);

/// Published numbers for tests.
const TEST_NUMBERS: [&str; 18] = [
    "4111111111111111",
    "4242424242424242",
    "4012888888881881",
    "4000056655665556",
    "4222222222222",
    "5555555555554444",
    "5105105105105100",
    "5200828282828210",
    "2223003122003222",
    "378282246310005",
    "371449635398431",
    "378734493671000",
    "6011111111111117",
    "6011000990139424",
    "30569309025904",
    "38520000023237",
    "3530111333300000",
    "3566002020360505",
];

/// Finds card numbers, with or without blanks or dashes between groups; says how many bytes looked like one.
pub(super) fn find(text: &[u8], found: &mut Vec<Secret>) -> usize {
    let (mut at, mut read) = (STRIDE, 0);
    while at <= text.len() {
        // Separators are single, so that one of two neighbours is a digit.
        let digit = |place: usize| text.get(place).is_some_and(u8::is_ascii_digit);
        if !digit(at - 1) && !digit(at) {
            at += STRIDE;
            continue;
        }
        let (start, end) = number(text, if digit(at) { at } else { at - 1 });
        check(text, start, end, found);
        read += 16 + end - start;
        at = end + STRIDE;
    }
    read
}

/// The run of digits with single separators around a digit.
fn number(text: &[u8], inside: usize) -> (usize, usize) {
    let part = |place: usize| {
        text[place].is_ascii_digit()
            || matches!(text[place], b' ' | b'-')
                && place > 0
                && text[place - 1].is_ascii_digit()
                && text.get(place + 1).is_some_and(u8::is_ascii_digit)
    };
    // Back no further than one number is long: the rest was looked at before.
    let floor = inside.saturating_sub(40);
    let mut start = inside;
    while start > floor && part(start - 1) {
        start -= 1;
    }
    let mut end = inside + 1;
    while end < text.len() && part(end) {
        end += 1;
    }
    (start, end)
}

fn check(text: &[u8], start: usize, end: usize, found: &mut Vec<Secret>) {
    if !(13..=23).contains(&(end - start)) {
        return;
    }
    let before = start.checked_sub(1).map_or(b' ', |place| text[place]);
    let after = text.get(end).copied().unwrap_or(b' ');
    let joined =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'+' | b'#');
    let fraction = after == b'.' && text.get(end + 1).is_some_and(u8::is_ascii_digit);
    if joined(before) || after != b'.' && joined(after) || fraction {
        return;
    }
    let digits: String =
        text[start..end].iter().filter(|b| b.is_ascii_digit()).map(|b| char::from(*b)).collect();
    if !is_issued(&digits) || !luhn(&digits) || TEST_NUMBERS.contains(&digits.as_str()) {
        return;
    }
    let mut different: Vec<u8> = digits.bytes().collect();
    different.sort_unstable();
    different.dedup();
    if different.len() < 4 {
        return;
    }
    let grouped = groups(&text[start..end]);
    if digits.len() != end - start && !grouped {
        return;
    }
    let around = text[start.saturating_sub(64)..start].to_ascii_lowercase();
    let named = NAMES.stand_in(&around);
    let confidence = match (grouped, named) {
        (_, true) => 0.9,
        (true, false) => 0.75,
        (false, false) => 0.4,
    };
    found.push(secret("credit-card", start, end, confidence));
}

/// 4-4-4-4(-3) or 4-6-5.
fn groups(number: &[u8]) -> bool {
    let lengths: Vec<usize> =
        number.split(|byte| !byte.is_ascii_digit()).map(<[u8]>::len).collect();
    matches!(lengths[..], [4, 4, 4, 4] | [4, 4, 4, 4, 3] | [4, 6, 5] | [4, 6, 4])
}

fn is_issued(digits: &str) -> bool {
    let prefix =
        |length: usize| digits.get(..length).and_then(|head| head.parse::<u32>().ok()).unwrap_or(0);
    match digits.len() {
        13 => prefix(1) == 4,
        14 => matches!(prefix(2), 36 | 38 | 39) || matches!(prefix(3), 300..=305),
        15 => matches!(prefix(2), 34 | 37),
        16 => {
            prefix(1) == 4
                || matches!(prefix(2), 51..=55 | 65 | 62)
                || matches!(prefix(4), 2221..=2720 | 6011 | 3528..=3589)
                || matches!(prefix(3), 644..=649)
        }
        19 => prefix(1) == 4 || prefix(2) == 62,
        _ => false,
    }
}

fn luhn(digits: &str) -> bool {
    let sum: u32 = digits
        .bytes()
        .rev()
        .enumerate()
        .map(|(place, byte)| {
            let digit = u32::from(byte - b'0');
            match (place % 2, digit * 2) {
                (0, _) => digit,
                (_, doubled) if doubled > 9 => doubled - 9,
                (_, doubled) => doubled,
            }
        })
        .sum();
    sum.is_multiple_of(10)
}
