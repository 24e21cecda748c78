//! The names that rules, records and cases use for facts.

use wardkeep_detect::finding::{Category, Verdict as ScanVerdict};
use wardkeep_evidence::record::Principal;

use crate::facts::{Compliance, Protection, Sensitivity, SkillFacts};
use crate::surface::{Act, Surface};
use crate::verdict::Verdict;

/// Something with a closed list of names.
pub trait Named: Copy + 'static {
    /// What it is, for messages.
    const WHAT: &'static str;

    /// Every value.
    fn all() -> &'static [Self];

    /// Its name.
    fn name(self) -> &'static str;

    /// The value of a name.
    fn named(name: &str) -> Option<Self> {
        Self::all().iter().copied().find(|value| value.name() == name)
    }

    /// Every name, for messages.
    fn names() -> Vec<&'static str> {
        Self::all().iter().map(|value| value.name()).collect()
    }
}

macro_rules! named {
    ($type:ty, $what:literal, $all:expr) => {
        impl Named for $type {
            const WHAT: &'static str = $what;

            fn all() -> &'static [Self] {
                const ALL: &[$type] = &$all;
                ALL
            }

            fn name(self) -> &'static str {
                self.as_str()
            }
        }
    };
    ($type:ty, $what:literal { $($variant:ident = $name:literal,)* }) => {
        impl Named for $type {
            const WHAT: &'static str = $what;

            fn all() -> &'static [Self] {
                &[$(Self::$variant,)*]
            }

            fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

named!(Surface, "surface", Surface::ALL);
named!(Act, "act", Act::ALL);
named!(Verdict, "verdict", Verdict::ALL);
named!(
    Principal,
    "principal" {
        Sys = "SYS",
        User = "USER",
        Tool = "TOOL",
        Skill = "SKILL",
        Web = "WEB",
        Channel = "CHANNEL",
        External = "EXTERNAL",
    }
);
named!(
    Protection,
    "protection" {
        None = "none",
        Watched = "watched",
        Protected = "protected",
        Sealed = "sealed",
    }
);
named!(
    Sensitivity,
    "sensitivity" {
        None = "none",
        Tainted = "tainted",
        Denied = "denied",
        Sealed = "sealed",
    }
);
named!(SkillFacts, "skill" { Clean = "clean", Doubtful = "doubtful", Malicious = "malicious", });
named!(Compliance, "sandbox" { Full = "full", Partial = "partial", None = "none", });
named!(ScanVerdict, "scan" { Clean = "clean", Suspicious = "suspicious", Block = "block", });
named!(
    Category,
    "category" {
        SystemImpersonation = "SystemImpersonation",
        IndirectInjection = "IndirectInjection",
        BehaviorManipulation = "BehaviorManipulation",
        FalseContextInjection = "FalseContextInjection",
        EncodedPayload = "EncodedPayload",
        ExtractionAttempt = "ExtractionAttempt",
        ManyShotPriming = "ManyShotPriming",
        FormatOverride = "FormatOverride",
        SensitiveFileContent = "SensitiveFileContent",
        DataExfiltration = "DataExfiltration",
    }
);

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: Named + PartialEq + std::fmt::Debug>() {
        for value in T::all() {
            assert_eq!(T::named(value.name()), Some(*value));
        }
        assert_eq!(T::named("nothing of the kind"), None);
    }

    #[test]
    fn every_name_leads_back() {
        check::<Surface>();
        check::<Act>();
        check::<Verdict>();
        check::<Principal>();
        check::<Protection>();
        check::<Sensitivity>();
        check::<SkillFacts>();
        check::<Compliance>();
        check::<ScanVerdict>();
        check::<Category>();
        assert_eq!(Principal::all(), Principal::ALL);
        assert!(Principal::all().iter().all(|one| one.name() == one.as_str()));
        assert!(Category::all().iter().all(|one| one.name() == format!("{one:?}")));
        assert!(ScanVerdict::all().iter().all(|one| one.name() == one.to_string()));
    }
}
