//! Rules: what is forbidden, and what that means for an action.
//!
//! Two kinds hold together, and the strictest verdict wins. The [`built_in`] ones are code, so that
//! judging by them takes nanoseconds; `builtin.cedar` says the same in Cedar, and a test holds the
//! two to each other. The owner's ([`OwnRules`]) are Cedar, only ever `forbid`, checked against a
//! schema: they add to what the built-ins forbid and take nothing away.

pub mod built_in;
pub mod case;
mod engine;
pub mod explain;
pub mod form;
pub mod names;
mod own;
mod problem;
mod text;
mod vocabulary;

use std::borrow::Cow;
use std::cmp::Reverse;

use wardkeep_evidence::hash::{encode_hex, sha256};

pub use own::{MAX_BYTES, MAX_RULES, OwnRule, OwnRules, RuleFile, built_in_as_cedar};
pub use problem::RuleProblem;

use crate::facts::Facts;
use crate::taint::Taint;
use crate::verdict::{Hit, Verdict};

/// The built-in rules in Cedar.
pub const BUILT_IN_CEDAR: &str = include_str!("rules/builtin.cedar");
/// What a rule can ask, as a Cedar schema.
pub const SCHEMA: &str = include_str!("rules/wardkeep.cedarschema");
/// Counts up when a built-in rule changes what it decides.
pub const VERSION: &str = "wardkeep-rules-1";

/// The owner's rules cannot be used.
const BROKEN: &str = "rules-ask-broken";
/// The owner's rules are not as they were signed.
const CHANGED: &str = "rules-ask-changed";

/// What rules make of facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// The rules that matched, the strictest first.
    pub hits: Vec<Hit>,
    /// The rule that lets it pass where none matched; `default-deny` where nothing knows the act.
    pub passed_by: &'static str,
    /// What is added to the taint of what happens.
    pub taint: Taint,
    /// The rules that add it.
    pub annotated: Vec<&'static str>,
}

impl Judged {
    /// What may happen: the strictest verdict of all that matched.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.hits.iter().map(|hit| hit.verdict).max().unwrap_or(Verdict::Allow)
    }

    /// The rule that decided, or that let it pass.
    #[must_use]
    pub fn rule(&self) -> Cow<'static, str> {
        self.hits.first().map_or(Cow::Borrowed(self.passed_by), |hit| hit.rule.clone())
    }

    /// Why, in a sentence.
    #[must_use]
    pub fn reason(&self, facts: &Facts) -> Cow<'static, str> {
        match self.hits.first() {
            Some(hit) => hit.reason.clone(),
            None => built_in::nothing_against(facts).into(),
        }
    }

    /// Adds what other rules found.
    pub fn add(&mut self, hits: impl IntoIterator<Item = Hit>) {
        self.hits.extend(hits);
        self.hits.sort_by_key(|hit| Reverse(hit.verdict));
    }
}

/// The rules in force: the built-in ones and the owner's.
#[derive(Debug)]
pub struct Rules {
    own: OwnRules,
    problems: Vec<RuleProblem>,
    doubt: Option<Hit>,
    digest: String,
}

impl Default for Rules {
    fn default() -> Self {
        Self::new(&[])
    }
}

impl Rules {
    /// The built-in rules and those of the owner's files. If a file cannot be used, none of the
    /// owner's rules is, and every action is asked about at least, until that is mended.
    #[must_use]
    pub fn new(files: &[RuleFile<'_>]) -> Self {
        let digest = digest(files);
        match OwnRules::parse_files(files) {
            Ok(own) => Self { own, problems: Vec::new(), doubt: None, digest },
            Err(problems) => {
                let first = problems.first().map_or_else(String::new, RuleProblem::summary);
                let reason = format!(
                    "the owner's rules cannot be used ({first}), so every action has to be approved \
                     until the owner has mended them: `wardkeep rules check`"
                );
                let doubt = Some(asked(BROKEN, reason));
                Self { own: OwnRules::default(), problems, doubt, digest }
            }
        }
    }

    /// The same, where the files are not those that the owner signed: a rule may be missing, so
    /// every action is asked about at least.
    #[must_use]
    pub fn changed(mut self, why: &str) -> Self {
        if self.doubt.is_none() {
            let reason = format!(
                "the owner's rules are not as they were signed ({}), so every action has to be approved \
                 until the owner has looked at them and signed them: `wardkeep config sign`",
                wardkeep_evidence::check::printable(why)
            );
            self.doubt = Some(asked(CHANGED, reason));
        }
        self
    }

    /// What they make of facts.
    #[must_use]
    pub fn judge(&self, facts: &Facts) -> Judged {
        let mut judged = built_in::judge(facts);
        judged.add(self.own.judge(facts));
        if !facts.approved {
            judged.add(self.doubt.clone());
        }
        judged
    }

    /// The owner's.
    #[must_use]
    pub fn own(&self) -> &OwnRules {
        &self.own
    }

    /// What is wrong with the owner's files.
    #[must_use]
    pub fn problems(&self) -> &[RuleProblem] {
        &self.problems
    }

    /// The hit that every action gets while the owner's rules cannot be relied on.
    #[must_use]
    pub fn doubt(&self) -> Option<&Hit> {
        self.doubt.as_ref()
    }

    /// SHA-256 over the version of the built-ins and the owner's texts, in hexadecimal.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }
}

fn asked(rule: &'static str, reason: String) -> Hit {
    Hit { rule: rule.into(), verdict: Verdict::Ask, reason: reason.into() }
}

/// Names and texts with their lengths, so that no two sets of files share a digest.
fn digest(files: &[RuleFile<'_>]) -> String {
    let mut bytes = Vec::new();
    let mut put = |part: &[u8]| {
        bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
        bytes.extend_from_slice(part);
    };
    put(VERSION.as_bytes());
    for file in files {
        put(file.name.as_bytes());
        put(file.text);
    }
    encode_hex(&sha256(&bytes))
}
