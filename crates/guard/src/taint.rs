//! What flowed into something.

use std::fmt;
use std::ops::{BitOr, BitOrAssign};

/// A set of taint flags. What is recorded only ever grows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Taint(u8);

const NAMES: [(Taint, &str); 8] = [
    (Taint::UNTRUSTED, "UNTRUSTED"),
    (Taint::INJECTION_SUSPECT, "INJECTION_SUSPECT"),
    (Taint::PROXY_DERIVED, "PROXY_DERIVED"),
    (Taint::SECRET_RISK, "SECRET_RISK"),
    (Taint::CROSS_SESSION, "CROSS_SESSION"),
    (Taint::TOOL_OUTPUT, "TOOL_OUTPUT"),
    (Taint::SKILL_OUTPUT, "SKILL_OUTPUT"),
    (Taint::WEB_DERIVED, "WEB_DERIVED"),
];

impl Taint {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// It comes from someone who is not trusted.
    pub const UNTRUSTED: Self = Self(0x01);
    /// It looks like an attempt to steer the agent.
    pub const INJECTION_SUSPECT: Self = Self(0x02);
    /// It came through a proxy that anyone can claim to be.
    pub const PROXY_DERIVED: Self = Self(0x04);
    /// It may hold secrets.
    pub const SECRET_RISK: Self = Self(0x08);
    /// It was written in another session.
    pub const CROSS_SESSION: Self = Self(0x10);
    /// A tool gave it.
    pub const TOOL_OUTPUT: Self = Self(0x20);
    /// A skill gave it.
    pub const SKILL_OUTPUT: Self = Self(0x40);
    /// It comes from the network.
    pub const WEB_DERIVED: Self = Self(0x80);
    /// Everything: what holds where nothing can be known.
    pub const ALL: Self = Self(0xff);

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether any flag of the other is set.
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether every flag of the other is set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both together.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Those of the flags that are in the other as well.
    #[must_use]
    pub const fn only(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// What is left for a rule to see once the owner has said that some flags do not count against
    /// one action. Records keep them all.
    #[must_use]
    pub const fn without(self, declassified: Self) -> Self {
        Self(self.0 & !declassified.0)
    }

    /// The names of the flags, in the order of the format.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        NAMES.into_iter().filter(move |(flag, _)| self.contains(*flag)).map(|(_, name)| name)
    }

    /// From names; one that is not known may mean anything, so all flags hold then.
    pub fn from_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        names.into_iter().fold(Self::NONE, |taint, name| {
            taint
                | NAMES
                    .iter()
                    .find(|(_, known)| *known == name)
                    .map_or(Self::ALL, |(flag, _)| *flag)
        })
    }
}

impl BitOr for Taint {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.union(other)
    }
}

impl BitOrAssign for Taint {
    fn bitor_assign(&mut self, other: Self) {
        *self = *self | other;
    }
}

impl FromIterator<Self> for Taint {
    fn from_iter<I: IntoIterator<Item = Self>>(all: I) -> Self {
        all.into_iter().fold(Self::NONE, Self::union)
    }
}

impl fmt::Display for Taint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return formatter.write_str("none");
        }
        for (position, name) in self.names().enumerate() {
            if position > 0 {
                formatter.write_str("|")?;
            }
            formatter.write_str(name)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Taint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Taint({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for bits in 0..=255 {
            let taint = Taint(bits);
            assert_eq!(Taint::from_names(taint.names()), taint);
        }
        assert_eq!(Taint::from_names(["WEB_DERIVED", "SOMETHING_NEWER"]), Taint::ALL);
    }
}
