//! Letters as they are compared: case, accents, look-alikes, digits for letters and everything
//! between the letters folded away.
//!
//! A text and the prompt it may repeat go through the same folding, so it need not be reversible
//! and need not be right about a language: it only has to send every way of writing the same
//! letter to the same symbol.

use std::sync::LazyLock;

use unicode_normalization::char::{decompose_compatible, is_combining_mark};

/// Bits of one symbol; letters are 0 to 25, parts of other characters anything below 32.
pub(super) const BITS: u32 = 5;

/// Not a letter.
const NONE: u8 = 255;
/// A sign that stands for a letter between letters only.
const BETWEEN: u8 = 128;
/// A letter of another script.
const OTHER: u8 = 254;

const ASCII: [u8; 128] = {
    let mut table = [NONE; 128];
    let mut at = 0;
    while at < 26 {
        // A vertical stroke is a vertical stroke.
        let symbol = if at == b'l' - b'a' { b'i' - b'a' } else { at };
        table[(b'a' + at) as usize] = symbol;
        table[(b'A' + at) as usize] = symbol;
        at += 1;
    }
    let digits = *b"oizeasgtbg";
    let mut digit = 0;
    while digit < 10 {
        table[b'0' as usize + digit] = digits[digit] - b'a';
        digit += 1;
    }
    table[b'@' as usize] = BETWEEN;
    table[b'$' as usize] = BETWEEN | (b's' - b'a');
    table[b'!' as usize] = BETWEEN | (b'i' - b'a');
    table[b'|' as usize] = BETWEEN | (b'i' - b'a');
    table
};

/// What [`of_letter`] says of everything else.
pub(super) const NO_LETTER: u8 = NONE;

const LETTERS: [u8; 256] = {
    let mut table = [NO_LETTER; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        if byte.is_ascii_alphabetic() {
            table[byte as usize] = ASCII[byte as usize];
        }
        byte += 1;
    }
    table
};

/// The symbol of an ASCII letter, and of letters only.
#[inline(always)]
pub(super) const fn of_letter(byte: u8) -> u8 {
    LETTERS[byte as usize]
}

const NEAR: u32 = 0x80;
const NEAR_END: u32 = 0x590;

/// Latin with signs, Greek, Cyrillic and Armenian, which are looked up often.
static TABLE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    (NEAR..NEAR_END).map(|code| char::from_u32(code).map_or(NONE, near_symbol)).collect()
});

/// Folds one text, token by token.
///
/// Digits count as letters where there are letters beside them: a number is no word, unless the
/// words before it are written with digits.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Folder {
    /// For so many tokens to come, numbers are words.
    digits: u8,
}

impl Folder {
    /// Takes note of a token that is nothing but ASCII letters and signs around them.
    #[inline]
    pub(super) fn word(&mut self) {
        self.digits = self.digits.saturating_sub(1);
    }

    /// Gives the symbols of every letter of a token, each with the bytes its character takes up.
    #[inline]
    pub(super) fn fold(&mut self, token: &str, mut symbol: impl FnMut(u8, usize, usize)) {
        let bytes = token.as_bytes();
        let (mut letters, mut digits, mut high) = (false, false, false);
        for byte in bytes {
            letters |= byte.is_ascii_alphabetic();
            digits |= byte.is_ascii_digit();
            high |= !byte.is_ascii();
        }
        if high && !letters {
            letters = token.chars().any(|c| is_letter(c) || is_tag(c));
        }
        let word = letters || (digits && self.digits > 0 && bytes.len() <= 4);
        if !word {
            return;
        }
        self.digits = if letters && digits { 3 } else { self.digits.saturating_sub(1) };
        if high {
            return wide_token(token, symbol);
        }
        for (at, byte) in bytes.iter().enumerate() {
            let folded = ASCII[usize::from(*byte & 0x7f)];
            if folded < 26 {
                symbol(folded, at, at + 1);
            } else if folded != NONE && between(bytes, at) {
                symbol(folded & !BETWEEN, at, at + 1);
            }
        }
    }
}

fn wide_token(token: &str, mut symbol: impl FnMut(u8, usize, usize)) {
    for (at, character) in token.char_indices() {
        let end = at + character.len_utf8();
        if character.is_ascii() {
            let folded = ASCII[character as usize];
            if folded < 26 {
                symbol(folded, at, end);
            } else if folded != NONE && between(token.as_bytes(), at) {
                symbol(folded & !BETWEEN, at, end);
            }
        } else {
            wide(character, &mut |folded| symbol(folded, at, end));
        }
    }
}

/// The symbols of a text, which need not be one token.
pub(super) fn letters(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut folder = Folder::default();
    for token in text.split_ascii_whitespace() {
        folder.fold(token, |symbol, _, _| out.push(symbol));
    }
    out
}

fn between(bytes: &[u8], at: usize) -> bool {
    let letter = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'@' | b'$');
    at > 0 && letter(&bytes[at - 1]) && bytes.get(at + 1).is_some_and(letter)
}

/// Whether a character is part of words, as far as that shows quickly.
pub(super) fn is_letter(character: char) -> bool {
    matches!(character, '\u{620}'..='\u{64a}' | '\u{904}'..='\u{939}' | '\u{3041}'..='\u{30ff}'
        | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' | '\u{400}'..='\u{481}')
        || character.is_alphabetic()
}

fn is_tag(character: char) -> bool {
    matches!(character, '\u{e0021}'..='\u{e007e}')
}

fn wide(character: char, symbol: &mut impl FnMut(u8)) {
    let code = u32::from(character);
    match code {
        NEAR..NEAR_END => match TABLE[(code - NEAR) as usize] {
            NONE => {}
            OTHER => other(lower(character), symbol),
            folded => symbol(folded),
        },
        // Punctuation, marks without width, selectors, private use.
        0x2000..=0x206f | 0xe000..=0xf8ff | 0xfe00..=0xfe0f | 0xfeff | 0xe0100..=0xe01ef => {}
        0x3041..=0x30ff | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xac00..=0xd7a3 => {
            other(character, symbol);
        }
        // Scripts without case and without Latin look-alikes worth the search.
        0x590..=0x109f | 0x1100..=0x139f | 0x1400..=0x1cff | 0xfb1d..=0xfdff | 0xfe70..=0xfefc => {
            // Points, digits and punctuation of the scripts that are read most.
            let sign = matches!(code,
                0x591..=0x5c7 | 0x600..=0x61f | 0x64b..=0x670 | 0x6d4..=0x6ed | 0x964..=0x970
                | 0xe3f | 0xe4f..=0xe5b);
            if !sign {
                other(character, symbol);
            }
        }
        0xff01..=0xff5e => ascii(code - 0xfee0, symbol),
        0xe0021..=0xe007e => ascii(code - 0xe0000, symbol),
        _ => rare(character, symbol),
    }
}

fn ascii(code: u32, symbol: &mut impl FnMut(u8)) {
    let folded = ASCII[(code & 0x7f) as usize];
    if folded < 26 {
        symbol(folded);
    }
}

/// A letter of another script counts for three: it says as much.
fn other(character: char, symbol: &mut impl FnMut(u8)) {
    let [first, second, third, _] = u32::from(character).wrapping_mul(0x9e37_79b1).to_be_bytes();
    for byte in [first, second, third] {
        symbol(byte >> 3);
    }
}

fn rare(character: char, symbol: &mut impl FnMut(u8)) {
    let mut plain = [0_u8; 4];
    let mut count = 0;
    decompose_compatible(character, |part| {
        if part.is_ascii_alphanumeric() && count < plain.len() {
            plain[count] = ASCII[part as usize];
            count += 1;
        }
    });
    if count > 0 {
        plain[..count].iter().for_each(|folded| symbol(*folded));
    } else if let Some(letter) = small_capital(character).or_else(|| look_alike(character)) {
        ascii(u32::from(letter), symbol);
    } else if character.is_alphabetic() && !is_combining_mark(character) {
        other(lower(character), symbol);
    }
}

fn near_symbol(character: char) -> u8 {
    let mut base = None;
    decompose_compatible(character, |part| {
        if base.is_none() && !is_combining_mark(part) {
            base = Some(part);
        }
    });
    let Some(base) = base.filter(|base| base.is_alphanumeric()) else { return NONE };
    if base.is_ascii() {
        return ASCII[base as usize];
    }
    match small_capital(base).or_else(|| look_alike(base)) {
        Some(letter) => ASCII[letter as usize],
        None => OTHER,
    }
}

/// The ASCII letter that a letter of either case looks like.
fn look_alike(character: char) -> Option<char> {
    let upper = character.to_uppercase().next().unwrap_or(character);
    [lower(character), upper].into_iter().find_map(|letter| {
        let mut buffer = [0; 4];
        let mut skeleton =
            unicode_security::confusable_detection::skeleton(letter.encode_utf8(&mut buffer));
        let first = skeleton.next()?;
        (skeleton.next().is_none() && first.is_ascii_alphabetic()).then_some(first)
    })
}

fn lower(character: char) -> char {
    character.to_lowercase().next().unwrap_or(character)
}

fn small_capital(character: char) -> Option<char> {
    const CAPITALS: &str = "ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘꞯʀꜱᴛᴜᴠᴡxʏᴢ";
    let at = CAPITALS.chars().position(|known| known == character && !known.is_ascii())?;
    char::from_u32(u32::from(b'a') + u32::try_from(at).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(text: &str) -> String {
        letters(text).into_iter().map(|symbol| char::from(b'a' + symbol)).collect()
    }

    #[test]
    fn one_letter_in_many_ways() {
        for text in [
            "harbour",
            "HARBOUR",
            "h a r b o u r",
            "h.a-r_b/o:u r",
            "h4rb0ur",
            "h@rbour",
            "hárböùr",
            "ｈａｒｂｏｕｒ",
            "hаrbоur",
            "𝐡𝐚𝐫𝐛𝐨𝐮𝐫",
            "ⓗⓐⓡⓑⓞⓤⓡ",
            "ʜᴀʀʙᴏᴜʀ",
            "har\u{200b}bo\u{ad}ur",
            "h\u{301}\u{302}arbour",
            "\u{e0068}\u{e0061}\u{e0072}\u{e0062}\u{e006f}\u{e0075}\u{e0072}",
        ] {
            assert_eq!(word(text), "harbour", "{text}");
        }
    }

    #[test]
    fn numbers_among_words_with_digits_are_words() {
        assert_eq!(word("7h1s 15 4 h4rb0ur 0f 2019 boats"), "thisisaharbourofzoigboats");
        assert_eq!(word("this is 15 harbours"), "thisisharbours");
    }

    #[test]
    fn numbers_are_no_words() {
        assert_eq!(word("2019, 35 % and 1. harbour"), "andharbour");
        assert_eq!(word("🙂 — … ₿"), "");
    }

    #[test]
    fn other_scripts_are_kept_apart_and_fold_case() {
        assert_eq!(letters("ПРИВЕТ МИР"), letters("привет, мир"));
        assert_ne!(letters("привет"), letters("мирное"));
        assert_eq!(letters("提示词").len(), 9);
        assert_ne!(letters("提示词"), letters("提示语"));
    }
}
