//! Rules: data in `rules/*.toml`, compiled at build time, matched in one pass.
//!
//! A rule is a row of word classes within a few words of each other in one sentence. A sieve drops the
//! sentences in which no rare word occurs at once; the others are read. Where a pattern is complete, `context` decides how much it weighs: forbidden, told of others, quoted or mentioned
//! is not the same as said to the agent.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::finding::{Category, Channel};

use self::compile::{Class, Literal, Tables, Use, compile};
use self::finder::{Entry, Finder};

mod compile;
pub(crate) mod context;
mod edges;
mod finder;
mod frequency;
mod gaps;
pub(crate) mod matcher;
mod reader;
mod sieve;
pub(crate) mod verdict;

include!(concat!(env!("OUT_DIR"), "/tables.rs"));

/// How a rule reads the sentence around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stance {
    /// Only as an order: negated or told of others it does not count.
    #[default]
    Imperative,
    /// As [`Stance::Imperative`], and in quotation marks or code just as well.
    Order,
    /// In any mood; quoted or mentioned it counts less.
    Any,
    /// As it stands.
    Raw,
}

/// One rule.
#[derive(Debug, Clone)]
pub struct Rule {
    pub(crate) id: Cow<'static, str>,
    pub(crate) category: Category,
    pub(crate) weights: [f32; 7],
    pub(crate) stance: Stance,
    pub(crate) canary: bool,
    pub(crate) at_least: u16,
    pub(crate) explanation: Cow<'static, str>,
}

impl Rule {
    /// The stable id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What kind of attack it finds.
    #[must_use]
    pub fn category(&self) -> Category {
        self.category
    }

    /// How much it weighs in a channel, from 0 to 1.
    #[must_use]
    pub fn weight(&self, channel: Channel) -> f32 {
        self.weights[match channel {
            Channel::User => 0,
            Channel::ToolOutput => 1,
            Channel::Document => 2,
            Channel::Memory => 3,
            Channel::Policy => 4,
            Channel::Skill => 5,
            Channel::ModelOutput => 6,
        }]
    }

    /// Why it matters.
    #[must_use]
    pub fn explanation(&self) -> &str {
        &self.explanation
    }
}

/// The rules that ship with the crate.
#[must_use]
pub fn builtin() -> &'static [Rule] {
    &RULES
}

/// A rule of the owner's own, in the language of `rules/*.toml`.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnRule {
    /// A stable id.
    pub id: String,
    /// What kind of attack it finds.
    pub category: Category,
    /// Weight in every channel, from 0 to 1.
    pub weight: f32,
    /// How it reads the sentence around it.
    #[serde(default)]
    pub stance: Stance,
    /// Patterns; classes of the rules that ship may be used.
    pub patterns: Vec<String>,
    /// Why it matters.
    pub explanation: String,
}

/// Rules that an owner may add.
const MOST_OWN: usize = 256;

/// A rule that cannot be used, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleError(String);

impl std::fmt::Display for RuleError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for RuleError {}

/// Rules with the tables that find them.
#[derive(Debug, Clone)]
pub(crate) struct RuleSet {
    pub(crate) rules: Cow<'static, [Rule]>,
    pub(crate) tables: Tables,
}

impl RuleSet {
    /// The rules that ship with the crate: borrowed, nothing is built.
    pub(crate) fn builtin() -> Self {
        Self {
            rules: Cow::Borrowed(&RULES),
            tables: Tables {
                finder: Finder {
                    kinds: Cow::Borrowed(&KINDS),
                    heads: Cow::Borrowed(&HEADS),
                    entries: Cow::Borrowed(&ENTRIES),
                    special: Cow::Borrowed(&SPECIAL),
                    stops: Cow::Borrowed(&STOPS),
                    bytes: Cow::Borrowed(&BYTES),
                    parts: PARTS,
                    crossing: CROSSING,
                    usual: USUAL,
                    signed: SIGNED,
                    blind: BLIND,
                },
                literals: Cow::Borrowed(&LITERALS),
                classes: Cow::Borrowed(&CLASSES),
                index: Cow::Borrowed(&INDEX),
                uses: Cow::Borrowed(&USES),
                elements: ELEMENTS,
                backwards: Cow::Borrowed(&BACKWARDS),
                initials: Cow::Borrowed(&INITIALS),
            },
        }
    }

    /// The owner's rules, compiled now.
    pub(crate) fn own(rules: &[OwnRule]) -> Result<Self, RuleError> {
        // Only what is used: all classes together take half a second to compile.
        let used = |id: &str| {
            id.starts_with("ctx.")
                || rules.iter().flat_map(|rule| &rule.patterns).any(|pattern| {
                    pattern.split('{').skip(1).any(|rest| {
                        rest.split('}').next().unwrap_or("").split('|').any(|name| name == id)
                    })
                })
        };
        let classes: BTreeMap<String, Class> = WORDS
            .iter()
            .filter(|(id, _, _)| used(id))
            .map(|&(id, common, words)| {
                let words = words.iter().map(|&word| word.to_owned()).collect();
                (id.to_owned(), Class { words, common })
            })
            .collect();
        let mut patterns = Vec::new();
        let mut ids = std::collections::BTreeSet::new();
        if rules.len() > MOST_OWN {
            return Err(RuleError(format!("more than {MOST_OWN} rules")));
        }
        for (id, rule) in (0u16..).zip(rules) {
            if rule.id.is_empty()
                || !ids.insert(&rule.id)
                || RULES.iter().any(|one| one.id == rule.id)
            {
                return Err(RuleError(format!("`{}`: the id is empty or taken", rule.id)));
            }
            if !(0.0..=1.0).contains(&rule.weight) {
                return Err(RuleError(format!("{}: the weight is not within 0 and 1", rule.id)));
            }
            patterns.extend(rule.patterns.iter().map(|pattern| (id, pattern.clone())));
        }
        let tables = compile(&classes, &patterns).map_err(RuleError)?;
        let rules = rules
            .iter()
            .map(|rule| Rule {
                id: Cow::Owned(rule.id.clone()),
                category: rule.category,
                weights: [rule.weight; 7],
                stance: rule.stance,
                canary: false,
                at_least: 1,
                explanation: Cow::Owned(rule.explanation.clone()),
            })
            .collect();
        Ok(Self { rules: Cow::Owned(rules), tables })
    }
}
