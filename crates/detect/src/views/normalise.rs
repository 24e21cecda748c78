//! One text in one form: compatibility characters, invisible ones, spaces and terminal codes
//! folded, with a map back. ASCII letters keep their case, which decoders need.

use std::borrow::Cow;
use std::ops::Range;

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::{
    canonical_combining_class, compose, decompose_compatible, is_combining_mark,
};

use super::confusable;
use super::inline::Undone;
use super::invisible;
use super::map::Map;
use super::{HiddenKind, push_new};
use crate::finding::Transform;

/// More marks than this on one letter are decoration.
const MAX_MARKS: usize = 8;
/// More hidden things than this need not be told apart; all of them are read.
const MAX_HIDDEN: usize = 256;
/// As much of overridden text is shown as hidden.
const MAX_OVERRIDDEN: usize = 1024;

/// A text in normal form.
#[derive(Debug)]
pub(super) struct Normal<'t> {
    /// Folded, except for the case of ASCII letters.
    pub(super) text: Cow<'t, str>,
    /// The way back, last step first.
    pub(super) maps: Vec<Map>,
    /// What was undone on the way.
    pub(super) undone: Vec<Transform>,
    /// What was hidden in characters that do not show, the first of it.
    pub(super) hidden: Vec<(Range<usize>, HiddenKind, String)>,
    /// All that could be read of it, by the way it was hidden.
    pub(super) read: Vec<Undone>,
    /// Characters and stretches that were looked at one by one, and the bytes of those.
    pub(super) steps: [usize; 2],
}

/// Brings a text into normal form.
pub(super) fn normalise(text: &str) -> Normal<'_> {
    if clean_prefix(text.as_bytes(), 0) == text.len() {
        return Normal {
            text: Cow::Borrowed(text),
            maps: Vec::new(),
            undone: Vec::new(),
            hidden: Vec::new(),
            read: Vec::new(),
            steps: [0; 2],
        };
    }
    let mut folder = Folder::new(text);
    folder.run();
    let mut normal = Normal {
        text: Cow::Owned(folder.out),
        maps: Vec::new(),
        undone: folder.undone,
        hidden: folder.hidden,
        read: folder.read,
        steps: folder.steps,
    };
    let map = folder.map;
    if folder.confusable {
        normal.steps[1] += normal.text.len();
        let folded = confusable::fold(&normal.text);
        if folded.replaced {
            push_new(&mut normal.undone, Transform::Confusable);
        }
        if !folded.map.is_identity() {
            normal.maps.push(folded.map);
        }
        normal.text = Cow::Owned(folded.text);
    }
    if !map.is_identity() {
        normal.maps.push(map);
    }
    normal
}

/// Where the first byte stands, from `from` on, that is not ASCII in normal form.
fn clean_prefix(bytes: &[u8], from: usize) -> usize {
    const BLOCK: usize = 64;
    let mut at = from;
    if at == 0 {
        if bytes.first().is_none_or(|byte| deviates(b'x', *byte)) {
            return 0;
        }
        at = 1;
    }
    // Short stretches between other scripts are common; a block is dear for them.
    let near = bytes.len().min(at + 8);
    while at < near {
        if deviates(bytes[at - 1], bytes[at]) {
            return at;
        }
        at += 1;
    }
    while at + BLOCK <= bytes.len() {
        let now = &bytes[at..at + BLOCK];
        let before = &bytes[at - 1..at + BLOCK - 1];
        let mut bad = 0_u8;
        for (before, now) in before.iter().zip(now) {
            bad |= u8::from(deviates(*before, *now));
        }
        if bad != 0 {
            break;
        }
        at += BLOCK;
    }
    while at < bytes.len() && !deviates(bytes[at - 1], bytes[at]) {
        at += 1;
    }
    at
}

/// A control or non-ASCII byte, or white space after white space other than line breaks.
#[inline]
fn deviates(before: u8, now: u8) -> bool {
    let control = (now < 0x20) & (now != b'\n');
    let space = (before <= 0x20) & (now <= 0x20) & !((before == b'\n') & (now == b'\n'));
    control | space | (now >= 0x7f)
}

struct Folder<'t> {
    text: &'t str,
    out: String,
    map: Map,
    /// Where the source of the next copied byte is expected.
    expected: usize,
    cut: bool,
    undone: Vec<Transform>,
    hidden: Vec<(Range<usize>, HiddenKind, String)>,
    read: Vec<Undone>,
    /// Up to here text under an override has been reported.
    overridden: usize,
    confusable: bool,
    /// Room for one cluster.
    folded: String,
    steps: [usize; 2],
}

impl<'t> Folder<'t> {
    fn new(text: &'t str) -> Self {
        Self {
            text,
            out: String::with_capacity(text.len() + 16),
            map: Map::default(),
            expected: 0,
            cut: false,
            undone: Vec::new(),
            hidden: Vec::new(),
            read: Vec::new(),
            overridden: 0,
            confusable: false,
            folded: String::new(),
            steps: [0; 2],
        }
    }

    fn run(&mut self) {
        let bytes = self.text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            self.steps[0] += 1;
            let special = bytes[at] >= 0x80 || self.repeats_space(bytes[at]);
            let end = if special { at } else { clean_prefix(bytes, at) };
            if end > at {
                // A mark on the last letter of the stretch belongs to that letter.
                let end = if bytes.get(end).is_some_and(|byte| *byte >= 0x80)
                    && self.text[end..].chars().next().is_some_and(is_combining_mark)
                {
                    end - 1
                } else {
                    end
                };
                self.copy(at..end);
                at = end;
            }
            let Some(character) = self.text[at..].chars().next() else { break };
            let next = match character {
                '\u{1b}' => self.terminal(at),
                ' ' | '\t' | '\r' | '\n' | '\u{b}' | '\u{c}' => self.space(at, character),
                '\0'..='\u{1f}' | '\u{7f}' => self.drop_run(at + 1),
                _ => self.unicode(at, character),
            };
            self.steps[1] += next - at;
            at = next;
        }
    }

    /// White space that follows other white space once what stood between them is gone.
    fn repeats_space(&self, next: u8) -> bool {
        match self.out.as_bytes().last() {
            Some(b' ') => matches!(next, b' ' | b'\n'),
            Some(b'\n') => next == b' ',
            _ => false,
        }
    }

    fn copy(&mut self, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        if range.start != self.expected || self.cut {
            self.map.copy(self.out.len(), range.start, self.cut);
            self.cut = false;
        }
        self.out.push_str(&self.text[range.clone()]);
        self.expected = range.end;
    }

    /// Writes something else for a range; of equal length it needs no entry.
    fn put(&mut self, range: Range<usize>, with: &str, altered: bool) {
        if with.is_empty() {
            self.expected = usize::MAX;
            return;
        }
        let linear = with.len() == range.len() && range.start == self.expected && !self.cut;
        if linear && !altered {
            self.expected = range.end;
        } else {
            self.map.replace(self.out.len(), range, altered || self.cut);
            self.expected = usize::MAX;
            self.cut = false;
        }
        self.out.push_str(with);
    }

    fn space(&mut self, at: usize, character: char) -> usize {
        let end = at + character.len_utf8();
        if character == '\r' && self.text.as_bytes().get(end) == Some(&b'\n') {
            return end;
        }
        self.blank(at, end, matches!(character, '\n' | '\r'))
    }

    /// Writes one space, or one line break, for all white space in a row.
    fn blank(&mut self, at: usize, end: usize, line: bool) -> usize {
        let last = self.out.as_bytes().last().copied();
        match (line, last) {
            (true, Some(b' ')) => {
                self.out.pop();
                self.out.push('\n');
            }
            (true, _) => self.put(at..end, "\n", false),
            (false, Some(b' ' | b'\n')) => {}
            (false, _) => self.put(at..end, " ", false),
        }
        end
    }

    /// Takes out what shows nothing and ends at `end`; between letters that is an evasion.
    fn drop_run(&mut self, end: usize) -> usize {
        let inside = |character: Option<char>| character.is_some_and(char::is_alphanumeric);
        if inside(self.out.chars().next_back()) && inside(self.text[end..].chars().next()) {
            self.cut = true;
            push_new(&mut self.undone, Transform::Invisible);
        }
        end
    }

    /// A terminal's escape sequence: CSI, OSC and the two-byte ones.
    fn terminal(&mut self, at: usize) -> usize {
        let bytes = self.text.as_bytes();
        let mut end = at + 1;
        match bytes.get(end) {
            Some(b'[') => {
                end += 1;
                while bytes.get(end).is_some_and(|byte| matches!(byte, 0x20..=0x3f)) {
                    end += 1;
                }
                end += usize::from(bytes.get(end).is_some_and(|byte| matches!(byte, 0x40..=0x7e)));
            }
            Some(b']' | b'P' | b'_' | b'^') => {
                // The text of a title or link stays to be read; only the frame goes.
                end += 1;
            }
            Some(b'\\' | b'(' | b')' | b'=' | b'>' | b'7' | b'8' | b'c' | b'M') => end += 1,
            _ => {}
        }
        push_new(&mut self.undone, Transform::Markup);
        self.cut = true;
        end
    }

    fn unicode(&mut self, at: usize, character: char) -> usize {
        let end = at + character.len_utf8();
        if untouched(character) {
            // The last of the run is left out if what follows may be a mark on it.
            let (mut stop, mut last) = (at, at);
            let mut safe = true;
            for next in self.text[at..].chars() {
                if !untouched(next) {
                    safe = next.is_ascii();
                    break;
                }
                self.confusable |= confusable::concerns(next);
                last = stop;
                stop += next.len_utf8();
            }
            let stop = if safe { stop } else { last };
            if stop > at {
                self.copy(at..stop);
                return stop;
            }
        }
        if invisible::is_invisible(character) {
            return self.invisible(at);
        }
        if let Some(blank) = invisible::blank(character) {
            return self.blank(at, end, blank != ' ');
        }
        if let Some(sign) = sign(character) {
            self.put(at..end, sign, false);
            return end;
        }
        if matches!(character, '\u{fdfa}' | '\u{fdfb}' | '\u{3300}'..='\u{3357}') {
            // A whole phrase or word in one character, up to eighteen times as long; no rule needs it.
            self.copy(at..end);
            return end;
        }
        if let Some(letter) = styled(character) {
            self.put(at..end, letter.encode_utf8(&mut [0; 4]), true);
            if letter.is_ascii_alphabetic() {
                push_new(&mut self.undone, Transform::Confusable);
            }
            return end;
        }
        let next = || self.text[end..].chars().find(|next| !invisible::is_invisible(*next));
        if let Some(letter) = boxed(character, next, self.out_last()) {
            // Two indicators are a flag, and flags hide nothing.
            let flag = matches!(character, '\u{1f1e6}'..='\u{1f1ff}');
            if !flag {
                push_new(&mut self.undone, Transform::Confusable);
            }
            self.put(at..end, letter.encode_utf8(&mut [0; 4]), !flag);
            return end;
        }
        self.cluster(at)
    }

    fn out_last(&self) -> Option<char> {
        self.out.chars().next_back()
    }

    /// A letter with its marks.
    fn cluster(&mut self, at: usize) -> usize {
        let mut end = at;
        let mut kept = at;
        for (count, character) in self.text[at..].chars().enumerate() {
            let joins = is_combining_mark(character)
                || matches!(character, '\u{1161}'..='\u{11ff}' | '\u{ff9e}' | '\u{ff9f}');
            if count > 0 && (!joins || invisible::is_invisible(character)) {
                break;
            }
            end += character.len_utf8();
            if count <= MAX_MARKS {
                kept = end;
            }
        }
        let mut folded = std::mem::take(&mut self.folded);
        folded.clear();
        let mut dropped = usize::from(kept < end);
        let cluster = &self.text[at..kept];
        let mut fold = |character: char| match character {
            '\u{300}'..='\u{36f}'
            | '\u{1ab0}'..='\u{1aff}'
            | '\u{1dc0}'..='\u{1dff}'
            | '\u{20d0}'..='\u{20ff}'
            | '\u{fe20}'..='\u{fe2f}' => dropped += 1,
            // Arabic vowel signs and the stretching line.
            '\u{64b}'..='\u{65f}' | '\u{670}' | '\u{640}' => {}
            _ if character.is_ascii() => folded.push(character),
            _ if confusable::concerns(character) => {
                self.confusable = true;
                folded.push(character);
            }
            _ => {
                folded.extend(character.to_lowercase().filter(|lower| !matches!(lower, '\u{307}')))
            }
        };
        if !normal_form(cluster, &mut fold) {
            cluster.nfkc().for_each(fold);
        }
        // Accents on their own are a space with a mark.
        if folded.starts_with(' ') && self.repeats_space(b' ') {
            folded.remove(0);
        }
        let first = self.text[at..].chars().next().unwrap_or('x');
        let disguised = !first.is_ascii()
            && folded.bytes().all(|byte| byte.is_ascii_alphabetic())
            && !folded.is_empty()
            && !matches!(first, '\u{c0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}'
                | '\u{fb00}'..='\u{fb06}' | '\u{2120}' | '\u{2122}' | '\u{2116}' | '\u{aa}' | '\u{ba}');
        if disguised {
            push_new(&mut self.undone, Transform::Confusable);
        }
        if dropped > 0 && first.is_ascii_alphabetic() {
            push_new(&mut self.undone, Transform::Confusable);
        }
        if folded == self.text[at..end] {
            self.copy(at..end);
        } else {
            self.put(at..end, &folded, disguised || dropped > 0);
        }
        self.folded = folded;
        end
    }

    fn invisible(&mut self, at: usize) -> usize {
        let run = &self.text[at..];
        let length = run.find(|character| !invisible::is_invisible(character)).unwrap_or(run.len());
        let end = at + length;
        let run = &run[..length];
        // One or two on their own carry nothing; tags begin with a byte of their own.
        let telling =
            run.len() >= 12 || run.as_bytes()[0] == 0xf3 || run.contains(['\u{202d}', '\u{202e}']);
        if telling {
            let before = self.text[..at].chars().next_back();
            for (kind, text) in invisible::read(run, before) {
                let undone =
                    if kind == HiddenKind::Tags { Transform::Tags } else { Transform::Invisible };
                push_new(&mut self.undone, undone);
                self.hide(at..end, kind, text);
            }
            if at >= self.overridden && run.contains(['\u{202d}', '\u{202e}']) {
                self.override_at(at, end);
            }
        }
        self.drop_run(end)
    }

    fn override_at(&mut self, at: usize, end: usize) {
        let rest = &self.text[end..];
        let limit = rest.floor_char_boundary(MAX_OVERRIDDEN.min(rest.len()));
        let stop = rest[..limit].find(['\u{202c}', '\n']).unwrap_or(limit);
        self.overridden = end + stop;
        if stop > 0 {
            push_new(&mut self.undone, Transform::Invisible);
            let text =
                rest[..stop].chars().rev().filter(|c| !invisible::is_invisible(*c)).collect();
            self.hide(at..end + stop, HiddenKind::BidiOverride, text);
        }
    }

    /// Notes something hidden; what it says joins the other texts that were hidden in this way, a line
    /// each: no number of them keeps another from being read.
    fn hide(&mut self, range: Range<usize>, kind: HiddenKind, text: String) {
        if !text.is_empty() {
            let how: &[Transform] = match kind {
                HiddenKind::Tags => &[Transform::Tags],
                HiddenKind::BidiOverride => &[Transform::Invisible, Transform::Reversed],
                _ => &[Transform::Invisible],
            };
            let index = match self.read.iter().position(|(known, ..)| known == how) {
                Some(index) => index,
                None => {
                    self.read.push((how.to_vec(), String::new(), Map::default()));
                    self.read.len() - 1
                }
            };
            let (_, all, map) = &mut self.read[index];
            if !all.is_empty() {
                all.push('\n');
            }
            map.replace(all.len(), range.clone(), true);
            all.push_str(&text);
        }
        if self.hidden.len() < MAX_HIDDEN {
            self.hidden.push((range, kind, text));
        }
    }
}

/// The normal form of a cluster, where it can be told at once: one character that becomes ASCII, or an
/// ASCII letter with marks above it.
fn normal_form(cluster: &str, fold: &mut impl FnMut(char)) -> bool {
    let mut characters = cluster.chars();
    let (Some(first), second) = (characters.next(), characters.next()) else { return false };
    let Some(second) = second else {
        let mut ascii = true;
        decompose_compatible(first, |part| ascii &= part.is_ascii());
        if ascii {
            decompose_compatible(first, fold);
        }
        return ascii;
    };
    let above = |mark: char| {
        canonical_combining_class(mark) == 230
            && matches!(mark, '\u{300}'..='\u{33f}' | '\u{346}'..='\u{36f}')
    };
    if !first.is_ascii_alphabetic() || !above(second) || !characters.all(above) {
        return false;
    }
    // A mark that does not join the letter keeps those behind it from doing so.
    let (mut letter, mut rest) = (first, cluster.chars().skip(1).peekable());
    while let Some(joined) = rest.peek().and_then(|mark| compose(letter, *mark)) {
        letter = joined;
        rest.next();
    }
    fold(letter);
    rest.for_each(fold);
    true
}

/// Letters that normal form leaves as they are, unless a mark follows.
fn untouched(character: char) -> bool {
    matches!(character,
        '\u{df}'..='\u{f6}' | '\u{f8}'..='\u{ff}' | '\u{3b1}'..='\u{3c9}' | '\u{391}'..='\u{3a9}'
        | '\u{410}'..='\u{44f}' | '\u{401}' | '\u{451}' | '\u{621}'..='\u{63f}' | '\u{641}'..='\u{64a}'
        | '\u{905}'..='\u{928}' | '\u{92a}'..='\u{930}' | '\u{3001}'..='\u{3002}'
        | '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fa}' | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7a3}' | '\u{1f600}'..='\u{1f64f}')
}

/// Quotation marks, dashes and the like as ASCII has them.
fn sign(character: char) -> Option<&'static str> {
    Some(match character {
        '\u{2018}'..='\u{201b}' | '\u{2032}' | '\u{2bc}' | '\u{2b9}' | '\u{b4}' | '\u{55a}' => "'",
        '\u{201c}'..='\u{201f}' | '\u{2033}' => "\"",
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{2043}' | '\u{fe58}' => "-",
        '\u{2044}' | '\u{2215}' => "/",
        '\u{2024}' | '\u{a4f8}' => ".",
        '\u{a789}' | '\u{2236}' | '\u{5c3}' => ":",
        '\u{1c3}' | '\u{a71d}' => "!",
        '\u{2217}' => "*",
        _ => return None,
    })
}

/// Mathematical and full-width forms, which are laid out as ASCII is.
fn styled(character: char) -> Option<char> {
    let code = u32::from(character);
    let byte = match character {
        '\u{ff01}'..='\u{ff5e}' => code - 0xfee0,
        '\u{1d400}'..='\u{1d6a3}' => match (code - 0x1_d400) % 52 {
            upper @ 0..26 => upper + 0x41,
            lower => lower - 26 + 0x61,
        },
        '\u{1d7ce}'..='\u{1d7ff}' => (code - 0x1_d7ce) % 10 + 0x30,
        _ => return None,
    };
    char::from_u32(byte)
}

/// White letters in black boxes and circles, and regional indicators in rows that are no flags.
fn boxed(
    character: char,
    next: impl FnOnce() -> Option<char>,
    before: Option<char>,
) -> Option<char> {
    let code = u32::from(character);
    let letter = match character {
        '\u{1f150}'..='\u{1f169}' => code - 0x1_f150,
        '\u{1f170}'..='\u{1f189}' => code - 0x1_f170,
        '\u{1f1e6}'..='\u{1f1ff}' => {
            let indicator = |c: char| matches!(c, '\u{1f1e6}'..='\u{1f1ff}');
            let neighbour =
                before.is_some_and(|c| c.is_ascii_uppercase()) || next().is_some_and(indicator);
            if !neighbour {
                return None;
            }
            code - 0x1_f1e6
        }
        _ => return None,
    };
    char::from_u32(u32::from('A') + letter)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn normal_form_is_what_unicode_says(
            cluster in prop_oneof!["\\PC", "[a-zA-Z][\u{300}-\u{370}]{0,4}", "[\u{a0}-\u{ffff}]"]
        ) {
            let mut text = String::new();
            if normal_form(&cluster, &mut |character| text.push(character)) {
                prop_assert_eq!(text, cluster.nfkc().collect::<String>());
            }
        }
    }

    #[test]
    fn every_single_character() {
        let mut buffer = [0; 4];
        for character in (0..=0x10_ffff).filter_map(char::from_u32) {
            let cluster: &str = character.encode_utf8(&mut buffer);
            let mut text = String::new();
            if normal_form(cluster, &mut |character| text.push(character)) {
                assert_eq!(text, cluster.nfkc().collect::<String>());
            }
        }
    }
}
