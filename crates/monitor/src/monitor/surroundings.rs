//! What confines the agent, looked at when a session begins.

use wardkeep_evidence::json::Value;
use wardkeep_evidence::time::Timestamp;
use wardkeep_guard::alert::{Category, Severity};
use wardkeep_guard::facts::Compliance;
use wardkeep_sandbox::audit::{self, Probes, Profile, Report, Roots};

use super::{Monitor, held};
use crate::index::Asked;
use crate::notices;
use crate::store::StoreReader;

/// How long the same finding is not told again, in seconds. It is recorded all the same.
const AGAIN: i64 = 24 * 60 * 60;
/// Earlier alerts that are looked through for one of the same agent.
const EARLIER: u32 = 64;

/// Whose surroundings are looked at when a session begins: those of the hook, which the agent has
/// started and which is confined as the agent is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Surroundings {
    /// Nobody's.
    #[default]
    Unseen,
    /// Those of this process.
    Own,
    /// Those of another process. Nothing is taken from what it says itself.
    Of(u32),
}

impl Surroundings {
    fn audit(self, profile: &Profile) -> Option<Report> {
        match self {
            Self::Unseen => None,
            Self::Own => Some(audit::audit(&Roots::here(), &Probes::quick(), profile)),
            Self::Of(pid) => {
                Some(audit::audit(&Roots::of_process(pid), &Probes::default(), profile))
            }
        }
    }
}

/// What was found, for a session's first record.
pub(super) struct Around {
    pub(super) compliance: Compliance,
    pub(super) value: Value<'static>,
    /// Whether the owner was told the same of this agent not long ago.
    pub(super) told: bool,
}

impl Monitor {
    /// Looks around, where that is to be done.
    pub(super) fn look_around(&self, agent: &str, whose: Surroundings) -> Option<Around> {
        let report = whose.audit(&self.config.sandbox)?;
        let compliance = match report.compliance {
            audit::Compliance::Full => Compliance::Full,
            audit::Compliance::Partial => Compliance::Partial,
            audit::Compliance::None => Compliance::None,
        };
        let told = compliance != Compliance::Full && self.was_told(agent, report.compliance);
        Some(Around { compliance, value: value(&report), told })
    }

    /// Whether the newest alert of the last day on this agent's confinement said the same. Where that
    /// cannot be told, it was not told.
    fn was_told(&self, agent: &str, compliance: audit::Compliance) -> bool {
        let since = Timestamp::from_unix(self.store.now().unix() - AGAIN);
        let asked = Asked {
            since,
            category: Some(Category::Sandbox),
            severity: Some(Severity::High),
            ..Asked::default()
        };
        let Ok(reader) = StoreReader::open(self.store.path()) else { return false };
        let mut index = held(&self.index);
        if index.catch_up(self.store.journal().folder(), &mut |_| {}).is_err() {
            return false;
        }
        let Ok(found) = notices::list(&reader, &index, &asked, true, EARLIER) else {
            return false;
        };
        let rule = format!("sandbox-{}", compliance.as_str());
        let of_agent = found.notices.iter().filter(|notice| {
            notice.session.strip_prefix(agent).is_some_and(|rest| rest.starts_with(':'))
        });
        let newest = of_agent.max_by_key(|notice| notice.index);
        newest.is_some_and(|notice| notice.rule.as_deref() == Some(rule.as_str()))
    }
}

/// What the record holds of a report.
fn value(report: &Report) -> Value<'static> {
    let words = |words: &[String]| {
        Value::Array(words.iter().map(|word| Value::from(word.clone())).collect())
    };
    let findings = report.findings.iter().filter(|one| one.state != audit::State::Held);
    let findings = findings.map(|one| {
        Value::from([
            ("id", Value::from(one.id.clone())),
            ("required", Value::from(one.required)),
            ("message", Value::from(one.message.clone())),
        ])
    });
    Value::from([
        ("v", Value::from(1u64)),
        ("compliance", Value::from(report.compliance.as_str())),
        ("score", Value::from(u64::from(report.score))),
        ("in_container", Value::from(report.in_container)),
        ("seccomp", Value::from(report.seccomp_mode.clone().unwrap_or_else(|| "unknown".into()))),
        ("namespaces", words(&report.namespaces)),
        ("readonly_root", Value::from(report.readonly_root)),
        ("findings", Value::Array(findings.collect())),
    ])
}
