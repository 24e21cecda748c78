//! What leaves the machine.

use super::sentence::host;
use super::{Effect, FOREIGN, Rule, always, passes};
use crate::facts::{Facts, NetworkFacts};
use crate::surface::{Act, Surface, is_owner};
use crate::taint::Taint;
use crate::verdict::Verdict;

const SECRET: Taint = Taint::SECRET_RISK.union(Taint::INJECTION_SUSPECT);

pub(super) const RULES: &[Rule] = &[
    Rule {
        condition: "the request could not be parsed, or nothing is known of it",
        needed: "a URL that can be parsed",
        holds: |facts| facts.network.as_ref().is_none_or(|network| !network.resolved),
        because: |facts| format!("it cannot be told where {} leads", host(facts)),
        ..denies("net-deny-unparsed")
    },
    Rule {
        condition: "the host is on the blocklist",
        needed: "the owner takes the host off the blocklist",
        holds: |facts| is(facts, |network| network.blocked),
        because: |facts| format!("{} is on the blocklist", host(facts)),
        ..denies("net-deny-blocked")
    },
    Rule {
        condition: "a cloud hands out credentials at the address, and the host is not allowed by name",
        needed: "the owner allows the host by name",
        holds: |facts| is(facts, |network| network.metadata && !network.allowed),
        because: |facts| {
            format!("{} is an address at which a cloud hands out credentials", host(facts))
        },
        ..denies("net-deny-metadata")
    },
    Rule {
        condition: "the address is inside the machine or its network, the principal is not the owner, and the \
                    host is not allowed by name",
        needed: "the request comes from USER or SYS, or the owner allows the host by name",
        holds: |facts| {
            !is_owner(facts.principal) && is(facts, |network| network.internal && !network.allowed)
        },
        because: |facts| {
            format!(
                "{} is inside the machine's own network, where {} has no business",
                host(facts),
                facts.principal
            )
        },
        ..denies("net-deny-internal")
    },
    Rule {
        condition: "there is a list of allowed hosts, and the host is not on it",
        needed: "the owner allows the host by name",
        holds: |facts| is(facts, |network| network.listed && !network.allowed),
        because: |facts| format!("{} is not on the list of allowed hosts", host(facts)),
        ..denies("net-deny-not-allowed")
    },
    Rule {
        condition: "the principal is not the owner, and the host is not allowed by name",
        needed: "the request comes from USER or SYS, or the owner allows the host by name",
        holds: |facts| !is_owner(facts.principal) && is(facts, |network| !network.allowed),
        because: |facts| {
            format!(
                "{} may reach only hosts that the owner allows, and {} is none",
                facts.principal,
                host(facts)
            )
        },
        ..denies("net-deny-untrusted-exfil")
    },
    Rule {
        condition: "direct taint has `SECRET_RISK` or `INJECTION_SUSPECT`, and the host is not allowed by name",
        needed: "content without secrets, or the owner allows the host by name",
        holds: |facts| facts.direct.intersects(SECRET) && is(facts, |network| !network.allowed),
        because: |facts| {
            format!(
                "what is sent is marked {}, and {} is not allowed by name",
                facts.direct.only(SECRET),
                host(facts)
            )
        },
        ..denies("net-deny-secrets")
    },
    Rule {
        condition: "more is sent than the owner allows, and the principal is not the owner",
        needed: "a smaller request",
        holds: |facts| !is_owner(facts.principal) && is(facts, |network| network.oversized),
        because: |facts| {
            format!(
                "{} sends {} bytes to {}, over the limit",
                facts.principal,
                bytes(facts),
                host(facts)
            )
        },
        ..denies("net-deny-oversized")
    },
    Rule {
        condition: "the request looks like a way to carry data out, and the principal is not the owner or direct \
                    or ambient taint has `UNTRUSTED`, `INJECTION_SUSPECT`, `WEB_DERIVED` or `SKILL_OUTPUT`",
        needed: "a request without what looks like smuggled data",
        holds: |facts| {
            is(facts, |network| network.exfiltration)
                && (!is_owner(facts.principal) || facts.taint().intersects(FOREIGN))
        },
        because: |facts| {
            format!(
                "the request of {} to {} looks like data being carried out (taint: {})",
                facts.principal,
                host(facts),
                facts.taint()
            )
        },
        ..denies("net-deny-exfil")
    },
    Rule {
        condition: "ambient taint has `SECRET_RISK`, something is sent, the host is not allowed by name, and it \
                    is not approved",
        needed: "the owner's approval of exactly this, or the owner allows the host by name",
        holds: |facts| {
            facts.ambient.intersects(Taint::SECRET_RISK)
                && is(facts, |network| network.payload > 0 && !network.allowed)
        },
        because: |facts| {
            format!(
                "the session has read secrets, and {} bytes would go to {}",
                bytes(facts),
                host(facts)
            )
        },
        ..asks("net-ask-secrets")
    },
    Rule {
        condition: "direct taint has `UNTRUSTED`, `INJECTION_SUSPECT`, `WEB_DERIVED` or `SKILL_OUTPUT`, something \
                    is sent, the host is not allowed by name, and it is not approved",
        needed: "the owner's approval of exactly this, or the owner allows the host by name",
        holds: |facts| {
            facts.direct.intersects(FOREIGN)
                && is(facts, |network| network.payload > 0 && !network.allowed)
        },
        because: |facts| {
            format!(
                "{} bytes marked {} would go to {}",
                bytes(facts),
                facts.direct.only(FOREIGN),
                host(facts)
            )
        },
        ..asks("net-ask-tainted")
    },
    Rule {
        condition: "more is sent than the owner allows, and it is not approved",
        needed: "the owner's approval of exactly this, or a smaller request",
        holds: |facts| is_owner(facts.principal) && is(facts, |network| network.oversized),
        because: |facts| {
            format!("{} bytes would go to {}, over the limit", bytes(facts), host(facts))
        },
        ..asks("net-ask-oversized")
    },
    Rule {
        condition: "the request looks like a way to carry data out, and it is not approved",
        needed: "the owner's approval of exactly this, or a request without what looks like smuggled data",
        holds: |facts| is(facts, |network| network.exfiltration),
        because: |facts| {
            format!("the request to {} looks like data being carried out", host(facts))
        },
        ..asks("net-ask-exfil")
    },
    Rule {
        condition: "always: what comes back is not to be trusted",
        effect: Effect::Adds(Taint::WEB_DERIVED.union(Taint::UNTRUSTED)),
        holds: always,
        ..denies("net-taint-external")
    },
    passes("net-allow-default", HERE, SEND, "nothing forbids the request", always),
];

const HERE: &[Surface] = &[Surface::NetworkIO];
const SEND: &[Act] = &[Act::Send];

/// A rule that denies; what it looks at is filled in.
const fn denies(id: &'static str) -> Rule {
    Rule {
        id,
        surfaces: HERE,
        acts: SEND,
        condition: "",
        effect: Effect::Demands(Verdict::Deny),
        needed: "",
        holds: always,
        because: |_| String::new(),
    }
}

const fn asks(id: &'static str) -> Rule {
    Rule { effect: Effect::Demands(Verdict::Ask), ..denies(id) }
}

fn is(facts: &Facts, asked: fn(&NetworkFacts) -> bool) -> bool {
    facts.network.as_ref().is_some_and(asked)
}

fn bytes(facts: &Facts) -> u64 {
    facts.network.as_ref().map_or(0, |network| network.payload)
}
