//! One reading of a text, token by token.

use super::coded::Classes;
use super::discover::{is_builder, placeholder};
use super::evidence::{Count, Rule, Signal};
use super::fold::of_letter;
use super::letters::{Letters, Met};
use super::ordinary::{is_ordinary, parts_of};
use super::phrases::{DRAFT, Phrases};
use super::sections::Shape;
use super::shingle::Register;
use super::words::{self, COLON, Heading, Meaning, NAME, QUOTE, SIGNAL, TOOL};
use super::{Item, OutputGuard};
use crate::finding::Span;

static PLACEHOLDER: Rule =
    Rule { id: "leak.placeholder", reason: "A placeholder of a prompt was not filled in." };
static TAG: Rule =
    Rule { id: "leak.tag", reason: "The answer explains a tag by which the agent is steered." };
static BUILDER: Rule =
    Rule { id: "leak.builder", reason: "The answer names a function that makes prompts." };
static AGENT_FILE: Rule =
    Rule { id: "leak.agent-file", reason: "The answer names a file that steers the agent." };

/// What the shape of a prompt counts for in code, and where a prompt is being drafted.
const ASIDE: f32 = 0.4;

/// Longer words are looked at one by one.
const LONGEST_SKIMMED: usize = words::LONGEST;

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
        let mut signs = false;
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
            signs = self.words_of(token);
            self.letters.token(&guard.sought, token.text, token.start);
        }
        if !self.letters.met.is_empty() {
            for met in std::mem::take(&mut self.letters.met) {
                self.met(guard, raw, met, words_before == 0);
            }
        }
        if signs {
            self.signs(token, words_before);
        }
    }

    /// Whether nothing has begun that may become something.
    fn is_calm(&self) -> bool {
        let flags = self.colon || self.quote || self.alone.is_some();
        !flags && self.phrases.is_calm() && self.shape.is_calm() && self.letters.is_calm()
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
                b',' | b';' => self.shape.sign(bytes[end]),
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
        self.letters.hold(&guard.sought).min(self.phrases.hold()).min(self.shape.hold()).min(alone)
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
                b'\'' => {}
                0x80.. => {
                    let character = token.text[at..].chars().next().unwrap_or(' ');
                    self.wide(token, &mut word, character, at);
                    at += character.len_utf8();
                    continue;
                }
                _ => {
                    self.end_word(token, &mut word, at);
                    signs |= matches!(byte, b'$' | b'[' | b'.');
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
            _ if character.is_alphabetic() => word.push_wide(character, at),
            _ => {}
        }
    }

    fn sign(&mut self, byte: u8, rest: &[u8]) {
        self.shape.sign(byte);
        match byte {
            b':' => self.colon = true,
            b'"' | b'`' => self.quote = true,
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

    /// Placeholders, tags, files and functions, which are told by their signs.
    fn signs(&mut self, token: Token<'_>, words_before: usize) {
        let bytes = token.text.as_bytes();
        let mut push = |rule, weight, range: std::ops::Range<usize>| {
            self.signals.push(Signal {
                rule,
                weight,
                count: Count::Once,
                span: (token.start + range.start..token.start + range.end).into(),
                tail: false,
                path: Vec::new(),
            });
        };
        if let Some(at) = memchr::memmem::find(bytes, b"${")
            && let Some(length) = placeholder(&bytes[at..])
            && !self.fenced
        {
            let inner = &token.text[at + 2..at + length - 1];
            let weight = if inner.contains('.') && steers(inner) { 0.6 } else { 0.15 };
            push(&PLACEHOLDER, weight, at..at + length);
        }
        if let Some(at) = memchr::memmem::find(bytes, b"[[")
            && words_before > 0
            && !self.fenced
        {
            let name = bytes[at + 2..]
                .iter()
                .take_while(|b| b.is_ascii_lowercase() || **b == b'_')
                .count();
            let closed = matches!(bytes.get(at + 2 + name), Some(b']' | b':'));
            if closed && bytes[at + 2..at + 2 + name].contains(&b'_') {
                push(&TAG, 0.55, at..at + 2 + name);
            }
        }
        if let Some(at) =
            memchr::memmem::find(bytes, b".md").or_else(|| memchr::memmem::find(bytes, b".MD"))
        {
            let length =
                bytes[..at].iter().rev().take_while(|byte| byte.is_ascii_alphanumeric()).count();
            let stem = token.text[at - length..at].to_ascii_lowercase();
            let steers = matches!(
                stem.as_str(),
                "soul" | "memory" | "skill" | "agents" | "heartbeat" | "identity" | "bootstrap"
            );
            if steers && !self.fenced {
                push(&AGENT_FILE, 0.15, at - length..at + 3);
            }
        }
        if !self.fenced {
            for (at, name) in names(token.text) {
                if is_builder(name) {
                    push(&BUILDER, 0.5, at..at + name.len());
                }
            }
        }
    }
}

/// The length of a word that is all of its token but for signs that end sentences and clauses.
#[inline]
fn plain_word(token: Token<'_>) -> Option<usize> {
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
fn name(text: &str) -> Meaning {
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

/// Names within a token.
fn names(token: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    token.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).filter_map(move |name| {
        let start = at;
        // Separators are ASCII or not; the position goes by what is left of the token.
        at += name.len();
        at += token[at..].chars().next().map_or(0, char::len_utf8);
        (!name.is_empty()).then_some((start, name))
    })
}

/// Whether a placeholder is filled from what steers an agent.
fn steers(path: &str) -> bool {
    let (root, leaf) = path.split_once('.').unwrap_or((path, ""));
    matches!(root, "params" | "prompt" | "system" | "agent" | "runtime" | "session")
        && parts_of(leaf).any(|part| {
            matches!(
                part.to_ascii_lowercase().as_str(),
                "tool"
                    | "tools"
                    | "prompt"
                    | "agent"
                    | "skill"
                    | "skills"
                    | "memory"
                    | "session"
                    | "workspace"
                    | "model"
                    | "identity"
                    | "heartbeat"
                    | "persona"
            )
        })
}

/// What a name counts for when it is written as ordinary words.
fn spoken(text: &str, item: &Item) -> f32 {
    if item.canary {
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
struct Word {
    letters: Register,
    start: usize,
    length: usize,
    last: u8,
    is_name: bool,
    unknown: bool,
}

impl Word {
    fn new() -> Self {
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
    fn push(&mut self, byte: u8, at: usize) {
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

    fn push_wide(&mut self, character: char, at: usize) {
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
