//! How much those who see other files than the daemon may have written down: a full disk stops all agents.

use std::collections::HashMap;

use wardkeep_evidence::record::Principal;
use wardkeep_guard::alert::{Category, Severity};

use super::seen::Seen;
use super::{AskError, Monitor, Result, Who, held};
use crate::store::written_here;

/// What processes with the same mounts may have written at once. An agent that asks fifty times a second, with
/// four kilobytes of record each, has half an hour.
const EACH: Share = Share { most: 256 << 20, second: 64 << 10 };
/// The same for all of them together: mounts can be made.
const ALL: Share = Share { most: 1 << 30, second: 256 << 10 };
/// Mounts that are told apart.
const MOST: usize = 256;
/// Seconds after which a time that is earlier than the last one is that of another clock.
const SET_BACK: i64 = 3600;
/// Seconds in which the owner is told once.
const TOLD: i64 = 3600;

/// So many bytes, and so many more with each second.
#[derive(Debug, Clone, Copy)]
struct Share {
    most: u64,
    second: u64,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    left: u64,
    at: i64,
    told: Option<i64>,
}

impl Bucket {
    fn new(share: Share, now: i64) -> Self {
        Self { left: share.most, at: now, told: None }
    }

    fn fill(&mut self, share: Share, now: i64) {
        // A clock that was set back gives nothing, nor does it when it has come as far again.
        let passed = u64::try_from(now.saturating_sub(self.at)).unwrap_or(0);
        let more = passed.saturating_mul(share.second);
        self.left = self.left.saturating_add(more).min(share.most);
        if passed > 0 || self.at.saturating_sub(now) > SET_BACK {
            self.at = now;
        }
    }
}

/// What was written for whom.
#[derive(Debug, Default)]
pub(super) struct Quota {
    each: HashMap<String, Bucket>,
    all: Option<Bucket>,
}

impl Quota {
    fn of(&mut self, mounts: &str, now: i64) -> (&mut Bucket, &mut Bucket) {
        let all = self.all.get_or_insert_with(|| Bucket::new(ALL, now));
        all.fill(ALL, now);
        self.each.values_mut().for_each(|one| one.fill(EACH, now));
        if self.each.len() >= MOST && !self.each.contains_key(mounts) {
            // Whoever has spent least loses least.
            let fullest = self.each.iter().max_by_key(|(_, one)| one.left);
            let fullest = fullest.map(|(name, _)| name.clone());
            fullest.map(|name| self.each.remove(&name));
        }
        let own = self.each.entry(mounts.to_owned()).or_insert_with(|| Bucket::new(EACH, now));
        (own, all)
    }

    fn is_spent(&mut self, mounts: &str, now: i64) -> bool {
        let (own, all) = self.of(mounts, now);
        own.left == 0 || all.left == 0
    }

    /// Counts what was written; gives whether the owner should be told.
    pub(super) fn spend(&mut self, mounts: &str, bytes: u64, now: i64) -> bool {
        let (own, all) = self.of(mounts, now);
        own.left = own.left.saturating_sub(bytes);
        all.left = all.left.saturating_sub(bytes);
        let spent = own.left == 0 || all.left == 0;
        let tells = spent && own.told.is_none_or(|told| now.saturating_sub(told) >= TOLD);
        if tells {
            own.told = Some(now);
        }
        tells
    }
}

impl Monitor {
    /// Answers someone, and counts what is written for it.
    ///
    /// # Errors
    /// When there is no answer, or too much was written for them already.
    pub(super) fn metered<T>(
        &self,
        seen: &Seen,
        answer: impl FnOnce(&Seen) -> std::result::Result<T, AskError>,
    ) -> std::result::Result<T, AskError> {
        let Some(mounts) = seen.other() else { return answer(seen) };
        let now = self.store.now().unix();
        if held(&self.quota).is_spent(mounts, now) {
            return Err(AskError::Spent);
        }
        let before = written_here();
        let answer = answer(seen);
        let bytes = written_here().wrapping_sub(before);
        let tells = held(&self.quota).spend(mounts, bytes, self.store.now().unix());
        if tells {
            self.tell_spent(mounts)?;
        }
        answer
    }

    fn tell_spent(&self, mounts: &str) -> Result<()> {
        let session = format!("quota:{mounts}");
        let who = Who::new("wardkeep", &session, std::path::Path::new("/"), Principal::Sys);
        let message = "a confined agent had so much written down that its hooks are denied until some time has passed";
        let next = Some("see `wardkeep log` for what it asks".to_owned());
        let kind = (Category::RateLimit, Severity::High);
        let _ = self.alert(&who, "QuotaSpent", kind, message.to_owned(), next, None)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_honest_agent_is_not_held_up_and_a_flood_is() {
        let mut quota = Quota::default();
        for now in 0..1800 {
            for _ in 0..50 {
                assert!(!quota.is_spent("mnt:[1]", now), "{now}");
                assert!(!quota.spend("mnt:[1]", 4096, now));
            }
        }
        // As fast as the daemon writes.
        let mut told = 0;
        let mut bytes = 0u64;
        for now in 1800..2400 {
            for _ in 0..425 {
                if !quota.is_spent("mnt:[2]", now) {
                    told += u32::from(quota.spend("mnt:[2]", 4096, now));
                    bytes += 4096;
                }
            }
        }
        assert!((256 << 20..320 << 20).contains(&bytes), "{bytes}");
        assert_eq!(told, 1);
        assert!(!quota.is_spent("mnt:[1]", 2400), "others go on");
        // It may go on, too, when time has passed, and not because the clock was set back.
        quota.spend("mnt:[2]", u64::MAX >> 40, 2400);
        assert!(quota.is_spent("mnt:[2]", 2000));
        assert!(!quota.is_spent("mnt:[2]", 2600));
    }

    #[test]
    fn no_second_is_paid_twice() {
        let mut quota = Quota::default();
        quota.spend("mnt:[1]", 256 << 20, 0);
        let mut bytes = 0;
        for now in 0..600 {
            // One that began ten seconds ago, and one that begins now.
            for at in [now - 10, now] {
                if !quota.is_spent("mnt:[1]", at) {
                    let left = quota.each["mnt:[1]"].left;
                    quota.spend("mnt:[1]", left, at);
                    bytes += left;
                }
            }
        }
        assert!(bytes <= 600 * EACH.second, "{bytes}");
        // Where a clock was wrong for long, it is not waited for.
        quota.spend("mnt:[1]", 1 << 40, 1_000_000);
        assert!(quota.is_spent("mnt:[1]", 1000) && !quota.is_spent("mnt:[1]", 1060));
    }

    #[test]
    fn many_mounts_have_a_share_together() {
        let mut quota = Quota::default();
        for number in 0..2000 {
            let mounts = format!("mnt:[{number}]");
            if !quota.is_spent(&mounts, 0) {
                quota.spend(&mounts, 1 << 20, 0);
            }
        }
        assert!(quota.each.len() <= MOST);
        assert!(quota.is_spent("mnt:[new]", 0));
        assert!(!quota.is_spent("mnt:[new]", 60));
    }
}
