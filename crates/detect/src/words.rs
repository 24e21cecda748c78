//! A few words that are looked for in short texts: names, values, parameters.

/// Words, by their first byte.
#[derive(Debug)]
pub(crate) struct Words<const N: usize> {
    words: [&'static str; N],
    /// Of each byte, the words that begin with it, as bits.
    first: [u64; 256],
}

impl<const N: usize> Words<N> {
    /// At most 64 words, none of them empty.
    pub(crate) const fn new(words: [&'static str; N]) -> Self {
        let mut first = [0; 256];
        let mut at = 0;
        while at < N {
            first[words[at].as_bytes()[0] as usize] |= 1 << at;
            at += 1;
        }
        Self { words, first }
    }

    /// Whether a word that passes stands in the text.
    #[inline]
    pub(crate) fn any(&self, text: &[u8], test: impl Fn(&str) -> bool) -> bool {
        (0..text.len()).any(|place| {
            let mut bits = self.first[usize::from(text[place])];
            while bits != 0 {
                let word = self.words[bits.trailing_zeros() as usize];
                if text[place..].starts_with(word.as_bytes()) && test(word) {
                    return true;
                }
                bits &= bits - 1;
            }
            false
        })
    }

    /// Whether any of the words stands in the text.
    #[inline]
    pub(crate) fn stand_in(&self, text: &[u8]) -> bool {
        self.any(text, |_| true)
    }

    /// Whether the text begins with a word that passes.
    pub(crate) fn begin(&self, text: &[u8], test: impl Fn(&str) -> bool) -> bool {
        let first = text.first().map_or(0, |byte| self.first[usize::from(*byte)]);
        let words = self.words.iter().enumerate().filter(|(at, _)| first >> at & 1 != 0);
        words.into_iter().any(|(_, word)| text.starts_with(word.as_bytes()) && test(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_anywhere() {
        let words = Words::new(["data", "date", "key"]);
        assert!(words.stand_in(b"my data"));
        assert!(words.stand_in(b"update"));
        assert!(words.stand_in(b"key"));
        assert!(!words.stand_in(b"dat ke"));
        assert!(!words.any(b"data", |word| word == "date"));
        assert!(words.begin(b"dates", |_| true) && !words.begin(b"my data", |_| true));
        assert!(!words.begin(b"key", |word| word == "data") && !words.begin(b"", |_| true));
    }
}
