//! HTML and Markdown taken off; comments, hidden elements and telling attributes stay as text.

use super::inline::Undone;
use super::map::Rewriter;
use crate::bitmap;
use crate::finding::Transform;

/// No tag is longer, attributes and all.
const MAX_TAG: usize = 2048;

/// The text without its markup.
pub(super) fn strip(source: &str, budget: usize) -> Option<Undone> {
    let bytes = source.as_bytes();
    let mut writer = Rewriter::new(source, budget);
    let mut kept = String::new();
    let mut at = 0;
    // Where the frame of a comment closes; `bytes.len()` once no more does.
    let mut close = 0;
    while at < bytes.len() && writer.len() < budget {
        let limit = if close > at { close } else { bytes.len() };
        let mark = |byte: u8| matches!(byte, b'<' | b'*' | b'_' | b'`' | b'~' | b'[');
        let Some(place) = bitmap::find(&bytes[..limit], at, mark) else {
            if limit == bytes.len() {
                break;
            }
            writer.replace(close..close + 3, " ");
            at = close + 3;
            continue;
        };
        at = place;
        at = match bytes[at] {
            b'<' if bytes[at..].starts_with(b"<!--") => {
                // What the comment says stays; only its frame goes.
                writer.replace(at..at + 4, " ");
                if close <= at {
                    let found = memchr::memmem::find(&bytes[at + 4..], b"-->");
                    close = found.map_or(bytes.len(), |length| at + 4 + length);
                }
                at + 4
            }
            b'<' => {
                kept.clear();
                match tag(source, at, &mut kept) {
                    Some(end) => {
                        writer.replace(at..end, &kept);
                        end
                    }
                    None => at + 1,
                }
            }
            b'[' => link(bytes, at, &mut writer),
            sign => emphasis(bytes, at, sign, &mut writer),
        };
    }
    writer.finish().map(|(text, map)| (vec![Transform::Markup], text, map))
}

/// A tag from `start` on: where it ends, and in `kept` what is to stand in its place.
fn tag(source: &str, start: usize, kept: &mut String) -> Option<usize> {
    let bytes = source.as_bytes();
    let first = *bytes.get(start + 1)?;
    if !(first.is_ascii_alphabetic() || matches!(first, b'/' | b'!' | b'?')) {
        return None;
    }
    let limit = bytes.len().min(start + MAX_TAG);
    let length = memchr::memchr2(b'>', b'<', &bytes[start + 1..limit])?;
    let end = start + 1 + length;
    if bytes[end] == b'<' {
        return None;
    }
    let body = source.get(start + 1..end)?;
    let name_end =
        body[1..].find(|c: char| !c.is_ascii_alphanumeric()).map_or(body.len(), |at| at + 1);
    let name = body[..name_end].trim_start_matches('/');
    if !INLINE.iter().any(|known| known.eq_ignore_ascii_case(name)) {
        kept.push(' ');
    }
    attributes(&body[name_end..], kept);
    Some(end + 1)
}

/// Elements inside of which a word goes on.
const INLINE: [&str; 30] = [
    "a", "abbr", "b", "bdi", "bdo", "big", "cite", "code", "del", "em", "font", "i", "ins", "kbd",
    "label", "mark", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "tt",
    "u", "var", "wbr", "x",
];

/// Values that people or machines read as text.
const READ: [&str; 9] = [
    "alt",
    "title",
    "aria-label",
    "aria-description",
    "content",
    "placeholder",
    "value",
    "summary",
    "label",
];

fn attributes(mut rest: &str, kept: &mut String) {
    while let Some(equals) = rest.find('=') {
        let (name, value) = (rest[..equals].trim_end(), rest[equals + 1..].trim_start());
        let name = name.rsplit(|c: char| c.is_whitespace()).next().unwrap_or(name);
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
        let (text, after) = match quote {
            Some(quote) => match value[1..].split_once(quote) {
                Some((text, after)) => (text, after),
                None => (&value[1..], ""),
            },
            None => {
                let end = value.find(char::is_whitespace).unwrap_or(value.len());
                value.split_at(end)
            }
        };
        let data = name.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("data-"));
        let read = data || READ.iter().any(|known| known.eq_ignore_ascii_case(name));
        if read && !text.is_empty() {
            kept.push(' ');
            kept.push_str(text);
            kept.push(' ');
        }
        rest = after;
    }
}

/// `[text](target)`: the text stays, the target follows in brackets.
fn link(bytes: &[u8], at: usize, writer: &mut Rewriter<'_>) -> usize {
    let reach = &bytes[at + 1..bytes.len().min(at + 400)];
    let close = reach.iter().position(|byte| matches!(byte, b'[' | b']' | b'\n'));
    if let Some(close) = close
        && reach[close] == b']'
        && reach.get(close + 1) == Some(&b'(')
    {
        let image = at > writer.done() && bytes[at - 1] == b'!';
        writer.replace(at - usize::from(image)..at + 1, "");
        let end = at + 1 + close;
        writer.replace(end..end + 2, " (");
        return end + 2;
    }
    at + 1
}

/// Signs of emphasis that touch a word.
fn emphasis(bytes: &[u8], at: usize, sign: u8, writer: &mut Rewriter<'_>) -> usize {
    let run = bytes[at..].iter().take_while(|byte| **byte == sign).count();
    let word = |index: Option<usize>| {
        index
            .and_then(|index| bytes.get(index))
            .is_some_and(|b| b.is_ascii_alphanumeric() || *b >= 0x80)
    };
    let (before, after) = (word(at.checked_sub(1)), word(Some(at + run)));
    let counts = match sign {
        b'*' | b'`' => before || after,
        // Names are written with it inside.
        b'_' => before != after,
        b'~' => run == 2 && (before || after),
        _ => false,
    };
    if counts && run <= 3 {
        writer.replace(at..at + run, "");
    }
    at + run
}
