//! Tokens that mean nothing and belong nowhere but in one prompt.

use std::fmt;

use serde::{Deserialize, Serialize};

const CONSONANTS: &[u8; 16] = b"bdfghjkmnprstvwz";
const VOWELS: &[u8; 4] = b"aeou";
/// Syllables of a token, six random bits each.
const SYLLABLES: usize = 12;

/// A token to put into a prompt; wherever it shows in an answer, the prompt has leaked.
///
/// It is made of syllables, twelve of them in three words, so that a model copies it faithfully
/// and decoders take it for language; seventy-two random bits make it unique.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Canary(String);

impl Canary {
    /// From random bytes, which the caller draws.
    ///
    /// ```
    /// use wardkeep_detect::leak::Canary;
    /// assert_eq!(Canary::new([0; 9]).to_string(), "babababa-babababa-babababa");
    /// ```
    #[must_use]
    pub fn new(random: [u8; 9]) -> Self {
        let mut token = String::with_capacity(SYLLABLES * 2 + 2);
        let bits = random.iter().fold(0_u128, |bits, byte| bits << 8 | u128::from(*byte));
        for syllable in 0..SYLLABLES {
            if syllable > 0 && syllable % 4 == 0 {
                token.push('-');
            }
            let value = (bits >> (syllable * 6)).to_le_bytes()[0];
            token.push(char::from(CONSONANTS[usize::from(value & 15)]));
            token.push(char::from(VOWELS[usize::from(value >> 4 & 3)]));
        }
        Self(token)
    }

    /// The token, as it goes into the prompt.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Canary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_counts() {
        let tokens: std::collections::HashSet<Canary> = (0..72)
            .map(|bit| {
                Canary::new(std::array::from_fn(
                    |at| if at == bit / 8 { 1 << (bit % 8) } else { 0 },
                ))
            })
            .collect();
        assert_eq!(tokens.len(), 72);
        assert!(tokens.iter().all(|token| token.as_str().len() == 26));
    }
}
