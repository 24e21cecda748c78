//! Finds every sign that could open one of the three tags, in one pass.
//!
//! Behind a `<` all readings of the text are followed at once: which letters of the names have
//! been seen is a set of bits, kept for every place that a reading has reached. Escapes are
//! readings that are several bytes long. A `>` ends a reading, so does a letter that does not fit.
//!
//! Invariant: every place is looked at once, and an escape is at most [`MAX_ESCAPE`] bytes long,
//! so the work is linear.

use std::borrow::Cow;
use std::ops::Range;

use super::WrapKind;
use super::signs::{self, Reading};

/// Longest escape that is read, in bytes.
const MAX_ESCAPE: usize = 63;
/// Escapes inside escapes that are read.
const MAX_NESTED: usize = 6;

/// A text without signs that open one of the tags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neutral<'t> {
    /// The text.
    pub text: Cow<'t, str>,
    /// How many signs were replaced.
    pub replaced: usize,
}

/// Replaces each `<`, in any spelling, that could open or close one of the three tags, by `[`.
///
/// ```
/// use wardkeep_policy::wrap::neutralise;
/// assert_eq!(neutralise("a < b, <p>, tool_output").replaced, 0);
/// assert_eq!(neutralise("&lt;/ TOOL_output x='").text, "[/ TOOL_output x='");
/// ```
#[must_use]
pub fn neutralise(text: &str) -> Neutral<'_> {
    let places = places(text);
    if places.is_empty() {
        return Neutral { text: Cow::Borrowed(text), replaced: 0 };
    }
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for place in &places {
        out.push_str(&text[from..place.start]);
        out.push('[');
        from = place.end;
    }
    out.push_str(&text[from..]);
    Neutral { text: Cow::Owned(out), replaced: places.len() }
}

/// Which letters of which names were seen: one bit for each number of letters of each name.
type Seen = u64;

/// The three names as bits.
struct Names {
    /// Nothing seen yet.
    start: Seen,
    /// A whole name seen.
    end: Seen,
    /// Where a letter leads on from.
    before: [Seen; 26],
}

const NAMES: Names = names();

const fn names() -> Names {
    let mut names = Names { start: 0, end: 0, before: [0; 26] };
    let mut bit = 0;
    let mut kind = 0;
    while kind < WrapKind::ALL.len() {
        let tag = WrapKind::ALL[kind].tag().as_bytes();
        names.start |= 1 << bit;
        let mut at = 0;
        while at < tag.len() {
            // An `m` is two letters, as in `signs`.
            let letters: &[u8] = match &tag[at] {
                b'm' => b"rn",
                b'_' => b"",
                letter => std::slice::from_ref(letter),
            };
            let mut of = 0;
            while of < letters.len() {
                names.before[(letters[of] - b'a') as usize] |= 1 << bit;
                bit += 1;
                of += 1;
            }
            at += 1;
        }
        names.end |= 1 << bit;
        bit += 1;
        kind += 1;
    }
    // INVARIANT: all states fit; `<<` below never loses one.
    assert!(bit < 63);
    names
}

fn advance(seen: Seen, letter: u8) -> Seen {
    match letter.checked_sub(b'a') {
        Some(index) if index < 26 => (seen & NAMES.before[usize::from(index)]) << 1,
        _ => 0,
    }
}

/// The sign `<` as a tag character.
const TAG_SIGN: &str = "\u{e003c}";
/// Tag characters, which are not shown, and how all of them begin.
const TAGS: std::ops::RangeInclusive<char> = '\u{e0000}'..='\u{e007f}';
const TAG_LEAD: &[u8] = b"\xf3\xa0";

/// The signs to replace, in order, apart from each other.
fn places(text: &str) -> Vec<Range<usize>> {
    let mut found = search(text);
    // Who reads tag characters passes over what stands between them: there this sign may open
    // anything, and nobody needs it.
    let hidden = memchr::memmem::find_iter(text.as_bytes(), TAG_SIGN);
    found.extend(hidden.map(|at| at..at + TAG_SIGN.len()));
    // And who does not see them reads on over them, in the middle of an escape as well.
    if memchr::memmem::find(text.as_bytes(), TAG_LEAD).is_some() {
        let (mut from, mut seen) = (Vec::new(), String::new());
        for (at, sign) in text.char_indices().filter(|(_, sign)| !TAGS.contains(sign)) {
            from.extend(at..at + sign.len_utf8());
            seen.push(sign);
        }
        let there =
            |range: Range<usize>| Some(*from.get(range.start)?..*from.get(range.end - 1)? + 1);
        found.extend(search(&seen).into_iter().filter_map(there));
    }
    merged(found)
}

fn search(text: &str) -> Vec<Range<usize>> {
    let mut search = Search {
        text,
        seen: [0; MAX_ESCAPE + 1],
        reach: 0,
        openings: Vec::new(),
        found: Vec::new(),
    };
    search.run();
    search.found
}

struct Search<'t> {
    text: &'t str,
    /// What was seen at the places ahead; a place is its offset modulo the length.
    seen: [Seen; MAX_ESCAPE + 1],
    /// The farthest place at which something was seen.
    reach: usize,
    /// The signs that opened what is followed now.
    openings: Vec<Range<usize>>,
    found: Vec<Range<usize>>,
}

impl Search<'_> {
    fn run(&mut self) {
        let bytes = self.text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            if self.reach <= at && self.at(at) == 0 {
                self.openings.clear();
                at = match bytes[at..].iter().position(|byte| may_open(*byte)) {
                    Some(skip) => at + skip,
                    None => return,
                };
            }
            let Some(character) = self.text[at..].chars().next() else { return };
            let end = at + character.len_utf8();
            let seen = self.at(at);
            self.seen[at % self.seen.len()] = 0;
            // Where nothing is followed, only a sign that opens matters.
            if seen != 0 || signs::is_opening(character) {
                self.read(seen, signs::read(character), at..end);
            }
            if is_lead(bytes[at]) {
                let mut readings = Vec::new();
                escapes(bytes, bytes[at], end, 0, &mut readings);
                for (stop, character) in readings {
                    if stop - at <= MAX_ESCAPE {
                        match character {
                            Some(character) => self.read(seen, signs::read(character), at..stop),
                            None => self.note(stop, seen),
                        }
                    }
                }
            }
            at = end;
        }
    }

    fn at(&self, place: usize) -> Seen {
        self.seen[place % self.seen.len()]
    }

    fn note(&mut self, place: usize, seen: Seen) {
        if seen == 0 {
            return;
        }
        if seen & NAMES.end != 0 {
            // All that is followed began with these signs: without them it is nothing.
            self.found.append(&mut self.openings);
            self.seen = [0; MAX_ESCAPE + 1];
            self.reach = 0;
            return;
        }
        self.seen[place % self.seen.len()] |= seen;
        self.reach = self.reach.max(place);
    }

    fn read(&mut self, seen: Seen, reading: Reading, place: Range<usize>) {
        if reading.closes {
            return;
        }
        if reading.opens {
            self.openings.push(place.clone());
            self.note(place.end, seen | NAMES.start);
            return;
        }
        if seen == 0 {
            return;
        }
        let mut next = if reading.skipped { seen } else { 0 };
        for letter in reading.letters.into_iter().flatten() {
            next |= advance(seen, letter);
        }
        if let Some([one, two]) = reading.pair {
            next |= advance(advance(seen, one), two);
        }
        self.note(place.end, next);
    }
}

/// A byte at which something may begin that opens a tag.
fn may_open(byte: u8) -> bool {
    byte == b'<' || byte >= 0x80 || is_lead(byte)
}

/// A byte that begins an escape.
fn is_lead(byte: u8) -> bool {
    matches!(byte, b'&' | b'%' | b'\\' | b'=')
}

/// The escapes that begin with this sign, which ends at `at`: where each ends and what it is;
/// nothing for one that is passed over.
fn escapes(bytes: &[u8], lead: u8, at: usize, depth: usize, out: &mut Vec<(usize, Option<char>)>) {
    if depth >= MAX_NESTED {
        return;
    }
    let first = out.len();
    match lead {
        b'&' => entity(bytes, at, out),
        b'%' => percent(bytes, at, out),
        b'=' => {
            if let Some(byte) = hex(bytes, at, 2) {
                out.push((at + 2, char::from_u32(byte)));
            }
        }
        _ => backslash(bytes, at, out),
    }
    // What was written may be the sign of a further escape: `&amp;lt;`, `%253c`.
    for index in first..out.len() {
        let (end, character) = out[index];
        let lead = character.and_then(|sign| u8::try_from(sign).ok()).filter(|byte| is_lead(*byte));
        if let Some(lead) = lead {
            escapes(bytes, lead, end, depth + 1, out);
        }
    }
}

fn hex(bytes: &[u8], at: usize, digits: usize) -> Option<u32> {
    let digits = bytes.get(at..at + digits)?;
    digits.iter().try_fold(0, |value, byte| Some(value << 4 | char::from(*byte).to_digit(16)?))
}

/// Digits of a number: its value and how many there were.
fn number(bytes: &[u8], at: usize, radix: u32, most: usize) -> (u32, usize) {
    let digits = bytes[at.min(bytes.len())..].iter().take(most);
    let (mut value, mut length) = (0_u32, 0);
    for digit in digits.map_while(|byte| char::from(*byte).to_digit(radix)) {
        value = value.saturating_mul(radix).saturating_add(digit);
        length += 1;
    }
    (value, length)
}

/// `&lt;`, `&#60;`, `&#x3c`, with or without the semicolon.
fn entity(bytes: &[u8], at: usize, out: &mut Vec<(usize, Option<char>)>) {
    if bytes.get(at) == Some(&b'#') {
        let hexadecimal = matches!(bytes.get(at + 1), Some(b'x' | b'X'));
        let (from, radix) = if hexadecimal { (at + 2, 16) } else { (at + 1, 10) };
        let (value, length) = number(bytes, from, radix, 32);
        if length > 0 {
            let end = from + length;
            let end = end + usize::from(bytes.get(end) == Some(&b';'));
            out.push((end, char::from_u32(value)));
        }
        return;
    }
    let length =
        bytes[at..].iter().take(32).take_while(|byte| byte.is_ascii_alphanumeric()).count();
    let Ok(name) = std::str::from_utf8(&bytes[at..at + length]) else { return };
    if bytes.get(at + length) == Some(&b';') && length > 0 {
        out.push((at + length + 1, named(name)));
    }
    // These need no semicolon, and then letters may follow at once.
    for (short, character) in [("lt", '<'), ("LT", '<'), ("gt", '>'), ("amp", '&'), ("AMP", '&')] {
        if name.starts_with(short) {
            out.push((at + short.len(), Some(character)));
        }
    }
}

/// The character of a reference; nothing for one that stands for no letter and no bracket.
fn named(name: &str) -> Option<char> {
    Some(match name.to_ascii_lowercase().as_str() {
        "lt" | "nvlt" | "lsaquo" | "laquo" | "lang" | "langle" | "leftanglebracket" => '<',
        "gt" | "nvgt" | "rsaquo" | "raquo" | "rang" | "rangle" | "rightanglebracket" => '>',
        "amp" => '&',
        "percnt" => '%',
        "bsol" => '\\',
        "equals" => '=',
        lower => {
            // `&topf;`, `&tscr;`, `&tfr;`: letters in other styles. `&eacute;`: with a mark.
            let styles = ["opf", "scr", "fr", "acute", "grave", "circ", "uml", "tilde", "caron"];
            let marked =
                styles.iter().any(|style| lower.len() == style.len() + 1 && lower.ends_with(style));
            return lower.chars().next().filter(|_| marked);
        }
    })
}

/// `%3c`, `%EF%BC%9C`, `%u003c`.
fn percent(bytes: &[u8], at: usize, out: &mut Vec<(usize, Option<char>)>) {
    if matches!(bytes.get(at), Some(b'u' | b'U'))
        && let Some(code) = hex(bytes, at + 1, 4)
    {
        out.push((at + 5, char::from_u32(code)));
    }
    let Some(first) = hex(bytes, at, 2).and_then(|byte| u8::try_from(byte).ok()) else { return };
    let length = match first {
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        _ => 1,
    };
    let (mut raw, mut end) = (vec![first], at + 2);
    while raw.len() < length {
        let next = hex(bytes, end + 1, 2).filter(|_| bytes.get(end) == Some(&b'%'));
        let Some(next) = next.and_then(|byte| u8::try_from(byte).ok()) else { break };
        raw.push(next);
        end += 3;
    }
    let read = std::str::from_utf8(&raw).ok().and_then(|text| text.chars().next());
    out.push((end, read));
}

/// `\u003c`, `\x3c`, `\u{3c}`, `\U0000003c`, `\74`; and a backslash more.
fn backslash(bytes: &[u8], at: usize, out: &mut Vec<(usize, Option<char>)>) {
    match bytes.get(at) {
        Some(b'u' | b'U' | b'x') if bytes.get(at + 1) == Some(&b'{') => {
            let (value, length) = number(bytes, at + 2, 16, 32);
            if bytes.get(at + 2 + length) == Some(&b'}') {
                out.push((at + 3 + length, char::from_u32(value)));
            }
        }
        Some(sign @ (b'u' | b'U' | b'x')) => {
            for digits in [2, 4, 8] {
                let fits = (digits == 2) == (*sign == b'x');
                if let Some(code) = hex(bytes, at + 1, digits).filter(|_| fits) {
                    out.push((at + 1 + digits, char::from_u32(code)));
                }
            }
        }
        Some(b'0'..=b'7') => {
            let (value, length) = number(bytes, at, 8, 3);
            out.push((at + length, char::from_u32(value)));
        }
        // A line end, as in a continued string.
        Some(b'n' | b'r' | b't') => out.push((at + 1, None)),
        _ => {}
    }
}

/// Ranges in order, those that overlap made one.
fn merged(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_unstable_by_key(|range| (range.start, range.end));
    let mut out: Vec<Range<usize>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match out.last_mut() {
            Some(last) if range.start < last.end => last.end = last.end.max(range.end),
            _ => out.push(range),
        }
    }
    out
}
