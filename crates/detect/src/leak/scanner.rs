//! One reading of a text, token by token.

use super::OutputGuard;
use super::digits::Digits;
use super::evidence::{Count, Signal};
use super::fold::is_letter;
use super::letters::{Letters, Met};
use super::phrases::{DRAFT, Phrases};
use super::sections::Shape;
use super::signs::signs;
use super::token::{Raw, Token, Word, name, plain_word, spoken};
use super::words::{self, ADDRESSED, COLON, Heading, Meaning, QUOTE, SYSTEM, SYSTEM_VALUE, YOU};
use crate::finding::Span;

/// What the shape of a prompt counts for in code, and where a prompt is being drafted.
const ASIDE: f32 = 0.4;

/// Longer words are looked at one by one.
const LONGEST_SKIMMED: usize = words::LONGEST;

/// A name alone on its line, which is what it may be for: whether it is goes by what follows.
#[derive(Debug, Clone)]
struct Alone {
    item: usize,
    signal: Signal,
}

/// The state of one reading.
#[derive(Debug, Default)]
pub(super) struct Scanner {
    pub(super) letters: Letters,
    digits: Digits,
    phrases: Phrases,
    shape: Shape,
    fenced: bool,
    drafting: bool,
    line_words: usize,
    colon: bool,
    quote: bool,
    /// Items that have counted.
    counted: Vec<usize>,
    /// Items that the asker knows.
    known: Vec<usize>,
    alone: Option<Alone>,
    /// The item that was used as a reply, once.
    reply: Option<usize>,
    pub(super) signals: Vec<Signal>,
}

impl Scanner {
    /// Takes the next token in.
    pub(super) fn token(&mut self, guard: &OutputGuard, raw: Raw<'_>, token: Token<'_>) {
        if let Some(alone) = self.alone.take() {
            self.resolve(guard, alone, token.newlines > 0);
        }
        if token.newlines > 0 {
            self.shape.line();
            self.line_words = 0;
            if token.newlines > 1 {
                self.phrases.sentence();
            }
        }
        if self.line_words == 0 && (token.text.starts_with("```") || token.text.starts_with("~~~"))
        {
            self.fenced = !self.fenced;
        }
        let words_before = self.line_words;
        let mut has_signs = false;
        if let Some(length) = plain_word(token) {
            let register =
                self.letters.word(&guard.sought, &token.text.as_bytes()[..length], token.start);
            let (heading, meaning) = if length <= words::LONGEST {
                words::look_up(register.word(length), length)
            } else {
                (0, 0)
            };
            self.word(heading, meaning, [token.start, token.start + length]);
            for (at, sign) in token.text.bytes().enumerate().skip(length) {
                self.sign(sign, &token.text.as_bytes()[at + 1..]);
            }
        } else {
            has_signs = self.words_of(token);
            self.letters.token(&guard.sought, token.text, token.start);
        }
        if !self.letters.met.is_empty() {
            for met in std::mem::take(&mut self.letters.met) {
                self.met(guard, raw, met, words_before == 0);
            }
        }
        if has_signs && !self.fenced {
            signs(token, words_before == 0, &mut self.signals);
        }
        let digits = token.classes.has_digit() || !self.digits.is_calm();
        if digits && !guard.sought.numbers.is_empty() {
            self.numbers(guard, token);
        }
    }

    /// Whether nothing has begun that may become something.
    fn is_calm(&self) -> bool {
        let flags = self.colon || self.quote || self.alone.is_some();
        let words = self.phrases.is_calm() && self.shape.is_calm();
        !flags && words && self.letters.is_calm() && self.digits.is_calm()
    }

    /// Goes through words that mean nothing here, a single space between them, as long as there
    /// are such: the same as [`Self::token`] for each, only faster. Gives where the last one ends.
    pub(super) fn skim(&mut self, guard: &OutputGuard, bytes: &[u8], base: usize) -> usize {
        let mut done = 0;
        if !self.is_calm() {
            return done;
        }
        let mut at = 0;
        loop {
            let start = base + at;
            let Some((register, length)) = self.letters.try_word(&guard.sought, &bytes[at..])
            else {
                return done;
            };
            if bytes[at..at + length].iter().skip(1).any(u8::is_ascii_uppercase) {
                return done;
            }
            let end = at + length;
            let next = match bytes.get(end..) {
                Some([b' ', ..]) => end,
                Some([b',' | b';' | b'.' | b'!' | b'?', b' ', ..]) => end + 1,
                _ => return done,
            };
            if length == 0 || length > LONGEST_SKIMMED {
                return done;
            }
            let (heading, meaning) = words::look_up(register.word(length), length);
            if !self.phrases.may_pass(meaning) || !self.shape.pass(heading, meaning, start) {
                return done;
            }
            self.phrases.pass(meaning);
            self.letters.take_word(register, length, start);
            self.line_words += 1;
            match bytes[end] {
                b' ' => {}
                sign @ (b',' | b';') => self.sign(sign, b""),
                _ => self.break_sentence(),
            }
            done = next;
            at = next + 1;
            if !bytes.get(at).is_some_and(u8::is_ascii_alphabetic) {
                return done;
            }
        }
    }

    /// Whether there is anything to weigh.
    #[inline]
    pub(super) fn has_met_something(&self) -> bool {
        !self.signals.is_empty() || self.letters.has_runs()
    }

    /// Ends the reading.
    pub(super) fn finish(&mut self, guard: &OutputGuard) {
        if let Some(alone) = self.alone.take() {
            self.resolve(guard, alone, true);
        }
        self.letters.finish();
    }

    /// Starts afresh, because too much lies between the words; what has counted goes on.
    pub(super) fn forget(&mut self, guard: &OutputGuard) {
        if let Some(alone) = self.alone.take() {
            self.resolve(guard, alone, true);
        }
        self.letters.forget();
        self.digits.forget();
        self.phrases.sentence();
        self.shape.forget();
    }

    /// Passes over what stands in a text that the asker knows.
    pub(super) fn know(&mut self, guard: &OutputGuard, text: &str) {
        let mut letters = Letters::default();
        let mut start = 1;
        for token in text.split_ascii_whitespace() {
            letters.token(&guard.sought, token, start);
            start += token.len() + 1;
            for met in letters.met.drain(..) {
                let item = guard.sought.pattern(met.pattern).item;
                if !guard.items[item].canary && !self.known.contains(&item) {
                    self.known.push(item);
                }
            }
        }
        let mut numbers = Vec::new();
        for token in text.split_ascii_whitespace() {
            Digits::default().token(&guard.sought, token, 0, &mut numbers);
        }
        self.known.extend(numbers.into_iter().map(|(item, _)| item));
        self.letters.know(&guard.sought, text);
    }

    /// A reading of something inside this one, which counts what this one has counted.
    pub(super) fn branch(&mut self) -> Self {
        Self {
            letters: self.letters.branch(),
            counted: std::mem::take(&mut self.counted),
            known: std::mem::take(&mut self.known),
            drafting: self.drafting,
            reply: self.reply,
            ..Self::default()
        }
    }

    /// Takes back what a branch has counted.
    pub(super) fn join(&mut self, branch: Self) {
        self.letters.join(branch.letters);
        (self.counted, self.known) = (branch.counted, branch.known);
    }

    /// From where on the text may still become part of a signal.
    #[inline]
    pub(super) fn hold(&self, guard: &OutputGuard) -> usize {
        let alone = self.alone.as_ref().map_or(usize::MAX, |alone| alone.signal.span.start);
        let mut from = self.letters.hold(&guard.sought).min(alone);
        if !self.digits.is_calm() {
            from = from.min(self.digits.hold(&guard.sought));
        }
        from.min(self.phrases.hold()).min(self.shape.hold())
    }

    /// Goes through the words of a token; says whether it has signs that are looked at.
    fn words_of(&mut self, token: Token<'_>) -> bool {
        let bytes = token.text.as_bytes();
        let mut word = Word::new();
        let mut signs = false;
        let mut at = 0;
        while at < bytes.len() {
            let byte = bytes[at];
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' => word.push(byte, at),
                b'\'' => self.quote |= word.length == 0,
                0x80.. => {
                    let character = token.text[at..].chars().next().unwrap_or(' ');
                    self.wide(token, &mut word, character, at);
                    at += character.len_utf8();
                    continue;
                }
                _ => {
                    self.end_word(token, &mut word, at);
                    signs |= matches!(byte, b'$' | b'[' | b'.' | b'<' | b'"');
                    self.sign(byte, &bytes[at + 1..]);
                }
            }
            at += 1;
        }
        let name = word.is_name;
        self.end_word(token, &mut word, bytes.len());
        signs || name
    }

    fn wide(&mut self, token: Token<'_>, word: &mut Word, character: char, at: usize) {
        match character {
            '\u{2019}' => {}
            '\u{201c}' | '\u{201d}' | '\u{ab}' | '\u{bb}' | '\u{2018}' | '\u{300c}' => {
                self.end_word(token, word, at);
                self.quote = true;
            }
            '\u{3002}' | '\u{ff01}' | '\u{ff1f}' => {
                self.end_word(token, word, at);
                self.break_sentence();
            }
            '\u{ff1a}' => {
                self.end_word(token, word, at);
                self.sign(b':', b"");
            }
            _ if is_letter(character) => word.push_wide(character, at),
            _ => {}
        }
    }

    fn sign(&mut self, byte: u8, rest: &[u8]) {
        self.shape.sign(byte);
        match byte {
            b':' => self.colon = true,
            b'"' | b'`' | b'>' => self.quote = true,
            b';' => self.phrases.clause(),
            b'.' | b'!' | b'?' if !rest.first().is_some_and(u8::is_ascii_alphanumeric) => {
                self.break_sentence();
            }
            _ => {}
        }
    }

    fn break_sentence(&mut self) {
        self.phrases.sentence();
        self.shape.sentence();
        (self.colon, self.quote) = (false, false);
    }

    fn end_word(&mut self, token: Token<'_>, word: &mut Word, end: usize) {
        if word.length == 0 {
            return;
        }
        let known = !word.unknown && word.length <= words::LONGEST;
        let (heading, mut meaning) = if known {
            words::look_up(word.letters.word(word.length), word.length)
        } else {
            (0, 0)
        };
        let text = &token.text[word.start..end];
        if word.is_name && !self.fenced {
            meaning |= name(text);
        }
        let place = [token.start + word.start, token.start + end];
        *word = Word::new();
        self.word(heading, meaning, place);
    }

    #[inline]
    fn word(&mut self, heading: Heading, mut meaning: Meaning, place: [usize; 2]) {
        if self.colon {
            meaning |= COLON;
        }
        if self.quote {
            meaning |= QUOTE;
        }
        if meaning & YOU != 0 && (self.colon || self.quote) {
            meaning |= ADDRESSED;
        }
        if meaning & SYSTEM != 0 && self.colon && self.quote {
            meaning |= SYSTEM_VALUE;
        }
        (self.colon, self.quote) = (false, false);
        let [start, end] = place;
        let before = self.signals.len();
        self.phrases.word(meaning, start, end, &mut self.signals);
        if self.signals.len() > before {
            let drafting = &mut self.drafting;
            self.signals.retain(|signal| {
                let draft = std::ptr::eq(signal.rule, &DRAFT);
                *drafting |= draft;
                !draft
            });
        }
        let share = if self.fenced || self.drafting { ASIDE } else { 1.0 };
        self.shape.word(heading, meaning, [start, end], share, &mut self.signals);
        self.line_words += 1;
    }

    /// A name that is watched for.
    fn met(&mut self, guard: &OutputGuard, raw: Raw<'_>, met: Met, begins_line: bool) {
        let pattern = guard.sought.pattern(met.pattern);
        let item = &guard.items[pattern.item];
        let span = Span { start: met.start, end: met.end };
        let weight = item.weight(self.fenced) * spoken(raw.slice(span), item);
        if weight <= 0.0 || self.known.contains(&pattern.item) {
            return;
        }
        let signal = Signal {
            rule: item.rule,
            weight,
            count: Count::Each(0.0),
            span,
            tail: false,
            path: pattern.way.path().to_vec(),
        };
        if item.signal && begins_line && self.line_words <= 1 {
            self.alone = Some(Alone { item: pattern.item, signal });
        } else {
            self.count_item(pattern.item, signal);
        }
    }

    fn numbers(&mut self, guard: &OutputGuard, token: Token<'_>) {
        let mut met = Vec::new();
        self.digits.token(&guard.sought, token.text, token.start, &mut met);
        for (item, [start, end]) in met {
            if !self.known.contains(&item) {
                let weight = guard.items[item].weight(self.fenced);
                let span = Span { start, end };
                let rule = guard.items[item].rule;
                let count = Count::Each(0.0);
                self.count_item(
                    item,
                    Signal { rule, weight, count, span, tail: false, path: Vec::new() },
                );
            }
        }
    }

    fn resolve(&mut self, guard: &OutputGuard, alone: Alone, line_ended: bool) {
        // One signal may be given: that is what it is for. Two are a list.
        if line_ended && self.reply.is_none_or(|item| item == alone.item) {
            self.reply = Some(alone.item);
            return;
        }
        debug_assert!(guard.items[alone.item].signal);
        self.count_item(alone.item, alone.signal);
    }

    fn count_item(&mut self, item: usize, mut signal: Signal) {
        if !self.counted.contains(&item) {
            self.counted.push(item);
            signal.count = Count::Each(signal.weight);
        }
        self.signals.push(signal);
    }
}
