//! The Merkle tree of RFC 6962 over SHA-256: roots, inclusion proofs and consistency proofs.
//!
//! A proof binds leaves to a root. It does not bind the tree size on its own (several sizes share
//! one path shape), so sizes and roots must come together from a signed checkpoint.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use thiserror::Error;

const LEAF_PREFIX: [u8; 1] = [0];
const NODE_PREFIX: [u8; 1] = [1];
const HASH_BASE64_LENGTH: usize = 44;

/// The largest tree size a [`Frontier`] is restored to.
pub const MAX_TREE_SIZE: u64 = i64::MAX as u64;

/// A SHA-256 hash of a leaf, an inner node, or a whole tree.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreeHash(pub [u8; 32]);

impl TreeHash {
    /// The hash as 44 characters of standard, padded base64.
    pub fn to_base64(&self) -> String {
        STANDARD.encode(self.0)
    }

    /// Reads exactly what [`TreeHash::to_base64`] writes; any other spelling is refused.
    pub fn from_base64(text: &str) -> Result<Self, HashFormatError> {
        if text.len() != HASH_BASE64_LENGTH {
            return Err(HashFormatError);
        }
        let bytes = STANDARD.decode(text).map_err(|_| HashFormatError)?;
        bytes.try_into().map(TreeHash).map_err(|_| HashFormatError)
    }
}

impl fmt::Display for TreeHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.to_base64())
    }
}

impl fmt::Debug for TreeHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// A text that is not the base64 form of a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a hash must be 32 bytes written as 44 characters of standard padded base64")]
pub struct HashFormatError;

/// The hash of a leaf: SHA-256 over 0x00 and the leaf's bytes.
pub fn leaf_hash(data: &[u8]) -> TreeHash {
    TreeHash(Sha256::new().chain_update(LEAF_PREFIX).chain_update(data).finalize().into())
}

/// The hash of an inner node: SHA-256 over 0x01, the left child and the right child.
pub fn node_hash(left: &TreeHash, right: &TreeHash) -> TreeHash {
    let hasher = Sha256::new().chain_update(NODE_PREFIX);
    TreeHash(hasher.chain_update(left.0).chain_update(right.0).finalize().into())
}

/// The root of the tree without leaves: SHA-256 over nothing.
pub fn empty_root() -> TreeHash {
    TreeHash(Sha256::digest([]).into())
}

/// The right edge of a tree: enough to append and to give the root, in O(log n) space.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Frontier {
    size: u64,
    // INVARIANT: one root for each bit set in `size`, of the largest complete subtree first.
    nodes: Vec<TreeHash>,
}

impl Frontier {
    /// The frontier of the empty tree.
    pub fn new() -> Self {
        Self::default()
    }

    /// Restores a frontier from [`Frontier::size`] and [`Frontier::nodes`]; `None` when the number
    /// of nodes is not the number of bits set in `size`, or `size` is above [`MAX_TREE_SIZE`].
    pub fn from_parts(size: u64, nodes: Vec<TreeHash>) -> Option<Self> {
        let count_fits = u32::try_from(nodes.len()) == Ok(size.count_ones());
        (size <= MAX_TREE_SIZE && count_fits).then_some(Self { size, nodes })
    }

    /// Appends a leaf.
    pub fn push(&mut self, leaf: TreeHash) {
        let mut node = leaf;
        for _ in 0..self.size.trailing_ones() {
            if let Some(left) = self.nodes.pop() {
                node = node_hash(&left, &node);
            }
        }
        self.nodes.push(node);
        self.size += 1;
    }

    /// The number of leaves.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The root of the tree.
    pub fn root(&self) -> TreeHash {
        let folded =
            self.nodes.iter().rev().copied().reduce(|right, left| node_hash(&left, &right));
        folded.unwrap_or_else(empty_root)
    }

    /// The roots of the complete subtrees, the largest first.
    pub fn nodes(&self) -> &[TreeHash] {
        &self.nodes
    }
}

/// A tree with all its complete subtrees in memory, about 64 bytes for each leaf; gives roots and
/// proofs for every size it ever had.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    // INVARIANT: `levels[k][i]` covers the leaves from `i << k` to `(i + 1) << k`, and level k
    // holds `size >> k` hashes.
    levels: Vec<Vec<TreeHash>>,
}

impl Tree {
    /// The tree without leaves.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a leaf.
    pub fn push(&mut self, leaf: TreeHash) {
        let mut node = leaf;
        for level in &mut self.levels {
            level.push(node);
            match level.as_slice() {
                [.., left, right] if level.len().is_multiple_of(2) => node = node_hash(left, right),
                _ => return,
            }
        }
        self.levels.push(vec![node]);
    }

    /// The number of leaves.
    pub fn size(&self) -> u64 {
        self.levels.first().map_or(0, |leaves| leaves.len() as u64)
    }

    /// The root the tree had with `size` leaves; `None` when it never had that many.
    pub fn root_at(&self, size: u64) -> Option<TreeHash> {
        if size == 0 { Some(empty_root()) } else { self.subtree(0, size) }
    }

    /// The proof that leaf `index` is in the tree of `size` leaves, from the leaf upwards; `None`
    /// when there is no such leaf or no such size.
    pub fn inclusion(&self, index: u64, size: u64) -> Option<Vec<TreeHash>> {
        if index >= size || size > self.size() {
            return None;
        }
        let (mut begin, mut end) = (0, size);
        let mut path = Vec::new();
        while end - begin > 1 {
            let middle = begin + left_width(end - begin);
            if index < middle {
                path.push(self.subtree(middle, end)?);
                end = middle;
            } else {
                path.push(self.subtree(begin, middle)?);
                begin = middle;
            }
        }
        path.reverse();
        Some(path)
    }

    /// The proof that the tree of `new` leaves only appended to the tree of `old` leaves; empty
    /// when `old` is 0 or equal to `new`, `None` when the sizes are reversed or too large.
    pub fn consistency(&self, old: u64, new: u64) -> Option<Vec<TreeHash>> {
        if old > new || new > self.size() {
            return None;
        }
        let mut path = Vec::new();
        if old == 0 {
            return Some(path);
        }
        let (mut begin, mut end) = (0, new);
        while old != end {
            let middle = begin + left_width(end - begin);
            if old <= middle {
                path.push(self.subtree(middle, end)?);
                end = middle;
            } else {
                path.push(self.subtree(begin, middle)?);
                begin = middle;
            }
        }
        if begin != 0 {
            path.push(self.subtree(begin, end)?);
        }
        path.reverse();
        Some(path)
    }

    /// The root over the leaves from `begin` to `end`, which is not included.
    ///
    /// `begin` is a multiple of a power of two that is at least `end - begin`, as in every split
    /// RFC 6962 makes, so the range falls apart into complete subtrees.
    fn subtree(&self, begin: u64, end: u64) -> Option<TreeHash> {
        let width = end.checked_sub(begin)?;
        let mut position = end;
        let mut root = None;
        for (height, level) in self.levels.iter().enumerate() {
            if (width >> height) & 1 == 1 {
                position -= 1 << height;
                let left = level.get(usize::try_from(position >> height).ok()?)?;
                root = Some(root.map_or(*left, |right| node_hash(left, &right)));
            }
        }
        // A width with bits above the highest level reaches past the last leaf.
        if position == begin { root } else { None }
    }
}

/// The width of the left subtree of `width` leaves: the largest power of two below it.
fn left_width(width: u64) -> u64 {
    // INVARIANT: callers pass at least 2, so the logarithm is of at least 1.
    1 << (width - 1).ilog2()
}

/// Checks that `leaf` is number `index` of the tree of `size` leaves with root `root`.
pub fn verify_inclusion(
    leaf: &TreeHash,
    index: u64,
    size: u64,
    proof: &[TreeHash],
    root: &TreeHash,
) -> Result<(), ProofError> {
    if index >= size {
        return Err(ProofError::IndexOutside { index, size });
    }
    let mut path = Path { node: index, last: size - 1 };
    let mut computed = *leaf;
    for sibling in proof {
        computed = match path.climb()? {
            Side::Left => node_hash(sibling, &computed),
            Side::Right => node_hash(&computed, sibling),
        };
    }
    path.finish()?;
    if computed == *root { Ok(()) } else { Err(ProofError::RootDiffers) }
}

/// Checks that the tree of `new_size` leaves only appended to the tree of `old_size` leaves.
///
/// From the empty tree the proof must be empty and the old root that of the empty tree; between
/// equal sizes the proof must be empty and the roots equal.
pub fn verify_consistency(
    old_size: u64,
    old_root: &TreeHash,
    new_size: u64,
    new_root: &TreeHash,
    proof: &[TreeHash],
) -> Result<(), ProofError> {
    if old_size > new_size {
        return Err(ProofError::SizesReversed { old_size, new_size });
    }
    if old_size == 0 || old_size == new_size {
        return verify_trivial_consistency(old_size, old_root, new_size, new_root, proof);
    }
    let (start, rest) = if old_size.is_power_of_two() {
        (old_root, proof)
    } else {
        proof.split_first().ok_or(ProofError::TooShort)?
    };
    let complete = (old_size - 1).trailing_ones();
    let mut path = Path { node: (old_size - 1) >> complete, last: (new_size - 1) >> complete };
    let (mut old_computed, mut new_computed) = (*start, *start);
    for sibling in rest {
        match path.climb()? {
            Side::Left => {
                old_computed = node_hash(sibling, &old_computed);
                new_computed = node_hash(sibling, &new_computed);
            }
            Side::Right => new_computed = node_hash(&new_computed, sibling),
        }
    }
    path.finish()?;
    if old_computed != *old_root {
        return Err(ProofError::OldRootDiffers);
    }
    if new_computed == *new_root { Ok(()) } else { Err(ProofError::RootDiffers) }
}

fn verify_trivial_consistency(
    old_size: u64,
    old_root: &TreeHash,
    new_size: u64,
    new_root: &TreeHash,
    proof: &[TreeHash],
) -> Result<(), ProofError> {
    if !proof.is_empty() {
        return Err(ProofError::TooLong);
    }
    if old_size == 0 && *old_root != empty_root() {
        return Err(ProofError::OldRootDiffers);
    }
    if old_size == new_size && old_root != new_root {
        return Err(ProofError::RootDiffers);
    }
    Ok(())
}

/// Where a proof stands: the node it has reached and the last node of the same level.
struct Path {
    node: u64,
    last: u64,
}

/// On which side of the node reached the next sibling stands.
enum Side {
    Left,
    Right,
}

impl Path {
    fn climb(&mut self) -> Result<Side, ProofError> {
        if self.last == 0 {
            return Err(ProofError::TooLong);
        }
        let is_right_child = self.node & 1 == 1;
        let side = if is_right_child || self.node == self.last {
            // The last node of a level has no sibling until it becomes a right child.
            let without_sibling = if self.node == 0 { 0 } else { self.node.trailing_zeros() };
            self.node >>= without_sibling;
            self.last >>= without_sibling;
            Side::Left
        } else {
            Side::Right
        };
        self.node >>= 1;
        self.last >>= 1;
        Ok(side)
    }

    fn finish(&self) -> Result<(), ProofError> {
        if self.last == 0 { Ok(()) } else { Err(ProofError::TooShort) }
    }
}

/// Why a proof does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ProofError {
    /// The index is not below the tree size.
    #[error("leaf {index} is not in a tree of {size} leaves")]
    IndexOutside {
        /// The index asked for.
        index: u64,
        /// The size of the tree.
        size: u64,
    },
    /// The old tree is larger than the new one.
    #[error("the tree shrank from {old_size} to {new_size} leaves")]
    SizesReversed {
        /// The size that came first.
        old_size: u64,
        /// The size that came second.
        new_size: u64,
    },
    /// The proof has fewer hashes than the sizes ask for.
    #[error("the proof has too few hashes for this tree size; ask for a proof made for this size")]
    TooShort,
    /// The proof has more hashes than the sizes ask for.
    #[error("the proof has too many hashes for this tree size; ask for a proof made for this size")]
    TooLong,
    /// The proof leads to another old root.
    #[error(
        "the proof does not lead to the old root; the log was rewritten or the proof is damaged"
    )]
    OldRootDiffers,
    /// The proof leads to another root.
    #[error("the proof does not lead to the root; the log was rewritten or the proof is damaged")]
    RootDiffers,
}

#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "sizes in these tests are small")]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::*;

    const LEAVES: [&str; 8] = [
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    ];
    const ROOTS: [&str; 9] = [
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    ];
    const NODE_0: &str = ROOTS[1];
    const NODE_1: &str = "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7";
    const NODE_4: &str = "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b";
    const NODE_2_TO_3: &str = "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e";
    const NODE_4_TO_5: &str = "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a";
    const NODE_6_TO_7: &str = "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0";
    const NODE_4_TO_7: &str = "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4";

    static LARGE: LazyLock<Tree> = LazyLock::new(|| numbered_tree(3000));

    fn from_hex(text: &str) -> Vec<u8> {
        let digits = text.as_bytes().chunks(2);
        digits.map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
    }

    fn hash(text: &str) -> TreeHash {
        TreeHash(from_hex(text).try_into().unwrap())
    }

    fn numbered_leaf(number: u64) -> TreeHash {
        leaf_hash(&number.to_be_bytes())
    }

    fn numbered_tree(size: u64) -> Tree {
        let mut tree = Tree::new();
        (0..size).for_each(|number| tree.push(numbered_leaf(number)));
        tree
    }

    fn reference_tree() -> Tree {
        let mut tree = Tree::new();
        LEAVES.iter().for_each(|leaf| tree.push(leaf_hash(&from_hex(leaf))));
        tree
    }

    /// All the ways to damage a proof; none of them may verify.
    fn damaged(proof: &[TreeHash], bit: usize) -> Vec<Vec<TreeHash>> {
        let mut all = vec![[proof, &[empty_root()]].concat(), [&[empty_root()], proof].concat()];
        for position in 0..proof.len() {
            let mut flipped = proof.to_vec();
            flipped[position].0[bit / 8 % 32] ^= 1 << (bit % 8);
            all.push(flipped);
            let mut shorter = proof.to_vec();
            shorter.remove(position);
            all.push(shorter);
            let mut doubled = proof.to_vec();
            doubled.insert(position, proof[position]);
            all.push(doubled);
        }
        all
    }

    #[test]
    fn reference_roots() {
        let (tree, mut frontier) = (reference_tree(), Frontier::new());
        for (size, root) in ROOTS.iter().enumerate() {
            assert_eq!(tree.root_at(size as u64), Some(hash(root)));
            assert_eq!(frontier.root(), hash(root));
            if let Some(leaf) = LEAVES.get(size) {
                frontier.push(leaf_hash(&from_hex(leaf)));
            }
        }
        assert_eq!(tree.root_at(9), None);
    }

    #[test]
    fn reference_inclusion_proofs() {
        let tree = reference_tree();
        let cases: [(u64, u64, &[&str]); 5] = [
            (0, 1, &[]),
            (0, 8, &[NODE_1, NODE_2_TO_3, NODE_4_TO_7]),
            (5, 8, &[NODE_4, NODE_6_TO_7, ROOTS[4]]),
            (2, 3, &[ROOTS[2]]),
            (1, 5, &[NODE_0, NODE_2_TO_3, NODE_4]),
        ];
        for (index, size, path) in cases {
            let path: Vec<_> = path.iter().map(|node| hash(node)).collect();
            assert_eq!(tree.inclusion(index, size).as_deref(), Some(path.as_slice()));
            let leaf = leaf_hash(&from_hex(LEAVES[index as usize]));
            let root = hash(ROOTS[size as usize]);
            assert_eq!(verify_inclusion(&leaf, index, size, &path, &root), Ok(()));
        }
    }

    #[test]
    fn reference_consistency_proofs() {
        let tree = reference_tree();
        let cases: [(usize, usize, &[&str]); 4] = [
            (1, 1, &[]),
            (1, 8, &[NODE_1, NODE_2_TO_3, NODE_4_TO_7]),
            (6, 8, &[NODE_4_TO_5, NODE_6_TO_7, ROOTS[4]]),
            (2, 5, &[NODE_2_TO_3, NODE_4]),
        ];
        for (old, new, path) in cases {
            let path: Vec<_> = path.iter().map(|node| hash(node)).collect();
            assert_eq!(tree.consistency(old as u64, new as u64).as_deref(), Some(path.as_slice()));
            let (old_root, new_root) = (hash(ROOTS[old]), hash(ROOTS[new]));
            let result = verify_consistency(old as u64, &old_root, new as u64, &new_root, &path);
            assert_eq!(result, Ok(()));
        }
    }

    #[test]
    fn every_small_inclusion_proof_holds_and_no_damaged_one_does() {
        let tree = numbered_tree(64);
        for size in 1..=64 {
            let root = tree.root_at(size).unwrap();
            for index in 0..size {
                let (leaf, proof) = (numbered_leaf(index), tree.inclusion(index, size).unwrap());
                assert_eq!(verify_inclusion(&leaf, index, size, &proof, &root), Ok(()));
                for wrong in damaged(&proof, (index * 37 + size * 11) as usize) {
                    assert!(verify_inclusion(&leaf, index, size, &wrong, &root).is_err());
                }
                for other in (0..=65).filter(|other| *other != index) {
                    assert!(verify_inclusion(&leaf, other, size, &proof, &root).is_err());
                }
                for other in (0..=64).filter(|other| *other != size) {
                    let root = tree.root_at(other).unwrap();
                    assert!(verify_inclusion(&leaf, index, other, &proof, &root).is_err());
                }
                assert!(verify_inclusion(&empty_root(), index, size, &proof, &root).is_err());
            }
            assert_eq!(tree.inclusion(size, size), None);
        }
        assert_eq!(tree.inclusion(0, 65), None);
    }

    #[test]
    fn every_small_consistency_proof_holds_and_no_damaged_one_does() {
        let tree = numbered_tree(64);
        let roots: Vec<_> = (0..=64).map(|size| tree.root_at(size).unwrap()).collect();
        let verify = |old: u64, new: u64, proof: &[TreeHash]| {
            verify_consistency(old, &roots[old as usize], new, &roots[new as usize], proof)
        };
        for new in 0..=64 {
            for old in 0..=new {
                let proof = tree.consistency(old, new).unwrap();
                assert_eq!(verify(old, new, &proof), Ok(()));
                for wrong in damaged(&proof, (old * 37 + new * 11) as usize) {
                    assert!(verify(old, new, &wrong).is_err(), "{old} {new}");
                }
                for other in (1..=64).filter(|_| old != 0 && old != new) {
                    assert!(other == old || verify(other, new, &proof).is_err());
                    assert!(other == new || verify(old, other, &proof).is_err());
                }
                let other = numbered_leaf(99);
                let (old_root, new_root) = (&roots[old as usize], &roots[new as usize]);
                assert!(verify_consistency(old, &other, new, new_root, &proof).is_err());
                let result = verify_consistency(old, old_root, new, &other, &proof);
                assert_eq!(result.is_ok(), old == 0 && new != 0);
            }
            assert_eq!(tree.consistency(new + 1, new), None);
        }
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let tree = numbered_tree(13);
        let (root, leaf) = (tree.root_at(13).unwrap(), numbered_leaf(6));
        let proof = tree.inclusion(6, 13).unwrap();
        for wrong in (0..256).flat_map(|bit| damaged(&proof, bit)) {
            assert!(verify_inclusion(&leaf, 6, 13, &wrong, &root).is_err());
        }
    }

    #[test]
    fn frontier_agrees_with_tree_and_restores() {
        let mut frontier = Frontier::new();
        for size in 0..200 {
            assert_eq!((frontier.size(), Some(frontier.root())), (size, LARGE.root_at(size)));
            let restored = Frontier::from_parts(size, frontier.nodes().to_vec());
            assert_eq!(restored.as_ref(), Some(&frontier));
            let extra = [frontier.nodes(), &[empty_root()]].concat();
            assert_eq!(Frontier::from_parts(size, extra), None);
            frontier.push(numbered_leaf(size));
        }
        assert_eq!(Frontier::from_parts(u64::MAX, vec![empty_root(); 64]), None);
    }

    #[test]
    fn base64_is_strict() {
        let text = empty_root().to_base64();
        assert_eq!(text, "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
        assert_eq!(TreeHash::from_base64(&text), Ok(empty_root()));
        let loose_bits = text.replace("FU=", "FV=");
        let url_safe = text.replace('+', "-");
        for wrong in ["", &text[..43], &format!("{text}="), &loose_bits, &url_safe, &"é".repeat(22)]
        {
            assert_eq!(TreeHash::from_base64(wrong), Err(HashFormatError), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn large_proofs_hold(first in 0_u64..3000, second in 0_u64..3000, bit in 0_usize..256) {
            let (old, new) = (first.min(second) + 1, first.max(second) + 1);
            let (old_root, new_root) = (LARGE.root_at(old).unwrap(), LARGE.root_at(new).unwrap());
            let leaf = numbered_leaf(old - 1);
            let inclusion = LARGE.inclusion(old - 1, new).unwrap();
            prop_assert_eq!(verify_inclusion(&leaf, old - 1, new, &inclusion, &new_root), Ok(()));
            let consistency = LARGE.consistency(old, new).unwrap();
            prop_assert_eq!(verify_consistency(old, &old_root, new, &new_root, &consistency), Ok(()));
            for wrong in damaged(&inclusion, bit) {
                prop_assert!(verify_inclusion(&leaf, old - 1, new, &wrong, &new_root).is_err());
            }
            for wrong in damaged(&consistency, bit) {
                prop_assert!(verify_consistency(old, &old_root, new, &new_root, &wrong).is_err());
            }
        }

        #[test]
        fn hostile_sizes_never_panic(first: u64, second: u64, hashes in 0_usize..70) {
            let (root, proof) = (empty_root(), vec![empty_root(); hashes]);
            prop_assert!(verify_inclusion(&root, first, second, &proof, &root).is_err());
            let result = verify_consistency(first, &root, second, &root, &proof);
            prop_assert!(result.is_err() || first == 0 || first == second);
            prop_assert_eq!(LARGE.inclusion(first, second.max(3001)), None);
            prop_assert_eq!(LARGE.root_at(second.max(3001)), None);
        }
    }
}
