//! What was shown and waits for the owner's second word.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use subtle::ConstantTimeEq as _;

/// How long a form that confirms is good for.
pub(super) const SECONDS: u64 = 120;
/// Most of them at a time; the oldest are forgotten.
const MOST: usize = 64;

/// What a form confirms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    /// An answer to a request: its id, what it asks for, and the answer.
    Answer { id: String, action: String, answer: super::Answer },
    /// Something staged: its workspace and hash.
    Apply { workspace: String, hash: String },
    /// Something staged that is not wanted: its workspace and hash.
    Drop { workspace: String, hash: String },
    /// A policy: its workspace, what it was and what it is to be.
    Sign { workspace: String, before: String, text: String },
}

/// The forms that are out.
#[derive(Debug, Default)]
pub(super) struct Confirmations {
    open: VecDeque<(String, Instant, Change)>,
}

impl Confirmations {
    /// Keeps what a form is about to confirm.
    pub(super) fn put(&mut self, word: String, change: Change, now: Instant) {
        self.forget(now);
        while self.open.len() >= MOST {
            self.open.pop_front();
        }
        self.open.push_back((word, now, change));
    }

    /// What a form confirms, once.
    pub(super) fn take(&mut self, word: &str, now: Instant) -> Option<Change> {
        self.forget(now);
        let is_it = |known: &String| bool::from(known.as_bytes().ct_eq(word.as_bytes()));
        let at = self.open.iter().position(|(known, _, _)| is_it(known))?;
        self.open.remove(at).map(|(_, _, change)| change)
    }

    fn forget(&mut self, now: Instant) {
        let old = |made: Instant| now.duration_since(made) > Duration::from_secs(SECONDS);
        self.open.retain(|(_, made, _)| !old(*made));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_good_once_and_not_for_long() {
        let now = Instant::now();
        let change = |hash: &str| Change::Apply { workspace: "w".into(), hash: hash.into() };
        let mut all = Confirmations::default();
        all.put("a".into(), change("1"), now);
        assert_eq!(all.take("b", now), None);
        assert_eq!(all.take("", now), None);
        assert_eq!(all.take("a", now), Some(change("1")));
        assert_eq!(all.take("a", now), None);
        all.put("a".into(), change("1"), now);
        assert_eq!(all.take("a", now + Duration::from_secs(SECONDS + 1)), None);
        for one in 0..MOST + 1 {
            all.put(one.to_string(), change("1"), now);
        }
        assert_eq!(all.take("0", now), None);
        assert!(all.take("1", now).is_some());
    }
}
