//! Landlock: which files the confined program may use, whatever mounts it sees.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use crate::sys::{self, Result};

const EXECUTE: u64 = 1;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIR: u64 = 1 << 3;
const TRUNCATE: u64 = 1 << 14;
const IOCTL_DEV: u64 = 1 << 15;
/// Removing, making, linking and moving.
const CHANGE: u64 = 0b11_1111_1111 << 4;
/// Devices.
const MAKE_DEVICES: u64 = 1 << 6 | 1 << 11;
/// What applies to a file that is no folder.
const OF_FILES: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV;

const BIND_TCP: u64 = 1;
const CONNECT_TCP: u64 = 2;

const ABSTRACT_SOCKETS: u64 = 1;
const SIGNALS: u64 = 2;

/// The version from which on signals reach nobody beyond.
pub(crate) const SIGNALS_KEPT: i32 = 6;

/// What is allowed at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Seeing which names a folder has.
    List,
    /// Reading.
    Read,
    /// Reading and executing.
    ReadExecute,
    /// Everything that files and folders know.
    All,
    /// Reading and writing devices, and talking to them.
    Devices,
    /// Reading and writing a file that is there.
    ReadWrite,
}

impl Access {
    fn bits(self) -> u64 {
        match self {
            Self::List => READ_DIR,
            Self::Read => READ_FILE | READ_DIR,
            Self::ReadExecute => READ_FILE | READ_DIR | EXECUTE,
            Self::All => OF_FILES & !IOCTL_DEV | READ_DIR | CHANGE & !MAKE_DEVICES,
            Self::Devices => READ_FILE | READ_DIR | WRITE_FILE | TRUNCATE | IOCTL_DEV,
            Self::ReadWrite => READ_FILE | WRITE_FILE | TRUNCATE,
        }
    }
}

/// Rights that a version of Landlock knows.
fn known(abi: i32) -> u64 {
    let mut all = (1 << 13) - 1;
    for (since, right) in [(2, 1 << 13), (3, TRUNCATE), (5, IOCTL_DEV)] {
        if abi >= since {
            all |= right;
        }
    }
    all
}

/// Rules as they are put together.
pub(crate) struct Rules {
    rules: OwnedFd,
    known: u64,
}

impl Rules {
    /// Nothing is allowed yet. With `network`, TCP is denied as well.
    pub(crate) fn new(abi: i32, network: bool) -> Result<Self> {
        let known = known(abi);
        let network = if network && abi >= 4 { BIND_TCP | CONNECT_TCP } else { 0 };
        let scoped = if abi >= SIGNALS_KEPT { ABSTRACT_SOCKETS | SIGNALS } else { 0 };
        Ok(Self { rules: sys::landlock_rules(known, network, scoped, abi)?, known })
    }

    /// Denies signals to whoever is outside, and nothing else.
    pub(crate) fn no_signals(abi: i32) -> Result<Option<Self>> {
        if abi < SIGNALS_KEPT {
            return Ok(None);
        }
        Ok(Some(Self { rules: sys::landlock_rules(0, 0, SIGNALS, abi)?, known: 0 }))
    }

    /// Allows something at and below an open file or folder.
    pub(crate) fn allow(&self, at: BorrowedFd<'_>, folder: bool, access: Access) -> Result<()> {
        let bits = access.bits() & self.known & if folder { u64::MAX } else { OF_FILES };
        if bits == 0 { Ok(()) } else { sys::landlock_allow(self.rules.as_fd(), at, bits) }
    }

    /// From here on they hold.
    pub(crate) fn restrict(&self) -> Result<()> {
        sys::landlock_restrict(self.rules.as_fd())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_what_the_kernel_calls_them() {
        // Remove folder and file, make char, dir, reg, sock, fifo, block, sym; refer.
        assert_eq!(CHANGE, 0x3FF0);
        assert_eq!(Access::All.bits() & MAKE_DEVICES, 0);
        assert_eq!(Access::All.bits() & IOCTL_DEV, 0);
        assert_eq!(known(1), 0x1FFF);
        assert_eq!(known(7), 0xFFFF);
        assert_eq!(Access::Read.bits() & (WRITE_FILE | CHANGE | TRUNCATE), 0);
    }
}
