//! The block of a proxy of the same owner that stands before this one.

use wardkeep_policy::block::{ELEVATED_SECURITY_SUFFIX, HARDCODED_SECURITY_SUFFIX};

use super::super::ask::Asked;
use super::{Door, held};

impl Door {
    /// Whether a request ends with the very block that would be put there: a proxy of the same owner
    /// stands before this one. What is merely like it is judged as anyone's words.
    pub(super) fn is_own_block(&self, asked: &Asked<'_>) -> bool {
        let Some(last) = asked.last_text().map(calm) else { return false };
        let known = held(&self.block).clone();
        if known.as_deref().map(calm) == Some(last) {
            return true;
        }
        // The policy may have been signed anew since.
        let likely = last.ends_with(HARDCODED_SECURITY_SUFFIX);
        let now = self.config.block_now.as_ref().filter(|_| likely).and_then(|now| now());
        now.as_deref().map(calm) == Some(last)
    }
}

/// A block without the alert that follows in a turn that saw something suspicious.
fn calm(block: &str) -> &str {
    let before = block.strip_suffix(ELEVATED_SECURITY_SUFFIX);
    before.and_then(|before| before.strip_suffix("\n\n")).unwrap_or(block)
}

/// The longest that a block can get: with that alert.
pub(super) fn elevated(block: &str) -> String {
    if !block.ends_with(HARDCODED_SECURITY_SUFFIX) {
        return block.to_owned();
    }
    format!("{block}\n\n{ELEVATED_SECURITY_SUFFIX}")
}
