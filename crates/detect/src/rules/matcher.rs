//! One pass over a text: literals, sentences, patterns.

use std::ops::Range;

use super::RuleSet;
use super::compile::{ANCHOR, CLOSES, FIRST, LAST, LEFT, Literal, MENTIONS, OPENS, RIGHT};
use super::gaps::Gaps;
use super::reader::{self, Event};
use super::sieve::{Sieve, Spot};
use super::{context, edges};
use crate::bitmap::BLOCK;
use crate::work::{Step, Work};

/// Hits that a sentence may hold before it is cut.
const SENTENCE: usize = 192;
/// Literals that wait to be put in order, at most.
const WAITING: usize = 1024;
/// Hits that are kept when a sentence is cut.
const KEPT: usize = 24;
/// Matches of one rule that count in full, or that count in part, and are kept of one text.
const PER_RULE: u16 = 64;

/// A literal in the text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hit {
    /// The literal's flags.
    pub(crate) flags: u16,
    literal: u16,
    /// First byte.
    pub(crate) start: usize,
    /// Behind the last byte.
    pub(crate) end: usize,
}

/// A complete pattern.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Match {
    /// Index of the rule.
    pub(crate) rule: u16,
    /// First byte in the view.
    pub(crate) start: usize,
    /// Behind the last byte.
    pub(crate) end: usize,
    /// How much of the rule's weight counts here.
    pub(crate) factor: f32,
}

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    /// Number of the sentence, 0 for none.
    sentence: usize,
    start: usize,
    end: usize,
}

/// What was seen of a rule.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    /// Matches in all, of a rule that needs several; else those that count in full.
    full: u16,
    /// Matches that count in part.
    part: u16,
    /// The most that one of those counts for.
    most: f32,
}

impl Seen {
    /// Whether no match that follows can add anything: only what counts in full ends the search, so
    /// that matches which count for little or nothing hide none that counts.
    fn done(self) -> bool {
        self.full >= PER_RULE
    }

    /// A match that counts for no more is not kept.
    fn least(self) -> f32 {
        if self.part < PER_RULE { 0.0 } else { self.most }
    }

    /// Whether a match is kept.
    fn takes(&mut self, factor: f32) -> bool {
        if factor >= 1.0 {
            self.full = self.full.saturating_add(1);
            return self.full <= PER_RULE;
        }
        let kept = self.part < PER_RULE || factor > self.most;
        self.part = self.part.saturating_add(1);
        self.most = self.most.max(factor);
        kept
    }
}

/// Finds the matches of all rules in a normalised text. However many there are where it does not matter,
/// those where it does are found.
pub(crate) fn matches(
    set: &RuleSet,
    text: &str,
    work: &mut Work,
    matters: impl Fn(Range<usize>) -> bool,
) -> Vec<Match> {
    work.add(Step::Sieved, text.len());
    let mut run = Run {
        set,
        matters: &matters,
        text,
        work,
        memory: context::Memory::default(),
        gaps: Gaps::default(),
        waiting: Vec::new(),
        hits: Vec::new(),
        slots: Vec::new(),
        seen: Vec::new(),
        found: Vec::new(),
        sentence: 1,
        anchored: false,
        mentioned: [false; 2],
        mentions: 0,
        over: false,
    };
    run.pass();
    run.found
}

struct Run<'a> {
    set: &'a RuleSet,
    matters: &'a dyn Fn(Range<usize>) -> bool,
    text: &'a str,
    work: &'a mut Work,
    /// Literals that others may yet come before.
    waiting: Vec<Hit>,
    /// Of the sentence so far.
    hits: Vec<Hit>,
    /// Of each element, the latest hit that ends a row up to it.
    slots: Vec<Slot>,
    /// Of each rule, where it does not matter and where it does.
    seen: Vec<[Seen; 2]>,
    memory: context::Memory,
    gaps: Gaps,
    found: Vec<Match>,
    sentence: usize,
    /// Whether the sentence so far has a literal that a pattern hangs on.
    anchored: bool,
    /// Whether the last sentence, and the one before it, spoke about attacks.
    mentioned: [bool; 2],
    mentions: usize,
    /// Whether too much work was done to go on.
    over: bool,
}

impl Run<'_> {
    /// Reads the sentences that the sieve leaves, and those that follow a mention.
    fn pass(&mut self) {
        let (finder, text) = (&self.set.tables.finder, self.text.as_bytes());
        let mut sieve = Sieve::new(finder, text);
        while !self.over
            && let Some(spot) = sieve.next()
        {
            let mut closed = None;
            let from = spot.sentence.saturating_sub(finder.crossing);
            reader::read(finder, text, from, |event| {
                let end = self.event(spot, event);
                if matches!(event, Event::Stop(_)) {
                    closed = end;
                }
                end.is_some()
            });
            let read = closed.unwrap_or(text.len()).saturating_sub(from);
            self.work.add(Step::Read, read + BLOCK);
            let Some(end) = closed else { break };
            self.waiting.clear();
            sieve.resume(end);
        }
        self.settle(text.len());
        self.close();
    }

    /// Takes in an event; gives the place back behind which the text need not be read further.
    #[inline]
    fn event(&mut self, spot: Spot, event: Event) -> Option<usize> {
        match event {
            // What follows is not looked at any more.
            Event::Literal(..) if self.over => None,
            Event::Stop(end) if self.over => Some(end),
            Event::Literal(literal, start, end) => {
                let entry = &self.set.tables.literals[usize::from(literal)];
                if end > spot.sentence && bounded(self.text, entry, start, end) {
                    self.waiting.push(Hit { flags: entry.flags, literal, start, end });
                    if self.waiting.len() >= WAITING {
                        self.settle(start);
                    }
                }
                None
            }
            Event::Stop(end) if end > spot.sentence => {
                self.settle(end);
                self.close();
                let mentioned = self.mentioned[0] || self.mentioned[1];
                (end >= spot.end && !mentioned).then_some(end)
            }
            Event::Stop(_) => None,
        }
    }

    /// Puts those in order that end up to a place: no more of them will come.
    fn settle(&mut self, place: usize) {
        let mut waiting = std::mem::take(&mut self.waiting);
        // By where they end, the longest first.
        waiting.sort_unstable_by_key(|hit| (hit.end, hit.start, hit.literal));
        let ready = waiting.partition_point(|hit| hit.end <= place);
        for same in waiting[..ready].chunk_by(|one, next| one.end == next.end) {
            self.anchored |= same.iter().any(|hit| hit.flags & ANCHOR != 0);
            self.hits.extend_from_slice(same);
            if self.hits.len() >= SENTENCE {
                let kept = self.hits[self.hits.len() - KEPT..].to_vec();
                let anchored = kept.iter().any(|hit| hit.flags & ANCHOR != 0);
                self.close();
                self.hits = kept;
                self.anchored = anchored;
            }
        }
        waiting.drain(..ready);
        self.waiting = waiting;
    }

    /// Ends a sentence.
    fn close(&mut self) {
        let mentions = self.hits.iter().any(|hit| hit.flags & MENTIONS != 0);
        self.work.add(Step::Literals, self.hits.len());
        if self.anchored {
            self.patterns(mentions);
            self.sentence += 1;
            self.over = !self.work.allows(0);
        }
        self.mentions += usize::from(mentions);
        if !self.hits.is_empty() {
            self.mentioned = [mentions, self.mentioned[0]];
            self.hits.clear();
        }
        self.anchored = false;
    }

    fn patterns(&mut self, mentions: bool) {
        let tables = &self.set.tables;
        if self.slots.is_empty() {
            self.slots = vec![Slot::default(); tables.elements];
            self.seen = vec![[Seen::default(); 2]; self.set.rules.len()];
        }
        let about = context::About {
            here: mentions,
            before: self.mentioned[0] || self.mentioned[1],
            often: self.mentions >= 3,
        };
        let mut elements = 0;
        for at in 0..self.hits.len() {
            let hit = self.hits[at];
            let literal = &tables.literals[usize::from(hit.literal)];
            let from = literal.classes as usize;
            for &class in &tables.classes[from..from + usize::from(literal.count)] {
                let class = usize::from(class);
                let uses = tables.index[class] as usize..tables.index[class + 1] as usize;
                elements += uses.len();
                for one in &tables.uses[uses] {
                    let element = usize::from(one.element);
                    if self.seen[usize::from(one.rule)][1].done() {
                        continue;
                    }
                    let start = if one.ends & FIRST != 0 {
                        hit.start
                    } else {
                        let before = self.slots[element - 1];
                        if before.sentence != self.sentence
                            || before.end > hit.start
                            || !self.gaps.near(self.text, before.end, hit.start, one.gap)
                        {
                            continue;
                        }
                        before.start
                    };
                    if one.ends & LAST == 0 {
                        self.slots[element] = Slot { sentence: self.sentence, start, end: hit.end };
                        continue;
                    }
                    if one.ends & OPENS != 0 && !edges::opens(self.text, start)
                        || one.ends & CLOSES != 0 && !edges::closes(self.text, hit.end)
                    {
                        continue;
                    }
                    self.complete(about, one.rule, start, hit.end);
                }
            }
        }
        self.work.add(Step::Elements, elements);
        self.work.add(Step::Around, std::mem::take(&mut self.gaps.read) + self.memory.take());
    }

    /// Weighs a complete pattern.
    fn complete(&mut self, about: context::About, index: u16, start: usize, end: usize) {
        self.work.add(Step::Matches, 1);
        let (set, text) = (self.set, self.text);
        let rule = &set.rules[usize::from(index)];
        let seen = &mut self.seen[usize::from(index)];
        if rule.at_least > 1 {
            let seen = &mut seen[1];
            seen.full += 1;
            if seen.full < rule.at_least {
                return;
            }
            // Twice the number that is needed counts in full.
            let factor = (f32::from(seen.full) / f32::from(rule.at_least) * 0.7).min(1.0);
            match self.found.iter_mut().find(|old| old.rule == index) {
                Some(old) => *old = Match { end, factor, ..*old },
                None => self.found.push(Match { rule: index, start, end, factor }),
            }
            return;
        }
        let place = context::Place { text, hits: &self.hits, tables: &set.tables };
        let seen = &mut seen[usize::from((self.matters)(start..end))];
        // One that overlaps the last of its rule may yet make that longer.
        let joins = self.found.last().is_some_and(|old| old.rule == index && old.end > start);
        let least = if joins { 0.0 } else { seen.least() };
        let factor = context::factor(&place, &mut self.memory, about, rule, (start, end), least);
        if factor <= 0.0 {
            return;
        }
        if let Some(old) = self.found.last_mut()
            && old.rule == index
            && old.end > start
            && old.factor >= factor
        {
            old.end = old.end.max(end);
        } else if seen.takes(factor) {
            self.found.push(Match { rule: index, start, end, factor });
        }
    }
}

/// Whether the literal meets the edges of words where it must.
fn bounded(text: &str, literal: &Literal, start: usize, end: usize) -> bool {
    let word = |c: char| c == '_' || c.is_alphanumeric();
    let bytes = text.as_bytes();
    let left = literal.flags & LEFT == 0
        || start == 0
        || match bytes[start - 1] {
            byte if byte.is_ascii() => !(byte == b'_' || byte.is_ascii_alphanumeric()),
            _ => !text.get(..start).and_then(|head| head.chars().next_back()).is_some_and(word),
        };
    left && (literal.flags & RIGHT == 0
        || match bytes.get(end) {
            None => true,
            Some(byte) if byte.is_ascii() => !(*byte == b'_' || byte.is_ascii_alphanumeric()),
            _ => !text.get(end..).and_then(|tail| tail.chars().next()).is_some_and(word),
        })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::finding::Category;
    use crate::rules::{OwnRule, Stance, WORDS};

    fn without_sieve(set: &RuleSet) -> RuleSet {
        let mut set = set.clone();
        set.tables.finder.blind = true;
        set
    }

    #[test]
    fn the_sieve_tells_every_builtin_literal() {
        assert!(!RuleSet::builtin().tables.finder.blind);
    }

    #[test]
    fn the_sieve_changes_nothing_for_own_rules() {
        let rule = |pattern: &str| OwnRule {
            id: "own".to_owned(),
            category: Category::IndirectInjection,
            weight: 0.5,
            stance: Stance::Raw,
            patterns: vec![pattern.to_owned()],
            explanation: "a test".to_owned(),
        };
        for (pattern, text) in [
            ("'*bar'", "a foobar here"),
            ("'##'", "one ## two"),
            ("' odd'", "an odd one"),
            ("'one. two'", "say one. two now. and one"),
            ("'x. y' ~2 'zed'", "a. x. y or zed. b"),
            ("'ab*'", "some abnormal thing"),
            ("'末'", "这是末尾"),
        ] {
            let set = RuleSet::own(&[rule(pattern)]).unwrap();
            assert_eq!(matches(&set, text, &mut Work::default(), |_| true).len(), 1, "{pattern}");
            assert_eq!(
                matches(&set, text, &mut Work::default(), |_| true),
                matches(&without_sieve(&set), text, &mut Work::default(), |_| true),
                "{pattern}"
            );
        }
    }

    /// Words of the rules, what parts them, and noise.
    fn text() -> impl Strategy<Value = String> {
        let words: Vec<&str> =
            WORDS.iter().flat_map(|(_, _, words)| words.iter().copied()).collect();
        let known = prop::sample::select(words).prop_map(|word| word.replace('*', ""));
        let parts = prop::sample::select(vec![
            " ", " ", " ", " ", ". ", "\n", "\n\n", "! ", "。", "_", "", ", ", " \"", "\" ", "é",
            "x", "7",
        ]);
        let noise = prop_oneof![
            8 => Just(String::new()),
            1 => "[a-z]{1,9}",
            1 => ".{0,3}",
            1 => " {0,70}",
        ];
        prop::collection::vec((known, parts, noise), 0..60).prop_map(|pieces| {
            let all: String =
                pieces.into_iter().flat_map(|(a, b, c)| [a, b.to_owned(), c]).collect();
            all.to_lowercase()
        })
    }

    proptest! {
        #[test]
        fn the_sieve_changes_nothing(text in text()) {
            let set = RuleSet::builtin();
            let mut work = Work::default();
            let slow = matches(&without_sieve(&set), &text, &mut work, |_| true);
            prop_assert_eq!(matches(&set, &text, &mut work, |_| true), slow);
        }
    }
}
