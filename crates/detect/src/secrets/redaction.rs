//! Secrets taken out of a text, wherever their values stand.

use std::collections::HashSet;

use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, MatchKind};

use super::Secret;
use crate::finding::Span;

/// Shorter values stand elsewhere by chance.
const LEAST: usize = 8;
/// As much of a value is looked for. What follows a longer one's first bytes is taken as far as it is the same.
const HEAD: usize = 128;
/// Values that are looked for, the surest first.
const MOST: usize = 4096;

/// The text with every secret replaced by `[REDACTED:kind]`, wherever its value stands: see [`everywhere`]. Where
/// several overlap, by one.
///
/// ```
/// use wardkeep_detect::secrets::{find_secrets, redact};
/// let text = format!("password = \"{0}\"\nI logged in with {0}.", "s9fK2mQx7Lp");
/// let safe = redact(&text, &find_secrets(&text));
/// assert_eq!(safe, "password = \"[REDACTED:password]\"\nI logged in with [REDACTED:password].");
/// ```
pub fn redact(text: &str, secrets: &[Secret]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    let mut rest = everywhere(text, secrets).into_iter().peekable();
    while let Some(mut surest) = rest.next() {
        let Span { start, mut end } = surest.span;
        while let Some(next) = rest.next_if(|next| next.span.start < end) {
            end = end.max(next.span.end);
            if next.confidence > surest.confidence {
                surest = next;
            }
        }
        // A span that was widened to whole characters may reach into the one before it.
        out.push_str(text.get(at..start).unwrap_or_default());
        out.push_str("[REDACTED:");
        out.push_str(surest.kind);
        out.push(']');
        at = end;
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}

/// The secrets, and every other place where the value of one stands, where nothing announces it; sorted.
///
/// Values of eight bytes and more are looked for, 4,096 different ones at most; of a very long one, its first
/// 128 bytes are enough. Placeholders are no secrets to begin with. In linear time.
pub fn everywhere(text: &str, secrets: &[Secret]) -> Vec<Secret> {
    // Spans of another text must not split a character.
    let mut places: Vec<Secret> = secrets
        .iter()
        .map(|secret| {
            let start = text.floor_char_boundary(secret.span.start);
            let end = text.ceil_char_boundary(secret.span.end.clamp(start, text.len()));
            Secret { span: Span { start, end }, ..*secret }
        })
        .collect();
    let values = values(text, &places);
    let heads: Vec<&str> = values.iter().map(|(value, _)| head(value)).collect();
    // No more patterns than it can hold, and none is empty.
    let finder = AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .kind(Some(AhoCorasickKind::ContiguousNFA))
        .build(&heads);
    if let Ok(finder) = finder
        && !values.is_empty()
    {
        let mut at = 0;
        while let Some(found) = finder.find(Input::new(text).range(at..)) {
            let start = found.start();
            let end = (start + same(&text[start..], &values)).max(found.end());
            at = text.ceil_char_boundary(end);
            let secret = values[found.pattern().as_usize()].1;
            places.push(Secret { span: Span { start, end: at }, ..secret });
        }
    }
    places.sort_by(|a, b| a.span.cmp(&b.span).then(b.confidence.total_cmp(&a.confidence)));
    let mut last = None;
    places.retain(|secret| last.replace(secret.span) != Some(secret.span));
    places
}

/// Different values that are worth looking for, in their own order.
fn values<'t>(text: &'t str, places: &[Secret]) -> Vec<(&'t str, Secret)> {
    let mut surest: Vec<&Secret> = places.iter().collect();
    surest.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
    let mut seen = HashSet::new();
    let mut values: Vec<(&str, Secret)> = surest
        .into_iter()
        .filter_map(|secret| Some((text.get(secret.span.start..secret.span.end)?, *secret)))
        .filter(|(value, _)| value.len() >= LEAST && seen.insert(*value))
        .take(MOST)
        .collect();
    values.sort_by_key(|(value, _)| *value);
    values
}

fn head(value: &str) -> &str {
    &value[..value.floor_char_boundary(HEAD)]
}

/// How far a text begins as a long value does: the one that is most like it stands where it would stand itself.
fn same(text: &str, values: &[(&str, Secret)]) -> usize {
    let at = values.partition_point(|(value, _)| *value < text);
    let near = values[..at].last().into_iter().chain(values.get(at));
    let common = |value: &str| value.bytes().zip(text.bytes()).take_while(|(a, b)| a == b).count();
    near.map(|(value, _)| common(value)).max().filter(|length| *length >= HEAD).unwrap_or(0)
}
