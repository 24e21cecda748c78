//! Functions that only compute: decoding, putting together, taking apart.

use std::io::Read;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use flate2::read::{DeflateDecoder, GzDecoder, ZlibDecoder};

/// Longest result of decoding.
const LONGEST: u64 = 256 << 10;

const CONFIG: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);

/// Base64 in either alphabet, white space left out.
pub(in super::super) fn base64(text: &[u8]) -> Option<Vec<u8>> {
    let bare: Vec<u8> = text
        .iter()
        .filter(|byte| !byte.is_ascii_whitespace())
        .map(|byte| match byte {
            b'-' => b'+',
            b'_' => b'/',
            other => *other,
        })
        .collect();
    GeneralPurpose::new(&alphabet::STANDARD, CONFIG).decode(bare).ok()
}

pub(in super::super) fn hex(text: &[u8]) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text
        .iter()
        .filter(|byte| !byte.is_ascii_whitespace() && **byte != b':')
        .map(|byte| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .collect();
    let digits = digits?;
    let (pairs, rest) = digits.as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

pub(super) fn base32(text: &[u8]) -> Option<Vec<u8>> {
    let (mut out, mut buffer, mut bits) = (Vec::new(), 0_u32, 0);
    for byte in text.iter().filter(|byte| !byte.is_ascii_whitespace() && **byte != b'=') {
        let value = match byte.to_ascii_uppercase() {
            letter @ b'A'..=b'Z' => letter - b'A',
            digit @ b'2'..=b'7' => digit - b'2' + 26,
            _ => return None,
        };
        buffer = (buffer << 5 | u32::from(value)) & 0xfff;
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            out.push(u8::try_from(buffer >> bits & 0xff).ok()?);
        }
    }
    Some(out)
}

/// Base85 as Python writes it, or as Adobe does.
pub(super) fn base85(text: &[u8], adobe: bool) -> Option<Vec<u8>> {
    const SIGNS: &[u8] =
        b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";
    let text: &[u8] = if adobe { text.strip_prefix(b"<~").unwrap_or(text) } else { text };
    let text: &[u8] = if adobe { text.strip_suffix(b"~>").unwrap_or(text) } else { text };
    let mut digits = Vec::with_capacity(text.len());
    for byte in text.iter().filter(|byte| !byte.is_ascii_whitespace()) {
        if adobe && *byte == b'z' {
            digits.extend([0; 5]);
            continue;
        }
        let digit = if adobe {
            byte.checked_sub(33).filter(|digit| *digit < 85)?
        } else {
            u8::try_from(SIGNS.iter().position(|sign| sign == byte)?).ok()?
        };
        digits.push(digit);
    }
    let missing = (5 - digits.len() % 5) % 5;
    digits.extend(std::iter::repeat_n(84, missing));
    let mut out = Vec::with_capacity(digits.len());
    for group in digits.chunks(5) {
        let value = group.iter().try_fold(0_u32, |value, digit| {
            value.checked_mul(85)?.checked_add(u32::from(*digit))
        })?;
        out.extend(value.to_be_bytes());
    }
    out.truncate(out.len().saturating_sub(missing));
    Some(out)
}

pub(in super::super) fn inflate(bytes: &[u8]) -> Option<Vec<u8>> {
    let read = |from: &mut dyn Read| {
        let mut out = Vec::new();
        from.take(LONGEST).read_to_end(&mut out).ok()?;
        Some(out)
    };
    if bytes.starts_with(b"\x1f\x8b") {
        return read(&mut GzDecoder::new(bytes));
    }
    read(&mut ZlibDecoder::new(bytes)).or_else(|| read(&mut DeflateDecoder::new(bytes)))
}

pub(in super::super) fn rot13(text: &str) -> String {
    let turn = |letter: u8, first: u8| char::from((letter - first + 13) % 26 + first);
    text.chars()
        .map(|sign| match sign {
            'a'..='z' => turn(sign as u8, b'a'),
            'A'..='Z' => turn(sign as u8, b'A'),
            other => other,
        })
        .collect()
}

/// A part as Python takes it: from, to, step.
pub(super) fn slice<T: Clone>(items: &[T], bounds: [Option<i64>; 3]) -> Vec<T> {
    let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
    let step = bounds[2].unwrap_or(1);
    if step == 0 {
        return Vec::new();
    }
    let place = |bound: Option<i64>, default: i64| match bound {
        None => default,
        Some(at) if at < 0 => (at.saturating_add(length)).max(if step < 0 { -1 } else { 0 }),
        Some(at) => at.min(if step < 0 { length - 1 } else { length }),
    };
    let (from, to) = if step > 0 {
        (place(bounds[0], 0), place(bounds[1], length))
    } else {
        (place(bounds[0], length - 1), place(bounds[1], -1))
    };
    let mut out = Vec::new();
    let mut at = from;
    while (step > 0 && at < to) || (step < 0 && at > to) {
        if let Some(item) = usize::try_from(at).ok().and_then(|at| items.get(at)) {
            out.push(item.clone());
        }
        let Some(next) = at.checked_add(step) else { break };
        at = next;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_encoded_is_read() {
        assert_eq!(base64(b"Y3Vy\nbA==").as_deref(), Some(&b"curl"[..]));
        assert_eq!(base64(b"Y3VybA").as_deref(), Some(&b"curl"[..]));
        assert_eq!(hex(b"63 75:72 6C").as_deref(), Some(&b"curl"[..]));
        assert_eq!(base32(b"MN2XE3A=").as_deref(), Some(&b"curl"[..]));
        assert_eq!(base85(b"V|8+D", false).as_deref(), Some(&b"curl"[..]));
        assert_eq!(base85(b"<~@s)g.~>", true).as_deref(), Some(&b"curl"[..]));
        assert_eq!(rot13("phey"), "curl");
    }

    #[test]
    fn parts() {
        let text: Vec<char> = "abcdef".chars().collect();
        let cut = |bounds| slice(&text, bounds).into_iter().collect::<String>();
        assert_eq!(cut([None, None, Some(-1)]), "fedcba");
        assert_eq!(cut([Some(1), Some(-1), None]), "bcde");
        assert_eq!(cut([None, None, Some(2)]), "ace");
        assert_eq!(cut([Some(-100), Some(100), None]), "abcdef");
        assert_eq!(cut([None, None, Some(i64::MIN)]), "f");
    }
}
