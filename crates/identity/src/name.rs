//! Names of files below a workspace: bytes that cannot leave it.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Longest name, in bytes: what the system takes for a path, without its end.
pub const MAX_NAME: usize = 4095;
/// Longest component, in bytes.
pub const MAX_COMPONENT: usize = 255;

/// A path below a workspace: not absolute, nothing empty, no `.` or `..`. Ordered by bytes.
///
/// As a text it is the path itself, in which `%`, every byte that is no UTF-8, and every character
/// that a terminal hides or obeys are written as `%XX`. Two names never share a text.
///
/// ```
/// use wardkeep_identity::name::Name;
/// let name = Name::new(b"notes/a\nb.md").unwrap();
/// assert_eq!(name.to_string(), "notes/a%0Ab.md");
/// assert_eq!(Name::parse("notes/a%0Ab.md"), Some(name));
/// for path in ["", "/etc/passwd", "../x", "a/../b", "a//b", "./a", "a/"] {
///     assert_eq!(Name::new(path.as_bytes()), None, "{path}");
/// }
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Box<[u8]>);

impl Name {
    /// Of the bytes of a relative path.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let plain = |part: &[u8]| {
            !part.is_empty() && part.len() <= MAX_COMPONENT && part != b"." && part != b".."
        };
        let fits = bytes.len() <= MAX_NAME && !bytes.contains(&0);
        (fits && bytes.split(|byte| *byte == b'/').all(plain)).then(|| Self(bytes.into()))
    }

    /// Of a relative path as a person writes it: `./` in front and `/` at the end are left out.
    #[must_use]
    pub fn from_path(path: &Path) -> Option<Self> {
        let mut bytes = path.as_os_str().as_bytes();
        while let Some(rest) = bytes.strip_prefix(b"./") {
            bytes = rest;
        }
        while let Some(rest) = bytes.strip_suffix(b"/") {
            bytes = rest;
        }
        Self::new(bytes)
    }

    /// Of its text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if is_plain(text.as_bytes()) {
            return Self::new(text.as_bytes());
        }
        let mut bytes = Vec::with_capacity(text.len());
        let mut rest = text.as_bytes();
        while let Some((&first, after)) = rest.split_first() {
            rest = after;
            if first == b'%' {
                let digits = str::from_utf8(rest.get(..2)?).ok()?;
                bytes.push(u8::from_str_radix(digits, 16).ok()?);
                rest = rest.get(2..)?;
            } else {
                bytes.push(first);
            }
        }
        Self::new(&bytes).filter(|name| name.to_string() == text)
    }

    /// A name in the folder that this is, or in the workspace itself.
    #[must_use]
    pub fn child(folder: Option<&Self>, component: &[u8]) -> Option<Self> {
        let Some(folder) = folder else { return Self::new(component) };
        if component.contains(&b'/') {
            return None;
        }
        Self::new(&[&folder.0, &b"/"[..], component].concat())
    }

    /// Its bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// As the system wants it.
    #[must_use]
    pub fn as_path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.0))
    }

    /// Its components, from the workspace on.
    pub fn components(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.0.split(|byte| *byte == b'/')
    }

    /// The last component.
    #[must_use]
    pub fn leaf(&self) -> &OsStr {
        OsStr::from_bytes(self.components().next_back().unwrap_or_default())
    }

    /// The folder that it lies in, unless that is the workspace.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        let end = self.0.iter().rposition(|byte| *byte == b'/')?;
        self.0.get(..end).map(|bytes| Self(bytes.into()))
    }

    /// The folders that it lies in, the deepest first.
    pub fn ancestors(&self) -> impl Iterator<Item = Self> {
        std::iter::successors(self.parent(), Self::parent)
    }

    /// Whether it lies below a folder, at any depth.
    #[must_use]
    pub fn is_below(&self, folder: &Self) -> bool {
        self.0.strip_prefix(&*folder.0).is_some_and(|rest| rest.first() == Some(&b'/'))
    }
}

/// Whether bytes are their own text.
fn is_plain(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| (b' '..=b'~').contains(byte) && *byte != b'%')
}

/// Whether a character is shown as it is: visible, and one that no terminal obeys.
fn is_visible(character: char) -> bool {
    match character {
        '%' => false,
        ' '..='~' => true,
        '\u{ad}'
        | '\u{61c}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{e000}'..='\u{f8ff}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}'
        | '\u{fff0}'..='\u{ffff}'
        | '\u{e0000}'.. => false,
        other => other > '\u{9f}' && !other.is_whitespace(),
    }
}

impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Ok(text) = str::from_utf8(&self.0)
            && is_plain(&self.0)
        {
            return formatter.pad(text);
        }
        let mut text = String::with_capacity(self.0.len());
        for chunk in self.0.utf8_chunks() {
            for character in chunk.valid().chars() {
                if is_visible(character) {
                    text.push(character);
                } else {
                    hide(character.encode_utf8(&mut [0; 4]).as_bytes(), &mut text);
                }
            }
            hide(chunk.invalid(), &mut text);
        }
        formatter.pad(&text)
    }
}

fn hide(bytes: &[u8], out: &mut String) {
    for byte in bytes {
        out.push_str(&format!("%{byte:02X}"));
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Name({self})")
    }
}

impl serde::Serialize for Name {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Name {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("no name of a file below"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hostile_names_are_shown_harmlessly() {
        for (bytes, text) in [
            (&b"SOUL.md"[..], "SOUL.md"),
            (b"caf\xc3\xa9", "café"),
            ("🦀.md".as_bytes(), "🦀.md"),
            (b"-rf", "-rf"),
            (b"a\nb", "a%0Ab"),
            (b"a\x1b[2Jb", "a%1B[2Jb"),
            (b"\xff\xfe", "%FF%FE"),
            ("a\u{202e}b".as_bytes(), "a%E2%80%AEb"),
            ("a\u{200b}b".as_bytes(), "a%E2%80%8Bb"),
            (b"100%", "100%25"),
            (b"a\x7fb", "a%7Fb"),
        ] {
            let name = Name::new(bytes).unwrap();
            assert_eq!(name.to_string(), text);
            assert_eq!(Name::parse(text), Some(name));
        }
        for text in ["%41", "%2E%2E", "%2e%2e/x", "a%", "a%4", "%0a", "%+1", "a%2Fb"] {
            assert_eq!(Name::parse(text), None, "{text}");
        }
    }

    #[test]
    fn lengths_are_bounded() {
        assert!(Name::new(&[b'a'; MAX_COMPONENT]).is_some());
        assert!(Name::new(&[b'a'; MAX_COMPONENT + 1]).is_none());
        let deep = vec!["a"; 2048].join("/");
        assert_eq!(deep.len(), MAX_NAME);
        assert!(Name::new(deep.as_bytes()).is_some());
        assert!(Name::new(format!("{deep}/a").as_bytes()).is_none());
    }

    #[test]
    fn folders_are_found_by_whole_components() {
        let name = |text: &str| Name::new(text.as_bytes()).unwrap();
        assert!(name("a/b").is_below(&name("a")));
        assert!(!name("ab/c").is_below(&name("a")));
        assert!(!name("a").is_below(&name("a")));
        let above: Vec<String> = name("a/b/c").ancestors().map(|name| name.to_string()).collect();
        assert_eq!(above, ["a/b", "a"]);
        assert_eq!(Name::child(Some(&name("a")), b"b/c"), None);
        assert_eq!(Name::from_path(Path::new("./skills//")), Some(name("skills")));
        assert_eq!(Name::from_path(Path::new("/skills")), None);
    }

    proptest! {
        #[test]
        fn every_name_survives_as_text(bytes in proptest::collection::vec(any::<u8>(), 1..60)) {
            if let Some(name) = Name::new(&bytes) {
                let text = name.to_string();
                prop_assert!(text.chars().all(|sign| !sign.is_control()));
                prop_assert_eq!(Name::parse(&text), Some(name));
            }
        }

        #[test]
        fn no_text_leaves_the_workspace(text in "([.%/a]|%2[eEfF]|\u{e9}){0,12}") {
            if let Some(name) = Name::parse(&text) {
                prop_assert!(name.as_path().is_relative());
                prop_assert!(name.components().all(|part| !part.is_empty() && part != b".."));
            }
        }
    }
}
