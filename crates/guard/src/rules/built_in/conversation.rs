//! Messages that reach the model, what tools give it, and what it answers.

use wardkeep_detect::finding::Verdict as ScanVerdict;

use super::sentence::subject;
use super::{Effect, Rule, always, passes};
use crate::facts::Facts;
use crate::surface::{Act, Surface, is_untrusted};
use crate::taint::Taint;
use crate::verdict::Verdict;

const HERE: &[Surface] = &[Surface::ConversationIO];
const RECEIVE: &[Act] = &[Act::Receive];

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "scanner-block",
        surfaces: HERE,
        acts: RECEIVE,
        condition: "the scan of the message says block",
        effect: Effect::Demands(Verdict::Deny),
        needed: "a message without what was found",
        holds: |facts| facts.scan == ScanVerdict::Block,
        because: |facts| {
            format!("the scan blocks a message of {}{}", facts.principal, found(facts))
        },
    },
    Rule {
        id: "cio-deny-injection",
        surfaces: HERE,
        acts: RECEIVE,
        condition: "direct taint has `INJECTION_SUSPECT`",
        effect: Effect::Demands(Verdict::Deny),
        needed: "a message that does not try to steer the agent",
        holds: |facts| facts.direct.intersects(Taint::INJECTION_SUSPECT),
        because: |facts| {
            format!("a message of {} is marked INJECTION_SUSPECT{}", facts.principal, found(facts))
        },
    },
    Rule {
        id: "cio-deny-untrusted-tainted",
        surfaces: HERE,
        acts: RECEIVE,
        condition: "the principal is `SKILL`, `WEB`, `CHANNEL` or `EXTERNAL`, and the scan says suspicious or \
                    block",
        effect: Effect::Demands(Verdict::Deny),
        needed: "a message in which the scan finds nothing, or one of the owner's",
        holds: |facts| is_untrusted(facts.principal) && facts.scan >= ScanVerdict::Suspicious,
        because: |facts| {
            format!(
                "{} is not trusted, and the scan calls its message {}{}",
                facts.principal,
                facts.scan,
                found(facts)
            )
        },
    },
    Rule {
        id: "cio-redact-result",
        surfaces: HERE,
        acts: &[Act::Return],
        condition: "the scan of the result says block",
        effect: Effect::Demands(Verdict::Redact),
        needed: "a result without what was found",
        holds: |facts| facts.scan == ScanVerdict::Block,
        because: |facts| {
            format!("parts of what {} gave back are taken out{}", subject(facts), found(facts))
        },
    },
    Rule {
        id: "output-leak-detected",
        surfaces: HERE,
        acts: &[Act::Reply],
        condition: "the check of the answer says block",
        effect: Effect::Demands(Verdict::Deny),
        needed: "an answer without the prompt, a canary or a secret in it",
        holds: |facts| facts.scan == ScanVerdict::Block,
        because: |facts| format!("the answer gives away what it must not{}", found(facts)),
    },
    Rule {
        id: "output-redact-leak",
        surfaces: HERE,
        acts: &[Act::Reply],
        condition: "the check of the answer says suspicious",
        effect: Effect::Demands(Verdict::Redact),
        needed: "an answer without what was found",
        holds: |facts| facts.scan == ScanVerdict::Suspicious,
        because: |facts| format!("parts of the answer are taken out{}", found(facts)),
    },
    passes("cio-allow-clean", HERE, RECEIVE, "nothing forbids the message", always),
    passes("output-clean", HERE, &[Act::Reply], "nothing forbids the answer", always),
    passes("tool-allow-call", HERE, &[Act::Call], "nothing forbids the call", always),
    passes("tool-allow-result", HERE, &[Act::Return], "nothing forbids the result", always),
];

/// ": IndirectInjection, EncodedPayload", or nothing.
fn found(facts: &Facts) -> String {
    let kinds: Vec<String> = facts.categories.iter().map(|kind| format!("{kind:?}")).collect();
    if kinds.is_empty() { String::new() } else { format!(": {}", kinds.join(", ")) }
}
