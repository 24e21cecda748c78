//! An answer checked while it is written.

use std::ops::{Deref, Range};

use super::coded::{Classes, Coded, is_space};
use super::decode::{CONTEXT, copy};
use super::evidence::Evidence;
use super::letters::SHORTEST_COPY;
use super::scanner::Scanner;
use super::token::{Raw, Token};
use super::{OutputGuard, WITHHELD};
use crate::finding::{Scan, Span, Verdict};

/// A longer token is read in parts.
const TOKEN: usize = 64;
/// Text is taken in by parts of this size.
const PART: usize = 4096;
/// Less than this is read token by token.
const WORTH_SKIMMING: usize = 48;
/// More than this is never held: what lies further apart does not belong together.
const FARTHEST: usize = 4096;
/// What belongs to an announcement at most.
const TAIL: usize = 2048;

/// Checks an answer as it comes and lets go of what is safe.
///
/// Whatever the pieces in which it is fed, the verdict, the findings and the text that is let go
/// are the same: [`OutputGuard::check`] is this guard fed once. It takes strings, not bytes:
/// whoever reads bytes keeps an unfinished character back, as `String::from_utf8` forces one to.
///
/// Text of findings is replaced by a mark; after [`Verdict::Block`] nothing is let go any more.
/// What is held is the word that is not finished, the fifteen letters before it (five without a
/// prompt), the beginning of whatever may become a finding, and a stretch that may be encoded, up
/// to 2 KiB; never more than 4,160 bytes in all.
///
/// ```
/// use wardkeep_detect::finding::Verdict;
/// use wardkeep_detect::leak::{OutputGuard, PromptProfile, StreamGuard};
/// let prompt = "You serve the harbour office. The reserve price of berth nine is 4,300 crowns a night.";
/// let guard = OutputGuard::for_prompt(&PromptProfile::of(prompt));
/// let mut stream = StreamGuard::new(&guard);
/// let mut shown = String::new();
/// for piece in ["Good morning! We open at nine. ", "The reserve price of ber", "th nine is 4,300 crowns a night."] {
///     shown.push_str(stream.feed(piece));
/// }
/// let end = stream.finish();
/// shown.push_str(&end.text);
/// assert_ne!(end.scan.verdict, Verdict::Clean);
/// assert!(shown.starts_with("Good morning!") && !shown.contains("reserve"));
/// ```
#[derive(Debug)]
pub struct StreamGuard<G> {
    guard: G,
    state: State,
    out: String,
}

/// The end of a checked answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Ending {
    /// What was still held and is safe.
    pub text: String,
    /// The verdict on the whole answer, with findings whose spans count from its first byte.
    pub scan: Scan,
}

impl<G: Deref<Target = OutputGuard>> StreamGuard<G> {
    /// By a guard, which may be borrowed or shared.
    #[must_use]
    pub fn new(guard: G) -> Self {
        let state = State::new(&guard);
        Self { guard, state, out: String::new() }
    }

    /// Passes over names and passages that stand in the question: repeating them tells the asker
    /// nothing. To be called before the first text is fed. Canaries count all the same.
    #[must_use]
    pub fn knowing(mut self, question: &str) -> Self {
        self.state.know(&self.guard, question);
        self
    }

    /// Goes on after a block, as [`OutputGuard::redact`] does: every finding is replaced by a mark,
    /// and what comes after it is let go.
    #[must_use]
    pub fn redacting(mut self) -> Self {
        self.state.stops = false;
        self
    }

    /// Takes the next piece of the answer in and gives what is safe by now.
    pub fn feed(&mut self, piece: &str) -> &str {
        self.out.clear();
        self.state.feed(&self.guard, piece, &mut self.out);
        &self.out
    }

    /// Ends the answer.
    #[must_use]
    pub fn finish(mut self) -> Ending {
        self.out.clear();
        self.state.finish(&self.guard, &mut self.out);
        Ending { text: self.out, scan: self.state.evidence.into_scan() }
    }

    /// The verdict on what has been read; it never gets milder.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.state.evidence.verdict()
    }

    /// Bytes that were fed and neither let go nor withheld for good.
    #[must_use]
    pub fn held(&self) -> usize {
        self.state.base + self.state.buffer.len() - self.state.mark
    }
}

/// A paragraph that belongs to an announcement.
#[derive(Debug)]
struct Tail {
    finding: Option<usize>,
    end: usize,
    until: usize,
}

/// Everything but the guard. Offsets count from the beginning of the answer.
#[derive(Debug)]
pub(super) struct State {
    /// The text from `base` on.
    pub(super) buffer: String,
    pub(super) base: usize,
    /// Read up to here.
    at: usize,
    /// Searched for the end of a token up to here.
    searched: usize,
    newlines: u32,
    /// Whether the last token was cut rather than ended.
    cut: bool,
    pub(super) scanner: Scanner,
    coded: Coded,
    tail: Option<Tail>,
    pub(super) evidence: Evidence,
    /// Decided up to here.
    mark: usize,
    /// Let go or withheld up to here.
    passed: usize,
    /// Where the last withheld part ended.
    withheld: usize,
    /// Where it was blocked.
    blocked: Option<usize>,
    /// Whether a block stops the text.
    pub(super) stops: bool,
    /// Whether text is given at all.
    pub(super) speaks: bool,
}

impl State {
    pub(super) fn new(guard: &OutputGuard) -> Self {
        Self {
            buffer: String::new(),
            base: 0,
            at: 0,
            searched: 0,
            newlines: 1,
            cut: false,
            scanner: Scanner::default(),
            coded: Coded::with_addresses(guard.urls || guard.secrets),
            tail: None,
            evidence: Evidence::new(guard.thresholds),
            mark: 0,
            passed: 0,
            withheld: usize::MAX,
            blocked: None,
            stops: true,
            speaks: true,
        }
    }

    pub(super) fn know(&mut self, guard: &OutputGuard, question: &str) {
        self.scanner.know(guard, question);
    }

    pub(super) fn feed(&mut self, guard: &OutputGuard, mut text: &str, out: &mut String) {
        // More of a token that goes on settles nothing.
        let token = self.base + self.buffer.len() - self.at;
        if token + text.len() <= TOKEN && !text.bytes().any(is_space) {
            self.buffer.push_str(text);
            self.searched = self.base + self.buffer.len();
            return;
        }
        while !text.is_empty() {
            let (part, rest) = text.split_at(text.floor_char_boundary(PART.min(text.len())));
            self.buffer.push_str(part);
            self.read(guard, false);
            self.give(out);
            text = rest;
        }
    }

    pub(super) fn finish(&mut self, guard: &OutputGuard, out: &mut String) {
        self.read(guard, true);
        if let Some(range) = self.coded.close() {
            self.decode(guard, range);
        }
        self.scanner.finish(guard);
        self.collect(guard, self.at..self.at);
        self.decide(self.base + self.buffer.len());
        self.give(out);
    }

    /// Reads all tokens that are complete.
    fn read(&mut self, guard: &OutputGuard, last: bool) {
        loop {
            let bytes = self.buffer.as_bytes();
            let mut at = self.at - self.base;
            let before = at;
            while let Some(byte) = bytes.get(at).filter(|byte| is_space(**byte)) {
                self.newlines += u32::from(*byte == b'\n');
                at += 1;
            }
            if at > before {
                self.at = self.base + at;
                self.cut = false;
                self.settle(guard);
            }
            if self.newlines == 0
                && !self.cut
                && self.buffer.len() - at >= WORTH_SKIMMING
                && self.skim(guard, at)
            {
                continue;
            }
            let bytes = self.buffer.as_bytes();
            let limit = bytes.len().min(at + TOKEN + 1);
            // What came before was searched when it came.
            let searched = self.searched.saturating_sub(self.base);
            if searched > at
                && !last
                && limit <= at + TOKEN
                && !bytes[searched..].iter().any(|byte| is_space(*byte))
            {
                self.searched = self.base + bytes.len();
                return;
            }
            let (mut classes, mut end) = Classes::of(bytes, at, limit);
            let mut cut = false;
            if end == limit {
                if bytes.len() > at + TOKEN {
                    end = self.buffer.floor_char_boundary(at + TOKEN);
                    (classes, _) = Classes::of(bytes, at, end);
                    cut = true;
                } else if !last || end == at {
                    self.searched = self.base + bytes.len();
                    return;
                }
            }
            self.token(guard, at..end, classes);
            self.cut = cut;
        }
    }

    /// Goes through ordinary words, if there are any.
    fn skim(&mut self, guard: &OutputGuard, at: usize) -> bool {
        if self.coded.hold() != usize::MAX || self.tail.is_some() {
            return false;
        }
        let done = self.scanner.skim(guard, &self.buffer.as_bytes()[at..], self.base + at);
        if done > 0 {
            self.at += done;
            self.settle(guard);
        }
        done > 0
    }

    fn token(&mut self, guard: &OutputGuard, range: Range<usize>, classes: Classes) {
        let [start, end] = [self.base + range.start, self.base + range.end];
        let text = &self.buffer[range];
        let raw = Raw { text: &self.buffer, base: self.base };
        let newlines = std::mem::take(&mut self.newlines);
        self.scanner.token(guard, raw, Token { text, start, newlines, classes });
        let stretch = self.coded.token(text, start, classes, !self.cut);
        self.at = end;
        if let Some(tail) = &mut self.tail {
            if newlines > 1 || end > tail.until {
                self.tail = None;
            } else {
                let span = Span { start: tail.end, end };
                tail.end = end;
                self.evidence.extend(tail.finding, span);
            }
        }
        self.collect(guard, start..end);
        if let Some(range) = stretch {
            self.decode(guard, range);
        }
        self.settle(guard);
    }

    /// Turns what the reading has met into evidence.
    #[inline]
    fn collect(&mut self, guard: &OutputGuard, token: Range<usize>) {
        if self.scanner.has_met_something() {
            self.weigh(guard, token);
        }
    }

    fn weigh(&mut self, guard: &OutputGuard, token: Range<usize>) {
        for run in self.scanner.letters.closed.drain(..) {
            self.evidence.grow(run.id, &copy(guard, &run));
            self.evidence.close(run.id);
        }
        for run in self.scanner.letters.runs() {
            if run.end > token.start && run.matched >= SHORTEST_COPY {
                self.evidence.grow(run.id, &copy(guard, run));
            }
        }
        for signal in self.scanner.signals.drain(..) {
            let (tail, span) = (signal.tail, signal.span);
            if self.evidence.add(signal) && tail && self.tail.is_none() {
                let finding = self.evidence.last();
                self.evidence.extend(finding, Span { start: span.start, end: token.end });
                self.tail = Some(Tail { finding, end: token.end, until: token.end + TAIL });
            }
        }
    }

    /// Decides how far the text is settled, and forgets what lies too far back.
    #[inline]
    fn settle(&mut self, guard: &OutputGuard) {
        let mut hold = self.hold(guard);
        if self.at - hold.min(self.at) > FARTHEST {
            if let Some(range) = self.coded.close() {
                self.decode(guard, range);
            }
            self.scanner.forget(guard);
            self.collect(guard, self.at..self.at);
            hold = self.hold(guard);
        }
        self.decide(hold.min(self.at));
    }

    #[inline]
    fn hold(&self, guard: &OutputGuard) -> usize {
        let mut from = self.scanner.hold(guard);
        for run in self.scanner.letters.runs() {
            // What belongs to a finding is not held, it is withheld.
            from = from.min(if self.evidence.is_finding(run.id) { run.end } else { run.start });
        }
        let coded = self.coded.hold();
        if coded != usize::MAX {
            // A part of a long stretch may begin inside a character.
            let at = self.buffer.floor_char_boundary(coded.saturating_sub(self.base));
            from = from.min(self.base + at);
        }
        from
    }

    fn decide(&mut self, to: usize) {
        if self.blocked.is_none() && self.stops && self.evidence.verdict() == Verdict::Block {
            self.blocked = Some(self.mark);
        }
        self.mark = self.mark.max(to);
    }

    /// Passes on what is settled, with a mark in the place of what is withheld.
    fn give(&mut self, out: &mut String) {
        if !self.evidence.withheld.is_empty() {
            let mut spans = std::mem::take(&mut self.evidence.withheld);
            spans.sort_unstable();
            for span in spans {
                let (start, end) = (span.start.max(self.passed), span.end.min(self.mark));
                if start < end {
                    self.say(start, out);
                    if self.withheld != start && self.blocked.is_none_or(|blocked| start < blocked)
                    {
                        self.put(WITHHELD, out);
                    }
                    (self.passed, self.withheld) = (end, end);
                }
                if span.end > self.mark {
                    let start = span.start.max(self.mark);
                    self.evidence.withheld.push(Span { start, ..span });
                }
            }
        }
        self.say(self.mark, out);
        if self.passed - self.base > PART + CONTEXT {
            let done = self.buffer.floor_char_boundary(self.passed - self.base - CONTEXT);
            self.buffer.drain(..done);
            self.base += done;
        }
    }

    /// Passes on the text up to a place.
    fn say(&mut self, to: usize, out: &mut String) {
        let end = self.blocked.map_or(to, |blocked| to.min(blocked));
        if self.passed < end && self.speaks {
            out.push_str(&self.buffer[self.passed - self.base..end - self.base]);
        }
        self.passed = self.passed.max(to);
    }

    fn put(&self, text: &str, out: &mut String) {
        if self.speaks {
            out.push_str(text);
        }
    }
}
