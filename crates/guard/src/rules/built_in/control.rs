//! What steers the agent.

use super::sentence::{deed, source, subject};
use super::{CHANGES, Effect, FOREIGN, Rule, always, passes};
use crate::facts::Protection;
use crate::surface::{Act, Surface, is_owner};
use crate::taint::Taint;
use crate::verdict::Verdict;

const HERE: &[Surface] = &[Surface::ControlPlane];
const ALTERS: &[Act] = &[Act::Change, Act::Write, Act::Delete, Act::Rename];
const ALTERS_OR_TRUSTS: &[Act] = &[Act::Change, Act::Write, Act::Delete, Act::Rename, Act::Trust];
const SUSPECT: Taint = FOREIGN.union(Taint::PROXY_DERIVED);

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "cpi-deny-sealed",
        surfaces: &[],
        acts: CHANGES,
        condition: "the file is sealed: policy, manifest, settings of agents, state directory",
        effect: Effect::Demands(Verdict::Deny),
        needed: "the owner changes it, outside of the agent: `wardkeep md edit`, `wardkeep config edit`",
        holds: |facts| {
            facts.file.as_ref().is_some_and(|file| file.protection == Protection::Sealed)
        },
        because: |facts| format!("{} is sealed: no tool writes it, whoever asks", subject(facts)),
    },
    Rule {
        id: "cpi-deny-untrusted",
        surfaces: HERE,
        acts: ALTERS_OR_TRUSTS,
        condition: "the principal is not the owner (`SYS`, `USER`)",
        effect: Effect::Demands(Verdict::Deny),
        needed: "the change comes from USER or SYS",
        holds: |facts| !is_owner(facts.principal),
        because: |facts| {
            format!("{} is not the owner and may not {}", facts.principal, deed(facts))
        },
    },
    Rule {
        id: "cpi-deny-tainted",
        surfaces: HERE,
        acts: ALTERS,
        condition: "direct taint has `UNTRUSTED`, `INJECTION_SUSPECT`, `WEB_DERIVED`, `SKILL_OUTPUT` or \
                    `PROXY_DERIVED`, or ambient taint has `INJECTION_SUSPECT`",
        effect: Effect::Demands(Verdict::Deny),
        needed: "content that comes from the owner alone, in a session without a suspected injection",
        holds: |facts| {
            facts.direct.intersects(SUSPECT) || facts.ambient.intersects(Taint::INJECTION_SUSPECT)
        },
        because: |facts| {
            let source = source(facts, SUSPECT, Taint::INJECTION_SUSPECT);
            format!("{} may not {}: {source}", facts.principal, deed(facts))
        },
    },
    Rule {
        id: "cpi-ask-ambient",
        surfaces: HERE,
        acts: ALTERS,
        condition: "ambient taint has `UNTRUSTED`, `INJECTION_SUSPECT`, `WEB_DERIVED`, `SKILL_OUTPUT` or \
                    `PROXY_DERIVED`, and it is not approved",
        effect: Effect::Demands(Verdict::Ask),
        needed: "the owner's approval of exactly this, or a session that has read nothing foreign",
        holds: |facts| facts.ambient.intersects(SUSPECT),
        because: |facts| {
            let seen = facts.ambient.only(SUSPECT);
            format!(
                "{} wants to {}, in a session that has seen content marked {seen}",
                facts.principal,
                deed(facts)
            )
        },
    },
    Rule {
        id: "proxy-deny-open",
        surfaces: HERE,
        acts: &[Act::Trust],
        condition: "so many proxies are trusted that anyone may be one",
        effect: Effect::Demands(Verdict::Deny),
        needed: "a list of trusted proxies that names them one by one",
        holds: |facts| facts.open_proxy,
        because: |facts| format!("with {} anyone can pose as a trusted proxy", subject(facts)),
    },
    passes("cpi-allow-authorized", HERE, ALTERS, "nothing forbids the change", always),
    passes("proxy-allow-listed", HERE, &[Act::Trust], "nothing forbids the proxies", always),
];
