//! Letters that look like others, read as Latin where a word mixes scripts.

use super::map::Map;

/// The text with look-alikes read as Latin and the remaining Cyrillic and Greek in lower case.
#[derive(Debug)]
pub(super) struct Folded {
    pub(super) text: String,
    pub(super) map: Map,
    /// Whether any letter was replaced by another.
    pub(super) replaced: bool,
}

/// Folds the words of a text that has letters of these scripts in it.
pub(super) fn fold(text: &str) -> Folded {
    let mut folded =
        Folded { text: String::with_capacity(text.len()), map: Map::default(), replaced: false };
    let mut at = 0;
    let mut before = Kind::None;
    while at < text.len() {
        let length = text[at..].find(|c: char| !in_word(c)).unwrap_or(text.len() - at);
        let word = &text[at..at + length];
        if !word.is_empty() {
            let kind = kind_of(word);
            let latin = match kind {
                Kind::Mixed => true,
                Kind::LookAlike => match before {
                    Kind::Latin | Kind::Mixed => true,
                    Kind::Foreign => false,
                    Kind::LookAlike | Kind::None => next_is_latin(&text[at + length..]),
                },
                _ => false,
            };
            folded.word(at, word, latin);
            before = match kind {
                Kind::None => before,
                Kind::LookAlike if latin => Kind::Latin,
                Kind::LookAlike => Kind::Foreign,
                kind => kind,
            };
            at += length;
        }
        let gap = text[at..].find(in_word).unwrap_or(text.len() - at);
        folded.copy(&text[at..at + gap]);
        at += gap;
    }
    folded
}

impl Folded {
    fn copy(&mut self, same: &str) {
        self.text.push_str(same);
    }

    fn word(&mut self, start: usize, word: &str, latin: bool) {
        if word.is_ascii() {
            self.copy(word);
            return;
        }
        for (offset, character) in word.char_indices() {
            let twin = if latin { look_alike(character) } else { None };
            let source = start + offset..start + offset + character.len_utf8();
            match twin {
                Some(twin) => {
                    self.map.replace(self.text.len(), source.clone(), true);
                    self.text.push(twin);
                    self.map.copy(self.text.len(), source.end, false);
                    self.replaced = true;
                }
                None => {
                    self.text.push(lower_case(character));
                }
            }
        }
    }
}

/// The lower case of the same length; ASCII keeps its case.
fn lower_case(character: char) -> char {
    match character {
        '\0'..='\u{7f}' | '\u{430}'..='\u{44f}' | '\u{4e00}'..='\u{9fff}' => character,
        'ς' => 'σ',
        _ => {
            let mut lower = character.to_lowercase();
            match (lower.next(), lower.next()) {
                (Some(one), None) if one.len_utf8() == character.len_utf8() => one,
                _ => character,
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// No letters.
    None,
    Latin,
    /// Letters of one other script, some of which no Latin letter looks like.
    Foreign,
    /// Letters of one other script that all look Latin.
    LookAlike,
    /// More than one of the scripts that look alike.
    Mixed,
}

fn in_word(character: char) -> bool {
    match character {
        '\0'..='\u{7f}' => character.is_ascii_alphanumeric(),
        '\u{400}'..='\u{481}' | '\u{3b1}'..='\u{3c9}' | '\u{4e00}'..='\u{9fff}' => true,
        _ => character.is_alphanumeric(),
    }
}

const LATIN: u8 = 1;
const OTHER: u8 = 128;

/// Scripts as bits; `OTHER` are those that are not taken for Latin.
fn script(character: char) -> u8 {
    match character {
        'a'..='z' | 'A'..='Z' | '\u{c0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' => LATIN,
        '\u{370}'..='\u{3ff}' | '\u{1f00}'..='\u{1fff}' => 2,
        '\u{400}'..='\u{52f}' | '\u{1c80}'..='\u{1c8f}' | '\u{a640}'..='\u{a69f}' => 4,
        '\u{530}'..='\u{58f}' => 8,
        '\u{13a0}'..='\u{13ff}' | '\u{ab70}'..='\u{abbf}' => 16,
        // Phonetic letters and small capitals: never a language's own words among Latin ones.
        '\u{250}'..='\u{2af}' | '\u{1d00}'..='\u{1d7f}' | '\u{a720}'..='\u{a7ff}' => 32,
        '\u{1400}'..='\u{167f}' | '\u{2c80}'..='\u{2cff}' | '\u{a4d0}'..='\u{a4ff}' => 64,
        _ => OTHER,
    }
}

/// Whether a text needs [`fold`] for this character.
pub(super) fn concerns(character: char) -> bool {
    !matches!(script(character), LATIN | OTHER)
}

fn kind_of(word: &str) -> Kind {
    let (mut scripts, mut alike, mut letters) = (0_u8, true, 0);
    for character in word.chars().filter(|character| !character.is_numeric()) {
        let script = script(character);
        scripts |= script;
        letters += 1;
        alike &= script == LATIN || exact(character).is_some();
    }
    match scripts {
        0 => Kind::None,
        LATIN => Kind::Latin,
        _ if scripts & OTHER != 0 => Kind::Foreign,
        32 if letters > 1 => Kind::Mixed,
        _ if scripts.count_ones() > 1 => Kind::Mixed,
        _ if alike && letters > 1 => Kind::LookAlike,
        _ => Kind::Foreign,
    }
}

fn next_is_latin(rest: &str) -> bool {
    rest.chars().take(48).find(|c| c.is_alphabetic()).is_some_and(|c| script(c) == LATIN)
}

/// The Latin letter that cannot be told from this one.
fn exact(character: char) -> Option<char> {
    Some(match character {
        '\u{430}' | '\u{3b1}' => 'a',
        '\u{441}' | '\u{3f2}' => 'c',
        '\u{435}' => 'e',
        '\u{43e}' | '\u{3bf}' | '\u{3c3}' | '\u{585}' => 'o',
        '\u{440}' => 'p',
        '\u{445}' => 'x',
        '\u{443}' => 'y',
        '\u{456}' => 'i',
        '\u{455}' => 's',
        '\u{458}' | '\u{3f3}' => 'j',
        '\u{501}' => 'd',
        '\u{51b}' => 'q',
        '\u{51d}' => 'w',
        '\u{4bb}' | '\u{570}' => 'h',
        '\u{4cf}' => 'l',
        '\u{581}' => 'g',
        '\u{578}' => 'n',
        '\u{57d}' => 'u',
        '\u{3bd}' => 'v',
        '\u{410}' | '\u{391}' => 'A',
        '\u{412}' | '\u{392}' => 'B',
        '\u{421}' | '\u{3f9}' => 'C',
        '\u{415}' | '\u{395}' => 'E',
        '\u{41d}' | '\u{397}' => 'H',
        '\u{406}' | '\u{399}' => 'I',
        '\u{408}' => 'J',
        '\u{41a}' | '\u{39a}' => 'K',
        '\u{41c}' | '\u{39c}' => 'M',
        '\u{39d}' => 'N',
        '\u{41e}' | '\u{39f}' => 'O',
        '\u{420}' | '\u{3a1}' => 'P',
        '\u{405}' => 'S',
        '\u{422}' | '\u{3a4}' => 'T',
        '\u{425}' | '\u{3a7}' => 'X',
        '\u{423}' | '\u{3a5}' => 'Y',
        '\u{396}' => 'Z',
        '\u{51a}' => 'Q',
        '\u{51c}' => 'W',
        _ => return None,
    })
}

/// The Latin letter that this one is read as in a word that mixes scripts.
fn look_alike(character: char) -> Option<char> {
    if character.is_ascii() {
        return None;
    }
    exact(character).or_else(|| rough(character)).or_else(|| table(character))
}

/// Letters that are only used for a Latin one on purpose.
fn rough(character: char) -> Option<char> {
    Some(match character {
        '\u{1d00}' | '\u{251}' | '\u{250}' | '\u{4d9}' | '\u{3ac}' | '\u{4d3}' => 'a',
        '\u{432}' | '\u{44c}' | '\u{299}' | '\u{253}' | '\u{3b2}' | '\u{411}' | '\u{431}' => 'b',
        '\u{1d04}' | '\u{254}' | '\u{4ab}' => 'c',
        '\u{1d05}' | '\u{256}' | '\u{257}' | '\u{434}' | '\u{414}' => 'd',
        '\u{454}' | '\u{450}' | '\u{451}' | '\u{1d07}' | '\u{1dd}' | '\u{258}' | '\u{25b}'
        | '\u{25c}' | '\u{3b5}' | '\u{3ad}' => 'e',
        '\u{a730}' | '\u{25f}' => 'f',
        '\u{50d}' | '\u{262}' | '\u{261}' | '\u{260}' | '\u{491}' | '\u{563}' | '\u{3b3}' => 'g',
        '\u{43d}' | '\u{452}' | '\u{45b}' | '\u{29c}' | '\u{265}' | '\u{266}' => 'h',
        '\u{457}' | '\u{26a}' | '\u{269}' | '\u{268}' | '\u{131}' | '\u{3b9}' | '\u{3af}' => 'i',
        '\u{1d0a}' => 'j',
        '\u{43a}' | '\u{49b}' | '\u{49d}' | '\u{1d0b}' | '\u{29e}' | '\u{3ba}' => 'k',
        '\u{29f}' | '\u{3bb}' | '\u{53c}' | '\u{56c}' => 'l',
        '\u{43c}' | '\u{1d0d}' | '\u{26f}' | '\u{271}' | '\u{3bc}' => 'm',
        '\u{43f}' | '\u{438}' | '\u{439}' | '\u{45d}' | '\u{274}' | '\u{273}' | '\u{272}'
        | '\u{3b7}' | '\u{3ae}' | '\u{41f}' | '\u{418}' | '\u{57c}' => 'n',
        '\u{1d0f}' | '\u{275}' | '\u{4e7}' | '\u{3cc}' | '\u{444}' | '\u{3b8}' | '\u{3c6}' => 'o',
        '\u{1d18}' | '\u{3c1}' => 'p',
        '\u{433}' | '\u{44f}' | '\u{280}' | '\u{279}' | '\u{27e}' | '\u{42f}' | '\u{413}' => 'r',
        '\u{a731}' | '\u{282}' => 's',
        '\u{442}' | '\u{1d1b}' | '\u{287}' | '\u{288}' | '\u{3c4}' => 't',
        '\u{446}' | '\u{1d1c}' | '\u{289}' | '\u{3c5}' | '\u{3cd}' => 'u',
        '\u{1d20}' | '\u{28c}' | '\u{28b}' => 'v',
        '\u{448}' | '\u{449}' | '\u{1d21}' | '\u{28d}' | '\u{3c9}' => 'w',
        '\u{3c7}' => 'x',
        '\u{45e}' | '\u{28f}' | '\u{28e}' | '\u{4af}' | '\u{4b1}' | '\u{4ae}' | '\u{4f1}' => 'y',
        '\u{437}' | '\u{1d22}' | '\u{290}' | '\u{291}' | '\u{3b6}' | '\u{292}' => 'z',
        _ => return None,
    })
}

/// The Unicode table of confusables, where it leads to one ASCII letter.
fn table(character: char) -> Option<char> {
    if character.is_ascii() || matches!(script(character), LATIN | OTHER) {
        return None;
    }
    let mut buffer = [0; 4];
    let mut skeleton =
        unicode_security::confusable_detection::skeleton(character.encode_utf8(&mut buffer));
    let first = skeleton.next()?;
    (skeleton.next().is_none() && first.is_ascii_alphabetic()).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixed_words_become_latin() {
        assert_eq!(fold("\u{456}gn\u{43e}r\u{435} all").text, "ignore all");
        assert_eq!(fold("\u{3b9}gn\u{3bf}re").text, "ignore");
        assert_eq!(fold("\u{26a}\u{262}\u{274}\u{1d0f}\u{280}\u{1d07}").text, "ignore");
        assert_eq!(fold("your \u{440}\u{430}ssword").text, "your password");
    }

    #[test]
    fn ordinary_words_stay() {
        for text in ["оса и роса", "рот хор", "Привет, как дела?", "το νερό", "δt"]
        {
            assert!(!fold(text).replaced || text == "δt", "{text}");
        }
        assert_eq!(fold("оса и роса").text, "оса и роса");
        assert_eq!(fold("ПРИВЕТ").text, "привет");
    }

    #[test]
    fn whole_words_follow_their_neighbours() {
        assert_eq!(fold("show \u{440}\u{430}\u{441}\u{435} now").text, "show pace now");
        assert_eq!(fold("большая \u{440}\u{430}\u{441}\u{435} now").text, "большая расе now");
    }
}
