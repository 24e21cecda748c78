//! What the owner's signed rules say of a proposal.

use std::path::Path;

use serde::Serialize;
use wardkeep_detect::finding::Channel;
use wardkeep_detect::scan::Detector;
use wardkeep_evidence::record::Principal;
use wardkeep_guard::facts::{Facts, FileFacts, Protection, Sensitivity};
use wardkeep_guard::memory::is_memory;
use wardkeep_guard::surface::{Act, Surface};
use wardkeep_guard::verdict::Verdict;
use wardkeep_identity::changes::{Change, ChangeKind, Changes};
use wardkeep_monitor::identity::Place;
use wardkeep_policy::store::PolicyStore;

use crate::ui::Line;

/// Most bytes of a file that are judged for the rules.
const JUDGED: usize = 1 << 20;

/// A rule of the owner's that speaks against a change.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Objection {
    name: String,
    rule: String,
    verdict: &'static str,
    reason: String,
}

impl Objection {
    /// Whether the rule forbids it, whoever approves.
    pub(super) fn forbids(&self) -> bool {
        self.verdict == Verdict::Deny.as_str()
    }

    pub(super) fn is_about(&self, name: &str) -> bool {
        self.name == name
    }

    pub(super) fn rule(&self) -> &str {
        &self.rule
    }

    pub(super) fn line(&self) -> Line {
        let line = Line::default().warning("your rules: ");
        line.plain(format!("{}: {} [{}: {}]", self.name, self.reason, self.rule, self.verdict))
    }
}

/// What the rules in force say of each change, as a write or a deletion by the user.
pub(super) fn objections(state: &Path, place: &Place, changes: &Changes) -> Vec<Objection> {
    let owner = rustix::process::geteuid().as_raw();
    let policy = PolicyStore::new(state, owner);
    let rules = wardkeep_monitor::rules::in_force(&policy.settings().set);
    // Without rules of the owner's there is nothing to ask, and nothing to scan for.
    if rules.own().rules().is_empty() && rules.doubt().is_none() {
        return Vec::new();
    }
    let detector = Detector::new();
    let mut found = Vec::new();
    for change in &changes.changes {
        let facts = facts(place, change, &detector);
        let hits = rules.own().judge(&facts);
        found.extend(hits.iter().chain(rules.doubt()).map(|hit| Objection {
            name: change.name.to_string(),
            rule: hit.rule.to_string(),
            verdict: hit.verdict.as_str(),
            reason: hit.reason.to_string(),
        }));
    }
    found
}

fn facts(place: &Place, change: &Change, detector: &Detector) -> Facts {
    let path = place.path().join(change.name.as_path());
    let memory = is_memory(&path, place.path());
    let surface = if memory { Surface::DurableMemory } else { Surface::ControlPlane };
    let act = if change.kind == ChangeKind::Deleted { Act::Delete } else { Act::Write };
    let subject = path.to_string_lossy().into_owned();
    let mut facts = Facts::new(Principal::User, surface, act, subject.clone());
    facts.file = Some(FileFacts {
        path: subject,
        memory,
        protection: Protection::Protected,
        sensitivity: Sensitivity::None,
        resolved: true,
    });
    if let Some(bytes) = &change.bytes {
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(JUDGED)]);
        let scan = detector.scan(&text, Channel::Policy);
        facts.scan = scan.verdict;
        for finding in &scan.findings {
            if !facts.categories.contains(&finding.category) {
                facts.categories.push(finding.category);
            }
        }
    }
    facts
}
