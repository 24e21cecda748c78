//! Newtypes for the SHA-256 values of the format, so that an id is never taken for a hash.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

/// The text is not 64 lower-case hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a SHA-256 in hexadecimal: give 64 lower-case hexadecimal digits")]
pub struct ParseHashError;

/// SHA-256 of `data`.
#[must_use]
pub fn sha256(data: &[u8]) -> [u8; 32] {
    Sha256::digest(data).into()
}

/// Decodes exactly 64 lower-case hexadecimal digits.
#[must_use]
pub fn decode_hex(text: &[u8]) -> Option<[u8; 32]> {
    if text.len() != 64 {
        return None;
    }
    let mut bytes = [0u8; 32];
    let mut bad = 0u8;
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        let high = NIBBLE[usize::from(pair[0])];
        let low = NIBBLE[usize::from(pair[1])];
        bad |= (high | low) & 0x80;
        *byte = high << 4 | (low & 0x0f);
    }
    (bad == 0).then_some(bytes)
}

/// Appends `bytes` as lower-case hexadecimal digits.
pub fn encode_hex_into(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 15)]);
    }
}

/// `bytes` as lower-case hexadecimal digits.
#[must_use]
pub fn encode_hex(bytes: &[u8]) -> String {
    let mut out = Vec::with_capacity(bytes.len() * 2);
    encode_hex_into(bytes, &mut out);
    String::from_utf8(out).unwrap_or_default()
}

const NIBBLE: [u8; 256] = nibble_table();

const fn nibble_table() -> [u8; 256] {
    let mut table = [0x80u8; 256];
    let mut digit = 0u8;
    while digit < 16 {
        let character = if digit < 10 { b'0' + digit } else { b'a' + digit - 10 };
        table[character as usize] = digit;
        digit += 1;
    }
    table
}

macro_rules! hash_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub [u8; 32]);

        impl $name {
            /// Sixty-four zeros: what stands where there is nothing before.
            pub const ZERO: Self = Self([0; 32]);

            /// Reads the 64 lower-case hexadecimal digits of the format.
            #[must_use]
            pub fn from_hex(text: &str) -> Option<Self> {
                decode_hex(text.as_bytes()).map(Self)
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

        impl FromStr for $name {
            type Err = ParseHashError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::from_hex(text).ok_or(ParseHashError)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&encode_hex(&self.0))
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({"type": "string", "pattern": "^[0-9a-f]{64}$"})
            }
        }
    };
}

hash_type! {
    /// Id of a record: SHA-256 over its canonical form.
    RecordId
}
hash_type! {
    /// Hash of an audit entry: SHA-256 over its canonical form, which holds the previous one.
    EntryHash
}
hash_type! {
    /// Name of a blob: SHA-256 over its bytes.
    BlobHash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_is_strict() {
        let text = "00ff".repeat(16);
        assert_eq!(RecordId::from_hex(&text).unwrap().to_string(), text);
        assert_eq!(RecordId::from_hex(&text.to_uppercase()), None);
        assert_eq!(RecordId::from_hex(&text[1..]), None);
        assert_eq!(RecordId::from_hex(&text.replace("00", "0g")), None);
        assert_eq!(RecordId::from_hex(&"é".repeat(32)), None);
    }
}
