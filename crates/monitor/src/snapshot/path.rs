//! Paths below a root, and how they are written down.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};

use wardkeep_evidence::canonical::{write_canonical, write_compact};
use wardkeep_evidence::json::Value;

/// Longest path below a root, in bytes.
const MAX_PATH: usize = 4096;

/// A path below a root that cannot leave it: not absolute, no `..`, nothing empty.
///
/// Written down it is the path itself where that is text in NFC without `%`; any other has its `%`
/// and every byte beyond ASCII as `%XX`. Two files never share a text, and a text has one file.
///
/// ```
/// use wardkeep_monitor::snapshot::RelativePath;
/// assert_eq!(RelativePath::parse("memory/a.md").unwrap().to_string(), "memory/a.md");
/// for text in ["", "/etc/passwd", "../x", "a/../../x", "a//b", "./a", "a/", "a\0b"] {
///     assert!(RelativePath::parse(text).is_none(), "{text:?}");
/// }
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelativePath(Vec<u8>);

impl RelativePath {
    /// Of a path as the system has it.
    #[must_use]
    pub fn new(path: &Path) -> Option<Self> {
        let plain = path.components().all(|part| matches!(part, Component::Normal(_)));
        plain.then(|| Self::from_bytes(path.as_os_str().as_bytes().to_vec())).flatten()
    }

    /// Of its text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::from_bytes(decode(text)?)
    }

    /// As the system wants it.
    #[must_use]
    pub fn as_path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.0))
    }

    /// Its names, from the root on.
    pub fn names(&self) -> impl DoubleEndedIterator<Item = &OsStr> {
        self.0.split(|byte| *byte == b'/').map(OsStr::from_bytes)
    }

    /// The last of its names.
    #[must_use]
    pub fn name(&self) -> &OsStr {
        self.names().next_back().unwrap_or_default()
    }

    /// The folder that it lies in, unless that is the root.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        let end = self.0.iter().rposition(|byte| *byte == b'/')?;
        Some(Self(self.0.get(..end)?.to_vec()))
    }

    /// Whether it lies below a folder, at any depth.
    #[must_use]
    pub fn is_below(&self, folder: &Self) -> bool {
        self.0.strip_prefix(folder.0.as_slice()).is_some_and(|rest| rest.first() == Some(&b'/'))
    }

    /// A name in the folder that this is, or in the root.
    pub(crate) fn child(folder: Option<&Self>, name: &OsStr) -> Option<Self> {
        let mut bytes = folder.map(|folder| [&folder.0, &b"/"[..]].concat()).unwrap_or_default();
        bytes.extend_from_slice(name.as_bytes());
        Self::from_bytes(bytes)
    }

    fn from_bytes(bytes: Vec<u8>) -> Option<Self> {
        let fits = bytes.len() <= MAX_PATH && !bytes.contains(&0);
        let plain = |part: &[u8]| !part.is_empty() && part != b"." && part != b"..";
        (fits && bytes.split(|byte| *byte == b'/').all(plain)).then_some(Self(bytes))
    }
}

impl fmt::Display for RelativePath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&encode(&self.0))
    }
}

impl fmt::Debug for RelativePath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "RelativePath({self})")
    }
}

impl serde::Serialize for RelativePath {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&encode(&self.0))
    }
}

impl<'de> serde::Deserialize<'de> for RelativePath {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text)
            .ok_or_else(|| serde::de::Error::custom("a path that leaves its root, or is none"))
    }
}

/// Bytes of a path as a text of which they can be told again.
pub(crate) fn encode(bytes: &[u8]) -> String {
    match str::from_utf8(bytes) {
        Ok(text) if !text.contains('%') && is_normal(text) => text.to_owned(),
        _ => bytes.iter().fold(String::new(), |mut out, &byte| {
            if byte.is_ascii() && byte != b'%' {
                out.push(char::from(byte));
            } else {
                out.push_str(&format!("%{byte:02X}"));
            }
            out
        }),
    }
}

/// The bytes of a text; `None` if [`encode`] would have written them differently.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
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
    (encode(&bytes) == text).then_some(bytes)
}

/// Whether canonical JSON leaves a text as it is.
fn is_normal(text: &str) -> bool {
    if text.is_ascii() {
        return true;
    }
    let (mut canonical, mut plain) = (Vec::new(), Vec::new());
    write_canonical(&Value::from(text), &mut canonical);
    write_compact(&Value::from(text), &mut plain);
    canonical == plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn odd_names_have_a_text_of_their_own() {
        for (bytes, text) in [
            (&b"caf\xc3\xa9.md"[..], "café.md"),
            (b"cafe\xcc\x81.md", "cafe%CC%81.md"),
            (b"100%", "100%25"),
            (b"\xff/x", "%FF/x"),
            (b"a\nb", "a\nb"),
        ] {
            assert_eq!(encode(bytes), text);
            assert_eq!(decode(text).unwrap(), bytes);
        }
        for text in ["%2e%2e", "%2E%2E/x", "%41", "a%", "a%4", "%c3%a9", "%+1"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }

    #[test]
    fn below_is_by_whole_names() {
        let path = |text| RelativePath::parse(text).unwrap();
        assert!(path("memory/a").is_below(&path("memory")));
        assert!(!path("memory2/a").is_below(&path("memory")));
        assert!(!path("memory").is_below(&path("memory")));
        assert_eq!(path("a/b/c").parent(), Some(path("a/b")));
        assert_eq!(path("a").parent(), None);
    }

    proptest! {
        #[test]
        fn every_name_survives(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(decode(&encode(&bytes)), Some(bytes));
        }

        #[test]
        fn no_text_leaves_the_root(text in "([.%/a]|%2[eEfF]|\u{e9}|e\u{301}){0,12}") {
            if let Some(path) = RelativePath::parse(&text) {
                prop_assert!(path.as_path().is_relative());
                prop_assert!(path.names().all(|name| !["", ".", ".."].map(OsStr::new).contains(&name)));
                prop_assert_eq!(path.to_string(), text);
                prop_assert_eq!(RelativePath::new(path.as_path()), Some(path));
            }
        }
    }
}
