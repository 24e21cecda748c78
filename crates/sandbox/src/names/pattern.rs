//! Patterns of paths, for names that an owner adds.

use super::folded;

/// Paths below the folder that is guarded: `SOUL.md` and `notes/*.md` at any depth, `/memory` only at its
/// top. `*` is any text in one part and `?` one byte; a pattern fits what it names and all that lies below,
/// so that `memory` and `memory/**` are the same. Case does not count.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Deserialize)]
#[serde(try_from = "String")]
pub struct PathPattern {
    at_top: bool,
    parts: Vec<Vec<u8>>,
}

/// Why a text is no pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatternError {
    /// It fits nothing, or everything.
    #[error("the pattern names nothing: give a file or a folder")]
    Empty,
    /// It has `**` or `..` where it means nothing.
    #[error(
        "`**` stands only at the beginning or the end of a pattern, `.` and `..` nowhere: write the path out"
    )]
    Misplaced,
    /// It is longer than any path.
    #[error("the pattern is too long: name a folder further up")]
    Long,
}

/// Longest pattern.
const LONGEST: usize = 4096;

impl std::str::FromStr for PathPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        if text.len() > LONGEST || text.contains('\0') {
            return Err(PatternError::Long);
        }
        let mut parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty()).collect();
        let mut at_top = text.starts_with('/');
        while parts.first() == Some(&".") {
            parts.remove(0);
            at_top = true;
        }
        while parts.first() == Some(&"**") {
            parts.remove(0);
            at_top = false;
        }
        while parts.last() == Some(&"**") {
            parts.pop();
        }
        if parts.iter().any(|part| matches!(*part, "**" | "." | "..")) {
            return Err(PatternError::Misplaced);
        }
        if parts.iter().all(|part| part.bytes().all(|byte| byte == b'*')) {
            return Err(PatternError::Empty);
        }
        let parts = parts.iter().map(|part| folded(part.as_bytes())).collect();
        Ok(Self { at_top, parts })
    }
}

impl TryFrom<String> for PathPattern {
    type Error = PatternError;

    fn try_from(text: String) -> Result<Self, PatternError> {
        text.parse()
    }
}

impl PathPattern {
    /// How many parts it has, if it fits a path that ends with `name`. `above` are the parts before that,
    /// nearest first, the last of them the name of the folder that is guarded.
    pub(super) fn ends_with<'a>(
        &self,
        name: &[u8],
        mut above: impl Iterator<Item = &'a [u8]>,
    ) -> Option<usize> {
        let (last, before) = self.parts.split_last()?;
        let fits = fits(last, &folded(name))
            && before
                .iter()
                .rev()
                .all(|wanted| above.next().is_some_and(|part| self::fits(wanted, &folded(part))));
        let placed = !self.at_top || (above.next().is_some() && above.next().is_none());
        (fits && placed).then_some(self.parts.len())
    }

    /// What must lie in a folder at a path for the pattern to begin with that path and to end in the
    /// folder; where that has wildcards, the part before them.
    pub(super) fn continued(&self, parts: &[&[u8]]) -> Option<Vec<u8>> {
        (1..self.parts.len()).find_map(|cut| {
            let (head, tail) = self.parts.split_at(cut);
            let start = parts.len().checked_sub(cut)?;
            let placed = !self.at_top || start == 1;
            let fits = head.iter().zip(&parts[start..]).all(|(a, b)| self::fits(a, &folded(b)));
            let plain = tail.iter().take_while(|part| !has_wildcard(part)).cloned();
            let plain: Vec<_> = plain.collect();
            let rest = if plain.is_empty() { b".".to_vec() } else { plain.join(&b'/') };
            (placed && fits).then_some(rest)
        })
    }
}

impl std::fmt::Display for PathPattern {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.at_top {
            to.write_str("/")?;
        }
        to.write_str(&String::from_utf8_lossy(&self.parts.join(&b'/')))
    }
}

fn has_wildcard(part: &[u8]) -> bool {
    part.iter().any(|byte| matches!(byte, b'*' | b'?'))
}

/// Whether a name fits a part with wildcards, in time that grows with the product of their lengths at most.
pub(crate) fn fits(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut seen) = (0, 0);
    let mut again = None;
    while seen < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                again = Some((at + 1, seen));
                at += 1;
            }
            Some(one) if *one == b'?' || *one == name[seen] => {
                at += 1;
                seen += 1;
            }
            _ => match &mut again {
                Some((after, from)) => {
                    *from += 1;
                    (at, seen) = (*after, *from);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::super::{Guard, Names};
    use super::*;

    fn names(pattern: &str) -> Names {
        let mut names = Names::none();
        names.add_pattern(pattern.parse().unwrap());
        names
    }

    #[test]
    fn patterns_fit_what_they_name_and_what_is_below() {
        for (pattern, path) in [
            ("SOUL.md", "ws/a/soul.md"),
            ("memory/**", "ws/memory"),
            ("memory/**", "ws/x/memory/day.md"),
            ("/memory", "ws/memory/x/y"),
            ("./memory", "ws/memory"),
            ("**/notes/*.md", "ws/notes/a.md"),
            ("notes/*.md", "ws/deep/notes/b.MD"),
            ("a?c", "ws/abc"),
            ("*.key", "ws/x/a.b.key"),
        ] {
            assert_eq!(names(pattern).of_path(path.as_bytes()), Some(Guard::ReadOnly), "{pattern}");
        }
        for (pattern, path) in [
            ("/memory", "ws/x/memory"),
            ("notes/*.md", "ws/notes/a.txt"),
            ("notes/*.md", "ws/a.md"),
            ("a?c", "ws/ac"),
            ("SOUL.md", "ws/soul.md.bak"),
        ] {
            assert_eq!(names(pattern).of_path(path.as_bytes()), None, "{pattern}");
        }
        for (text, error) in [
            ("", PatternError::Empty),
            ("/", PatternError::Empty),
            ("**", PatternError::Empty),
            ("*/*", PatternError::Empty),
            ("a/**/b", PatternError::Misplaced),
            ("../x", PatternError::Misplaced),
            ("a\0", PatternError::Long),
        ] {
            assert_eq!(text.parse::<PathPattern>(), Err(error), "{text}");
        }
    }

    #[test]
    fn the_first_part_of_a_pattern_is_known() {
        let found = |pattern: &str, path: &[&[u8]]| names(pattern).continued(path);
        assert_eq!(found("memory/day/x", &[b"ws", b"memory"]), [b"day/x".to_vec()]);
        assert_eq!(found("memory/*.md", &[b"ws", b"memory"]), [b".".to_vec()]);
        assert_eq!(found("/memory/x", &[b"ws", b"a", b"memory"]), Vec::<Vec<u8>>::new());
    }

    proptest::proptest! {
        #[test]
        fn wildcards_fit_as_they_would_by_hand(pattern in "[ab*?]{0,8}", name in "[ab]{0,8}") {
            fn slowly(pattern: &[u8], name: &[u8]) -> bool {
                match (pattern.split_first(), name.split_first()) {
                    (None, None) => true,
                    (Some((b'*', rest)), _) => {
                        slowly(rest, name) || name.split_first().is_some_and(|(_, n)| slowly(pattern, n))
                    }
                    (Some((one, rest)), Some((sign, name))) => {
                        (*one == b'?' || one == sign) && slowly(rest, name)
                    }
                    _ => false,
                }
            }
            let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
            proptest::prop_assert_eq!(fits(pattern, name), slowly(pattern, name));
        }
    }
}
