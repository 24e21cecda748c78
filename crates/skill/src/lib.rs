//! Skills, plugins and tool definitions judged before they enter an agent.
//!
//! A [`Tree`] of files goes in, a [`Report`] comes out. Text is read as what it is: Markdown by its
//! structure, shell by the parser that everything here uses, Python, JavaScript and TypeScript from
//! a syntax tree and followed from where data comes to where it goes. What decides are chains, such
//! as fetched *and* run or read *and* sent; words alone decide nothing. Nothing is run, nothing is
//! looked up, and what a skill says about itself never lowers a finding by more than one step.
//!
//! No static reading finds every attack. What is only told to the model is asked about at best, and
//! has to be contained where it runs.

mod code;
mod facts;
mod foreign;
mod front;
mod judge;
mod kind;
mod lexicon;
mod markdown;
pub mod names;
mod other;
mod packed;
mod places;
mod points;
mod prose;
mod rules;
mod shell;
mod suppress;
pub mod tree;
mod unpack;
mod verdict;

pub use rules::{RULES, Rule, rule};
pub use suppress::{Suppressed, Suppression};
pub use tree::{Content, Entry, Gap, Limits, Tree};

pub use verdict::Verdict;

/// What the owner says about skills in general.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Hosts that may be asked; none means that there is no list.
    pub allowed_hosts: Vec<String>,
    /// Names of well-known skills, to compare with.
    pub names: names::Names,
    /// Bounds on what is read.
    pub limits: Limits,
    /// The name of the folder, which may say another name than the skill does.
    pub folder: Option<String>,
    /// Findings that the owner has looked at. Never taken from a skill.
    pub suppressions: Vec<Suppression>,
}

/// What was made of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Whether it may be installed: `Allow`, `Ask` or `Deny`.
    pub verdict: Verdict,
    /// What was found, the strictest first.
    pub findings: Vec<Finding>,
    /// What was found and does not count, because the owner said so.
    pub suppressed: Vec<Suppressed>,
    /// Whether all of it was read. What was not is never allowed.
    pub complete: bool,
    /// What it calls itself.
    pub name: Option<String>,
    /// What it was seen to do, for the owner and for a sandbox.
    pub capabilities: Capabilities,
}

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule's id.
    pub rule: &'static str,
    /// What it demands here.
    pub verdict: Verdict,
    /// The file.
    pub path: String,
    /// From 1; 0 where the file as a whole is meant.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// The place in the file's text, in bytes.
    pub start: usize,
    /// Behind its last byte.
    pub end: usize,
    /// What stands there, cut short; may hold anything, so escape it.
    pub excerpt: String,
    /// Why it matters, in a sentence.
    pub reason: String,
    /// The same finding has the same id in another run, wherever it has moved to in its file.
    pub id: String,
}

/// What a skill was seen to do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Hosts that its code talks to, sorted.
    pub hosts: Vec<String>,
    /// Whether it runs commands.
    pub runs_commands: bool,
    /// Variables of the environment that it names, sorted.
    pub variables: Vec<String>,
}

/// Judges a skill.
#[must_use]
pub fn verify(tree: &Tree, options: &Options) -> Report {
    judge::verify(tree, options)
}
