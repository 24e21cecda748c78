//! When denials call for a rollback: counted for each session and principal, so that nobody's
//! denials count against anyone else. Pure: whoever feeds it says when each denial was.

use std::collections::HashMap;
use std::collections::VecDeque;

use wardkeep_evidence::hash::sha256;
use wardkeep_evidence::record::Principal;

use crate::snapshot::SnapshotId;

/// When denials call for a rollback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thresholds {
    /// How long a denial counts, in seconds.
    pub window: i64,
    /// From how many on a rollback is recommended.
    pub recommend: usize,
    /// At how many it happens by itself.
    pub automatic: usize,
    /// How many sessions and principals are counted for at once.
    pub counters: usize,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self { window: 120, recommend: 3, automatic: 5, counters: 4096 }
    }
}

/// What a denial calls for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// Nothing yet.
    None,
    /// Tell the owner how to roll back.
    Recommend {
        /// How many denials there were.
        denials: usize,
    },
    /// Roll back what that session changed. The count begins anew.
    Automatic {
        /// How many denials there were.
        denials: usize,
    },
}

/// Denials of the last moments. Bounded, however many sessions there are: the one that was silent
/// for longest is forgotten first.
#[derive(Debug, Clone, Default)]
pub struct Denials {
    thresholds: Thresholds,
    counters: HashMap<(Key, Principal), Counter>,
    // Counts notes, to tell who was silent for longest.
    turn: u64,
}

/// Of a session's name, which may be of any length.
type Key = [u8; 32];

#[derive(Debug, Clone, Default)]
struct Counter {
    times: VecDeque<i64>,
    turn: u64,
}

impl Denials {
    /// With other thresholds.
    #[must_use]
    pub fn new(thresholds: Thresholds) -> Self {
        Self { thresholds, ..Self::default() }
    }

    /// Notes a denial at `time`, in seconds since 1970. After a restart the denials of the journal
    /// are noted again, in their order: the same counts come out.
    pub fn note(&mut self, session: &str, principal: Principal, time: i64) -> Call {
        let Thresholds { window, recommend, automatic, counters } = self.thresholds;
        let key = (sha256(session.as_bytes()), principal);
        if !self.counters.contains_key(&key) && self.counters.len() >= counters {
            self.make_room(time);
        }
        self.turn += 1;
        let counter = self.counters.entry(key).or_default();
        counter.turn = self.turn;
        // A clock that was set back makes nothing count for ever.
        counter
            .times
            .retain(|noted| time.saturating_sub(*noted).unsigned_abs() < window.unsigned_abs());
        counter.times.push_back(time);
        let denials = counter.times.len();
        if denials >= automatic {
            self.counters.remove(&key);
            return Call::Automatic { denials };
        }
        if denials >= recommend { Call::Recommend { denials } } else { Call::None }
    }

    /// For how many sessions and principals denials are remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.counters.len()
    }

    /// Whether none are remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counters.is_empty()
    }

    fn make_room(&mut self, time: i64) {
        let window = self.thresholds.window.unsigned_abs();
        self.counters.retain(|_, counter| {
            let newest = counter.times.back();
            newest.is_some_and(|newest| time.saturating_sub(*newest).unsigned_abs() < window)
        });
        // A quarter at once, so that this is not done for every note.
        let keep = self.thresholds.counters.saturating_sub(self.thresholds.counters / 4 + 1);
        if self.counters.len() > keep {
            let mut turns: Vec<u64> = self.counters.values().map(|counter| counter.turn).collect();
            turns.sort_unstable();
            let oldest = turns[turns.len() - keep..].first().copied().unwrap_or(u64::MAX);
            self.counters.retain(|_, counter| counter.turn >= oldest);
        }
    }
}

/// The command that the owner runs to roll back.
#[must_use]
pub fn command(snapshot: SnapshotId) -> String {
    format!("wardkeep rollback {snapshot}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WEB: Principal = Principal::Web;

    #[test]
    fn three_recommend_five_act_and_the_count_begins_anew() {
        let mut denials = Denials::default();
        let calls: Vec<Call> = (0..6).map(|time| denials.note("s", WEB, time)).collect();
        assert_eq!(calls[..2], [Call::None; 2]);
        assert_eq!(calls[2], Call::Recommend { denials: 3 });
        assert_eq!(calls[3], Call::Recommend { denials: 4 });
        assert_eq!(calls[4], Call::Automatic { denials: 5 });
        // Row 22: a single further denial does not roll back again.
        assert_eq!(calls[5], Call::None);
    }

    #[test]
    fn nobody_counts_for_another() {
        let mut denials = Denials::default();
        for time in 0..4 {
            denials.note("a", WEB, time);
        }
        assert_eq!(denials.note("b", WEB, 4), Call::None);
        assert_eq!(denials.note("a", Principal::User, 4), Call::None);
        assert_eq!(denials.note("a", WEB, 4), Call::Automatic { denials: 5 });
    }

    #[test]
    fn old_denials_do_not_count_whatever_the_clock_does() {
        let mut denials = Denials::default();
        for time in [0, 1, 120, 240, 360] {
            assert_eq!(denials.note("s", WEB, time), Call::None, "{time}");
        }
        assert_eq!(denials.note("s", WEB, i64::MIN), Call::None);
        assert_eq!(denials.note("s", WEB, i64::MAX), Call::None);
    }

    #[test]
    fn any_number_of_sessions_takes_bounded_room() {
        let mut denials = Denials::new(Thresholds { counters: 100, ..Thresholds::default() });
        for session in 0..10_000 {
            denials.note(&format!("{session}{}", "x".repeat(1000)), WEB, 0);
            // One that is at work is not forgotten for the others.
            if session == 5000 {
                for _ in 0..4 {
                    denials.note("busy", WEB, 0);
                }
            }
            if session == 5020 {
                assert_eq!(denials.note("busy", WEB, 0), Call::Automatic { denials: 5 });
            }
        }
        assert!(denials.len() <= 100);
    }

    proptest! {
        #[test]
        fn the_same_denials_give_the_same_calls(
            notes in proptest::collection::vec((0..3u8, 0..2u8, 0..20i64), 0..60)
        ) {
            let run = || {
                let mut denials = Denials::default();
                let mut time = 0;
                notes.iter().map(|(session, principal, wait)| {
                    time += wait;
                    let principal = if *principal == 0 { WEB } else { Principal::Tool };
                    denials.note(&session.to_string(), principal, time)
                }).collect::<Vec<_>>()
            };
            let calls = run();
            prop_assert_eq!(&calls, &run());
            // Between two automatic ones of a key lie at least five denials of it.
            for session in 0..3u8 {
                for principal in 0..2u8 {
                    let mut since = 0;
                    for ((one, other, _), call) in notes.iter().zip(&calls) {
                        if (*one, *other) == (session, principal) {
                            since += 1;
                            if matches!(call, Call::Automatic { .. }) {
                                prop_assert!(since >= 5);
                                since = 0;
                            }
                        }
                    }
                }
            }
        }
    }
}
