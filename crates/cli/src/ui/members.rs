//! Labels with their values, for people: of a JSON object, and broken under the column of the labels.

use serde_json::Value;

use super::{Line, harmless};

/// A label and what it says.
pub(crate) type Member = (String, String);

/// Longest list that stands in one line.
const SHORT: usize = 400;

/// The members of a value as labels and texts, in their order: members of members under `outer inner`, what is
/// empty left out. Texts hold what they held, line ends included.
pub(crate) fn members(value: &Value) -> Vec<Member> {
    let mut out = Vec::new();
    collect(String::new(), value, &mut out);
    out
}

fn collect(label: String, value: &Value, out: &mut Vec<Member>) {
    let inner = |name: &str| {
        let name = name.replace('_', " ");
        if label.is_empty() { name } else { format!("{label} {name}") }
    };
    match value {
        Value::Null => {}
        Value::Array(items) => match joined(items) {
            Some(text) => out.extend((!text.is_empty()).then_some((label, text))),
            None => items.iter().for_each(|item| collect(label.clone(), item, out)),
        },
        Value::Object(members) => {
            members.iter().for_each(|(name, value)| collect(inner(name), value, out));
        }
        Value::String(text) => out.push((label, text.clone())),
        Value::Bool(said) => out.push((label, if *said { "yes" } else { "no" }.to_owned())),
        Value::Number(number) => out.push((label, number.to_string())),
    }
}

/// A list of plain words in one line; nothing, where each item wants a line of its own.
fn joined(items: &[Value]) -> Option<String> {
    let word = |item: &Value| match item {
        Value::String(text) if text.contains([' ', '/', '\n', ',']) => None,
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let words: Option<Vec<String>> = items.iter().map(word).collect();
    words.map(|words| words.join(", ")).filter(|text| text.len() <= SHORT)
}

/// Labels in a column and their texts beside it: line by line, and broken between words where `width` says
/// how much room there is. A label that is the one above is not said again.
pub(super) fn listed(members: &[Member], width: Option<usize>) -> Vec<Line> {
    const GAP: usize = 2;
    /// Below this, breaking makes nothing better.
    const LEAST: usize = 24;
    let column = members.iter().map(|(label, _)| harmless(label).chars().count()).max();
    let column = column.unwrap_or(0) + GAP;
    let room = width.map(|width| width.saturating_sub(GAP + column).max(LEAST));
    let mut lines = Vec::new();
    let mut above = None;
    for (label, text) in members {
        let mut named = if above == Some(label) { "" } else { label };
        above = Some(label);
        // A text that ends its last line has no other line after it.
        for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
            let line = harmless(line.strip_suffix('\r').unwrap_or(line));
            for piece in room.map_or_else(|| vec![line.clone()], |room| wrapped(&line, room)) {
                let head = format!("{:GAP$}{:<column$}", "", harmless(named));
                lines.push(match piece.is_empty() {
                    true => Line::default().faint(head.trim_end()),
                    false => Line::default().faint(head).plain(piece),
                });
                named = "";
            }
        }
    }
    lines
}

/// A line in pieces of at most `width` characters, broken between words; a word that is longer stays whole.
pub(crate) fn wrapped(line: &str, width: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut left = width;
    for word in line.split_inclusive(' ') {
        let count = word.trim_end().chars().count();
        if count > left && left < width {
            pieces.push(String::new());
            left = width;
        }
        left = left.saturating_sub(word.chars().count());
        if let Some(piece) = pieces.last_mut() {
            piece.push_str(word);
        }
    }
    for piece in &mut pieces {
        piece.truncate(piece.trim_end().len());
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_told_in_lines_that_fit() {
        let value = serde_json::json!({
            "act": "write",
            "empty": [],
            "meta": { "session_id": "a:1" },
            "names": ["x", "y"],
            "none": null,
            "paths": ["/a", "/b"],
            "text": "one two three four five six seven eight\n\u{1b}[2Jred\n",
        });
        let lines = listed(&members(&value), Some(40));
        let lines: Vec<String> = lines.iter().map(Line::text).collect();
        let expected = "  act              write
  meta session id  a:1
  names            x, y
  paths            /a
                   /b
  text             one two three four five
                   six seven eight
                   \\u{1b}[2Jred";
        assert_eq!(lines.join("\n"), expected);
    }

    #[test]
    fn lines_break_between_words_only() {
        assert_eq!(wrapped("", 5), [""]);
        assert_eq!(wrapped("ab cd ef", 5), ["ab cd", "ef"]);
        assert_eq!(wrapped("abcdefgh ij", 5), ["abcdefgh", "ij"]);
        assert_eq!(wrapped("ij abcdefgh", 5), ["ij", "abcdefgh"]);
    }
}
