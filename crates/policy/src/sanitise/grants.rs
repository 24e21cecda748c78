//! What only a policy can do wrong: grant where it should restrict, take back its own rules,
//! switch off what stands around it, or lend its authority to data.
//!
//! A rule is a row of groups of phrases that occur in one sentence. Attacks that are attacks in
//! any text are found by `detect`.

#[rustfmt::skip]
mod rules;
#[rustfmt::skip]
mod words;

use std::ops::Range;

use memchr::memmem;
use wardkeep_detect::finding::{Category, Finding};
use wardkeep_detect::views::{Limits, views};

use self::rules::RULES;
use super::stance::{is_negated, is_told};

/// One rule.
struct Rule {
    id: &'static str,
    reason: &'static str,
    weight: f32,
    /// A phrase of each occurs.
    groups: &'static [&'static [&'static [&'static str]]],
    /// How the groups stand to each other.
    order: Order,
    /// Whether "never" before it makes it harmless.
    negatable: bool,
}

#[derive(Clone, Copy)]
enum Order {
    /// In this order, with at most so many words in between.
    Within(usize),
    /// Anywhere in the sentence.
    Any,
}

/// What a policy says that no policy should.
pub(super) fn find(text: &str) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for view in &views(text, &Limits::default()).views {
        let sentences = Sentences::of(view.text());
        for rule in &RULES {
            for range in sentences.matches(rule) {
                let span = view.span(range);
                let known = findings.iter().any(|one| {
                    one.rule == rule.id && one.span.start < span.end && span.start < one.span.end
                });
                if !known {
                    findings.push(Finding {
                        rule: rule.id.into(),
                        category: Category::BehaviorManipulation,
                        weight: rule.weight,
                        span,
                        path: view.path().to_vec(),
                        reason: rule.reason.into(),
                    });
                }
            }
        }
    }
    findings
}

/// A text cut into sentences.
struct Sentences<'a> {
    text: &'a str,
    /// Where each ends.
    ends: Vec<usize>,
    grams: Grams,
}

/// Which rows of three bytes a text has, so that most phrases need no search.
struct Grams(Vec<u64>);

impl Grams {
    fn of(text: &str) -> Self {
        let mut bits = vec![0; 1024];
        for row in text.as_bytes().windows(3) {
            let slot = Self::slot(row);
            bits[slot / 64] |= 1 << (slot % 64);
        }
        Self(bits)
    }

    fn slot(row: &[u8]) -> usize {
        let mixed = row
            .iter()
            .fold(0u32, |sum, byte| sum.wrapping_mul(0x9e37).wrapping_add((*byte).into()));
        (mixed.wrapping_mul(0x9e37_79b1) >> 16) as usize
    }

    /// Whether a phrase may be in the text.
    fn may_hold(&self, phrase: &str) -> bool {
        phrase.as_bytes().windows(3).all(|row| {
            let slot = Self::slot(row);
            self.0[slot / 64] & 1 << (slot % 64) != 0
        })
    }
}

impl<'a> Sentences<'a> {
    fn of(text: &'a str) -> Self {
        let mut ends = Vec::new();
        let mut in_table = text.starts_with('|');
        let mut characters = text.char_indices().peekable();
        while let Some((at, character)) = characters.next() {
            let next = characters.peek().map(|(_, next)| *next);
            let end = match character {
                '。' | '！' | '？' | '।' | '؟' => true,
                '|' => in_table,
                '.' | '!' | '?' => next.is_none_or(char::is_whitespace),
                // A line goes on where the next one is indented or starts with a letter.
                '\n' => next.is_some_and(|next| {
                    next == '\n'
                        || (!next.is_alphanumeric() && !matches!(next, ' ' | '`' | '(' | '"'))
                        || starts_item(&text[at + 1..])
                }),
                _ => false,
            };
            if end {
                ends.push(at + character.len_utf8());
            }
            if character == '\n' {
                in_table = next == Some('|');
            }
        }
        ends.push(text.len());
        Self { text, ends, grams: Grams::of(text) }
    }

    fn sentence(&self, at: usize) -> Range<usize> {
        let number = self.ends.partition_point(|end| *end <= at).min(self.ends.len() - 1);
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        start..self.ends[number].max(start)
    }

    /// Where a rule is met, once a sentence.
    fn matches(&self, rule: &Rule) -> Vec<Range<usize>> {
        let Some((first, rest)) = rule.groups.split_first() else { return Vec::new() };
        let anchors = self.hits(first);
        if anchors.is_empty() {
            return Vec::new();
        }
        let rest: Vec<Vec<Range<usize>>> = rest.iter().map(|group| self.hits(group)).collect();
        let mut met: Vec<Range<usize>> = Vec::new();
        for anchor in anchors {
            let sentence = self.sentence(anchor.start);
            if met.last().is_some_and(|last| sentence.contains(&last.start)) {
                continue;
            }
            let Some(all) = self.row(rule.order, anchor, &rest, &sentence) else { continue };
            if rule.negatable && self.is_negated(&sentence, &all) {
                continue;
            }
            met.push(all[0].start..all.iter().map(|one| one.end).max().unwrap_or(all[0].end));
        }
        met
    }

    /// One hit of each group in a sentence, in the order of the text.
    fn row(
        &self,
        order: Order,
        anchor: Range<usize>,
        rest: &[Vec<Range<usize>>],
        sentence: &Range<usize>,
    ) -> Option<Vec<Range<usize>>> {
        let mut all = vec![anchor.clone()];
        let mut last = anchor;
        for hits in rest {
            let from = match order {
                Order::Any => sentence.start,
                Order::Within(_) => last.end,
            };
            let mut here = hits[hits.partition_point(|hit| hit.start < from)..]
                .iter()
                .take_while(|hit| hit.start < sentence.end);
            let hit = match order {
                Order::Any => here
                    .find(|hit| all.iter().all(|one| hit.end <= one.start || one.end <= hit.start)),
                Order::Within(gap) => {
                    here.next().filter(|hit| words(&self.text[last.end..hit.start]) <= gap)
                }
            }?;
            all.push(hit.clone());
            last = hit.clone();
        }
        all.sort_by_key(|one| one.start);
        Some(all)
    }

    fn is_negated(&self, sentence: &Range<usize>, all: &[Range<usize>]) -> bool {
        let start = all.iter().map(|one| one.start).min().unwrap_or(sentence.start);
        let end = all.iter().map(|one| one.end).max().unwrap_or(start);
        let first = all.iter().filter(|one| one.start == start).map(|one| one.end).max();
        // The words of the match itself are no negation of it.
        let mut inner = String::with_capacity(end - start);
        let mut at = first.unwrap_or(start);
        for one in all {
            if one.start >= at {
                inner.push_str(&self.text[at..one.start]);
                inner.push(' ');
                at = one.end;
            }
        }
        let (before, after) = (&self.text[sentence.start..start], &self.text[end..]);
        let near = &after[..after.floor_char_boundary(120.min(after.len()))];
        is_negated(before, &inner, &self.text[end..sentence.end]) || is_told(before, near)
    }

    /// Phrases of a group, in order.
    fn hits(&self, group: &[&[&str]]) -> Vec<Range<usize>> {
        let mut hits = Vec::new();
        for phrase in group.iter().copied().flatten() {
            self.phrase(phrase, &mut hits);
        }
        hits.sort_by_key(|hit| (hit.start, hit.end));
        hits
    }

    /// A phrase is matched as whole words; `stem*` may go on. Scripts that write without spaces
    /// are matched anywhere.
    fn phrase(&self, phrase: &str, hits: &mut Vec<Range<usize>>) {
        let (phrase, open) = match phrase.strip_suffix('*') {
            Some(stem) => (stem, true),
            None => (phrase, false),
        };
        if !self.grams.may_hold(phrase) {
            return;
        }
        let unspaced = phrase.chars().next().is_some_and(is_unspaced);
        for start in memmem::find_iter(self.text.as_bytes(), phrase) {
            let end = start + phrase.len();
            let before = self.text[..start].chars().next_back();
            let after = self.text[end..].chars().next();
            let starts = !before.is_some_and(char::is_alphanumeric)
                || !phrase.starts_with(char::is_alphanumeric);
            let ends = open
                || !after.is_some_and(char::is_alphanumeric)
                || !phrase.ends_with(char::is_alphanumeric);
            if unspaced || (starts && ends) {
                hits.push(start..end);
            }
        }
    }
}

fn words(text: &str) -> usize {
    text.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count()
}

/// Whether a line starts a numbered item.
fn starts_item(line: &str) -> bool {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    digits > 0 && matches!(line.as_bytes().get(digits), Some(b'.' | b')'))
}

/// Han, kana and Hangul; Hangul has spaces, but endings hang on its words.
fn is_unspaced(character: char) -> bool {
    matches!(character, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}')
}
