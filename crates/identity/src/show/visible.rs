//! Text made visible: nothing a terminal obeys, nothing that hides or reorders what is read.

use std::fmt::Write as _;

/// Marks on a letter that are shown as they are; more of them cover the lines around it.
const MAX_MARKS: usize = 2;

/// Text in which everything that cannot be seen is written out, as `\u{1b}`; a tab is an arrow. Two
/// texts that differ never look the same for that: what would read as such an escape is escaped.
///
/// ```
/// use wardkeep_identity::show::visible;
/// assert_eq!(visible("a\u{1b}[2J\u{202e}b"), "a\\u{1b}[2J\\u{202e}b");
/// assert_eq!(visible(r"\u{1b} \n"), r"\u{5c}u{1b} \n");
/// assert_eq!(visible("\tx"), "→   x");
/// ```
#[must_use]
pub fn visible(text: &str) -> String {
    visible_bytes(text.as_bytes())
}

/// As [`visible`]; bytes that are no UTF-8 become `\x{ff}`.
#[must_use]
pub fn visible_bytes(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() + 8);
    if bytes.iter().all(|byte| matches!(byte, b' '..=b'[' | b']'..=b'~')) {
        out.push_str(&String::from_utf8_lossy(bytes));
        return out;
    }
    for chunk in bytes.utf8_chunks() {
        let text = chunk.valid();
        let mut marks = 0;
        for (at, character) in text.char_indices() {
            let rest = || &text[at + character.len_utf8()..];
            marks = if is_mark(character) { marks + 1 } else { 0 };
            let reads_as_escape = match character {
                '\\' => rest().starts_with("u{") || rest().starts_with("x{"),
                '→' => rest().starts_with("   "),
                _ => false,
            };
            if character == '\t' {
                out.push_str("→   ");
            } else if is_visible(character) && !reads_as_escape && marks <= MAX_MARKS {
                out.push(character);
            } else {
                out.extend(character.escape_unicode());
            }
        }
        for byte in chunk.invalid() {
            // Writing to a string does not fail.
            let _ = write!(out, "\\x{{{byte:02x}}}");
        }
    }
    out
}

/// Whether a character is seen as itself.
fn is_visible(character: char) -> bool {
    match character {
        ' '..='~' => true,
        '\0'..='\u{a0}'
        | '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'..='\u{1160}'
        | '\u{1680}'
        | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{2000}'..='\u{200f}'
        | '\u{2028}'..='\u{202f}'
        | '\u{205f}'..='\u{206f}'
        | '\u{2800}'
        | '\u{3164}'
        | '\u{e000}'..='\u{f8ff}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{ffff}'
        | '\u{13430}'..='\u{1345f}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'.. => false,
        _ => true,
    }
}

fn is_mark(character: char) -> bool {
    matches!(
        character,
        '\u{300}'..='\u{36f}'
            | '\u{483}'..='\u{489}'
            | '\u{1ab0}'..='\u{1aff}'
            | '\u{1dc0}'..='\u{1dff}'
            | '\u{20d0}'..='\u{20ff}'
            | '\u{fe20}'..='\u{fe2f}'
    )
}

/// Columns that visible text takes at most: what is no Latin letter may be wide.
pub(super) fn columns(character: char) -> usize {
    if character.is_ascii() || matches!(character, '…' | '→' | '\u{a1}'..='\u{24f}') {
        1
    } else {
        2
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What was made visible, as it was; only for tests.
    fn undo(text: &str) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let mut rest = text;
        while let Some(character) = rest.chars().next() {
            if let Some(after) = rest.strip_prefix("→   ") {
                out.push(b'\t');
                rest = after;
                continue;
            }
            for (start, is_byte) in [("\\u{", false), ("\\x{", true)] {
                if let Some(after) = rest.strip_prefix(start) {
                    let (digits, after) = after.split_once('}')?;
                    let number = u32::from_str_radix(digits, 16).ok()?;
                    if is_byte {
                        out.push(u8::try_from(number).ok()?);
                    } else {
                        let character = char::from_u32(number)?;
                        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                    }
                    rest = after;
                }
            }
            if rest.starts_with(character) && !rest.starts_with("\\u{") && !rest.starts_with("\\x{")
            {
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                rest = &rest[character.len_utf8()..];
            }
        }
        Some(out)
    }

    #[test]
    fn what_a_terminal_obeys_or_hides_is_written_out() {
        for (text, expected) in [
            ("plain text, Grüße, 日本, 🦀", "plain text, Grüße, 日本, 🦀"),
            ("a\rb", "a\\u{d}b"),
            ("a\u{7}\u{8}\u{7f}\u{9b}", "a\\u{7}\\u{8}\\u{7f}\\u{9b}"),
            ("\u{1b}]0;title\u{7}", "\\u{1b}]0;title\\u{7}"),
            ("\u{2066}a\u{2069}", "\\u{2066}a\\u{2069}"),
            ("a\u{200b}b\u{feff}", "a\\u{200b}b\\u{feff}"),
            ("a\u{a0}b\u{2003}c", "a\\u{a0}b\\u{2003}c"),
            ("\u{e0041}", "\\u{e0041}"),
            ("\u{85}\u{2028}", "\\u{85}\\u{2028}"),
            ("e\u{301}", "e\u{301}"),
            ("e\u{301}\u{302}\u{303}\u{304}", "e\u{301}\u{302}\\u{303}\\u{304}"),
            ("C:\\users", "C:\\users"),
            ("→ and →   x", "→ and \\u{2192}   x"),
        ] {
            assert_eq!(visible(text), expected);
        }
        assert_eq!(visible_bytes(b"a\xff\xc3(\0"), "a\\x{ff}\\x{c3}(\\u{0}");
    }

    proptest! {
        #[test]
        fn texts_that_differ_look_different(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let shown = visible_bytes(&bytes);
            prop_assert!(shown.chars().all(is_visible));
            // What prints it escapes nothing of it again.
            for one in shown.chars() {
                let one = one.to_string();
                prop_assert_eq!(wardkeep_evidence::check::printable(&one), one);
            }
            prop_assert_eq!(undo(&shown), Some(bytes));
        }

        #[test]
        fn tricky_texts_that_differ_look_different(text in "([\\\\ux{}1b→ \t\u{301}\u{202e}]|.){0,40}") {
            let shown = visible(&text);
            prop_assert_eq!(undo(&shown), Some(text.into_bytes()));
        }
    }
}
