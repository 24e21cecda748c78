//! What is kept of a prompt.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::canary::Canary;
use super::discover::{Token, TokenKind, discover};
use super::ordinary::SENTENCES;
use super::shingle::{LENGTH, NONE, STRIDE, Way, hashes};

/// The form in which a profile is kept; another is refused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Version {
    #[default]
    #[serde(rename = "1")]
    One,
}

/// Letters between two prompts of one profile, so that no copy spans both.
const APART: usize = 1024;

/// A system prompt as far as it takes to know it again.
///
/// The text itself is not kept. What is: a 32-bit hash of sixteen letters out of every eight, for
/// the prompt as it is and for three ways to turn it round; the names discovered in it; its
/// canaries; how many letters it has. Hashes of so short stretches can be guessed one by one, so
/// whoever may not read the prompt should not read its profile either.
///
/// ```
/// use wardkeep_detect::leak::PromptProfile;
/// let profile = PromptProfile::of("When there is nothing to say, answer QUIET_HARBOUR_ACK.");
/// assert_eq!(profile.tokens()[0].text, "QUIET_HARBOUR_ACK");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptProfile {
    version: Version,
    letters: usize,
    /// A list for each way; the stretch at index `i` begins at letter `i * STRIDE`.
    stretches: [Vec<u32>; 4],
    tokens: Vec<Token>,
    canaries: Vec<Canary>,
}

impl PromptProfile {
    /// Of a whole prompt. Sentences that any prompt may have are passed over.
    #[must_use]
    pub fn of(prompt: &str) -> Self {
        let common = all_hashes(SENTENCES.iter().copied());
        let mut letters = 0;
        let stretches = Way::ALL.map(|way| {
            let folded = way.letters(prompt);
            if way == Way::Plain {
                letters = folded.len();
            }
            let list = hashes(&folded).step_by(STRIDE);
            list.map(|hash| if common.contains(&hash) { NONE } else { hash }).collect()
        });
        Self { letters, stretches, tokens: discover(prompt), ..Self::default() }
    }

    /// Of names only, where the prompt itself is not to be had. Each should have at least four
    /// letters or digits; shorter ones are ignored.
    #[must_use]
    pub fn of_tokens<S: Into<String>>(tokens: impl IntoIterator<Item = S>) -> Self {
        let given = |text: S| Token { text: text.into(), kind: TokenKind::Given };
        Self { tokens: tokens.into_iter().map(given).collect(), ..Self::default() }
    }

    /// With a token that was put into the prompt on purpose.
    #[must_use]
    pub fn with_canary(mut self, canary: &Canary) -> Self {
        if !self.canaries.contains(canary) {
            self.canaries.push(canary.clone());
        }
        self
    }

    /// Together with another, where a prompt has several parts.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        for (mine, theirs) in self.stretches.iter_mut().zip(other.stretches) {
            if !mine.is_empty() && !theirs.is_empty() {
                mine.resize(mine.len() + APART / STRIDE, NONE);
            }
            mine.extend(theirs);
        }
        self.letters = self.letters.saturating_add(other.letters);
        self.tokens.extend(other.tokens);
        self.canaries.extend(other.canaries);
        self
    }

    /// Without what stands in a text that may be passed on: the opening hours in the prompt of a
    /// shop, say. Canaries stay.
    #[must_use]
    pub fn without(mut self, public: &str) -> Self {
        for (way, list) in Way::ALL.into_iter().zip(&mut self.stretches) {
            let known: HashSet<u32> = hashes(&way.letters(public)).collect();
            list.iter_mut().filter(|hash| known.contains(hash)).for_each(|hash| *hash = NONE);
        }
        let public = discover(public);
        self.tokens.retain(|token| !public.iter().any(|known| known.text == token.text));
        self
    }

    /// The names that are watched for.
    #[must_use]
    pub fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    /// The canaries that are watched for.
    #[must_use]
    pub fn canaries(&self) -> &[Canary] {
        &self.canaries
    }

    /// Letters of the prompt, as far as its text was given.
    #[must_use]
    pub fn letters(&self) -> usize {
        self.letters
    }

    pub(super) fn stretches(&self) -> &[Vec<u32>; 4] {
        &self.stretches
    }
}

fn all_hashes<'t>(texts: impl Iterator<Item = &'t str>) -> HashSet<u32> {
    let mut all = HashSet::new();
    for text in texts {
        for way in Way::ALL {
            let letters = way.letters(text);
            debug_assert!(!letters.is_empty() && LENGTH > 0);
            all.extend(hashes(&letters));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROMPT: &str = "You are the clerk of the harbour office in Westhaven. Berths north of the mole are let by \
        the night; never name the reserve price of berth nine to anyone who asks for it.";

    #[test]
    fn a_profile_survives_being_kept() {
        let profile = PromptProfile::of(PROMPT)
            .and(PromptProfile::of_tokens(["QUIET_HARBOUR_ACK"]))
            .with_canary(&Canary::new([7; 9]));
        let kept = serde_json::to_string(&profile).unwrap();
        assert!(!kept.to_lowercase().contains("harbour office"));
        assert_eq!(serde_json::from_str::<PromptProfile>(&kept).unwrap(), profile);
        assert!(
            serde_json::from_str::<PromptProfile>(&kept.replacen('{', "{\"x\":1,", 1)).is_err()
        );
        let newer = kept.replacen("\"version\":\"1\"", "\"version\":\"2\"", 1);
        assert!(serde_json::from_str::<PromptProfile>(&newer).is_err() && newer != kept);
    }

    #[test]
    fn common_sentences_are_passed_over() {
        let profile = PromptProfile::of("You are a helpful assistant. Think step by step.");
        let looked_for = profile.stretches()[0].iter().filter(|hash| **hash != NONE).count();
        assert!(looked_for <= 2, "{looked_for}");
    }

    #[test]
    fn public_text_is_taken_out() {
        let profile = PromptProfile::of(PROMPT).without(PROMPT);
        assert!(profile.stretches().iter().flatten().all(|hash| *hash == NONE));
    }
}
