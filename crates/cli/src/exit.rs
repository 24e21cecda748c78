//! Exit codes, documented and stable. The lines here are also the section in the help.

use wardkeep_evidence::check::Class;

macro_rules! exits {
    ($(#[doc = $doc:literal] $name:ident = $code:literal;)*
     unlisted: $(#[doc = $undoc:literal] $unname:ident = $uncode:literal;)*) => {
        /// How a command ends.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Exit {
            $(#[doc = $doc] $name = $code,)*
            $(#[doc = $undoc] $unname = $uncode,)*
        }

        /// The section of the long help that lists the codes.
        pub(crate) const HELP: &str =
            concat!("Exit codes:", $("\n  ", stringify!($code), " ", $doc,)*);
    };
}

exits! {
    /// it was done; to a question, the answer is yes
    Success = 0;
    /// a value given cannot be used, what is to be made exists already, or the answer is no
    Refused = 1;
    /// verification failed, or the command line is wrong
    Failed = 2;
    /// verification failed: a file breaks the schema
    Schema = 3;
    /// a file cannot be read, written or parsed
    Unreadable = 4;
    /// the policy is not signed
    Unsigned = 10;
    /// the policy was tampered with
    Tampered = 11;
    /// there is no policy
    Missing = 12;
    /// the policy's manifest is corrupted
    ManifestCorrupted = 13;
    /// the policy contains suspicious patterns
    Suspicious = 14;
    /// the audit log does not hold
    AuditBroken = 15;
    /// someone has to do something: `prove` says what
    ActionRequired = 20;
    unlisted:
    /// `hook --guarded` has an answer on standard output
    HookAnswered = 77;
    /// `hook --guarded` says no
    HookDenied = 78;
}

impl Exit {
    /// The number.
    pub(crate) fn code(self) -> u8 {
        self as u8
    }
}

impl From<Class> for Exit {
    fn from(class: Class) -> Self {
        match class {
            Class::Integrity => Self::Failed,
            Class::Schema => Self::Schema,
            Class::Parse => Self::Unreadable,
        }
    }
}
