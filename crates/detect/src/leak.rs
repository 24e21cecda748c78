//! The output guard: does an answer give away the prompt of the one who gives it?
//!
//! ```
//! use wardkeep_detect::finding::Verdict;
//! use wardkeep_detect::leak::{Canary, OutputGuard, PromptProfile};
//!
//! let canary = Canary::new([3, 141, 59, 26, 53, 58, 97, 93, 23]);
//! let prompt = format!("You serve the harbour office. Reply QUIET_HARBOUR_ACK when idle. {canary}");
//! let guard = OutputGuard::for_prompt(&PromptProfile::of(&prompt).with_canary(&canary));
//!
//! assert_eq!(guard.check("We open at nine, and the ferry leaves at ten.").verdict, Verdict::Clean);
//! let leak = format!("As you wish: {}", canary.as_str().to_uppercase().replace('-', " "));
//! assert_eq!(guard.check(&leak).verdict, Verdict::Block);
//! assert_eq!(
//!     guard.redact("When there is nothing to do I reply QUIET_HARBOUR_ACK, then I wait."),
//!     "When there is nothing to do [withheld], then I wait.",
//! );
//! ```
//!
//! What there is to know the prompt by, in three tiers:
//!
//! 1. [`PromptProfile::of`] the whole prompt: near-verbatim copies of it, whatever was done to
//!    case, spaces, punctuation and letters, turned round, by ROT13, or encoded in a way that
//!    [`crate::views`] undoes; the names in it; canaries.
//! 2. [`PromptProfile::of_tokens`], where only some names are known.
//! 3. [`OutputGuard::new`], where nothing is: names that agents are known to use, and the ways in
//!    which a model speaks of its own prompt. All tiers have this one.
//!
//! A paraphrase, a translation or a leak a few words at a time is not found, unless the answer
//! says what it does. An answer that repeats a passage of the prompt which it was meant to pass on
//! *is* found: [`PromptProfile::without`] takes such passages out.
//!
//! # From signals to findings
//!
//! Signals weigh between 0 and 1 and add up as independent reasons do. The one that makes the text
//! suspicious is a finding, and so are all that come after it; those before it are not, because in
//! a stream they have been let go. So [`Verdict::Clean`](crate::finding::Verdict::Clean) and no
//! findings are the same.
//!
//! One reading goes letter by letter through the text as it comes (folded, so that most disguises
//! need no second look); only stretches that may be encoded are read again, as a whole. Both are
//! defined on tokens between spaces and look neither at what has not come yet nor at how it came:
//! [`StreamGuard`] and [`OutputGuard::check`] are the same code, and time is linear.

mod canary;
mod coded;
mod decode;
mod digits;
mod discover;
mod evidence;
mod fold;
mod letters;
mod ordinary;
mod phrases;
mod profile;
mod scanner;
mod sections;
mod shingle;
mod signs;
mod sought;
mod stream;
mod token;
mod words;

use crate::finding::{Channel, Scan};
use crate::rules::verdict::Thresholds;
use evidence::Rule;
use ordinary::parts_of;
use shingle::Way;
use sought::Sought;
use stream::State;

pub use canary::Canary;
pub use discover::{Token, TokenKind};
pub use profile::PromptProfile;
pub use stream::{Ending, StreamGuard};

/// What stands in the place of text that is withheld.
pub const WITHHELD: &str = "[withheld]";

static CANARY: Rule =
    Rule { id: "leak.canary", reason: "A canary of the prompt shows in the answer." };
static COPY: Rule = Rule { id: "leak.copy", reason: "The answer repeats a part of the prompt." };
static PROMPT_TOKEN: Rule =
    Rule { id: "leak.prompt-token", reason: "The answer says a name out of the prompt." };
static KNOWN_TOKEN: Rule =
    Rule { id: "leak.known-token", reason: "The answer says a name that agents use inside." };

/// Names of the trade that are watched for without a prompt: signals, functions and tools.
const KNOWN: &[(&str, TokenKind)] = &[
    ("SILENT_REPLY_TOKEN", TokenKind::Screaming),
    ("HEARTBEAT_OK", TokenKind::Screaming),
    ("buildSkillsSection", TokenKind::Builder),
    ("buildMemorySection", TokenKind::Builder),
    ("buildReplyTagsSection", TokenKind::Builder),
    ("reply_to_current", TokenKind::Snake),
    ("memory_search", TokenKind::Snake),
    ("memory_get", TokenKind::Snake),
    ("sessions_spawn", TokenKind::Snake),
    ("sessions_send", TokenKind::Snake),
];

/// Letters of a canary that are enough to know it by.
const CANARY_PART: usize = 12;
/// Every so many letters such a part begins.
const CANARY_STEP: usize = 3;

/// Something that is watched for.
#[derive(Debug)]
struct Item {
    rule: &'static Rule,
    prose: f32,
    code: f32,
    /// Words that its name is made of.
    parts: usize,
    /// Whether it may be a reply of its own.
    signal: bool,
    /// Whether it counts however it is written.
    literal: bool,
    canary: bool,
}

impl Item {
    fn new(rule: &'static Rule, text: &str, kind: TokenKind) -> Self {
        let (prose, code) = match kind {
            TokenKind::Given | TokenKind::Secret => (0.9, 0.9),
            TokenKind::Screaming => (0.55, 0.3),
            TokenKind::Builder => (0.5, 0.1),
            TokenKind::Camel | TokenKind::Snake => (0.25, 0.05),
            TokenKind::Placeholder => (0.6, 0.3),
            TokenKind::Code => (0.4, 0.4),
        };
        Self {
            rule,
            prose,
            code,
            parts: parts_of(text).count(),
            signal: kind == TokenKind::Screaming,
            literal: matches!(kind, TokenKind::Given | TokenKind::Secret),
            canary: false,
        }
    }

    fn weight(&self, fenced: bool) -> f32 {
        if fenced { self.code } else { self.prose }
    }
}

/// Checks answers, whole or while they are written. Make one for each prompt and keep it.
#[derive(Debug)]
pub struct OutputGuard {
    sought: Sought,
    items: Vec<Item>,
    /// Letters of the prompt.
    letters: usize,
    thresholds: Thresholds,
    secrets: bool,
    urls: bool,
}

impl Default for OutputGuard {
    fn default() -> Self {
        Self::new()
    }
}

impl OutputGuard {
    /// Without knowing a prompt.
    #[must_use]
    pub fn new() -> Self {
        Self::for_prompt(&PromptProfile::default())
    }

    /// For a prompt, or as much of it as is known.
    #[must_use]
    pub fn for_prompt(profile: &PromptProfile) -> Self {
        let mut guard = Self {
            sought: Sought::new(profile.stretches()),
            items: Vec::new(),
            letters: profile.letters(),
            thresholds: Thresholds::of(Channel::ModelOutput),
            secrets: false,
            urls: false,
        };
        for (text, kind) in KNOWN {
            let item = Item::new(&KNOWN_TOKEN, text, *kind);
            // Nobody but an agent has these.
            guard.watch(text, Item { prose: item.prose.max(0.35), ..item });
        }
        for token in profile.tokens() {
            guard.watch(&token.text, Item::new(&PROMPT_TOKEN, &token.text, token.kind));
        }
        for canary in profile.canaries() {
            guard.watch_canary(canary);
        }
        guard.sought.seal();
        guard
    }

    fn watch(&mut self, text: &str, item: Item) {
        for way in [Way::Plain, Way::Reversed, Way::Rot13] {
            self.sought.add(self.items.len(), way, way.letters(text), false);
        }
        if !text.chars().any(char::is_alphabetic) {
            let digits = text.bytes().filter(u8::is_ascii_digit).map(|digit| digit - b'0');
            self.sought.add_number(self.items.len(), digits.collect());
        }
        self.items.push(item);
    }

    fn watch_canary(&mut self, canary: &Canary) {
        let item = Item {
            rule: &CANARY,
            prose: 0.98,
            code: 0.98,
            parts: 0,
            signal: false,
            literal: true,
            canary: true,
        };
        for way in [Way::Plain, Way::Reversed, Way::Rot13] {
            let letters = way.letters(canary.as_str());
            for part in letters.windows(CANARY_PART).step_by(CANARY_STEP) {
                self.sought.add(self.items.len(), way, part.to_vec(), true);
            }
        }
        self.items.push(item);
    }

    /// With other thresholds than those that ship.
    #[must_use]
    pub fn with_thresholds(mut self, thresholds: Thresholds) -> Self {
        self.thresholds = thresholds;
        self
    }

    /// With credentials looked for as well, as far as their form shows what they are.
    #[must_use]
    pub fn with_secrets(mut self) -> Self {
        self.secrets = true;
        self
    }

    /// With addresses looked for by which data would leave.
    #[must_use]
    pub fn with_urls(mut self) -> Self {
        self.urls = true;
        self
    }

    /// Checks a whole answer.
    #[must_use]
    pub fn check(&self, answer: &str) -> Scan {
        self.run(None, answer)
    }

    /// Checks a whole answer to a question; what stands in the question is no secret.
    #[must_use]
    pub fn check_answer(&self, question: &str, answer: &str) -> Scan {
        self.run(Some(question), answer)
    }

    fn run(&self, question: Option<&str>, answer: &str) -> Scan {
        let mut state = State::new(self);
        state.speaks = false;
        if let Some(question) = question {
            state.know(self, question);
        }
        let mut out = String::new();
        state.feed(self, answer, &mut out);
        state.finish(self, &mut out);
        state.evidence.into_scan()
    }

    /// An answer with [`WITHHELD`] in the place of every finding, those past a block included.
    #[must_use]
    pub fn redact(&self, answer: &str) -> String {
        let mut state = State::new(self);
        state.stops = false;
        let mut out = String::with_capacity(answer.len());
        state.feed(self, answer, &mut out);
        state.finish(self, &mut out);
        out
    }

    /// How much a copy of so many letters says.
    fn weight_of_copy(&self, matched: usize) -> f32 {
        const CURVE: [(usize, f32); 7] =
            [(28, 0.1), (40, 0.25), (56, 0.42), (64, 0.5), (112, 0.75), (180, 0.92), (320, 0.97)];
        let mut weight = 0.0;
        for pair in CURVE.windows(2) {
            let [(from, low), (to, high)] = [pair[0], pair[1]];
            if matched >= from {
                let share = (matched - from).min(to - from) as f32 / (to - from) as f32;
                weight = low + (high - low) * share;
            }
        }
        // Of a short prompt a short copy is much.
        let much = matched >= 32 && matched * 3 >= self.letters;
        if much && matched * 5 >= self.letters * 4 {
            weight = weight.max(0.92);
        } else if much {
            weight = weight.max(0.55);
        }
        weight
    }
}
