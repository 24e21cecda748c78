//! What `${name operator operand}` makes of a known value.

use super::Word;
use super::state::Value;

/// Whether an operand takes the place of the value and its quotes decide how it is split.
pub(super) fn is_resplit(operator: &str, operand: &Word) -> bool {
    let replaces = matches!(operator, ":-" | "-" | ":+" | "+" | ":=" | "=");
    let text = operand.text.as_deref().unwrap_or("");
    replaces
        && operand.raw.contains(['\'', '"', '\\'])
        && (text.is_empty() || text.contains([' ', '\t', '\n', '*', '?', '[']))
}

pub(super) fn evaluate(text: &str, operator: &str, operand: &Word) -> Value {
    let same = || Value::known(text);
    let Some(other) = operand.text.as_deref() else {
        return if operator.is_empty() { same() } else { Value::unknown() };
    };
    let computed = match operator {
        "" if !operand.raw.is_empty() => None,
        "" | "?" | ":?" | "-" | "=" => Some(text.to_owned()),
        ":-" | ":=" => Some(if text.is_empty() { other } else { text }.to_owned()),
        ":+" => Some(if text.is_empty() { "" } else { other }.to_owned()),
        "+" => Some(other.to_owned()),
        "^^" => Some(text.to_uppercase()),
        ",," => Some(text.to_lowercase()),
        "#" | "##" if !operand.glob => Some(text.strip_prefix(other).unwrap_or(text).to_owned()),
        "%" | "%%" if !operand.glob => Some(text.strip_suffix(other).unwrap_or(text).to_owned()),
        "/" | "//" if !operand.glob => {
            // Quotes, and signs that a value brought, hide where the pattern ends.
            let slashes = |text: &str| text.matches('/').count();
            let plain = !operand.raw.contains(['\'', '"', '\\']);
            if !plain || slashes(&operand.raw) != slashes(other) || other.contains('&') {
                return Value::unknown();
            }
            let (from, to) = other.split_once('/').unwrap_or((other, ""));
            match from {
                "" => Some(text.to_owned()),
                _ if operator == "/" => Some(text.replacen(from, to, 1)),
                // A replacement that grows the text a lot is not followed.
                _ if to.len() > from.len().saturating_mul(16) => None,
                _ => Some(text.replace(from, to)),
            }
        }
        ":" => substring(text, other),
        _ => None,
    };
    computed.map_or_else(Value::unknown, |computed| Value::known(&computed))
}

fn substring(text: &str, range: &str) -> Option<String> {
    let (from, length) = match range.split_once(':') {
        Some((from, length)) => (from, length.trim().parse().ok()?),
        None => (range, usize::MAX),
    };
    let from: i64 = from.trim().parse().ok()?;
    let signs = text.chars().count();
    let from = match usize::try_from(from) {
        Ok(from) => from,
        Err(_) => signs.checked_sub(usize::try_from(from.unsigned_abs()).ok()?)?,
    };
    Some(text.chars().skip(from).take(length).collect())
}
