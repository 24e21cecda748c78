//! A text that comes in parts, as far as it may be seen, and its single tokens.

use std::collections::VecDeque;
use std::sync::Arc;

use wardkeep_detect::finding::Verdict;
use wardkeep_detect::leak::{OutputGuard, StreamGuard};

use super::super::json::{At, BadJson, Doc, Edits, Kind};
use super::super::sse::BadStream;
use super::{HELD, Key, OPEN, Shared};

/// Bytes of what was seen that the next text is read together with.
const TAIL: usize = 512;

/// A text on its way.
pub(super) struct Text {
    guard: StreamGuard<Arc<OutputGuard>>,
    seen: Seen,
    /// What the guard holds.
    held: String,
}

#[derive(Default)]
struct Seen {
    /// What stood before the text and the guard has not given back yet.
    before: String,
    /// The end of what was seen.
    shown: String,
}

impl Text {
    pub(super) fn new(guard: Arc<OutputGuard>, question: &str, before: &str) -> Self {
        let guard = StreamGuard::new(guard).redacting().knowing(question);
        let seen = Seen { before: before.to_owned(), shown: before.to_owned() };
        let mut text = Self { guard, seen, held: String::new() };
        if !before.is_empty() {
            text.feed(before);
        }
        text
    }

    pub(super) fn feed(&mut self, text: &str) -> String {
        self.held.push_str(text);
        let out = self.seen.own(self.guard.feed(text));
        let gone = self.held.len().saturating_sub(self.guard.held());
        self.held.drain(..self.held.floor_char_boundary(gone));
        out
    }

    /// What was held, what was seen last, and the rules that found something.
    pub(super) fn finish(self) -> (String, String, Vec<String>) {
        let Self { guard, mut seen, .. } = self;
        let ending = guard.finish();
        let rest = seen.own(&ending.text);
        let rules = ending.scan.findings.iter().map(|finding| finding.rule.to_string()).collect();
        (rest, last_of(&seen.shown), rules)
    }

    /// What was seen last, and what is held.
    pub(super) fn tail(&self) -> String {
        let held = self.held.get(self.seen.before.len()..).unwrap_or_default();
        last_of(&[self.seen.shown.as_str(), held].concat())
    }
}

impl Seen {
    /// Takes what stood before the text off what the guard gives.
    fn own(&mut self, out: &str) -> String {
        let same = self.before.bytes().zip(out.bytes()).take_while(|(one, two)| one == two).count();
        let same = out.floor_char_boundary(same);
        // Where it is another, its end is withheld together with the beginning of the text.
        match same == self.before.len() || same == out.len() {
            true => drop(self.before.drain(..same)),
            false => self.before.clear(),
        }
        let own = out[same..].to_owned();
        self.shown.push_str(&own);
        if self.shown.len() > 4 * TAIL {
            self.shown = last_of(&self.shown);
        }
        own
    }
}

/// The end of a text, from the beginning of a word on.
fn last_of(text: &str) -> String {
    let from = text.len().saturating_sub(TAIL);
    let end = &text[text.ceil_char_boundary(from)..];
    match end.find(char::is_whitespace).filter(|_| from > 0) {
        Some(at) => end[at..].to_owned(),
        None => end.to_owned(),
    }
}

/// The tokens of a text with what is told of each: they say what the text says.
pub(super) struct Tokens {
    guard: StreamGuard<Arc<OutputGuard>>,
    /// Tokens that wait, with the number of bytes up to their end.
    waiting: VecDeque<(usize, String)>,
    fed: usize,
    bytes: usize,
    /// Whether they say what must be withheld.
    lost: bool,
}

/// What a list of tokens says: the tokens, and all that might have been in their place.
struct Said {
    entries: Vec<(String, String)>,
    aside: Vec<String>,
}

fn said(doc: &Doc<'_>, list: At) -> Result<Said, BadJson> {
    let mut said = Said { entries: Vec::new(), aside: Vec::new() };
    let mut spelled = Vec::new();
    for entry in doc.items(list) {
        let token = doc.string(entry, "token")?.unwrap_or_default().into_owned();
        if let Some(bytes) = doc.get(entry, "bytes")? {
            spelled.extend(doc.items(bytes).filter_map(|at| doc.raw(at).parse::<u8>().ok()));
        }
        if let Some(others) = doc.get(entry, "top_logprobs")? {
            for other in doc.items(others) {
                said.aside.extend(doc.string(other, "token")?.map(|token| token.into_owned()));
            }
        }
        said.entries.push((token, doc.raw(entry).to_owned()));
    }
    said.aside.push(String::from_utf8_lossy(&spelled).into_owned());
    Ok(said)
}

impl Shared {
    /// Tokens of a whole text; they go where they say what must be withheld.
    pub(super) fn all_tokens(
        &mut self,
        doc: &Doc<'_>,
        list: Option<At>,
        counts: bool,
        edits: &mut Edits,
    ) -> Result<(), BadJson> {
        let Some(list) = list.filter(|list| doc.kind(*list) == Kind::Array) else { return Ok(()) };
        self.looked(doc, list);
        let said = said(doc, list)?;
        let joined: String = said.entries.iter().map(|(token, _)| token.as_str()).collect();
        let mut lost = self.leaf(&joined, counts).is_some();
        for text in &said.aside {
            lost |= self.leaf(text, counts && !lost).is_some();
        }
        if lost {
            edits.replace(doc.span(list), "[]");
        }
        Ok(())
    }

    /// The next tokens of a text: those that may be seen by now stand in their place. Whether there are any.
    pub(super) fn next_tokens(
        &mut self,
        doc: &Doc<'_>,
        key: Key,
        list: At,
        edits: &mut Edits,
    ) -> Result<bool, BadStream> {
        if doc.kind(list) != Kind::Array {
            return Ok(false);
        }
        self.looked(doc, list);
        let Some(guard) = &self.guard else { return Ok(true) };
        let said = said(doc, list)?;
        if !self.tokens.contains_key(&key) {
            if said.entries.is_empty() {
                return Ok(false);
            }
            if self.tokens.len() >= OPEN {
                return Err(BadStream::TooMuch);
            }
            let guard = StreamGuard::new(Arc::clone(guard)).redacting().knowing(&self.question);
            let (waiting, lost) = (VecDeque::new(), false);
            self.tokens.insert(key, Tokens { guard, waiting, fed: 0, bytes: 0, lost });
        }
        let aside = said.aside.iter().any(|text| self.leaf(text, true).is_some());
        let Some(tokens) = self.tokens.get_mut(&key) else { return Ok(false) };
        tokens.lost |= aside;
        let count = said.entries.len();
        let before = tokens.waiting.len();
        for (token, raw) in said.entries {
            tokens.fed += token.len();
            tokens.bytes += raw.len();
            tokens.guard.feed(&token);
            tokens.waiting.push_back((tokens.fed, raw));
        }
        if tokens.bytes > HELD {
            return Err(BadStream::TooMuch);
        }
        let seen = tokens.seen();
        if before > 0 || seen.len() != count {
            edits.replace(doc.span(list), format!("[{}]", seen.join(",")));
        }
        Ok(!seen.is_empty())
    }

    /// Ends the tokens of a text, and gives those that were held.
    pub(super) fn last_tokens(&mut self, key: Key) -> Vec<String> {
        let Some(tokens) = self.tokens.remove(&key) else { return Vec::new() };
        let ending = tokens.guard.finish();
        let clean = !tokens.lost && ending.scan.findings.is_empty();
        // What they say is found in the text, too, and counted there.
        tokens.waiting.into_iter().filter(|_| clean).map(|(_, raw)| raw).collect()
    }
}

impl Tokens {
    /// Those whose text is settled.
    fn seen(&mut self) -> Vec<String> {
        self.lost |= self.guard.verdict() != Verdict::Clean;
        if self.lost {
            self.waiting.clear();
            self.bytes = 0;
            return Vec::new();
        }
        let settled = self.fed - self.guard.held();
        let mut seen = Vec::new();
        while let Some((_, raw)) = self.waiting.pop_front_if(|(end, _)| *end <= settled) {
            self.bytes -= raw.len();
            seen.push(raw);
        }
        seen
    }
}
