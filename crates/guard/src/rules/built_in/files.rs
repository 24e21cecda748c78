//! Every other file, and what holds for files wherever they are.

use super::sentence::{deed, source, subject};
use super::{CHANGES, Effect, Rule, always, passes};
use crate::facts::{Facts, Protection, Sensitivity};
use crate::surface::{Act, Surface, is_owner};
use crate::taint::Taint;
use crate::verdict::Verdict;

const READ: &[Act] = &[Act::Read];
/// A file that got another name is read by that.
const READ_OR_RENAME: &[Act] = &[Act::Read, Act::Rename];

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "fs-deny-unresolved",
        surfaces: &[],
        acts: &[],
        condition: "it could not be told which file is meant, or a read, write, removal or renaming comes \
                    without a file",
        effect: Effect::Demands(Verdict::Deny),
        needed: "a path that leads to one file",
        holds: |facts| match &facts.file {
            Some(file) => !file.resolved,
            None => facts.act == Act::Read || facts.act.changes_file(),
        },
        because: |facts| {
            format!("it cannot be told which file {} is, so it is left alone", subject(facts))
        },
    },
    Rule {
        id: "fs-deny-state",
        surfaces: &[],
        acts: READ,
        condition: "the file is of the state directory",
        effect: Effect::Demands(Verdict::Deny),
        needed: "the owner reads it, outside of the agent",
        holds: |facts| sensitivity(facts) == Sensitivity::Sealed,
        because: |facts| {
            format!("{} is of the state directory, which no tool reads", subject(facts))
        },
    },
    Rule {
        id: "fs-deny-sensitive-untrusted",
        surfaces: &[],
        acts: READ_OR_RENAME,
        condition: "the file is on the denied list, and the principal is not the owner (`SYS`, `USER`)",
        effect: Effect::Demands(Verdict::Deny),
        needed: "it comes from USER or SYS",
        holds: |facts| sensitivity(facts) == Sensitivity::Denied && !is_owner(facts.principal),
        because: |facts| {
            format!("only the owner gets at {}, and this is {}", subject(facts), facts.principal)
        },
    },
    Rule {
        id: "fs-deny-sensitive-suspect",
        surfaces: &[],
        acts: READ_OR_RENAME,
        condition: "the file is on the denied list, and direct or ambient taint has `INJECTION_SUSPECT`",
        effect: Effect::Demands(Verdict::Deny),
        needed: "a session without a suspected injection",
        holds: |facts| {
            sensitivity(facts) == Sensitivity::Denied
                && facts.taint().intersects(Taint::INJECTION_SUSPECT)
        },
        because: |facts| {
            let source = source(facts, Taint::INJECTION_SUSPECT, Taint::INJECTION_SUSPECT);
            format!("{} may not {}: {source}", facts.principal, deed(facts))
        },
    },
    Rule {
        id: "fs-stage-protected",
        surfaces: &[Surface::FileSystem],
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
        id: "fs-taint-secrets",
        surfaces: &[],
        acts: READ_OR_RENAME,
        condition: "the file is on the tainted or the denied list",
        effect: Effect::Adds(Taint::SECRET_RISK),
        needed: "",
        holds: |facts| matches!(sensitivity(facts), Sensitivity::Tainted | Sensitivity::Denied),
        because: |_| String::new(),
    },
    passes(
        "fs-allow-default",
        &[Surface::FileSystem],
        &[Act::Read, Act::Write, Act::Delete, Act::Rename],
        "nothing forbids it",
        always,
    ),
    passes("cpi-allow-read", &[Surface::ControlPlane], READ, "nothing forbids the read", always),
];

fn sensitivity(facts: &Facts) -> Sensitivity {
    facts.file.as_ref().map_or(Sensitivity::None, |file| file.sensitivity)
}
