//! Said, forbidden, told or quoted: how much of a rule's weight counts where it matched.

use super::compile::{CANCELS, MENTIONS, NEGATES, NEGATES_BACK, SUBJECT, Tables, YOU};
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
    /// With the words that are looked up backwards.
    pub(crate) tables: &'a Tables,
}

/// What stands before the place of the last match: several rules often match at one.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    start: usize,
    before: Option<u16>,
    opening: Option<Option<(char, usize)>>,
    /// Bytes that were read.
    read: usize,
}

impl Memory {
    /// How many bytes were read since this was asked last.
    pub(crate) fn take(&mut self) -> usize {
        std::mem::take(&mut self.read)
    }
}

/// How much of the rule's weight counts, from 0 to 1; 0 where it is no more than `least`.
pub(crate) fn factor(
    place: &Place<'_>,
    memory: &mut Memory,
    about: About,
    rule: &Rule,
    (start, end): (usize, usize),
    least: f32,
) -> f32 {
    if rule.stance == Stance::Raw {
        return 1.0;
    }
    let (text, hits) = (place.text, place.hits);
    if memory.start != start {
        *memory = Memory { start, read: memory.read, ..Memory::default() };
    }
    let quoted = rule.stance != Stance::Order && {
        if memory.opening.is_none() {
            let opening = opening(text, start);
            memory.read += start - opening.map_or(start.saturating_sub(QUOTE), |(_, at)| at);
            memory.opening = Some(opening);
        }
        memory.opening.flatten().is_some_and(|(mark, at)| {
            memory.read += QUOTE / 8;
            quoted(text, mark, at, end)
        })
    };
    let mentioned = about.here && mention_outside(hits, start, end);
    let here = match (quoted, mentioned) {
        (true, true) => 0.1,
        (true, false) => 0.4,
        (false, true) => 0.35,
        (false, false) => 1.0,
    };
    let around = match (about.before, about.often) {
        (true, _) if quoted => 0.3,
        (true, _) => 0.6,
        (false, true) => 0.75,
        (false, false) => 1.0,
    };
    // The words before it can only make it less.
    if here * around <= least {
        return 0.0;
    }
    let mut told = 1.0;
    if matches!(rule.stance, Stance::Imperative | Stance::Order) {
        let before = *memory.before.get_or_insert_with(|| before(place, start));
        if before & NEGATES != 0 || negated_behind(text, hits, start, end) {
            return 0.0;
        }
        if before & SUBJECT != 0 && before & YOU == 0 {
            told = 0.2;
        }
    }
    told * here * around
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
    let ends = |byte: &u8| matches!(byte, b'.' | b'!' | b'?' | b':' | b',' | b'\n' | b';');
    let mut cut = head.bytes().rposition(|byte| ends(&byte)).map_or(0, |at| at + 1);
    if !head.is_ascii() {
        let wide = head[cut..].rfind(['。', '，', '、']);
        cut += wide.map_or(0, |at| at + '。'.len_utf8());
    }
    let head = &head[cut..];
    let mut found = 0;
    let (mut last, mut cancelled): (Option<&str>, bool) = (None, false);
    let inner = |c: char| c.is_alphanumeric() || matches!(c, '\'' | '’' | '_');
    for (count, word) in
        head.rsplit(|c| !inner(c)).filter(|word| !word.is_empty()).take(6).enumerate()
    {
        let flags = flags(place.tables, word);
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
            found |= self::flags(place.tables, &head[at..to]) & (negates | YOU);
        }
        last = Some(word);
    }
    // Scripts without spaces: the last characters may be a negation.
    if !head.is_ascii() {
        let tail: Vec<usize> = head.char_indices().rev().take(6).map(|(at, _)| at).collect();
        for (count, &at) in tail.iter().enumerate() {
            for &to in tail[..count].iter().chain(&[head.len()]) {
                found |= flags(place.tables, &head[at..to]) & (NEGATES | YOU);
            }
        }
    }
    found
}

fn flags(tables: &Tables, word: &str) -> u16 {
    let Some(first) = word.bytes().next().map(usize::from) else { return 0 };
    let words = usize::from(tables.initials[first])..usize::from(tables.initials[first + 1]);
    let words = &tables.backwards[words];
    words.binary_search_by(|(known, _)| (**known).cmp(word)).map_or(0, |at| words[at].1)
}

/// Whether it stands in quotation marks or in code inside prose; the quotes of a data format,
/// behind a colon, a bracket or an equals sign, do not count.
fn quoted(text: &str, mark: char, at: usize, end: usize) -> bool {
    let before = &text[..at];
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
    let tail = text.get(end..).unwrap_or_default();
    let tail = &tail[..tail.ceil_char_boundary(QUOTE * 2)];
    let line = &tail[..memchr::memchr(b'\n', tail.as_bytes()).unwrap_or(tail.len())];
    if mark.is_ascii() { line.contains(mark) } else { line.contains(close) }
}

/// The quotation mark that opens nearest before a place, and where.
fn opening(text: &str, start: usize) -> Option<(char, usize)> {
    let head = text.get(..start)?;
    let mut at = start;
    // By bytes: most of them are letters of ASCII.
    for byte in head.bytes().rev().take(QUOTE + 3) {
        at -= 1;
        match byte {
            b'\n' => return None,
            // The rest of a character, or not one of the marks.
            0x80..0xc0 => continue,
            b'"' | b'`' | b'\'' | 0xc2 | 0xe2 | 0xe3 => {}
            _ => continue,
        }
        if start - at > QUOTE {
            return None;
        }
        match head[at..].chars().next()? {
            mark @ ('"' | '`' | '“' | '„' | '«' | '「' | '『' | '‘') => {
                return Some((mark, at));
            }
            // An apostrophe stands behind a letter.
            '\'' if !head[..at].chars().next_back().is_some_and(char::is_alphanumeric) => {
                return Some(('\'', at));
            }
            '”' | '»' | '」' | '』' => return None,
            _ => {}
        }
    }
    None
}
