//! AEGX_CANON_0_1: one byte string for one JSON value.
//!
//! Objects are sorted by the bytes of their keys as given; strings are written in NFC; the text
//! of a double is fixed by [`float_text`] and by nothing else, so that no update of a dependency
//! can change an id. `docs/formats.md` describes the rules for other implementations.

use std::fmt::Write as _;

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

use crate::json::{Object, Value};

/// Greatest integer that every JSON reader represents exactly: 2^53 − 1.
pub const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// Deepest nesting that [`check_unambiguous`] lets pass.
pub const MAX_WRITTEN_DEPTH: usize = 64;

/// The canonical bytes of `value`.
#[must_use]
pub fn canonical(value: &Value<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    write_canonical(value, &mut out);
    out
}

/// Appends the canonical bytes of `value`.
pub fn write_canonical(value: &Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Unsigned(number) => write_unsigned(*number, out),
        Value::Negative(number) => {
            out.push(b'-');
            write_unsigned(number.unsigned_abs(), out);
        }
        Value::Float(number) => out.extend_from_slice(float_text(*number).as_bytes()),
        Value::String(text) => write_canonical_string(text, out),
        Value::Array(items) => {
            out.push(b'[');
            for (position, item) in items.iter().enumerate() {
                if position > 0 {
                    out.push(b',');
                }
                write_canonical(item, out);
            }
            out.push(b']');
        }
        Value::Object(object) => write_canonical_object(object, None, out),
    }
}

/// Appends an object; `replace` gives the string that stands for the value of one key, if the
/// object has that key.
pub(crate) fn write_canonical_object(
    object: &Object<'_>,
    replace: Option<(&str, &str)>,
    out: &mut Vec<u8>,
) {
    let mut first = true;
    let mut member = |key: &str, value: &Value<'_>, out: &mut Vec<u8>| {
        if !std::mem::take(&mut first) {
            out.push(b',');
        }
        write_canonical_string(key, out);
        out.push(b':');
        match replace {
            Some((name, text)) if name == key => write_canonical_string(text, out),
            _ => write_canonical(value, out),
        }
    };
    out.push(b'{');
    if object.is_sorted() {
        for (key, value) in &object.members {
            member(key, value, out);
        }
    } else {
        for (key, value) in object.sorted() {
            member(key, value, out);
        }
    }
    out.push(b'}');
}

/// Appends `text` in NFC, quoted and escaped.
pub fn write_canonical_string(text: &str, out: &mut Vec<u8>) {
    if text.is_ascii() || is_nfc_quick(text.chars()) == IsNormalized::Yes {
        write_quoted(text, out);
    } else {
        write_quoted(&text.nfc().collect::<String>(), out);
    }
}

/// The text of a double, by rule: shortest digits that read back to the same double; plain
/// decimal with a point for 1e-5 ≤ |x| < 1e16, otherwise `d.ddde+NN` or `d.ddde-NN`; negative
/// zero is `0`.
#[must_use]
pub fn float_text(number: f64) -> String {
    if number == 0.0 {
        return if number.is_sign_negative() { "0" } else { "0.0" }.to_owned();
    }
    // `{:e}` gives the shortest digits that round-trip, as the standard library promises.
    let scientific = format!("{:e}", number.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let mut text = String::with_capacity(26);
    if number < 0.0 {
        text.push('-');
    }
    match exponent {
        -5..=-1 => {
            text.push_str("0.");
            text.extend(std::iter::repeat_n('0', usize::try_from(-exponent - 1).unwrap_or(0)));
            text.push_str(&digits);
        }
        0..=15 => {
            let whole = usize::try_from(exponent).unwrap_or(0) + 1;
            if digits.len() > whole {
                text.push_str(&digits[..whole]);
                text.push('.');
                text.push_str(&digits[whole..]);
            } else {
                text.push_str(&digits);
                text.extend(std::iter::repeat_n('0', whole - digits.len()));
                text.push_str(".0");
            }
        }
        _ => {
            text.push_str(&digits[..1]);
            if digits.len() > 1 {
                text.push('.');
                text.push_str(&digits[1..]);
            }
            let _ = write!(text, "e{exponent:+}");
        }
    }
    text
}

/// Appends `value` as compact JSON that keeps what canonical form would change: strings keep
/// their normal form and negative zero its sign. Lines in a bundle are written so, because the
/// canonical order of keys depends on the normal form they were given in.
pub fn write_compact(value: &Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::Float(number) if *number == 0.0 && number.is_sign_negative() => {
            out.extend_from_slice(b"-0.0");
        }
        Value::String(text) => write_quoted(text, out),
        Value::Array(items) => {
            out.push(b'[');
            for (position, item) in items.iter().enumerate() {
                if position > 0 {
                    out.push(b',');
                }
                write_compact(item, out);
            }
            out.push(b']');
        }
        Value::Object(object) => {
            out.push(b'{');
            for (position, (key, value)) in object.sorted().into_iter().enumerate() {
                if position > 0 {
                    out.push(b',');
                }
                write_quoted(key, out);
                out.push(b':');
                write_compact(value, out);
            }
            out.push(b'}');
        }
        _ => write_canonical(value, out),
    }
}

/// What a writer refuses because readers of JSON disagree about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Ambiguous {
    /// A number with fraction or exponent.
    #[error("`{0}` is not an integer: write it as a string")]
    Float(String),
    /// An integer beyond ±(2^53 − 1).
    #[error("`{0}` is beyond 2^53 - 1: write it as a string")]
    LargeInteger(String),
    /// The same key twice in one object.
    #[error("the key `{0}` stands twice in one object: keep one")]
    DuplicateKey(String),
    /// A key not in NFC.
    #[error("the key `{0}` is not in Unicode normal form C: normalise it")]
    KeyNotNormalised(String),
    /// Nesting deeper than [`MAX_WRITTEN_DEPTH`].
    #[error("nested deeper than 64: flatten it")]
    TooDeep,
}

/// Refuses what two correct readers of JSON could take for different values. What passes has the
/// same canonical form after a round trip through its own text.
///
/// # Errors
/// The first ambiguity found.
pub fn check_unambiguous(value: &Value<'_>) -> Result<(), Ambiguous> {
    check_depth(value, MAX_WRITTEN_DEPTH)
}

fn check_depth(value: &Value<'_>, depth: usize) -> Result<(), Ambiguous> {
    match value {
        Value::Float(number) => Err(Ambiguous::Float(float_text(*number))),
        Value::Unsigned(number) if *number > MAX_SAFE_INTEGER => {
            Err(Ambiguous::LargeInteger(number.to_string()))
        }
        Value::Negative(number) if number.unsigned_abs() > MAX_SAFE_INTEGER => {
            Err(Ambiguous::LargeInteger(number.to_string()))
        }
        Value::Array(_) | Value::Object(_) if depth == 0 => Err(Ambiguous::TooDeep),
        Value::Array(items) => items.iter().try_for_each(|item| check_depth(item, depth - 1)),
        Value::Object(object) => {
            if object.sorted().len() != object.members.len() {
                let key = value.duplicate_key().unwrap_or_default();
                return Err(Ambiguous::DuplicateKey(key.to_owned()));
            }
            object.members.iter().try_for_each(|(key, member)| {
                if !unicode_normalization::is_nfc(key) {
                    return Err(Ambiguous::KeyNotNormalised(key.clone().into_owned()));
                }
                check_depth(member, depth - 1)
            })
        }
        _ => Ok(()),
    }
}

/// Appends `text` quoted: `\" \\ \n \r \t`, `\u00xx` for other control characters, all else raw.
pub(crate) fn write_quoted(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut clean_from = 0;
    for (position, &byte) in bytes.iter().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&bytes[clean_from..position]);
        clean_from = position + 1;
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            other => {
                out.extend_from_slice(b"\\u00");
                crate::hash::encode_hex_into(&[other], out);
            }
        }
    }
    out.extend_from_slice(&bytes[clean_from..]);
    out.push(b'"');
}

pub(crate) fn write_unsigned(number: u64, out: &mut Vec<u8>) {
    let mut digits = [0u8; 20];
    let mut start = digits.len();
    let mut rest = number;
    loop {
        start -= 1;
        // INVARIANT: a remainder of ten is below ten.
        digits[start] = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse;

    fn text_of(input: &str) -> String {
        String::from_utf8(canonical(&parse(input.as_bytes()).unwrap())).unwrap()
    }

    #[test]
    fn floats_follow_the_rule() {
        for (input, expected) in [
            ("-0", "0"),
            ("-0.0", "0"),
            ("0.0", "0.0"),
            ("1.50", "1.5"),
            ("1e2", "100.0"),
            ("1e15", "1000000000000000.0"),
            ("9999999999999998.0", "9999999999999998.0"),
            ("1e16", "1e+16"),
            ("1e-5", "0.00001"),
            ("1.25e-5", "0.0000125"),
            ("0.000001", "1e-6"),
            ("5e-324", "5e-324"),
            ("-123.456", "-123.456"),
            ("1.7976931348623157e308", "1.7976931348623157e+308"),
            // The reference parses this one to the neighbouring double; exact parsing does not.
            ("123456789012345680000.0", "1.2345678901234568e+20"),
            ("-236.52698970703239", "-236.52698970703239"),
        ] {
            assert_eq!(text_of(input), expected, "{input}");
        }
    }

    #[test]
    fn order_is_by_raw_key_and_text_is_nfc() {
        assert_eq!(text_of("{\"e\\u0301\":1,\"f\":2}"), "{\"é\":1,\"f\":2}");
        assert_eq!(text_of("{\"\\u00e9\":1,\"f\":2}"), "{\"f\":2,\"é\":1}");
        assert_eq!(text_of("{\"a\":1,\"a\":2}"), "{\"a\":2}");
    }

    #[test]
    fn writers_refuse_what_readers_disagree_about() {
        let check = |input: &'static str| check_unambiguous(&parse(input.as_bytes()).unwrap());
        assert!(check(r#"{"a":[1,-5,"x",null,true,9007199254740991]}"#).is_ok());
        assert!(matches!(check("[1.5]"), Err(Ambiguous::Float(_))));
        assert!(matches!(check("[9007199254740992]"), Err(Ambiguous::LargeInteger(_))));
        assert!(matches!(check(r#"{"a":{"b":1,"b":2}}"#), Err(Ambiguous::DuplicateKey(_))));
        assert!(matches!(check("{\"e\\u0301\":1}"), Err(Ambiguous::KeyNotNormalised(_))));
        let deep = format!("{}{}", "[".repeat(66), "]".repeat(66));
        assert_eq!(check_unambiguous(&parse(deep.as_bytes()).unwrap()), Err(Ambiguous::TooDeep));
    }
}
