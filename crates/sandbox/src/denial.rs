//! What a confined program was kept from.

use std::fmt;

use serde::Serialize;

use crate::quote::quoted;
use crate::run::MASKED;

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
    /// A file that is there outside was to be read, and the owner did not say yes, or is not asked about it. Only noticed
    /// in a run that asks.
    Unshown,
    /// A link was made that leads out of what may be written; nothing was kept from anybody.
    Link,
    /// More of the others than is told; `times` is how many.
    More,
}

/// How many of one rule are told, where there is little room left.
const OF_ONE_RULE: usize = 8;

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
    /// That there were more than is told.
    pub(crate) fn more(times: u64) -> Self {
        Self {
            kind: DenialKind::More,
            call: "more".to_owned(),
            path: String::new(),
            rule: "there were more than are written down".to_owned(),
            program: String::new(),
            times,
        }
    }

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
            DenialKind::Unshown if self.rule == MASKED => {
                "take it out of `masked` of the profile, or leave --mask out".to_owned()
            }
            DenialKind::Masked | DenialKind::Unseen | DenialKind::Unshown => {
                format!("show it by --read {}", quoted(&self.path))
            }
            DenialKind::Link => "look at where it leads before you write to it".to_owned(),
            DenialKind::More => "look at what is told first".to_owned(),
        }
    }

    /// A message for the other side: what is of unknown length comes last.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let kind = match self.kind {
            DenialKind::Name => b'n',
            DenialKind::Call => b'c',
            DenialKind::Masked => b'm',
            DenialKind::Unseen => b'u',
            DenialKind::Unshown => b'r',
            DenialKind::Link => b'l',
            DenialKind::More => b'+',
        };
        let mut bytes = vec![kind, 0];
        bytes.extend(self.times.to_string().bytes());
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
            b"r" => DenialKind::Unshown,
            b"l" => DenialKind::Link,
            b"+" => DenialKind::More,
            _ => return None,
        };
        let times = std::str::from_utf8(parts.next()?).ok()?.parse().ok()?;
        let mut text = || parts.next().map(|text| String::from_utf8_lossy(text).into_owned());
        let (call, rule, program, path) = (text()?, text()?, text()?, text()?);
        Some(Self { kind, call, path, rule, program, times })
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

/// Adds one to a list; says whether it is new there. Each kind has an end of its own, and the last quarter of it is for
/// rules of which there are few: what matters is not hidden behind many others. Those beyond are counted.
pub(crate) fn add(list: &mut Vec<Denial>, one: &Denial, most: usize) -> bool {
    if let Some(known) = list.iter_mut().find(|known| known.is_like(one)) {
        known.times = known.times.saturating_add(one.times);
        return false;
    }
    let kind = list.iter().filter(|known| known.kind == one.kind).count();
    let rule = crate::names::folded(one.rule.as_bytes());
    let like = |known: &&Denial| {
        known.kind == one.kind && crate::names::folded(known.rule.as_bytes()) == rule
    };
    let few = || list.iter().filter(like).take(OF_ONE_RULE).count() < OF_ONE_RULE;
    if one.kind == DenialKind::More || kind < most - most / 4 || (kind < most && few()) {
        list.push(one.clone());
        return true;
    }
    add(list, &Denial::more(one.times), most);
    false
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
        let more = Denial::more(u64::MAX);
        assert_eq!(Denial::from_bytes(&more.to_bytes()), Some(more));
        for other in [&b"z\x001\0a\0b\0c\0d"[..], b"n\x001\0a\0b", b"n\0x\0a\0b\0c\0d"] {
            assert_eq!(Denial::from_bytes(other), None);
        }
    }

    #[test]
    fn what_is_to_be_pasted_is_quoted() {
        let one = Denial { kind: DenialKind::Masked, ..denial("/w/; touch it's;#/.env") };
        assert_eq!(one.how_to_allow(), "show it by --read '/w/; touch it'\\''s;#/.env'");
        let plain = Denial { kind: DenialKind::Unseen, ..denial("/w/a.env") };
        assert_eq!(plain.how_to_allow(), "show it by --read /w/a.env");
    }

    #[test]
    fn the_same_is_counted_and_the_list_ends() {
        let mut list = Vec::new();
        assert!(add(&mut list, &denial("a"), 2) && !add(&mut list, &denial("a"), 2));
        assert!(add(&mut list, &denial("b"), 2) && !add(&mut list, &denial("c"), 2));
        assert!(!add(&mut list, &denial("d"), 2) && !add(&mut list, &denial("a"), 2));
        assert_eq!((list.len(), list[0].times), (3, 3));
        assert_eq!(list[2], Denial::more(2));
        // Another kind has its own room.
        assert!(add(&mut list, &Denial { kind: DenialKind::Call, ..denial("e") }, 2));
    }

    #[test]
    fn many_of_one_rule_leave_room_for_others() {
        let mut list = Vec::new();
        for at in 0..500 {
            add(&mut list, &denial(&format!("decoy/{at}")), 100);
        }
        assert_eq!(list.iter().filter(|one| one.kind == DenialKind::Name).count(), 75);
        let other = Denial { rule: "a git hook executes".to_owned(), ..denial("h") };
        assert!(add(&mut list, &other, 100));
        // Other letters make no other rule.
        let same = Denial { rule: "`X` is protected".to_owned(), ..denial("g") };
        assert!(!add(&mut list, &same, 100));
        let more: u64 =
            list.iter().filter(|one| one.kind == DenialKind::More).map(|one| one.times).sum();
        assert_eq!(more, 426);
    }
}
