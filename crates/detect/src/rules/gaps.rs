//! What stands between two literals.

use super::compile::QUOTES;

/// What stands between two places.
#[derive(Debug, Clone, Copy, Default)]
struct Between {
    words: usize,
    /// Whether something there separates data.
    separated: bool,
    /// Whether a quotation begins there and does not end.
    open: bool,
}

/// What stands between a place and those before it that were asked about last: many patterns ask the same.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    to: usize,
    known: [(usize, Between); 4],
    count: usize,
    /// Bytes that were read.
    pub(super) read: usize,
}

impl Gaps {
    /// Whether at most so many words stand between two places, and nothing that separates data.
    #[inline]
    pub(super) fn near(&mut self, text: &str, from: usize, to: usize, gap: u8) -> bool {
        let quotes = gap & QUOTES != 0;
        let gap = usize::from(gap & !QUOTES);
        if to - from > gap * 18 + 8 {
            return false;
        }
        if self.to != to {
            (self.to, self.count) = (to, 0);
        }
        let known = &self.known[..self.count.min(self.known.len())];
        let between = match known.iter().find(|(known, _)| *known == from) {
            Some((_, between)) => *between,
            None => {
                self.read += to - from;
                let between = between(&text.as_bytes()[from..to]);
                self.known[self.count % self.known.len()] = (from, between);
                self.count += 1;
                between
            }
        };
        !between.separated && (quotes || !between.open) && between.words <= gap
    }
}

fn between(text: &[u8]) -> Between {
    let mut words = 0;
    let mut wide = 0;
    let mut inside = false;
    let (mut last, mut open) = (b'x', false);
    for &byte in text {
        match byte {
            b'{' | b'}' | b'|' | b';' => return Between { separated: true, ..Between::default() },
            // A quotation begins, or ends again.
            b'\'' | b'"' | b'`' if last == b' ' => open = true,
            b'\'' | b'"' | b'`' if open => open = false,
            0xe3..=0xe9 => {
                wide += 1;
                inside = false;
            }
            _ => {
                let word = byte == b'\'' || byte.is_ascii_alphanumeric() || byte >= 0x80;
                // The rest of a wide character is no word of its own.
                if word && !inside && !(wide > 0 && (0x80..0xc0).contains(&byte)) {
                    words += 1;
                }
                inside = word;
            }
        }
        last = byte;
    }
    Between { words: words + wide / 2, separated: false, open }
}
