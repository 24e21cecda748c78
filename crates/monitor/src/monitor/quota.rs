//! How much those who see other files than the daemon, and runs behind the egress proxy, may have written down: a full
//! disk stops all agents.

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
/// What the proxy of one run may have written at once: a request and its outcome are some three kilobytes, so that a
/// third of a million of them pass as fast as they come. No run takes from another's.
const RUN: Share = Share { most: 1 << 30, second: 64 << 10 };
/// Mounts, or runs, that are told apart.
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

    /// Whether the owner should be told that it is spent.
    fn tells(&mut self, spent: bool, now: i64) -> bool {
        let tells = spent && self.told.is_none_or(|told| now.saturating_sub(told) >= TOLD);
        if tells {
            self.told = Some(now);
        }
        tells
    }
}

/// What was written for whom.
#[derive(Debug, Default)]
pub(super) struct Quota {
    each: HashMap<String, Bucket>,
    all: Option<Bucket>,
    runs: HashMap<String, Bucket>,
}

impl Quota {
    fn of(&mut self, mounts: &str, now: i64) -> (&mut Bucket, &mut Bucket) {
        let all = self.all.get_or_insert_with(|| Bucket::new(ALL, now));
        all.fill(ALL, now);
        (bucket(&mut self.each, mounts, EACH, now), all)
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
        own.tells(spent, now)
    }

    fn is_run_spent(&mut self, session: &str, now: i64) -> bool {
        bucket(&mut self.runs, session, RUN, now).left == 0
    }

    /// Counts what was written for a run; gives whether the owner should be told.
    fn spend_of_run(&mut self, session: &str, bytes: u64, now: i64) -> bool {
        let own = bucket(&mut self.runs, session, RUN, now);
        own.left = own.left.saturating_sub(bytes);
        own.tells(own.left == 0, now)
    }
}

/// The one of a name, filled up to now.
fn bucket<'a>(
    all: &'a mut HashMap<String, Bucket>,
    name: &str,
    share: Share,
    now: i64,
) -> &'a mut Bucket {
    all.values_mut().for_each(|one| one.fill(share, now));
    if all.len() >= MOST && !all.contains_key(name) {
        // Whoever has spent least loses least.
        let fullest = all.iter().max_by_key(|(_, one)| one.left);
        let fullest = fullest.map(|(name, _)| name.clone());
        fullest.map(|name| all.remove(&name));
    }
    all.entry(name.to_owned()).or_insert_with(|| Bucket::new(share, now))
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
            let message = "a confined agent had so much written down that its hooks are denied until some time has passed";
            self.tell_spent(mounts, message)?;
        }
        answer
    }

    /// Whether the proxy of a run has had so much written down that no more requests are.
    pub(super) fn is_run_spent(&self, session: &str) -> bool {
        held(&self.quota).is_run_spent(session, self.store.now().unix())
    }

    /// Answers the proxies of these runs, and counts what is written for them, to each the same.
    ///
    /// # Errors
    /// When there is no answer, or the owner could not be told that a share is spent.
    pub(super) fn metered_runs<T>(
        &self,
        sessions: &[&str],
        answer: impl FnOnce() -> std::result::Result<T, AskError>,
    ) -> std::result::Result<T, AskError> {
        let before = written_here();
        let answer = answer();
        let bytes = written_here().wrapping_sub(before);
        let (each, now) = (bytes.div_ceil(sessions.len().max(1) as u64), self.store.now().unix());
        for session in sessions {
            if held(&self.quota).spend_of_run(session, each, now) {
                let message = format!(
                    "the proxy of `{session}` had so much written down that what it asks is denied until some time has passed"
                );
                self.tell_spent(session, &message)?;
            }
        }
        answer
    }

    fn tell_spent(&self, whose: &str, message: &str) -> Result<()> {
        let session = format!("quota:{whose}");
        let who = Who::new("wardkeep", &session, std::path::Path::new("/"), Principal::Sys);
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
    fn a_run_that_floods_takes_from_no_other() {
        let mut quota = Quota::default();
        // A hundred rounds of scripts/bench-egress in half a minute.
        for _ in 0..300_000 {
            assert!(!quota.is_run_spent("run:1", 0));
            assert!(!quota.spend_of_run("run:1", 3200, 0));
        }
        let (mut told, mut bytes) = (0, 300_000 * 3200_u64);
        for now in 0..600 {
            for _ in 0..10_000 {
                if !quota.is_run_spent("run:1", now) {
                    told += u32::from(quota.spend_of_run("run:1", 3200, now));
                    bytes += 3200;
                }
            }
        }
        assert!(bytes < RUN.most + 601 * (RUN.second + 3200), "{bytes}");
        assert_eq!(told, 1);
        assert!(!quota.is_run_spent("run:2", 600) && !quota.is_spent("mnt:[1]", 600));
    }

    #[test]
    fn a_run_that_has_spent_its_share_sends_nothing() {
        use wardkeep_evidence::time::Timestamp;

        use crate::journal::Clock;
        use crate::monitor::{EgressBody, EgressSeveral, MonitorConfig, WhoBody};
        use crate::store::StoreConfig;

        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        std::fs::create_dir(&state).unwrap();
        let clock = Clock::new(|| Timestamp::from_unix(1_800_000_000).unwrap());
        let owner = rustix::process::getuid().as_raw();
        let config = MonitorConfig::new(StoreConfig::new(clock), owner);
        let monitor = Monitor::open(&state, config).unwrap();
        let who = |session: &str| WhoBody {
            agent: "egress".to_owned(),
            session: session.to_owned(),
            workspace: folder.path().to_owned(),
            principal: None,
            taint: Vec::new(),
            parents: Vec::new(),
        };
        let asks = |session: &str| EgressBody::Request {
            who: who(session),
            url: "https://93.184.215.14/".to_owned(),
            method: "CONNECT".to_owned(),
            way: "connect".to_owned(),
            size: 0,
            content: None,
            addresses: Vec::new(),
            refused: None,
        };
        let first = monitor.egress(&asks("egress:1")).unwrap();
        assert!(first.allowed, "{first:?}");
        let left = held(&monitor.quota).runs["egress:1"].left;
        assert!(left < RUN.most, "what is written counts");
        let both = EgressSeveral { all: vec![asks("egress:1"), asks("egress:1")] };
        assert!(monitor.egress_several(&both).is_ok());
        assert!(held(&monitor.quota).runs["egress:1"].left < left, "also together");
        held(&monitor.quota).spend_of_run("egress:1", RUN.most, 1_800_000_000);
        let before = written_here();
        let refused = monitor.egress(&asks("egress:1")).unwrap();
        assert_eq!((refused.allowed, refused.rule.as_str()), (false, "egress-records"));
        for one in monitor.egress_several(&both).unwrap().all {
            assert_eq!(one.unwrap().rule, "egress-records");
        }
        assert_eq!(written_here(), before);
        // What became of the one that was allowed is written all the same, and others go on.
        let outcome = EgressBody::Outcome {
            who: who("egress:1"),
            request: first.record,
            sent: 1,
            received: 1,
            status: None,
            address: None,
            ended: "done".to_owned(),
            why: None,
            took: 1,
        };
        assert!(monitor.egress(&outcome).unwrap().record.is_some());
        assert!(monitor.egress(&asks("egress:2")).unwrap().allowed);
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
