//! Ids of snapshots.

use std::fmt;
use std::str::FromStr;

use wardkeep_evidence::hash::encode_hex;

use crate::journal::JournalError;

/// The id of a snapshot: 48 random bits, as 12 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SnapshotId(pub(super) [u8; 6]);

impl SnapshotId {
    pub(super) fn random() -> Result<Self, JournalError> {
        let mut bytes = [0; 6];
        getrandom::fill(&mut bytes).map_err(|error| JournalError::Random(error.to_string()))?;
        Ok(Self(bytes))
    }
}

impl fmt::Display for SnapshotId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&encode_hex(&self.0))
    }
}

/// The text is no id of a snapshot.
#[derive(Debug, Clone, thiserror::Error)]
#[error("not an id of a snapshot: give 12 lower-case hexadecimal digits")]
pub struct ParseIdError;

impl FromStr for SnapshotId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if text.len() != 12 || !digits {
            return Err(ParseIdError);
        }
        let number = u64::from_str_radix(text, 16).map_err(|_| ParseIdError)?;
        let [_, _, bytes @ ..] = number.to_be_bytes();
        Ok(Self(bytes))
    }
}

impl serde::Serialize for SnapshotId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_string())
    }
}

impl<'de> serde::Deserialize<'de> for SnapshotId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_they_are_written() {
        let id = SnapshotId([0, 0xff, 1, 2, 0xab, 9]);
        assert_eq!(id.to_string(), "00ff0102ab09");
        assert_eq!("00ff0102ab09".parse::<SnapshotId>().unwrap(), id);
        for text in
            ["", "00ff0102ab0", "00FF0102AB09", "00ff0102ab099", "+0ff0102ab09", "../../../../x"]
        {
            assert!(text.parse::<SnapshotId>().is_err(), "{text}");
        }
    }
}
