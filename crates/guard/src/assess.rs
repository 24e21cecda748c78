//! From an action to what rules see of it.

use wardkeep_detect::finding::{Category, Channel, Finding, Scan, Verdict};
use wardkeep_detect::leak::OutputGuard;
use wardkeep_detect::scan::Detector;
use wardkeep_evidence::record::Principal;

use crate::action::Action;
use crate::facts::Facts;
use crate::surface::{Act, Surface};
use crate::taint::Taint;

/// Rules whose finding is a demand to say a made-up phrase: nobody asks for that in earnest.
const FORCED_PHRASE: [&str; 2] = ["format.canary", "format.say-only"];

/// What is known around an action.
#[derive(Debug, Clone, Copy, Default)]
pub struct Around {
    /// Taint of the parents that were named, and of what the content repeats.
    pub direct: Taint,
    /// Taint of everything that the session has seen.
    pub ambient: Taint,
    /// Whether the owner has approved exactly this.
    pub approved: bool,
}

/// Scans the content of an action in the way that its act asks for; `None` where there is nothing
/// to scan. A reply is held against the session's prompt.
#[must_use]
pub fn scan(action: &Action<'_>, detector: &Detector, guard: &OutputGuard) -> Option<Scan> {
    let text = action.content?;
    match action.act {
        Act::Receive | Act::Return | Act::Install | Act::Change => {
            Some(detector.scan(text, channel(action)))
        }
        Act::Write | Act::Rename if action.surface != Surface::FileSystem => {
            Some(detector.scan(text, channel(action)))
        }
        Act::Reply => Some(guard.check(text)),
        // What the agent does is judged by its effects; only what it carries is looked for.
        Act::Call | Act::Send => Some(carried(detector.scan(text, Channel::Document))),
        _ => None,
    }
}

fn channel(action: &Action<'_>) -> Channel {
    match (action.surface, action.act, action.principal) {
        (Surface::DurableMemory, ..) => Channel::Memory,
        (Surface::SkillInstall, ..) => Channel::Skill,
        (_, Act::Receive | Act::Change, Principal::User | Principal::Sys) => Channel::User,
        (_, Act::Return, _) => Channel::ToolOutput,
        _ => Channel::Document,
    }
}

/// Only what says that secrets or data are in it.
fn carried(scan: Scan) -> Scan {
    let findings: Vec<Finding> = scan
        .findings
        .into_iter()
        .filter(|finding| {
            matches!(finding.category, Category::SensitiveFileContent | Category::DataExfiltration)
        })
        .collect();
    let score = wardkeep_detect::scan::score(&findings);
    Scan { verdict: Verdict::Clean, score, findings }
}

/// The taint that findings give a text.
#[must_use]
pub fn taint_of(scan: &Scan) -> Taint {
    let doubtful = scan.verdict != Verdict::Clean;
    scan.findings.iter().fold(Taint::NONE, |taint, finding| {
        taint
            | match finding.category {
                // A secret is one however harmless the text around it.
                Category::SensitiveFileContent => Taint::SECRET_RISK,
                _ if !doubtful => Taint::NONE,
                Category::SystemImpersonation
                | Category::IndirectInjection
                | Category::BehaviorManipulation
                | Category::FalseContextInjection
                | Category::EncodedPayload => Taint::INJECTION_SUSPECT | Taint::UNTRUSTED,
                Category::FormatOverride if FORCED_PHRASE.contains(&finding.rule.as_ref()) => {
                    Taint::INJECTION_SUSPECT | Taint::UNTRUSTED
                }
                Category::ExtractionAttempt
                | Category::ManyShotPriming
                | Category::FormatOverride
                | Category::DataExfiltration => Taint::UNTRUSTED,
            }
    })
}

/// What rules see.
#[must_use]
pub fn facts(action: &Action<'_>, around: Around, scan: Option<&Scan>) -> Facts {
    let mut facts = Facts::new(action.principal, action.surface, action.act, action.subject);
    facts.direct = around.direct | action.taint | action.origin();
    facts.ambient = around.ambient;
    facts.approved = around.approved;
    if let Some(scan) = scan {
        facts.scan = scan.verdict;
        // A reply that gives the prompt away is not an attack on the one who reads it.
        facts.direct |= if action.act == Act::Reply { leaked(scan) } else { taint_of(scan) };
        for finding in &scan.findings {
            if !facts.categories.contains(&finding.category) {
                facts.categories.push(finding.category);
            }
        }
    }
    facts.file.clone_from(&action.file);
    facts.network.clone_from(&action.network);
    facts.skill = action.skill;
    facts.sandbox = action.sandbox;
    facts.open_proxy = action.open_proxy;
    facts
}

fn leaked(scan: &Scan) -> Taint {
    if scan.findings.is_empty() { Taint::NONE } else { Taint::SECRET_RISK }
}
