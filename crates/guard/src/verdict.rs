//! What comes out of a decision.

use std::borrow::Cow;
use std::fmt;

use crate::taint::Taint;

/// What may happen; a later one is stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verdict {
    /// It may happen.
    Allow,
    /// It may happen without the parts that were found.
    Redact,
    /// It may happen in the staging folder, for the owner to apply.
    Stage,
    /// The owner is asked; until then it may not happen.
    Ask,
    /// It may not happen.
    Deny,
}

impl Verdict {
    /// Every verdict, the mildest first.
    pub const ALL: [Self; 5] = [Self::Allow, Self::Redact, Self::Stage, Self::Ask, Self::Deny];

    /// The name in records and rules.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Redact => "redact",
            Self::Stage => "stage",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

impl From<wardkeep_skill::Verdict> for Verdict {
    fn from(verdict: wardkeep_skill::Verdict) -> Self {
        match verdict {
            wardkeep_skill::Verdict::Allow => Self::Allow,
            wardkeep_skill::Verdict::Ask => Self::Ask,
            wardkeep_skill::Verdict::Deny => Self::Deny,
        }
    }
}

/// A rule that matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// Its id.
    pub rule: Cow<'static, str>,
    /// What it demands.
    pub verdict: Verdict,
    /// Why, in a sentence for a person.
    pub reason: Cow<'static, str>,
}

/// What was decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What may happen.
    pub verdict: Verdict,
    /// The rule that decided, or that let it pass.
    pub rule: Cow<'static, str>,
    /// Why, in a sentence for a person.
    pub reason: String,
    /// Every rule that matched, the strictest first.
    pub hits: Vec<Hit>,
    /// The taint of what happens: that of its parents and what the decision adds.
    pub taint: Taint,
}
