//! What one sign of a text may be read as by somebody who looks for a tag.

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;
use unicode_security::confusable_detection::skeleton;
use wardkeep_detect::views::{Limits, views};

/// The readings of one character.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Reading {
    /// It opens a tag.
    pub(super) opens: bool,
    /// It ends one.
    pub(super) closes: bool,
    /// It may stand between the letters of a name without changing it.
    pub(super) skipped: bool,
    /// Letters that it stands for, in lower case; more than one where it is ambiguous.
    pub(super) letters: [Option<u8>; 3],
    /// The letters of a character that stands for two; `m` is read as `rn`, which it looks like.
    pub(super) pair: Option<[u8; 2]>,
}

/// What a character may be read as.
pub(super) fn read(character: char) -> Reading {
    if character.is_ascii() {
        return ascii(u8::try_from(character).unwrap_or(0));
    }
    if is_opening(character) {
        return Reading { opens: true, skipped: true, ..Reading::default() };
    }
    // Tag characters repeat ASCII and show nothing.
    if let code @ 0xe_0020..=0xe_007e = u32::from(character) {
        let byte = u8::try_from(code - 0xe_0000).unwrap_or(0);
        return Reading { skipped: true, closes: false, ..ascii(byte) };
    }
    if is_combining_mark(character) {
        return Reading { skipped: true, ..Reading::default() };
    }
    if let Some(letter) = boxed(character) {
        return Reading { skipped: true, ..ascii(letter) };
    }
    let mut reading = Reading::default();
    let plain: Vec<char> =
        character.nfkd().filter(|sign| !is_combining_mark(*sign)).take(4).collect();
    if plain == ['>'] || is_closing(character) {
        reading.closes = true;
        return reading;
    }
    let mut foreign = false;
    let mut folded = Vec::new();
    for sign in &plain {
        let mut text = [0; 4];
        let shown: Vec<char> = skeleton(sign.encode_utf8(&mut text)).collect();
        let all = if sign.is_ascii() { std::slice::from_ref(sign) } else { shown.as_slice() };
        for sign in all {
            match sign {
                sign if sign.is_ascii_alphanumeric() => {
                    folded.push(sign.to_ascii_lowercase());
                }
                sign if sign.is_alphanumeric() => foreign = true,
                _ => {}
            }
        }
    }
    let bytes: Vec<u8> = folded.iter().filter_map(|sign| u8::try_from(*sign).ok()).collect();
    match *bytes.as_slice() {
        [] => reading.skipped = !foreign,
        [one] if !foreign => {
            let read = ascii(one);
            reading.letters = read.letters;
            reading.pair = read.pair;
            // A sign that is no letter may also be passed over.
            reading.skipped = !character.is_alphanumeric();
        }
        [one, two] if !foreign => {
            reading.pair = Some([one, two]);
            reading.skipped = !character.is_alphanumeric();
        }
        _ => reading.skipped = !character.is_alphanumeric(),
    }
    if let Some(letter) = seen_as(character) {
        let read = ascii(letter);
        reading.letters[2] = read.letters[0];
        reading.pair = reading.pair.or(read.pair);
    }
    reading
}

/// The Latin letter that detect reads this as, inside a Latin word.
fn seen_as(character: char) -> Option<u8> {
    let probe = format!("a{character}a");
    let read = views(&probe, &Limits { max_views: 1, ..Limits::default() });
    match read.views.first()?.text().as_bytes() {
        [b'a', letter, b'a'] if letter.is_ascii_lowercase() => Some(*letter),
        _ => None,
    }
}

fn ascii(byte: u8) -> Reading {
    let mut reading = Reading::default();
    let letters: &[u8] = match byte {
        b'<' => {
            reading.opens = true;
            b""
        }
        b'>' => {
            reading.closes = true;
            return reading;
        }
        // As digits and signs are read by who writes with them.
        b'0' => b"o",
        b'1' => b"li",
        b'3' => b"e",
        b'4' | b'@' => b"a",
        b'5' | b'$' => b"s",
        b'7' | b'+' => b"t",
        b'9' => b"g",
        b'I' | b'!' | b'|' => b"il",
        b'(' => b"c",
        b'm' | b'M' => {
            reading.pair = Some(*b"rn");
            b""
        }
        b'a'..=b'z' | b'A'..=b'Z' => &[byte.to_ascii_lowercase()],
        _ => b"",
    };
    for (slot, letter) in reading.letters.iter_mut().zip(letters) {
        *slot = Some(*letter);
    }
    reading.skipped = !byte.is_ascii_alphanumeric();
    reading
}

/// Characters that are or look like `<`, and brackets that are used in its place.
pub(super) fn is_opening(character: char) -> bool {
    matches!(
        character,
        '<' | '\u{ab}'
            | '\u{2c2}'
            | '\u{1438}'
            | '\u{16b2}'
            | '\u{2039}'
            | '\u{226a}'
            | '\u{226e}'
            | '\u{22d8}'
            | '\u{2329}'
            | '\u{276c}'
            | '\u{276e}'
            | '\u{2770}'
            | '\u{27e8}'
            | '\u{27ea}'
            | '\u{29fc}'
            | '\u{2a79}'
            | '\u{2a7b}'
            | '\u{2aa1}'
            | '\u{2d66}'
            | '\u{3008}'
            | '\u{300a}'
            | '\u{fe3d}'
            | '\u{fe3f}'
            | '\u{fe64}'
            | '\u{ff1c}'
            | '\u{1d236}'
            | '\u{e003c}'
    )
}

fn is_closing(character: char) -> bool {
    matches!(
        character,
        '\u{203a}' | '\u{232a}' | '\u{27e9}' | '\u{3009}' | '\u{276f}' | '\u{fe65}' | '\u{ff1e}'
    )
}

/// Letters in boxes and circles, and regional indicators.
fn boxed(character: char) -> Option<u8> {
    let code = u32::from(character);
    let letter = match character {
        '\u{1f110}'..='\u{1f129}' => code - 0x1_f110,
        '\u{1f130}'..='\u{1f149}' => code - 0x1_f130,
        '\u{1f150}'..='\u{1f169}' => code - 0x1_f150,
        '\u{1f170}'..='\u{1f189}' => code - 0x1_f170,
        '\u{1f1e6}'..='\u{1f1ff}' => code - 0x1_f1e6,
        '\u{24d0}'..='\u{24e9}' => code - 0x24d0,
        '\u{24b6}'..='\u{24cf}' => code - 0x24b6,
        _ => return None,
    };
    u8::try_from(letter).ok().map(|letter| b'a' + letter)
}
