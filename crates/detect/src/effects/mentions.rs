//! Names that stand in words and texts.

use super::MentionPlace;
use crate::shell::Word;

/// Longest name, in bytes.
const MAX_NAME: usize = 512;
/// Most names that are taken from one text.
const MAX_NAMES: usize = 4096;

/// Gives every piece of a word that could be a path; of a word that is not known, the word.
pub(super) fn collect(word: &Word, place: MentionPlace, mut found: impl FnMut(Word)) {
    let Some(text) = &word.text else {
        // What could be anything names nothing.
        if word.pattern.bytes().any(|byte| !matches!(byte, b'*' | b'?' | b'/' | b'.')) {
            found(word.clone());
        }
        return;
    };
    if place == MentionPlace::Word && word.glob {
        found(word.clone());
        return;
    }
    let mut names = text
        .split(|sign: char| sign.is_whitespace() || "'\"`()[]{}<>|;,&=\\$!?*%:^#@".contains(sign))
        .filter(|name| (2..=MAX_NAME).contains(&name.len()))
        .filter(|name| name.chars().any(char::is_alphanumeric) && name.contains(['.', '/', '_']));
    let mut seen = std::collections::HashSet::new();
    for name in names.by_ref().take(MAX_NAMES) {
        let name = name.trim_end_matches(['.', '/']);
        if seen.insert(name) {
            found(Word { raw: name.to_owned(), ..Word::literal(name) });
        }
    }
}
