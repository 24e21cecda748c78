//! Denials in great number: the first are written down one by one, the rest are summed up.

use std::collections::BTreeMap;

use wardkeep_evidence::time::Timestamp;

/// Denials of one session that are written down one by one within [`WINDOW`].
pub const SINGLE: u32 = 100;
/// Seconds in which they are counted.
pub const WINDOW: i64 = 60;
/// Denials after which a sum is written, however fast they come.
const CHUNK: u64 = 1000;
/// Seconds after which a sum is written.
const PAUSE: i64 = 5;
/// Rules that a sum names.
const RULES: usize = 16;

/// Denials that have no record of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sum {
    /// How many.
    pub count: u64,
    /// The first of them.
    pub from: Timestamp,
    /// The last of them.
    pub to: Timestamp,
    /// How many by each rule; beyond some, under `other`.
    pub rules: BTreeMap<String, u64>,
}

/// What becomes of a denial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Noted {
    /// It gets a record of its own.
    Single,
    /// It is the first that does not: an alert says so.
    Begins,
    /// It was counted.
    Counted,
    /// It was counted, and the sum is to be written now.
    Due(Sum),
}

/// The denials of one session.
#[derive(Debug, Default)]
pub struct Flood {
    since: Option<Timestamp>,
    singles: u32,
    sum: Option<Sum>,
}

impl Flood {
    /// Notes a denial.
    pub fn note(&mut self, rule: &str, now: Timestamp) -> Noted {
        if self.since.is_none_or(|since| now.unix().abs_diff(since.unix()) >= WINDOW.unsigned_abs())
        {
            self.since = Some(now);
            self.singles = 0;
        }
        if self.singles < SINGLE {
            self.singles += 1;
            return Noted::Single;
        }
        let begins = self.singles == SINGLE;
        if begins {
            self.singles += 1;
        }
        let sum = self.sum.get_or_insert_with(|| Sum {
            count: 0,
            from: now,
            to: now,
            rules: BTreeMap::new(),
        });
        sum.count += 1;
        sum.to = now;
        let name =
            if sum.rules.len() < RULES || sum.rules.contains_key(rule) { rule } else { "other" };
        *sum.rules.entry(name.to_owned()).or_default() += 1;
        if begins {
            return Noted::Begins;
        }
        let waited = now.unix().abs_diff(sum.from.unix()) >= PAUSE.unsigned_abs();
        if sum.count >= CHUNK || waited {
            return self.sum.take().map_or(Noted::Counted, Noted::Due);
        }
        Noted::Counted
    }

    /// What was counted and not written yet.
    pub fn take(&mut self) -> Option<Sum> {
        self.sum.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_unix(1_800_000_000 + second).unwrap()
    }

    #[test]
    fn every_denial_is_told_in_few_records() {
        let mut flood = Flood::default();
        let (mut told, mut records) = (0, 0);
        for number in 0..50_000u32 {
            match flood.note("scanner-block", at(i64::from(number / 5000))) {
                Noted::Single => {
                    told += 1;
                    records += 1;
                }
                Noted::Begins => records += 1,
                Noted::Counted => {}
                Noted::Due(sum) => {
                    told += sum.count;
                    records += 1;
                }
            }
        }
        told += flood.take().map_or(0, |sum| sum.count);
        assert_eq!(told, 50_000);
        assert!(records < 160, "{records}");
    }

    #[test]
    fn a_quiet_minute_ends_it() {
        let mut flood = Flood::default();
        for _ in 0..200 {
            flood.note("a", at(0));
        }
        assert_eq!(flood.note("a", at(61)), Noted::Single);
        assert_eq!(flood.take().map(|sum| sum.count), Some(100));
    }

    #[test]
    fn a_clock_that_jumps_back_stops_nothing() {
        let mut flood = Flood::default();
        for number in 0..10_000 {
            let noted = flood.note("a", at(-(number % 7) * 1000));
            assert_ne!(
                noted,
                Noted::Due(Sum { count: 0, from: at(0), to: at(0), rules: BTreeMap::new() })
            );
        }
    }

    #[test]
    fn rules_without_end_take_bounded_memory() {
        let mut flood = Flood::default();
        for number in 0..900 {
            flood.note(&format!("own:{number}"), at(0));
        }
        let sum = flood.take().unwrap();
        assert_eq!(sum.rules.len(), RULES + 1);
        assert_eq!(sum.rules.values().sum::<u64>(), sum.count);
    }
}
