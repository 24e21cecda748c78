//! Said, forbidden, told or quoted: how much of a rule's weight counts where it matched.

use std::borrow::Cow;

use super::compile::{CANCELS, MENTIONS, NEGATES, NEGATES_BACK, SUBJECT, YOU};
use super::matcher::Hit;
use super::{Rule, Stance};

/// How far a quotation mark is looked for.
const QUOTE: usize = 96;
/// First byte of a letter of Hindi.
const DEVANAGARI: u8 = 0xe0;
/// How far the words before a match are looked at.
const BEFORE: usize = 64;

/// Whether attacks are what the text is about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct About {
    /// In this sentence.
    pub(crate) here: bool,
    /// In one of the two before it.
    pub(crate) before: bool,
    /// All over the text.
    pub(crate) often: bool,
}

/// Where a rule matched.
pub(crate) struct Place<'a> {
    /// The view.
    pub(crate) text: &'a str,
    /// What was found in the sentence.
    pub(crate) hits: &'a [Hit],
    /// Words that are looked up backwards.
    pub(crate) words: &'a [(Cow<'static, str>, u16)],
}

/// How much of the rule's weight counts, from 0 to 1.
pub(crate) fn factor(
    place: &Place<'_>,
    about: About,
    rule: &Rule,
    start: usize,
    end: usize,
) -> f32 {
    if rule.stance == Stance::Raw {
        return 1.0;
    }
    let (text, hits) = (place.text, place.hits);
    let mut factor = 1.0;
    if matches!(rule.stance, Stance::Imperative | Stance::Order) {
        let before = before(place, start);
        if before & NEGATES != 0 || negated_behind(text, hits, start, end) {
            return 0.0;
        }
        if before & SUBJECT != 0 && before & YOU == 0 {
            factor *= 0.2;
        }
    }
    let quoted = rule.stance != Stance::Order && quoted(text, start, end);
    let mentioned = about.here && mention_outside(hits, start, end);
    if quoted {
        factor *= if mentioned { 0.1 } else { 0.4 };
    } else if mentioned {
        factor *= 0.35;
    }
    if about.before {
        factor *= if quoted { 0.3 } else { 0.6 };
    } else if about.often {
        factor *= 0.75;
    }
    factor
}

/// A mention that is not itself part of the match.
fn mention_outside(hits: &[Hit], start: usize, end: usize) -> bool {
    hits.iter().any(|hit| hit.flags & MENTIONS != 0 && (hit.end <= start || hit.start >= end))
}

/// Whether a negation stands just behind, or before a verb that comes last, as some languages
/// have it.
fn negated_behind(text: &str, hits: &[Hit], start: usize, end: usize) -> bool {
    hits.iter().any(|hit| {
        hit.flags & NEGATES_BACK != 0
            && hit.start > start
            && (hit.end > end || text.as_bytes()[hit.start] == DEVANAGARI)
            && hit.start < end.saturating_add(12)
    })
}

/// What the words just before a place say: a negation among the last five, a subject that is the
/// last, someone addressed among the last six. Punctuation ends the look.
fn before(place: &Place<'_>, start: usize) -> u16 {
    let mut from = start.saturating_sub(BEFORE);
    while !place.text.is_char_boundary(from) {
        from += 1;
    }
    let head = &place.text[from..start];
    let cut = head
        .rfind(['.', '!', '?', ':', ',', '\n', '。', '，', '、', ';'])
        .map_or(0, |at| at + head[at..].chars().next().map_or(1, char::len_utf8));
    let head = &head[cut..];
    let mut found = 0;
    let (mut last, mut cancelled): (Option<&str>, bool) = (None, false);
    let inner = |c: char| c.is_alphanumeric() || matches!(c, '\'' | '’' | '_');
    for (count, word) in
        head.rsplit(|c| !inner(c)).filter(|word| !word.is_empty()).take(6).enumerate()
    {
        let flags = flags(place.words, word);
        found |= flags & YOU;
        if flags & CANCELS != 0 {
            cancelled = true;
            // Whoever must not hesitate to do a thing is told to do it.
            found &= !SUBJECT;
        }
        if count < 5 && !cancelled {
            found |= flags & NEGATES;
        }
        if count == 0 {
            found |= flags & SUBJECT;
        }
        // Two words that belong together.
        if let Some(last) = last
            && count < 5
        {
            let at = word.as_ptr() as usize - head.as_ptr() as usize;
            let to = last.as_ptr() as usize - head.as_ptr() as usize + last.len();
            let negates = if cancelled { 0 } else { NEGATES };
            found |= self::flags(place.words, &head[at..to]) & (negates | YOU);
        }
        last = Some(word);
    }
    // Scripts without spaces: the last characters may be a negation.
    if !head.is_ascii() {
        let tail: Vec<usize> = head.char_indices().rev().take(6).map(|(at, _)| at).collect();
        for (count, &at) in tail.iter().enumerate() {
            for &to in tail[..count].iter().chain(&[head.len()]) {
                found |= flags(place.words, &head[at..to]) & (NEGATES | YOU);
            }
        }
    }
    found
}

fn flags(words: &[(Cow<'static, str>, u16)], word: &str) -> u16 {
    let word = word.as_bytes();
    let order = |known: &[u8]| known.first().cmp(&word.first()).then_with(|| known.cmp(word));
    words.binary_search_by(|(known, _)| order(known.as_bytes())).map_or(0, |at| words[at].1)
}

/// Whether it stands in quotation marks or in code inside prose; the quotes of a data format,
/// behind a colon, a bracket or an equals sign, do not count.
fn quoted(text: &str, start: usize, end: usize) -> bool {
    let Some((mark, before)) = opening(text, start) else { return false };
    let close = match mark {
        '“' | '„' => ['”', '“'],
        '«' => ['»', '»'],
        '‘' => ['’', '’'],
        '「' => ['」', '」'],
        '『' => ['』', '』'],
        other => [other, other],
    };
    let prose = before.trim_end_matches(' ');
    let spaced = prose.len() < before.len() || before.is_empty();
    let lead = prose.chars().next_back();
    let in_data =
        matches!(lead, Some(':' | '{' | '[' | '=' | ',' | '\\')) && matches!(mark, '"' | '\'');
    let asian = matches!(mark, '「' | '『' | '“');
    if in_data || !(spaced || asian || mark == '`' || lead.is_some_and(|c| !c.is_alphanumeric())) {
        return false;
    }
    let mut tail = text.get(end..).unwrap_or("").char_indices();
    tail.by_ref()
        .take_while(|&(at, c)| at < QUOTE * 2 && c != '\n')
        .any(|(_, c)| close.contains(&c))
}

/// The quotation mark that opens nearest before a place, and the text before it.
fn opening(text: &str, start: usize) -> Option<(char, &str)> {
    let head = text.get(..start)?;
    for (at, c) in head.char_indices().rev() {
        if start - at > QUOTE || c == '\n' {
            return None;
        }
        match c {
            '"' | '`' | '“' | '„' | '«' | '「' | '『' | '‘' => {
                return Some((c, &head[..at]));
            }
            '\'' => {
                // An apostrophe stands behind a letter.
                let before = &head[..at];
                if !before.chars().next_back().is_some_and(char::is_alphanumeric) {
                    return Some((c, before));
                }
            }
            '”' | '»' | '」' | '』' => return None,
            _ => {}
        }
    }
    None
}
