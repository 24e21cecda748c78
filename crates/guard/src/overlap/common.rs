//! Words that everybody repeats.

use std::collections::HashSet;
use std::hash::BuildHasherDefault;
use std::sync::LazyLock;

use super::Spread;
use super::words::{shingles, words};

/// Notices that licences ask to be repeated, and texts that fill a page or try a typeface.
const TEXTS: &[&str] = &[
    include_str!("common/notices.txt"),
    "The quick brown fox jumps over the lazy dog.",
    "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore et dolore \
     magna aliqua. Ut enim ad minim veniam, quis nostrud exercitation ullamco laboris nisi ut aliquip ex ea commodo \
     consequat. Duis aute irure dolor in reprehenderit in voluptate velit esse cillum dolore eu fugiat nulla pariatur. \
     Excepteur sint occaecat cupidatat non proident, sunt in culpa qui officia deserunt mollit anim id est laborum.",
];

/// Made once of constants, and the same for everybody.
static SHINGLES: LazyLock<HashSet<u64, BuildHasherDefault<Spread>>> = LazyLock::new(|| {
    TEXTS.iter().flat_map(|text| shingles(&words(text)).collect::<Vec<_>>()).collect()
});

/// Whether a group of words stands in such a text.
pub(super) fn is_common(shingle: u64) -> bool {
    SHINGLES.contains(&shingle)
}
