//! Encoded pieces: Base64, Base32, Base85, hexadecimal, and what was compressed inside them.

use std::io::Read as _;
use std::ops::Range;

use super::language::{is_text, reads_like_language, text_of};
use super::map::{Map, Rewriter};
use crate::finding::Transform;

/// A run of this many characters of an alphabet is looked at.
const MIN_RUN: usize = 16;
/// Shorter ones are when they are lines of one piece.
const MIN_LINE: usize = 12;
/// Text found inside a run that is not text as a whole must be this long.
const MIN_STRETCH: usize = 14;

/// Decoded pieces, those of one kind together.
#[derive(Debug)]
pub(super) struct Pieces<'s> {
    source: &'s str,
    groups: Vec<(Vec<Transform>, Rewriter<'s>)>,
    /// Tokens that may be lines of one piece.
    lines: Vec<Range<usize>>,
    budget: usize,
    /// What may yet come out of compressed pieces: as long as there is enough, and then.
    inflated: [usize; 2],
    pub(super) truncated: bool,
}

impl<'s> Pieces<'s> {
    pub(super) fn new(source: &'s str, budget: usize) -> Self {
        let inflated = [budget / 2; 2];
        Self { source, groups: Vec::new(), lines: Vec::new(), budget, inflated, truncated: false }
    }

    /// Whether short tokens matter, too, because they may end a piece.
    #[inline]
    pub(super) fn pending(&self) -> bool {
        !self.lines.is_empty()
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

    /// A short token with capitals in odd places: one word in Base64, perhaps.
    pub(super) fn short(&mut self, token: Range<usize>) {
        self.flush();
        self.word(token);
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
        if self.whole(range.clone(), &mut decoded) {
            return true;
        }
        if decoded.is_empty() {
            return false;
        }
        let bytes = &self.source.as_bytes()[range.clone()];
        // A name or a path before it may have shifted the alphabet, or noise may follow.
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
        let bytes = &self.source.as_bytes()[range.clone()];
        let body = bytes.trim_ascii_end();
        let digits = body.strip_prefix(b"0x").unwrap_or(body);
        if digits.iter().all(|byte| byte.is_ascii_hexdigit() || byte.is_ascii_whitespace()) {
            return self.decoded(range.clone(), Transform::Hex, &hex(digits));
        }
        let thirty_two =
            |byte: &u8| matches!(byte, b'2'..=b'7' | b'=') || byte.is_ascii_whitespace();
        // In either case, but in one.
        if (body.iter().all(|byte| byte.is_ascii_uppercase() || thirty_two(byte))
            || body.iter().all(|byte| byte.is_ascii_lowercase() || thirty_two(byte)))
            && self.decoded(range.clone(), Transform::Base32, &base32(body))
        {
            return true;
        }
        *decoded = base64(bytes, 0);
        self.decoded(range, Transform::Base64, decoded)
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
        if let Some(text) = self.inflate(bytes) {
            self.put(range, &[by, Transform::Deflate], &text);
            return true;
        }
        false
    }

    /// What was compressed, up to eight times its length or half of what there is; when much has come out
    /// already, half as much again as its length, which is enough for a short text: no piece uses up what others
    /// need.
    fn inflate(&mut self, bytes: &[u8]) -> Option<String> {
        let enough = bytes.len() * 8 + 256;
        let (pool, limit) = match self.inflated {
            [first, _] if first >= enough => (0, enough.max(first / 2)),
            [_, second] => (1, second.min(bytes.len() * 3 / 2 + 16)),
        };
        let mut plain = Vec::new();
        let most = limit as u64;
        match bytes {
            [0x1f, 0x8b, 8, ..] => {
                let _ = flate2::read::GzDecoder::new(bytes).take(most).read_to_end(&mut plain);
            }
            [0x78, 0x01 | 0x5e | 0x9c | 0xda, ..] => {
                let _ = flate2::read::ZlibDecoder::new(bytes).take(most).read_to_end(&mut plain);
            }
            _ => return None,
        }
        self.truncated |= plain.len() >= limit;
        // What is thrown away was work all the same.
        self.inflated[pool] = self.inflated[pool].saturating_sub(plain.len());
        let good = match std::str::from_utf8(&plain) {
            Ok(_) => plain.len(),
            Err(error) => error.valid_up_to(),
        };
        text_of(&plain[..good])
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
        self.groups
            .into_iter()
            .filter_map(|(path, writer)| writer.finish().map(|(text, map)| (path, text, map)))
    }
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'=')
}

const SIXTY_FOUR: [u8; 256] = {
    let mut table = [255; 256];
    let mut at = 0_u8;
    while at < 64 {
        let letter =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[at as usize];
        table[letter as usize] = at;
        at += 1;
    }
    table[b'-' as usize] = 62;
    table[b'_' as usize] = 63;
    table
};

/// Base64 of any alphabet from a phase on; whatever is not of it is passed over.
fn base64(bytes: &[u8], phase: usize) -> Vec<u8> {
    let mut rest = bytes.get(phase..).unwrap_or_default();
    let mut out = Vec::with_capacity(rest.len() / 4 * 3 + 3);
    let (mut value, mut count) = (0_u32, 0);
    loop {
        if count == 0 {
            rest = base64_groups(rest, &mut out);
        }
        let Some((byte, after)) = rest.split_first() else { break };
        rest = after;
        let digit = SIXTY_FOUR[usize::from(*byte)];
        if digit == 255 {
            if *byte == b'=' && count > 0 {
                finish_group(&mut out, value, count);
                (value, count) = (0, 0);
            }
            continue;
        }
        value = value << 6 | u32::from(digit);
        count += 1;
        if count == 4 {
            let [_, first, second, third] = value.to_be_bytes();
            out.extend_from_slice(&[first, second, third]);
            (value, count) = (0, 0);
        }
    }
    finish_group(&mut out, value, count);
    out
}

/// Takes groups of four off as long as all are of the alphabet, four of them at once.
#[inline]
fn base64_groups<'b>(mut rest: &'b [u8], out: &mut Vec<u8>) -> &'b [u8] {
    let four = |four: &[u8; 4]| {
        let [a, b, c, d] = four.map(|byte| SIXTY_FOUR[usize::from(byte)]);
        let value = u32::from(a) << 18 | u32::from(b) << 12 | u32::from(c) << 6 | u32::from(d);
        ((a | b | c | d) < 64, value.to_be_bytes())
    };
    while let Some((block, after)) = rest.split_first_chunk::<16>() {
        let mut decoded = [0; 12];
        let mut good = true;
        for (group, to) in block.as_chunks::<4>().0.iter().zip(decoded.as_chunks_mut::<3>().0) {
            let (all, [_, first, second, third]) = four(group);
            good &= all;
            *to = [first, second, third];
        }
        if !good {
            break;
        }
        out.extend_from_slice(&decoded);
        rest = after;
    }
    while let Some((group, after)) = rest.split_first_chunk::<4>() {
        let (all, [_, first, second, third]) = four(group);
        if !all {
            break;
        }
        out.extend_from_slice(&[first, second, third]);
        rest = after;
    }
    rest
}

fn finish_group(out: &mut Vec<u8>, value: u32, count: u32) {
    match count {
        2 => out.push(value.to_be_bytes()[3] >> 4 | value.to_be_bytes()[2] << 4),
        3 => {
            let [_, _, high, low] = (value >> 2).to_be_bytes();
            out.extend_from_slice(&[high, low]);
        }
        _ => {}
    }
}

const THIRTY_TWO: [u8; 256] = {
    let mut table = [255; 256];
    let mut at = 0_u8;
    while at < 32 {
        let digit = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[at as usize];
        table[digit as usize] = at;
        table[digit.to_ascii_lowercase() as usize] = at;
        at += 1;
    }
    table
};

fn base32(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() / 8 * 5 + 5);
    let (mut rest, mut value, mut count) = (bytes, 0_u16, 0);
    loop {
        // Eight at once, as long as all are of the alphabet.
        while count == 0
            && let Some((eight, after)) = rest.split_first_chunk::<8>()
        {
            let digits = eight.map(|byte| THIRTY_TWO[usize::from(byte)]);
            if digits.iter().fold(0, |any, digit| any | digit) >= 32 {
                break;
            }
            let group = digits.iter().fold(0, |group, digit| group << 5 | u64::from(*digit));
            let [_, _, _, a, b, c, d, e] = group.to_be_bytes();
            out.extend_from_slice(&[a, b, c, d, e]);
            rest = after;
        }
        let Some((byte, after)) = rest.split_first() else { break };
        rest = after;
        let digit = THIRTY_TWO[usize::from(*byte)];
        if digit == 255 {
            continue;
        }
        value = value << 5 | u16::from(digit);
        count += 5;
        if count >= 8 {
            count -= 8;
            out.push((value >> count).to_be_bytes()[1]);
        }
    }
    out
}

/// Pairs of hexadecimal digits, white space passed over.
pub(super) fn hex(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() / 2);
    let mut high = None;
    for digit in bytes.iter().filter_map(|byte| nibble(*byte)) {
        high = match high {
            None => Some(digit),
            Some(high) => {
                out.push(high << 4 | digit);
                None
            }
        };
    }
    out
}

/// The value of a hexadecimal digit.
pub(super) fn nibble(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

/// Digits of a Base85 alphabet by byte; 255 for all others.
const fn digits85(alphabet: &[u8; 85]) -> [u8; 256] {
    let mut table = [255; 256];
    let mut at = 0_u8;
    while at < 85 {
        table[alphabet[at as usize] as usize] = at;
        at += 1;
    }
    table
}

static ASCII85: [u8; 256] = digits85(
    b"!\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstu",
);
static RFC1924: [u8; 256] = digits85(
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~",
);
static Z85: [u8; 256] = digits85(
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#",
);

/// Whether the first three groups may be the beginning of text, or of something compressed.
fn begins_text(start: &[u8; 15], digits: &[u8; 256]) -> bool {
    let mut out = [0; 12];
    for (group, to) in start.as_chunks::<5>().0.iter().zip(out.as_chunks_mut::<4>().0) {
        let value =
            group.iter().fold(0, |value, byte| value * 85 + u64::from(digits[usize::from(*byte)]));
        match u32::try_from(value) {
            Ok(value) if group.iter().all(|byte| digits[usize::from(*byte)] < 85) => {
                *to = value.to_be_bytes();
            }
            _ => return false,
        }
    }
    let broken = std::str::from_utf8(&out).is_err_and(|error| error.error_len().is_some());
    !broken || out.starts_with(&[0x1f, 0x8b]) || out[0] == 0x78
}

/// Base85 with the digits of one alphabet; gives up early on what is not text.
fn base85(bytes: &[u8], digits: &[u8; 256]) -> Option<Vec<u8>> {
    if bytes.first_chunk().is_some_and(|start| !begins_text(start, digits)) {
        return None;
    }
    let mut out = Vec::with_capacity(bytes.len() / 5 * 4 + 4);
    let (mut value, mut count, mut odd) = (0_u64, 0_usize, 0_usize);
    for byte in bytes {
        let digit = digits[usize::from(*byte)];
        if digit == 255 {
            return None;
        }
        value = value * 85 + u64::from(digit);
        count += 1;
        if count == 5 {
            let group = u32::try_from(value).ok()?.to_be_bytes();
            odd += group.iter().filter(|byte| **byte < 9).count();
            out.extend_from_slice(&group);
            if odd > 4 + out.len() / 8 {
                return None;
            }
            (value, count) = (0, 0);
        }
        if out.len() == 12
            && std::str::from_utf8(&out).is_err_and(|error| error.error_len().is_some())
            && !out.starts_with(&[0x1f, 0x8b])
            && out[0] != 0x78
        {
            return None;
        }
    }
    if count > 1 {
        for _ in count..5 {
            value = value * 85 + 84;
        }
        out.extend_from_slice(&u32::try_from(value).ok()?.to_be_bytes()[..count - 1]);
    }
    Some(out)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alphabets() {
        assert_eq!(base64(b"aGVsbG8gd29ybGQ=", 0), b"hello world");
        assert_eq!(base64(b"aGVsbG8gd29ybGQ", 0), b"hello world");
        assert_eq!(base32(b"NBSWY3DPEB3W64TMMQ======"), b"hello world");
        assert_eq!(base32(b"nbswy3dpeb3w64tmmq"), b"hello world");
        assert_eq!(base85(b"BOu!rD]j7BEbo7", &ASCII85).unwrap(), b"hello world");
        assert_eq!(base85(b"Xk~0{Zy<MXa%^M", &RFC1924).unwrap(), b"hello world");
        assert_eq!(hex(b"68656c6c6f"), b"hello");
    }
}
