//! What a confined program was kept from.

use std::fmt;

use serde::Serialize;

/// How a program was kept from something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum DenialKind {
    /// A guarded name was not made, written, moved or removed.
    Name,
    /// A system call that nobody inside may make.
    Call,
    /// A guarded file was opened, and is shown empty.
    Masked,
    /// Something that is there outside was looked for and not found. Only noticed in a run that learns.
    Unseen,
}

/// Something that a confined program was kept from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Denial {
    /// How.
    pub kind: DenialKind,
    /// What was called: `open`, `rename`, `ptrace`.
    pub call: String,
    /// What it was about; empty for a call that is about no file.
    pub path: String,
    /// What speaks against it.
    pub rule: String,
    /// What the program calls itself; it may be anything.
    pub program: String,
    /// How often.
    pub times: u64,
}

impl Denial {
    /// Whether it is the same, but for how often.
    fn is_like(&self, other: &Self) -> bool {
        (self.kind, &self.call, &self.path, &self.rule)
            == (other.kind, &other.call, &other.path, &other.rule)
    }

    /// What the owner does to allow it, in words.
    #[must_use]
    pub fn how_to_allow(&self) -> String {
        match self.kind {
            DenialKind::Name => {
                "make the change yourself, outside of the confinement, or name it in `release` of the profile"
                    .to_owned()
            }
            DenialKind::Call => "nothing allows it inside".to_owned(),
            DenialKind::Masked | DenialKind::Unseen => format!("show it by --read {}", self.path),
        }
    }

    /// A message for the other side: what is of unknown length comes last.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let kind = match self.kind {
            DenialKind::Name => b'n',
            DenialKind::Call => b'c',
            DenialKind::Masked => b'm',
            DenialKind::Unseen => b'u',
        };
        let mut bytes = vec![kind];
        for text in [&self.call, &self.rule, &self.program, &self.path] {
            bytes.push(0);
            bytes.extend(text.bytes().map(|byte| if byte == 0 { b'?' } else { byte }));
        }
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut parts = bytes.split(|byte| *byte == 0);
        let kind = match parts.next()? {
            b"n" => DenialKind::Name,
            b"c" => DenialKind::Call,
            b"m" => DenialKind::Masked,
            b"u" => DenialKind::Unseen,
            _ => return None,
        };
        let mut text = || parts.next().map(|text| String::from_utf8_lossy(text).into_owned());
        let (call, rule, program, path) = (text()?, text()?, text()?, text()?);
        Some(Self { kind, call, path, rule, program, times: 1 })
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { call, path, rule, .. } = self;
        if path.is_empty() {
            write!(to, "{call} ({rule})")
        } else {
            write!(to, "{call} {path} ({rule})")
        }
    }
}

/// Adds one to a list that has an end; says whether it is new there.
pub(crate) fn add(list: &mut Vec<Denial>, one: &Denial, most: usize) -> bool {
    if let Some(known) = list.iter_mut().find(|known| known.is_like(one)) {
        known.times = known.times.saturating_add(one.times);
        return false;
    }
    let room = list.len() < most;
    if room {
        list.push(one.clone());
    }
    room
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denial(path: &str) -> Denial {
        Denial {
            kind: DenialKind::Name,
            call: "open".to_owned(),
            path: path.to_owned(),
            rule: "`x` is protected".to_owned(),
            program: "a\0b".to_owned(),
            times: 1,
        }
    }

    #[test]
    fn a_denial_is_told_as_it_is() {
        let one = denial("/w/a\nb");
        let heard = Denial::from_bytes(&one.to_bytes()).unwrap();
        assert_eq!(heard, Denial { program: "a?b".to_owned(), ..one });
        assert_eq!(heard.to_string(), "open /w/a\nb (`x` is protected)");
        assert_eq!(Denial::from_bytes(b"z\0a\0b\0c\0d"), None);
        assert_eq!(Denial::from_bytes(b"n\0a\0b"), None);
    }

    #[test]
    fn the_same_is_counted_and_the_list_ends() {
        let mut list = Vec::new();
        assert!(add(&mut list, &denial("a"), 2) && !add(&mut list, &denial("a"), 2));
        assert!(add(&mut list, &denial("b"), 2) && !add(&mut list, &denial("c"), 2));
        assert_eq!((list.len(), list[0].times), (2, 2));
    }
}
