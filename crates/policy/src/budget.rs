//! How many tokens a model call has left, and which messages must go.
//!
//! Nothing here subtracts below zero, and the block that ends the call is never what goes.

mod estimate;

pub use estimate::{token_bound, token_estimate};

use crate::block::SECURITY_BLOCK_RESERVE;

/// Tokens that a provider adds around each message, at most, as far as is known.
pub const MESSAGE_OVERHEAD: usize = 8;

/// What a model call may spend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Tokens that fit into the model's window.
    pub context_window: usize,
    /// Tokens that are kept free for the answer.
    pub reply_reserve: usize,
    /// Tokens that are kept free for the block; see [`Budget::new`].
    pub block_reserve: usize,
}

impl Budget {
    /// Keeps [`SECURITY_BLOCK_RESERVE`] tokens free for the block.
    #[must_use]
    pub const fn new(context_window: usize, reply_reserve: usize) -> Self {
        Self { context_window, reply_reserve, block_reserve: SECURITY_BLOCK_RESERVE }
    }

    /// Keeps more free if this block may need it: a policy in a script of many bytes does.
    #[must_use]
    pub fn for_block(mut self, block: &str) -> Self {
        self.block_reserve =
            self.block_reserve.max(token_estimate(block).saturating_add(MESSAGE_OVERHEAD));
        self
    }

    /// Tokens that are left for everything but the answer and the block.
    ///
    /// Zero, not an error, where the reserves are larger than the window.
    #[must_use]
    pub const fn available(&self) -> usize {
        self.context_window.saturating_sub(self.reply_reserve).saturating_sub(self.block_reserve)
    }

    /// Which of the oldest messages must go so that the rest fits.
    ///
    /// `fixed` is what always goes out: the system prompt and this turn. A cut is made only where
    /// a round begins, so that no tool result is left without its call.
    #[must_use]
    pub fn plan(&self, fixed: usize, history: &[MessageSize]) -> Plan {
        let available = self.available();
        // What is needed if the messages before a place go.
        let mut needed = vec![fixed; history.len() + 1];
        for place in (0..history.len()).rev() {
            needed[place] = needed[place + 1].saturating_add(history[place].tokens);
        }
        let drop = (0..history.len())
            .find(|place| begins(history, *place) && needed[*place] <= available)
            .unwrap_or(history.len());
        Plan { drop, needed: needed[drop], available }
    }
}

/// Nothing needs to be cut in front of the first message.
fn begins(history: &[MessageSize], place: usize) -> bool {
    place == 0 || history[place].begins_round
}

/// What one message of the history costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageSize {
    /// Its tokens, with what the provider adds.
    pub tokens: usize,
    /// Whether the history may begin with it: a message of the user that answers no tool call.
    pub begins_round: bool,
}

impl MessageSize {
    /// The size of a text, estimated.
    #[must_use]
    pub fn estimated(text: &str, begins_round: bool) -> Self {
        Self { tokens: token_estimate(text).saturating_add(MESSAGE_OVERHEAD), begins_round }
    }
}

/// What is to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// How many of the oldest messages are left out.
    pub drop: usize,
    /// Tokens of what is left, the block and the answer not counted.
    pub needed: usize,
    /// Tokens that are there for it.
    pub available: usize,
}

impl Plan {
    /// Whether it fits. If not, this turn and the system prompt alone are too long: they have to
    /// be shortened, the block stays.
    #[must_use]
    pub const fn fits(&self) -> bool {
        self.needed <= self.available
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sizes(rows: &[(usize, bool)]) -> Vec<MessageSize> {
        rows.iter().map(|&(tokens, begins_round)| MessageSize { tokens, begins_round }).collect()
    }

    #[test]
    fn test_reserve_tokens_includes_security() {
        let budget = Budget::new(128_000, 8_000);
        assert_eq!(budget.available(), 128_000 - 8_000 - SECURITY_BLOCK_RESERVE);
        // Smaller than the reserves: nothing is left, and nothing underflows.
        for window in [0, 1, 1199, 1200, 9199, 9200] {
            assert_eq!(Budget::new(window, 8_000).available(), 0);
        }
        assert_eq!(Budget::new(9_201, 8_000).available(), 1);
        assert_eq!(Budget::new(usize::MAX, usize::MAX).available(), 0);
    }

    #[test]
    fn a_long_policy_gets_its_room() {
        let budget = Budget::new(100_000, 0);
        assert_eq!(budget.for_block("short").block_reserve, SECURITY_BLOCK_RESERVE);
        let long = "規".repeat(4096);
        assert!(budget.for_block(&long).block_reserve >= 3 * 4096);
    }

    #[test]
    fn the_oldest_go_first_and_rounds_stay_whole() {
        let budget = Budget { context_window: 100, reply_reserve: 10, block_reserve: 40 };
        let history = sizes(&[(20, true), (20, false), (20, false), (5, true), (5, false)]);
        // 50 available, 10 fixed: 70 of history must become 40 or less, cut at a round.
        let plan = budget.plan(10, &history);
        assert_eq!((plan.drop, plan.needed, plan.available), (3, 20, 50));
        assert!(plan.fits());
        assert_eq!(budget.plan(10, &history[3..]).drop, 0);
        assert!(!budget.plan(51, &history).fits());
        assert_eq!(budget.plan(51, &history).drop, 5);
    }

    proptest! {
        #[test]
        fn plans_hold_for_any_numbers(
            window in any::<usize>(), reply in any::<usize>(), block in any::<usize>(),
            fixed in any::<usize>(),
            rows in proptest::collection::vec((any::<usize>(), any::<bool>()), 0..12),
        ) {
            let budget = Budget { context_window: window, reply_reserve: reply, block_reserve: block };
            let history = sizes(&rows);
            let plan = budget.plan(fixed, &history);
            prop_assert!(plan.drop <= history.len());
            prop_assert!(plan.drop == 0 || plan.drop == history.len() || history[plan.drop].begins_round);
            let kept = history[plan.drop..].iter()
                .fold(fixed, |sum, message| sum.saturating_add(message.tokens));
            prop_assert_eq!(kept, plan.needed);
            prop_assert!(plan.fits() || plan.drop == history.len());
            prop_assert!(plan.available <= window);
        }

        #[test]
        fn small_numbers_are_exact(
            window in 0_usize..500, fixed in 0_usize..100,
            rows in proptest::collection::vec((0_usize..80, any::<bool>()), 0..12),
        ) {
            let budget = Budget { context_window: window, reply_reserve: 20, block_reserve: 30 };
            let history = sizes(&rows);
            let plan = budget.plan(fixed, &history);
            // No smaller cut would have done.
            for drop in (0..plan.drop).filter(|drop| begins(&history, *drop)) {
                let kept: usize = fixed + history[drop..].iter().map(|size| size.tokens).sum::<usize>();
                prop_assert!(kept > budget.available());
            }
        }
    }
}
