//! Start-up files and agents' settings of the home that are links: what they lead to may lie where a program writes.

use std::collections::{HashSet, VecDeque};
use std::ffi::OsStr;
use std::fs::DirEntry;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::held::joined;
use crate::names::{Guard, Names, folded};

/// Folders that are listed, those nearer to the home first.
const FOLDERS: usize = 64;
/// Most that is looked at in one of them.
const ENTRIES: usize = 4096;
/// Names that count have no more parts, but for what lies in a folder that counts whole.
const DEEPEST: usize = 3;

/// A folder that is to be listed.
struct Next {
    path: PathBuf,
    /// From the home on, which may be called anything.
    inside: Vec<u8>,
    depth: usize,
    guard: Option<Guard>,
}

/// Names in a home that are guarded and lead elsewhere, and how what they lead to is held. It is listed, as there are
/// far more names that may be there than are.
pub(super) fn links(home: &Path, names: &Names) -> Vec<(PathBuf, Guard)> {
    let first = Next { path: home.to_owned(), inside: b"home".to_vec(), depth: 0, guard: None };
    let mut left = VecDeque::from([first]);
    let mut found = Vec::new();
    let folders = names.folders();
    for _ in 0..FOLDERS {
        let Some(next) = left.pop_front() else { break };
        let Ok(entries) = next.path.read_dir() else { continue };
        for entry in entries.take(ENTRIES).flatten() {
            look(&next, &entry, (names, folders.as_ref()), &mut left, &mut found);
        }
    }
    found
}

fn look(
    above: &Next,
    entry: &DirEntry,
    (names, folders): (&Names, Option<&HashSet<Vec<u8>>>),
    left: &mut VecDeque<Next>,
    found: &mut Vec<(PathBuf, Guard)>,
) {
    let Ok(kind) = entry.file_type() else { return };
    if !kind.is_dir() && !kind.is_symlink() {
        return;
    }
    let name = entry.file_name();
    let guard = above.guard.or_else(|| names.of(&above.inside, name.as_bytes()));
    let inside = [above.inside.as_slice(), b"/", name.as_bytes()].concat();
    let goes_on = || folders.is_none_or(|known| known.contains(&folded(name.as_bytes())));
    let rest = || names.continued(&inside.split(|byte| *byte == b'/').collect::<Vec<_>>());
    let rest = if guard.is_none() && goes_on() { rest() } else { Vec::new() };
    if guard.is_none() && rest.is_empty() {
        return;
    }
    let path = above.path.join(&name);
    if kind.is_symlink() {
        found.extend(guard.map(|guard| (path.clone(), guard)));
        found.extend(rest.iter().map(|rest| (joined(&path, rest), Guard::ReadOnly)));
    }
    // What holds secrets is shown empty with all that is in it.
    if above.depth + 1 < DEEPEST && guard != Some(Guard::Masked) {
        left.push_back(Next { path, inside, depth: above.depth + 1, guard });
    }
}

/// How a path of the home that is the whole of what may be written is held: by the names that go on in it.
pub(super) fn within(home: &Path, path: &Path, names: &Names) -> Vec<PathBuf> {
    let Ok(inside) = path.strip_prefix(home) else { return Vec::new() };
    let parts = inside.iter().map(OsStr::as_bytes);
    let parts: Vec<&[u8]> = std::iter::once(&b"home"[..]).chain(parts).collect();
    names.continued(&parts).iter().map(|rest| joined(path, rest)).collect()
}
