//! Numbers that are watched for, however their digits are set apart.

use super::sought::Sought;

/// Digits that are remembered.
const KEPT: usize = 64;

/// The digits since the last letter.
#[derive(Debug, Default)]
pub(super) struct Digits {
    /// Each with its place.
    last: Vec<(u8, usize)>,
}

impl Digits {
    pub(super) fn is_calm(&self) -> bool {
        self.last.is_empty()
    }

    /// Takes a token in; gives the items that were met, with where they stand.
    pub(super) fn token(
        &mut self,
        sought: &Sought,
        token: &str,
        start: usize,
        met: &mut Vec<(usize, [usize; 2])>,
    ) {
        for (at, character) in token.char_indices() {
            let Some(digit) = character.to_digit(10).and_then(|digit| u8::try_from(digit).ok())
            else {
                if character.is_alphabetic() {
                    self.last.clear();
                }
                continue;
            };
            if self.last.len() == KEPT {
                self.last.remove(0);
            }
            self.last.push((digit, start + at));
            let goes_on = token.as_bytes().get(at + 1).is_some_and(u8::is_ascii_digit);
            if !goes_on {
                self.compare(sought, met);
            }
        }
    }

    fn compare(&self, sought: &Sought, met: &mut Vec<(usize, [usize; 2])>) {
        for (wanted, item) in &sought.numbers {
            let Some(from) = self.last.len().checked_sub(wanted.len()) else { continue };
            let (before, found) = self.last.split_at(from);
            let alike = found.iter().zip(wanted).all(|((digit, _), wanted)| digit == wanted);
            let (Some((_, first)), Some((_, last))) = (found.first(), found.last()) else {
                continue;
            };
            // Not the end of a longer number.
            let apart = before.last().is_none_or(|(_, place)| place + 1 < *first);
            if alike && apart {
                met.push((*item, [*first, last + 1]));
            }
        }
    }

    pub(super) fn forget(&mut self) {
        self.last.clear();
    }

    /// From where on digits may still become part of a number.
    pub(super) fn hold(&self, sought: &Sought) -> usize {
        let longest = sought.numbers.iter().map(|(digits, _)| digits.len()).max().unwrap_or(0);
        let kept = self.last.len().saturating_sub(longest);
        self.last.get(kept).map_or(usize::MAX, |(_, place)| *place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_may_be_set_apart_but_not_be_part_of_more() {
        let mut sought = Sought::default();
        sought.add_number(0, vec![4, 7, 1, 1]);
        let met = |text: &str| {
            let (mut digits, mut met, mut start) = (Digits::default(), Vec::new(), 0);
            for token in text.split(' ') {
                digits.token(&sought, token, start, &mut met);
                start += token.len() + 1;
            }
            met.len()
        };
        for text in ["4711", "4-7-1-1", "4 7 1 1", "no. 4711.", "19 4711"] {
            assert_eq!(met(text), 1, "{text}");
        }
        for text in ["14711", "47112", "47 one 11", "4712"] {
            assert_eq!(met(text), 0, "{text}");
        }
    }
}
