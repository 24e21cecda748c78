//! What the agent remembers from one session to the next.

use wardkeep_evidence::record::Principal;

use super::sentence::{deed, source, subject};
use super::{CHANGES, Effect, FOREIGN, Rule, always, passes};
use crate::facts::Protection;
use crate::surface::{Act, Surface, is_untrusted};
use crate::taint::Taint;
use crate::verdict::Verdict;

const HERE: &[Surface] = &[Surface::DurableMemory];

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "mi-deny-untrusted-principal",
        surfaces: HERE,
        acts: CHANGES,
        condition: "the principal is `SKILL`, `WEB`, `CHANNEL` or `EXTERNAL`",
        effect: Effect::Demands(Verdict::Deny),
        needed: "the write comes from USER or SYS",
        holds: |facts| is_untrusted(facts.principal),
        because: |facts| format!("{} is not trusted to {}", facts.principal, deed(facts)),
    },
    Rule {
        id: "mi-deny-tool",
        surfaces: HERE,
        acts: CHANGES,
        condition: "the principal is `TOOL`",
        effect: Effect::Demands(Verdict::Deny),
        needed: "the write comes from USER or SYS",
        holds: |facts| facts.principal == Principal::Tool,
        because: |facts| format!("a tool of its own accord may not {}", deed(facts)),
    },
    Rule {
        id: "mi-deny-tainted",
        surfaces: HERE,
        acts: CHANGES,
        condition: "direct taint has `UNTRUSTED`, `INJECTION_SUSPECT`, `WEB_DERIVED` or `SKILL_OUTPUT`, or \
                    ambient taint has `INJECTION_SUSPECT`",
        effect: Effect::Demands(Verdict::Deny),
        needed: "content that nobody else wrote, in a session without a suspected injection",
        holds: |facts| {
            facts.direct.intersects(FOREIGN) || facts.ambient.intersects(Taint::INJECTION_SUSPECT)
        },
        because: |facts| {
            let source = source(facts, FOREIGN, Taint::INJECTION_SUSPECT);
            format!("{} may not {}: {source}", facts.principal, deed(facts))
        },
    },
    Rule {
        id: "mi-stage-protected",
        surfaces: HERE,
        acts: CHANGES,
        condition: "the file is protected",
        effect: Effect::Demands(Verdict::Stage),
        needed: "the owner applies it from the staging folder, or takes the file out of the protect tier",
        holds: |facts| {
            facts.file.as_ref().is_some_and(|file| file.protection == Protection::Protected)
        },
        because: |facts| {
            format!("{} is protected: the change is staged for the owner", subject(facts))
        },
    },
    Rule {
        id: "mi-taint-read",
        surfaces: HERE,
        acts: &[Act::Read],
        condition: "the reader is `SKILL`, `WEB`, `CHANNEL` or `EXTERNAL`",
        effect: Effect::Adds(Taint::UNTRUSTED),
        needed: "",
        holds: |facts| is_untrusted(facts.principal),
        because: |_| String::new(),
    },
    passes("mi-allow-authorized", HERE, CHANGES, "nothing forbids the write", always),
    passes("mi-allow-read", HERE, &[Act::Read], "nothing forbids the read", always),
];
