//! Markers by which a text could pose as another part of the conversation: tokens of chat
//! templates, role tags, the tags that wrap data, the header and the suffix of the block itself.

use std::ops::Range;

use wardkeep_detect::views::{Limits, views};

/// What stands in the place of a marker.
pub const FILTERED: &str = "[FILTERED]";

/// A marker that was replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filtered {
    /// Which kind.
    pub marker: &'static str,
    /// Where it was, in bytes of the text before.
    pub span: Range<usize>,
    /// Where its replacement starts, in bytes of the text after.
    pub at: usize,
}

/// Replaces every marker by [`FILTERED`].
///
/// They are found in the normal form of the text, so that neither case nor look-alikes nor
/// invisible characters hide one.
#[must_use]
pub fn strip_markers(text: &str) -> (String, Vec<Filtered>) {
    let limits = Limits { max_depth: 0, max_views: 1, ..Limits::default() };
    let normal = views(text, &limits);
    let Some(view) = normal.views.first() else { return (text.to_owned(), Vec::new()) };
    let (mut out, mut filtered, mut done) = (String::with_capacity(text.len()), Vec::new(), 0);
    for (marker, range) in find(view.text()) {
        let span = view.span(range);
        if span.start < done || span.end <= span.start {
            continue;
        }
        out.push_str(&text[done..span.start]);
        filtered.push(Filtered { marker, span: span.start..span.end, at: out.len() });
        out.push_str(FILTERED);
        done = span.end;
    }
    out.push_str(&text[done..]);
    (out, filtered)
}

/// Where a byte of the stripped text was before.
pub(super) fn original(filtered: &[Filtered], at: usize) -> usize {
    match filtered.iter().rev().find(|one| one.at <= at) {
        None => at,
        Some(one) if at < one.at + FILTERED.len() => one.span.start,
        Some(one) => one.span.end + (at - one.at - FILTERED.len()),
    }
}

/// Names of tags that have a meaning in a conversation.
const TAGS: [&str; 27] = [
    "system",
    "system_prompt",
    "system-prompt",
    "system-reminder",
    "system_reminder",
    "sys",
    "s",
    "bos",
    "eos",
    "developer",
    "assistant",
    "start_of_turn",
    "end_of_turn",
    "tool_output",
    "tool_result",
    "tool_results",
    "tool_response",
    "tool_call",
    "tool_calls",
    "tool_use",
    "function_results",
    "function_calls",
    "function_result",
    "memory_context",
    "external_content",
    "untrusted",
    "security_policy",
];

/// Names that make a token even with spaces around them; elsewhere `<| a |>` may be code.
const TOKENS: [&str; 9] = [
    "im_start",
    "im_end",
    "system",
    "user",
    "assistant",
    "endoftext",
    "eot_id",
    "start_header_id",
    "end_header_id",
];

/// Whole words in brackets.
const BRACKETS: [&str; 6] = ["inst", "/inst", "sys", "/sys", "system", "/system"];

/// Heads of lines.
const HEADS: [(&str, &str); 7] = [
    ("role head", "### system:"),
    ("role head", "### instruction:"),
    ("role head", "### response:"),
    ("role head", "### human:"),
    ("role head", "### assistant:"),
    ("block header", "## workspace security policy"),
    ("block suffix", "security reminder: content inside"),
];

/// Turns of a plain dialogue; an empty line or the start must stand before.
const TURNS: [&str; 2] = ["human:", "assistant:"];

/// Longest inside of a token or tag.
const LONGEST: usize = 96;

/// Markers in a text in normal form, in order.
fn find(text: &str) -> Vec<(&'static str, Range<usize>)> {
    let mut found = Vec::new();
    let mut done = 0;
    let mut line_start = true;
    let mut blank_before = true;
    for (at, character) in text.char_indices() {
        let rest = &text[at..];
        if at >= done {
            let hit = match character {
                '<' => token(rest).or_else(|| tag(rest)),
                '[' => bracket(rest),
                _ => None,
            };
            let hit = hit.or_else(|| line_start.then(|| head(rest, blank_before)).flatten());
            if let Some((marker, length)) = hit {
                found.push((marker, at..at + length));
                done = at + length;
            }
        }
        if character == '\n' {
            blank_before = line_start;
            line_start = true;
        } else if !character.is_whitespace() {
            line_start = false;
        }
    }
    found
}

/// `<|…|>`, with the role that follows the start of a turn.
fn token(rest: &str) -> Option<(&'static str, usize)> {
    let inner = rest.strip_prefix("<|")?;
    let end = bounded(inner).find("|>")?;
    let name = inner[..end].trim();
    if name.contains(['\n', '<', '>', '[', ']']) || (name.len() < end && !TOKENS.contains(&name)) {
        return None;
    }
    let mut length = 2 + end + 2;
    if matches!(name, "im_start" | "start_header_id") {
        let roles = ["system", "user", "assistant", "developer", "tool", "ipython"];
        length += roles
            .iter()
            .find(|role| rest[length..].starts_with(**role))
            .map_or(0, |role| role.len());
    }
    Some(("chat token", length))
}

/// `<name …>`, `</name>`, `<<name>>`, `<</name>>`. A name that nothing else has is enough, so that
/// no tag can be put together around one that is replaced.
fn tag(rest: &str) -> Option<(&'static str, usize)> {
    let mut at = if rest.starts_with("<<") { 2 } else { 1 };
    let inner = bounded(rest.get(at..)?);
    let name_at = inner.len() - inner.trim_start_matches([' ', '/']).len();
    let inner = &inner[name_at..];
    let length = inner
        .find(|c: char| c.is_whitespace() || matches!(c, '/' | '=' | '<' | '>' | '[' | '"'))
        .unwrap_or(inner.len());
    // `antml:tool_use` and the like.
    let name = inner[..length].rsplit(':').next()?;
    if !TAGS.contains(&name) {
        return None;
    }
    at += name_at + length;
    let tail = bounded(&rest[at..]);
    let end = tail.find(['<', '>', '\n']).filter(|end| tail[*end..].starts_with('>'));
    let short = name.len() <= 3;
    let closed = end.filter(|end| !short || tail[..*end].trim_matches([' ', '/']).is_empty());
    match closed {
        Some(end) => Some(("tag", at + end + if tail[end..].starts_with(">>") { 2 } else { 1 })),
        None if short => None,
        None => Some(("tag", at)),
    }
}

fn bracket(rest: &str) -> Option<(&'static str, usize)> {
    let inner = rest.strip_prefix('[')?;
    let end = bounded(inner).find(']')?;
    BRACKETS.contains(&inner[..end].trim()).then_some(("bracket", end + 2))
}

fn head(rest: &str, blank_before: bool) -> Option<(&'static str, usize)> {
    for (marker, head) in HEADS {
        if rest.starts_with(head) {
            return Some((marker, head.len()));
        }
    }
    let turn = TURNS.iter().find(|turn| rest.starts_with(**turn))?;
    blank_before.then_some(("turn", turn.len()))
}

fn bounded(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST.min(text.len()))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_found_however_they_are_written() {
        for (text, expected) in [
            ("a <system>b</system>", "a [FILTERED]b[FILTERED]"),
            ("<SYSTEM>", "[FILTERED]"),
            ("<ſystem>k", "[FILTERED]k"),
            ("<sy\u{200b}stem>k", "[FILTERED]k"),
            ("<|im_start|>system x<|im_end|>", "[FILTERED] x[FILTERED]"),
            ("<|im_start|>user z", "[FILTERED] z"),
            ("[INST]x[/INST]", "[FILTERED]x[FILTERED]"),
            ("<<SYS>>x<</SYS>>", "[FILTERED]x[FILTERED]"),
            ("</tool_output> x", "[FILTERED] x"),
            ("<tool_output nonce=\"ab\">x", "[FILTERED]x"),
            ("< / tool_output >x", "[FILTERED]x"),
            ("<tool_output a</tool_output>b>x", "[FILTERED] a[FILTERED]b>x"),
            ("<|a</tool_output>b|>", "<|a[FILTERED]b|>"),
            ("\n\nHuman: hi", "\n\n[FILTERED] hi"),
            ("## Workspace Security Policy\n\nx", "[FILTERED]\n\nx"),
        ] {
            assert_eq!(strip_markers(text).0, expected, "{text}");
        }
        for text in [
            "ssh <user>@<host>",
            "a < b and c > d",
            "<details><summary>x</summary></details>",
            "- [x] done [system.md](system.md)",
            "if a <| b |> c\n",
            "The assistant: a tool.",
            "# Workspace Security Policy",
        ] {
            assert_eq!(strip_markers(text).0, text);
        }
    }

    #[test]
    fn places_before_and_after_belong_together() {
        let (text, filtered) = strip_markers("é<system>ab</system>cd");
        assert_eq!(text, "é[FILTERED]ab[FILTERED]cd");
        for (after, before) in [(0, 0), (2, 2), (5, 2), (12, 10), (14, 12), (24, 21), (25, 22)] {
            assert_eq!(original(&filtered, after), before, "{after}");
        }
    }
}
