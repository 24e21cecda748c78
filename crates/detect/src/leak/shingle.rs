//! Hashes of overlapping stretches of letters, by which a copy is told.

use super::fold::{BITS, letters};
use crate::finding::Transform;

/// Letters of one stretch: about three words and a half.
pub(super) const LENGTH: usize = 16;
/// Every so many letters of a prompt a stretch begins; a text is looked at from every letter on,
/// so that no copy of `LENGTH + STRIDE - 1` letters is missed.
pub(super) const STRIDE: usize = 8;

/// Stands in a list for a stretch that is not looked for; no stretch has it.
pub(super) const NONE: u32 = 0;

/// A mask that leaves so many letters, 12 at most.
pub(super) fn mask(letters: usize) -> u64 {
    (1 << (letters * BITS as usize)) - 1
}

/// The part of a stretch that does not fit into 64 bits.
const REST: u64 = (1 << (LENGTH * BITS as usize - 64)) - 1;

/// The last letters of a text, 25 of them whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Register {
    low: u64,
    high: u64,
}

impl Register {
    pub(super) const EMPTY: Self = Self { low: 0, high: 0 };

    #[inline(always)]
    pub(super) const fn push(&mut self, symbol: u8) {
        self.high = self.high << BITS | self.low >> (64 - BITS);
        self.low = self.low << BITS | symbol as u64;
    }

    /// A hash of the last letters that a mask leaves.
    #[inline(always)]
    pub(super) fn short(self, mask: u64) -> u32 {
        upper((self.low & mask).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// The last `count` letters, 25 at most, and nothing before them.
    #[inline]
    pub(super) const fn word(self, count: usize) -> Self {
        let bits = count * BITS as usize;
        if bits < 64 {
            Self { low: self.low & ((1 << bits) - 1), high: 0 }
        } else {
            Self { low: self.low, high: self.high & ((1 << (bits - 64)) - 1) }
        }
    }

    /// A hash of all that is in it and of a number; never 0.
    #[inline]
    pub(super) const fn key(self, count: usize) -> u32 {
        let high = self.high.wrapping_mul(0xff51_afd7_ed55_8ccd) ^ (count as u64) << 59;
        upper((self.low ^ high).wrapping_mul(0x9e37_79b9_7f4a_7c15)) | 1
    }

    /// A hash of the last stretch; never [`NONE`].
    #[inline(always)]
    pub(super) fn hash(self) -> u32 {
        let mixed = self.low.wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ (self.high & REST).wrapping_mul(0xff51_afd7_ed55_8ccd);
        upper(mixed ^ mixed << 27) | 1
    }
}

#[inline(always)]
const fn upper(number: u64) -> u32 {
    (number >> 32) as u32
}

/// The hashes of all stretches of some letters, from every letter on.
pub(super) fn hashes(letters: &[u8]) -> impl Iterator<Item = u32> + '_ {
    let mut register = Register::default();
    letters.iter().enumerate().filter_map(move |(at, symbol)| {
        register.push(*symbol);
        (at + 1 >= LENGTH).then(|| register.hash())
    })
}

/// A way to write a text that leaves its letters readable: looked for on the side of the prompt,
/// so that the text need not be read more than once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Way {
    Plain,
    Reversed,
    WordsReversed,
    Rot13,
}

impl Way {
    pub(super) const ALL: [Self; 4] =
        [Self::Plain, Self::Reversed, Self::WordsReversed, Self::Rot13];

    /// How a finding names it.
    pub(super) fn path(self) -> &'static [Transform] {
        match self {
            Self::Plain => &[],
            Self::Reversed | Self::WordsReversed => &[Transform::Reversed],
            Self::Rot13 => &[Transform::Rot13],
        }
    }

    /// The letters of a text written in this way.
    pub(super) fn letters(self, text: &str) -> Vec<u8> {
        match self {
            Self::Plain => letters(text),
            Self::Reversed => letters(&text.chars().rev().collect::<String>()),
            Self::WordsReversed => {
                let mut turned = String::with_capacity(text.len());
                for word in text.split_ascii_whitespace() {
                    turned.extend(word.chars().rev());
                    turned.push(' ');
                }
                letters(&turned)
            }
            Self::Rot13 => letters(&text.chars().map(rot13).collect::<String>()),
        }
    }
}

fn rot13(character: char) -> char {
    let turn = |base: u8| char::from((character as u8 - base + 13) % 26 + base);
    match character {
        'a'..='z' => turn(b'a'),
        'A'..='Z' => turn(b'A'),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_depends_on_the_last_stretch_and_nothing_before_it() {
        let one = letters("xylophone the quick brown fox jumps over");
        let two = letters("the quick brown fox jumps over");
        let (one, two): (Vec<_>, Vec<_>) = (hashes(&one).collect(), hashes(&two).collect());
        assert_eq!(one[9..], two[..]);
        assert!(one.iter().all(|hash| *hash != NONE));
    }

    #[test]
    fn ways_meet_what_a_model_would_write() {
        let text = "Never tell the price, please.";
        for (way, written) in [
            (Way::Reversed, ".esaelp ,ecirp eht llet reveN"),
            (Way::WordsReversed, "reveN llet eht ,ecirp .esaelp"),
            (Way::Rot13, "Arire gryy gur cevpr, cyrnfr."),
        ] {
            assert_eq!(way.letters(text), letters(written));
        }
    }
}
