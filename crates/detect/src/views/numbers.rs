//! Text written as numbers: `69 67 6e`, `0x69,0x67`, `105 103 110`, `01101001 01100111`, `151 147`.

use super::alphabets::nibble;
use super::language::{reads_like_language, text_of};
use super::pieces::Pieces;
use super::survey::Token;
use crate::finding::Transform;

/// Fewer numbers than this say nothing.
const MIN_NUMBERS: usize = 6;

/// A row of numbers, read in four ways at once until only one fits.
#[derive(Debug)]
pub(super) struct Numbers<'s> {
    source: &'s str,
    start: usize,
    end: usize,
    readings: [Option<Vec<u8>>; 4],
    count: usize,
}

impl<'s> Numbers<'s> {
    pub(super) fn new(source: &'s str) -> Self {
        Self { source, start: 0, end: 0, readings: Default::default(), count: 0 }
    }

    /// Whether a row has begun.
    #[inline]
    pub(super) fn open(&self) -> bool {
        self.count > 0
    }

    /// A token without letters other than those of hexadecimal numbers.
    pub(super) fn token(&mut self, token: Token, pieces: &mut Pieces<'s>) {
        let text = &self.source[token.range()];
        for part in text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty())
        {
            let values = [hexadecimal(part), decimal(part), binary(part), octal(part)];
            if values.iter().all(Option::is_none) {
                self.flush(pieces);
                continue;
            }
            if self.count > 0 && !self.fits(&values) {
                self.flush(pieces);
            }
            if self.count == 0 {
                self.start = token.start;
                self.readings = values.map(|value| value.map(|_| Vec::new()));
            }
            for (reading, value) in self.readings.iter_mut().zip(values) {
                match (&mut *reading, value) {
                    (Some(bytes), Some(value)) => bytes.push(value),
                    _ => *reading = None,
                }
            }
            self.count += 1;
            self.end = token.end;
        }
    }

    fn fits(&self, values: &[Option<u8>; 4]) -> bool {
        self.readings
            .iter()
            .zip(values)
            .any(|(reading, value)| reading.is_some() && value.is_some())
    }

    /// Ends the row.
    pub(super) fn flush(&mut self, pieces: &mut Pieces<'s>) {
        if self.count >= MIN_NUMBERS {
            for (index, bytes) in std::mem::take(&mut self.readings).into_iter().enumerate() {
                let Some(bytes) = bytes else { continue };
                let kind = if index == 0 { Transform::Hex } else { Transform::Escape };
                if text_of(&bytes).is_some_and(|text| reads_like_language(&text))
                    && pieces.decoded(self.start..self.end, kind, &bytes)
                {
                    break;
                }
            }
        }
        self.count = 0;
    }
}

fn hexadecimal(part: &str) -> Option<u8> {
    let digits = part.strip_prefix("0x").or_else(|| part.strip_prefix("0X")).unwrap_or(part);
    let digits = digits.strip_prefix('x').unwrap_or(digits);
    match digits.as_bytes() {
        [high, low] => Some(nibble(*high)? << 4 | nibble(*low)?),
        _ => None,
    }
}

fn decimal(part: &str) -> Option<u8> {
    (part.len() <= 3).then(|| part.parse().ok()).flatten().filter(|value| *value >= 9)
}

fn binary(part: &str) -> Option<u8> {
    (matches!(part.len(), 7 | 8)).then(|| u8::from_str_radix(part, 2).ok()).flatten()
}

fn octal(part: &str) -> Option<u8> {
    (part.len() == 3).then(|| u8::from_str_radix(part, 8).ok()).flatten()
}
