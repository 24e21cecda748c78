//! Characters that show nothing, and what can be hidden in them.

use super::HiddenKind;
use super::language::is_text;

/// Whether a character leaves no mark on a screen.
pub(super) fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{80}'..='\u{84}' | '\u{86}'..='\u{9f}' | '\u{ad}' | '\u{34f}' | '\u{61c}'
        | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// A space of any width, as what it is folded to.
pub(super) fn blank(character: char) -> Option<char> {
    match character {
        '\u{a0}'
        | '\u{1680}'
        | '\u{2000}'..='\u{200a}'
        | '\u{202f}'
        | '\u{205f}'
        | '\u{2800}'
        | '\u{3000}' => Some(' '),
        '\u{85}' | '\u{2028}' | '\u{2029}' => Some('\n'),
        _ => None,
    }
}

/// What a run of invisible characters says.
pub(super) fn read(run: &str, before: Option<char>) -> Vec<(HiddenKind, String)> {
    let mut found = Vec::new();
    let tags: String = run.chars().filter_map(tag).collect();
    // A flag is the black flag, a region in tags and the cancel tag.
    let flag = before == Some('\u{1f3f4}') && tags.len() <= 6;
    if !tags.is_empty() && !flag {
        found.push((HiddenKind::Tags, tags));
    }
    let selected: Vec<u8> = run.chars().filter_map(selector).collect();
    if selected.len() >= 4 {
        let text = String::from_utf8_lossy(&selected).into_owned();
        let text = if is_text(&text) { text } else { String::new() };
        found.push((HiddenKind::VariationSelectors, text));
    }
    if run.len() >= 24
        && let Some(hidden) = zero_width(run)
    {
        found.push(hidden);
    }
    found
}

/// The letter that a tag character repeats.
fn tag(character: char) -> Option<char> {
    match character {
        '\u{e0020}'..='\u{e007e}' => char::from_u32(u32::from(character) - 0xe_0000),
        '\u{e000a}' => Some('\n'),
        _ => None,
    }
}

/// The byte that a variation selector stands for when bytes are hidden in them.
fn selector(character: char) -> Option<u8> {
    let code = u32::from(character);
    let byte = match character {
        '\u{fe00}'..='\u{fe0f}' => code - 0xfe00,
        '\u{e0100}'..='\u{e01ef}' => code - 0xe_0100 + 16,
        _ => return None,
    };
    u8::try_from(byte).ok()
}

/// Bits written as two kinds of zero-width character, others between them left out.
fn zero_width(run: &str) -> Option<(HiddenKind, String)> {
    let kinds =
        ['\u{200b}', '\u{200c}', '\u{200d}', '\u{2060}', '\u{feff}', '\u{200e}', '\u{200f}'];
    let mut counts = [0_usize; 7];
    for character in run.chars() {
        if let Some(kind) = kinds.iter().position(|kind| *kind == character) {
            counts[kind] += 1;
        }
    }
    if counts.iter().sum::<usize>() < 16 {
        return None;
    }
    let mut order: Vec<usize> = (0..kinds.len()).collect();
    order.sort_by_key(|kind| std::cmp::Reverse(counts[*kind]));
    // The two most frequent ones are the bits, in either order; a third may part the letters.
    for (zero, one) in [(order[0], order[1]), (order[1], order[0])] {
        for width in [8, 7] {
            let text = bits(run, kinds[zero], kinds[one], width);
            if text.len() >= 2 && is_text(&text) {
                return Some((HiddenKind::ZeroWidth, text));
            }
        }
    }
    Some((HiddenKind::ZeroWidth, String::new()))
}

fn bits(run: &str, zero: char, one: char, width: u32) -> String {
    let (mut bytes, mut value, mut count) = (Vec::new(), 0_u8, 0);
    for character in run.chars() {
        let bit = match character {
            _ if character == zero => 0,
            _ if character == one => 1,
            _ => {
                // A separator ends a letter, however many bits it had.
                if count > 4 {
                    bytes.push(value);
                }
                (value, count) = (0, 0);
                continue;
            }
        };
        value = value << 1 | bit;
        count += 1;
        if count == width {
            bytes.push(value);
            (value, count) = (0, 0);
        }
    }
    String::from_utf8(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_and_selectors_are_read() {
        let tags: String =
            "ignore".chars().filter_map(|c| char::from_u32(0xe_0000 + u32::from(c))).collect();
        assert_eq!(read(&tags, None), [(HiddenKind::Tags, "ignore".to_owned())]);
        let selectors: String = b"hello all"
            .iter()
            .filter_map(|byte| char::from_u32(0xe_0100 + u32::from(*byte) - 16))
            .collect();
        assert_eq!(
            read(&selectors, None),
            [(HiddenKind::VariationSelectors, "hello all".to_owned())]
        );
    }

    #[test]
    fn a_flag_is_a_flag() {
        assert!(
            read("\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}", Some('🏴')).is_empty()
        );
    }

    #[test]
    fn bits_are_read() {
        let run: String = b"obey me"
            .iter()
            .flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1))
            .map(|bit| if bit == 1 { '\u{200c}' } else { '\u{200b}' })
            .collect();
        assert_eq!(read(&run, None), [(HiddenKind::ZeroWidth, "obey me".to_owned())]);
    }
}
