//! Globs over the components of a path.

use thiserror::Error;
use wardkeep_detect::names::fold_name;

/// Longest glob, in bytes. A match takes at most this times the length of the path.
pub const MAX_GLOB: usize = 256;

/// A glob, folded as names are; see [`fold_name`].
///
/// `*` and `?` stay within one component, `**` is any number of them, `[a-z]` and `[!a-z]` are one
/// sign, and `\` takes the next sign as it is. Without a `/` it is about the last component; with one
/// it may begin anywhere; a leading `/` begins at the root and `~/` at the home directory. A trailing
/// `/` or `/**` means everything below.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob {
    parts: Vec<Part>,
    start: Start,
}

/// Why a glob is none.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{glob}` is no glob for files: {why}")]
pub struct GlobError {
    /// What was written.
    pub glob: String,
    /// What is wrong with it, and what to write instead.
    pub why: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    Anywhere,
    Root,
    Home,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// Any number of components.
    Deep,
    Name(Name),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Name {
    Is(String),
    Begins(String),
    Ends(String),
    Fits(Vec<Sign>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Sign {
    Any,
    One,
    Exact(char),
    Of { not: bool, ranges: Vec<(char, char)> },
}

impl Glob {
    /// Reads one.
    ///
    /// # Errors
    /// If it is empty, too long, malformed, or matches every file.
    pub fn new(text: &str) -> Result<Self, GlobError> {
        Self::parse(text).map_err(|why| {
            let glob = text.chars().filter(|sign| !sign.is_control()).take(64).collect();
            GlobError { glob, why }
        })
    }

    fn parse(text: &str) -> Result<Self, &'static str> {
        if text.len() > MAX_GLOB {
            return Err("it is too long; write at most 256 bytes");
        }
        let (start, rest) = if let Some(rest) = text.strip_prefix("~/") {
            (Start::Home, rest)
        } else if let Some(rest) = text.strip_prefix('/') {
            (Start::Root, rest)
        } else {
            (Start::Anywhere, text)
        };
        let mut parts = Vec::new();
        if start == Start::Anywhere {
            parts.push(Part::Deep);
        }
        for component in rest.split('/').filter(|part| !matches!(*part, "" | ".")) {
            match component {
                ".." => return Err("`..` has no place in it; name the real folder"),
                "**" => parts.push(Part::Deep),
                name => parts.push(Part::Name(Name::parse(&fold_name(name))?)),
            }
        }
        parts.dedup_by(|part, before| *part == Part::Deep && *before == Part::Deep);
        if rest.ends_with('/') && parts.last().is_some_and(|part| *part != Part::Deep) {
            parts.push(Part::Deep);
        }
        let telling = |part: &Part| match part {
            Part::Deep => false,
            Part::Name(name) => name.is_telling(),
        };
        if !parts.iter().any(telling) {
            return Err("it matches every file; name at least one part of the path");
        }
        // Below a folder is not the folder itself.
        if parts.last() == Some(&Part::Deep) {
            parts.push(Part::Name(Name::Fits(vec![Sign::Any])));
        }
        Ok(Self { parts, start })
    }

    /// Whether it matches a path whose components are folded; those of the home directory likewise.
    /// Where that is not known, any folder may be it.
    #[must_use]
    pub fn matches(&self, path: &[&str], home: Option<&[String]>) -> bool {
        match (self.start, home) {
            (Start::Anywhere | Start::Root, _) => walk(&self.parts, path),
            (Start::Home, Some(home)) => {
                path.len() > home.len()
                    && path.iter().zip(home).all(|(one, other)| one == other)
                    && walk(&self.parts, &path[home.len()..])
            }
            (Start::Home, None) => (0..path.len()).any(|from| walk(&self.parts, &path[from..])),
        }
    }
}

/// Goes back to the last `**` only, which is enough, so that every part meets every component at most once.
fn walk(parts: &[Part], path: &[&str]) -> bool {
    let (mut at, mut read) = (0, 0);
    let mut deep: Option<(usize, usize)> = None;
    while read < path.len() {
        match parts.get(at) {
            Some(Part::Deep) => {
                deep = Some((at, read));
                at += 1;
                continue;
            }
            Some(Part::Name(name)) if name.matches(path[read]) => {
                at += 1;
                read += 1;
                continue;
            }
            _ => {}
        }
        let Some((back, from)) = deep else { return false };
        deep = Some((back, from + 1));
        at = back + 1;
        read = from + 1;
    }
    parts[at..].iter().all(|part| *part == Part::Deep)
}

impl Name {
    fn parse(name: &str) -> Result<Self, &'static str> {
        let plain = |text: &str| !text.contains(['*', '?', '[', ']', '\\']);
        if plain(name) {
            return Ok(Self::Is(name.to_owned()));
        }
        if let Some(end) = name.strip_prefix('*')
            && plain(end)
            && !end.is_empty()
        {
            return Ok(Self::Ends(end.to_owned()));
        }
        if let Some(begin) = name.strip_suffix('*')
            && plain(begin)
            && !begin.is_empty()
        {
            return Ok(Self::Begins(begin.to_owned()));
        }
        let mut signs = Vec::new();
        let mut rest = name.chars();
        while let Some(sign) = rest.next() {
            match sign {
                '*' if signs.last() == Some(&Sign::Any) => {}
                '*' => signs.push(Sign::Any),
                '?' => signs.push(Sign::One),
                '\\' => {
                    let next = rest.next().ok_or("`\\` stands at its end; write `\\\\`")?;
                    signs.push(Sign::Exact(next));
                }
                '[' => {
                    let (set, after) =
                        bracket(rest.as_str()).ok_or("a `[` is not closed; write `\\[`")?;
                    signs.push(set);
                    rest = after.chars();
                }
                sign => signs.push(Sign::Exact(sign)),
            }
        }
        Ok(Self::Fits(signs))
    }

    fn is_telling(&self) -> bool {
        match self {
            Self::Fits(signs) => signs.iter().any(|sign| !matches!(sign, Sign::Any | Sign::One)),
            _ => true,
        }
    }

    fn matches(&self, name: &str) -> bool {
        match self {
            Self::Is(text) => name == text,
            Self::Begins(text) => name.starts_with(text.as_str()),
            Self::Ends(text) => name.ends_with(text.as_str()),
            Self::Fits(signs) => fits(signs, name),
        }
    }
}

/// What stands between brackets, and what stands behind them.
fn bracket(text: &str) -> Option<(Sign, &str)> {
    let not = text.starts_with(['!', '^']);
    let inner = &text[usize::from(not)..];
    // A `]` that stands first is one of the signs.
    let first = inner.chars().next()?.len_utf8();
    let end = first + inner[first..].find(']')?;
    let signs: Vec<char> = inner[..end].chars().collect();
    let mut ranges = Vec::new();
    let mut at = 0;
    while at < signs.len() {
        if at + 2 < signs.len() && signs[at + 1] == '-' {
            ranges.push((signs[at], signs[at + 2]));
            at += 3;
        } else {
            ranges.push((signs[at], signs[at]));
            at += 1;
        }
    }
    Some((Sign::Of { not, ranges }, &inner[end + 1..]))
}

fn fits(signs: &[Sign], name: &str) -> bool {
    let mut at = 0;
    let mut rest = name.chars();
    let mut star: Option<(usize, std::str::Chars<'_>)> = None;
    loop {
        let here = rest.clone();
        let Some(next) = rest.next() else { break };
        let one = match signs.get(at) {
            Some(Sign::Any) => {
                at += 1;
                star = Some((at, here.clone()));
                rest = here;
                continue;
            }
            Some(Sign::One) => true,
            Some(Sign::Exact(sign)) => *sign == next,
            Some(Sign::Of { not, ranges }) => {
                ranges.iter().any(|(from, to)| (*from..=*to).contains(&next)) != *not
            }
            None => false,
        };
        if one {
            at += 1;
            continue;
        }
        let Some((behind, from)) = &mut star else { return false };
        from.next();
        at = *behind;
        rest = from.clone();
    }
    signs[at..].iter().all(|sign| *sign == Sign::Any)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hits(glob: &str, path: &str) -> bool {
        let components: Vec<String> =
            path.split('/').filter(|part| !part.is_empty()).map(fold_name).collect();
        let components: Vec<&str> = components.iter().map(String::as_str).collect();
        let home = ["home".to_owned(), "u".to_owned()];
        Glob::new(glob).unwrap().matches(&components, Some(&home))
    }

    #[test]
    fn components_are_matched() {
        for (glob, path) in [
            (".env", "/w/.env"),
            (".ENV", "/w/.Env"),
            ("*.pem", "/a/b/prod.PEM"),
            ("*.pem", "/a/.pem"),
            ("id_rsa*", "/a/id_rsa.old"),
            ("*a*b?c*", "/x/1a2b3c4"),
            (".aws/*", "/home/u/.aws/config"),
            (".aws/**", "/home/u/.aws/sso/cache/x"),
            (".aws/", "/home/u/.aws/x"),
            ("a/**/z", "/q/a/z"),
            ("a/**/z", "/q/a/b/c/z"),
            ("/etc/shadow*", "/etc/shadow-"),
            ("~/x", "/home/u/x"),
            ("~/**/x", "/home/u/a/x"),
            ("[a-c]x", "/bx"),
            ("[!a-c]x", "/dx"),
            ("[]]x", "/]x"),
            ("\\*x", "/*x"),
            ("ｓｅｃｒｅｔ", "/SECRET"),
            ("a**b", "/axxb"),
        ] {
            assert!(hits(glob, path), "{glob} {path}");
        }
        for (glob, path) in [
            (".env", "/w/.env/x"),
            (".env", "/w/.envx"),
            ("*.pem", "/a/x.pem/y"),
            (".aws/*", "/home/u/.aws/sso/x"),
            (".aws/**", "/home/u/.aws"),
            (".aws/**", "/home/u/.awsome/x"),
            (".aws/**", "/home/u/x.aws/x"),
            ("/etc/shadow", "/mnt/etc/shadow"),
            ("~/x", "/home/v/x"),
            ("~/x", "/home/u/a/x"),
            ("[a-c]x", "/dx"),
            ("[!a-c]x", "/bx"),
            ("\\*x", "/yx"),
            ("a/b", "/a/c/b"),
            ("?", "/"),
        ] {
            assert!(Glob::new(glob).is_err() || !hits(glob, path), "{glob} {path}");
        }
    }

    #[test]
    fn what_is_no_glob_is_said() {
        for glob in ["", "/", "*", "**", "**/*", "?", "~/**", "a/../b", "[a", "a\\", "a[]"] {
            assert!(Glob::new(glob).is_err(), "{glob}");
        }
        assert!(Glob::new(&"a".repeat(MAX_GLOB + 1)).is_err());
    }

    /// The same by trying everything.
    fn slow(glob: &[char], text: &[char]) -> bool {
        match glob.first() {
            None => text.is_empty(),
            Some('*') => (0..=text.len()).any(|skip| slow(&glob[1..], &text[skip..])),
            Some('?') => !text.is_empty() && slow(&glob[1..], &text[1..]),
            Some(sign) => text.first() == Some(sign) && slow(&glob[1..], &text[1..]),
        }
    }

    proptest! {
        #[test]
        fn stars_match_what_they_should(glob in "[ab*?]{0,8}", text in "[ab]{0,10}") {
            let signs = |text: &str| text.chars().collect::<Vec<_>>();
            prop_assert_eq!(
                Name::parse(&glob).unwrap().matches(&text),
                slow(&signs(&glob), &signs(&text)),
            );
        }

        #[test]
        fn deep_parts_match_what_they_should(glob in "[ab*]{1,6}", text in "[ab]{0,8}") {
            // `*` for `**`: components of one sign each.
            let parts: Vec<Part> = glob
                .chars()
                .map(|sign| match sign {
                    '*' => Part::Deep,
                    sign => Part::Name(Name::Is(sign.to_string())),
                })
                .collect();
            let path: Vec<String> = text.chars().map(String::from).collect();
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            let signs = |text: &str| text.chars().collect::<Vec<_>>();
            prop_assert_eq!(walk(&parts, &path), slow(&signs(&glob), &signs(&text)));
        }

        #[test]
        fn any_text_is_read(glob in "\\PC{0,40}", path in "\\PC{0,40}") {
            if let Ok(glob) = Glob::new(&glob) {
                let path: Vec<&str> = path.split('/').collect();
                let _ = glob.matches(&path, None);
            }
        }
    }
}
