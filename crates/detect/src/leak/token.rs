//! Tokens and the words in them.

use super::Item;
use super::coded::Classes;
use super::fold::of_letter;
use super::ordinary::{is_ordinary, parts_of};
use super::shingle::Register;
use super::words::{Meaning, NAME, SIGNAL, TOOL};
use crate::finding::Span;

/// The text that is being read; `base` is where it begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Raw<'t> {
    pub(super) text: &'t str,
    pub(super) base: usize,
}

impl<'t> Raw<'t> {
    pub(super) fn slice(self, span: Span) -> &'t str {
        let [start, end] = [span.start, span.end].map(|at| at.saturating_sub(self.base));
        self.text.get(start..end).unwrap_or_default()
    }
}

/// A token and what stands before it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token<'t> {
    pub(super) text: &'t str,
    pub(super) start: usize,
    pub(super) newlines: u32,
    pub(super) classes: Classes,
}

/// The length of a word that is all of its token but for signs that end sentences and clauses.
#[inline]
pub(super) fn plain_word(token: Token<'_>) -> Option<usize> {
    if !token.classes.is_plain() {
        return None;
    }
    let bytes = token.text.as_bytes();
    let mut length = bytes.len();
    while length > 0 && matches!(bytes[length - 1], b',' | b'.' | b':' | b';' | b'!' | b'?') {
        length -= 1;
    }
    let letters = length > 0 && bytes[..length].iter().all(u8::is_ascii_alphabetic);
    letters.then_some(length)
}

/// What an identifier means in a sentence.
pub(super) fn name(text: &str) -> Meaning {
    let text = text.trim_matches('_');
    if parts_of(text).count() < 2 {
        return 0;
    }
    if is_ordinary(text) {
        return if text.contains('_') { TOOL } else { 0 };
    }
    let capitals = !text.bytes().any(|byte| byte.is_ascii_lowercase());
    if capitals { NAME | SIGNAL } else { NAME }
}

/// What a name counts for when it is written as ordinary words.
pub(super) fn spoken(text: &str, item: &Item) -> f32 {
    if item.literal {
        return 1.0;
    }
    if !text.contains(' ') {
        // Without its signs and capitals a short one may be any word.
        let bare = text.bytes().all(|byte| byte.is_ascii_lowercase());
        return if bare && item.signal && text.len() < 10 { 0.0 } else { 1.0 };
    }
    let capitals =
        text.split(' ').any(|word| word.len() > 1 && word.bytes().all(|b| b.is_ascii_uppercase()));
    let words = text.split_ascii_whitespace().count();
    let letters = text.split_ascii_whitespace().all(|word| word.len() > 1);
    match item.parts {
        _ if capitals || !letters || words != item.parts => 1.0,
        0..=2 => 0.0,
        _ => 0.5,
    }
}

/// A word while it is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Word {
    pub(super) letters: Register,
    pub(super) start: usize,
    pub(super) length: usize,
    last: u8,
    pub(super) is_name: bool,
    pub(super) unknown: bool,
}

impl Word {
    pub(super) fn new() -> Self {
        Self {
            letters: Register::default(),
            start: 0,
            length: 0,
            last: 0,
            is_name: false,
            unknown: false,
        }
    }

    #[inline]
    pub(super) fn push(&mut self, byte: u8, at: usize) {
        if self.length == 0 {
            self.start = at;
        }
        // An underscore or a hump inside.
        self.is_name |= (byte == b'_' && self.length > 0)
            || (byte.is_ascii_uppercase() && self.last.is_ascii_lowercase());
        self.unknown |= !byte.is_ascii_alphabetic();
        self.letters.push(of_letter(byte) & 31);
        self.last = byte;
        self.length += 1;
    }

    pub(super) fn push_wide(&mut self, character: char, at: usize) {
        let mut base = None;
        if matches!(character, ..'\u{250}' | '\u{1e00}'..'\u{1f00}') {
            unicode_normalization::char::decompose_canonical(character, |part| {
                base = base.or(Some(part));
            });
        }
        match base.and_then(|part| u8::try_from(part).ok()).filter(u8::is_ascii_alphabetic) {
            Some(byte) => self.push(byte, at),
            None => self.push(b'?', at),
        }
    }
}
