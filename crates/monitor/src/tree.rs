//! The tree over a journal's entries, for proofs.

use std::io::Read as _;
use std::ops::ControlFlow;
use std::path::Path;

use wardkeep_evidence::merkle::{Tree, TreeHash};

use crate::files::open_plain;
use crate::journal::{Folder, JournalError, Position, entry_of, scan};
use crate::sealer::LEAVES;

/// The tree over the first `size` entries, if its root is `root`: from the cache of leaves, or
/// from the journal where the cache is missing or wrong. `None` if the journal has another root.
///
/// # Errors
/// When the journal cannot be read.
pub fn sealed_tree(
    state: &Path,
    folder: &Folder,
    size: u64,
    root: &TreeHash,
) -> Result<Option<Tree>, JournalError> {
    if let Some(tree) = cached(state, size).filter(|tree| tree.root_at(size) == Some(*root)) {
        return Ok(Some(tree));
    }
    let tree = whole_tree(folder, size)?;
    Ok((tree.root_at(size) == Some(*root)).then_some(tree))
}

/// The tree over the first `limit` entries, from the journal itself.
///
/// # Errors
/// When the journal cannot be read.
pub fn whole_tree(folder: &Folder, limit: u64) -> Result<Tree, JournalError> {
    let mut tree = Tree::new();
    scan(folder, Position::START, |_, line| {
        if tree.size() == limit {
            return ControlFlow::Break(());
        }
        if let Some(entry) = entry_of(line) {
            tree.push(entry.leaf());
        }
        ControlFlow::Continue(())
    })?;
    Ok(tree)
}

fn cached(state: &Path, size: u64) -> Option<Tree> {
    let file = open_plain(&state.join(LEAVES)).ok()?;
    let length = size.checked_mul(32)?;
    if file.metadata().ok()?.len() < length {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes).ok()?;
    let mut tree = Tree::new();
    for leaf in bytes.chunks_exact(32) {
        tree.push(TreeHash(leaf.try_into().ok()?));
    }
    (tree.size() == size).then_some(tree)
}
