//! Which files are the agent's durable memory, and how they are kept.
//!
//! By their place in the workspace, folded, and not by a bare name: another project's `MEMORY.md` is an
//! ordinary file. The path is real, every link resolved; whoever asks knows by device and inode besides
//! when a hard link leads to one of them.

use std::path::Path;

use wardkeep_detect::names::{fold_name, folded_components};

use crate::facts::Protection;

/// Memory in the root of the workspace.
pub const MEMORY_FILES: [&str; 7] =
    ["SOUL.md", "AGENTS.md", "TOOLS.md", "USER.md", "IDENTITY.md", "HEARTBEAT.md", "MEMORY.md"];
/// Everything below this folder is memory.
pub const MEMORY_FOLDER: &str = "memory";
/// Never written through a tool.
pub const DEFAULT_SEALED: [&str; 2] = ["LocalGPT.md", ".localgpt_manifest.json"];
/// Changed by staging and the owner's approval, unless the owner says otherwise.
pub const DEFAULT_PROTECT: [&str; 5] =
    ["soulguard.json", "SOUL.md", "AGENTS.md", "IDENTITY.md", "HEARTBEAT.md"];
/// Watched, unless the owner says otherwise.
pub const DEFAULT_WATCH: [&str; 2] = ["MEMORY.md", "memory/*.md"];

/// Whether a file is memory of this workspace.
///
/// ```
/// use std::path::Path;
/// use wardkeep_guard::memory::is_memory;
/// assert!(is_memory(Path::new("/w/memory.md"), Path::new("/w")));
/// assert!(!is_memory(Path::new("/w/vendor/x/MEMORY.md"), Path::new("/w")));
/// ```
#[must_use]
pub fn is_memory(path: &Path, workspace: &Path) -> bool {
    match inside(path, workspace).as_deref() {
        Some([name]) => is_one_of(&MEMORY_FILES, name),
        Some([folder, _, ..]) => folder == MEMORY_FOLDER,
        _ => false,
    }
}

/// Whether a change of this file or folder would change memory: a memory file itself, its folder, or
/// the workspace around it.
#[must_use]
pub fn holds_memory(path: &Path, workspace: &Path) -> bool {
    match inside(path, workspace).as_deref() {
        Some([]) => true,
        Some([name]) => name == MEMORY_FOLDER || is_one_of(&MEMORY_FILES, name),
        Some([folder, ..]) => folder == MEMORY_FOLDER,
        None => inside(workspace, path).is_some(),
    }
}

/// How a file is kept from being written as long as the owner has not chosen tiers.
#[must_use]
pub fn default_protection(path: &Path, workspace: &Path) -> Protection {
    match inside(path, workspace).as_deref() {
        Some([name]) if is_one_of(&DEFAULT_SEALED, name) => Protection::Sealed,
        Some([name]) if is_one_of(&DEFAULT_PROTECT, name) => Protection::Protected,
        Some([name]) if is_one_of(&DEFAULT_WATCH, name) => Protection::Watched,
        Some([folder, name]) if folder == MEMORY_FOLDER && name.ends_with(".md") => {
            Protection::Watched
        }
        _ => Protection::None,
    }
}

/// The folded components below the workspace.
fn inside(path: &Path, workspace: &Path) -> Option<Vec<String>> {
    let mut path = folded_components(path);
    let root = folded_components(workspace);
    path.starts_with(&root).then(|| path.split_off(root.len()))
}

fn is_one_of(names: &[&str], folded: &str) -> bool {
    names.iter().any(|name| fold_name(name) == folded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(path: &str) -> bool {
        is_memory(Path::new(path), Path::new("/w"))
    }

    #[test]
    fn every_spelling_in_the_workspace_is_memory() {
        for path in [
            "/w/MEMORY.md",
            "/w/memory.md",
            "/w/Memory.MD",
            "/w/ＭＥＭＯＲＹ.md",
            "/w/MEMORY.md.",
            "/w/MEMORY.md ",
            "/w/MEMO\u{200b}RY.md",
            "/w/MEMORY.md::$DATA",
            "/w/soul.md",
            "/w/SOUL.MD",
            "/w/memory/2026-11-15.md",
            "/w/Memory/x.md",
            "/w/ｍemory/a/b/c.json",
            "/w/memory/a",
        ] {
            assert!(memory(path), "{path}");
        }
    }

    #[test]
    fn a_bare_name_elsewhere_is_not() {
        for path in [
            "/w/sub/MEMORY.md",
            "/w/memory",
            "/w",
            "/",
            "/w2/MEMORY.md",
            "/MEMORY.md",
            "/w/memory.md.bak",
            "/w/docs/memory/x.md",
            "/w/memoryx/a.md",
            "/x/w/MEMORY.md",
            "/w/README.md",
        ] {
            assert!(!memory(path), "{path}");
        }
    }

    #[test]
    fn folders_hold_memory() {
        let holds = |path: &str| holds_memory(Path::new(path), Path::new("/a/w"));
        for path in
            ["/a/w", "/a", "/", "/a/w/MEMORY", "/a/w/memory", "/a/w/Memory.md", "/a/w/memory/x"]
        {
            assert!(holds(path), "{path}");
        }
        for path in ["/b", "/a/v", "/a/w/src", "/a/w/src/memory"] {
            assert!(!holds(path), "{path}");
        }
    }

    #[test]
    fn tiers_are_those_of_a_new_workspace() {
        for (path, protection) in [
            ("/w/LocalGPT.md", Protection::Sealed),
            ("/w/localgpt.MD", Protection::Sealed),
            ("/w/.localgpt_manifest.json", Protection::Sealed),
            ("/w/soulguard.json", Protection::Protected),
            ("/w/SOUL.md", Protection::Protected),
            ("/w/AGENTS.md", Protection::Protected),
            ("/w/IDENTITY.md", Protection::Protected),
            ("/w/HEARTBEAT.md", Protection::Protected),
            ("/w/ＳＯＵＬ.md", Protection::Protected),
            ("/w/MEMORY.md", Protection::Watched),
            ("/w/memory/day.MD", Protection::Watched),
            ("/w/memory/a/day.md", Protection::None),
            ("/w/TOOLS.md", Protection::None),
            ("/w/USER.md", Protection::None),
            ("/w/sub/SOUL.md", Protection::None),
            ("/v/SOUL.md", Protection::None),
        ] {
            assert_eq!(default_protection(Path::new(path), Path::new("/w")), protection, "{path}");
        }
    }
}
