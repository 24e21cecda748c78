//! What the owner approved: an index of names, and the bytes by their hash.

mod objects;

use std::collections::BTreeMap;

use wardkeep_evidence::hash::{BlobHash, decode_hex, encode_hex, sha256};

pub(crate) use self::objects::{Objects, Unflushed};
use crate::config::{CONFIG_FILE, Config, Tier};
use crate::error::{IdentityError, Result};
use crate::name::Name;
use crate::steps::Steps;
use crate::store::Store;

const FILE: &str = "baseline";
const HEAD: &str = "wardkeep-baseline 1";
/// Largest index that is read: some millions of files.
const MAX_INDEX: u64 = 1 << 30;

/// One approved file, or the last known version of a watched one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Entry {
    /// Its tier.
    pub tier: Tier,
    /// Of its bytes.
    pub hash: BlobHash,
    /// Permission bits as they were approved, before it was locked.
    pub mode: u32,
    /// In bytes.
    pub size: u64,
}

/// Everything that was approved, by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Baseline {
    entries: BTreeMap<Name, Entry>,
}

impl Baseline {
    /// Reads it; `None` where nothing was approved yet.
    pub(crate) fn read(store: &Store) -> Result<Option<Self>> {
        store.read(FILE, MAX_INDEX)?.map(|bytes| Self::parse(&bytes)).transpose()
    }

    /// Writes it, whole or not at all.
    pub(crate) fn write(&self, store: &Store, steps: &dyn Steps) -> Result<()> {
        store.write(FILE, &self.to_bytes(), steps)
    }

    /// The entry of a name.
    #[must_use]
    pub fn entry(&self, name: &Name) -> Option<&Entry> {
        self.entries.get(name)
    }

    /// All entries, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&Name, &Entry)> {
        self.entries.iter()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn set(&mut self, name: Name, entry: Option<Entry>) {
        match entry {
            Some(entry) => self.entries.insert(name, entry),
            None => self.entries.remove(&name),
        };
    }

    /// The configuration of record: the approved bytes of `soulguard.json`.
    pub(crate) fn config(&self, objects: &Objects) -> Result<Config> {
        let name = Name::new(CONFIG_FILE.as_bytes());
        let entry = name.and_then(|name| self.entry(&name).copied());
        let entry = entry.ok_or_else(|| IdentityError::damaged("no `soulguard.json` in it"))?;
        Ok(Config::parse(&objects.read(entry.hash)?)?)
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut text = format!("{HEAD}\n");
        for (name, entry) in &self.entries {
            let tier = match entry.tier {
                Tier::Protect => 'p',
                Tier::Watch => 'w',
            };
            let Entry { hash, mode, size, .. } = entry;
            text.push_str(&format!("{hash} {tier} {mode:o} {size} {name}\n"));
        }
        let sum = encode_hex(&sha256(text.as_bytes()));
        text.push_str(&format!("sum {sum}\n"));
        text.into_bytes()
    }

    fn parse(bytes: &[u8]) -> Result<Self> {
        let damaged = |what: &str| IdentityError::damaged(format!("the baseline: {what}"));
        let text = str::from_utf8(bytes).map_err(|_| damaged("no text"))?;
        let body = text.strip_suffix('\n').and_then(|text| text.rfind('\n'));
        let (body, sum) = text.split_at(body.ok_or_else(|| damaged("too short"))? + 1);
        let sum = sum.strip_prefix("sum ").and_then(|sum| decode_hex(sum.trim_end().as_bytes()));
        if sum != Some(sha256(body.as_bytes())) {
            return Err(damaged("its sum is not right"));
        }
        let mut lines = body.lines();
        if lines.next() != Some(HEAD) {
            return Err(damaged("of another version"));
        }
        let entries: Option<Vec<(Name, Entry)>> = lines.map(parse_line).collect();
        let entries = entries.ok_or_else(|| damaged("a line is none"))?;
        if !entries.is_sorted_by(|one, other| one.0 < other.0) {
            return Err(damaged("not in order"));
        }
        Ok(Self { entries: entries.into_iter().collect() })
    }
}

fn parse_line(line: &str) -> Option<(Name, Entry)> {
    let mut words = line.splitn(5, ' ');
    let hash = BlobHash::from_hex(words.next()?)?;
    let tier = match words.next()? {
        "p" => Tier::Protect,
        "w" => Tier::Watch,
        _ => return None,
    };
    let mode = u32::from_str_radix(words.next()?, 8).ok().filter(|mode| *mode <= 0o777)?;
    let size = words.next()?.parse().ok()?;
    Some((Name::parse(words.next()?)?, Entry { tier, hash, mode, size }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(number: u8, tier: Tier) -> Entry {
        Entry { tier, hash: BlobHash([number; 32]), mode: 0o644, size: u64::from(number) }
    }

    fn sample() -> Baseline {
        let mut baseline = Baseline::default();
        for (name, tier) in [
            (&b"SOUL.md"[..], Tier::Protect),
            (b"a b\n", Tier::Watch),
            (b"\xff/ x", Tier::Protect),
            (b"-rf", Tier::Watch),
        ] {
            baseline.set(Name::new(name).unwrap(), Some(entry(name[0], tier)));
        }
        baseline
    }

    #[test]
    fn every_name_survives() {
        let baseline = sample();
        assert_eq!(Baseline::parse(&baseline.to_bytes()).unwrap(), baseline);
        assert_eq!(Baseline::parse(&Baseline::default().to_bytes()).unwrap(), Baseline::default());
    }

    #[test]
    fn every_damage_is_seen() {
        let bytes = sample().to_bytes();
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 1;
            assert!(Baseline::parse(&other).is_err(), "byte {at}");
            assert!(Baseline::parse(&bytes[..at]).is_err(), "cut at {at}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(Baseline::parse(&bytes).is_err());
        }
    }
}
