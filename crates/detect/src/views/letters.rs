//! Words disguised letter by letter: digits for letters, letters apart, backwards, ROT13, accents.

use std::ops::Range;
use std::sync::Arc;

use unicode_normalization::char::decompose_canonical;

use super::inline::Undone;
use super::language::{backwards_gain, likeness, pair, split_words};
use super::map::{Map, Rewriter};
use super::survey::{Fresh, Token};
use crate::finding::Transform;
use crate::words::Words;

/// As much of a stretch decides how it reads.
const SAMPLE: usize = 4096;
/// Texts that are tried as a whole.
const SHORT: usize = 160;

fn undone(writer: Rewriter<'_>, kind: Transform) -> Option<Undone> {
    writer.finish().map(|(text, map)| (vec![kind], text, map))
}

/// Digits and signs in the place of letters.
#[derive(Debug)]
pub(super) struct Leet<'s> {
    source: &'s str,
    writer: Rewriter<'s>,
}

impl<'s> Leet<'s> {
    pub(super) fn new(source: &'s str, budget: usize) -> Self {
        Self { source, writer: Rewriter::new(source, budget) }
    }

    /// A word with both letters and digits or signs in it.
    pub(super) fn token(&mut self, token: Token) {
        let bytes = self.source.as_bytes();
        let (mut start, mut end) = (token.start, token.end);
        let edge = |byte: u8| byte.is_ascii_punctuation() && !matches!(byte, b'@' | b'$' | b'|');
        while end > start && edge(bytes[end - 1]) {
            end -= 1;
        }
        while start < end && edge(bytes[start]) && bytes[start] != b'!' {
            start += 1;
        }
        let word = &bytes[start..end];
        // A bracket alone is a call, not a letter.
        let sign = |byte: &u8| *byte != b'(' && !letters_for(*byte).is_empty();
        if !(2..=24).contains(&word.len()) || !word.iter().any(sign) {
            return;
        }
        // Digits behind a word count or number it, as digits before one do.
        let core = word.trim_ascii();
        let ends = |digits: usize| digits > 0 && digits < core.len();
        let tail = core.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        let head = core.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'$').count();
        let inner =
            &core[head.min(core.len())..core.len() - tail.min(core.len() - head.min(core.len()))];
        let has_inner = inner.iter().any(|byte| !letters_for(*byte).is_empty());
        if (ends(tail) && !has_inner && head == 0 && tail > 1) || (head > 1 && !has_inner) {
            return;
        }
        let Some(plain) = read_leet(word) else { return };
        if likeness(plain.bytes()) >= if has_inner { 1 } else { 3 } {
            self.writer.replace(start..end, &plain);
        }
    }

    pub(super) fn finish(self) -> Option<Undone> {
        undone(self.writer, Transform::Leet)
    }
}

/// The letters that a digit or sign is used for.
const fn letters_for(byte: u8) -> &'static str {
    match byte {
        b'0' => "o",
        b'1' | b'!' | b'|' => "il",
        b'2' => "z",
        b'3' => "e",
        b'4' | b'@' => "a",
        b'5' | b'$' => "s",
        b'6' => "gb",
        b'7' | b'+' => "t",
        b'8' => "b",
        b'9' => "g",
        b'(' => "c",
        _ => "",
    }
}

fn read_leet(word: &[u8]) -> Option<String> {
    let mut plain = String::with_capacity(word.len());
    for (index, byte) in word.iter().enumerate() {
        let choices = letters_for(*byte).as_bytes();
        let before = plain.bytes().next_back().unwrap_or(b' ');
        let after = word
            .get(index + 1)
            .map_or(b' ', |next| letters_for(*next).bytes().next().unwrap_or(*next));
        let best =
            choices.iter().max_by_key(|choice| pair(before, **choice) + pair(**choice, after));
        match best {
            Some(letter) => plain.push(char::from(*letter)),
            None if byte.is_ascii_alphabetic()
                || matches!(byte, b'\'' | b'-' | b'_' | b'/' | b'.' | b',') =>
            {
                plain.push(char::from(*byte));
            }
            None => return None,
        }
    }
    Some(plain)
}

/// Letters apart: `i g n o r e`, `i.g.n.o.r.e`.
#[derive(Debug)]
pub(super) struct Spaced<'s> {
    source: &'s str,
    maps: &'s [Arc<Map>],
    writer: Rewriter<'s>,
    start: usize,
    end: usize,
    letters: String,
    count: usize,
    broken: bool,
    /// Where the last punctuated word ended.
    row_end: usize,
    /// Letters that were put together and cut into words.
    pub(super) read: usize,
}

impl<'s> Spaced<'s> {
    pub(super) fn new(source: &'s str, maps: &'s [Arc<Map>], budget: usize) -> Self {
        let writer = Rewriter::new(source, budget);
        Self {
            source,
            maps,
            writer,
            start: 0,
            end: 0,
            letters: String::new(),
            count: 0,
            broken: false,
            row_end: usize::MAX - 1,
            read: 0,
        }
    }

    #[inline]
    pub(super) fn open(&self) -> bool {
        self.count > 0
    }

    /// A token of a few bytes: one character, perhaps.
    pub(super) fn short(&mut self, token: Token) {
        let mut characters = self.source[token.range()].chars();
        let (Some(character), None) = (characters.next(), characters.next()) else {
            self.flush();
            return;
        };
        if !character.is_alphanumeric() {
            return;
        }
        if self.count == 0 {
            self.start = token.start;
            self.letters.clear();
            self.broken = false;
        } else if self.wide(self.end..token.start) {
            self.letters.push(' ');
            self.broken = true;
        }
        self.letters.push(character);
        self.count += 1;
        self.end = token.end;
    }

    /// Whether the gap between two letters was wider before spaces were folded.
    fn wide(&self, gap: Range<usize>) -> bool {
        let (mut before, mut after) = (gap.start - 1..gap.start, gap.end..gap.end + 1);
        for map in self.maps {
            before = map.source(before);
            after = map.source(after);
        }
        after.start.saturating_sub(before.end) > gap.len()
    }

    /// Ends a row of single letters.
    pub(super) fn flush(&mut self) {
        if self.count >= 4 && self.letters.chars().filter(|c| c.is_alphabetic()).count() >= 4 {
            let letters = std::mem::take(&mut self.letters);
            self.read += 4 * letters.len();
            let split = if self.broken { None } else { split_words(&letters) };
            self.writer.replace(self.start..self.end, split.as_deref().unwrap_or(&letters));
        }
        self.count = 0;
    }

    /// A longer token in which every other character may be the same sign.
    pub(super) fn punctuated(&mut self, token: Token) {
        let first = token.start;
        let mut token = token;
        let bytes = self.source.as_bytes();
        // The sign may stand before each letter as well.
        if bytes[token.start].is_ascii_punctuation()
            && bytes.get(token.start + 2) == Some(&bytes[token.start])
            && token.len() >= 4
        {
            token.start += 1;
        }
        let bytes = &bytes[token.range()];
        let sign = bytes[1];
        if !sign.is_ascii_punctuation() || bytes.get(3).is_some_and(|next| *next != sign) {
            return;
        }
        // Short words count only in a row of others.
        let least = if self.row_end + 1 == first { 2 } else { 4 };
        let mut letters = String::new();
        for pair in bytes.chunks(2) {
            if !pair[0].is_ascii_alphanumeric() {
                break;
            }
            letters.push(char::from(pair[0]));
            if pair.get(1) != Some(&sign) {
                break;
            }
        }
        let end = (token.start + letters.len() * 2).saturating_sub(1).min(token.end);
        if letters.bytes().filter(u8::is_ascii_alphabetic).count() >= least {
            self.row_end = token.end;
            self.read += 4 * letters.len();
            let split = if letters.len() > 12 { split_words(&letters) } else { None };
            self.writer.replace(first..end, split.as_deref().unwrap_or(&letters));
        }
    }

    pub(super) fn finish(mut self) -> Option<Undone> {
        self.flush();
        undone(self.writer, Transform::Spaced)
    }
}

/// Words written as one: `ignoreAllPreviousInstructions`, with or without signs between them.
#[derive(Debug)]
pub(super) struct Joined<'s> {
    source: &'s str,
    writer: Rewriter<'s>,
    word: Vec<u8>,
}

/// Without one of these nothing is cut: names in code are long, too.
static JOINED: Words<8> = Words::new([
    "instruction",
    "systemprompt",
    "previous",
    "password",
    "disregard",
    "ignoreall",
    "jailbreak",
    "guideline",
]);

/// Small letters, and the first that a digit or sign is used for.
static FIRST_LETTER: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0_u8;
    loop {
        table[byte as usize] = match letters_for(byte).as_bytes() {
            [letter, ..] => *letter,
            [] => byte.to_ascii_lowercase(),
        };
        if byte == u8::MAX {
            break table;
        }
        byte += 1;
    }
};

impl<'s> Joined<'s> {
    /// Shorter ones hold too little.
    pub(super) const LEAST: usize = 18;
    const MOST: usize = 400;
    pub(super) fn new(source: &'s str, budget: usize) -> Self {
        Self { source, writer: Rewriter::new(source, budget), word: Vec::new() }
    }

    /// A long word; says how much of it was cut into words, in units of other words.
    pub(super) fn token(&mut self, token: Token) -> usize {
        if token.len() > Self::MOST {
            return 0;
        }
        let bytes = &self.source.as_bytes()[token.range()];
        self.word.clear();
        self.word.extend(
            bytes
                .iter()
                .filter(|byte| !matches!(byte, b'_' | b'-' | b'.'))
                .map(|byte| FIRST_LETTER[usize::from(*byte)]),
        );
        if !JOINED.stand_in(&self.word) {
            return 0;
        }
        if let Ok(word) = std::str::from_utf8(&self.word)
            && let Some(words) = split_words(word)
        {
            self.writer.replace(token.range(), &words);
        }
        token.len() / 4
    }

    pub(super) fn finish(self) -> Option<Undone> {
        undone(self.writer, Transform::Spaced)
    }
}

/// Finds where a running sum of evidence rises and stays up.
#[derive(Debug, Default)]
struct Rise {
    sum: i32,
    peak: i32,
    start: usize,
    end: usize,
}

impl Rise {
    /// Takes a token in; gives a finished stretch when the evidence is gone again.
    #[inline]
    fn token(&mut self, token: Token, gain: i32, least: i32) -> Option<Range<usize>> {
        if self.sum == 0 {
            if gain <= 0 {
                return None;
            }
            self.start = token.start;
            self.peak = 0;
        }
        self.sum += gain;
        if self.sum > self.peak {
            self.peak = self.sum;
            self.end = token.end;
        }
        if self.sum <= 0 || self.sum < self.peak - 80 {
            return self.finish(least);
        }
        None
    }

    fn finish(&mut self, least: i32) -> Option<Range<usize>> {
        let found = (self.sum != 0 || self.peak != 0) && self.peak >= least;
        self.sum = 0;
        self.peak = 0;
        found.then_some(self.start..self.end)
    }
}

/// Letters moved by thirteen.
#[derive(Debug)]
pub(super) struct Rot13<'s> {
    source: &'s str,
    rise: Rise,
    stretches: Vec<Range<usize>>,
    writer: Rewriter<'s>,
    /// Bytes that were looked at closely.
    read: usize,
}

impl<'s> Rot13<'s> {
    const LEAST: i32 = 45;

    pub(super) fn new(source: &'s str, budget: usize) -> Self {
        let mut new = Self {
            source,
            rise: Rise::default(),
            stretches: Vec::new(),
            writer: Rewriter::pieces(source, budget),
            read: 0,
        };
        // A few words say too little one by one.
        if source.len() <= SHORT {
            new.check(0..source.len());
        }
        new
    }

    #[inline(always)]
    pub(super) fn token(&mut self, token: Token, gain: i32) {
        if let Some(stretch) = self.rise.token(token, gain, Self::LEAST) {
            self.stretches.push(stretch);
        }
    }

    fn check(&mut self, range: Range<usize>) {
        let bytes = &self.source.as_bytes()[range.clone()];
        let sample = &bytes[..bytes.len().min(SAMPLE)];
        self.read += 64 + bytes.len();
        let plain = likeness(sample.iter().copied());
        let turned = likeness(sample.iter().map(|byte| rot13(*byte)));
        // What is backwards as well is turned around in the next reading.
        let back = || likeness(sample.iter().rev().map(|byte| rot13(*byte)));
        if !(turned >= 3 && turned >= plain + 8 || plain < -4 && back() >= 4) {
            return;
        }
        // Only ASCII letters change, and into others: it stays the text that it is.
        let text = String::from_utf8(bytes.iter().map(|byte| rot13(*byte)).collect());
        self.writer.replace(range, &text.unwrap_or_default());
    }

    pub(super) fn finish(mut self, fresh: &Fresh<'_>, read: &mut usize) -> Option<Undone> {
        self.stretches.extend(self.rise.finish(Self::LEAST));
        for range in fresh.stretches(std::mem::take(&mut self.stretches)) {
            self.check(range);
        }
        *read += self.read;
        undone(self.writer, Transform::Rot13)
    }
}

#[inline]
pub(super) fn rot13(byte: u8) -> u8 {
    static TURNED: [u8; 256] = {
        let mut table = [0; 256];
        let mut byte = 0_u8;
        loop {
            table[byte as usize] = match byte {
                b'a'..=b'm' | b'A'..=b'M' => byte + 13,
                b'n'..=b'z' | b'N'..=b'Z' => byte - 13,
                _ => byte,
            };
            if byte == u8::MAX {
                break table;
            }
            byte += 1;
        }
    };
    TURNED[usize::from(byte)]
}

/// Text from end to start, as a whole and word by word.
#[derive(Debug)]
pub(super) struct Backwards<'s> {
    source: &'s str,
    rise: Rise,
    stretches: Vec<Range<usize>>,
    writer: Rewriter<'s>,
    /// Bytes that were looked at closely.
    read: usize,
}

impl<'s> Backwards<'s> {
    const LEAST: i32 = 36;
    /// What a sign of punctuation before a word says.
    const SIGN: i32 = 25;

    pub(super) fn new(source: &'s str, budget: usize) -> Self {
        let mut new = Self {
            source,
            rise: Rise::default(),
            stretches: Vec::new(),
            writer: Rewriter::pieces(source, budget),
            read: 0,
        };
        // A few words say too little one by one.
        if source.len() <= SHORT {
            new.check(0..source.len());
        }
        new
    }

    #[inline(always)]
    pub(super) fn token(&mut self, token: Token, first: u8, last: u8) {
        if token.len() < 2 {
            return;
        }
        // What ends a sentence stands before its last word when it is read backwards. Any other sign
        // hides the letter that counts; half a word says little.
        let gain = match first {
            b'.' | b',' | b'?' | b'!' if last.is_ascii_alphabetic() => {
                Self::SIGN + backwards_gain(self.source.as_bytes()[token.start + 1], last)
            }
            _ => backwards_gain(first, last),
        };
        if let Some(stretch) = self.rise.token(token, gain, Self::LEAST) {
            self.stretches.push(stretch);
        }
    }

    fn check(&mut self, range: Range<usize>) {
        let bytes = &self.source.as_bytes()[range.clone()];
        let sample = &bytes[..bytes.len().min(SAMPLE)];
        self.read += 64 + 2 * bytes.len();
        let turned = likeness(sample.iter().rev().copied());
        if turned < 4 || turned < likeness(sample.iter().copied()) + 4 {
            return;
        }
        let text = &self.source[range.clone()];
        let mut out = reversed(text);
        out.reserve(text.len() + 1);
        out.push('\n');
        // The words of the reversed text, last first, are the reversed words of the text.
        let (whole, mut end) = (out.len() - 1, out.len() - 1);
        for _ in text.split(' ') {
            let start = out[..end].rfind(' ').map_or(0, |space| space + 1);
            if end < whole {
                out.push(' ');
            }
            out.extend_from_within(start..end);
            end = start.saturating_sub(1);
        }
        self.writer.replace(range, &out);
    }

    pub(super) fn finish(mut self, fresh: &Fresh<'_>, read: &mut usize) -> Option<Undone> {
        self.stretches.extend(self.rise.finish(Self::LEAST));
        for range in fresh.stretches(std::mem::take(&mut self.stretches)) {
            self.check(range);
        }
        *read += self.read;
        undone(self.writer, Transform::Reversed)
    }
}

fn reversed(text: &str) -> String {
    if !text.is_ascii() {
        return text.chars().rev().collect();
    }
    String::from_utf8(text.bytes().rev().collect()).unwrap_or_default()
}

/// Words with more accents than a language would put there.
#[derive(Debug)]
pub(super) struct Accents<'s> {
    source: &'s str,
    budget: usize,
    words: Vec<Token>,
    many: bool,
}

impl<'s> Accents<'s> {
    pub(super) fn new(source: &'s str, budget: usize) -> Self {
        Self { source, budget, words: Vec::new(), many: false }
    }

    /// A word with letters of ASCII and others.
    pub(super) fn token(&mut self, token: Token) {
        let (marked, all) =
            self.source[token.range()].chars().fold((0, 0), |(marked, all), character| {
                (marked + usize::from(is_accented(character)), all + 1)
            });
        if marked > 0 {
            self.words.push(token);
            self.many |= marked >= 2 && marked * 4 >= all;
        }
    }

    pub(super) fn finish(self) -> Option<Undone> {
        if !self.many {
            return None;
        }
        let mut writer = Rewriter::new(self.source, self.budget);
        let mut bare = String::new();
        for token in self.words {
            bare.clear();
            for character in self.source[token.range()].chars() {
                if character.is_ascii() {
                    bare.push(character);
                    continue;
                }
                decompose_canonical(character, |part| {
                    if !matches!(part, '\u{300}'..='\u{36f}') {
                        bare.push(without_stroke(part));
                    }
                });
            }
            writer.replace(token.range(), &bare);
        }
        undone(writer, Transform::Confusable)
    }
}

fn is_accented(character: char) -> bool {
    matches!(character, '\u{c0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}') && character != '\u{d7}'
}

fn without_stroke(character: char) -> char {
    match character {
        'ø' => 'o',
        'ł' => 'l',
        'đ' | 'ð' => 'd',
        'ħ' => 'h',
        'ı' => 'i',
        'ŧ' => 't',
        other => other,
    }
}
