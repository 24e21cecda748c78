//! What was seen in a skill, before anything is made of it.

use std::ops::{BitOr, BitOrAssign, Range};

/// What data may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Holds(u16);

impl Holds {
    pub(super) const NOTHING: Self = Self(0);
    /// All of the environment.
    pub(super) const ENVIRONMENT: Self = Self(1);
    /// One variable that is named like a secret.
    pub(super) const TOKEN: Self = Self(1 << 1);
    /// A file of credentials.
    pub(super) const CREDENTIAL: Self = Self(1 << 2);
    /// Some file.
    pub(super) const FILE: Self = Self(1 << 3);
    /// Something that was fetched.
    pub(super) const FETCHED: Self = Self(1 << 4);
    /// Something that was decoded.
    pub(super) const DECODED: Self = Self(1 << 5);
    /// What a caller gives.
    pub(super) const INPUT: Self = Self(1 << 6);
    /// Put together from pieces.
    pub(super) const ASSEMBLED: Self = Self(1 << 7);
    /// Files found by a search.
    pub(super) const SEARCHED: Self = Self(1 << 8);
    /// What the machine and its user are called.
    pub(super) const MACHINE: Self = Self(1 << 9);
    /// The clipboard, the keys typed or the screen.
    pub(super) const WATCHED: Self = Self(1 << 10);

    pub(super) fn any(self, of: Self) -> bool {
        self.0 & of.0 != 0
    }

    pub(super) fn all(self, of: Self) -> bool {
        self.0 & of.0 == of.0
    }

    pub(super) fn without(self, of: Self) -> Self {
        Self(self.0 & !of.0)
    }
}

impl BitOr for Holds {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Holds {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// Something that a part of a skill does, or would have done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Act {
    /// Something fetched is run.
    FetchAndRun { url: Option<String> },
    /// Something decoded is run: what it says, where that is known.
    DecodeAndRun { text: Option<String> },
    /// Code that is put together is run.
    RunAssembled,
    /// Code that somebody else gives is run.
    RunInput,
    /// A command is run, which is known.
    Shell { text: String, assembled: bool },
    /// Code is given to an interpreter on its command line.
    Inline { python: bool, text: String },
    /// Code is run, which is known.
    Code { text: String },
    /// A shell is handed to another machine.
    ReverseShell,
    /// Data is sent.
    Send { url: Option<String>, holds: Holds, what: Vec<&'static str> },
    /// Something is fetched.
    Fetch { url: Option<String> },
    /// A file of credentials is read.
    ReadCredential { class: &'static str },
    /// A file is written that says what the agent does, or that runs by itself.
    Persist { what: &'static str, name: String, holds: Holds },
    /// A protection of the system is turned off.
    Unguard { what: &'static str },
    /// Much is destroyed.
    Destroy,
    /// A password is asked for under a pretext.
    Phish,
    /// Coins are mined.
    Mine,
    /// A statement for a database is put together with what somebody else gives.
    Query,
    /// A file is opened by a name that somebody else gives, below a fixed folder.
    Traverse,
    /// A loop that never ends and waits for nothing.
    Spin,
}

/// An act and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) act: Act,
    /// In the text that was read.
    pub(super) at: Range<usize>,
}

impl Seen {
    pub(super) fn new(act: Act, at: Range<usize>) -> Self {
        Self { act, at }
    }
}
