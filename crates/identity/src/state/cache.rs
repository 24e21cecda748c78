//! What files hashed to when they looked like this, so that they need not be read again.

use rustix::fs::fstatfs;
use wardkeep_evidence::hash::{BlobHash, sha256};

use crate::name::Name;
use crate::store::Store;
use crate::tree::{Look, Root};

const HEAD: &[u8; 8] = b"wkcache1";
const MAX_CACHE: u64 = 1 << 30;
const FIXED: usize = 5 * 8 + 32 + 2;
/// A file changed so recently may change again without a new time.
const RACY: i64 = 50_000_000;
/// A page that was written through a mapping is cleaned within this time; until then it can be
/// written again without a new time.
const DIRTY: i64 = 120_000_000_000;
/// File systems on which a write through a mapping sets the times.
const TELLING: [u64; 4] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010];

/// Names with their hashes, in order.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    entries: Vec<(Name, Cached)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cached {
    look: [u64; 5],
    pub(crate) hash: BlobHash,
}

impl Cached {
    pub(crate) fn new(look: &Look, hash: BlobHash) -> Self {
        Self { look: key(look), hash }
    }
}

fn key(look: &Look) -> [u64; 5] {
    [look.id.0, look.id.1, look.size, look.mtime.cast_unsigned(), look.ctime.cast_unsigned()]
}

impl Cache {
    /// One that cannot be read is empty.
    pub(crate) fn read(store: &Store, file: &str) -> Self {
        let bytes = store.read(file, MAX_CACHE).ok().flatten().unwrap_or_default();
        Self::parse(&bytes).unwrap_or_default()
    }

    pub(crate) fn write(store: &Store, file: &str, entries: Vec<(Name, Cached)>) {
        // Whoever looks without rights to write has no cache.
        let _ = store.write_cache(file, &Self { entries }.to_bytes());
    }

    pub(crate) fn hash(&self, name: &Name, look: &Look) -> Option<BlobHash> {
        let at = self.entries.binary_search_by(|(other, _)| other.cmp(name)).ok()?;
        let (_, cached) = self.entries.get(at)?;
        (cached.look == key(look)).then_some(cached.hash)
    }

    /// Whether exactly this is remembered.
    pub(crate) fn is(&self, name: &Name, cached: &Cached) -> bool {
        let at = self.entries.binary_search_by(|(other, _)| other.cmp(name)).ok();
        at.and_then(|at| self.entries.get(at)).is_some_and(|(_, other)| other == cached)
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (body, sum) = bytes.split_last_chunk::<32>()?;
        if sha256(body) != *sum {
            return None;
        }
        let mut rest = body.strip_prefix(HEAD)?;
        let mut entries = Vec::with_capacity(rest.len() / (FIXED + 24));
        while !rest.is_empty() {
            let (fixed, after) = rest.split_at_checked(FIXED)?;
            let (numbers, fixed) = fixed.split_at(40);
            let (hash, length) = fixed.split_at(32);
            let length = usize::from(u16::from_le_bytes(length.try_into().ok()?));
            let (name, after) = after.split_at_checked(length)?;
            rest = after;
            let mut look = [0u64; 5];
            for (number, bytes) in look.iter_mut().zip(numbers.chunks_exact(8)) {
                *number = u64::from_le_bytes(bytes.try_into().ok()?);
            }
            let hash = BlobHash(hash.try_into().ok()?);
            entries.push((Name::new(name)?, Cached { look, hash }));
        }
        entries.is_sorted_by(|one, other| one.0 < other.0).then_some(Self { entries })
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = HEAD.to_vec();
        bytes.reserve(self.entries.len() * (FIXED + 32));
        for (name, cached) in &self.entries {
            for number in cached.look {
                bytes.extend_from_slice(&number.to_le_bytes());
            }
            bytes.extend_from_slice(&cached.hash.0);
            let length = u16::try_from(name.as_bytes().len()).unwrap_or(u16::MAX);
            bytes.extend_from_slice(&length.to_le_bytes());
            bytes.extend_from_slice(name.as_bytes());
        }
        let sum = sha256(&bytes);
        bytes.extend_from_slice(&sum);
        bytes
    }
}

/// Which files may be remembered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trust {
    now: i64,
    /// Nobody but the guardian writes them.
    owned: bool,
    telling: bool,
    flushed: bool,
}

impl Trust {
    pub(crate) fn new(root: &Root, owned: bool, now: i64) -> Self {
        let kind = fstatfs(root.handle()).map(|system| system.f_type.cast_unsigned());
        let telling = kind.is_ok_and(|kind| TELLING.contains(&kind));
        Self { now, owned, telling, flushed: false }
    }

    /// Cleans the pages of files that are about to be read, if so many are young that it pays.
    pub(crate) fn flush<'a>(&mut self, root: &Root, looks: impl Iterator<Item = &'a Look>) {
        const PAYS: usize = 64;
        let young = |look: &&Look| look.ctime > self.now.saturating_sub(DIRTY);
        if !self.owned && self.telling && looks.filter(young).nth(PAYS).is_some() {
            self.flushed = rustix::fs::syncfs(root.handle()).is_ok();
        }
    }

    pub(crate) fn allows(&self, look: &Look) -> bool {
        let older = |than: i64| look.ctime < self.now.saturating_sub(than);
        older(RACY) && (self.owned || (self.telling && (self.flushed || older(DIRTY))))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tree::Kind;

    fn look(number: u64) -> Look {
        Look {
            kind: Kind::File,
            id: (number, 2),
            size: 3,
            mode: 0o644,
            uid: 0,
            gid: 0,
            links: 1,
            mtime: -4,
            ctime: 5,
        }
    }

    #[test]
    fn what_is_written_is_read_and_damage_is_seen() {
        let name = |bytes: &[u8]| Name::new(bytes).unwrap();
        let entries = vec![
            (name(b"a\xff"), Cached::new(&look(1), BlobHash([1; 32]))),
            (name(b"b"), Cached::new(&look(2), BlobHash([2; 32]))),
        ];
        let bytes = Cache { entries }.to_bytes();
        let cache = Cache::parse(&bytes).unwrap();
        assert_eq!(cache.hash(&name(b"b"), &look(2)), Some(BlobHash([2; 32])));
        assert_eq!(cache.hash(&name(b"b"), &look(1)), None);
        assert_eq!(cache.hash(&name(b"c"), &look(2)), None);
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 1;
            assert!(Cache::parse(&other).is_none());
            assert!(Cache::parse(&bytes[..at]).is_none());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(mut bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Cache::parse(&bytes);
            let mut whole = HEAD.to_vec();
            whole.append(&mut bytes);
            let sum = sha256(&whole);
            whole.extend_from_slice(&sum);
            let _ = Cache::parse(&whole);
        }
    }
}
