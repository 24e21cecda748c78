//! The ids of all records, in about 45 bytes a record.

use std::hash::{BuildHasher as _, RandomState};

use hashbrown::HashTable;

use crate::hash::RecordId;

const BLOCK: usize = 4096;

/// Record ids in file order, found by value.
#[derive(Debug, Default)]
pub struct Ids {
    // Blocks instead of one vector, so that growing never holds two copies.
    blocks: Vec<Vec<RecordId>>,
    // Positions by hash.
    table: HashTable<u32>,
    key: Key,
    count: u32,
}

/// A random key for the table, since hostile bundles choose their ids.
#[derive(Debug)]
struct Key([u64; 4]);

impl Default for Key {
    fn default() -> Self {
        // The standard library's own random keys, by way of what it hashes with them.
        let random = RandomState::new();
        Self([0u64, 1, 2, 3].map(|number| random.hash_one(number)))
    }
}

impl Key {
    /// Two folded multiplications, each with both sides masked: who does not know the key cannot
    /// aim at a place in the table. A growing table hashes every id again, so this must be fast.
    fn hash(&self, id: &RecordId) -> u64 {
        let mut words = [0u64; 4];
        for ((word, bytes), key) in words.iter_mut().zip(id.0.chunks_exact(8)).zip(self.0) {
            *word = u64::from_le_bytes(bytes.try_into().unwrap_or_default()) ^ key;
        }
        let [a, b, c, d] = words;
        fold(a, b) ^ fold(c, d).rotate_left(32)
    }
}

fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    let [low, high] = [product & u128::from(u64::MAX), product >> 64];
    u64::try_from(low ^ high).unwrap_or_default()
}

impl Ids {
    /// Whether there are no positions.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Number of positions.
    #[must_use]
    pub fn len(&self) -> u64 {
        u64::from(self.count)
    }

    /// Takes the next position for `id`; gives the earlier one if it stood there before.
    ///
    /// # Errors
    /// When there is no room for more.
    pub fn push(&mut self, id: RecordId, findable: bool) -> Result<Option<u64>, TooMany> {
        let position = self.count;
        self.count = position.checked_add(1).ok_or(TooMany)?;
        if self.blocks.last().is_none_or(|block| block.len() == BLOCK) {
            self.blocks.push(Vec::with_capacity(BLOCK));
        }
        if let Some(block) = self.blocks.last_mut() {
            block.push(id);
        }
        if !findable {
            return Ok(None);
        }
        if let Some(earlier) = self.position(&id) {
            return Ok(Some(earlier));
        }
        let Self { blocks, table, key, .. } = self;
        table.insert_unique(key.hash(&id), position, |&at| {
            key.hash(&in_blocks(blocks, at).unwrap_or(RecordId::ZERO))
        });
        Ok(None)
    }

    /// The first position of `id`.
    #[must_use]
    pub fn position(&self, id: &RecordId) -> Option<u64> {
        let found = self.table.find(self.key.hash(id), |&at| {
            in_blocks(&self.blocks, at).is_some_and(|stored| stored == *id)
        });
        found.map(|&at| u64::from(at))
    }

    /// The id at a position.
    #[must_use]
    pub fn at(&self, position: u64) -> Option<RecordId> {
        in_blocks(&self.blocks, u32::try_from(position).ok()?)
    }
}

/// More than 2^32 records.
#[derive(Debug, Clone, Copy)]
pub struct TooMany;

fn in_blocks(blocks: &[Vec<RecordId>], position: u32) -> Option<RecordId> {
    let position = position as usize;
    blocks.get(position / BLOCK)?.get(position % BLOCK).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_first_of_equal_ids() {
        let mut ids = Ids::default();
        for n in 0..10_000u32 {
            let mut id = [0; 32];
            id[..4].copy_from_slice(&(n % 5000).to_le_bytes());
            let earlier = ids.push(RecordId(id), true).unwrap();
            assert_eq!(earlier, (n >= 5000).then(|| u64::from(n) - 5000));
        }
        assert_eq!(ids.len(), 10_000);
        assert_eq!(ids.position(&RecordId([9; 32])), None);
        assert_eq!(ids.at(4999), ids.at(9999));
    }
}
