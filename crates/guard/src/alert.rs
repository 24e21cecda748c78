//! How a decision is told to people: what it concerns, and how bad it is.

use std::fmt;

use wardkeep_detect::finding::{Category as Finding, Verdict as ScanVerdict};
use wardkeep_evidence::record::Principal;

use crate::facts::{Compliance, Facts};
use crate::surface::{Act, Surface};
use crate::taint::Taint;
use crate::verdict::{Decision, Verdict};

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
        }

        impl $name {
            /// Every value.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The word in records.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// The value of a word, if it is one.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.as_str() == text)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::parse(text).ok_or_else(|| {
                    let known: Vec<&str> = Self::ALL.iter().map(|word| word.as_str()).collect();
                    format!("give one of {}", known.join(", "))
                })
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    };
}

words! {
    /// What an event concerns.
    Category {
        /// Someone wanted to change what steers the agent.
        Cpi = "CPI",
        /// Someone wanted to change what the agent remembers.
        Mi = "MI",
        /// It came from someone who is not trusted.
        Taint = "TAINT",
        /// Text that wants to steer the agent.
        Injection = "INJECTION",
        /// An attempt to get at the prompt.
        Extraction = "EXTRACTION",
        /// The prompt, or a secret, in a reply.
        Leakage = "LEAKAGE",
        /// A proxy that anyone can claim to be.
        Proxy = "PROXY",
        /// A snapshot was, or should be, restored.
        Rollback = "ROLLBACK",
        /// A snapshot was restored by the monitor itself.
        AutoRollback = "AUTO_ROLLBACK",
        /// What a bad record has reached.
        Contamination = "CONTAMINATION",
        /// A skill.
        Skill = "SKILL",
        /// A file.
        File = "FILE",
        /// A request that leaves.
        Network = "NETWORK",
        /// The confinement.
        Sandbox = "SANDBOX",
        /// Too many denials.
        RateLimit = "RATE_LIMIT",
    }
}

words! {
    /// How bad it is.
    Severity {
        /// For the record.
        Info = "info",
        /// To be looked at some time.
        Medium = "medium",
        /// To be looked at soon.
        High = "high",
        /// To be looked at now.
        Critical = "critical",
    }
}

/// What a decision concerns; `None` where it let something harmless pass.
#[must_use]
pub fn category(facts: &Facts, decision: &Decision) -> Option<Category> {
    if decision.verdict == Verdict::Allow && facts.scan == ScanVerdict::Clean {
        let weak = facts.sandbox.is_some_and(|found| found != Compliance::Full);
        return weak.then_some(Category::Sandbox);
    }
    let rule = decision.rule.as_ref();
    let prefixes = [
        ("cpi-", Category::Cpi),
        ("mi-", Category::Mi),
        ("fs-", Category::File),
        ("net-", Category::Network),
        ("skill-", Category::Skill),
        ("proxy-", Category::Proxy),
        ("sandbox-", Category::Sandbox),
        ("output-", Category::Leakage),
    ];
    let named = prefixes.iter().find(|(prefix, _)| rule.starts_with(prefix));
    Some(match (named, facts.surface) {
        (Some((_, category)), _) => *category,
        (None, Surface::ControlPlane) => Category::Cpi,
        (None, Surface::DurableMemory) => Category::Mi,
        (None, Surface::FileSystem) => Category::File,
        (None, Surface::NetworkIO) => Category::Network,
        (None, Surface::SkillInstall) => Category::Skill,
        (None, Surface::SandboxCompliance) => Category::Sandbox,
        (None, Surface::ConversationIO) => conversation(facts),
    })
}

fn conversation(facts: &Facts) -> Category {
    let suspect = facts.direct.intersects(Taint::INJECTION_SUSPECT);
    match facts.act {
        Act::Reply => Category::Leakage,
        _ if facts.categories.contains(&Finding::ExtractionAttempt) => Category::Extraction,
        _ if suspect || facts.scan == ScanVerdict::Block => Category::Injection,
        _ => Category::Taint,
    }
}

/// How bad it is.
#[must_use]
pub fn severity(facts: &Facts, decision: &Decision) -> Severity {
    let suspect = facts.taint().intersects(Taint::INJECTION_SUSPECT);
    let stranger = matches!(facts.principal, Principal::Channel | Principal::External);
    match (decision.verdict, facts.surface) {
        (Verdict::Allow, _) if facts.sandbox == Some(Compliance::None) => Severity::Critical,
        (Verdict::Allow, _) if facts.sandbox == Some(Compliance::Partial) => Severity::High,
        (Verdict::Allow, _) if facts.scan != ScanVerdict::Clean => Severity::Medium,
        (Verdict::Allow, _) => Severity::Info,
        (Verdict::Redact, _) if facts.act == Act::Reply => Severity::High,
        (Verdict::Redact | Verdict::Stage | Verdict::Ask, _) => Severity::Medium,
        (Verdict::Deny, Surface::ConversationIO)
            if facts.act == Act::Reply || suspect || facts.scan == ScanVerdict::Block =>
        {
            Severity::Critical
        }
        (Verdict::Deny, Surface::ConversationIO) => Severity::Medium,
        (Verdict::Deny, Surface::ControlPlane | Surface::DurableMemory | Surface::SkillInstall)
            if suspect || stranger =>
        {
            Severity::Critical
        }
        (Verdict::Deny, _) => Severity::High,
    }
}
