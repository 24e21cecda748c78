//! Said, forbidden, told or quoted: how much of a rule's weight counts where it matched.

use super::compile::{
    AGENT, ANY, ASKS, CANCELS, ELSEWHERE, JOINS, MATTER, MENTIONS, NEGATES, NEGATES_BACK, OWN,
    PIECE, REPORTS, SUBJECT, Tables, YOU,
};
use super::matcher::Hit;
use super::{Rule, Stance};

/// How far a quotation mark is looked for.
const QUOTE: usize = 160;
/// First byte of a letter of Hindi.
const DEVANAGARI: u8 = 0xe0;
/// Rules about instructions that are to be dropped: everybody drops some, those of a recipe or of last week.
const OVERRIDES: [&str; 4] = [
    "override.earlier-instructions",
    "override.all-instructions",
    "override.earlier-words",
    "override.reset",
];
/// Rules about what somebody has rules for, or is in charge of.
const RULES: [&str; 3] = ["extract.your-rules", "extract.instructions-plain", "authority.claim"];
/// Rules about a text or a secret, of which there are many that are no agent's.
const TEXTS: [&str; 2] = ["extract.above", "extract.secret"];
/// The rule about the prompt: people write such for agents of their own.
const PROMPT: &str = "extract.system-prompt";
/// The rule about texts that speak of what an agent must do: most rules for agents say what it must not.
const ADDRESSES: &str = "indirect.addresses-ai";
/// Behind what is asked about, where the question comes last: "way to".
const WAYS: [&str; 4] = ["方法", "방법", "तरीका", "にはどう"];
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
            quoted(place, mark, at, end)
        })
    };
    let mentioned = about.here && mention_outside(hits, start, end);
    let here = match (quoted, mentioned) {
        (true, true) => 0.1,
        (true, false) if memory.opening.flatten().is_some_and(|(_, at)| reported(place, at)) => 0.2,
        (true, false) => 0.35,
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
        } else if OVERRIDES.contains(&&*rule.id) {
            if before & YOU == 0 && (before & ASKS != 0 || asked_behind(text, end)) {
                told = 0.35;
            } else if elsewhere(place, end, ELSEWHERE) {
                told = 0.45;
            }
        } else if RULES.contains(&&*rule.id) && elsewhere(place, end, MATTER)
            || TEXTS.contains(&&*rule.id) && piece(place, start, end)
        {
            told = 0.4;
        } else if rule.id == ADDRESSES && forbids(place, start, end) {
            told = 0.2;
        } else if rule.id == PROMPT && another(place, start, end) {
            told = 0.35;
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

/// Whether a quotation that opens at a place is announced as what somebody says, or as an example.
fn reported(place: &Place<'_>, at: usize) -> bool {
    let mut from = at.saturating_sub(BEFORE);
    while !place.text.is_char_boundary(from) {
        from += 1;
    }
    let inner = |c: char| c.is_alphanumeric();
    let words = place.text[from..at].rsplit(|c| !inner(c)).filter(|word| !word.is_empty());
    words.take(3).any(|word| flags(place.tables, word) & REPORTS != 0)
}

/// Whether what matched is asked about by the words behind it.
fn asked_behind(text: &str, end: usize) -> bool {
    let tail = text.get(end..).unwrap_or_default();
    if tail.bytes().next().is_none_or(|byte| byte.is_ascii()) && !tail.starts_with(' ') {
        return false;
    }
    let tail = &tail[..tail.floor_char_boundary(2 * BEFORE)];
    let tail = tail.split(['。', '.', '!', '?', '\n', '！', '？']).next().unwrap_or_default();
    !tail.is_ascii() && WAYS.iter().any(|way| tail.contains(way))
}

/// Whether a negation stands within a match.
fn forbids(place: &Place<'_>, start: usize, end: usize) -> bool {
    let text = place.text.get(start..end).unwrap_or_default();
    text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '\'' | '’')))
        .any(|word| !word.is_empty() && flags(place.tables, word) & NEGATES != 0)
}

/// Whether a prompt is meant that is not the agent's: "a system prompt", "the prompt for my bot".
fn another(place: &Place<'_>, start: usize, end: usize) -> bool {
    let says = |word: &str, flag: u16| flags(place.tables, word) & flag != 0;
    let words = |text: &'_ str| -> Vec<String> {
        let split = text.split(|c: char| !c.is_alphanumeric());
        split.filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };
    let inside = words(place.text.get(start..end).unwrap_or_default());
    // The last words of it are the prompt's name, one or two.
    let named = inside.iter().rev().skip(1).take(2).any(|word| says(word, ANY));
    let tail = place.text.get(end..).unwrap_or_default();
    let mut behind = words(&tail[..tail.floor_char_boundary(BEFORE / 2)]).into_iter();
    let first = behind.next().is_some_and(|word| says(&word, ELSEWHERE) || word == "of");
    let own = first && behind.next().is_some_and(|word| says(&word, OWN));
    (named || own) && !inside.iter().any(|word| says(word, YOU))
}

/// Whether the words behind a match say that the instructions of something else are meant, and none of
/// the agent's.
fn elsewhere(place: &Place<'_>, end: usize, prepositions: u16) -> bool {
    let tail = place.text.get(end..).unwrap_or_default();
    let tail = &tail[..tail.floor_char_boundary(BEFORE)];
    let ends = |c: char| matches!(c, '.' | '!' | '?' | ':' | ',' | '\n' | ';');
    let tail = tail.split(ends).next().unwrap_or_default();
    let mut words = tail.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let says = |word: &str, flag: u16| flags(place.tables, word) & flag != 0;
    words.next().is_some_and(|first| says(first, prepositions)) && {
        let mut rest = words.take(4).take_while(|word| !says(word, JOINS)).peekable();
        rest.peek().is_some() && !rest.any(|word| says(word, AGENT))
    }
}

/// Whether a match names a piece of text or the like, or the word behind it does.
fn piece(place: &Place<'_>, start: usize, end: usize) -> bool {
    let behind = place.text.get(end..).unwrap_or_default();
    let behind = &behind[..behind.floor_char_boundary(BEFORE / 2)];
    // What follows without a gap, or behind a sign, is not the same phrase.
    let next = behind.strip_prefix(' ').unwrap_or_default();
    let next = next.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let inside = place.text.get(start..end).unwrap_or_default();
    let mut words = inside.split(|c: char| !c.is_alphanumeric()).chain([next]);
    words.any(|word| !word.is_empty() && flags(place.tables, word) & PIECE != 0)
}

/// What the words just before a place say: a negation among the last five, a subject that is the
/// last, someone addressed among the last six, a question. Punctuation ends the look.
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
    let (mut last, mut cancelled, mut joined): (Option<&str>, bool, bool) = (None, false, false);
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
        joined |= flags & JOINS != 0;
        if !joined {
            found |= flags & ASKS;
        }
        // Two words that belong together.
        if let Some(last) = last
            && count < 5
        {
            let at = word.as_ptr() as usize - head.as_ptr() as usize;
            let to = last.as_ptr() as usize - head.as_ptr() as usize + last.len();
            let negates = if cancelled { 0 } else { NEGATES };
            let asks = if joined { 0 } else { ASKS };
            found |= self::flags(place.tables, &head[at..to]) & (negates | asks | YOU);
        }
        last = Some(word);
    }
    // Scripts without spaces: the last characters may be a negation.
    if !head.is_ascii() {
        let tail: Vec<usize> = head.char_indices().rev().take(6).map(|(at, _)| at).collect();
        for (count, &at) in tail.iter().enumerate() {
            for &to in tail[..count].iter().chain(&[head.len()]) {
                found |= flags(place.tables, &head[at..to]) & (NEGATES | ASKS | YOU);
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
fn quoted(place: &Place<'_>, mark: char, at: usize, end: usize) -> bool {
    let text = place.text;
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
    let in_data = in_data && !(in_sentence(prose) && reported(place, at));
    let asian = matches!(mark, '「' | '『' | '“');
    if in_data || !(spaced || asian || mark == '`' || lead.is_some_and(|c| !c.is_alphanumeric())) {
        return false;
    }
    let tail = text.get(end..).unwrap_or_default();
    let tail = &tail[..tail.ceil_char_boundary(QUOTE * 2)];
    let line = &tail[..memchr::memchr(b'\n', tail.as_bytes()).unwrap_or(tail.len())];
    if mark.is_ascii() { line.contains(mark) } else { line.contains(close) }
}

/// Whether a colon ends several words in a row, rather than the name of a field.
fn in_sentence(before: &str) -> bool {
    let Some(head) = before.strip_suffix(':') else { return false };
    let from = head.floor_char_boundary(head.len().saturating_sub(BEFORE));
    let line = head[from..].rsplit('\n').next().unwrap_or_default();
    let said = line.rsplit(['"', '\'', '{', '[', '=', '<', '>', '|']).next().unwrap_or_default();
    said.split_whitespace().filter(|word| word.chars().any(char::is_alphanumeric)).count() >= 3
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
