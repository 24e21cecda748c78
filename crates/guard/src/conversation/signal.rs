//! What a message leaves behind, and how it is kept.

use std::fmt;
use std::str::FromStr;

/// What was noticed about a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Flags(u8);

impl Flags {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// It tries to get at the prompt or a secret.
    pub const EXTRACTION: Self = Self(1);
    /// It gives many examples.
    pub const MANY_SHOT: Self = Self(2);
    /// It claims a past that does not exist.
    pub const FALSE_CONTEXT: Self = Self(4);
    /// It tries to replace role or rules.
    pub const BEHAVIOUR: Self = Self(8);
    /// It names what the agent is made of.
    pub const INTERNALS: Self = Self(16);
    /// It asks for the words of what was named, here or just before.
    pub const WORDING: Self = Self(32);
    /// Something was found only together with the message before.
    pub const JOINED: Self = Self(64);
    /// It completes a crescendo.
    pub const CRESCENDO: Self = Self(128);

    /// Whether all flags of the other are set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both together.
    pub(super) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) fn set(&mut self, other: Self, when: bool) {
        if when {
            self.0 |= other.0;
        }
    }
}

/// What a message leaves behind.
///
/// Its text form, `time.score.flags`, goes into the message's record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Signal {
    /// When, in seconds since 1970.
    pub time: u64,
    /// How much the message counts, in hundredths.
    pub score: u16,
    /// What was noticed.
    pub flags: Flags,
}

impl fmt::Display for Signal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}.{}", self.time, self.score, self.flags.0)
    }
}

/// The text is not that of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a signal: give `time.score.flags`, three numbers")]
pub struct ParseSignalError;

impl FromStr for Signal {
    type Err = ParseSignalError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        fn number<T: FromStr>(part: Option<&str>) -> Result<T, ParseSignalError> {
            let digits = part.filter(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
            digits.and_then(|part| part.parse().ok()).ok_or(ParseSignalError)
        }
        let mut parts = text.split('.');
        let time = number(parts.next())?;
        let score = number(parts.next())?;
        let flags = Flags(number(parts.next())?);
        if parts.next().is_some() {
            return Err(ParseSignalError);
        }
        Ok(Self { time, score, flags })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_read_back() {
        let signal = Signal { time: 1_763_200_000, score: 155, flags: Flags(0b1011_0001) };
        assert_eq!(signal.to_string(), "1763200000.155.177");
        assert_eq!(signal.to_string().parse(), Ok(signal));
        for bad in ["", "1", "1.2", "1.2.3.4", "1.2.256", "1.65536.0", "+1.2.3", "1.-2.3", "1..3"] {
            assert_eq!(bad.parse::<Signal>(), Err(ParseSignalError), "{bad}");
        }
    }
}
