//! Encoded pieces: Base64, Base32, Base85, hexadecimal, and what was compressed inside them.

use std::ops::Range;

use super::alphabets::{
    ASCII85, BASE32, BASE32_HEX, RFC1924, Z85, base32, base64, base85, hex, is_base64,
    printable_base64, printable_hex,
};
use super::inflate::Inflater;
use super::language::{is_text, reads_like_language, text_of};
use super::letters::rot13;
use super::map::{Map, Rewriter};
use crate::finding::Transform;

/// A run of this many characters of an alphabet is looked at.
const MIN_RUN: usize = 16;
/// Shorter ones are when they are lines of one piece.
const MIN_LINE: usize = 12;
/// A piece written in groups has as many of them at least.
const MIN_GROUPS: usize = 4;
/// A piece that is turned around is this long at least.
const MIN_TURNED: usize = 20;
/// Text found inside a run that is not text as a whole must be this long.
const MIN_STRETCH: usize = 14;

/// Decoded pieces, those of one kind together.
#[derive(Debug)]
pub(super) struct Pieces<'s> {
    source: &'s str,
    groups: Vec<(Vec<Transform>, Rewriter<'s>)>,
    /// Tokens that may be lines of one piece.
    lines: Vec<Range<usize>>,
    /// Tokens of one length in a row: groups of one piece, perhaps.
    row: Vec<Range<usize>>,
    budget: usize,
    inflater: Inflater,
    truncated: bool,
    /// Bytes that were looked at as if they were encoded.
    pub(super) read: usize,
}

impl<'s> Pieces<'s> {
    pub(super) fn new(source: &'s str, budget: usize) -> Self {
        Self {
            source,
            groups: Vec::new(),
            lines: Vec::new(),
            row: Vec::new(),
            budget,
            inflater: Inflater::new(budget),
            truncated: false,
            read: 0,
        }
    }

    /// Whether a limit kept something from being read.
    pub(super) fn truncated(&self) -> bool {
        self.truncated || self.inflater.truncated
    }

    /// Whether short tokens matter, too, because they may end a piece.
    #[inline]
    pub(super) fn pending(&self) -> bool {
        !self.lines.is_empty()
    }

    /// Whether a row of groups has begun.
    #[inline]
    pub(super) fn grouped(&self) -> bool {
        !self.row.is_empty()
    }

    /// A token between white space; `plain` when it has nothing but Base64 characters.
    pub(super) fn token(&mut self, token: Range<usize>, plain: bool) {
        let bytes = self.source.as_bytes();
        if plain {
            let follows = self.lines.last().is_some_and(|last| last.end + 1 == token.start);
            if !follows {
                self.flush();
            }
            // Words of ordinary text have neither digits nor capitals inside.
            let coded =
                bytes[token.start + 1..token.end].iter().any(|byte| !byte.is_ascii_lowercase());
            let long = coded && token.len() >= MIN_LINE;
            if long || (follows && (coded || bytes[token.start - 1] == b'\n')) {
                let last = !long || bytes[token.end - 1] == b'=';
                self.lines.push(token);
                if last {
                    self.flush();
                }
            } else {
                self.flush();
            }
            return;
        }
        self.flush();
        if token.len() < MIN_RUN {
            return;
        }
        self.read += token.len();
        if self.base85(token.clone()) {
            return;
        }
        let mut at = token.start;
        while at < token.end {
            let run = bytes[at..token.end].iter().take_while(|byte| is_base64(**byte)).count();
            if run >= MIN_RUN {
                self.run(at..at + run);
            }
            at += run.max(1);
        }
    }

    /// A short token: a group of a piece, perhaps, or one word in Base64. Ordinary words only go on with a row.
    pub(super) fn short(&mut self, token: Range<usize>, ordinary: bool) {
        self.flush();
        if let (Some(first), Some(last)) = (self.row.first(), self.row.last()) {
            let follows = last.end + 1 == token.start;
            if follows && token.len() <= first.len() {
                let ends = token.len() < first.len();
                self.row.push(token);
                if ends {
                    self.flush_row();
                }
                return;
            }
            self.flush_row();
        }
        if !ordinary {
            self.row.push(token);
        }
    }

    /// Ends a row of groups: one piece, or words of their own.
    pub(super) fn flush_row(&mut self) {
        let row = std::mem::take(&mut self.row);
        let mut whole = false;
        if let [first, .., before, last] = row.as_slice()
            && row.len() >= MIN_GROUPS
        {
            // The last may be a word behind it.
            whole = [last, before].into_iter().any(|last| {
                let range = first.start..last.end;
                range.len() >= MIN_RUN && self.whole(range, &mut Vec::new())
            });
        }
        if !whole {
            for token in &row {
                if token.len() >= 4 && is_odd(&self.source.as_bytes()[token.clone()]) {
                    self.word(token.clone());
                }
            }
        }
        self.row = row;
        self.row.clear();
    }

    fn word(&mut self, token: Range<usize>) {
        let bytes = base64(&self.source.as_bytes()[token.clone()], 0);
        let word = |byte: &u8| byte.is_ascii_alphabetic() || b" .,:!?'".contains(byte);
        if bytes.len() >= 3
            && bytes.iter().all(word)
            && let Ok(text) = std::str::from_utf8(&bytes)
            && reads_like_language(text)
        {
            let text = text.to_owned();
            self.accept(token, &[Transform::Base64], &text);
        }
    }

    /// Ends a piece of several lines.
    pub(super) fn flush(&mut self) {
        let lines = std::mem::take(&mut self.lines);
        match lines.as_slice() {
            [] => {}
            [one] => {
                if one.len() >= MIN_RUN {
                    self.run(one.clone());
                } else {
                    self.word(one.clone());
                }
            }
            [first, .., before, last] => {
                let whole = self.run(first.start..last.end)
                    || (lines.len() > 2 && self.whole(first.start..before.end, &mut Vec::new()));
                if !whole {
                    for line in lines.iter().filter(|line| line.len() >= MIN_RUN) {
                        self.run(line.clone());
                    }
                }
            }
            [first, last] => {
                if !self.run(first.start..last.end) {
                    for line in [first, last].into_iter().filter(|line| line.len() >= MIN_RUN) {
                        self.run(line.clone());
                    }
                }
            }
        }
        self.lines = lines;
        self.lines.clear();
    }

    /// Tries the alphabets that a run could be of, then looks for text inside.
    fn run(&mut self, range: Range<usize>) -> bool {
        let mut decoded = Vec::new();
        if self.whole(range.clone(), &mut decoded) || self.turned(range.clone()) {
            return true;
        }
        if decoded.is_empty() {
            return false;
        }
        let bytes = &self.source.as_bytes()[range.clone()];
        // A name or a path before it may have shifted the alphabet, or noise may follow.
        self.read += 3 * range.len();
        let mut best: Option<String> = None;
        // Four signs are three bytes: of a short run, not every phase can hold enough.
        let phases = bytes.len().saturating_sub(MIN_STRETCH * 4 / 3).min(3);
        for phase in 0..=phases {
            if phase > 0 {
                decoded = base64(bytes, phase);
            }
            if let Some(stretch) = longest_text(&decoded)
                && best.as_ref().is_none_or(|text| text.len() < stretch.len())
            {
                best = Some(stretch.to_owned());
            }
        }
        if let Some(text) = best {
            self.accept(range, &[Transform::Base64], &text);
            return true;
        }
        false
    }

    /// Takes a run in that is text as a whole in some alphabet; leaves what it is in Base64 in `decoded`
    /// if it can be nothing else.
    fn whole(&mut self, range: Range<usize>, decoded: &mut Vec<u8>) -> bool {
        self.read += range.len();
        let bytes = &self.source.as_bytes()[range.clone()];
        let body = bytes.trim_ascii_end();
        let digits = body.strip_prefix(b"0x").unwrap_or(body);
        if digits.iter().all(|byte| byte.is_ascii_hexdigit() || byte.is_ascii_whitespace()) {
            return self.decoded(range, Transform::Hex, &hex(digits));
        }
        let thirty_two =
            |byte: &u8| matches!(byte, b'2'..=b'7' | b'=') || byte.is_ascii_whitespace();
        // In either case, but in one.
        if (body.iter().all(|byte| byte.is_ascii_uppercase() || thirty_two(byte))
            || body.iter().all(|byte| byte.is_ascii_lowercase() || thirty_two(byte)))
            && self.decoded(range.clone(), Transform::Base32, &base32(body, &BASE32))
        {
            return true;
        }
        let sorted = |byte: &u8| {
            matches!(byte, b'0'..=b'9' | b'A'..=b'V' | b'=') || byte.is_ascii_whitespace()
        };
        if body.iter().all(sorted) {
            let bytes = base32(body, &BASE32_HEX);
            let language = std::str::from_utf8(&bytes).is_ok_and(reads_like_language);
            if language && self.decoded(range.clone(), Transform::Base32, &bytes) {
                return true;
            }
        }
        *decoded = base64(bytes, 0);
        self.decoded(range, Transform::Base64, decoded)
    }

    /// Takes a run in that reads from end to start, or whose letters are moved by thirteen.
    fn turned(&mut self, range: Range<usize>) -> bool {
        let bytes = self.source.as_bytes()[range.clone()].trim_ascii();
        let (Some(first), Some(last)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) else {
            return false;
        };
        if bytes.len() < MIN_TURNED {
            return false;
        }
        let [a, b, c, d, e, f, g, h] = *last;
        let back = [h, g, f, e, d, c, b, a];
        let digits = || bytes.iter().all(|byte| byte.is_ascii_hexdigit() || *byte <= b' ');
        let (turn, by, text) = if printable_hex(&back) && digits() {
            (Transform::Reversed, Transform::Hex, bytes.iter().rev().copied().collect::<Vec<u8>>())
        } else if printable_base64(&back) {
            (Transform::Reversed, Transform::Base64, bytes.iter().rev().copied().collect())
        } else if printable_base64(&first.map(rot13)) {
            (Transform::Rot13, Transform::Base64, bytes.iter().map(|byte| rot13(*byte)).collect())
        } else {
            return false;
        };
        let plain = if by == Transform::Hex { hex(&text) } else { base64(&text, 0) };
        let Some(text) = text_of(&plain).filter(|text| reads_like_language(text)) else {
            return false;
        };
        self.accept(range, &[turn, by], &text);
        true
    }

    /// Ascii85 in its frame or without, and the other two alphabets.
    fn base85(&mut self, token: Range<usize>) -> bool {
        let text = &self.source[token.clone()];
        let tilde = memchr::memchr(b'~', text.as_bytes());
        let framed = tilde.and_then(|_| text.find("<~")).map(|at| at + 2);
        if let Some(start) = framed
            && let Some(length) = text[start..].find("~>")
            && let Some(bytes) = base85(&text.as_bytes()[start..start + length], &ASCII85)
        {
            return self.decoded(token.start + start - 2..token.end, Transform::Base85, &bytes);
        }
        let signs = text.bytes().filter(|byte| byte.is_ascii_punctuation()).count();
        if signs < 2 {
            return false;
        }
        let bare = text.trim_matches(['"', '\'', '`', ',']);
        let offset =
            token.start + (text.len() - text.trim_start_matches(['"', '\'', '`', ',']).len());
        [&ASCII85, &RFC1924, &Z85].into_iter().any(|digits| {
            base85(bare.as_bytes(), digits).is_some_and(|bytes| {
                std::str::from_utf8(&bytes)
                    .is_ok_and(|text| is_text(text) && reads_like_language(text))
                    && self.decoded(offset..offset + bare.len(), Transform::Base85, &bytes)
            })
        })
    }

    /// Takes decoded bytes in if they are text, or are text once decompressed.
    pub(super) fn decoded(&mut self, range: Range<usize>, by: Transform, bytes: &[u8]) -> bool {
        if let Some(text) = text_of(bytes) {
            self.accept(range, &[by], &text);
            return true;
        }
        if let Some(text) = self.inflater.text(bytes) {
            self.put(range, &[by, Transform::Deflate], &text);
            return true;
        }
        false
    }

    fn accept(&mut self, range: Range<usize>, path: &[Transform], text: &str) {
        if text.len() > self.budget {
            self.truncated = true;
            return;
        }
        self.budget -= text.len();
        self.put(range, path, text);
    }

    fn put(&mut self, range: Range<usize>, path: &[Transform], text: &str) {
        let index = match self.groups.iter().position(|(known, _)| known == path) {
            Some(index) => index,
            None => {
                self.groups.push((path.to_vec(), Rewriter::pieces(self.source, usize::MAX)));
                self.groups.len() - 1
            }
        };
        self.groups[index].1.replace(range, text);
    }

    /// A text for each kind of encoding that was found.
    pub(super) fn finish(mut self) -> impl Iterator<Item = (Vec<Transform>, String, Map)> {
        self.flush();
        self.flush_row();
        self.groups
            .into_iter()
            .filter_map(|(path, writer)| writer.finish().map(|(text, map)| (path, text, map)))
    }
}

/// Whether letters of both cases are mixed as no word has them.
pub(super) fn is_odd(word: &[u8]) -> bool {
    word.iter().any(u8::is_ascii_lowercase) && word[1..].iter().any(u8::is_ascii_uppercase)
}

/// The longest stretch of decoded bytes that reads like English.
fn longest_text(bytes: &[u8]) -> Option<&str> {
    let printable = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
    let (mut best, mut start) = (0..0, 0);
    while let Some(least) = bytes.get(start..start + MIN_STRETCH) {
        // From the end: no stretch that is long enough begins before what breaks it.
        if let Some(gap) = least.iter().rposition(|byte| !printable(byte)) {
            start += gap + 1;
            continue;
        }
        let rest = bytes[start..].iter().position(|byte| !printable(byte));
        let end = rest.map_or(bytes.len(), |length| start + length);
        if end - start > best.len() {
            best = start..end;
        }
        start = end + 1;
    }
    let text = std::str::from_utf8(&bytes[best]).ok().filter(|text| !text.is_empty())?;
    (is_text(text) && reads_like_language(text)).then_some(text)
}
