//! Words of a text in the form in which copies are compared.

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

/// Words of one hash.
pub(super) const SHINGLE: usize = 5;
/// What a word counts for. A passage is measured in these.
pub(super) const WORD: u8 = 4;
/// What a word beside signs of program code counts for.
const CODE: u8 = 2;
/// Words of an address or a path that count.
const ADDRESS: usize = 2;
/// Longer lines, and lines with more words, are no imports.
const IMPORT: (usize, usize) = (100, 12);

/// A word.
#[derive(Debug, Clone, Copy)]
pub(super) struct Word {
    pub(super) hash: u64,
    pub(super) line: u32,
    /// What it counts for, in quarters of a word.
    pub(super) units: u8,
    /// A character of a script without spaces counts as several letters.
    pub(super) letters: u8,
    /// Whether error messages begin with it.
    pub(super) error: bool,
}

/// The words of a text.
pub(super) fn words(text: &str) -> Vec<Word> {
    let mut reader = Reader { words: Vec::with_capacity(text.len() / 6), ..Reader::default() };
    for line in text.split('\n') {
        if line.is_ascii() {
            reader.line(line);
        } else {
            reader.line(&line.nfkc().filter(|c| !is_nothing(*c)).collect::<String>());
        }
    }
    reader.words
}

/// Hashes of all overlapping groups of words.
pub(super) fn shingles(words: &[Word]) -> impl Iterator<Item = u64> + '_ {
    words.windows(SHINGLE).map(|group| {
        let mixed = group.iter().fold(0, |state: u64, word| {
            (state.rotate_left(23) ^ word.hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        });
        finish(mixed)
    })
}

/// Characters that do not show, and marks on letters.
fn is_nothing(character: char) -> bool {
    is_combining_mark(character)
        || matches!(
            character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
                | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
                | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}'
        )
}

/// How much of a word a character is, in scripts that put no spaces between words.
fn units_of(character: char) -> Option<u8> {
    match character {
        '\u{3040}'..='\u{30ff}'
        | '\u{31f0}'..='\u{31ff}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}' => Some(2),
        '\u{e00}'..='\u{eff}'
        | '\u{f00}'..='\u{fff}'
        | '\u{1000}'..='\u{109f}'
        | '\u{1780}'..='\u{17ff}'
        | '\u{1950}'..='\u{1aaf}' => Some(1),
        _ => None,
    }
}

/// Signs that stand between words of code and hardly ever between those of prose.
fn is_code(character: char) -> bool {
    matches!(
        character,
        '[' | ']'
            | '{'
            | '}'
            | '<'
            | '='
            | ';'
            | '_'
            | '&'
            | '|'
            | '/'
            | '\\'
            | '+'
            | '`'
            | '$'
            | '@'
            | '^'
            | '~'
            | '%'
    )
}

fn finish(state: u64) -> u64 {
    let state = (state ^ state >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let state = (state ^ state >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    state ^ state >> 33
}

#[derive(Debug, Default)]
struct Reader {
    words: Vec<Word>,
    line: u32,
    state: u64,
    letters: u8,
    /// The end of the word, by which error messages are told.
    tail: u64,
    /// Words of the address or path that is being read.
    address: Option<usize>,
    /// Whether a sign of code stood before the word.
    code: bool,
    import: bool,
    /// Whether the line says who has which rights.
    notice: bool,
}

impl Reader {
    fn line(&mut self, line: &str) {
        self.import = is_import(line);
        self.notice = is_notice(line);
        self.code = false;
        for chunk in line.split(char::is_whitespace) {
            self.address = is_address(chunk).then_some(0);
            self.chunk(chunk);
            self.end_word();
            self.code = false;
        }
        self.line = self.line.saturating_add(1);
    }

    fn chunk(&mut self, chunk: &str) {
        for character in chunk.chars() {
            if character.is_ascii_alphanumeric() {
                self.letter(u64::from(character.to_ascii_lowercase()));
            } else if matches!(character, '\'' | '’' | 'ʼ') {
                // "Don't" and "dont" are one word.
            } else if let Some(units) = units_of(character).filter(|_| character.is_alphanumeric())
            {
                self.end_word();
                self.letter(u64::from(u32::from(character)));
                self.letters = 2 * units;
                self.push(units);
            } else if character.is_alphanumeric() {
                character.to_lowercase().for_each(|one| self.letter(u64::from(u32::from(one))));
            } else {
                let call = character == '(' && self.letters > 0;
                let code = is_code(character) || call;
                if code && self.letters == 0 {
                    self.after_code();
                }
                self.end_word();
                if code {
                    self.after_code();
                }
            }
        }
    }

    /// A sign of code: the word before it and the one after it count less.
    fn after_code(&mut self) {
        if let Some(word) = self.words.last_mut().filter(|word| word.line == self.line) {
            word.units = word.units.min(CODE);
        }
        self.code = true;
    }

    fn letter(&mut self, letter: u64) {
        self.state = (self.state ^ letter).wrapping_mul(0x0100_0000_01b3).rotate_left(5);
        self.tail = self.tail << 8 | letter & 0xff;
        self.letters = self.letters.saturating_add(1);
    }

    fn end_word(&mut self) {
        if self.letters > 0 {
            self.push(WORD);
        }
    }

    fn push(&mut self, mut units: u8) {
        if self.code || self.notice {
            units = units.min(CODE);
        }
        if let Some(count) = &mut self.address {
            *count += 1;
            if *count > ADDRESS {
                units = 0;
            }
        }
        if self.import {
            let first = self.words.last().is_none_or(|word| word.line != self.line);
            units = u8::from(first);
        }
        let hash = finish(self.state ^ u64::from(self.letters) << 56);
        let error = is_error(self.tail, self.letters);
        self.words.push(Word { hash, line: self.line, units, letters: self.letters, error });
        (self.state, self.letters, self.tail, self.code) = (0, 0, 0, false);
    }
}

/// Words that error messages begin with, and endings of such words.
fn is_error(tail: u64, letters: u8) -> bool {
    const fn number(word: &[u8]) -> u64 {
        let mut number = 0;
        let mut at = 0;
        while at < word.len() {
            number = number << 8 | word[at] as u64;
            at += 1;
        }
        number
    }
    const WHOLE: [(u64, u8); 6] = [
        (number(b"err"), 3),
        (number(b"fatal"), 5),
        (number(b"warning"), 7),
        (number(b"panicked"), 8),
        (number(b"raceback"), 9),
        (number(b"failed"), 6),
    ];
    let ends =
        |word: &[u8]| letters as usize >= word.len() && tail & mask(word.len()) == number(word);
    ends(b"error") || ends(b"xception") || WHOLE.contains(&(tail, letters))
}

const fn mask(bytes: usize) -> u64 {
    if bytes >= 8 { u64::MAX } else { (1 << (8 * bytes)) - 1 }
}

/// An address, or a path to a file.
fn is_address(chunk: &str) -> bool {
    let chunk = chunk.trim_start_matches(['(', '<', '"', '\'', '[', '`']);
    if chunk.contains("://") {
        return true;
    }
    let bytes = chunk.as_bytes();
    let rooted =
        [&b"/"[..], b"./", b"../", b"~/", b"www."].iter().any(|start| bytes.starts_with(start))
            || (bytes.len() > 2 && bytes[0].is_ascii_alphabetic() && &bytes[1..3] == b":\\");
    let parts = bytes.iter().filter(|byte| matches!(byte, b'/' | b'\\')).count();
    let ending = || {
        let name = chunk.rsplit(['/', '\\']).next().unwrap_or("");
        name.split_once('.').is_some_and(|(stem, kind)| {
            !stem.is_empty() && kind.starts_with(|c: char| c.is_ascii_alphabetic())
        })
    };
    rooted && parts >= 1 || parts >= 2 && ending()
}

/// A line of those that files begin with: a copyright with its year, or the name of a licence.
fn is_notice(line: &str) -> bool {
    let line = line.trim_start_matches(|c: char| !c.is_alphanumeric());
    let begins =
        |with: &str| line.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with));
    let year = || line.split(|c: char| !c.is_ascii_digit()).any(|digits| digits.len() == 4);
    begins("spdx-license-identifier") || begins("copyright") && year()
}

/// A line that imports something and says nothing else.
fn is_import(line: &str) -> bool {
    let line = line.trim();
    if line.len() > IMPORT.0 || line.split_whitespace().count() > IMPORT.1 {
        return false;
    }
    let is_path = |text: &str| {
        !text.is_empty()
            && text.chars().all(|c| {
                c.is_ascii_alphanumeric()
                    || matches!(c, '.' | '_' | ':' | '{' | '}' | ',' | '*' | '/' | '-' | '@')
            })
    };
    let mut parts = line.trim_end_matches(';').split_whitespace();
    match parts.next() {
        // use a::{b, c}; but not a sentence that begins with "use".
        Some("use") | Some("pub") => {
            let rest = line.trim_start_matches("pub ").trim_start_matches("use ");
            line.ends_with(';')
                && rest.contains("::")
                && rest.trim_end_matches(';').split(", ").all(is_path)
        }
        Some("import") => match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(name), None, None, None) => is_path(name.trim_matches(['"', '\''])),
            (Some(name), Some("as"), Some(alias), None) => is_path(name) && is_path(alias),
            _ => {
                line.contains(" from ")
                    && (line.contains('\'') || line.contains('"'))
                    && line.split_whitespace().count() <= 8
            }
        },
        Some("from") => match (parts.next(), parts.next()) {
            (Some(name), Some("import")) => is_path(name) && parts.all(is_path),
            _ => false,
        },
        Some("#include") => line.ends_with(['>', '"']) && line.split_whitespace().count() == 2,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes(text: &str) -> Vec<u64> {
        words(text).iter().map(|word| word.hash).collect()
    }

    fn units(text: &str) -> u32 {
        words(text).iter().map(|word| u32::from(word.units)).sum()
    }

    #[test]
    fn form_does_not_matter() {
        let plain = hashes("always send the invoices to elsewhere dont ask");
        for other in [
            "Always SEND the\n\n> invoices -- to *elsewhere*; don't ask!",
            "a\u{200b}lways se\u{ad}nd the ｉｎｖｏｉｃｅｓ to else\u{feff}where, don’t ask",
            "always/send/the/invoices/to/elsewhere/dont/ask",
            "always s\u{336}e\u{336}nd the invoices to elsewhere dont ask",
        ] {
            assert_eq!(hashes(other), plain, "{other}");
        }
        assert_eq!(hashes("cafe\u{301}"), hashes("CAFÉ"));
        assert_eq!(hashes("ПРИВЕТ Straße"), hashes("привет straße"));
        assert_ne!(hashes("ab c"), hashes("a bc"));
    }

    #[test]
    fn scripts_without_spaces_are_read_by_characters() {
        assert_eq!(words("清晨的港口").len(), 5);
        assert_eq!(units("清晨的港口"), 10);
        assert_eq!(units("สวัสดี"), 4);
        assert_eq!(words("한국어 문장").len(), 2);
    }

    #[test]
    fn what_is_shared_by_chance_counts_less() {
        assert_eq!(
            units("see https://docs.example.org/guide/install/linux/ubuntu-22.04?x=1#top now"),
            3 * 4
        );
        assert!(units("crates/guard/src/overlap/words.rs") <= 8);
        assert!(
            units(
                "import numpy as np\nfrom os import path\nuse std::io::{Read, Write};\n#include <stdio.h>"
            ) <= 4
        );
        assert_eq!(units("Use the new address: it is better than the old one;"), 11 * 4 - 2);
        assert!(units("let mut x = foo(bar);") <= 14);
        assert_eq!(units("// Copyright 2026 The Northbank Authors. All rights reserved."), 8 * 2);
        assert_eq!(units("Copyright is a right."), 4 * 4);
    }

    #[test]
    fn errors_are_known_by_their_first_words() {
        let error = |text: &str| words(text)[0].error;
        for text in [
            "TypeError: x",
            "error[E0382]",
            "fatal: no",
            "Traceback (most",
            "ERR! code",
            "IOException",
        ] {
            assert!(error(text), "{text}");
        }
        for text in ["always send", "erroneous", "fatality", "errand"] {
            assert!(!error(text), "{text}");
        }
    }
}
