//! A rough guess of how often words occur: only the speed depends on it, never what is found.

use std::collections::HashMap;

/// The most frequent words of English prose, most frequent first.
const FREQUENT: &str = "the of and to in a is that for it as was with be by on not he i this are or his from \
at which but have an had they you were their one all we can her has there been if more when will would who so \
no said what up its about into than them only some could time these two may then do first any my now such like \
our over man me even most made after also did many before must through back years where much your way well down \
should because each just those people how too little state good very make world still own see men work long get \
here between both life being under never day same another know while last might us great old year off come since \
against go came right used take three use want need part place find give tell say says new please write add start \
end list code text word words data file name help show send open set put run key read keep call move change \
information system message number point order following example different every";

/// Guesses frequencies.
#[derive(Debug)]
pub(crate) struct Frequencies {
    ranks: HashMap<&'static str, usize>,
}

impl Frequencies {
    pub(crate) fn new() -> Self {
        Self { ranks: FREQUENT.split(' ').enumerate().map(|(rank, word)| (word, rank)).collect() }
    }

    /// About how often a word or phrase occurs in a million words.
    pub(crate) fn of(&self, literal: &str) -> u32 {
        let of = |word: &str| match self.ranks.get(word) {
            Some(0..10) => 20_000,
            Some(10..40) => 5_000,
            Some(40..100) => 1_500,
            Some(_) => 500,
            None if word.chars().count() <= 4 => 40,
            None if word.chars().count() <= 7 => 20,
            None => 8,
        };
        let words = literal.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        let (count, least) =
            words.fold((0, 20_000), |(count, least), word| (count + 1, of(word).min(least)));
        match count {
            0 => 20,
            1 => least,
            _ => (least / 20).max(1),
        }
    }
}
