//! One entry of a tier: a path or a glob, matched component by component on bytes.

use crate::name::{MAX_COMPONENT, Name};

/// Longest entry, in bytes.
pub const MAX_PATTERN: usize = 1024;

/// A path or a glob below the workspace.
///
/// `*` and `?` stay within one component, `**` is any number of components. A `/` at the end, or a
/// last component without a glob, stands for the folder and all below it. `\` takes the next
/// character as it is, and `\xNN` is a byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// Any number of components.
    Deep,
    Is(Vec<u8>),
    Fits(Vec<Sign>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    Any,
    One,
    Exact(u8),
}

impl Pattern {
    /// Reads an entry of a list.
    ///
    /// # Errors
    /// What is wrong with it, and what to write instead.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        if text.len() > MAX_PATTERN {
            return Err("it is too long; write at most 1024 bytes");
        }
        let text = text.strip_prefix("./").unwrap_or(text);
        if text.starts_with('/') || text.starts_with("~/") {
            return Err("it is not below the workspace; write a relative path");
        }
        let (body, folder) = match text.strip_suffix('/') {
            Some(body) => (body, true),
            None => (text, false),
        };
        if body.is_empty() {
            return Err("it is empty; write a path or a glob");
        }
        let mut parts = Vec::new();
        for component in body.split('/') {
            let part = match component {
                "" => return Err("a part of it is empty; write one `/` between two names"),
                "." | ".." => return Err("`.` and `..` have no place in it; name the real folder"),
                "**" => Part::Deep,
                other => Part::parse(other)?,
            };
            if part != Part::Deep || parts.last() != Some(&Part::Deep) {
                parts.push(part);
            }
        }
        if folder || matches!(parts.last(), Some(Part::Is(_))) {
            parts.push(Part::Deep);
        }
        Ok(Self { parts })
    }

    /// Reads a path in which no character has a meaning, with a `/` at its end for a folder.
    pub(super) fn literal(text: &str) -> Result<Self, &'static str> {
        let body = text.strip_suffix('/').unwrap_or(text);
        let name = Name::new(body.as_bytes())
            .ok_or("it is no path below the workspace; write a relative path without `..`")?;
        Ok(Self::of(&name))
    }

    /// The entry that stands for a file, or for a folder and all below it.
    pub(super) fn of(name: &Name) -> Self {
        let mut parts: Vec<Part> = name.components().map(|part| Part::Is(part.to_vec())).collect();
        parts.push(Part::Deep);
        Self { parts }
    }

    /// Whether it has no globs, so that it names one file or folder.
    pub(super) fn is_path(&self) -> bool {
        let (last, before) = self.parts.split_last().unwrap_or((&Part::Deep, &[]));
        *last == Part::Deep && before.iter().all(|part| matches!(part, Part::Is(_)))
    }

    /// Its first component, where that is no glob.
    pub(super) fn first(&self) -> Option<&[u8]> {
        match self.parts.first() {
            Some(Part::Is(bytes)) => Some(bytes),
            _ => None,
        }
    }

    /// Whether one that matches here matches everything below as well.
    pub(super) fn ends_deep(&self) -> bool {
        self.parts.last() == Some(&Part::Deep)
    }

    /// The positions from which nothing was matched yet.
    pub(super) fn start(&self) -> Vec<usize> {
        let mut at = vec![0];
        self.spread(&mut at);
        at
    }

    /// The positions after one more component.
    pub(super) fn step(&self, from: &[usize], component: &[u8]) -> Vec<usize> {
        let mut next = Vec::new();
        for &at in from {
            match self.parts.get(at) {
                Some(Part::Deep) => next.push(at),
                Some(part) if part.matches(component) => next.push(at + 1),
                _ => {}
            }
        }
        self.spread(&mut next);
        next
    }

    /// A `**` may stand for no component at all.
    fn spread(&self, positions: &mut Vec<usize>) {
        let mut at = 0;
        while let Some(&position) = positions.get(at) {
            if self.parts.get(position) == Some(&Part::Deep) {
                positions.push(position + 1);
            }
            at += 1;
        }
        positions.sort_unstable();
        positions.dedup();
    }

    /// Whether everything is matched.
    pub(super) fn is_done(&self, positions: &[usize]) -> bool {
        positions.last() == Some(&self.parts.len())
    }

    /// Whether something below can still be matched.
    pub(super) fn is_open(&self, positions: &[usize]) -> bool {
        positions.iter().any(|at| *at < self.parts.len())
    }
}

impl Part {
    fn parse(component: &str) -> Result<Self, &'static str> {
        let mut signs = Vec::new();
        let mut rest = component.bytes();
        while let Some(byte) = rest.next() {
            let sign = match byte {
                b'*' if signs.last() == Some(&Sign::Any) => continue,
                b'*' => Sign::Any,
                b'?' => Sign::One,
                b'\\' => match rest.next().ok_or("`\\` stands at its end; write `\\\\`")? {
                    b'x' => {
                        let digits = [rest.next(), rest.next()].map(|digit| digit.map(char::from));
                        let digits = digits.map(|digit| digit.and_then(|digit| digit.to_digit(16)));
                        let [Some(high), Some(low)] = digits else {
                            return Err("`\\x` needs two hexadecimal digits");
                        };
                        let byte = u8::try_from(high * 16 + low).unwrap_or(0);
                        if matches!(byte, 0 | b'/') {
                            return Err("`\\x` stands for a byte that no name has");
                        }
                        Sign::Exact(byte)
                    }
                    other => Sign::Exact(other),
                },
                0 => return Err("it has a NUL, which no name has"),
                other => Sign::Exact(other),
            };
            signs.push(sign);
        }
        let exact: Option<Vec<u8>> = signs
            .iter()
            .map(|sign| match sign {
                Sign::Exact(byte) => Some(*byte),
                _ => None,
            })
            .collect();
        match exact {
            Some(bytes) if bytes.len() > MAX_COMPONENT => {
                Err("a part of it is longer than a name can be")
            }
            Some(bytes) if bytes == b"." || bytes == b".." => {
                Err("`.` and `..` have no place in it; name the real folder")
            }
            Some(bytes) => Ok(Self::Is(bytes)),
            None => Ok(Self::Fits(signs)),
        }
    }

    fn matches(&self, component: &[u8]) -> bool {
        match self {
            Self::Deep => true,
            Self::Is(bytes) => bytes == component,
            Self::Fits(signs) => fits(signs, component),
        }
    }
}

/// At most the length of the one times that of the other: only the last `*` is taken back.
fn fits(signs: &[Sign], text: &[u8]) -> bool {
    let (mut sign, mut at) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while at < text.len() {
        match signs.get(sign) {
            Some(Sign::Any) => {
                sign += 1;
                star = Some((sign, at));
            }
            Some(Sign::One) => {
                sign += 1;
                // One character, however many bytes it has.
                at += 1;
                while text.get(at).is_some_and(|byte| byte & 0xc0 == 0x80) {
                    at += 1;
                }
            }
            Some(Sign::Exact(byte)) if *byte == text[at] => {
                sign += 1;
                at += 1;
            }
            _ => {
                let Some((behind, from)) = star else { return false };
                sign = behind;
                at = from + 1;
                star = Some((behind, at));
            }
        }
    }
    signs[sign..].iter().all(|sign| *sign == Sign::Any)
}

/// The entry of a list that names exactly this file or folder.
pub(super) fn escape(name: &Name) -> String {
    let mut text = String::new();
    for chunk in name.as_bytes().utf8_chunks() {
        for sign in chunk.valid().chars() {
            match sign {
                '*' | '?' | '\\' => text.extend(['\\', sign]),
                sign if sign.is_control() => {
                    hex(sign.encode_utf8(&mut [0; 4]).as_bytes(), &mut text)
                }
                sign => text.push(sign),
            }
        }
        hex(chunk.invalid(), &mut text);
    }
    // A `~` in front would be taken for the home directory.
    if text.starts_with('~') {
        text.insert(0, '\\');
    }
    text
}

fn hex(bytes: &[u8], out: &mut String) {
    for byte in bytes {
        out.push_str(&format!("\\x{byte:02x}"));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hits(pattern: &Pattern, path: &[u8]) -> bool {
        let mut at = pattern.start();
        for component in path.split(|byte| *byte == b'/') {
            at = pattern.step(&at, component);
        }
        pattern.is_done(&at)
    }

    #[test]
    fn paths_and_globs_match_what_they_name() {
        for (pattern, path, expected) in [
            ("SOUL.md", "SOUL.md", true),
            ("./SOUL.md", "SOUL.md", true),
            ("SOUL.md", "x/SOUL.md", false),
            ("SOUL.md", "SOUL.mdx", false),
            ("skills", "skills/a/b.md", true),
            ("skills/", "skills/a/b.md", true),
            ("skills/", "skills", true),
            ("skills/", "skills2/a", false),
            ("skills/*.md", "skills/a.md", true),
            ("skills/*.md", "skills/a/b.md", false),
            ("skills/*.md", "skills/a.md/x", false),
            ("memory/**", "memory/a/b/c", true),
            ("memory/**/*.md", "memory/x.md", true),
            ("memory/**/*.md", "memory/a/b/x.md", true),
            ("**/x", "x", true),
            ("**/x", "a/b/x", true),
            ("**/x", "a/b/x/deep", true),
            ("a/**/b/**/c", "a/b/b/c", true),
            ("?.md", "é.md", true),
            ("?.md", "ab.md", false),
            ("\\*.md", "*.md", true),
            ("\\*.md", "a.md", false),
            ("*a*b*", "xxaxxbxx", true),
        ] {
            let read = Pattern::parse(pattern).unwrap();
            assert_eq!(hits(&read, path.as_bytes()), expected, "{pattern} {path}");
        }
        assert!(hits(&Pattern::parse("a\\xff*").unwrap(), b"a\xffb"));
    }

    #[test]
    fn what_is_no_entry_is_refused() {
        for text in
            ["", "/", "/etc", "~/x", "a//b", "../x", "a/..", ".", "a\\", "\\x2f", "\\x0", "\\."]
        {
            assert!(Pattern::parse(text).is_err(), "{text}");
        }
        assert!(Pattern::parse(&"a".repeat(MAX_PATTERN + 1)).is_err());
        assert!(Pattern::parse(&"a".repeat(MAX_COMPONENT + 1)).is_err());
    }

    #[test]
    fn a_slow_glob_is_not_slow() {
        let glob = Pattern::parse(&"*a".repeat(500)).unwrap();
        let deep = Pattern::parse(&"**/a/".repeat(200)).unwrap();
        let name = "a".repeat(255);
        let path = vec!["a"; 2000].join("/");
        let before = cpu();
        assert!(!hits(&glob, name.as_bytes()));
        assert!(hits(&deep, path.as_bytes()));
        assert!(cpu() - before < 1.0);
    }

    fn cpu() -> f64 {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
    }

    fn slow(glob: &[u8], text: &[u8]) -> bool {
        match glob.first() {
            None => text.is_empty(),
            Some(b'*') => (0..=text.len()).any(|skip| slow(&glob[1..], &text[skip..])),
            Some(b'?') => !text.is_empty() && slow(&glob[1..], &text[1..]),
            Some(sign) => text.first() == Some(sign) && slow(&glob[1..], &text[1..]),
        }
    }

    proptest! {
        #[test]
        fn stars_match_what_they_should(glob in "[ab*?]{1,8}", text in "[ab]{1,10}") {
            let part = Part::parse(&glob).unwrap();
            prop_assert_eq!(part.matches(text.as_bytes()), slow(glob.as_bytes(), text.as_bytes()));
        }

        #[test]
        fn an_escaped_name_matches_itself_only(
            one in proptest::collection::vec(any::<u8>(), 1..12),
            other in proptest::collection::vec(any::<u8>(), 1..12),
        ) {
            if let (Some(one), Some(other)) = (Name::new(&one), Name::new(&other)) {
                let pattern = Pattern::parse(&escape(&one)).unwrap();
                prop_assert!(pattern.is_path());
                prop_assert!(hits(&pattern, one.as_bytes()));
                let below = other == one || other.is_below(&one);
                prop_assert_eq!(hits(&pattern, other.as_bytes()), below);
            }
        }

        #[test]
        fn any_text_is_read(text in "\\PC{0,40}") {
            if let Ok(pattern) = Pattern::parse(&text) {
                let _ = hits(&pattern, b"a/b/c");
            }
        }
    }
}
