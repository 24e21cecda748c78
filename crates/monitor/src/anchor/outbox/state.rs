//! What each anchor said last: `anchors-state.json`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::anchor::{AnchorError, Receipt};

const VERSION: u32 = 1;
const FIRST_RETRY_SECONDS: u64 = 60;
const LAST_RETRY_SECONDS: u64 = 3600;

/// The file as it is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct State {
    version: u32,
    pub(super) anchors: BTreeMap<String, AnchorState>,
}

/// What is known of one anchor.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnchorState {
    /// The log it holds seals of.
    pub origin: Option<String>,
    /// The size of the last seal it took.
    pub last_size: u64,
    /// The largest size it ever acknowledged.
    pub acknowledged: u64,
    /// The SHA-256 of the text of the last seal it took.
    pub last_seal: Option<String>,
    /// When it took it, in Unix seconds by its own clock where it has one.
    pub last_success: Option<u64>,
    /// What it says about itself.
    pub detail: Option<String>,
    /// The last attempt, in Unix seconds.
    pub last_attempt: Option<u64>,
    /// How many attempts failed since the last success.
    pub failures: u32,
    /// When it is tried again after a failure, in Unix seconds.
    pub next_attempt: u64,
    /// The last failure, kept after a success.
    pub last_failure: Option<Failure>,
    /// What it reported that an owner must look at.
    pub alarm: Option<Alarm>,
}

/// A failed attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// When, in Unix seconds.
    pub at: u64,
    /// The kind of error, as [`AnchorError::kind`] names it.
    pub kind: String,
    /// The error in one line.
    pub message: String,
}

/// What stays until an owner clears it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Alarm {
    /// The anchor saw a larger log.
    Rollback {
        /// When it was first seen, in Unix seconds.
        at: u64,
        /// The size the anchor saw.
        theirs: u64,
        /// The size there was.
        ours: u64,
    },
    /// The anchor holds another history.
    Fork {
        /// When it was first seen, in Unix seconds.
        at: u64,
        /// The size it holds another root for.
        size: u64,
    },
    /// What was known of the anchor is gone or damaged, alarms included.
    StateLost,
}

impl Default for State {
    fn default() -> Self {
        Self { version: VERSION, anchors: BTreeMap::new() }
    }
}

impl State {
    /// Reads the file. It never fails: an anchor the file does not tell of is given an alarm.
    pub(super) fn parse<'a>(bytes: &[u8], names: impl Iterator<Item = &'a str>) -> Self {
        let read = serde_json::from_slice::<Self>(bytes).ok();
        let mut read = read.filter(|read| read.version == VERSION).unwrap_or_default();
        let mut state = Self::default();
        for name in names {
            let lost = || AnchorState { alarm: Some(Alarm::StateLost), ..AnchorState::default() };
            let known = read.anchors.remove(name).unwrap_or_else(lost);
            state.anchors.insert(name.to_owned(), known);
        }
        state
    }
}

impl AnchorState {
    /// Whether the anchor should be tried with this seal now.
    pub(super) fn is_due(&self, seal: &str, now: u64) -> bool {
        if self.failures == 0 {
            return self.last_seal.as_deref() != Some(seal);
        }
        // A clock that was set back must not put the next attempt off for years.
        now >= self.next_attempt || self.last_attempt.is_some_and(|last| now < last)
    }

    pub(super) fn succeed(&mut self, origin: &str, seal: &str, receipt: &Receipt, now: u64) {
        self.origin = Some(origin.to_owned());
        self.last_size = receipt.size;
        self.acknowledged = self.acknowledged.max(receipt.size);
        self.last_seal = Some(seal.to_owned());
        self.last_success = Some(receipt.at);
        self.detail = Some(receipt.detail.clone());
        self.last_attempt = Some(now);
        self.failures = 0;
        self.next_attempt = now;
    }

    pub(super) fn fail(&mut self, error: &AnchorError, now: u64) {
        let doublings = self.failures.min(6);
        let pause = (FIRST_RETRY_SECONDS << doublings).min(LAST_RETRY_SECONDS);
        self.failures = self.failures.saturating_add(1);
        self.last_attempt = Some(now);
        self.next_attempt = now.saturating_add(pause);
        let (kind, message) = (error.kind().to_owned(), error.to_string());
        self.last_failure = Some(Failure { at: now, kind, message });
        let alarm = match *error {
            AnchorError::Rollback { theirs, ours, .. } => Alarm::Rollback { at: now, theirs, ours },
            AnchorError::Fork { size, .. } => Alarm::Fork { at: now, size },
            _ => return,
        };
        // The first one counts; a fork says more than a rollback.
        let outranked = match self.alarm {
            None | Some(Alarm::StateLost) => true,
            Some(Alarm::Rollback { .. }) => matches!(alarm, Alarm::Fork { .. }),
            Some(Alarm::Fork { .. }) => false,
        };
        if outranked {
            self.alarm = Some(alarm);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unreachable() -> AnchorError {
        AnchorError::unreachable("a", "no route")
    }

    fn receipt(size: u64) -> Receipt {
        Receipt { anchor: "a".to_owned(), size, at: 5, cosigned: None, detail: String::new() }
    }

    #[test]
    fn pauses_double_from_a_minute_to_an_hour() {
        let mut state = AnchorState::default();
        assert!(state.is_due("s", 0));
        for pause in [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600] {
            state.fail(&unreachable(), 1000);
            assert_eq!(state.next_attempt, 1000 + pause);
            assert!(!state.is_due("s", 1000 + pause - 1));
            assert!(state.is_due("s", 1000 + pause));
            assert!(state.is_due("s", 999), "the clock was set back");
        }
        state.succeed("o", "s", &receipt(7), 9000);
        assert!(!state.is_due("s", u64::MAX), "it has this seal");
        assert!(state.is_due("t", 9000));
        assert_eq!(state.last_failure.as_ref().unwrap().kind, "unreachable");
        state.failures = u32::MAX;
        state.fail(&unreachable(), u64::MAX);
        assert_eq!((state.failures, state.next_attempt), (u32::MAX, u64::MAX));
    }

    #[test]
    fn alarms_stay_and_the_largest_size_never_falls() {
        let mut state = AnchorState::default();
        state.succeed("o", "s", &receipt(7), 1);
        state.fail(&AnchorError::Rollback { anchor: "a".to_owned(), theirs: 7, ours: 5 }, 2);
        let rollback = Alarm::Rollback { at: 2, theirs: 7, ours: 5 };
        assert_eq!(state.alarm, Some(rollback));
        state.fail(&AnchorError::Rollback { anchor: "a".to_owned(), theirs: 7, ours: 6 }, 3);
        state.succeed("o", "t", &receipt(6), 4);
        assert_eq!((state.alarm, state.acknowledged, state.last_size), (Some(rollback), 7, 6));
        state.fail(&AnchorError::Fork { anchor: "a".to_owned(), size: 6 }, 5);
        assert_eq!(state.alarm, Some(Alarm::Fork { at: 5, size: 6 }));
        state.fail(&AnchorError::Rollback { anchor: "a".to_owned(), theirs: 7, ours: 6 }, 6);
        assert_eq!(state.alarm, Some(Alarm::Fork { at: 5, size: 6 }));
    }

    #[test]
    fn a_lost_state_is_an_alarm() {
        let mut state = State::default();
        state.anchors.insert("a".to_owned(), AnchorState::default());
        let bytes = serde_json::to_vec(&state).unwrap();
        assert_eq!(State::parse(&bytes, ["a"].into_iter()), state);
        for damaged in [b"".as_slice(), b"{}", &bytes[..bytes.len() - 3], b"\xff"] {
            let read = State::parse(damaged, ["a"].into_iter());
            assert_eq!(read.anchors["a"].alarm, Some(Alarm::StateLost));
        }
        assert_eq!(
            State::parse(&bytes, ["b"].into_iter()).anchors["b"].alarm,
            Some(Alarm::StateLost)
        );
        assert!(State::parse(&bytes, [].into_iter()).anchors.is_empty());
    }
}
