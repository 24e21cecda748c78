//! Folders as git keeps them: found, and rebuilt only where something changed.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use gix_hash::{Kind as Hash, ObjectId};
use gix_object::tree::{Entry, EntryKind};
use gix_object::{Kind, Tree, TreeRef, WriteTo as _};

use super::store::{Batch, Store};
use super::{Damage, HistoryError, damaged};
use crate::name::Name;

/// How deep a file may lie.
pub(super) const MAX_DEPTH: usize = 256;
/// Largest folder that is read, in bytes.
const MAX_TREE: usize = 128 << 20;

/// A file in a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Leaf {
    pub(super) id: ObjectId,
    pub(super) is_executable: bool,
}

/// The entries of a folder by name.
type Entries = BTreeMap<Vec<u8>, Entry>;

/// The folders in which a path lies, the deepest first, the workspace itself (the empty path) last.
pub(super) fn folders_of(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::successors(Some(path), |path| (!path.is_empty()).then(|| folder_of(path))).skip(1)
}

fn folder_of(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
    &path[..end]
}

fn leaf_of(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

/// The tree that results from changes. A folder that cannot be read counts as empty, and is named in
/// `damage`.
pub(super) fn edit(
    store: &Store,
    batch: &mut Batch<'_>,
    old: Option<ObjectId>,
    leaves: &BTreeMap<&[u8], Option<Leaf>>,
    damage: &mut Vec<Damage>,
) -> Result<ObjectId, HistoryError> {
    let mut folders = read_folders(store, old, leaves, damage)?;
    for (path, leaf) in leaves {
        let Some(entries) = folders.get_mut(folder_of(path)) else { continue };
        let name = leaf_of(path);
        match leaf {
            Some(leaf) => {
                entries.insert(name.to_vec(), entry(name, leaf.id, kind_of(*leaf)));
            }
            None => {
                if entries.get(name).is_some_and(|entry| !entry.mode.is_tree()) {
                    entries.remove(name);
                }
            }
        }
    }
    // The deepest first: what they become is an entry of the one above.
    let mut paths: Vec<&[u8]> = folders.keys().copied().filter(|path| !path.is_empty()).collect();
    paths.sort_by_key(|path| Reverse(path.iter().filter(|byte| **byte == b'/').count()));
    for path in paths {
        let Some(inner) = folders.remove(path) else { continue };
        // Where a file took the folder's place nothing of the folder is left.
        if leaves.get(path).is_some_and(Option::is_some) {
            continue;
        }
        let tree = if inner.is_empty() { None } else { Some(write(batch, inner)?) };
        let Some(entries) = folders.get_mut(folder_of(path)) else { continue };
        let name = leaf_of(path);
        match tree {
            Some(id) => {
                entries.insert(name.to_vec(), entry(name, id, EntryKind::Tree));
            }
            None => {
                if entries.get(name).is_some_and(|entry| entry.mode.is_tree()) {
                    entries.remove(name);
                }
            }
        }
    }
    write(batch, folders.remove(&b""[..]).unwrap_or_default())
}

/// Every folder on the way to a change, as it was.
fn read_folders<'a>(
    store: &Store,
    old: Option<ObjectId>,
    leaves: &BTreeMap<&'a [u8], Option<Leaf>>,
    damage: &mut Vec<Damage>,
) -> Result<BTreeMap<&'a [u8], Entries>, HistoryError> {
    let mut folders: BTreeMap<&[u8], Entries> = BTreeMap::new();
    folders.insert(b"", Entries::new());
    for path in leaves.keys().copied() {
        for folder in folders_of(path) {
            folders.entry(folder).or_default();
        }
    }
    let paths: Vec<&[u8]> = folders.keys().copied().collect();
    // A folder sorts before what is in it, so that what it is in has been read.
    for path in paths {
        let id = if path.is_empty() {
            old
        } else {
            let entry = folders.get(folder_of(path)).and_then(|above| above.get(leaf_of(path)));
            entry.filter(|entry| entry.mode.is_tree()).map(|entry| entry.oid)
        };
        let Some(id) = id else { continue };
        match read(store, id) {
            Ok(entries) => {
                folders.insert(path, entries);
            }
            Err(HistoryError::Damaged(found)) => damage.push(found),
            Err(error) => return Err(error),
        }
    }
    Ok(folders)
}

fn entry(name: &[u8], oid: ObjectId, kind: EntryKind) -> Entry {
    Entry { mode: kind.into(), filename: name.into(), oid }
}

fn kind_of(leaf: Leaf) -> EntryKind {
    if leaf.is_executable { EntryKind::BlobExecutable } else { EntryKind::Blob }
}

fn write(batch: &mut Batch<'_>, entries: Entries) -> Result<ObjectId, HistoryError> {
    let mut tree = Tree { entries: entries.into_values().collect() };
    // By git's order, in which a folder's name ends with a slash.
    tree.entries.sort();
    let mut bytes = Vec::new();
    tree.write_to(&mut bytes).map_err(|source| HistoryError::Io {
        action: "write",
        path: "a folder".into(),
        source,
    })?;
    batch.put(Kind::Tree, &bytes)
}

fn read(store: &Store, id: ObjectId) -> Result<Entries, HistoryError> {
    let bytes = store.read(id, Kind::Tree, MAX_TREE)?;
    let tree = TreeRef::from_bytes(&bytes, Hash::Sha256).map_err(|_| damaged(id))?;
    let owned = |entry: gix_object::tree::EntryRef<'_>| (entry.filename.to_vec(), entry.into());
    Ok(tree.entries.into_iter().map(owned).collect())
}

/// One file, looked for in tree after tree: folders that are the same again are not read again.
#[derive(Debug)]
pub(super) struct Files<'a> {
    store: &'a Store,
    parts: Vec<&'a [u8]>,
    /// At each depth the last folder, and what the next part of the path was in it.
    last: Vec<(ObjectId, Option<(EntryKind, ObjectId)>)>,
}

impl<'a> Files<'a> {
    pub(super) fn new(store: &'a Store, file: &'a Name) -> Self {
        Self { store, parts: file.components().collect(), last: Vec::new() }
    }

    /// The file in a tree; `None` where it is not there, or not as a file.
    pub(super) fn find(&mut self, tree: ObjectId) -> Result<Option<Leaf>, HistoryError> {
        if self.parts.len() > MAX_DEPTH {
            return Ok(None);
        }
        let mut at = tree;
        for (depth, part) in self.parts.iter().enumerate() {
            let found = match self.last.get(depth) {
                Some((last, found)) if *last == at => *found,
                _ => {
                    let found = self.look(at, part)?;
                    self.last.truncate(depth);
                    self.last.push((at, found));
                    found
                }
            };
            let is_last = depth + 1 == self.parts.len();
            match found {
                Some((EntryKind::Tree, id)) if !is_last => at = id,
                Some((kind @ (EntryKind::Blob | EntryKind::BlobExecutable), id)) if is_last => {
                    let is_executable = kind == EntryKind::BlobExecutable;
                    return Ok(Some(Leaf { id, is_executable }));
                }
                _ => return Ok(None),
            }
        }
        Ok(None)
    }

    fn look(
        &self,
        tree: ObjectId,
        part: &[u8],
    ) -> Result<Option<(EntryKind, ObjectId)>, HistoryError> {
        let bytes = self.store.read(tree, Kind::Tree, MAX_TREE)?;
        for entry in gix_object::TreeRefIter::from_bytes(&bytes, Hash::Sha256) {
            let entry = entry.map_err(|_| damaged(tree))?;
            if entry.filename == part {
                return Ok(Some((entry.mode.kind(), entry.oid.to_owned())));
            }
        }
        Ok(None)
    }
}
