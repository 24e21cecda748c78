//! Globs in a command: which protected files the shell would put in their place.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};

use wardkeep_detect::effects::{Effect, FOUND};
use wardkeep_detect::shell::{Word, pattern_matches};

use super::super::facts::FileKind;
use super::super::set::Operation;
use super::{Judge, STATE_NAMES};

/// A glob: the directory in front of it as a text, and the components from the first that has a
/// sign of a glob.
#[derive(Debug, PartialEq, Eq)]
struct Glob {
    directory: String,
    components: Vec<String>,
    /// Whether a sign of a glob stands for a dot at the beginning of a name, too.
    dots: bool,
}

impl Glob {
    fn of(word: &Word) -> Self {
        let parts: Vec<&str> = word.pattern.split('/').collect();
        let first = parts.iter().position(|part| has_sign(part)).unwrap_or(parts.len() - 1);
        let mut directory: Vec<String> = parts[..first].iter().map(|part| plain(part)).collect();
        if word.pattern.starts_with('/') && directory.len() == 1 {
            directory.push(String::new());
        }
        let components = parts[first..]
            .iter()
            .filter(|part| !part.is_empty() && **part != ".")
            .map(|part| part.to_lowercase())
            .collect();
        Self { directory: directory.join("/"), components, dots: word.raw.contains(FOUND) }
    }

    /// How a path below the directory fits.
    fn fits(&self, below: &Path) -> Option<Depth> {
        let names: Vec<String> =
            below.iter().map(|name| name.to_string_lossy().to_lowercase()).collect();
        if self.components.is_empty() {
            return None;
        }
        let fit = self.components.iter().zip(&names).all(|(pattern, name)| {
            let hidden = name.starts_with('.') && !pattern.starts_with('.');
            (self.dots || !hidden) && pattern_matches(pattern, name)
        });
        // A search finds at any depth.
        let deep = self.dots
            && names.last().zip(self.components.last()).is_some_and(|(name, pattern)| {
                self.components.len() > 1 && pattern_matches(pattern, name)
            });
        match (fit, self.components.len().cmp(&names.len())) {
            (true, Ordering::Equal) => Some(Depth::Itself),
            (true, Ordering::Less) => Some(Depth::Below),
            (true, Ordering::Greater) if !names.is_empty() => Some(Depth::Above),
            _ if deep => Some(Depth::Itself),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// It is meant.
    Itself,
    /// It lies below what is meant.
    Below,
    /// What is meant lies below it.
    Above,
}

fn has_sign(part: &str) -> bool {
    let mut escaped = false;
    part.chars().any(|sign| {
        let active = !escaped && matches!(sign, '*' | '?' | '[');
        escaped = !escaped && sign == '\\';
        active
    })
}

/// A component without signs, its escapes undone.
fn plain(part: &str) -> String {
    let mut out = String::with_capacity(part.len());
    let mut signs = part.chars();
    while let Some(sign) = signs.next() {
        out.push(if sign == '\\' { signs.next().unwrap_or('\\') } else { sign });
    }
    out
}

impl Judge<'_, '_> {
    /// A glob: what exists and fits is meant.
    pub(super) fn glob(
        &mut self,
        effect: &Effect,
        operation: Operation,
        word: &Word,
        here: Option<&Path>,
    ) {
        let glob = Glob::of(word);
        let Some((root, path)) = self.glob_directory(&glob, here) else {
            return self.computed(effect, operation, &Word { text: None, ..word.clone() }, here);
        };
        self.touch(operation, path.clone(), &glob.components);
        // All that lies in a protected directory is protected.
        self.judge_below(effect, operation, &root, &glob);
        self.search(effect, &path, &glob);
        let protected: Vec<PathBuf> = self.set.paths().map(|(path, ..)| path).collect();
        for protected in protected {
            let Ok(below) = protected.strip_prefix(&path) else { continue };
            match glob.fits(below) {
                Some(Depth::Itself) => self.judge_existing(effect, operation, &protected),
                Some(Depth::Below) => {
                    // The directory that the glob names holds something protected.
                    let depth = glob.components.len();
                    let holder: PathBuf = path.join(below.iter().take(depth).collect::<PathBuf>());
                    self.judge_existing(effect, operation, &holder);
                }
                Some(Depth::Above) => {
                    // Any name stands for all that lie in a protected directory.
                    let inside = protected.join("x").to_string_lossy().into_owned();
                    self.judge_directory(effect, operation, &protected, &inside);
                }
                None => {}
            }
        }
    }

    /// A search that reaches into the state directory.
    fn search(&mut self, effect: &Effect, from: &Path, glob: &Glob) {
        let Some(pattern) = glob.components.last().filter(|_| glob.dots) else { return };
        if !self.set.state().starts_with(from) || self.set.state() == from {
            return;
        }
        let state = self.set.state().to_path_buf();
        if let Some(name) = STATE_NAMES.iter().find(|name| pattern_matches(pattern, name)) {
            let path = state.join(name).to_string_lossy().into_owned();
            self.judge(effect, Operation::Read, Path::new("/"), &path);
        }
    }

    fn judge_directory(&mut self, effect: &Effect, operation: Operation, path: &Path, name: &str) {
        let there = self.resolve(Path::new("/"), &path.to_string_lossy(), true);
        if there.is_ok_and(|there| there.literal.kind == FileKind::Directory) {
            self.judge(effect, operation, Path::new("/"), name);
        }
    }

    /// Files that a glob names are put into a directory under their own names.
    pub(super) fn glob_into_directory(
        &mut self,
        effect: &Effect,
        operation: Operation,
        directory: &Path,
        source: &Word,
        base: &Path,
    ) {
        if source.text.is_none() {
            return self.computed(effect, operation, source, Some(directory));
        }
        let glob = Glob::of(source);
        let Some((_, from)) = self.glob_directory(&glob, Some(base)) else { return };
        let protected: Vec<PathBuf> = self.set.paths().map(|(path, ..)| path).collect();
        for path in protected {
            let Ok(below) = path.strip_prefix(directory) else { continue };
            let Some(name) = below.iter().next().map(|name| name.to_string_lossy().to_lowercase())
            else {
                continue;
            };
            let hidden = name.starts_with('.') && !glob.dots;
            let fits = glob.components.last().is_some_and(|pattern| {
                (!hidden || pattern.starts_with('.')) && pattern_matches(pattern, &name)
            });
            // Only what the source directory has is copied; deeper globs are not looked into.
            let there = from.join(below);
            let has = glob.components.len() > 1
                || self
                    .resolve(Path::new("/"), &there.to_string_lossy(), true)
                    .is_ok_and(|there| self.will_exist(&there));
            if fits && has {
                self.judge(effect, operation, Path::new("/"), &path.to_string_lossy());
            }
        }
    }

    /// The directory in front of a glob, as it is written and as it really is.
    fn glob_directory(&mut self, glob: &Glob, here: Option<&Path>) -> Option<(PathBuf, PathBuf)> {
        let text = self.without_tilde(&glob.directory)?;
        let base = match here {
            Some(base) => base.to_path_buf(),
            None if text.starts_with('/') => PathBuf::from("/"),
            None => return None,
        };
        let text = if text.is_empty() { ".".to_owned() } else { text };
        let readings = self.resolve(&base, &text, true).ok()?;
        Some((base.join(text), readings.literal.path))
    }

    fn judge_below(&mut self, effect: &Effect, operation: Operation, root: &Path, glob: &Glob) {
        let Some(pattern) = glob.components.first() else { return };
        // Any name that fits stands for all: what counts is the directory.
        let name = plain(&pattern.replace(['*', '?', '[', ']'], "x"));
        let path = root.join(name);
        if let Ok(readings) = self.resolve(Path::new("/"), &path.to_string_lossy(), true) {
            let inside = readings.all().any(|facts| {
                self.set.inside_state(facts)
                    || self.set.covers_parent(facts) && !operation.only_reads()
            });
            if inside {
                self.judge(effect, operation, Path::new("/"), &path.to_string_lossy());
            }
        }
    }

    /// A path that a glob names only if it is there.
    fn judge_existing(&mut self, effect: &Effect, operation: Operation, path: &Path) {
        let text = path.to_string_lossy().into_owned();
        let there = self.resolve(Path::new("/"), &text, false);
        if there.is_ok_and(|there| there.literal.kind != FileKind::Missing) {
            self.judge(effect, operation, Path::new("/"), &text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn glob(text: &str) -> Glob {
        let word = Word { pattern: text.into(), glob: true, ..Word::literal(text) };
        Glob::of(&word)
    }

    #[test]
    fn globs_are_taken_apart() {
        assert_eq!(glob("a/b*/c").directory, "a");
        assert_eq!(glob("a/b*/c").components, ["b*", "c"]);
        assert_eq!(glob("*.MD").components, ["*.md"]);
        assert_eq!(glob("/*").directory, "/");
        assert_eq!(glob("/a/*").directory, "/a");
        assert_eq!(glob("./Local*").directory, ".");
        assert_eq!(glob("a\\*/b?").directory, "a*");
    }

    #[test]
    fn globs_fit_as_the_shell_reads_them() {
        let fits = |text: &str, path: &str| glob(text).fits(Path::new(path));
        assert_eq!(fits("Local*.md", "LocalGPT.md"), Some(Depth::Itself));
        assert_eq!(fits("local???.[m]d", "LocalGPT.md"), Some(Depth::Itself));
        assert_eq!(fits("*", "LocalGPT.md"), Some(Depth::Itself));
        assert_eq!(fits("*", ".localgpt_manifest.json"), None);
        assert_eq!(fits(".*", ".localgpt_manifest.json"), Some(Depth::Itself));
        assert_eq!(fits(".cl*", ".claude/settings.json"), Some(Depth::Below));
        assert_eq!(fits("*/x", "LocalGPT.md"), Some(Depth::Above));
        assert_eq!(fits("*.txt", "LocalGPT.md"), None);
    }
}
