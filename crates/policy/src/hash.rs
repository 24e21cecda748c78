//! The two hashes of this crate, so that one is never taken for the other.

use std::fmt;

use subtle::ConstantTimeEq as _;
use wardkeep_evidence::hash::{decode_hex, encode_hex, sha256};

macro_rules! hash_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub [u8; 32]);

        impl $name {
            /// Of these bytes.
            #[must_use]
            pub fn of(bytes: &[u8]) -> Self {
                Self(sha256(bytes))
            }

            /// Reads 64 lower-case hexadecimal digits.
            #[must_use]
            pub fn from_hex(text: &str) -> Option<Self> {
                decode_hex(text.as_bytes()).map(Self)
            }

            /// Whether both are the same, in the same time whatever the bytes are.
            #[must_use]
            pub fn same(&self, other: &Self) -> bool {
                self.0.ct_eq(&other.0).into()
            }

            /// The first six digits, for people.
            #[must_use]
            pub fn short(&self) -> String {
                encode_hex(&self.0[..3])
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.pad(&encode_hex(&self.0))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, "{}({self})", stringify!($name))
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&encode_hex(&self.0))
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Self::from_hex(&text).ok_or_else(|| {
                    serde::de::Error::custom("not 64 lower-case hexadecimal digits")
                })
            }
        }
    };
}

hash_type! {
    /// SHA-256 over the raw bytes of a file.
    ContentHash
}
hash_type! {
    /// SHA-256 over the raw bytes of a line of the audit log, without its newline.
    LineHash
}

impl LineHash {
    /// What the first line names as the one before it.
    pub const GENESIS: Self = Self([0; 32]);
}
