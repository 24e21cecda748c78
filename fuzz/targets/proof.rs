//! Any text as an offline proof, and any bytes as proofs about a tree.

#![no_main]

use wardkeep_evidence::merkle::{
    Frontier, Tree, TreeHash, leaf_hash, verify_consistency, verify_inclusion,
};
use wardkeep_evidence::proof::TlogProof;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(text) = std::str::from_utf8(data)
        && let Ok(proof) = TlogProof::parse(text)
    {
        assert_eq!(proof.to_string(), text, "a proof is written as it was read");
        let _ = proof.verify(&leaf_hash(b"x"));
    }
    let Some((numbers, rest)) = data.split_first_chunk::<16>() else { return };
    let number = |at: usize| {
        let bytes: [u8; 8] = std::array::from_fn(|n| numbers[at + n]);
        u64::from_le_bytes(bytes)
    };
    let (small, large) = (number(0), number(8));
    let hashes: Vec<_> = rest
        .chunks(32)
        .map(|chunk| {
            let mut hash = [0; 32];
            hash[..chunk.len()].copy_from_slice(chunk);
            TreeHash(hash)
        })
        .collect();
    let root = hashes.first().copied().unwrap_or(leaf_hash(b""));
    // A proof that holds for a hash taken from it would be one found by chance.
    let _ = verify_inclusion(&leaf_hash(b"x"), small, large, &hashes, &root);
    let _ = verify_consistency(small, &root, large, &leaf_hash(b"x"), &hashes);
    if let Some(mut frontier) = Frontier::from_parts(small, hashes) {
        assert_eq!(frontier.size(), small);
        let _ = frontier.root();
        if small < u64::from(u32::MAX) {
            frontier.push(root);
            assert_eq!(frontier.size(), small + 1);
        }
    }

    // A real tree of the bytes: its proofs hold, for their own leaf and size only.
    let leaves: Vec<_> = rest.iter().take(40).map(|byte| leaf_hash(&[*byte])).collect();
    if leaves.is_empty() {
        return;
    }
    let (mut tree, mut frontier) = (Tree::new(), Frontier::new());
    for leaf in &leaves {
        tree.push(*leaf);
        frontier.push(*leaf);
    }
    let size = leaves.len() as u64;
    let root = tree.root_at(size).expect("its own size");
    assert_eq!(frontier.root(), root);
    let index = small % size;
    let proof = tree.inclusion(index, size).expect("inside");
    let leaf = &leaves[usize::try_from(index).expect("small")];
    verify_inclusion(leaf, index, size, &proof, &root).expect("holds");
    let other = large % size;
    if leaves[usize::try_from(other).expect("small")] != *leaf {
        let leaf = &leaves[usize::try_from(other).expect("small")];
        assert!(verify_inclusion(leaf, index, size, &proof, &root).is_err());
    }
    let old = large % (size + 1);
    let old_root = tree.root_at(old).expect("smaller");
    let proof = tree.consistency(old, size).expect("smaller");
    verify_consistency(old, &old_root, size, &root, &proof).expect("holds");
});
