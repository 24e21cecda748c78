//! Names of files as file systems compare them that do not tell cases apart.

use std::path::{Component, Path};

use unicode_normalization::UnicodeNormalization as _;

/// A name in the form in which two names are one file for some file system: compatibility forms
/// and case folded, invisible characters gone, without trailing dots and spaces, without the name
/// of a stream.
///
/// ```
/// use wardkeep_detect::names::fold_name;
/// for name in ["LocalGPT.md", "LOCALGPT.MD", "ｌocalgpt.md", "LocalGPT.md. .", "LocalGPT.md::$DATA"] {
///     assert_eq!(fold_name(name), "localgpt.md");
/// }
/// ```
#[must_use]
pub fn fold_name(name: &str) -> String {
    let folded = if name.is_ascii() { name.to_ascii_lowercase() } else { fold_signs(name) };
    let stem = folded.split(':').next().unwrap_or_default();
    let trimmed = stem.trim_end_matches(['.', ' ']);
    // A name of nothing but dots and spaces is left as it is.
    if trimmed.is_empty() { folded } else { trimmed.to_owned() }
}

fn fold_signs(name: &str) -> String {
    let visible = |sign: &char| !is_ignored(*sign);
    let folded: String =
        name.nfkc().filter(visible).flat_map(char::to_lowercase).collect::<String>();
    folded.nfkc().filter(visible).collect()
}

/// The components of an absolute path, folded.
#[must_use]
pub fn folded_components(path: &Path) -> Vec<String> {
    path.components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(fold_name(&name.to_string_lossy())),
            _ => None,
        })
        .collect()
}

/// Characters that some file systems leave out of a comparison.
fn is_ignored(sign: char) -> bool {
    matches!(
        sign,
        '\u{ad}'
            | '\u{34f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fold() {
        for (name, folded) in [
            ("SOUL.md", "soul.md"),
            ("Soul\u{200d}.md", "soul.md"),
            ("ſoul.md", "soul.md"),
            ("\u{212a}eep", "keep"),
            ("a.md...", "a.md"),
            ("a.md ", "a.md"),
            ("e\u{301}", "é"),
            ("...", "..."),
            (" ", " "),
            ("", ""),
        ] {
            assert_eq!(fold_name(name), folded, "{name:?}");
            assert_eq!(fold_name(&fold_name(name)), fold_name(name));
        }
        for name in ["SOUL.md", "a B", "~$x", ""] {
            assert_eq!(fold_signs(name), name.to_ascii_lowercase());
        }
        assert_ne!(fold_name("SOUL.md.bak"), "soul.md");
        assert_ne!(fold_name(" SOUL.md"), "soul.md");
    }
}
