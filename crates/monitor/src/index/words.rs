//! The words that records use for what the monitor decided, as small numbers.

use std::fmt;

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
        }

        impl $name {
            /// Every word, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The word in records.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// The word that `text` is.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)* _ => None }
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
    /// What a record of the monitor's own tells: `kind` of its content.
    Said {
        /// An action was judged.
        Decision = "decision",
        /// Something that the owner should hear of.
        Alert = "alert",
        /// Many denials in one record.
        Flood = "flood",
        /// The owner approved.
        Approval = "approval",
        /// The owner refused.
        Refusal = "refusal",
        /// The owner has seen the notifications up to a record.
        Acknowledgement = "acknowledgement",
        /// A system prompt was registered.
        Prompt = "prompt",
        /// How an allowed action went.
        Outcome = "outcome",
        /// A session ended.
        SessionEnd = "session-end",
        /// An entry of the policy's audit log.
        Audit = "audit",
        /// A protection was switched off.
        Switch = "switch",
        /// The config was signed.
        Configuration = "configuration",
        /// The journal found something that should not be there.
        Recovery = "recovery",
        /// A snapshot was taken.
        Snapshot = "snapshot",
        /// A snapshot was restored.
        Rollback = "rollback",
        /// A command names a protected file.
        Warning = "warning",
        /// Files were kept before an agent's tool changed them.
        Undo = "undo",
        /// Parts of an action that were allowed by themselves and did not happen: another part was not.
        Withheld = "withheld",
        /// Something of a trial of the owner's: judged like any other, and no attack.
        Trial = "trial",
    }
}
