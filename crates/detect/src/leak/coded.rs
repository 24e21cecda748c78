//! Stretches of a text that may be read in another way: encoded, escaped, in markup, in numbers.
//!
//! Ordinary words are read letter by letter and never held for this. A stretch begins with a token
//! that no ordinary word looks like and ends when a few ordinary words in a row have come, or when
//! it is as long as it may be; then it is read as a whole by [`crate::views`].

use std::ops::Range;

/// A stretch is read when it is this long; a longer one is read in parts.
pub(super) const LONGEST: usize = 2048;
/// What two parts of a long stretch share.
const SHARED: usize = 512;
/// Parts begin on a multiple of this within a token, so that groups of any encoding stay whole.
const GROUP: usize = 120;
/// Ordinary tokens that do not end a stretch.
const BRIDGE: u8 = 2;
/// Numbers in a row from which on they may be letters.
const NUMBERS: u32 = 6;

const LOWER: u8 = 1;
const UPPER: u8 = 1 << 1;
const DIGIT: u8 = 1 << 2;
/// `%`, `&`, `\`, `=`: what an escape begins with.
const ESCAPE: u8 = 1 << 3;
/// `<`, `[`: what markup begins with.
const MARKUP: u8 = 1 << 4;
/// Signs that no other class has.
const SIGN: u8 = 1 << 5;
/// Control characters.
const CONTROL: u8 = 1 << 6;
const HIGH: u8 = 1 << 7;
/// Nothing else has no class.
const SPACE: u8 = 0;

const CLASS: [u8; 256] = {
    let mut table = [SPACE; 256];
    let mut byte = 0_u8;
    loop {
        table[byte as usize] = match byte {
            b'a'..=b'z' => LOWER,
            b'A'..=b'Z' => UPPER,
            b'0'..=b'9' => DIGIT,
            b'%' | b'&' | b'\\' | b'=' => ESCAPE,
            b'<' | b'[' => MARKUP,
            0x80.. => HIGH,
            b'\t'..=b'\r' | b' ' => SPACE,
            0..=b' ' | 0x7f => CONTROL,
            _ => SIGN,
        };
        if byte == 255 {
            break table;
        }
        byte += 1;
    }
};

/// What the first character of a token is, and what the others are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Classes {
    first: u8,
    rest: u8,
}

impl Classes {
    /// Of the token that begins at `from`: they, and its end, which is a space or `limit`.
    #[inline]
    pub(super) fn of(bytes: &[u8], from: usize, limit: usize) -> (Self, usize) {
        let Some(first) = bytes.get(from).map(|byte| CLASS[usize::from(*byte)]) else {
            return (Self::default(), from);
        };
        if first == SPACE {
            return (Self::default(), from);
        }
        let mut rest = 0;
        let mut at = from + 1;
        for byte in &bytes[at..limit.max(at)] {
            let class = CLASS[usize::from(*byte)];
            if class == SPACE {
                break;
            }
            rest |= class;
            at += 1;
        }
        (Self { first, rest }, at)
    }

    pub(super) fn has_digit(self) -> bool {
        (self.first | self.rest) & DIGIT != 0
    }

    /// Small letters with a capital in front, and signs.
    #[inline]
    pub(super) fn is_plain(self) -> bool {
        self.first & !(LOWER | UPPER | SIGN) == 0 && self.rest & !(LOWER | SIGN) == 0
    }
}

/// What a token may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    Ordinary,
    /// Worth reading on its own.
    Coded,
    /// Worth reading when there are several.
    Number,
    Short,
}

/// The stretch that is open, if one is.
#[derive(Debug, Default)]
pub(super) struct Coded {
    open: Option<Stretch>,
    /// Where the run of tokens without a space between them began.
    unbroken: usize,
    addresses: bool,
}

#[derive(Debug)]
struct Stretch {
    start: usize,
    end: usize,
    coded: bool,
    numbers: u32,
    short: u32,
    ordinary: u8,
}

impl Stretch {
    fn is_worth_reading(&self) -> bool {
        self.coded || self.numbers >= NUMBERS || self.short >= 2
    }
}

impl Coded {
    /// With addresses and credentials looked for as well.
    pub(super) fn with_addresses(addresses: bool) -> Self {
        Self { addresses, ..Self::default() }
    }

    /// Takes a token in; gives a stretch that is to be read now, if one is. `space` is whether
    /// there was space before the token.
    #[inline]
    pub(super) fn token(
        &mut self,
        token: &str,
        start: usize,
        classes: Classes,
        space: bool,
    ) -> Option<Range<usize>> {
        if space {
            self.unbroken = start;
        }
        if classes.is_plain() && token.len() < 24 && self.open.is_none() {
            return None;
        }
        self.look(token, start, classes.first | classes.rest)
    }

    fn look(&mut self, token: &str, start: usize, classes: u8) -> Option<Range<usize>> {
        let look = look(token, classes, self.addresses);
        let end = start + token.len();
        let Some(open) = &mut self.open else {
            if look != Look::Ordinary {
                let (coded, number, short) =
                    (look == Look::Coded, look == Look::Number, look == Look::Short);
                self.open = Some(Stretch {
                    start,
                    end,
                    coded,
                    numbers: u32::from(number),
                    short: u32::from(short),
                    ordinary: 0,
                });
            }
            return None;
        };
        if look == Look::Ordinary {
            open.ordinary += 1;
            return (open.ordinary > BRIDGE).then(|| self.close()).flatten();
        }
        open.end = end;
        open.ordinary = 0;
        match look {
            Look::Coded => open.coded = true,
            Look::Number => open.numbers += 1,
            _ => open.short += 1,
        }
        if open.end - open.start < LONGEST {
            return None;
        }
        let part = open.start..open.end;
        let worth = open.is_worth_reading();
        let wanted = open.end - SHARED;
        open.start = if self.unbroken < wanted {
            // INVARIANT: the next part begins inside this token, which is ASCII or is not decoded
            // by groups; the reader moves it to a character boundary.
            self.unbroken + (wanted - self.unbroken) / GROUP * GROUP
        } else {
            self.unbroken
        };
        worth.then_some(part)
    }

    /// Ends the stretch; gives it if it is worth reading.
    pub(super) fn close(&mut self) -> Option<Range<usize>> {
        let open = self.open.take()?;
        open.is_worth_reading().then_some(open.start..open.end)
    }

    /// From where on the text may still be part of a stretch.
    pub(super) fn hold(&self) -> usize {
        self.open.as_ref().map_or(usize::MAX, |open| open.start)
    }
}

fn look(token: &str, classes: u8, addresses: bool) -> Look {
    let bytes = token.as_bytes();
    if classes & CONTROL != 0
        || (classes & ESCAPE != 0 && has_escape(bytes))
        || (classes & MARKUP != 0 && has_markup(bytes))
        || (classes & HIGH != 0 && has_hidden(token))
        || (addresses && is_address(token))
    {
        return Look::Coded;
    }
    let letters = classes & (LOWER | UPPER) != 0;
    if classes & DIGIT != 0 && is_number(bytes) {
        // A long one may be a row of digits of its own.
        return if bytes.len() >= 16 { Look::Coded } else { Look::Number };
    }
    if !letters || classes & (UPPER | DIGIT) == 0 {
        // Base85 and the like have capitals and digits; long runs of small letters are no text.
        return if bytes.len() >= 48 && classes == LOWER { Look::Coded } else { Look::Ordinary };
    }
    coded(bytes)
}

/// By how often the class of character changes: names change at humps, encodings everywhere.
fn coded(bytes: &[u8]) -> Look {
    let (mut run, mut changes, mut longest, mut most) = (0_usize, 0_usize, 0_usize, 0_usize);
    let (mut before, mut digits, mut capitals) = (0, 0_usize, 0_usize);
    let mut signs = 0_usize;
    for (at, byte) in bytes.iter().enumerate() {
        let class = CLASS[usize::from(*byte)];
        if class & (LOWER | UPPER | DIGIT) == 0 && !matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_')
        {
            signs += usize::from(class & SIGN != 0);
            (run, changes, before) = (0, 0, 0);
            continue;
        }
        run += 1;
        let class = class & (LOWER | UPPER | DIGIT);
        if class != 0 {
            // A capital before small letters is one change, not two.
            let hump = before == UPPER && class == LOWER && run > 1;
            changes += usize::from(before != 0 && class != before && !hump);
            digits += usize::from(class == DIGIT);
            capitals += usize::from(class == UPPER && at > 0);
            before = class;
        }
        if run > longest {
            (longest, most) = (run, changes);
        }
    }
    if longest >= 12 && (most * 4 >= longest || (digits > 0 && capitals > 8)) {
        return Look::Coded;
    }
    if bytes.len() >= 16 && signs >= 3 && digits > 0 && capitals > 0 && signs * 8 >= bytes.len() {
        return Look::Coded;
    }
    if longest >= 16 && capitals + 1 >= longest {
        return Look::Coded;
    }
    if bytes.len() >= 4 && capitals > 0 && capitals + digits + 1 < bytes.len() + digits && most > 0
    {
        return Look::Short;
    }
    Look::Ordinary
}

/// Digits, of hexadecimal numbers too, and signs.
fn is_number(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| {
        byte.is_ascii_hexdigit() || !byte.is_ascii_alphanumeric() || matches!(byte, b'x' | b'X')
    }) && bytes.is_ascii()
}

fn has_escape(bytes: &[u8]) -> bool {
    let mut quoted = 0;
    let entities = bytes.contains(&b';');
    for at in 0..bytes.len() {
        let rest = &bytes[at + 1..];
        let coded = match bytes[at] {
            b'%' => matches!(rest, [b'u' | b'U', ..]) || is_pair(rest),
            b'&' => {
                rest.first() == Some(&b'#')
                    || (entities && rest.first().is_some_and(u8::is_ascii_alphabetic))
            }
            b'\\' => rest.first().is_some_and(u8::is_ascii_alphanumeric),
            b'=' => {
                quoted += u8::from(is_pair(rest));
                quoted > 1
            }
            _ => false,
        };
        if coded {
            return true;
        }
    }
    false
}

fn is_pair(bytes: &[u8]) -> bool {
    matches!(bytes, [high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit())
}

fn has_markup(bytes: &[u8]) -> bool {
    bytes.windows(2).any(|pair| match pair {
        [b'<', sign] => sign.is_ascii_alphabetic() || matches!(sign, b'/' | b'!' | b'~'),
        [b']', b'('] => true,
        _ => false,
    })
}

/// Whether a byte parts tokens.
#[inline]
pub(super) fn is_space(byte: u8) -> bool {
    CLASS[usize::from(byte)] == SPACE
}

/// More characters that show nothing than an emoji has, or ones that turn text round.
fn has_hidden(token: &str) -> bool {
    // What all of them begin with.
    if !token.bytes().any(|byte| matches!(byte, 0xc2 | 0xcd | 0xe2 | 0xef | 0xf3)) {
        return false;
    }
    let mut count = 0;
    for character in token.chars() {
        match character {
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => return true,
            '\u{200b}'..='\u{200f}'
            | '\u{2060}'..='\u{2064}'
            | '\u{feff}'
            | '\u{ad}'
            | '\u{34f}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{e0000}'..='\u{e01ef}' => count += 1,
            _ => {}
        }
    }
    count > 5
}

fn is_address(token: &str) -> bool {
    token.contains("://") || token.contains("www.") || token.contains("data:")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(token: &str) -> Look {
        let (classes, _) = Classes::of(token.as_bytes(), 0, token.len());
        look(token, classes.first | classes.rest, false)
    }

    #[test]
    fn encodings_stand_out() {
        for token in [
            "aGVsbG8gd29ybGQgYW5k",
            "68656c6c6f20776f726c64",
            "NBSWY3DPEB3W64TMMQ======",
            "%69%67",
            "&#105;&#103;",
            "\\x69\\x67",
            "=69=67",
            "<b>i</b>g",
            "0110100101100111",
            "BOu!rD]j7BEbo7FE1f,",
            "[a](b)",
            "\u{202e}abc",
        ] {
            assert_eq!(of(token), Look::Coded, "{token}");
        }
        assert_eq!(of("105,"), Look::Number);
        assert_eq!(of("50%"), Look::Number);
        assert_eq!(of("WW91"), Look::Short);
    }

    #[test]
    fn words_and_names_do_not() {
        for token in [
            "harbour",
            "Harbour,",
            "(see",
            "R&D",
            "getElementById",
            "build_memory_section",
            "don't",
            "a=b",
            "foo(bar,",
            "SILENT_REPLY_TOKEN",
            "C++",
            "—",
            "straße",
            "x",
            "user@example.com",
            "self.value",
            "/usr/local/share/doc",
            "std::collections::HashMap",
            "🙂",
            "[note]",
            "**Important:**",
        ] {
            assert!(matches!(of(token), Look::Ordinary | Look::Short), "{token}");
        }
    }

    #[test]
    fn a_long_stretch_is_read_in_parts_that_overlap() {
        let mut coded = Coded::default();
        let token = "aGVsbG8gd29ybGQgYW5kIGFsbCB0aGUgcmVzdCBvZiBpdCwgdG9v".repeat(2);
        let mut parts = Vec::new();
        for at in 0..100 {
            let token = &token[..64];
            let (classes, _) = Classes::of(token.as_bytes(), 0, token.len());
            parts.extend(coded.token(token, at * 64, classes, at == 0));
        }
        parts.extend(coded.close());
        assert!(parts.len() >= 3);
        for pair in parts.windows(2) {
            assert!(pair[1].start < pair[0].end && pair[0].end - pair[1].start <= SHARED + GROUP);
            assert_eq!(pair[1].start % GROUP, 0);
        }
    }
}
