//! Names of skills: one that is nearly another's, and bodies that are nearly the same.

use std::collections::BTreeSet;

use wardkeep_detect::names::fold_name;

/// Names that ship; an owner can give others.
const SHIPPED: &str = include_str!("../data/names.txt");

/// Well-known names, and what the owner has already.
#[derive(Debug, Clone)]
pub struct Names {
    known: BTreeSet<String>,
    bodies: Vec<(String, u64)>,
}

impl Default for Names {
    fn default() -> Self {
        Self::read(SHIPPED)
    }
}

/// How a name stands to the well-known ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Likeness {
    /// Like none, or exactly one of them.
    None,
    /// Nearly this one.
    Similar(String),
    /// This one with letters that only look the same.
    Confusable(String),
    /// This one with something at its end that means nothing.
    Suffixed(String),
}

impl Names {
    /// Reads names, one a line; `#` begins a remark.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let known = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .map(fold_name)
            .collect();
        Self { known, bodies: Vec::new() }
    }

    /// Adds a skill that the owner has: its name, and its text for comparison.
    pub fn add(&mut self, name: &str, text: &str) {
        if let Some(hash) = simhash(text) {
            self.bodies.push((fold_name(name), hash));
        }
    }

    /// Whether this is a well-known name itself.
    #[must_use]
    pub fn holds(&self, name: &str) -> bool {
        self.known.contains(&fold_name(name))
    }

    /// How a name stands to the well-known ones.
    #[must_use]
    pub fn likeness(&self, name: &str) -> Likeness {
        if name.len() > 100 {
            return Likeness::None;
        }
        let folded = fold_name(name);
        if self.known.contains(&folded) {
            return Likeness::None;
        }
        let skeleton = skeleton(&folded);
        if let Some(known) = self.known.get(&skeleton)
            && skeleton != folded
        {
            return Likeness::Confusable(known.clone());
        }
        if let Some((stem, end)) = folded.rsplit_once(['-', '_'])
            && is_random(end)
            && self.known.contains(stem)
        {
            return Likeness::Suffixed(stem.to_owned());
        }
        let bare = bare(&folded);
        for known in &self.known {
            let known_bare = self::bare(known);
            let allowed = match known_bare.len() {
                0..=6 => 0,
                7..=10 => 1,
                _ => 2,
            };
            if allowed > 0
                && known_bare != bare
                && distance(&bare, &known_bare, allowed) <= allowed
                && !is_plural(&bare, &known_bare)
                && !has_words(&folded, known)
            {
                return Likeness::Similar(known.clone());
            }
        }
        Likeness::None
    }

    /// A skill that the owner has, under another name, with nearly this text.
    #[must_use]
    pub fn copied(&self, name: &str, text: &str) -> Option<&str> {
        if self.bodies.is_empty() {
            return None;
        }
        let (name, hash) = (fold_name(name), simhash(text)?);
        let near = self
            .bodies
            .iter()
            .find(|(other, body)| *other != name && (body ^ hash).count_ones() <= 3);
        near.map(|(other, _)| other.as_str())
    }
}

/// Letters and digits only.
fn bare(name: &str) -> String {
    name.chars().filter(|sign| sign.is_alphanumeric()).collect()
}

/// The same word with an `s` more or less is another word.
fn is_plural(one: &str, two: &str) -> bool {
    one.strip_suffix('s') == Some(two)
        || two.strip_suffix('s') == Some(one)
        || one.bytes().filter(u8::is_ascii_digit).ne(two.bytes().filter(u8::is_ascii_digit))
}

/// Whether one name is the other with a word more.
fn has_words(one: &str, two: &str) -> bool {
    let words =
        |name: &str| name.split(['-', '_', ' ']).map(str::to_owned).collect::<BTreeSet<String>>();
    let (one, two) = (words(one), words(two));
    one.is_subset(&two) || two.is_subset(&one)
}

/// Whether letters and digits are mixed as nobody names anything.
fn is_random(end: &str) -> bool {
    let digits = end.bytes().filter(u8::is_ascii_digit).count();
    let letters = end.bytes().filter(u8::is_ascii_lowercase).count();
    (4..=12).contains(&end.len())
        && digits + letters == end.len()
        && letters > 0
        && (digits > 0 && !is_version(end) || !has_vowel(end))
}

fn is_version(end: &str) -> bool {
    end.strip_prefix('v').is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
}

fn has_vowel(end: &str) -> bool {
    end.bytes().any(|byte| b"aeiouy".contains(&byte))
}

/// A name with look-alike letters replaced.
fn skeleton(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for sign in name.chars() {
        out.push(match sign {
            'а' => 'a',
            'с' => 'c',
            'е' => 'e',
            'о' | 'ο' | '0' => 'o',
            'р' | 'ρ' => 'p',
            'х' => 'x',
            'у' => 'y',
            'і' | 'ı' | 'ӏ' | '1' => 'l',
            'ѕ' => 's',
            'ј' => 'j',
            'һ' => 'h',
            'ԁ' => 'd',
            'ɡ' => 'g',
            other => other,
        });
    }
    out.replace("rn", "m").replace("vv", "w")
}

/// Insertions, removals, changes and swaps of neighbours between two words; more than `most` is not counted.
fn distance(one: &str, two: &str, most: usize) -> usize {
    let (one, two): (Vec<char>, Vec<char>) = (one.chars().collect(), two.chars().collect());
    if one.len().abs_diff(two.len()) > most {
        return most + 1;
    }
    let mut rows = [vec![0; two.len() + 1], (0..=two.len()).collect(), vec![0; two.len() + 1]];
    for (i, a) in one.iter().enumerate() {
        let [before, last, row] = &mut rows;
        row[0] = i + 1;
        for (j, b) in two.iter().enumerate() {
            let mut best = (last[j] + usize::from(a != b)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == two[j - 1] && one[i - 1] == *b {
                best = best.min(before[j - 1] + 1);
            }
            row[j + 1] = best;
        }
        rows.rotate_left(1);
    }
    rows[1][two.len()]
}

/// Texts with fewer words are like many others.
const WORDS: usize = 60;

/// A hash of which few bits differ where texts differ little; none of a short text.
fn simhash(text: &str) -> Option<u64> {
    let mut weights = [0_i32; 64];
    let words: Vec<String> = text
        .split(|sign: char| !sign.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .take(20_000)
        .map(str::to_lowercase)
        .collect();
    if words.len() < WORDS {
        return None;
    }
    for three in words.windows(3) {
        let hash = three.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, word| {
            word.bytes()
                .chain([b' '])
                .fold(hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
        });
        for (bit, weight) in weights.iter_mut().enumerate() {
            *weight += if hash >> bit & 1 == 1 { 1 } else { -1 };
        }
    }
    let bits = weights.iter().enumerate();
    Some(bits.fold(0, |hash, (bit, weight)| hash | u64::from(*weight > 0) << bit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_nearly_others() {
        let names =
            Names::read("calendar-sync\nmail-reader\nspreadsheet-helper\npdf\n# remark\nclimate");
        for (name, expected) in [
            ("calendar-sync", Likeness::None),
            ("calender-sync", Likeness::Similar("calendar-sync".into())),
            ("clendar-sync", Likeness::Similar("calendar-sync".into())),
            ("mail-raeder", Likeness::Similar("mail-reader".into())),
            ("m\u{430}il-reader", Likeness::Confusable("mail-reader".into())),
            ("mail-reader-x8k2p", Likeness::Suffixed("mail-reader".into())),
            ("mail-reader-v2", Likeness::None),
            ("mail-reader-pro", Likeness::None),
            ("mail-readers", Likeness::None),
            ("pdg", Likeness::None),
            ("weather", Likeness::None),
        ] {
            assert_eq!(names.likeness(name), expected, "{name}");
        }
    }

    #[test]
    fn copies_are_known() {
        let mut names = Names::read("");
        let text: String = (0..400)
            .map(|number| format!("word{} says thing{} ", number % 97, number % 31))
            .collect();
        names.add("mine", &text);
        assert_eq!(names.copied("other", &format!("{text} and one more line")), Some("mine"));
        assert_eq!(names.copied("mine", &text), None);
        assert_eq!(names.copied("other", "something else entirely that has few words"), None);
        names.add("short", "# A");
        assert_eq!(names.copied("other", "# B"), None);
    }

    #[test]
    fn distances() {
        assert_eq!(
            (
                distance("abcd", "abdc", 2),
                distance("abc", "abcd", 2),
                distance("kitten", "sitting", 3)
            ),
            (1, 1, 3)
        );
        assert_eq!(distance("a", "abcdef", 2), 3);
    }
}
