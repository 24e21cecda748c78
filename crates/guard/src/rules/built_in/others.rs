//! Skills, the sandbox, and what nothing knows.

use super::sentence::{source, subject};
use super::{DEFAULT_DENY, Effect, FOREIGN, Rule, always, is_known, passes};
use crate::facts::{Compliance, SkillFacts};
use crate::surface::{Act, Surface, is_untrusted};
use crate::taint::Taint;
use crate::verdict::Verdict;

const SKILL: &[Surface] = &[Surface::SkillInstall];
const INSTALL: &[Act] = &[Act::Install];
const SANDBOX: &[Surface] = &[Surface::SandboxCompliance];
const START: &[Act] = &[Act::Start];

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "skill-deny-malicious",
        surfaces: SKILL,
        acts: INSTALL,
        condition: "the skill was found malicious",
        effect: Effect::Demands(Verdict::Deny),
        needed: "another skill",
        holds: |facts| facts.skill == Some(SkillFacts::Malicious),
        because: |facts| format!("the skill {} was found malicious", subject(facts)),
    },
    Rule {
        id: "skill-deny-untrusted",
        surfaces: SKILL,
        acts: INSTALL,
        condition: "the principal is `SKILL`, `WEB`, `CHANNEL` or `EXTERNAL`",
        effect: Effect::Demands(Verdict::Deny),
        needed: "the owner installs it",
        holds: |facts| is_untrusted(facts.principal),
        because: |facts| {
            format!("{} is not trusted to install {}", facts.principal, subject(facts))
        },
    },
    Rule {
        id: "skill-deny-tainted",
        surfaces: SKILL,
        acts: INSTALL,
        condition: "direct taint has `UNTRUSTED`, `INJECTION_SUSPECT`, `WEB_DERIVED` or `SKILL_OUTPUT`, or \
                    ambient taint has `INJECTION_SUSPECT`",
        effect: Effect::Demands(Verdict::Deny),
        needed: "a request that nobody else suggested, in a session without a suspected injection",
        holds: |facts| {
            facts.direct.intersects(FOREIGN) || facts.ambient.intersects(Taint::INJECTION_SUSPECT)
        },
        because: |facts| {
            let source = source(facts, FOREIGN, Taint::INJECTION_SUSPECT);
            format!("{} may not install {}: {source}", facts.principal, subject(facts))
        },
    },
    Rule {
        id: "skill-ask-doubtful",
        surfaces: SKILL,
        acts: INSTALL,
        condition: "the skill needs a person to look at it, and it is not approved",
        effect: Effect::Demands(Verdict::Ask),
        needed: "the owner's approval of exactly this",
        holds: |facts| facts.skill == Some(SkillFacts::Doubtful),
        because: |facts| format!("a person has to look at the skill {}", subject(facts)),
    },
    Rule {
        id: "skill-ask-unverified",
        surfaces: SKILL,
        acts: INSTALL,
        condition: "the skill was not looked at, and it is not approved",
        effect: Effect::Demands(Verdict::Ask),
        needed: "the skill is verified, or the owner approves exactly this",
        holds: |facts| facts.skill.is_none(),
        because: |facts| format!("nobody has looked at the skill {}", subject(facts)),
    },
    passes("skill-allow-clean", SKILL, INSTALL, "nothing forbids the skill", always),
    passes("sandbox-full", SANDBOX, START, "the confinement is as the profile demands", |facts| {
        facts.sandbox == Some(Compliance::Full)
    }),
    passes("sandbox-partial", SANDBOX, START, "some of the confinement is missing", |facts| {
        facts.sandbox == Some(Compliance::Partial)
    }),
    passes("sandbox-none", SANDBOX, START, "there is no confinement", |facts| {
        facts.sandbox == Some(Compliance::None)
    }),
    passes("session-allow-start", SANDBOX, START, "the confinement was not looked at", |facts| {
        facts.sandbox.is_none()
    }),
    Rule {
        id: DEFAULT_DENY,
        surfaces: &[],
        acts: &[],
        condition: "no rule knows the act at the surface",
        effect: Effect::Demands(Verdict::Deny),
        needed: "an act that belongs to the surface",
        holds: |facts| !is_known(facts.surface, facts.act),
        because: |facts| {
            format!("no rule knows the act {} at the surface {}", facts.act, facts.surface)
        },
    },
];
