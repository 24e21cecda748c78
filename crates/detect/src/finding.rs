//! What a scan finds, and what it makes of it.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

/// Where a text comes from; the same sentence weighs differently in each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Channel {
    /// The user's own prompt.
    User,
    /// What a tool gave back, a web page among them.
    ToolOutput,
    /// A document that the agent was given.
    Document,
    /// A file of the agent's durable memory.
    Memory,
    /// The owner's policy.
    Policy,
    /// A skill or its description.
    Skill,
    /// What the model answers.
    ModelOutput,
}

/// What kind of attack a finding belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Deserialize)]
pub enum Category {
    /// Text that poses as the system, an administrator or a chat template.
    SystemImpersonation,
    /// Instructions to the agent inside data.
    IndirectInjection,
    /// An attempt to replace role, rules or refusals.
    BehaviorManipulation,
    /// Claims about a past or a permission that does not exist.
    FalseContextInjection,
    /// An attack that was hidden by an encoding.
    EncodedPayload,
    /// An attempt to get at the prompt, the rules or other secrets of the agent.
    ExtractionAttempt,
    /// Examples that train the model in place.
    ManyShotPriming,
    /// Forced formats and canaries.
    FormatOverride,
    /// Credentials and the like.
    SensitiveFileContent,
    /// Data on its way out.
    DataExfiltration,
}

/// Bytes of the original text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// Behind the last byte.
    pub end: usize,
}

impl From<Range<usize>> for Span {
    fn from(range: Range<usize>) -> Self {
        Self { start: range.start, end: range.end }
    }
}

/// A way in which text was hidden and that was undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Transform {
    /// Invisible characters were taken out.
    Invisible,
    /// Unicode tag characters were read.
    Tags,
    /// Look-alike letters were replaced.
    Confusable,
    /// Digits and signs were read as letters.
    Leet,
    /// Spaced or punctuated letters were joined.
    Spaced,
    /// Markup was stripped, or what it hid was read.
    Markup,
    /// Base64, any alphabet.
    Base64,
    /// Base32.
    Base32,
    /// Base85.
    Base85,
    /// Hexadecimal.
    Hex,
    /// Percent encoding.
    Percent,
    /// HTML entities.
    Entity,
    /// Backslash escapes.
    Escape,
    /// Quoted-printable.
    QuotedPrintable,
    /// ROT13.
    Rot13,
    /// Reversed.
    Reversed,
    /// Gzip or zlib.
    Deflate,
    /// Strings joined from parts.
    Concatenated,
}

impl Transform {
    /// Whether it hides text from a reader rather than writing it in another way.
    #[must_use]
    pub fn hides(self) -> bool {
        !matches!(self, Self::Markup | Self::Entity | Self::Escape | Self::Percent)
    }
}

/// One thing that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The rule that fired, by its stable id.
    pub rule: Cow<'static, str>,
    /// What kind of attack it belongs to.
    pub category: Category,
    /// How much it weighs here, from 0 to 1.
    pub weight: f32,
    /// Where, in the original text.
    pub span: Span,
    /// How the text was hidden, outermost first.
    pub path: Vec<Transform>,
    /// Why it matters, in a sentence.
    pub reason: Cow<'static, str>,
}

/// What is made of all findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verdict {
    /// Nothing that matters.
    Clean,
    /// To be looked at, or to be treated as data only.
    Suspicious,
    /// Not to be let through.
    Block,
}

/// The outcome of a scan.
#[derive(Debug, Clone, PartialEq)]
pub struct Scan {
    /// The verdict.
    pub verdict: Verdict,
    /// From 0 to 1, usable as a ranking.
    pub score: f32,
    /// What was found, heaviest first.
    pub findings: Vec<Finding>,
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Clean => "clean",
            Self::Suspicious => "suspicious",
            Self::Block => "block",
        })
    }
}
