//! Escapes undone where they stand: percent, entities, backslashes, quoted-printable, strings
//! joined from parts.

use super::alphabets::nibble;
use super::map::{Map, Rewriter};
use super::push_new;
use crate::bitmap;
use crate::finding::Transform;

/// A text with its escapes undone, and which ones there were.
pub(super) type Undone = (Vec<Transform>, String, Map);

/// Undoes one layer of every escape.
pub(super) fn unescape(source: &str, budget: usize) -> Option<Undone> {
    let bytes = source.as_bytes();
    let mut writer = Rewriter::new(source, budget);
    let mut kinds = Vec::new();
    let mut raw = Vec::new();
    let mut at = 0;
    while at < bytes.len() && writer.len() < budget {
        let escape = |byte: u8| matches!(byte, b'%' | b'&' | b'\\' | b'=' | b'+');
        let Some(place) = bitmap::find(bytes, at, escape) else { break };
        at = place;
        raw.clear();
        let (end, kind) = match bytes[at] {
            b'%' => (percent(bytes, at, &mut raw), Transform::Percent),
            b'&' => (entity(source, at, &mut raw), Transform::Entity),
            b'\\' => (backslash(bytes, at, &mut raw), Transform::Escape),
            b'=' => (quoted(bytes, at, &mut raw), Transform::QuotedPrintable),
            _ => (plus(bytes, at, &mut raw), Transform::Percent),
        };
        if end > at {
            let latin;
            let text = match std::str::from_utf8(&raw) {
                Ok(text) => text,
                Err(_) if kind == Transform::Escape => {
                    latin = raw.iter().map(|byte| char::from(*byte)).collect::<String>();
                    latin.as_str()
                }
                Err(_) => {
                    at = end;
                    continue;
                }
            };
            writer.replace(at..end, text);
            push_new(&mut kinds, kind);
        }
        at = end.max(at + 1);
    }
    writer.finish().map(|(text, map)| (kinds, text, map))
}

fn byte_at(bytes: &[u8], at: usize) -> Option<u8> {
    Some(nibble(*bytes.get(at)?)? << 4 | nibble(*bytes.get(at + 1)?)?)
}

fn code_at(bytes: &[u8], at: usize, digits: usize) -> Option<u32> {
    let mut code = 0_u32;
    for digit in bytes.get(at..at + digits)? {
        code = code.checked_mul(16)? | u32::from(nibble(*digit)?);
    }
    Some(code)
}

fn push_char(raw: &mut Vec<u8>, code: u32) -> bool {
    let Some(character) = char::from_u32(code) else { return false };
    raw.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    true
}

/// `%41%42`, `%u0041`.
fn percent(bytes: &[u8], start: usize, raw: &mut Vec<u8>) -> usize {
    let mut at = start;
    while bytes.get(at) == Some(&b'%') {
        if let Some(byte) = byte_at(bytes, at + 1) {
            raw.push(byte);
            at += 3;
        } else if matches!(bytes.get(at + 1), Some(b'u' | b'U'))
            && code_at(bytes, at + 2, 4).is_some_and(|code| push_char(raw, code))
        {
            at += 6;
        } else {
            break;
        }
    }
    at
}

/// A plus sign as a space inside a query.
fn plus(bytes: &[u8], at: usize, raw: &mut Vec<u8>) -> usize {
    let letter = |index: usize| bytes.get(index).is_some_and(u8::is_ascii_alphabetic);
    if at == 0 || !letter(at - 1) || !letter(at + 1) {
        return at;
    }
    // Only within a query or next to other escapes: a sign for one shows within a short reach.
    let reach = &bytes[at.saturating_sub(64)..at];
    let word =
        reach.iter().rposition(u8::is_ascii_whitespace).map_or(reach, |space| &reach[space..]);
    if word.iter().any(|byte| matches!(byte, b'=' | b'%')) {
        raw.push(b' ');
        return at + 1;
    }
    at
}

/// `&#105;`, `&#x69;`, `&amp;`.
fn entity(source: &str, start: usize, raw: &mut Vec<u8>) -> usize {
    let bytes = source.as_bytes();
    let tail = &bytes[start + 1..bytes.len().min(start + 34)];
    if tail.first() == Some(&b'#') {
        let hexadecimal = matches!(tail.get(1), Some(b'x' | b'X'));
        let (from, radix) = if hexadecimal { (2, 16) } else { (1, 10) };
        let mut code = 0_u32;
        let mut length = 0;
        for byte in &tail[from.min(tail.len())..] {
            let Some(digit) = char::from(*byte).to_digit(radix) else { break };
            code = code.saturating_mul(radix).saturating_add(digit);
            length += 1;
        }
        if length == 0 || !push_char(raw, code) {
            return start;
        }
        let end = start + 1 + from + length;
        return end + usize::from(bytes.get(end) == Some(&b';'));
    }
    let Some(length) = memchr::memchr(b';', tail) else { return start };
    match source.get(start + 1..start + 1 + length).and_then(named) {
        Some(text) => {
            raw.extend_from_slice(text.as_bytes());
            start + length + 2
        }
        None => start,
    }
}

fn named(name: &str) -> Option<&'static str> {
    Some(match name {
        "amp" | "AMP" => "&",
        "lt" | "LT" => "<",
        "gt" | "GT" => ">",
        "quot" | "QUOT" | "ldquo" | "rdquo" => "\"",
        "apos" | "lsquo" | "rsquo" => "'",
        "nbsp" | "ensp" | "emsp" | "thinsp" | "NonBreakingSpace" | "Tab" => " ",
        "NewLine" => "\n",
        "shy" | "zwj" | "zwnj" | "ZeroWidthSpace" | "NoBreak" | "lrm" | "rlm" => "\u{200b}",
        "sol" => "/",
        "bsol" => "\\",
        "colon" => ":",
        "semi" => ";",
        "comma" => ",",
        "period" => ".",
        "excl" => "!",
        "quest" => "?",
        "num" => "#",
        "dollar" => "$",
        "percnt" => "%",
        "ast" | "midast" => "*",
        "plus" => "+",
        "equals" => "=",
        "commat" => "@",
        "lpar" => "(",
        "rpar" => ")",
        "lbrack" | "lsqb" => "[",
        "rbrack" | "rsqb" => "]",
        "lcub" | "lbrace" => "{",
        "rcub" | "rbrace" => "}",
        "lowbar" | "UnderBar" => "_",
        "hyphen" | "dash" | "ndash" | "mdash" | "minus" => "-",
        "grave" => "`",
        "vert" | "verbar" | "VerticalLine" => "|",
        "hellip" => "...",
        _ => return None,
    })
}

/// `\x69`, `\u0069`, `\u{69}`, `\U00000069`, `\151`, `\n`, and a backslash before a sign.
fn backslash(bytes: &[u8], start: usize, raw: &mut Vec<u8>) -> usize {
    let mut at = start;
    while bytes.get(at) == Some(&b'\\') {
        let Some(next) = bytes.get(at + 1) else { break };
        let step = match next {
            b'x' => match byte_at(bytes, at + 2) {
                Some(byte) => {
                    raw.push(byte);
                    4
                }
                None => break,
            },
            b'u' if bytes.get(at + 2) == Some(&b'{') => {
                let digits =
                    bytes[at + 3..].iter().take(7).take_while(|b| nibble(**b).is_some()).count();
                // What is not closed ends with its digits: the next sign may be several bytes long.
                let closed = usize::from(bytes.get(at + 3 + digits) == Some(&b'}'));
                match code_at(bytes, at + 3, digits) {
                    Some(code) if digits > 0 && push_char(raw, code) => digits + 3 + closed,
                    _ => break,
                }
            }
            b'u' => match code_at(bytes, at + 2, 4) {
                Some(high @ 0xd800..=0xdbff) => {
                    let low =
                        code_at(bytes, at + 8, 4).filter(|low| (0xdc00..0xe000).contains(low));
                    match low {
                        Some(low) => {
                            push_char(raw, 0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00));
                            12
                        }
                        None => break,
                    }
                }
                Some(code) if push_char(raw, code) => 6,
                _ => break,
            },
            b'U' => match code_at(bytes, at + 2, 8) {
                Some(code) if push_char(raw, code) => 10,
                _ => break,
            },
            b'0'..=b'3' => match bytes.get(at + 1..at + 4) {
                Some([a, b @ b'0'..=b'7', c @ b'0'..=b'7']) => {
                    raw.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                    4
                }
                _ => break,
            },
            b'n' | b'r' => {
                raw.push(b'\n');
                2
            }
            b't' => {
                raw.push(b' ');
                2
            }
            b'\n' => 2,
            sign if sign.is_ascii_punctuation() => {
                raw.push(*sign);
                2
            }
            _ => break,
        };
        at += step;
    }
    at.min(bytes.len())
}

/// `=69=67` and the soft line break.
fn quoted(bytes: &[u8], start: usize, raw: &mut Vec<u8>) -> usize {
    if bytes.get(start + 1) == Some(&b'\n') {
        return start + 2;
    }
    let mut at = start;
    while bytes.get(at) == Some(&b'=') {
        match byte_at(bytes, at + 1) {
            Some(byte) if byte >= 0x20 || byte == b'\n' || byte == b'\r' => raw.push(byte),
            _ => break,
        }
        at += 3;
    }
    at
}

/// Joins string literals: `"ig" + "nore"`, `'ig' . 'nore'`, `["i","g"]`, `"ig""nore"`.
pub(super) fn concatenate(source: &str, budget: usize) -> Option<Undone> {
    let bytes = source.as_bytes();
    let mut writer = Rewriter::new(source, budget);
    let mut from = 0;
    while let Some(found) =
        memchr::memchr3(b'"', b'\'', b'`', bytes.get(from..).unwrap_or_default())
    {
        let at = from + found;
        from = at + 1;
        if writer.len() > budget {
            break;
        }
        if let Some(end) = joint(bytes, at)
            && at >= writer.done()
        {
            writer.replace(at..end, "");
            from = end;
        }
    }
    writer.finish().map(|(text, map)| (vec![Transform::Concatenated], text, map))
}

/// Where the next literal begins if the one that ends at `at` is joined with it.
fn joint(bytes: &[u8], at: usize) -> Option<usize> {
    let quote = |byte: u8| matches!(byte, b'"' | b'\'' | b'`');
    let before = *bytes.get(at.checked_sub(1)?)?;
    if quote(before) {
        return None;
    }
    let blanks = |from: usize| {
        bytes[from.min(bytes.len())..]
            .iter()
            .take(4)
            .take_while(|b| b.is_ascii_whitespace())
            .count()
    };
    let operator = at + 1 + blanks(at + 1);
    let sign = *bytes.get(operator)?;
    if quote(sign) && operator == at + 1 {
        let inner = before.is_ascii_alphanumeric() && bytes.get(at + 2)?.is_ascii_alphanumeric();
        return (inner && sign == bytes[at]).then_some(at + 2);
    }
    let width = match bytes.get(operator..operator + 2)? {
        [b'.', b'.'] | [b'|', b'|'] => 2,
        [b'+' | b'.' | b'&' | b',', _] => 1,
        _ => return None,
    };
    let next = operator + width + blanks(operator + width);
    if !quote(*bytes.get(next)?) {
        return None;
    }
    if sign == b',' {
        // A list of single characters, not a list of words.
        let lone = at >= 2 && quote(bytes[at - 2]) && quote(*bytes.get(next + 2)?);
        return lone.then_some(next + 1);
    }
    Some(next + 1)
}

/// Words parted at the end of a line.
pub(super) fn hyphens(source: &str, budget: usize) -> Option<Undone> {
    let bytes = source.as_bytes();
    let mut writer = Rewriter::new(source, budget);
    for at in memchr::memmem::find_iter(bytes, b"-\n") {
        let before = at > 0 && bytes[at - 1].is_ascii_lowercase();
        if before && bytes.get(at + 2).is_some_and(u8::is_ascii_lowercase) {
            writer.replace(at..at + 2, "");
        }
        if writer.len() > budget {
            break;
        }
    }
    writer.finish().map(|(text, map)| (vec![Transform::Spaced], text, map))
}
