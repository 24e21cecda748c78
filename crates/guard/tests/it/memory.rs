//! Durable memory, as the reference got it wrong.

use std::path::Path;

use wardkeep_guard::memory::is_memory;

/// Row 28: the reference compares basenames case by case, so that a write to `/w/memory.md` passes.
#[test]
fn row_28_memory_in_another_case_is_memory() {
    let memory = |path: &str| is_memory(Path::new(path), Path::new("/w"));
    assert!(memory("/w/memory.md"));
    assert!(memory("/w/Soul.MD"));
    assert!(memory("/w/memory/notes.md"));
    // Nor does a bare name make another project's file ours.
    assert!(!memory("/w/other/MEMORY.md"));
    assert!(!memory("/elsewhere/MEMORY.md"));
}
